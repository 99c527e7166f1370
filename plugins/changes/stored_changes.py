"""The stream of changes as one partition has it stored: its ends, and stretches of it behind a position.

Its numbers have no holes: what is stored is `first` ... `last`, each with the epoch that it was made in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xyro.metadata import rows
from xyro.metadata.store import Pairs
from xyro.plugins.changes.change_rows import ChangeRow, unpack_change
from xyro.plugins.changes.cursors import UNREAD, Lineage, Position, lineage_at, meeting_point

KEY = "changes"
"""of the state that is kept with the frontier's (hooks.stored)"""
OLDEST = -math.inf
"""the time of the oldest change that is stored"""
Scan = Callable[[bytes, bytes], Pairs]
Get = Callable[[bytes], bytes | None]
Stale = Callable[[ChangeRow], float | None]
"""what change_rows.stale_change says of a change now"""


@dataclass(slots=True)
class StreamState:
    """The ends of the stream, stored with each commit group."""

    first: int = 1
    """the oldest change that is stored; last + 1 where there is none"""
    last: int = 0
    size: int = 0
    """bytes of the stored changes"""
    lineage: Lineage = ()
    time: float = 0.0
    """of the last change"""
    reads: int = 0
    """reads of the partition when it was stored: more of them later were made without being recorded"""
    store: str = ""
    """identity of the store's files: a copy has another"""
    counts: dict[str, int] = field(default_factory=dict)
    """changes that were ever recorded, by kind"""

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> StreamState:
        state = cls(**{name: stored[name] for name in stored if name in cls.__slots__})
        state.lineage = tuple((epoch, base) for epoch, base in state.lineage)
        return state

    def dump(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def epoch_of(self, number: int) -> int:
        """The epoch of a change."""
        return (lineage_at(self.lineage, number) or self.lineage[:1])[-1][0]  # of damaged data the first is lost


@dataclass(frozen=True, slots=True)
class ChangeStretch:
    """Some changes behind a position, in order."""

    gap: tuple[int, int, int, int] | None
    """first and last number that the stream has no more, though the reader has not seen them, and their epochs"""
    rows: list[tuple[int, bytes, float | None]]
    """(number, packed ChangeRow, change_rows.stale_change)"""
    lineage: Lineage
    last: int
    """of the stream"""
    number: int
    """up to here it goes"""

    @classmethod
    def of_list(cls, fields: list[Any]) -> ChangeStretch:
        """As it comes in an answer."""
        gap, found, lineage, last, number = fields
        pairs = tuple((epoch, base) for epoch, base in lineage)
        return cls(tuple(gap) if gap else None, [(n, row, stale) for n, row, stale in found], pairs, last, number)

    def as_list(self) -> list[Any]:
        return [self.gap, self.rows, self.lineage, self.last, self.number]

    def position(self, number: int) -> Position:
        """The position of a reader who has seen this number."""
        return Position(number, lineage_at(self.lineage, number))


def read_stretch(scan: Scan, state: StreamState, position: Position, size: int, stale: Stale) -> ChangeStretch:
    """Read at most `size` bytes of changes behind a position, at least one where there is one.

    InputError: the position is of another crawl.
    """
    number = meeting_point(position, state.lineage)
    gap = None
    if number + 1 < state.first:
        gap = (number + 1, state.first - 1, state.epoch_of(number + 1), state.epoch_of(state.first - 1))
        number = state.first - 1
    found: list[tuple[int, bytes, float | None]] = []
    if number < state.last:
        for key, value in scan(rows.CHANGE.prefix, rows.CHANGE.key(number + 1)):
            found.append((rows.CHANGE.split(key), value, stale(unpack_change(value))))
            size -= len(value)
            if size <= 0:
                break
    return ChangeStretch(gap, found, state.lineage, state.last, found[-1][0] if found else number)


def find_position(get: Get, state: StreamState, time: float) -> Position:
    """The position before the first change of a time or later: times rise with the numbers. Where changes that were
    dropped may be of that time or later, it is before them; OLDEST: before those that are stored."""
    low, high = state.first, state.last + 1
    while low < high:
        middle = (low + high) // 2
        packed = get(rows.CHANGE.key(middle))
        if packed is None or unpack_change(packed).time >= time:  # None: it is on its way to disk
            high = middle
        else:
            low = middle + 1
    if low == state.first > 1 and OLDEST < time <= state.time:
        return UNREAD
    return Position(low - 1, lineage_at(state.lineage, low - 1))
