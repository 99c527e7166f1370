"""Politeness by the server's own log: many names on few addresses, and a crawl that is killed again and again.

    polite_sites.py   the hosts: what each says in robots.txt, and how it answers
    polite_server.py  serves them, and their names, in a process of its own; logs when each request came and ended
    polite_lab.py     `xyro lab politeness`: crawls them, kills the crawl, and judges the log

In: numbers of names, addresses and kills. Out: the requests that came too early, none if all is well. What always
holds: what is judged is what the server saw; the crawl is asked nothing.
"""
