"""Retention: while more is kept than `[keep] bytes`, what matters least goes first.

The worth of a text or an answer is the importance of its page, divided by one more than the changes since: those that
are known (later versions), and those to be expected of the newest one (change rate x age). So old versions of pages
that matter little go first, and what is fresh of pages that matter stays longest. Texts go one by one; WARC files
whole, once they are closed, the one of least worth a byte first, with their index. Revisits that refer to an answer
whose file went leave both indexes with it: replay would find nothing behind them. So do those that a reader wrote just
before, when their commit group is due (contents_writer.py). The page's next read brings it whole
(xyro/page_archive.py), and is kept so. Of revisits that no commit group tells of (a kill, a failed fsync) this index
knows nothing, so nothing would drop them: `drop_unindexed` does, once a file is closed.

Where a full disk has no room for the index's log, it cannot say what matters least. So once there is an index worth
it, RESERVE bytes lie beside, which are given up then. If that does not do, the oldest closed files go, until it can,
and it forgets them.

All else that lies in the directory counts: WARC files, their indexes, and index.sqlite with its log (index.sqlite-wal),
but for pages of it that are free. Those are given back to the disk, or, in the index of an older Xyro, used again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xyro.contents_index import LOG_BYTES, NAME, WAIT
from xyro.metadata.room import reserve
from xyro.plugins.contents.text_versions import TextVersions
from xyro.warc_files import FRESH, GONE, REVISIT, drop_lines, index_of, warc_of
from xyro.wire.ids import PageId

SLACK = 0.95
"""share of the bound that is left when something had to go"""
CAUTION = 0.5
"""share of a large surplus that goes before the rest is measured again: what goes is more than its own bytes, by what
the index says of it"""
ROOM = 1 << 18
"""bytes that a full disk has to have for the index's log"""
RESERVE = LOG_BYTES
"""bytes that are taken of a disk against the day when it is full: for the log, and what of it goes into the index"""
BATCH = 200
"""texts dropped in one transaction: commit groups wait meanwhile"""
STEP = 1_000
"""pages of the index that are given back in one transaction"""
_RESERVED = f"{NAME}-room"
_TEXTS = """
SELECT texts.page, number, length(packed),
    importance / (1.0 + (SELECT max(number) FROM texts AS newer WHERE newer.page = texts.page) - number
                  + rate * max(? - checked, 0) / 86400.0) AS worth
FROM texts JOIN pages ON pages.page = texts.page JOIN bodies USING (digest) ORDER BY worth, time"""
_FILES = """
SELECT file, sum(length * importance / (1.0
        + (SELECT count(*) FROM records AS newer WHERE newer.page = records.page AND newer.time > records.time
           AND NOT newer.revisit)
        + rate * max(? - checked, 0) / 86400.0)) / sum(length) AS worth
FROM records JOIN pages ON pages.page = records.page GROUP BY file ORDER BY worth"""
DANGLING = """revisit AND NOT EXISTS (
    SELECT 1 FROM records AS body WHERE body.page = records.page AND body.payload = records.payload
        AND NOT body.revisit)"""
"""of a row of `records`: it is a revisit, and no answer with its payload is left"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text (page, number) or a file, with its bytes on disk and its worth."""

    worth: float
    size: int
    file: str = ""
    page: PageId | None = None
    number: int = 0


