"""Delivers changes to [[sinks]]: each at its own pace, from its own position, which survives whatever is killed.

A sink holds nobody up. It reads the stored stream (change_stream.py) behind its position, delivers some changes, and
stores the position once they were taken: what was on its way when a process was killed is delivered again, the same
numbers with the same content; an orderly end waits for it (`grace` of its target). One that fails is tried again, later
each time, and lags; the stream's bound of bytes bounds what waits for it: beyond it the oldest changes go, and it is
given one record of the gap when it is back. What it refuses `attempts` times goes to a file of its own, with the
reason, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from xyro.configs.webhook_secret import MAKE, PREFIX
from xyro.metadata import rows
from xyro.plugins.changes.change_filter import change_filter
from xyro.plugins.changes.change_messages import StoreSink
from xyro.plugins.changes.change_rows import SinkRow, unpack_sink
from xyro.plugins.changes.change_stream import ChangeSource, ChangeStream
from xyro.plugins.changes.changed_texts import ChangedTexts
from xyro.plugins.changes.cursors import decode_cursor
from xyro.plugins.changes.sink_files import SinkFiles
from xyro.plugins.changes.sink_targets import (
    CommandTarget,
    DeliveryOutcome,
    FileTarget,
    Line,
    PluginTarget,
    SinkTarget,
    WebhookTarget,
    json_lines,
)
from xyro.plugins.changes.stored_changes import OLDEST
from xyro.service.node.guard_factory import guard_of
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME
from xyro.wire.plug_ins import SINKS, plug_in
from xyro.wire.text import LOG_FIELDS, stamp

if TYPE_CHECKING:
    from xyro.configs.schema import SinkTable
    from xyro.frontier.frontier import Frontier
    from xyro.guard import Guard
    from xyro.service.node.services import Services

TICK = 0.25
"""seconds between two looks at a stream that had nothing more"""
STORED = 5.0
"""seconds after which a position is stored though nothing that was read fits the sink's condition"""
SOONEST, LATEST = 1.0, 300.0
"""seconds until a delivery that failed is tried again; doubles each time"""
FOLDER = "sinks"
"""folder of the data directory: changes that a sink refused"""
DEAD_FILES = 4
"""files of them that stay, of `roll` bytes each"""
_log = logging.getLogger("xyro")


class Sinks:
    """The sinks of a crawl, in its home partition."""

    def __init__(self, frontier: Frontier, services: Services, tables: Sequence[SinkTable]) -> None:
        self._frontier = frontier
        self._partition = frontier.partition
        data = frontier.partition.directory.parent
        folder, texts = data / FOLDER, ChangedTexts.of_crawl(frontier.settings, data)
        self.deliveries = [
            SinkDelivery(table, services, texts, SinkFiles(folder, f"{table.name}.dead", table.roll, DEAD_FILES))
            for table in tables
        ]
        frontier.hooks.recover.append(self._recover)
        frontier.hooks.status["sinks"] = self.figures
        frontier.commands.handle(StoreSink, self._store)
        services.endings.append(self._catch_up)

    def _recover(self) -> None:
        for delivery in self.deliveries:
            packed = self._partition.get(rows.SINK.key(delivery.table.name))
            if packed is not None:
                delivery.row = unpack_sink(packed)

    def _store(self, command: StoreSink) -> None:
        self._partition.put(rows.SINK.key(command.name), command.row)

    async def _catch_up(self) -> None:
        """Deliver what is left when a crawl ends, to sinks that take it."""
        await asyncio.gather(*(delivery.catch_up() for delivery in self.deliveries))

    def figures(self, now: float) -> dict[str, Any]:
        """The progress of each sink, for `xyro status` (change_report.py)."""
        return {delivery.table.name: delivery.figures() for delivery in self.deliveries}

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for delivery in self.deliveries:
                group.create_task(delivery.run())


