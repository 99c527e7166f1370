"""Blackouts in the fetch pool: orders that were handed out before a blackout began wait in the queue until it ends.

The scheduler gives out none while a host is shut (frontier/host_limits.py); but up to `leases_per_host` may be out when
it begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xyro.pool import Pool

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class BlackoutSwitch:
    """`follow` at `next_change` at the latest."""

    def __init__(self, frontiers: Sequence[Frontier], pool: Pool) -> None:
        self.frontiers = frontiers
        self.pool = pool
        self.shut_hosts: set[str] = set()
        """hosts whose reads are held back now"""
        self._next = -math.inf

    def next_change(self) -> float:
        """Return when the next blackout begins or ends (wall clock); infinite without any."""
        return self._next

    def follow(self, now: float, anew: bool = False) -> None:
        """Hold and release hosts as the calendar says. anew: the settings changed."""
        if now < self._next and not anew and not any(frontier.scheduler.host_limits.met for frontier in self.frontiers):
            return
        shut: set[str] = set()
        self._next = math.inf
        for frontier in self.frontiers:
            limits = frontier.scheduler.host_limits
            closed, change = limits.closed(now)
            shut.update(frontier.partition.hosts.names[host] for host in closed)
            self._next = min(self._next, change)
        for name in shut - self.shut_hosts:
            self.pool.hold(name)
        for name in self.shut_hosts - shut:
            if not self._by_a_person(name):
                self.pool.resume(name)
        self.shut_hosts = shut

    def _by_a_person(self, name: str) -> bool:
        for frontier in self.frontiers:
            number = frontier.partition.hosts.numbers.get(name)
            if number is not None and not frontier.partition.hosts.open[number]:
                return True
        return False
