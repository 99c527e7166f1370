"""Blackouts in the fetch pool: orders that were handed out before a blackout began wait in the queue until it ends.

The scheduler gives out none while a host is shut (host_limits.py); but up to `leases_per_host` may be out when
it begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xyro.pool import Pool

if TYPE_CHECKING:
    from xyro.frontier.partition import PageNode


class BlackoutSwitch:
    """`follow` at `next_change` at the latest."""

    def __init__(self, nodes: Sequence[PageNode], pool: Pool) -> None:
        self.nodes = nodes
        self.pool = pool
        self.held: set[str] = set()
        """hosts whose reads are held back now"""
        self._next = -math.inf

    def next_change(self) -> float:
        """When a blackout begins or ends (wall clock); infinite without any."""
        return self._next

    def follow(self, now: float, anew: bool = False) -> None:
        """Hold and release hosts as the calendar says. anew: the settings changed."""
        if now < self._next and not anew and not any(node.scheduler.host_limits.met for node in self.nodes):
            return
        shut: set[str] = set()
        self._next = math.inf
        for node in self.nodes:
            limits = node.scheduler.host_limits
            closed, change = limits.closed(now)
            shut.update(node.partition.hosts.names[host] for host in closed)
            self._next = min(self._next, change)
        for name in shut - self.held:
            self.pool.hold(name)
        for name in self.held - shut:
            if not self._by_a_person(name):
                self.pool.resume(name)
        self.held = shut

    def _by_a_person(self, name: str) -> bool:
        for node in self.nodes:
            number = node.partition.hosts.numbers.get(name)
            if number is not None and not node.partition.hosts.open[number]:
                return True
        return False