class Retention:
    """Holds a directory of contents to `limit` bytes. Its connection to the index is its own."""

    def __init__(self, directory: Path, index: sqlite3.Connection, limit: int) -> None:
        self._directory = directory
        self._index = index
        self._limit = limit
        self._texts = TextVersions(index, 0, 0.0)

    def close(self) -> None:
        """Close the connection."""
        self._index.close()

    def size(self) -> int:
        """Bytes of all that is kept, as they count."""
        return self._contents() + _size(self._directory / f"{NAME}-wal")

    def sweep(self, now: float) -> int:
        """Drop what is too much; how many bytes went. What is left may still be too much: files that are written, and
        what the index says of pages."""
        before = self.size()
        if not self._limit or before <= self._limit:
            return 0
        self._shrink()
        while (surplus := self._contents() - self._limit) > 0:
            if not self._drop(now, max(int(CAUTION * surplus), int((1.0 - SLACK) * self._limit))):
                break
            self._shrink()
        return before - self.size()

    def _contents(self) -> int:
        """All but the log, for whose sake nothing is dropped: it is emptied."""
        files = (path for path in self._directory.iterdir() if path.name.endswith((".warc.gz", ".cdxj", ".part")))
        pages = self._number("page_count") - self._number("freelist_count")
        return sum(map(_size, files)) + pages * self._number("page_size")

    def _drop(self, now: float, wanted: int) -> int:
        """Drop about so many bytes; how many went."""
        gone = 0
        texts: list[Candidate] = []
        for candidate in self._candidates(now):
            if gone >= wanted:
                break
            gone += candidate.size
            if candidate.file:
                self._drop_file(candidate.file)
            else:
                texts.append(candidate)
        for first in range(0, len(texts), BATCH):
            self._drop_texts(texts[first : first + BATCH])
        self._drop_metadata()
        return gone

    def _shrink(self) -> None:
        """Give back what is free of the index, and the log that its changes fill."""
        for _ in range(self._number("freelist_count") // STEP + 1):
            self._index.executescript(f"PRAGMA incremental_vacuum({STEP})")  # `execute` would end after a page
        self._index.execute("PRAGMA busy_timeout = 0")  # where somebody reads it, commit groups would wait with us
        self._index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._index.execute(f"PRAGMA busy_timeout = {int(1e3 * WAIT)}")

    def _number(self, pragma: str) -> int:
        found: int = self._index.execute(f"PRAGMA {pragma}").fetchone()[0]
        return found

    def _candidates(self, now: float) -> Iterator[Candidate]:
        """Least worth first, texts and files together."""
        found = [
            Candidate(worth, size, page=PageId(page), number=number)
            for page, number, size, worth in self._index.execute(_TEXTS, (now,))
        ]
        for file, worth in self._index.execute(_FILES, (now,)):
            path = self._directory / file
            if path.exists() and not _part(path).exists():
                found.append(Candidate(worth, path.stat().st_size, file=file))
        return iter(sorted(found, key=lambda candidate: candidate.worth))

    def forget_missing(self) -> None:
        """Drop what the index says of files that are not there: `free_room` took them, or somebody did."""
        for (file,) in self._index.execute("SELECT DISTINCT file FROM records").fetchall():
            if not (self._directory / file).exists():
                self._forget(file)

    def _drop_file(self, file: str) -> None:
        """The index first: it never names what is gone. And after: a commit group may have told of more meanwhile."""
        self._forget(file)
        _unlink(self._directory / file)
        self._forget(file)

    def _forget(self, file: str) -> None:
        (count,) = self._index.execute("SELECT count(*) FROM records WHERE file = ?", (file,)).fetchone()
        with self._transaction():
            pages = self._index.execute("SELECT DISTINCT page FROM records WHERE file = ? AND NOT revisit", (file,))
            bereft = [(page, 0.0) for (page,) in pages]
            self._index.execute("DELETE FROM records WHERE file = ?", (file,))
            count_dropped(self._index, count + drop_dangling(self._directory, self._index, bereft))

    def _drop_texts(self, texts: list[Candidate]) -> None:
        with self._transaction():
            for text in texts:
                if text.page is not None:
                    self._texts.drop(text.page, text.number)
            count_dropped(self._index, len(texts))

    def _drop_metadata(self) -> None:
        """Files of metadata that are older than every answer that is left; all where none is."""
        files = {file for (file,) in self._index.execute("SELECT DISTINCT file FROM records")}
        oldest = min(((self._directory / file).stat().st_mtime for file in files), default=math.inf)
        for path in self._directory.glob("*.warc.gz"):
            if path.name not in files and not _part(path).exists() and path.stat().st_mtime < oldest:
                _unlink(path)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._index.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._index.execute("ROLLBACK")
            raise
        self._index.execute("COMMIT")


def count_dropped(index: sqlite3.Connection, number: int) -> None:
    """Within a transaction, count texts and answers that went."""
    index.execute("UPDATE totals SET value = value + ? WHERE name = 'dropped'", (number,))


def drop_dangling(directory: Path, index: sqlite3.Connection, reads: Iterable[tuple[PageId, float]]) -> int:
    """Within a transaction, drop revisits of these pages, from these times on, that refer to no answer which is left,
    from both indexes; how many. OSError: there is no room for that."""
    gone: dict[str, list[int]] = {}
    for page, since in reads:
        found = index.execute(
            f"SELECT file, first, time FROM records WHERE page = ? AND time >= ? AND {DANGLING}",  # noqa: S608
            (page, since),
        )
        for file, first, time in found.fetchall():
            gone.setdefault(file, []).append(first)
            index.execute("DELETE FROM records WHERE page = ? AND time = ?", (page, time))
    for file, places in gone.items():
        drop_lines(directory / file, places)
    return sum(map(len, gone.values()))


def drop_unindexed(
    directory: Path, index: sqlite3.Connection, waiting: Collection[str] = (), before: float = math.inf
) -> None:
    """Take revisits that the index does not have out of CDXJ indexes: no commit group told of them, and nothing would
    drop them with the answer that they refer to. Each file is looked at once, after it is closed: not those of which
    records wait to be indexed, nor those that were closed after `before`. OSError: there is no room for that."""
    for mark in directory.glob(f"*.cdxj{FRESH}"):
        final = mark.with_name(mark.name.removesuffix(FRESH))
        file = warc_of(final).name
        try:
            if file in waiting or mark.stat().st_mtime >= before:
                continue
            lines = [line for line in final.read_bytes().splitlines() if REVISIT in line]
        except FileNotFoundError:  # dropped meanwhile, or a kill left no index: `mend` makes it
            continue
        indexed = {first for (first,) in index.execute("SELECT first FROM records WHERE file = ?", (file,))}
        if places := {int(json.loads(line.split(b" ", 2)[2])["offset"]) for line in lines} - indexed:
            drop_lines(directory / file, places)
        mark.unlink(missing_ok=True)


def hold_reserve(directory: Path) -> None:
    """Take the reserve, if there is none, the index is larger, and the disk has room for more than that. OSError."""
    path, disk = directory / _RESERVED, os.statvfs(directory)
    if path.exists() or _size(directory / NAME) < RESERVE or disk.f_bavail * disk.f_frsize < 2 * RESERVE:
        return
    try:
        with path.open("wb") as file:
            reserve(file.fileno(), RESERVE)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def give_reserve(directory: Path, limit: int) -> bool:
    """Give the reserve up where more than `limit` bytes are kept; False: there is none."""
    if _content_bytes(directory) <= limit or not (directory / _RESERVED).exists():
        return False
    (directory / _RESERVED).unlink()
    return True


def free_room(directory: Path, limit: int) -> int:
    """While more than `limit` bytes are kept, delete the oldest closed files, up to ROOM; how many bytes went."""
    total, gone = _content_bytes(directory), 0
    closed = (path for path in directory.glob("*.warc.gz") if not _part(path).exists())
    for path in sorted(closed, key=lambda path: path.stat().st_mtime):
        if gone >= ROOM or total - gone <= limit:
            break
        gone += _size(path)
        _unlink(path)
    return gone


def _content_bytes(directory: Path) -> int:
    """Bytes of all that is kept, but for the log and the reserve."""
    return sum(_size(path) for path in directory.iterdir() if not path.name.startswith(f"{NAME}-"))


def _part(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj.part")


def _unlink(path: Path) -> None:
    for end in ("", GONE, FRESH):
        final = index_of(path)
        final.with_name(final.name + end).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Bytes of a file; 0 where it has just been closed and has another name."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
