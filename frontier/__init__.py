"""One turn of one partition: what partition.py calls, in the order in which it does. Synchronous; time comes in.

    batch.py        what comes in and what may leave
    pages.py       URLs become pages, as deep as the shortest way, in scope or not
      scope.py       which URLs belong, and what is never contacted
    loads.py       what the loader says of bodies, and loads that wait for parts
    claims.py      what sitemaps and feeds say of other pages
    spending.py    who spends in this turn, over which children
    ledger.py       the partition's cash, virtual page and OPIC clock
      focus.py       whom the virtual page pays how much       interest.py   pages that lead to what a focus seeks
      host_inflow.py   what reaches each host from others
    outbox.py        what partitions owe each other: outbox, inbox, acknowledgements
    dates.py       change rate, interval, next read of what was settled
      change_model.py     change rates, priors, habits, trust     guide.py      interest in the place of importance
    meter.py       how fresh all pages are, by the model and by freshness_audits.py (reads at random)
    schedule.py      when each page is to be read next, and the queues of dated pages
      bandwidth.py        bandwidth, policy, intervals            redating.py   all pages dated anew after a switch
      due_queue.py   pages whose time has come, to the read  scan_schedule.py   the same by a scan of all pages
    scheduler.py     what to read next, most urgent first, as orders
      requests.py      by people, publishers and loads         promised.py  with a deadline, and what of B they may take
      places.py      how many orders may be out              host_queues.py     pages before hosts that have no room
      for them
      revisits.py     at random, due, due next
      discovery.py      never read, for hungry hosts            gamma.py   gamma between the two
      parking.py     put aside: held or shut hosts           host_limits.py   hosts that are shut, by blackouts.py
      leases.py      orders that are out                     bottleneck.py     who limits reads: the machine, a few
      hosts?
    seams.py       what some of these need of their page node

The walk: one page of a default crawl enters 49 files in its turn, and 75 on the whole way from the link in HTML to the
commit on disk. `xyro lab walk` names them in order; tests/lab/test_walk.py compares.

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
