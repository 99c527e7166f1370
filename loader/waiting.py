"""Loads that wait for parts: a state table with its rules.

A load (any hashable key; the intake uses page ids) is held with the URLs of the parts it misses and a deadline.

- WAITING  it misses at least one part. A part may be missed by many loads and be told of in any order.
- READY    all its parts were told of: read it again. If that shows more needs, it is held again, with its old deadline.
- ENDING   a part is lost or the time is up: read it for the last time with what there is. Nothing leads back from here.

READY and ENDING loads stand in a queue, in the order in which they got there, until they are taken; then they are gone
from the table. A load that is READY when its time is up is ENDING: so the deadline bounds also those that find new
needs at every reading (a DTD that names another one, without end). ARRIVED and LOST concern only loads that miss the
part.

                ARRIVED, others missing   ARRIVED, the last   LOST      LATE
    WAITING     WAITING                   READY               ENDING    ENDING
    READY       -                         -                   -         ENDING
    ENDING      -                         -                   -         ENDING
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from msgspec import Struct


class WaitState(enum.Enum):
    WAITING = "waiting"
    READY = "ready"
    ENDING = "ending"


class Event(enum.Enum):
    SOME = "a part arrived, others are missing"
    LAST = "the last part arrived"
    LOST = "a part cannot be had"
    LATE = "the deadline passed"


TABLE: dict[tuple[WaitState, Event], WaitState] = {
    (WaitState.WAITING, Event.SOME): WaitState.WAITING,
    (WaitState.WAITING, Event.LAST): WaitState.READY,
    (WaitState.WAITING, Event.LOST): WaitState.ENDING,
    (WaitState.WAITING, Event.LATE): WaitState.ENDING,
    (WaitState.READY, Event.LATE): WaitState.ENDING,
    (WaitState.ENDING, Event.LATE): WaitState.ENDING,
}

Key = TypeVar("Key", bound=Hashable)


class _Load(Struct):
    needs: tuple[str, ...]
    missing: int
    """how many of its needs it was not told of"""
    deadline: float
    state: WaitState = WaitState.WAITING


class Waiting(Generic[Key]):
    """The table of loads. Filled by `hold`, emptied by `take`.

    Invariants: a part is in the index exactly while a WAITING load misses it; a load is in the queue exactly while it
    is READY or ENDING. Cost of an event: the loads it concerns. Memory: about 450 bytes a load with one part.
    """

    def __init__(self) -> None:
        self._loads: dict[Key, _Load] = {}
        self._index: dict[str, dict[Key, None]] = {}
        self.missed = self._index.keys()
        """parts that loads miss, as they are now"""
        self._queue: dict[Key, None] = {}
        self._deadlines: list[tuple[float, int, Key]] = []
        self._sequence = 0

    def __len__(self) -> int:
        """Loads held, in any state."""
        return len(self._loads)

    def __contains__(self, key: object) -> bool:
        return key in self._loads

    @property
    def ready(self) -> int:
        """Loads that `take` would give now."""
        return len(self._queue)

    def wanted(self) -> Iterator[tuple[str, Key]]:
        """The parts that are missed, each with one load that misses it."""
        for url, keys in self._index.items():
            yield url, next(iter(keys))

    def needs(self, key: Key) -> tuple[str, ...]:
        """Return the parts that a load was held for, those that came since included."""
        return self._loads[key].needs

    def hold(self, key: Key, needs: Iterable[str], deadline: float) -> None:
        """Hold a load until its needs (at least one) were told of, at the longest until `deadline` (seconds).

        Held already: the new needs and deadline replace the old ones.
        """
        self.drop(key)
        urls = tuple(dict.fromkeys(map(sys.intern, needs)))  # thousands may name the same part
        self._loads[key] = _Load(urls, len(urls), deadline)
        for url in urls:
            self._index.setdefault(url, {})[key] = None
        self._sequence += 1
        heappush(self._deadlines, (deadline, self._sequence, key))
        if len(self._deadlines) > 2 * len(self._loads) + 64:
            self._forget_stale_deadlines()

    def drop(self, key: Key) -> None:
        """Forget a load, if it is held."""
        load = self._loads.pop(key, None)
        if load is not None:
            self._unindex(key, load)
            self._queue.pop(key, None)

    def arrived(self, url: str) -> None:
        """The part is there."""
        for key in self._index.pop(url, {}):
            load = self._loads[key]
            load.missing -= 1
            self._happen(key, load, Event.SOME if load.missing else Event.LAST)

    def lost(self, url: str) -> None:
        """The part cannot be had."""
        for key in list(self._index.get(url, ())):
            self._happen(key, self._loads[key], Event.LOST)

    def expire(self, now: float) -> None:
        """Loads with a deadline <= `now` are late."""
        while self._deadlines and self._deadlines[0][0] <= now:
            self.hurry(heappop(self._deadlines)[2], now)

    def hurry(self, key: Key, now: float = float("inf")) -> None:
        """This load is late (if its deadline is <= `now`): the caller can hold it no longer."""
        load = self._loads.get(key)
        if load is not None and load.deadline <= now:
            self._happen(key, load, Event.LATE)

    def take(self) -> tuple[Key, WaitState] | None:
        """The next READY or ENDING load, which is then no longer held; None where there is none."""
        if not self._queue:
            return None
        key = next(iter(self._queue))
        del self._queue[key]
        return key, self._loads.pop(key).state

    def _happen(self, key: Key, load: _Load, event: Event) -> None:
        before, load.state = load.state, TABLE[load.state, event]
        if before is WaitState.WAITING is not load.state:
            self._unindex(key, load)
            self._queue[key] = None

    def _unindex(self, key: Key, load: _Load) -> None:
        for url in load.needs if load.missing else ():
            wanting = self._index.get(url)
            if wanting is not None:
                wanting.pop(key, None)
                if not wanting:
                    del self._index[url]
        load.missing = 0

    def _forget_stale_deadlines(self) -> None:
        self._deadlines = [row for row in self._deadlines if row[2] in self._loads and self._is_of(row)]
        heapify(self._deadlines)

    def _is_of(self, row: tuple[float, int, Key]) -> bool:
        return self._loads[row[2]].deadline == row[0]
