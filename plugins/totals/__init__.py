"""Bandwidth, K, gamma and mean importance of several partitions, on one node or many, as of one crawl: they tell each
other their sums.

    total_messages.py   a partition's sums, to the home partition; those of all others, to each partition
    shared_totals.py    tells them when they have moved, and hands what comes to the frontier

In: the sums of the bandwidth of a frontier (frontier/bandwidth.py). Out: `hear_others` of Bandwidth, Gamma and
ImportanceError.
A partition plans with what it heard last; nothing waits for it.
"""
