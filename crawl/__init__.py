"""crawl: the roof. Everything that runs, in one process, and the only folder that reads settings.

The loop, and who does what in it:

    page_node.py    one turn = one commit group of one partition: reports become rows and links (metadata), pages spend
                    their cash (opic), change rates and dates follow (refresh), and what comes next becomes orders
      planner.py      what to read next: wanted by people, to be tried again, due, rich
      spending.py     who spends in this turn, over which children
      loads.py        what the loader says of bodies, and loads that wait for parts
      dates.py        change rate, interval, next read of what was settled
      purse.py        the partition's cash, virtual page and OPIC clock
      history.py      how its pages' flow is remembered       holdings.py   its pages as selectors see them
      focus.py        whom the virtual page pays how much: classes of pages, by [[focus]]
      site_flow.py    what reaches each host from others, if [opic] sites is on
      post.py         what partitions owe each other: outbox, inbox, acknowledgements
      scope.py        which URLs belong, and what is never contacted
    page_loop.py    gathers messages, lets the node take its turn, writes it, and only then lets its effects leave
    fetch_node.py   orders into xyro's pool, one report for each back to the page node of its partition
    load_node.py    XML bodies into loader: links of feeds and sitemaps, documents that wait for their parts
    single.py       all nodes of one machine on one event loop and an in-process bus; says when a crawl is over
    reading.py      from settings to client, fetcher and pool     guarding.py   to the guard

Around it, a process's life and its face:

    cli.py, cli_*.py      the command `xyro`        lifespan.py   start, serve, stop; signals; the closing report
    given.py              DIR/crawl.toml: a resumed crawl keeps the scope it was last given
    data_dir.py           DIR/p0000 ...             run_file.py   DIR/run: where the running process answers
    api.py, long_looks.py its HTTP interface on loopback          progress.py, log.py   what a person sees meanwhile
    stopped.py            a crawl that does not run, to look at   seeds.py              what people hand in
    trust.py              intervals, bounds and trends of importances      sites.py    hosts or domains by their links
    views.py              a crawl at one commit boundary: the rows of top, why.py, export (output.py) and audit.py
    xml_looks.py          the repository of documents at such a boundary; xml_api.py answers for it, xml_audit.py checks
                          it, xml_stats.py counts it, xml_plot.py draws that; xml_query.py and xml_diff.py ask it by way
                          of xml_worker.py, whose process (xml_child.py) may die of hostile documents
    rank.py, rank_*.py    `xyro rank`, the offline reference: what it needs of a crawl (rank_data.py) goes to files
                          (rank_files.py), is computed, by workers too (rank_workers.py), compared and told
    guide.py              the interest that may stand for the importance of HTML pages when dates.py dates them
    status.py, summary.py the few numbers of `xyro status`        table.py              rows for people
    demo.py               the loop on lab's computed web, its importance beside the true one
    speed.py, speed_*.py  what a page and a known URL cost

In: seeds from people, answers of the web, settings (TOML < environment < command line). Out: a data directory, and what
is asked of it.

What always holds: one process writes a data directory, by a lock; an order, an acknowledgement or a transfer leaves
only after the group that caused it is on disk; what a command shows is one commit boundary, never a half-applied group;
a directory that exists can be resumed, audited and exported, whatever killed the process; bad input changes nothing.
"""
