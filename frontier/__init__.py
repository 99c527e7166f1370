"""The frontier of one partition: it turns reports of reads into knowledge, and knowledge into the next orders.

Synchronous: the caller passes the messages and the time, and gets back what to store and what to send. It knows no
process, no network and no plug-in. One page goes through these files, from the top down:

    frontier.py        the turn of one partition, step by step: begin here
      batch.py           the data of a turn: messages that came in, settled orders, effects that may leave
      hooks.py           the points of a turn at which plug-ins take part
      targets.py         pages by URL or pattern, for plug-ins
      command_handlers.py  commands of people and plug-ins
        page_answers.py    answers to questions about pages, between turns
      terms.py           weights of cash and links, from the settings
    pages.py           URLs become pages; a page's depth is the fewest links from a seed
      waiting_links.py   links that wait, for the standing of their host, until they become pages
      scope.py           rules: which URLs belong to the crawl, and which are never contacted
      scope_change.py    known pages that a change of these rules has not reached yet
    vouchers.py        folders that breed: what speaks for them
    impostors.py       answers that are not the page: challenges, suspicious changes, soft 404s
    loads.py           reports of the XML loader; documents that wait for a DTD or an entity
    claims.py          dates of change that sitemaps and feeds claim for other pages
    ledger.py          cash: pages spend it over their links, a virtual page collects a part and pays all pages alike
      host_inflow.py     cash that reaches each host from other hosts
      importance_error.py  snapshots of importances, whose movement tells how wrong they still are; their mean
    outbox.py          cash for pages of other partitions: sent until acknowledged, applied once
    revisit_dates.py   dates: when each page is to be read again, and the queues of dated pages
      change_model.py    how often each page changes, as its reads tell
      freshness.py       how fresh all pages are, by the model and by audits (reads at random)
      bandwidth.py       how many reads a second may be spent, and gamma, the percentage of them for new pages
      site_intervals.py  where [[sites]] set them: the shortest and longest interval of a page
      due_queue.py       pages whose date has come; pages promised by a deadline
      redating.py        new dates for all pages after a change of policy, and while importance and priors settle
    scheduler.py       the choice of what is read next, most urgent first, as orders
      requests.py        pages that people, publishers and documents ask for
      revisits.py        pages to be read again: due, due next, or audited at random
      discovery.py       unread pages by score, for hosts that run low on orders
      look_ahead.py      how many orders of either kind a host has out, by gamma and its pace
      host_limits.py     hosts that [[blackouts]], [[budgets]] and challenges shut
      leases.py          orders sent and not yet answered, their limits, pages that wait for a free place or their host

The walk: one page of a default crawl enters 32 files in its turn, and 60 on the whole way from the link in HTML to the
commit on disk. `xyro lab walk` names them in order; tests/lab/test_walk.py compares.

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
