"""Follows the changes of all partitions: one reader, its position, and the lines that it is given.

The order is that of each partition; between partitions there is none. Each line carries the cursor of the whole stream
behind it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.plugins.changes.change_messages import FindChange, ReadChanges
from xyro.plugins.changes.change_rows import ChangeKind, ChangeRow, change_line, gap_line, stale_change, unpack_change
from xyro.plugins.changes.changed_texts import ChangedTexts
from xyro.plugins.changes.cursors import UNREAD, Position, decode_cursor, encode_cursor
from xyro.plugins.changes.stored_changes import KEY, ChangeStretch, StreamState, find_position, read_stretch
from xyro.wire.errors import InputError, MachineError
from xyro.wire.moments import moment_of

if TYPE_CHECKING:
    from xyro.plugins.changes.change_filter import Condition
    from xyro.service.node.command_sender import CommandSender
    from xyro.service.views.views import View, Views
    from xyro.wire.clock import Clock

SIZE = 1 << 18
"""bytes of changes that are read at once of a partition: some 5 ms"""
FOREIGN = "the cursor is of another crawl, or of before its changes were recorded anew: give a time"
Line = dict[str, Any]
Read = Callable[[int, Position, int], Awaitable[ChangeStretch]]
"""(partition, position, bytes) -> what comes next there"""
Find = Callable[[int, float], Awaitable[Position]]
"""(partition, time) -> the position before it"""
Changes = Sequence[tuple[Line, ChangeRow]]
Fill = Callable[[Changes], Awaitable[None]]


async def _in_time(partition: int, asked: Awaitable[Any], patience: float | None) -> Any:
    """The answer of a partition. MachineError: it took longer than `patience` seconds (None: it may)."""
    try:
        async with asyncio.timeout(patience):
            return await asked
    except TimeoutError:
        late = f"partition {partition} did not answer in {patience:g} s"
        raise MachineError(f"{late}; `xyro status` names a node that is away") from None


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """The stored changes of all partitions, wherever they are."""

    partitions: int
    read: Read
    find: Find
    fill: Fill | None = None
    """adds what changed of the texts; None: nobody asks"""

    @classmethod
    def of_commands(
        cls, commands: CommandSender, clock: Clock, texts: ChangedTexts, patience: float | None = None
    ) -> ChangeSource:
        """The changes of a running crawl, which is asked by messages."""

        async def fill(changes: Changes) -> None:
            if changes:
                await asyncio.to_thread(texts.fill, changes)

        async def read(partition: int, position: Position, size: int) -> ChangeStretch:
            plain = tuple(number for pair in position.lineage for number in pair)
            ask = partial(ReadChanges, number=position.number, lineage=plain, size=size, now=clock.time())
            fields = await _in_time(partition, commands.send(partition, ask), patience)
            if not fields:
                raise InputError(FOREIGN)
            return ChangeStretch.of_list(fields)

        async def find(partition: int, time: float) -> Position:
            asked = commands.send(partition, partial(FindChange, time=time))
            number, lineage = await _in_time(partition, asked, patience)
            return Position(number, tuple((epoch, base) for epoch, base in lineage))

        return cls(commands.partitions, read, find, fill)

    @classmethod
    def of_views(
        cls, views: Sequence[View], states: Sequence[StreamState], texts: ChangedTexts | None = None
    ) -> ChangeSource:
        """The changes of a crawl that stands still: of each partition, with the ends of its stream."""

        async def fill(changes: Changes) -> None:
            if texts is not None:
                texts.fill(changes)

        def stale(view: View, change: ChangeRow) -> float | None:
            page = change.page
            return stale_change(change, view.row(page), int(view.state[page]), view.now)

        async def read(partition: int, position: Position, size: int) -> ChangeStretch:
            view = views[partition]
            return read_stretch(view.store.scan, states[partition], position, size, partial(stale, view))

        async def find(partition: int, time: float) -> Position:
            return find_position(views[partition].store.get, states[partition], time)

        return cls(len(views), read, find, fill)

    @classmethod
    def of_stopped(cls, views: Views) -> ChangeSource | None:
        """The changes of a stopped crawl; None where it records none."""
        stored = [view.frontier.hooks.stored.get(KEY) for view in views.views]
        texts = ChangedTexts.of_crawl(views.settings, views.views[0].partition.directory.parent)
        states = [StreamState.load(state or {}) for state in stored]
        return cls.of_views(views.views, states, texts) if all(stored) else None

    async def position(self, since: str, now: float = 0.0) -> list[Position]:
        """The positions that `--since` names. InputError: it is neither empty, `now`, a time nor a cursor. now: seconds
        since 1970, for times such as `yesterday`."""
        time = math.inf if since == "now" else moment_of(since, now)
        if time is not None:
            return [await self.find(partition, time) for partition in range(self.partitions)]
        return decode_cursor(since, self.partitions) if since else [UNREAD] * self.partitions


async def read_all(source: ChangeSource, since: str, where: Condition | None, now: float) -> list[Line]:
    """All lines that are stored behind a cursor or a time. InputError: as `ChangeSource.position`."""
    stream = ChangeStream(source, await source.position(since, now), where)
    lines = await stream.read()
    while stream.advanced:
        lines += await stream.read()
    return lines


class ChangeStream:
    """A reader and its position. `read` until it brings nothing: then there is nothing more yet."""

    def __init__(self, source: ChangeSource, positions: Sequence[Position], where: Condition | None = None) -> None:
        self.source = source
        self.positions = list(positions)
        self.last = [0] * len(self.positions)
        """number of the newest change of each partition, as it was told last"""
        self.advanced = False
        """the last `read` has moved the position"""
        self._where = where

    @property
    def cursor(self) -> str:
        """Of everything that was read."""
        return encode_cursor(self.positions)

    @property
    def behind(self) -> int:
        """Changes that were not read yet, as far as the partitions told."""
        pairs = zip(self.last, self.positions, strict=True)
        return sum(max(0, last - max(0, position.number)) for last, position in pairs)

    async def read(self, size: int = SIZE) -> list[Line]:
        """The next lines of each partition that fit; at most `size` bytes of changes are read of each. Empty: there is
        nothing more (then `advanced` is False), or nothing of it fits."""
        lines: list[Line] = []
        self.advanced = False
        for partition in range(len(self.positions)):
            before = self.positions[partition].number
            stretch = await self.source.read(partition, self.positions[partition], size)
            self.last[partition] = stretch.last
            lines += await self._lines(partition, stretch)
            self.positions[partition] = stretch.position(stretch.number)
            self.advanced = self.advanced or stretch.number != before
        return lines

    async def _lines(self, partition: int, stretch: ChangeStretch) -> list[Line]:
        where, fill = self._where, self.source.fill
        changes = [
            (change_line(partition, number, row := unpack_change(packed), "", stale), row)
            for number, packed, stale in stretch.rows
        ]
        first = where is not None and "text_changed" in where.fields
        if fill is not None and first:
            await fill(changes)
        if where is not None:
            changes = [(line, row) for line, row in changes if row.kind is ChangeKind.UNRECORDED or where(line)]
        if fill is not None and not first:
            await fill(changes)
        lines: list[Line] = []
        if stretch.gap is not None:
            left, last, epoch, last_epoch = stretch.gap
            gap = {"first_epoch": epoch, "first": left, "last_epoch": last_epoch, "last": last}
            lines.append(gap_line(partition, gap, self._cursor(partition, stretch, last)))
        for line, _ in changes:
            line["cursor"] = self._cursor(partition, stretch, line["number"])
            lines.append(line)
        return lines

    def _cursor(self, partition: int, stretch: ChangeStretch, number: int) -> str:
        self.positions[partition] = stretch.position(number)
        return encode_cursor(self.positions)
