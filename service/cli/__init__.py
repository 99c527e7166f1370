"""The command `xyro`: what people type, checked and handed on. No more than that lives here.

    main.py                the command and its groups, and how errors are shown
    options.py             options that several commands share; directory, settings, refusals
    crawl_place.py         the crawl that is meant: --data, or the cluster of --join
    stopped_crawl.py       a crawl that does not run, opened for the commands that show one
    partial_rows.py        rows of a cluster of which a node does not answer
    running_crawl.py       the process that works on a directory, waited for while it starts
    crawl_commands.py      crawl, serve                view_commands.py      status, top, why, export, audit
    daemon_life_commands.py  stop, log, completion
    daemon_commands.py     submit, pause, resume, block
    dashboard_command.py, dashboard_relay.py   dashboard; its page out of a container
    publish_commands.py    publish, subscribe, subscriptions, unsubscribe
    rank_command.py        rank                        plan_command.py       plan
    changes_command.py     changes
    xml_commands.py        xml get, versions, diff, query, dtds, stats       backup_command.py     backup
    migrate_command.py     migrate, repair             hub_command.py        hub
    cluster_command.py     cluster status, move, drain, forget, set, unbound, adopt
    cluster_crawl.py       crawl --join
    page_commands.py       page get, versions, diff      identity_command.py   identity make, show

`xyro lab` is found by its entry point (group `xyro.commands`). Each command imports what it runs when it runs:
`xyro --help` loads neither numpy nor aiohttp.
"""
