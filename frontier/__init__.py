"""Runs the loop of one partition, synchronously; time comes in. Knows no process, no network and no plug-in.

    partition.py       the turn, step by step: begin here
      batch.py         what a turn carries: messages, settled orders, cash to be spent, effects
      hooks.py         where extensions take part            watch.py          known pages by URL or pattern, for them
      command_handlers.py   commands of people and plug-ins  terms.py          what the settings ask of cash and links
    pages.py           URLs become pages, at the depth of the shortest way
      scope.py         which URLs belong to the crawl, and which are never contacted
    loads.py           what the loader reports of bodies; loads that wait for parts
    claims.py          what sitemaps and feeds say of other pages
    ledger.py          cash of the pages, the virtual page, the OPIC clock
      host_inflow.py   what reaches each host from other hosts
    outbox.py          cash that partitions owe each other: outbox, inbox, acknowledgements
    dating.py          change rate, interval and next read of the pages that were settled
      change_model.py  change rates, priors, habits, trust   freshness.py      how fresh all pages are
      schedule.py      when each page is read next           freshness_audits.py    reads at random that test it
      bandwidth.py     reads a second, policy, intervals     redating.py       all pages dated anew after a switch
      due_queue.py     pages whose time has come
    scheduler.py       what becomes an order, most urgent first
      requests.py      what people, publishers and loads want      deadlines.py     promised pages and what they cost
      revisits.py      pages to be read again                      discovery.py     pages never read
      gamma.py         how these two share the orders              leases.py        orders that are out
      order_quota.py   how many orders may be out                  host_queues.py   pages whose host has no room now
      host_limits.py   budgets of hosts                            blackouts.py     hours in which hosts are not read
      parking.py       pages of hosts that are held or shut        bottleneck.py    what limits reads: host or machine

The walk: one page of a default crawl enters 47 files in its turn, and 72 on the whole way from the link in HTML to the
commit on disk. `xyro lab walk` names them in order; tests/lab/test_walk.py compares.

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
