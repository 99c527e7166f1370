"""Runs one process: the loops around partitions, its life from start to stop, its data directory.

The loop:

    node.py              the reference wiring: builds all parts, in order, on one event loop; says when a crawl is over
    partition_loop.py    gathers messages, lets its partition take a turn, writes it, and only then lets effects leave
    joint_settling.py    importance settles over all partitions of a process at once
    command_sender.py    commands to partitions, and their answers by request number
    fetch_loop.py        orders into xyro's pool, one report for each back to the partition of its page
    load_loop.py         XML bodies into loader: links of feeds and sitemaps, documents that wait for their parts
    resident.py          one partition at work in the node: it may come and go while the node runs
    network.py, cluster_seam.py  the seams to the other nodes of a crawl (service/cluster)
    page_lookup.py       answers for the loader about single pages, from the partition of this process that owns each
    part_library.py      these, for the loader in its thread
    page_questions.py    questions about single pages to any partition, by messages: what plug-ins ask by
    crawl_views.py       copies of what all partitions look like, for the commands and interfaces that show a crawl
    host_calendar.py     hosts of a partition that blackouts and budgets shut
      blackout_switch.py   the same in the fetch pool          side_reads.py   fetches of key files and the like
    recent_figures.py    samples of speed, failures and clock over the last ten minutes
    part_requests.py     DTDs and entities that other nodes have
    services.py          what a plug-in may use of the node, and how the plug-ins are handed to it
    reader_factory.py, site_factory.py, loader_factory.py, guard_factory.py
                         from settings to reader, intake and guard

A process's life:

    life_cycle.py        start, serve, stop; signals; the closing report
    endpoint.py          the interface of HTTP servers (api, publish) that answer while the crawl runs
    command_feed.py      a command that is run with bytes on its input
    admission.py         how many connections those hold       http_json.py       JSON over HTTP, as those speak it
    long_views.py        views that take long, while it runs
    coverage.py          which partitions an answer covers, as one of several nodes says it
    reload.py            settings read again on SIGHUP         run_file.py        DIR/run: where the process answers
    data_dir.py          DIR/p0000 ...                         crawl_file.py      DIR/crawl.toml: scope and focus
      numbered_dirs.py     one of several that are alike: DIR/node-*
    seeds.py             URLs that people hand in              backup.py          a whole copy as of one commit
    migration.py         a directory of an older format, carried over
    repair.py            a damaged directory made whole, and an account of what was lost
    status.py            `xyro status` of a running crawl      stopped.py         a crawl that does not run, to look at
    progress.py          what a person sees meanwhile      slicing.py         long work, some at a time
    open_files.py        raises the limit of open files

What always holds: an effect leaves only after the commit group that caused it is on disk; what changes a partition is a
message (wire/topics.py, wire/commands.py) or a hook that is registered with it; only node.py, joint_settling.py,
stopped.py and crawl_views.py have several partitions in their hands; fetch_loop.py loads nothing of the store or the
schedule.
"""
