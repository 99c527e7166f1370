"""The command `xyro`: what people type, checked and handed on. No more than that lives here.

    main.py      the command and its groups, and how errors are told
    options.py   what several commands share: directory, settings, refusals
    crawl.py     crawl, serve                       look.py      status, top, why, export, audit
    ask.py       submit, pause, resume, block       publish.py   publish, subscribe, subscriptions, unsubscribe
    rank.py      rank                               plan.py      plan
    xml.py       xml get, versions, diff, query ... backup.py    backup
    lab.py       lab web, demo, speed, opic ...

Each command imports what it runs when it runs: `xyro --help` loads neither numpy nor aiohttp.
"""
