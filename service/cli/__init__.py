"""The command `xyro`: what people type, checked and handed on. No more than that lives here.

    main.py                the command and its groups, and how errors are shown
    options.py             options that several commands share; directory, settings, refusals
    stopped_crawl.py       a crawl that does not run, opened for the commands that show one
    crawl_commands.py      crawl, serve                view_commands.py      status, top, why, export, audit
    daemon_commands.py     submit, pause, resume, block
    publish_commands.py    publish, subscribe, subscriptions, unsubscribe
    rank_command.py        rank                        plan_command.py       plan
    xml_commands.py        xml get, versions, diff, query, dtds, stats       backup_command.py     backup
    migrate_command.py     migrate

`xyro lab` is found by its entry point (group `xyro.commands`). Each command imports what it runs when it runs:
`xyro --help` loads neither numpy nor aiohttp.
"""
