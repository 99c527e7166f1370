"""Indexes what readers kept, and has it on disk before the commit group that tells of the read.

    a reader wrote a record    -> `_answered` notes it (the report is not delivered yet)
    a turn settles the order   -> `_settled` adds importance and change rate
    its commit group is due    -> `_commit`, in the writer's thread: fsync, index; then the store writes the group

What fails in `_commit` for want of room is noted, told by `status`, and tried again with the next group; the group goes
on to its own disk. `run` tries the disk every LOOK seconds, so that one that takes nothing is told though no read says
so. What could not be stored by the end is told by the closing report.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import os
import sqlite3
import tempfile
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import replace

from xyro.archive_disk import ArchiveDisk, claim
from xyro.contents_index import IndexHandle, open_index, totals
from xyro.metadata.room import reserve
from xyro.metadata.rows import RefreshRow
from xyro.metadata.visits import FORBIDDEN
from xyro.page_archive import PageContents
from xyro.plugins.contents.page_standing import PageStanding, write_standings
from xyro.plugins.contents.retention import (
    Retention,
    count_dropped,
    drop_dangling,
    drop_unindexed,
    free_room,
    give_reserve,
    hold_reserve,
)
from xyro.plugins.contents.text_versions import TextVersions
from xyro.service.node.reader_factory import archive_of
from xyro.warc_files import WarcFiles
from xyro.warc_mending import mend
from xyro.wire.errors import MachineError, XyroError
from xyro.wire.ids import HOME, PageId, join, owner_of
from xyro.wire.sizes import sized
from xyro.wire.text import LOG_FIELDS
from xyro.wire.uses import signals

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.messages import PageReport

LOOK = 10.0
"""seconds between two looks whether the disk takes something"""
SWEEP = 6
"""looks between two at how much is kept"""
PROBE = 1 << 20
"""bytes for which a disk that takes something has room"""
GRACE = 600.0
"""seconds for which the answers in a file that is closed may be on their way to the node that notes them"""
BACKLOG = 20_000
"""notes that wait, for their order or for room on the disk; then the oldest go: their records stay, unindexed"""
_log = logging.getLogger("xyro")


@dataclass(slots=True)
class ReadNote:
    """One answer of which something was kept."""

    page: PageId
    url: str
    started: float
    status: int
    mime: str
    contents: PageContents
    refused: int
    """uses that its robots.txt refuses (wire/uses.py)"""
    importance: float = 0.0
    rate: float = 0.0
    same: bool = False
    """its bytes are those of the read before"""
    described: bool = False
    """its metadata record is written"""


@dataclass(slots=True)
class CommitNotes:
    """The notes of one partition on their way to the index."""

    ready: list[ReadNote] = field(default_factory=list)
    under_way: Sequence[ReadNote] = ()
    """those of the commit that is being written"""
    standings: dict[PageId, PageStanding] = field(default_factory=dict)
    """of pages that were read since, or were not read because robots.txt refuses it"""
    failure: str = ""
    lost: int = 0


class ContentsWriter:
    """Of one partition. The node calls what is registered here."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        settings = services.settings
        data = frontier.partition.directory.parent
        options = archive_of(settings, data)
        assert options is not None
        self._frontier = frontier
        self._number = frontier.partition.number
        self._directory = Path(options.directory)
        claim(self._directory, f"{frontier.partition.facts['seed']:016x}")
        self._disk = ArchiveDisk(self._directory)
        self._bytes = options.bytes_signature
        self._versions = settings.store.versions, settings.store.version_days
        self._waiting: dict[tuple[PageId, int], ReadNote] = {}
        self._lock = threading.Lock()
        self._failure, self._failed_at = "", 0.0
        """of the disk, as a read or `_look` met it, and when that was"""
        self._services = services
        self._unstored = services.unstored
        self._clock = services.clock
        self._first = not services.barriers
        """of the partitions of this node: it mends, and bounds, what all of them keep"""
        if self._first:
            self._mend(wait=True)
        self._index = IndexHandle(self._directory, write=True)
        failure = ""
        try:
            index = self._index.open()
            if self._first:
                drop_unindexed(self._directory, index)
        except OSError as error:  # no room: `_look` says so
            _log.warning("contents: %s", self._words(error))
        except (sqlite3.Error, MachineError) as error:
            failure = str(error)
            _log.error("contents: not stored: %s", failure)
        self._notes = CommitNotes(failure=failure)
        self._metadata = WarcFiles(
            self._directory, options.crawl, f"{options.node}.m{self._number}", options.file_bytes,
            {"software": options.user_agent, "description": "what the crawl knew of pages as it read them"},
        ) if settings.keep.warc else None  # fmt: skip
        self._limit = settings.keep.bytes if self._first else 0
        self._surplus, self._swept = 0, False
        services.answered.append(self._answered)
        services.barriers.append(self._commit)
        services.closers.append(self._close)
        services.unindexed.append(self._files_waiting)
        frontier.hooks.settled.append(self._settled)
        if self._number == HOME:
            frontier.hooks.status["contents"] = self._figures

    async def run(self) -> None:
        """Try again what the disk had no room for; once for the whole crawl, watch it, and hold the contents to their
        bound."""
        for number in itertools.count(1):
            await self._clock.sleep(LOOK)
            if self._first:
                await asyncio.to_thread(self._look)
            if self._notes.failure:
                await asyncio.to_thread(self._commit)
            if self._first and number % SWEEP == 0:
                waiting = set[str]().union(*(files() for files in self._services.unindexed))
                await asyncio.to_thread(self._drop_unindexed, waiting, self._clock.time() - GRACE)
            if self._limit and (number % SWEEP == 0 or self._failure):
                await asyncio.to_thread(self._sweep)

    def _look(self) -> None:
        """See whether the disk takes something; where it does again, finish the files that it had no room for."""
        try:
            self._disk.check()
            with tempfile.TemporaryFile(dir=self._directory) as file:
                reserve(file.fileno(), PROBE)
        except OSError as error:
            self._fail(self._words(error))
        else:
            if self._failure and self._clock.monotonic() - self._failed_at >= LOOK:
                self._failure = ""
                self._mend(wait=False)
                _log.warning("contents: stored again", extra={LOG_FIELDS: {"event": "contents-back"}})
            if not self._failure:
                self._hold_reserve()

    def _hold_reserve(self) -> None:
        with contextlib.suppress(OSError):  # `_look` tells of a disk without room
            hold_reserve(self._directory)

    def _words(self, error: Exception) -> str:
        """Say what failed, for people; the place first."""
        if isinstance(error, MachineError):
            return str(error)
        return f"{self._directory}: {(isinstance(error, OSError) and error.strerror) or error}"

    def _fail(self, failure: str) -> None:
        self._failed_at = self._clock.monotonic()
        if failure != self._failure:
            self._failure = failure
            fields = {"event": "contents-failed", "error": failure}
            _log.warning("contents: not stored: %s", failure, extra={LOG_FIELDS: fields})

    def _mend(self, *, wait: bool) -> None:
        try:
            for line in mend(self._directory, wait=wait):
                _log.warning("%s", line)
        except OSError as error:
            _log.warning("contents: %s: the next start finishes files that are left", self._words(error))

    def _files_waiting(self) -> set[str]:
        """Name the files of which records wait to be indexed."""
        notes = [*self._waiting.values(), *self._notes.under_way, *self._notes.ready]
        return {note.contents.record.file for note in notes if note.contents.record is not None}

    def _drop_unindexed(self, waiting: Collection[str] = (), before: float = math.inf) -> None:
        try:
            with contextlib.closing(open_index(self._directory)) as index:
                drop_unindexed(self._directory, index, waiting, before)
        except (OSError, sqlite3.Error, XyroError) as error:
            _log.debug("contents: %s: tried again", error)

    def _sweep(self) -> None:
        freed = 0
        while True:
            try:
                gone, surplus = self._drop(forget=freed > 0 or not self._swept)
                break
            except (OSError, sqlite3.Error, MachineError) as error:
                if give_reserve(self._directory, self._limit):
                    continue
                if not (more := free_room(self._directory, self._limit)):
                    _log.error("contents: %s: nothing could be dropped: %s", self._directory, error)
                    return
                freed += more
        self._swept = True
        gone += freed
        if gone:
            _log.info("contents: %s of what matters least dropped: [keep] bytes", sized(gone))
        if surplus and not self._surplus:
            _log.warning("contents: %s more than [keep] bytes, in files being written and the index", sized(surplus))
        self._surplus = surplus

    def _drop(self, *, forget: bool) -> tuple[int, int]:
        """(bytes that went, bytes that are still too much). forget: files may be gone that the index names."""
        index = open_index(self._directory, write=True)
        with contextlib.closing(Retention(self._directory, index, self._limit)) as retention:
            if forget:
                retention.forget_missing()
            gone = retention.sweep(self._clock.time())
            return gone, max(0, retention.size() - self._limit)

    # On the event loop

    def _answered(self, report: PageReport, answer: Answer) -> None:
        """Note what was kept of an answer whose report is about to leave."""
        if not answer.contents or owner_of(report.page) != self._number:
            return
        contents = msgspec.msgpack.decode(answer.contents, type=PageContents)
        if contents.failure:
            self._fail(contents.failure)
            self._unstored[contents.failure] += 1
        elif contents.record is not None:
            self._failed_at = -math.inf  # the disk takes something again: `_look` need not wait
        self._services.textless += contents.textless
        if contents.record is None and contents.text is None:
            return
        note = ReadNote(report.page, report.url, report.started, report.status, report.mime, contents, report.refused)
        self._waiting[report.page, report.epoch] = note
        if len(self._waiting) > BACKLOG:
            self._ready([self._waiting.pop(next(iter(self._waiting)))])

    def _settled(self, settled: Sequence[Settled], now: float) -> None:
        """Take the notes of the orders that this turn settled."""
        if not settled:
            return
        partition, ready, standings = self._frontier.partition, list[ReadNote](), dict[PageId, PageStanding]()
        pages = np.array([order.page for order in settled], np.int64)
        importances = self._frontier.importance_error.relative(pages)
        for order, importance in zip(settled, importances, strict=True):
            page, row = join(self._number, order.page), partition.row(order.page) or RefreshRow()
            if order.visit.answered or order.report.error in FORBIDDEN:
                state, checked = partition.states[order.page], order.report.started if order.visit.answered else 0.0
                standings[page] = PageStanding.of_row(row, state, importance, checked, order.report.refused)
            note = self._waiting.pop((page, order.report.epoch), None)
            if note is not None:
                note.importance, note.rate = importance, row.rate
                note.same = self._bytes and order.visit.changed is False
                ready.append(note)
        self._ready(ready)
        self._notes.standings.update(standings)  # after the notes: `_commit` takes them in the other order

    def _ready(self, notes: Iterable[ReadNote]) -> None:
        ready = self._notes.ready
        ready.extend(notes)
        if (surplus := len(ready) - BACKLOG) > 0:
            del ready[:surplus]
            self._notes.lost += surplus

    def _figures(self, now: float) -> dict[str, Any]:
        """Count the contents, for `status`."""
        try:
            figures: dict[str, Any] = dict(totals(self._index.opened)) if self._index.opened is not None else {}
        except sqlite3.Error as error:
            figures = {"failure": str(error)}
        paused = self._failure or self._notes.failure
        return {**figures, "paused": paused, "unindexed": self._notes.lost, "surplus": self._surplus,
                "reads_wait": bool(paused) and self._services.settings.keep.full == "wait"}  # fmt: skip

    # In the thread that writes commit groups

    def _commit(self) -> None:
        """Everything noted so far: on disk, then in the index."""
        with self._lock:
            notes = self._notes
            standings, notes.standings = notes.standings, {}
            notes.under_way = batch = notes.ready
            notes.ready = []
            if not batch and not standings and not notes.failure:
                return
            try:
                self._write(batch, standings.copy())
                if notes.failure:
                    _log.warning("contents: %s: indexed again", self._directory)
                notes.failure = ""
            except (OSError, sqlite3.Error, MachineError) as error:
                notes.ready = [*batch, *notes.ready]
                notes.standings = dict(list({**standings, **notes.standings}.items())[-BACKLOG:])
                failure = self._words(error)
                if not notes.failure:
                    _log.error("contents: not indexed: %s; tried again with the next commit", failure)
                notes.failure = failure
            notes.under_way = ()

    def _write(self, batch: Sequence[ReadNote], standings: Mapping[PageId, PageStanding]) -> None:
        self._sync_records(batch)
        batch = [note for note in batch if note.contents.record is not None or note.contents.text is not None]
        if self._metadata is not None:
            for note in batch:
                if note.contents.record is not None and not note.described:
                    facts = {"importance": f"{note.importance:.6g}", "change-rate-per-day": f"{note.rate:.6g}"}
                    if note.refused:
                        facts["content-signal"] = signals(note.refused)
                    self._metadata.write_metadata(note.url, note.started, note.contents.record.record, facts)
                    note.described = True
            self._metadata.sync()
        try:
            self._disk.check()
        except OSError:
            self._index.close()  # else a disk that was unmounted could not be checked, or detached
            if self._metadata is not None:
                self._metadata.let_go()
            raise
        index = self._index.open()
        texts = TextVersions(index, *self._versions)
        index.execute("BEGIN IMMEDIATE")
        try:
            self._leave_dropped(index, batch)
            for note in batch:
                self._insert(index, texts, note)
            revisits = [note for note in batch if note.contents.record is not None and note.contents.record.revisit]
            drop_dangling(self._directory, index, ((note.page, note.started) for note in revisits))
            write_standings(index, standings)
            index.execute("COMMIT")
        except BaseException:
            if index.in_transaction:  # of some errors SQLite itself has ended it
                index.execute("ROLLBACK")
            raise

    def _sync_records(self, batch: Sequence[ReadNote]) -> None:
        """Wait until the records are on disk. Those of a file of which that fails are not indexed: a second try may say
        that they are there, and be wrong. Those that `[keep] bytes` dropped are left to `_leave_dropped`."""
        for name in {note.contents.record.file for note in batch if note.contents.record is not None}:
            try:
                _sync(self._directory / name)
            except OSError as error:
                if self._services.settings.keep.bytes and isinstance(error, FileNotFoundError):
                    continue
                for note in batch:
                    if note.contents.record is not None and note.contents.record.file == name:
                        note.contents = replace(note.contents, record=None)
                        self._unstored[self._words(error)] += 1
                self._fail(f"{self._directory / name}: {error.strerror}")

    def _leave_dropped(self, index: sqlite3.Connection, batch: Sequence[ReadNote]) -> None:
        """Within the transaction, leave out records whose file `[keep] bytes` dropped since they were written: they
        were kept, as any other that it drops. A file that goes from now on is forgotten after this transaction."""
        if not self._services.settings.keep.bytes:
            return
        files = {note.contents.record.file for note in batch if note.contents.record is not None}
        gone = {name for name in files if not (self._directory / name).exists()}
        dropped = [note for note in batch if note.contents.record is not None and note.contents.record.file in gone]
        for note in dropped:
            note.contents = replace(note.contents, record=None)
        count_dropped(index, len(dropped))

    def _insert(self, index: sqlite3.Connection, texts: TextVersions, note: ReadNote) -> None:
        index.execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?) ON CONFLICT (page) DO UPDATE SET url = excluded.url, "
            "importance = excluded.importance, rate = excluded.rate, checked = excluded.checked",
            (note.page, note.url, note.importance, note.rate, note.started),
        )
        if note.contents.text is not None:
            texts.store(note.page, note.started, note.contents.text, note.same)
        record = note.contents.record
        if record is not None:
            index.execute(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (note.page, note.started, record.file, record.first, record.length, record.revisit, note.status,
                 note.mime, record.payload, record.date, record.signature),
            )  # fmt: skip
        if note.contents.validators:
            self._insert_validators(index, note)

    def _insert_validators(self, index: sqlite3.Connection, note: ReadNote) -> None:
        """The validators that the page has from now on, and which record has the body that they are of."""
        record, time = note.contents.record, note.started
        if record is not None and record.revisit:
            found = index.execute(
                "SELECT max(time) FROM records WHERE page = ? AND payload = ? AND NOT revisit AND time <= ?",
                (note.page, record.payload, note.started),
            ).fetchone()
            time = found[0] if found[0] is not None else time
        index.execute("INSERT OR REPLACE INTO validators VALUES (?, ?, ?)", (note.page, note.contents.validators, time))

    def _close(self) -> None:
        """The last commit group is on disk, no reader runs any more."""
        self._commit()
        counted = sum(bool(note.contents.failure) for note in self._notes.ready)
        if waiting := len(self._notes.ready) - counted + self._notes.lost:
            self._unstored[self._notes.failure or f"{self._directory}: too many waited"] += waiting
        if self._metadata is not None:
            with contextlib.suppress(OSError):  # no room for its index: `_mend` tells
                self._metadata.close()
        if self._first:
            self._mend(wait=True)  # of reader processes, which end at once; the other partitions have closed theirs
            self._drop_unindexed()
        if self._limit:
            self._sweep()
        if self._first:
            self._hold_reserve()
        self._index.close()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