class SinkDelivery:
    """One sink: `row` is what is on disk of it."""

    def __init__(self, table: SinkTable, services: Services, texts: ChangedTexts, dead_letters: SinkFiles) -> None:
        """InputError: its condition cannot be understood."""
        self.table = table
        self.row = SinkRow("")
        self._services = services
        self._clock = services.clock
        self._texts = texts
        self._dead = dead_letters
        self._target: SinkTarget = target_of(table, services)
        self._where = change_filter(table.where)
        self._stream: ChangeStream | None = None
        self._waiting: deque[Line] = deque()
        """read and not delivered: filled by `_batch`, emptied by `_deliver`, bounded by one read of the stream"""
        self._under_way: tuple[Sequence[Line], asyncio.Future[DeliveryOutcome]] | None = None
        """of these changes no position is stored yet"""
        self._begun = 0.0
        """when the delivery under way began (monotonic)"""
        self._stored_at = 0.0
        self.error = ""
        self.failures = 0
        """in a row"""
        self.last = 0.0
        """when it took something last, seconds since 1970"""
        self._ending = self._caught_up = False
        """nothing more will come; it has taken all"""

    def figures(self) -> dict[str, Any]:
        """Plain values; `numbers`: its position in each partition."""
        row = self.row
        partitions = self._services.commands.partitions
        numbers = [position.number for position in decode_cursor(row.cursor, partitions)] if row.cursor else []
        return {
            "numbers": numbers,
            "delivered": row.delivered,
            "gaps": row.gaps,
            "missed": row.missed,
            "dead": row.dead,
            "dead_letters": str(self._dead.path(row.dead_file)) if row.dead else None,
            "failures": self.failures,
            "error": self.error or None,
            "delivers_s": round(self._clock.monotonic() - self._begun, 1) if self._under_way is not None else None,
            "last": stamp(self.last),
        }

    async def run(self) -> None:
        """Until cancelled."""
        stream = self._stream = await self._begin()
        try:
            while True:
                lines = await self._batch(stream)
                if lines:
                    await self._deliver(lines)
                else:
                    await self._pause(stream)
        finally:
            await self._finish()
            await self._target.close()

    async def catch_up(self) -> None:
        """Return once it has taken all that is there, or fails."""
        self._ending = True
        try:
            while not (self._caught_up or self.failures):
                await self._clock.sleep(TICK)
        finally:
            if not self._caught_up:
                why = f" ({self.error})" if self.error else ""
                text = f"it has not taken all changes at the end of this run{why}: the next one goes on with them"
                self._log(logging.WARNING, "sink-behind", text, error=self.error or None)

    async def _finish(self) -> None:
        """Store the position behind a delivery under way, if it succeeds soon."""
        if self._under_way is None:
            return
        lines, delivery = self._under_way
        await asyncio.wait([delivery], timeout=self._target.grace)
        if not delivery.done() or delivery.cancelled() or delivery.exception() is not None:
            delivery.cancel()
            await asyncio.gather(delivery, return_exceptions=True)
            text = f"the end did not wait for {len(lines)} changes; they come again"
            self._log(logging.WARNING, "sink-cut-short", text, changes=len(lines))
            return
        outcome = delivery.result()
        if outcome.error:
            self.error, self.failures = outcome.error, self.failures + 1
        if count := _count_taken(outcome, lines):
            await self._store(**self._fields_behind(lines[:count]))

    async def _begin(self) -> ChangeStream:
        """Take up its position; a new sink begins with the oldest change that is stored."""
        self._waiting.clear()  # they lie behind it
        await self._open()
        source = ChangeSource.of_commands(self._services.commands, self._services.clock, self._texts)
        try:
            if self.row.cursor:
                stream = ChangeStream(source, await source.position(self.row.cursor), self._where)
                await stream.read(1)
                return ChangeStream(source, await source.position(self.row.cursor), self._where)
        except InputError as error:
            _log.error("sink %s: %s; it begins anew with the oldest change", self.table.name, error)
        oldest = [await source.find(partition, OLDEST) for partition in range(source.partitions)]
        stream = ChangeStream(source, oldest, self._where)
        await self._store(cursor=stream.cursor, **self._target.place())
        return stream

    async def _open(self) -> None:
        """Open its files. A disk that fails is waited for."""
        while True:
            try:
                await self._target.begin(self.row if self.row.cursor else None)
                if self.row.dead:
                    await asyncio.to_thread(self._dead.begin, self.row.dead_file, self.row.dead_length)
                return
            except OSError as error:
                await self._failed(f"{error.filename}: {error.strerror}", 0.0)

    # -- one batch -----------------------------------------------------------------------------------------------

    async def _batch(self, stream: ChangeStream) -> list[Line]:
        """Gather a batch: as many as go together, or those that came in within `wait` seconds of the first."""
        waiting, table = self._waiting, self.table
        if not waiting:
            waiting += await stream.read()
        deadline = self._clock.monotonic() + table.wait
        while (
            waiting
            and not self._ending
            and len(waiting) < table.batch
            and (left := deadline - self._clock.monotonic()) > 0.0
        ):
            more = await stream.read()
            waiting += more
            if not more:
                await self._clock.sleep(min(TICK, left))
        return [waiting.popleft() for _ in range(min(table.batch, len(waiting)))]

    async def _pause(self, stream: ChangeStream) -> None:
        """Nothing fits now: remember how far the stream was read, now and then."""
        now = self._clock.monotonic()
        if stream.cursor != self.row.cursor and (self._ending or now - self._stored_at >= STORED):
            await self._store(cursor=stream.cursor)
        if not stream.advanced:
            self._caught_up = self._ending
            await self._clock.sleep(TICK)

    async def _deliver(self, lines: Sequence[Line]) -> None:
        """Until they are taken, or were refused too often."""
        refusals = 0
        while lines:
            delivery = asyncio.ensure_future(self._target.deliver(lines))
            self._under_way, self._begun = (lines, delivery), self._clock.monotonic()
            outcome = await asyncio.shield(delivery)
            if count := _count_taken(outcome, lines):
                await self._note(lines[:count])
                lines, refusals = lines[count:], 0
            self._under_way = None
            if not outcome.error:
                continue
            refusals += outcome.refused > 0
            if refusals < self.table.attempts:
                await self._failed(outcome.error, outcome.again)
            else:
                await self._bury(lines[: outcome.refused], outcome.error)
                lines, refusals = lines[outcome.refused :], 0

    async def _note(self, lines: Sequence[Line]) -> None:
        """Store that these were taken."""
        if self.failures:
            self._log(logging.INFO, "sink-back", "takes changes again")
        self.error, self.failures, self.last = "", 0, self._clock.time()
        await self._store(**self._fields_behind(lines))

    def _fields_behind(self, lines: Sequence[Line]) -> dict[str, Any]:
        """Fields of the row behind these, which were taken."""
        gaps = [line["count"] for line in lines if line["change"] == "gap"]
        return {
            "cursor": lines[-1]["cursor"],
            "delivered": self.row.delivered + len(lines) - len(gaps),
            "gaps": self.row.gaps + len(gaps),
            "missed": self.row.missed + sum(gaps),
            **self._target.place(),
        }

    async def _failed(self, error: str, again: float) -> None:
        """Wait before the next try."""
        self.failures += 1
        if self.failures == 1:
            self._log(logging.WARNING, "sink-failed", f"{error}; tried again until it works", error=error)
        self.error = error
        await self._clock.sleep(max(again, min(LATEST, SOONEST * 2.0 ** min(self.failures - 1, 20))))

    async def _bury(self, lines: Sequence[Line], error: str) -> None:
        """Keep what was refused for good, with the reason, in a file of dead letters."""
        text = f"{len(lines)} changes refused ({error}): see {self._dead.directory}"
        self._log(logging.ERROR, "sink-refused", text, changes=len(lines), error=error)
        letters = [{**line, "error": error} for line in lines]
        while True:
            try:
                if not self.row.dead:
                    await asyncio.to_thread(self._dead.begin_anew)
                await asyncio.to_thread(self._dead.write, json_lines(letters))
                break
            except OSError as problem:
                await self._failed(f"{problem.filename}: {problem.strerror}", 0.0)
        self.error, self.failures = error, 0
        await self._store(
            cursor=lines[-1]["cursor"],
            dead=self.row.dead + len(lines),
            dead_file=self._dead.file,
            dead_length=self._dead.length,
        )

    def _log(self, level: int, event: str, text: str, **fields: Any) -> None:
        extra = {LOG_FIELDS: {"event": event, "sink": self.table.name, **fields}}
        _log.log(level, "sink %s: %s", self.table.name, text, extra=extra)

    async def _store(self, **fields: Any) -> None:
        """Store its row; returns when that is on disk."""
        row = msgspec.structs.replace(self.row, **fields)
        await self._services.commands.send(HOME, partial(StoreSink, name=self.table.name, row=rows.pack(row)))
        self.row = row
        self._stored_at = self._clock.monotonic()


