"""The calendar of hosts over all partitions of a process: which are shut, and until when. Made by the wiring alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class HostCalendar:
    """Blackouts and spent budgets of all partitions (frontier/host_limits.py), by the names of hosts."""

    def __init__(self, frontiers: Sequence[Frontier]) -> None:
        self._frontiers = frontiers

    def has_new_hosts(self) -> bool:
        """Tell whether a host that the tables name was met since `shut` was called."""
        return any(frontier.scheduler.host_limits.met for frontier in self._frontiers)

    def shut(self, now: float) -> tuple[set[str], float]:
        """Return the hosts that are shut, and when that changes next (wall clock; infinite: never)."""
        names: set[str] = set()
        next_change = math.inf
        for frontier in self._frontiers:
            closed, change = frontier.scheduler.host_limits.closed(now)
            names.update(frontier.partition.hosts.names[host] for host in closed)
            next_change = min(next_change, change)
        return names, next_change

    def is_held(self, name: str) -> bool:
        """Tell whether a person paused or blocked the host."""
        for frontier in self._frontiers:
            hosts = frontier.partition.hosts
            number = hosts.numbers.get(name)
            if number is not None and not hosts.open[number]:
                return True
        return False
