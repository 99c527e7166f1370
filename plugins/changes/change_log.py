"""Records the changes that a partition's reads show, each in the commit group of its read.

A change is a row under the next number: on disk with the read that showed it or, after a crash, neither of them, and
nobody reads a row that is not on disk. So no change is lost, and no number is ever another change: after a crash the
numbers go on from the last group that is there, and a copy of the data (a backup that is gone on with) begins an epoch.

The stream is bounded by bytes: beyond that the oldest changes go first. Who reads (`xyro changes`, sinks) asks by a
question; one who comes too late is told which numbers are gone.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata import rows
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import ABSENT, State
from xyro.metadata.visits import GONE, http_date
from xyro.plugins.changes.change_messages import FindChange, ReadChanges
from xyro.plugins.changes.change_rows import ChangeKind, ChangeRow, stale_change, unpack_change
from xyro.plugins.changes.cursors import Position
from xyro.plugins.changes.stored_changes import KEY, StreamState, find_position, read_stretch
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xyro.configs.schema import ChangeSettings
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

DROPPED_AT_ONCE = 4096
"""changes that a commit group drops at most: some 4 ms"""
CHANCE = 20
"""bits of an epoch"""
SLACK = 32
"""a 32nd of the bound is dropped at once, so that few groups have to look for the oldest changes"""


class ChangeLog:
    """The stream of one partition."""

    def __init__(self, frontier: Frontier, settings: ChangeSettings, recording: bool) -> None:
        """recording: False where the stream is only read, as it was stored when it was recorded last."""
        self._frontier = frontier
        self._partition = frontier.partition
        self._bound = settings.bytes
        self.state = StreamState()
        self._dropping = False
        hooks = frontier.hooks
        hooks.recover.append(self._recover)
        hooks.status[KEY] = self.figures
        frontier.commands.handle(ReadChanges, self.read)
        frontier.commands.handle(FindChange, self.find)
        if recording:
            hooks.renew.append(self._begin)
            hooks.settled.append(self.settled)
            hooks.keep(KEY, self._dump)

    # -- state ---------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        self.state = StreamState.load(self._frontier.hooks.stored.get(KEY, {}))

    def _dump(self) -> dict[str, Any]:
        return {**self.state.dump(), "reads": self._frontier.reads}

    def _begin(self) -> None:
        """In the first turn: begin an epoch where the data are a copy, and say so where reads were not recorded."""
        state, store = self.state, self._identity()
        if state.store != store:
            self._measure()
        if not state.lineage or state.store != store:
            epochs = [epoch for epoch, _ in state.lineage]
            state.lineage += ((new_epoch(int(self._frontier.now), max(epochs, default=0)), state.last),)
            state.store = store
        if state.last and state.reads != self._frontier.reads:
            self._append(ChangeRow(self._epoch, ChangeKind.UNRECORDED, self._frontier.now))

    def _measure(self) -> None:
        """Find the ends of the stream as its rows tell: those of a copy, or what was saved of damaged data, may lack
        some. What lies before a hole goes, and its readers are told."""
        state = self.state
        first, last, size, lineage = 1, 0, 0, list(state.lineage)
        for key, value in self._partition.scan(rows.CHANGE.prefix):
            number = rows.CHANGE.split(key)
            if number != last + 1:
                first, size = number, 0
            if not state.lineage and (epoch := unpack_change(value).epoch) not in dict(lineage):
                lineage.append((epoch, number - 1))
            last, size = number, size + _size(value)
        if last < state.last:
            first, last, size = state.last + 1, state.last, 0
        for key, _ in self._partition.scan(rows.CHANGE.prefix):
            if rows.CHANGE.split(key) >= first:
                break
            self._partition.delete(key)
        state.first, state.last, state.size, state.lineage = first if last else 1, last, size, tuple(lineage)

    def _identity(self) -> str:
        """Name the files that the store lies in, so that a copy of them is known: its lock file is made once."""
        try:
            found = (self._partition.directory / "store" / "OWNER").stat()
        except OSError:  # a store without a disk
            return "-"
        return f"{found.st_ino:x}-{found.st_ctime_ns:x}"

    @property
    def _epoch(self) -> int:
        return self.state.lineage[-1][0]

    def figures(self, now: float) -> dict[str, Any]:
        """The ends of the stream, for `xyro status` (change_report.py)."""
        state = self.state
        return {"first": state.first, "last": state.last, "bytes": state.size, "counts": state.counts}

    # -- turns ---------------------------------------------------------------------------------------------------

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Record what the reads of this turn showed."""
        found = [(order, kind) for order in settled if (kind := self._kind(order)) is not None]
        if found:
            pages = np.array([order.page for order, _ in found], np.int64)
            worth = self._frontier.importance_error.relative(pages)
            for (order, kind), importance in zip(found, worth, strict=True):
                self._record(order, kind, importance, now)
        if self.state.size > self._bound or self._dropping:
            self._drop()

    def _kind(self, order: Settled) -> ChangeKind | None:
        """Tell what a settled order showed; None: nothing that has changed."""
        row, report, visit = order.row, order.report, order.visit
        read = row is not None and bool(row.signature or row.size)
        there = read and row is not None and not row.gone_since and not self._partition.flags[order.page] & ABSENT
        if report.error:
            return ChangeKind.GONE if there and report.error in GONE else None
        if visit.state is not State.READ:
            return None
        if report.location and (row is None or row.location != report.location or not there):
            return ChangeKind.MOVED
        if not there:
            return ChangeKind.NEW
        return ChangeKind.CHANGED if visit.changed else None

    def _record(self, order: Settled, kind: ChangeKind, importance: float, now: float) -> None:
        page, report, old = order.page, order.report, order.row
        row = self._partition.row(page)
        if kind is ChangeKind.GONE:
            self._partition.set_flag(page, ABSENT)
        elif self._partition.flags[page] & ABSENT:
            self._partition.clear_flag(page, ABSENT)
        change = ChangeRow(
            self._epoch,
            kind,
            now,
            page,
            report.url,
            old.signature if old is not None else b"",
            b"" if kind is ChangeKind.GONE else order.visit.signature,
            importance,
            row.rate if row is not None else 0.0,
            report.status,
            report.location,
            int(_modified(report.last_modified, now)),
            old.last_read if old is not None else 0,
            row.refused if row is not None else 0,
        )
        self._append(change)

    def _append(self, change: ChangeRow) -> None:
        state = self.state
        state.last += 1
        state.time = max(state.time, change.time)
        if change.time < state.time:  # the clock was set back: readers look times up
            change = ChangeRow(**{**_fields(change), "time": state.time})
        packed = rows.pack(change)
        self._partition.put(rows.CHANGE.key(state.last), packed)
        state.size += _size(packed)
        name = change.kind.name.lower()
        state.counts[name] = state.counts.get(name, 0) + 1

    def _drop(self) -> None:
        """Drop the oldest changes, down to a little less than the bound."""
        state, dropped = self.state, 0
        low = self._bound - self._bound // SLACK
        for key, value in self._partition.scan(rows.CHANGE.prefix, rows.CHANGE.key(state.first)):
            if state.size <= low or dropped == DROPPED_AT_ONCE:
                break
            self._partition.delete(key)
            state.first = rows.CHANGE.split(key) + 1
            state.size -= _size(value)
            dropped += 1
        self._dropping = dropped == DROPPED_AT_ONCE

    # -- questions -----------------------------------------------------------------------------------------------

    def read(self, question: ReadChanges) -> list[Any]:
        """Some changes behind a position; of what is on disk. Empty: the position is of another crawl."""
        lineage = tuple(zip(question.lineage[::2], question.lineage[1::2], strict=True))
        try:
            position = Position(question.number, lineage)
            stale = partial(self._stale, now=question.now)
            return read_stretch(self._partition.scan, self.state, position, question.size, stale).as_list()
        except InputError:
            return []

    def _stale(self, change: ChangeRow, now: float) -> float | None:
        row = self._partition.row(change.page) or RefreshRow()
        return stale_change(change, row, self._partition.states[change.page], now)

    def find(self, question: FindChange) -> list[Any]:
        """(number, lineage) of the position before a time; of what is on disk."""
        return list(find_position(self._partition.store.get, self.state, question.time))


def new_epoch(now: int, last: int) -> int:
    """An epoch above `last` that no other copy begins, though it begins in the same second: seconds since 1970, and
    bits of chance. Below 2**53, as readers of JSON want it, until 2242."""
    return max(now, (last >> CHANCE) + 1) << CHANCE | secrets.randbits(CHANCE)


def _size(packed: bytes) -> int:
    """Bytes that a change counts: its row and its key."""
    return len(packed) + 9


def _fields(row: ChangeRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _modified(header: str, now: float) -> float:
    """Read Last-Modified; 0 where it is no date that can be."""
    date = http_date(header)
    return date if date is not None and 0.0 < date <= now else 0.0
