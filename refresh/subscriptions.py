"""Subscriptions: when pages are refreshed for a notice, and when the notice goes out. One heap for all of them.

    waiting    until `due - lead`      -> PLAN: order the pages                   planned(lead)
    planned    until `due`             -> NOTIFY: tell what changed               sent, failed
    sending    until it is told        failed: again after a back-off             gone to waiting when told or given up

A notice goes out when it is due, with or without every page refreshed: one whose pages were not all read since the
plan began missed its deadline, which is counted and said in the notice itself. The pages are those of awaited_pages.py.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct, field

BASE_LEAD = 60.0
"""seconds before the notice that even one page of a quick host gets"""
SLACK = 1.5
"""a host's reads take so many times their number x delay: retries, other orders, slow answers"""
BACK_OFF = 60.0
"""seconds after the first notice that could not be told; doubles with each further one, up to an hour"""
MOST_BACK_OFF = 3_600.0
ATTEMPTS = 8
FEW = 64


class Act(Enum):
    PLAN = "order the pages"
    NOTIFY = "tell what changed"


class Due(NamedTuple):
    """Something to do now."""

    act: Act
    number: int


class _Subscription(Struct):
    every: float
    due: float
    attempts: int = 0
    lead: float = BASE_LEAD
    planned: bool = False
    stamp: int = 0
    """the heap entry with this stamp is the valid one"""


class NoticeTally(Struct):
    """Since the crawl began."""

    notices: int = 0
    failed: int = 0
    """tries that could not be told"""
    given_up: int = 0
    missed: int = 0
    """notices that were due before all their pages had been refreshed"""
    in_time: int = 0
    """those for which all had been; a notice counts in one of both, once, when it is first tried"""
    lateness: float = 0.0
    """as awaited_pages.py counts it: of crawls of before it counted that"""


class Subscriptions(Struct):
    """`pop` says what is due; each PLAN is answered by `planned`, each NOTIFY by `sent` or `failed`."""

    tally: NoticeTally = field(default_factory=NoticeTally)
    _ones: dict[int, _Subscription] = field(default_factory=dict)
    _heap: list[tuple[float, int, int]] = field(default_factory=list)
    """(when, stamp, number). Bounded: when one is put, those that hold no more are as many as subscriptions, and FEW"""
    _stamps: int = 0

    def __len__(self) -> int:
        return len(self._ones)

    def add(self, number: int, every: float, due: float, lead: float = BASE_LEAD, attempts: int = 0) -> None:
        """A new one, or one that was stored. Overdue ones are planned at once."""
        entry = self._ones[number] = _Subscription(every, due, attempts, min(lead, every / 2))
        self._push(number, entry, due - entry.lead)

    def remove(self, number: int) -> bool:
        """False: there is none."""
        return self._ones.pop(number, None) is not None

    def due(self, number: int) -> float:
        """Return when the subscription's next notice is due."""
        return self._ones[number].due

    def attempts(self, number: int) -> int:
        """Tries of the present notice that failed."""
        return self._ones[number].attempts

    def next_time(self) -> float:
        """Return when something is to be done next; infinite without subscriptions."""
        self._clean()
        return self._heap[0][0] if self._heap else math.inf

    def pop(self, now: float, limit: int = 1_000) -> list[Due]:
        """Take what is due by now, the earliest first."""
        found: list[Due] = []
        while len(found) < limit and self.next_time() <= now:
            _, _, number = heapq.heappop(self._heap)
            entry = self._ones[number]
            entry.stamp = 0
            found.append(Due(Act.NOTIFY if entry.planned else Act.PLAN, number))
        return found

    def foresee(self, number: int, lead: float) -> None:
        """Its pages will need more seconds than it seemed: one whose plan has not begun begins it sooner."""
        entry = self._ones.get(number)
        lead = min(lead, entry.every / 2) if entry is not None else 0.0
        if entry is not None and entry.stamp and not entry.planned and not entry.attempts and lead > entry.lead:
            entry.lead = lead
            self._push(number, entry, entry.due - lead)

    def planned(self, number: int, now: float, lead: float) -> float:
        """Its pages are ordered, and need `lead` seconds. -> when the notice goes out.

        One that was planned late (the process was down) gets its lead after all: it is late, but not empty.
        """
        entry = self._ones.get(number)
        if entry is None:
            return math.inf
        entry.planned, entry.lead = True, min(max(lead, BASE_LEAD), entry.every / 2)
        time = max(entry.due, now + min(entry.lead, BASE_LEAD) if entry.due < now else entry.due)
        self._push(number, entry, time)
        return time

    def sent(self, number: int, now: float, *, missed: bool = False) -> float:
        """It was told. `missed`: not all of its pages had been refreshed. -> when the next one is due."""
        entry = self._ones.get(number)
        if entry is None:
            return math.inf
        self.tally.notices += 1
        self._count_try(entry, missed)
        return self._next(number, entry, now)

    def failed(self, number: int, now: float, *, missed: bool = False) -> float:
        """It could not be told: again after a back-off, at most ATTEMPTS times and not past the next notice, which
        then says what both would have said. -> when it is tried again, or when the next one is due."""
        entry = self._ones.get(number)
        if entry is None:
            return math.inf
        self.tally.failed += 1
        self._count_try(entry, missed)
        entry.attempts += 1
        again = now + min(BACK_OFF * 2.0 ** (entry.attempts - 1), MOST_BACK_OFF)
        if entry.attempts >= ATTEMPTS or again >= entry.due + entry.every - entry.lead:
            self.tally.given_up += 1
            return self._next(number, entry, now)
        self._push(number, entry, again)
        return again

    def _count_try(self, entry: _Subscription, missed: bool) -> None:
        """Count a notice in time or not, at its first try."""
        if not entry.attempts:
            self.tally.missed += missed
            self.tally.in_time += not missed

    def _next(self, number: int, entry: _Subscription, now: float) -> float:
        """The next notice is due a whole number of periods after the last: those that passed meanwhile fall out."""
        periods = max(1, math.floor((now - entry.due) / entry.every) + 1)
        entry.due, entry.attempts, entry.planned = entry.due + periods * entry.every, 0, False
        self._push(number, entry, entry.due - entry.lead)
        return entry.due

    def _push(self, number: int, subscription: _Subscription, time: float) -> None:
        self._stamps += 1
        subscription.stamp = self._stamps
        if len(self._heap) >= 2 * len(self._ones) + FEW:
            self._heap = [entry for entry in self._heap if self._holds(entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (time, subscription.stamp, number))

    def _clean(self) -> None:
        while self._heap and not self._holds(self._heap[0]):
            heapq.heappop(self._heap)

    def _holds(self, entry: tuple[float, int, int]) -> bool:
        subscription = self._ones.get(entry[2])
        return subscription is not None and subscription.stamp == entry[1]

    def dump(self) -> dict[str, Any]:
        """The counters; subscriptions themselves are rows."""
        return {name: getattr(self.tally, name) for name in NoticeTally.__struct_fields__}

    def load(self, state: Mapping[str, Any]) -> None:
        self.tally = NoticeTally(**{name: state[name] for name in NoticeTally.__struct_fields__ if name in state})


def lead(hosts: Iterable[tuple[int, float]]) -> float:
    """Seconds that reading takes: for each host (its pages, seconds between two of its reads); hosts go in parallel."""
    return BASE_LEAD + SLACK * max((pages * delay for pages, delay in hosts), default=0.0)
