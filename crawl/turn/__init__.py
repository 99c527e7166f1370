"""One turn of one partition: what page_node.py calls, in the order in which it does. Synchronous; time comes in.

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
      beliefs.py     change rates, priors, habits, trust       guide.py      interest in the place of importance
    meter.py       how fresh all pages are, by the model and by audits.py (reads at random)
    planner.py     what to read next: wanted by people, to be tried again, due, rich
      pace.py        bandwidth, policy, intervals              due_pages.py  pages whose time has come, to the read
      scanned.py     the same by a scan of all pages, if [refresh] execution says so
      lines.py       due pages whose host has no room for them yet
      unread.py      pages never read, for hungry hosts        sharing.py    gamma between the two
      promised.py    pages with a deadline, and what they may take of the bandwidth
      budgets.py     hosts that are shut, by hours.py          recount.py    all pages dated anew after a switch
    seams.py       what some of these need of their page node

In: reports, loads, submits, transfers. Out: rows, columns, orders, all of them part of one commit group.
"""
