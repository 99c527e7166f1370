"""Subscriptions: when pages are refreshed for a notice, and when the notice goes out. One heap for all of them.

    waiting    until `due - lead`      -> PLAN: order the pages                   planned(lead)
    planned    until `due`             -> NOTIFY: tell what changed               sent, failed
    sending    until it is told        failed: again after a back-off             gone to waiting when told or given up

A notice goes out when it is due, with or without every page refreshed: one whose pages were not all read since the
plan began missed its deadline, which is counted and said in the notice itself.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from xyro.refresh.lateness import Late, late

BASE_LEAD = 60.0
"""seconds before the notice that even one page of a quick host gets"""
SLACK = 1.5
"""a host's reads take so many times their number x delay: retries, other orders, slow answers"""
BACK_OFF = 60.0
"""seconds after the first notice that could not be told; doubles with each further one, up to an hour"""
MOST_BACK_OFF = 3_600.0
ATTEMPTS = 8
FEW = 64
MOST_OVERDUE = 100_000
"""pages whose lateness is measured at once"""


class Act(Enum):
    PLAN = "order the pages"
    NOTIFY = "tell what changed"


class Due(NamedTuple):
    """Something to do now."""

    act: Act
    number: int


@dataclass(slots=True)
class _One:
    every: float
    due: float
    attempts: int = 0
    lead: float = BASE_LEAD
    planned: bool = False
    stamp: int = 0
    """the heap entry with this stamp is the valid one"""


@dataclass(slots=True)
class Told:
    """Since the crawl began."""

    notices: int = 0
    failed: int = 0
    """tries that could not be told"""
    given_up: int = 0
    missed: int = 0
    """notices that were due before all their pages had been refreshed"""
    lateness: float = 0.0
    """seconds past notices' dates that pages were refreshed, summed over the pages: what missed deadlines cost"""


