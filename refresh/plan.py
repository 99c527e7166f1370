"""Plan: which pages the next orders read. Pure: candidates in, choice out.

Unread pages: while scouting (few pages read yet) the shallowest first, in the order they were met; later the richest
first (design.md section 6, Scouting). Each host takes at most its room, so one big host cannot eat what others could
use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
CROWD = 8
"""more candidates than this many times the wanted ones are cut to the best before they are sorted"""


def choose(urgency: NDArray[np.int64], hosts: NDArray[np.uint32], room: NDArray[np.int32], most: int) -> Ids:
    """Indices of at most `most` candidates, most urgent first, at most room[h] of host h.

    urgency: int64[n], greater = sooner; ties in the order given. hosts: uint32[n]. room: int32 by host number.
    """
    n = len(urgency)
    if n == 0 or most <= 0:
        return np.empty(0, np.int64)
    if int(room[hosts].min()) >= n <= most:
        return np.argsort(-urgency, kind="stable")
    order = np.lexsort((-urgency, hosts))
    rank = _rank_in_run(hosts[order])
    order = order[rank < room[hosts[order]]]
    best = np.lexsort((order, -urgency[order]))
    chosen: Ids = order[best[:most]]
    return chosen


def crowd(urgency: NDArray[np.int64], wanted: int) -> Ids:
    """Indices of the most urgent CROWD x wanted candidates (all, if they are fewer), in the order given.

    Of equally urgent ones the first.
    """
    most = CROWD * max(wanted, 1)
    if len(urgency) <= most:
        return np.arange(len(urgency))
    least = np.partition(urgency, len(urgency) - most)[len(urgency) - most]
    taken = urgency > least
    taken[np.flatnonzero(urgency == least)[: most - int(taken.sum())]] = True
    return np.flatnonzero(taken)


def _rank_in_run(sorted_keys: NDArray[np.uint32]) -> Ids:
    """0, 1, 2 ... within each run of equal keys."""
    n = len(sorted_keys)
    starts = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
    lengths = np.diff(np.concatenate([starts, [n]]))
    ranks: Ids = np.arange(n) - np.repeat(starts, lengths)
    return ranks
