"""Pages put aside because nobody may read their host now: a person holds it, or [[blackouts]] and [[budgets]] shut it.

Filled by the scheduler with whatever it would order of such a host, emptied when the host opens. Nothing of it is
stored: a restart finds these pages where all others are found.
"""

from __future__ import annotations

from xyro.frontier.host_limits import HostLimits
from xyro.metadata.manager import Partition


class Parking:
    """Of one partition, by host."""

    def __init__(self, partition: Partition, host_limits: HostLimits) -> None:
        self.partition = partition
        self.host_limits = host_limits
        self._pages: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """Hosts with pages that were put aside."""
        return len(self._pages)

    def pages(self) -> int:
        return sum(map(len, self._pages.values()))

    def park(self, page: int) -> bool:
        """Put a page of a held or shut host aside. False: its host is open."""
        host = self.partition.hosts_of[page]
        if self.partition.hosts.open[host] and host not in self.host_limits.until:
            return False
        self._pages.setdefault(host, []).append(page)
        return True

    def leave(self, host: int) -> list[int]:
        """The host is open again: its pages, to be queued."""
        return self._pages.pop(host, [])

    @property
    def shut_out(self) -> bool:
        """Do pages wait for the end of a blackout, or for a new day's budget?"""
        return any(self._pages.get(host) for host in self.host_limits.until if self.partition.hosts.open[host])
