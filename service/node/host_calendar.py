"""The calendar of hosts of one partition: which are shut, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class HostCalendar:
    """Blackouts and spent budgets of a partition (frontier/host_limits.py), by the names of hosts."""

    def __init__(self, frontier: Frontier) -> None:
        self._limits = frontier.scheduler.host_limits
        self._hosts = frontier.partition.hosts

    def has_new_hosts(self) -> bool:
        """Tell whether a host that the tables name was met since `shut` was called."""
        return self._limits.met

    def shut(self, now: float) -> tuple[set[str], float]:
        """Return the hosts that are shut, and when that changes next (wall clock; infinite: never)."""
        closed, change = self._limits.closed(now)
        return {self._hosts.names[host] for host in closed}, change

    def is_held(self, name: str) -> bool:
        """Tell whether a person paused or blocked the host."""
        number = self._hosts.numbers.get(name)
        return number is not None and not self._hosts.open[number]
