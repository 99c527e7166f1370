"""crawl: the roof. Everything that runs, in one process, and the only folder that reads settings.

The loop, and who does what in it:

    page_node.py    one turn = one commit group of one partition: reports become rows and links (metadata), pages spend
                    their cash (opic), change rates and dates follow (refresh), and what comes next becomes orders
      planner.py      what to read next: wanted by people, to be tried again, due, rich
        pace.py         bandwidth, policy, intervals            due_pages.py  pages whose time has come, to the read
        unread.py       pages never read, for hungry hosts      sharing.py    gamma between the two
        budgets.py      hosts shut by [[budgets]] and [[blackouts]] (hours.py the calendar, closing.py the pool)
        recount.py      all pages dated anew after a switch
      spending.py     who spends in this turn, over which children
      loads.py        what the loader says of bodies, and loads that wait for parts; waits.py tells people of these
      dates.py        change rate, interval, next read of what was settled
      beliefs.py      what is believed of pages' changes, their priors, habits, and what each host's claims are worth
      claims.py       what sitemaps and feeds tell of other pages     told.py   what people are told of it
      purse.py        the partition's cash, virtual page and OPIC clock
      meter.py        how fresh all pages are, by the model and by audits.py (reads at random); delays
      history.py      how its pages' flow is remembered       holdings.py   its pages as selectors see them
      focus.py        whom the virtual page pays how much: classes of pages, by [[focus]]
      interest.py     pages that lead to documents which a focus seeks, and what hangs beside these
      site_flow.py    what reaches each host from others, if [opic] sites is on
      post.py         what partitions owe each other: outbox, inbox, acknowledgements
      scope.py        which URLs belong, and what is never contacted
    page_loop.py    gathers messages, lets the node take its turn, writes it, and only then lets its effects leave
    fetch_node.py   orders into xyro's pool, one report for each back to the page node of its partition
    load_node.py    XML bodies into loader: links of feeds and sitemaps, documents that wait for their parts
      loading.py      from settings to its intake       library.py   parts and bodies that the stores have already
    single.py       all nodes of one machine on one event loop and an in-process bus; says when a crawl is over
    promises.py     what a partition has promised: published pages, and clusters (clustered.py); watch.py finds who
                    belongs; its page node asks it before the planner chooses (seams.py: what it needs of that)
    publishing.py   where publications come together: from publish.py, the listener for sites (IndexNow: indexnow.py,
                    whose key files side_reads.py reads), from websub.py, which hubs call, and from `xyro publish`
    subscribed.py   refreshes pages before the notices of subscriptions (subscription_rows.py) are due; notices.py sends
    machine.py      what these need of single.py
    reading.py      from settings to client, fetcher and pool     guarding.py   to the guard

Around it, a process's life and its face:

    cli.py, cli_*.py      the command `xyro`        lifespan.py   start, serve, stop; signals; the closing report
    reload.py             settings read again on SIGHUP         health.py          GET /health: is the daemon well
    backup.py             a whole copy of a directory as of one commit
    given.py              DIR/crawl.toml: a resumed crawl keeps the scope it was last given
    data_dir.py           DIR/p0000 ...             run_file.py   DIR/run: where the running process answers
    api.py, long_looks.py its HTTP interface on loopback          progress.py, log.py   what a person sees meanwhile
    why_promised.py       what `why` says of these
    promise_api.py        publications and subscriptions for the owner       durations.py   7d, 1h
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
    forecast.py           what `xyro plan` says           freshness.py          how fresh it is, for `xyro status`
    xml_lab.py            a focus on XML, on a computed web; xml_rig.py: real DocBook, held against libxml2
    demo.py               the loop on lab's computed web, its importance beside the true one
    daemon_lab.py         months of the daemon on a clock that jumps                 soak.py  does it leak at full speed
    speed.py, speed_*.py  what a page and a known URL cost

In: seeds from people, answers of the web, settings (TOML < environment < command line). Out: a data directory, and what
is asked of it.

What always holds: one process writes a data directory, by a lock; an order, an acknowledgement or a transfer leaves
only after the group that caused it is on disk; what a command shows is one commit boundary, never a half-applied group;
a directory that exists can be resumed, audited and exported, whatever killed the process; bad input changes nothing.
"""
