"""The laboratory, on top of the product: webs whose truth is known, to run the crawler against and to measure it by.

    web/        the computed web: pages as a function of seed, URL and time; its truth, its servers
    zoo/        hostile servers, one misbehaviour each
    crash/      crawls that are killed, and what must hold of what they left
    simulate/   whole crawls on a seeded machine: time, sockets, disk and messages follow the seed
    crawls/     whole crawls: the demo, months of the daemon, promises, the soak, XML by a focus
    speed/      what a crawl costs: RAM, CPU, latency, choosing what to read, XML
    walk/       the files and functions that one page enters
    opic/       the importance algorithms against the papers
    order/      how early a crawl reads what matters, against other orders and the best one; sites with traps
    hostile/    hostile hosts beside honest ones: does anybody starve, by the servers' logs
    polite/     many names on few addresses, a crawl that is killed: does a request come too early, by the log
    refresh/    the refresh policies on collections that change; REFRESH.md tells others how to use it
    command.py      `xyro lab ...`, found by its entry point: nothing else of the product knows the laboratory
    reference_rank.py   exact PageRank          figure_axes.py  an empty figure
    child.py        a server of the laboratory in a process of its own
    work_parts.py   long work in parts, each computed once; exit_codes.py   how such work ends

The prototype is the throw-away program in which the formulas were first tried, on the graph of opic/graph.standard and
the pages of refresh/world.py. Its numbers are tabled beside ours: opic/strategies.py, opic/history_policies.py,
refresh/refresh_claims.py.

In: seeds, sizes, shares, rates. Out: bytes and the truth about them; figures, as text or JSON, and whether they hold.

What always holds: equal settings give equal bytes at equal times, in any process; a page's bytes change exactly when
its version does; nothing here listens or connects beyond 127.0.0.0/8, and nothing reads a clock but through wire.clock.
"""