@dataclass(slots=True)
class Subscriptions:
    """`pop` says what is due; each PLAN is answered by `planned`, each NOTIFY by `sent` or `failed`."""

    told: Told = field(default_factory=Told)
    overdue: dict[int, float] = field(default_factory=dict)
    """pages (ids) not refreshed for a notice -> when it was due"""
    awaited: dict[int, float] = field(default_factory=dict)
    """pages (ids) ordered for a notice and not read -> when it is due; at most MOST_OVERDUE"""
    _ones: dict[int, _One] = field(default_factory=dict)
    _heap: list[tuple[float, int, int]] = field(default_factory=list)
    """(when, stamp, number). Bounded: when one is put, those that hold no more are as many as subscriptions, and FEW"""
    _stamps: int = 0

    def __len__(self) -> int:
        return len(self._ones)

    def add(self, number: int, every: float, due: float, lead: float = BASE_LEAD, attempts: int = 0) -> None:
        """A new one, or one that was stored. Overdue ones are planned at once."""
        one = self._ones[number] = _One(every, due, attempts, min(lead, every / 2))
        self._push(number, one, due - one.lead)

    def remove(self, number: int) -> bool:
        """False: there is none."""
        return self._ones.pop(number, None) is not None

    def due(self, number: int) -> float:
        """When its next notice is due."""
        return self._ones[number].due

    def attempts(self, number: int) -> int:
        """Tries of the present notice that failed."""
        return self._ones[number].attempts

    def next_time(self) -> float:
        """When something is to be done next; infinite without subscriptions."""
        self._clean()
        return self._heap[0][0] if self._heap else math.inf

    def pop(self, now: float, most: int = 1_000) -> list[Due]:
        """What is due by now, the earliest first."""
        found: list[Due] = []
        while len(found) < most and self.next_time() <= now:
            _, _, number = heapq.heappop(self._heap)
            one = self._ones[number]
            one.stamp = 0
            found.append(Due(Act.NOTIFY if one.planned else Act.PLAN, number))
        return found

    def foresee(self, number: int, lead: float) -> None:
        """Its pages will need more seconds than it seemed: one whose plan has not begun begins it sooner."""
        one = self._ones.get(number)
        lead = min(lead, one.every / 2) if one is not None else 0.0
        if one is not None and one.stamp and not one.planned and not one.attempts and lead > one.lead:
            one.lead = lead
            self._push(number, one, one.due - lead)

    def planned(self, number: int, now: float, lead: float) -> float:
        """Its pages are ordered, and need `lead` seconds. -> when the notice goes out.

        One that was planned late (the process was down) gets its lead after all: it is late, but not empty.
        """
        one = self._ones.get(number)
        if one is None:
            return math.inf
        one.planned, one.lead = True, min(max(lead, BASE_LEAD), one.every / 2)
        at = max(one.due, now + min(one.lead, BASE_LEAD) if one.due < now else one.due)
        self._push(number, one, at)
        return at

    def sent(self, number: int, now: float, missed: Collection[int] = ()) -> float:
        """It was told; the pages `missed` had not been refreshed. -> when the next one is due."""
        one = self._ones.get(number)
        if one is None:
            return math.inf
        self.told.notices += 1
        if not one.attempts:
            self._miss(one, missed)
        return self._next(number, one, now)

    def failed(self, number: int, now: float, missed: Collection[int] = ()) -> float:
        """It could not be told: again after a back-off, at most ATTEMPTS times and not past the next notice, which
        then says what both would have said. -> when it is tried again, or when the next one is due."""
        one = self._ones.get(number)
        if one is None:
            return math.inf
        self.told.failed += 1
        if not one.attempts:
            self._miss(one, missed)
        one.attempts += 1
        again = now + min(BACK_OFF * 2.0 ** (one.attempts - 1), MOST_BACK_OFF)
        if one.attempts >= ATTEMPTS or again >= one.due + one.every - one.lead:
            self.told.given_up += 1
            return self._next(number, one, now)
        self._push(number, one, again)
        return again

    def _miss(self, one: _One, missed: Collection[int]) -> None:
        self.told.missed += len(missed) > 0
        for page in missed:
            self.awaited.pop(page, None)
            if page in self.overdue or len(self.overdue) < MOST_OVERDUE:
                self.overdue[page] = min(one.due, self.overdue.get(page, math.inf))

    def promise(self, pages: Iterable[int], due: float) -> None:
        """Pages are ordered for a notice that is due then."""
        for page in pages:
            if page in self.awaited or len(self.awaited) < MOST_OVERDUE:
                self.awaited[page] = min(due, self.awaited.get(page, math.inf))

    def deadline(self, page: int) -> float:
        """By when a page (id) is to be read for a notice: one that was missed comes first; 0 = none needs it."""
        return self.overdue.get(page) or self.awaited.get(page, 0.0)

    def late(self, now: float) -> Late:
        """Pages whose notice was due before they were read: the cost that runs up now."""
        return late(self.overdue.values(), now)

    def read(self, page: int, now: float) -> None:
        """A page was read: was it overdue?"""
        self.awaited.pop(page, None)
        due = self.overdue.pop(page, None)
        if due is not None:
            self.told.lateness += max(now - due, 0.0)

    def _next(self, number: int, one: _One, now: float) -> float:
        """The next notice is due a whole number of periods after the last: those that passed meanwhile fall out."""
        periods = max(1, math.floor((now - one.due) / one.every) + 1)
        one.due, one.attempts, one.planned = one.due + periods * one.every, 0, False
        self._push(number, one, one.due - one.lead)
        return one.due

    def _push(self, number: int, one: _One, at: float) -> None:
        self._stamps += 1
        one.stamp = self._stamps
        if len(self._heap) >= 2 * len(self._ones) + FEW:
            self._heap = [entry for entry in self._heap if self._holds(entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (at, one.stamp, number))

    def _clean(self) -> None:
        while self._heap and not self._holds(self._heap[0]):
            heapq.heappop(self._heap)

    def _holds(self, entry: tuple[float, int, int]) -> bool:
        one = self._ones.get(entry[2])
        return one is not None and one.stamp == entry[1]

    def dump(self) -> dict[str, Any]:
        """The counters; subscriptions themselves are rows."""
        return {name: getattr(self.told, name) for name in Told.__slots__}

    def load(self, state: Mapping[str, Any]) -> None:
        self.told = Told(**{name: state[name] for name in Told.__slots__ if name in state})


def lead(hosts: Iterable[tuple[int, float]]) -> float:
    """Seconds that reading takes: for each host (its pages, seconds between two of its reads); hosts go in parallel."""
    return BASE_LEAD + SLACK * max((pages * delay for pages, delay in hosts), default=0.0)
