"""Is it the machine that limits what is read, or do a few slow hosts? Measured bandwidth counts the former only.

A host whose pages wait is read as fast as it may be, whatever the crawl could do besides. Were that taken for the
capacity of all, one slow host with more pages than it can serve would make the intervals of every other host as long
as its own. So there is more to read than is read when the hosts that wait are at least half of those that have pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.host_limits import HostLimits
from xyro.metadata.manager import Partition
from xyro.metadata.states import State

LOOK = 600.0
"""seconds between two looks at which hosts have pages that are refreshed (60 ms for 10 M pages)"""
SHARE = 0.5
_READ = int(State.READ)


class Bottleneck:
    """`waits` at the end of each turn."""

    def __init__(self, partition: Partition, host_limits: HostLimits) -> None:
        self.partition = partition
        self.host_limits = host_limits
        self._refreshed: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """hosts with a page that was read, at the last look"""
        self._next = -math.inf

    def waits(self, lined: Iterable[int], now: float) -> bool:
        """Do half of the hosts wait? lined: those with due pages that found no place."""
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        waiting = hosts.waiting[:count] > 0
        waiting[list(lined)] = True
        waiting &= hosts.open[:count]
        if self.host_limits.until:
            waiting &= ~self.host_limits.shut[:count]
        if not waiting.any():
            return False
        refreshed = self._look(now)
        known = int(waiting.sum()) + int((refreshed & ~waiting[: len(refreshed)]).sum())
        return int(waiting.sum()) >= SHARE * known

    def _look(self, now: float) -> NDArray[np.bool_]:
        if not self._next - LOOK <= now < self._next:
            columns = self.partition.columns
            read = columns["host"][: columns.n][columns["state"][: columns.n] == _READ]
            self._refreshed = np.zeros(len(self.partition.hosts), np.bool_)
            self._refreshed[read] = True
            self._next = now + LOOK
        return self._refreshed
