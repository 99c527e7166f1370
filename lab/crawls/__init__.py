"""Laboratories that run the whole crawler on loopback; each prints what it measured and whether it holds.

    demo.py         `xyro lab demo`: the loop beside the truth
    daemon.py       `xyro lab daemon`: months of the daemon over real HTTP
      jumping.py        on a clock that jumps to what is due next
      meter_checks.py   whether the freshness that `xyro status` shows is right there
    promises_lab.py     `xyro lab promises`: publications under full load (published.py), subscriptions over weeks
                    (subscribed_lab.py)
    gamma_shares.py `xyro lab gamma`: the shares of new pages and of known ones, by the server's log
    unattended.py   `xyro lab unattended`: a daemon that nobody watches, on a site that never changes
    news.py         `xyro lab news`: two weeks of the daemon on a news site (judged by script_referee.py)
    belief_lab.py   `xyro lab beliefs`: the frontier alone, on sites whose every change is known (belief_worlds.py)
    soak.py         `xyro lab soak`: the daemon at full speed, for leaks
    crawler_process.py  a crawl or daemon in a process of its own
    xml_kinds.py    `xyro lab xml`: a crawl that seeks XML against others; xml_packages.py: on real DocBook

In: sizes and a seed of the computed web. Out: figures, beside the truth or a prediction.
"""
