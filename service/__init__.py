"""crawl: the roof. Everything that runs, in one process, and the only folder that reads settings.

The loop, and who does what in it:

    partition.py    one turn = one commit group of one partition: reports become rows and links (metadata), pages spend
                    their cash (opic), change rates and dates follow (refresh), and what comes next becomes orders;
                    turn/ has its parts, each with one duty
    partition_loop.py    gathers messages, lets the node take its turn, writes it, and only then lets its effects leave
    fetch_loop.py   orders into xyro's pool, one report for each back to the page node of its partition
    load_loop.py    XML bodies into loader: links of feeds and sitemaps, documents that wait for their parts
    loader_factory.py      from settings to its intake       library.py   parts and bodies that the stores have already
    single.py       all nodes of one machine on one event loop and an in-process bus; says when a crawl is over
    reader_factory.py      from settings to client, fetcher and pool     guard_factory.py   to the guard
    blackout_switch.py   blackouts

A process's life:

    life_cycle.py     start, serve, stop; signals; the closing report     reload.py     settings read again on SIGHUP
    data_dir.py     DIR/p0000 ...                                       crawl_file.py      DIR/crawl.toml: scope and
    focus
    run_file.py     DIR/run: where the running process answers          api.py        its HTTP interface on loopback
    http_json.py    JSON, as that and publish/ speak it                 health.py     GET /health
    backup.py       a whole copy as of one commit                       seeds.py      what people hand in
    stopped.py      a crawl that does not run, to look at               durations.py  7d, 1h
    progress.py, log_setup.py   what a person sees meanwhile                  garbage.py  Python's, of garbage
    slicing.py    long work on the event loop, some at a time         open_files.py    sockets are files

Rooms beside it:

    cli/        the command `xyro`                          looks/      status, top, why, export, audit, plan
    rank/       `xyro rank`, the offline reference          warehouse/  `xyro xml`, the stored documents
    publish/    publications, WebSub, subscriptions         bench/      what it costs, what it does: `xyro lab ...`

In: seeds from people, answers of the web, settings (TOML < environment < command line). Out: a data directory, and what
is asked of it.

What always holds: one process writes a data directory, by a lock; an order, an acknowledgement or a transfer leaves
only after the group that caused it is on disk; what a command shows is one commit boundary, never a half-applied group;
a directory that exists can be resumed, audited and exported, whatever killed the process; bad input changes nothing.
"""
