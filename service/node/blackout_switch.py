"""Blackouts in the fetch pool: orders that were handed out before a blackout began wait in the queue until it ends.

The scheduler gives out none while a host is shut (frontier/host_limits.py); but up to `leases_per_host` may be out when
it begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xyro.pool import Pool
from xyro.service.node.host_calendar import HostCalendar


class BlackoutSwitch:
    """Holds and resumes hosts in the pool; call `follow` at `next_change` at the latest."""

    def __init__(self, calendars: Sequence[HostCalendar], pool: Pool) -> None:
        """calendars: of each partition whose hosts the pool reads."""
        self.calendars = calendars
        self.pool = pool
        self.shut_hosts: set[str] = set()
        """hosts whose reads wait now"""
        self._next = -math.inf

    def next_change(self) -> float:
        """Return when a blackout begins or ends next (wall clock); infinite without any."""
        return self._next

    def follow(self, now: float, anew: bool = False) -> None:
        """Hold and resume hosts as the calendar says. anew: the settings changed."""
        if now < self._next and not anew and not any(calendar.has_new_hosts() for calendar in self.calendars):
            return
        shut: set[str] = set()
        self._next = math.inf
        for calendar in self.calendars:
            names, change = calendar.shut(now)
            shut |= names
            self._next = min(self._next, change)
        for name in shut - self.shut_hosts:
            self.pool.hold(name)
        for name in self.shut_hosts - shut:
            if not any(calendar.is_held(name) for calendar in self.calendars):
                self.pool.resume(name)
        self.shut_hosts = shut
