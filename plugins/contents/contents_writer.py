"""Indexes what readers kept, and has it on disk before the commit group that tells of the read.

    a reader wrote a record    -> `_answered` notes it (the report is not delivered yet)
    a turn settles the order   -> `_settled` adds importance and change rate
    its commit group is due    -> `_commit`, in the writer's thread: fsync, index; then the store writes the group

What fails in `_commit` for want of room is noted, told by `status`, and tried again with the next group; the group goes
on to its own disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from xyro.contents_index import open_index, totals
from xyro.metadata.rows import RefreshRow
from xyro.metadata.visits import FORBIDDEN
from xyro.page_archive import PageContents
from xyro.plugins.contents.page_standing import PageStanding, write_standings
from xyro.plugins.contents.retention import Retention
from xyro.plugins.contents.text_versions import TextVersions
from xyro.service.node.reader_factory import archive_of
from xyro.warc_files import WarcFiles
from xyro.warc_mending import mend
from xyro.wire.ids import HOME, PageId, join, owner_of
from xyro.wire.sizes import sized
from xyro.wire.uses import signals

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.messages import PageReport

SWEEP = 60.0
"""seconds between two looks at how much is kept"""
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


@dataclass(slots=True)
class CommitNotes:
    """The notes of one partition on their way to the index."""

    ready: list[ReadNote] = field(default_factory=list)
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
        self._bytes = options.bytes_signature
        self._waiting: dict[tuple[PageId, int], ReadNote] = {}
        self._notes = CommitNotes()
        self._lock = threading.Lock()
        self._pause = ""
        self._first = not services.barriers
        """of the partitions of this node: it mends, and bounds, what all of them keep"""
        if self._first:
            for line in mend(self._directory):
                _log.warning("%s", line)
        self._index = open_index(self._directory, write=True)
        self._texts = TextVersions(self._index, settings.store.versions, settings.store.version_days)
        self._metadata = WarcFiles(
            self._directory, options.crawl, f"{options.node}.m{self._number}", options.file_bytes,
            {"software": options.user_agent, "description": "what the crawl knew of pages as it read them"},
        ) if settings.keep.warc else None  # fmt: skip
        self._clock = services.clock
        limit = settings.keep.bytes if self._first else 0
        self._retention = Retention(self._directory, open_index(self._directory, write=True), limit) if limit else None
        services.answered.append(self._answered)
        services.barriers.append(self._commit)
        services.closers.append(self._close)
        frontier.hooks.settled.append(self._settled)
        if self._number == HOME:
            frontier.hooks.status["contents"] = self._figures

    async def run(self) -> None:
        """Hold the contents to their bound, once for the whole crawl."""
        if self._retention is None:
            return
        while True:
            await self._clock.sleep(SWEEP)
            try:
                gone = await asyncio.to_thread(self._retention.sweep, self._clock.time())
            except (OSError, sqlite3.Error) as error:
                _log.error("contents: %s: nothing could be dropped: %s", self._directory, error)
                continue
            if gone:
                _log.info("contents: %s of what matters least dropped: [keep] bytes", sized(gone))

    # On the event loop

    def _answered(self, report: PageReport, answer: Answer) -> None:
        """Note what was kept of an answer whose report is about to leave."""
        if not answer.contents or owner_of(report.page) != self._number:
            return
        contents = msgspec.msgpack.decode(answer.contents, type=PageContents)
        if contents.pause != self._pause:
            self._pause = contents.pause
            _log.warning("contents: %s", f"not kept: {self._pause}" if self._pause else "kept again")
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
            figures: dict[str, Any] = dict(totals(self._index))
        except sqlite3.Error as error:
            figures = {"failure": str(error)}
        return {**figures, "paused": self._pause or self._notes.failure, "unindexed": self._notes.lost}

    # In the thread that writes commit groups

    def _commit(self) -> None:
        """Everything noted so far: on disk, then in the index."""
        with self._lock:
            notes = self._notes
            standings, notes.standings = notes.standings, {}
            batch, notes.ready = notes.ready, []
            if not batch and not standings:
                return
            try:
                self._write(batch, standings.copy())
                notes.failure = ""
            except (OSError, sqlite3.Error) as error:
                notes.ready = [*batch, *notes.ready]
                notes.standings = dict(list({**standings, **notes.standings}.items())[-BACKLOG:])
                if not notes.failure:
                    _log.error("contents: %s: %s; tried again with the next commit", self._directory, error)
                notes.failure = f"{self._directory}: {error}"

    def _write(self, batch: Sequence[ReadNote], standings: Mapping[PageId, PageStanding]) -> None:
        for name in {note.contents.record.file for note in batch if note.contents.record is not None}:
            _sync(self._directory / name)
        if self._metadata is not None:
            for note in batch:
                if note.contents.record is not None:
                    facts = {"importance": f"{note.importance:.6g}", "change-rate-per-day": f"{note.rate:.6g}"}
                    if note.refused:
                        facts["content-signal"] = signals(note.refused)
                    self._metadata.write_metadata(note.url, note.started, note.contents.record.record, facts)
            self._metadata.sync()
        self._index.execute("BEGIN IMMEDIATE")
        try:
            for note in batch:
                self._insert(note)
            write_standings(self._index, standings)
        except BaseException:
            self._index.execute("ROLLBACK")
            raise
        self._index.execute("COMMIT")

    def _insert(self, note: ReadNote) -> None:
        self._index.execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?) ON CONFLICT (page) DO UPDATE SET url = excluded.url, "
            "importance = excluded.importance, rate = excluded.rate, checked = excluded.checked",
            (note.page, note.url, note.importance, note.rate, note.started),
        )
        if note.contents.text is not None:
            self._texts.store(note.page, note.started, note.contents.text, note.same)
        record = note.contents.record
        if record is not None:
            self._index.execute(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (note.page, note.started, record.file, record.first, record.length, record.revisit, note.status,
                 note.mime, record.payload, record.date, record.signature),
            )  # fmt: skip

    def _close(self) -> None:
        """The last commit group is on disk, no reader runs any more."""
        self._commit()
        if self._metadata is not None:
            self._metadata.close()
        if self._retention is not None:
            self._retention.close()
        if self._first:
            for line in mend(self._directory):  # of reader processes, which end at once
                _log.warning("%s", line)
        self._index.close()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
