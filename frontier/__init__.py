"""Runs the loop of one partition, synchronously; time comes in. Knows no process, no network and no plug-in.

    frontier.py        the turn, step by step: begin here
      batch.py         what a turn carries: messages, settled orders, effects
      hooks.py         where extensions take part            watch.py          known pages by URL or pattern, for them
      command_handlers.py   commands of people and plug-ins  terms.py          what the settings ask of cash and links
    pages.py           URLs become pages, at the depth of the shortest way
      scope.py         which URLs belong to the crawl, and which are never contacted
    loads.py           what the loader reports of bodies; loads that wait for parts
    claims.py          what sitemaps and feeds say of other pages
    ledger.py          cash of the pages, the virtual page, the OPIC clock
      host_inflow.py   what reaches each host from other hosts
    outbox.py          cash that partitions owe each other: outbox, inbox, acknowledgements
    schedule.py      when each page is to be read next: its date, its row, the queues of dated pages
      change_model.py   change rates, priors, habits, trust
      freshness.py      how fresh all pages are, by the model and by audits (reads at random)
        bandwidth.py      bandwidth, multiplier, intervals, gamma
        due_queue.py      pages whose time has come, to the read; pages with a deadline
        redating.py       all pages dated anew after a change of policy, and while importance settles
    scheduler.py     what to read next, most urgent first, as orders
      requests.py       by people, publishers and loads
      revisits.py       at random, due, due next
      discovery.py      never read, for hosts that run low on orders
      host_limits.py    hosts that are shut by [[blackouts]] and [[budgets]]
      leases.py         orders that are out, how many may be, pages that wait for a place or for their host

The walk: one page of a default crawl enters 30 files in its turn, and 57 on the whole way from the link in HTML to the
commit on disk. `xyro lab walk` names them in order; tests/lab/test_walk.py compares.

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
