"""The command `xyro`: what people type, checked and handed on. No more than that lives here.

    main.py      the command and its groups, and how errors are told
    options.py   what several commands share: directory, settings, refusals
    crawl_commands.py     crawl, serve                       view_commands.py      status, top, why, export, audit
    daemon_commands.py       submit, pause, resume, block       publish_commands.py   publish, subscribe,
    subscriptions, unsubscribe
    rank_command.py      rank                               plan.py      plan
    xml_commands.py       xml get, versions, diff, query ... backup.py    backup
    command.py       lab web, demo, speed, opic ...

Each command imports what it runs when it runs: `xyro --help` loads neither numpy nor aiohttp.
"""
