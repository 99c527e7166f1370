"""Hosts that are left alone for a while by the settings: blackout hours, and budgets of pages a day.

The planner asks `shut[host]` as it asks whether a person holds the host: pages of a host that is shut are parked,
whoever ordered them, and come back when it opens. A promise to a host does not depend on who wants the page; who must
read it changes the settings (SIGHUP).

A budget counts orders, not answers: what was ordered today is what the host may be asked for. Days are those of UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.schema import Blackout, Budget
from crawl.turn.hours import Window, closed_until, next_begin, windows_of
from metadata.hosts import Hosts

DAY = 86_400.0


class Limits:
    """`renew` at the beginning of each plan; costs nothing without [[budgets]] and [[blackouts]]."""

    def __init__(self, hosts: Hosts, budgets: Sequence[Budget], blackouts: Sequence[Blackout]) -> None:
        self.hosts = hosts
        self.shut: NDArray[np.bool_] = np.zeros(len(hosts.waiting), np.bool_)
        """by host number, as long as `hosts.open`"""
        self.until: dict[int, tuple[float, str]] = {}
        """hosts that are shut: (when they open, 'blackout' | 'budget')"""
        self._day = 0
        self._used: dict[int, int] = {}
        """orders of this day, of hosts with a budget"""
        self.follow(budgets, blackouts)

    def follow(self, budgets: Sequence[Budget], blackouts: Sequence[Blackout]) -> None:
        """Other settings: all hosts are looked at again by the next `renew`."""
        self._budgets = [(one.host, one.pages_per_day) for one in budgets]
        self._blackouts = [(one.host, windows_of(one)) for one in blackouts]
        self._seen = 0
        self.met = False
        """hosts with blackouts are new since `closed` was asked"""
        self._most: dict[int, int] = {}
        self._windows: dict[int, list[Window]] = {}
        self._next = -math.inf

    @property
    def on(self) -> bool:
        return bool(self._budgets or self._blackouts or self.until)

    def renew(self, now: float) -> list[int]:
        """The hosts that have opened since the last time; shuts those whose blackout has begun."""
        if not self.on:
            return []
        self._meet()
        if now < self._next:
            return []
        if now // DAY != self._day:
            self._day, self._used = int(now // DAY), {}
        before = set(self.until)
        self.until = dict(self._shut_at(now))
        opened = sorted(before.difference(self.until))
        self.shut[opened] = False
        self.shut[list(self.until)] = True
        self._next = self._change_after(now)
        return opened

    def count(self, host: int, now: float) -> None:
        """An order for a page of this host goes out."""
        most = self._most.get(host)
        if most is None:
            return
        self._used[host] = used = self._used.get(host, 0) + 1
        if used >= most and host not in self.until:
            self.until[host] = ((now // DAY + 1) * DAY, "budget")
            self.shut[host] = True
            self._next = min(self._next, self.until[host][0])

    def used(self, host: int) -> tuple[int, int] | None:
        """(orders of today, its budget); None: it has none."""
        most = self._most.get(host)
        return None if most is None else (self._used.get(host, 0), most)

    def closed(self, now: float) -> tuple[set[int], float]:
        """Hosts in a blackout at this moment, and when that changes (infinite without any)."""
        self.met = False
        closed = {host: closed_until(windows, now) for host, windows in self._windows.items()}
        moments = [until for until in closed.values() if until]
        moments += [next_begin(windows, now) for windows in self._windows.values()]
        return {host for host, until in closed.items() if until}, min(moments, default=math.inf)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """What was used of budgets today."""
        return {"day": self._day, "used": [[host, count] for host, count in self._used.items()]} if self._used else {}

    def load(self, state: Mapping[str, Any]) -> None:
        self._day = state.get("day", 0)
        self._used = dict(state.get("used", ()))

    # -- within --------------------------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Hosts that are new: which tables are theirs."""
        count = len(self.hosts)
        if len(self.shut) < len(self.hosts.open):
            self.shut = np.concatenate([self.shut, np.zeros(len(self.hosts.open) - len(self.shut), np.bool_)])
        for host in range(self._seen, count):
            name = self.hosts.names[host]
            most = next((most for pattern, most in self._budgets if fits(name, pattern)), None)
            if most is not None:
                self._most[host] = most
            windows = [window for pattern, found in self._blackouts if fits(name, pattern) for window in found]
            if windows:
                self._windows[host] = windows
                self.met = True
            if windows or most is not None:
                self._next = -math.inf
        self._seen = count

    def _shut_at(self, now: float) -> dict[int, tuple[float, str]]:
        found = {}
        for host, most in self._most.items():
            if self._used.get(host, 0) >= most:
                found[host] = ((now // DAY + 1) * DAY, "budget")
        for host, windows in self._windows.items():
            until = closed_until(windows, now)
            if until and until > found.get(host, (0.0, ""))[0]:
                found[host] = (until, "blackout")
        return found

    def _change_after(self, now: float) -> float:
        moments = [until for until, _ in self.until.values()]
        moments += [next_begin(windows, now) for windows in self._windows.values()]
        return min(*moments, (now // DAY + 1) * DAY) if moments else (now // DAY + 1) * DAY


def fits(name: str, pattern: str) -> bool:
    """Is a host (with its port, if that is not the scheme's own) the pattern's, or below "*.example.org"?"""
    bare = name if name.startswith("[") else name.partition(":")[0]
    if pattern.startswith("*."):
        return bare.endswith(pattern[1:]) or name.endswith(pattern[1:])
    return pattern in (name, bare)
