"""One turn of one partition: what page_node.py calls, in the order in which it does. Synchronous; time comes in.

    work.py        what comes in and what may leave
    pages.py       URLs become pages, as deep as the shortest way, in scope or not
      scope.py       which URLs belong, and what is never contacted
    loads.py       what the loader says of bodies, and loads that wait for parts
    claims.py      what sitemaps and feeds say of other pages
    spending.py    who spends in this turn, over which children
    purse.py       the partition's cash, virtual page and OPIC clock
      history.py     how its pages' flow is remembered         holdings.py   its pages as selectors see them
      focus.py       whom the virtual page pays how much       interest.py   pages that lead to what a focus seeks
      site_flow.py   what reaches each host from others
    post.py        what partitions owe each other: outbox, inbox, acknowledgements
    dates.py       change rate, interval, next read of what was settled
      beliefs.py     change rates, priors, habits, trust     guide.py      interest in the place of importance
    meter.py       how fresh all pages are, by the model and by audits.py (reads at random)
    agenda.py      when each page is to be read next, and the queues of dated pages
      pace.py        bandwidth, policy, intervals            recount.py   all pages dated anew after a switch
      due_pages.py   pages whose time has come, to the read  scanned.py   the same by a scan of all pages
    planner.py     what to read next, most urgent first, as orders
      wanted.py      by people, publishers and loads         promised.py  with a deadline, and what of B they may take
      places.py      how many orders may be out              lines.py     pages before hosts that have no room for them
      rereads.py     at random, due, due next
      unread.py      never read, for hungry hosts            sharing.py   gamma between the two
      parking.py     put aside: held or shut hosts           budgets.py   hosts that are shut, by hours.py
      leases.py      orders that are out                     crowd.py     who limits reads: the machine, a few hosts?
    seams.py       what some of these need of their page node

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