def _count_taken(outcome: DeliveryOutcome, lines: Sequence[Line]) -> int:
    return outcome.taken if outcome.error else len(lines)


def check_sinks(tables: Sequence[SinkTable], guard: Guard) -> None:
    """InputError: a sink cannot be used here, or its condition cannot be understood. Nothing is made or contacted."""
    for table in tables:
        try:
            change_filter(table.where)
            if table.plugin:
                plug_in(SINKS, table.plugin)
        except InputError as error:
            raise InputError(f"[[sinks]] {table.name}: {error}") from error
        if table.url and not table.url.startswith("http"):
            from xyro.plugins.changes.broker_targets import broker_target

            broker_target(table, guard)


def target_of(table: SinkTable, services: Services) -> SinkTarget:
    """The target that a table of [[sinks]] names. InputError: it cannot be used here."""
    if table.path:
        return FileTarget(SinkFiles(Path(table.path).absolute(), table.name, table.roll))
    if table.url.startswith("http"):
        if table.secret and not table.secret.startswith(PREFIX):
            _log.warning(
                "sink %s: its secret is plain words, whose characters are the key; libraries of Standard Webhooks take "
                "it for base64 and would refuse each delivery: give them, and the sink, whsec_ and base64 (%s)",
                table.name,
                MAKE,
            )
        from xyro.plugins.changes.webhook_client import WebhookClient

        guard_of(services.settings.fetch).check_receiver(table.url, f"[[sinks]] {table.name}: url")
        return WebhookTarget(table.name, table.url, table.secret, WebhookClient(services), services.clock.time)
    if table.url:
        from xyro.plugins.changes.broker_targets import broker_target

        return broker_target(table, guard_of(services.settings.fetch))
    if table.command:
        return CommandTarget(table.command)
    return PluginTarget(plug_in(SINKS, table.plugin))
