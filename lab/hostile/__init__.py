"""Hostile hosts beside honest ones: does anybody starve? Judged by the servers' logs, never by the crawl's counters.

    hostile_lab.py       `xyro lab hostile`: runs the rows of the table, each beside the same web without them
    hostile_rows.py      the rows: who is hostile, how many of them, and what is wanted
    hostile_sites.py     honest sites and hostile ones as an asker meets them: an address and a path in, an answer out
    loopback_server.py   serves them on loopback in a process of its own, and logs each request
    request_log.py       what a log says: when the last honest page was read, and how much went to whom

In: numbers of honest hosts and pages. Out: a table. What always holds: crawl, honest servers, hostile servers and judge
are four processes, so that none measures the others' work.
"""
