"""Bounded crawls of a cluster: `xyro crawl --join URL SEED --max-pages N --max-seconds S`.

    bound_messages.py   begin a run, ask for reads, grant them, count
    read_quota.py       the reads that one partition may make; it asks the home partition for more
    quota_pool.py       the reads of the whole run, which the home partition grants from
    read_gate.py        no read begins after the time of a run
    run_end.py          is the run over? Decided from two equal rounds of counts
    bound_report.py     the bounds that hold, for `xyro status`
    routes.py           begin a run, and a round of counts, through the interface of any node

A read is charged when its order is made, in the commit group that makes it, and comes back when the web did not answer
it; orders that a killed process had out stay charged. So all partitions together never read more than was granted, and
never is more granted than the bound. In: commands, settled orders. Out: a room for orders (hooks.limits).
"""
