"""Refreshing: how fast pages change, and when to read each one again. Pure: no I/O, no clock, no randomness.

P1 is Mignet et al., "Acquiring XML pages for a WebHouse" (2000). S = sum sqrt(r lambda) over the refreshed pages, and
K = S / B: a page of importance r and change rate lambda is read every K / sqrt(r lambda).

In: what each read showed (time since the last read, changed or not, a trusted Last-Modified), each page's importance r,
the bandwidth B (reads per second), and the time now, always as an argument.

    rate_sums.py three sums a page of what its reads showed; one update per read
    rate_belief.py  from them and a prior, what is believed of lambda: shares of 51 rates; the rate that stands for
                 them, the chance that the page is quiet for a time, and the time at which a chance is reached; priors
                 that all pages of a host, a kind, or the crawl share, learned from them
    change.py    which dates of change are believed
    evidence.py  what claims add to it; how far a claim moves the next read
    trust.py     what each host's claims are worth, as later reads bore them out
    periodic.py  pages that change by the clock: period, phase, the read just after
    policy.py    the law by which reads are shared out: P1's t_i = K / sqrt(r_i lambda_i), K = S / B, S kept exactly;
                 mixed, freshness; floors, ceilings, hopeless pages; what freshness and obsolescence intervals give
    inverse.py   the age at which a policy's index reaches a value
    doubt.py     what a read is worth where a rate is in doubt: no page is given up on little evidence
    population.py  all pages as one sketch: the multiplier that spends the bandwidth, what freshness to expect
    other_sums.py  the sums of the partitions beside one, with which it plans as if it knew all pages
    plan_part.py   the same of some partitions, to be sent
    dated_pages.py  all refreshed pages: exact totals, a sample in proportion to importance
    fitted_rates.py how often the pages of each folder change: a distribution of any shape, fitted to the sample
    expected.py  from these two: how fresh all pages are by the model, now and in a plan
    meter.py     how fresh they are by reads at random, with its interval
    calibration.py how often changes came beside how often the model expected them
    delays.py    from change to detection, from birth to discovery
    publications.py  what sites say of their pages: orders with deadlines, who is late     lags.py  how late
    subscriptions.py when pages are refreshed for a notice, and when it goes out
    awaited_pages.py pages that a notice promises, and those that it went out without
    hub_leases.py when a WebSub hub is asked again
    clusters.py  pages that are refreshed together: joint importance and rate, one date, rounds and their spread
    lateness.py  what late promises cost, beside missed changes
    allowance.py how much each publisher may say in an hour
    due.py       pages foldered by the time unit of their next read
    sharing.py   gamma: how discovery and refresh share the orders, its schedule, its controller; B measured; which
                 unread pages come next
    ahead.py     pages in the order of their dates, on a clock that jumps to what is due next

Out: three sums a page, a rate, an interval in seconds, the ids that are due, how many orders each side gets.

What always holds: a rate lies between 2^-12 and 2^13 a day; S equals the sum over all pages to the last bit, however
many updates came; with neither floor nor ceiling the intervals spend exactly B (sum 1/t_i = B; where a policy gives
pages up, to within the reads of those at the limit); in due.py a page added once is popped once; while both sides have
pages waiting, discovery's orders are gamma % of any run of orders, to within one.
Units: rates are changes per day, ages and exposures are days, intervals and due times are seconds.
"""
