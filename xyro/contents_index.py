"""The index of kept contents: which record and which text each page has, in one SQLite file beside the WARC files.

    pages     a row for each page: its URL, importance and change rate as of its last read
    beliefs   of pages that are there, what that read says of how often they change (plugins/contents/page_standing.py)
    records   a row for each answer in a WARC file: where it is, what it shows
    texts     a row for each version of a page's text      bodies   the texts themselves, once each, by digest
    refusals  of pages that a robots.txt refuses uses of (wire/uses.py), which ones, as of their last read
    gone      of pages that show their text no more, why, as of their last read
    totals    sums of these, kept by triggers

It is written by the node alone, in the thread of a commit group and after the records are on disk; reader processes
look up the last answer of a page in it, and commands read it while a crawl runs. The store of the crawl knows nothing
of it: where it is lost, `xyro repair --contents` makes a new one from the WARC files; their CDXJ lines stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct
from xxhash import xxh3_64_digest

from xyro.packed_text import unpacked
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import PageId

if TYPE_CHECKING:
    import sqlite3

NAME = "index.sqlite"
FOLDER = "contents"
"""where contents are kept below a data directory"""
WAIT = 10.0
"""seconds for which a writer waits for another one"""
LOG_BYTES = 4 << 20
"""what SQLite's log beside the index (index.sqlite-wal) is cut to when it has grown"""
_LATER = (("refusals", "uses"), ("beliefs", "belief"), ("gone", "reason"), ("validators", "digest, time"))
"""tables that an index of an older Xyro may lack, and their columns"""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS pages (
    page INTEGER PRIMARY KEY, url TEXT NOT NULL, importance REAL NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0,
    checked REAL NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS pages_by_url ON pages (url);
CREATE TABLE IF NOT EXISTS records (
    page INTEGER NOT NULL, time REAL NOT NULL, file TEXT NOT NULL, first INTEGER NOT NULL, length INTEGER NOT NULL,
    revisit INTEGER NOT NULL, status INTEGER NOT NULL, mime TEXT NOT NULL, payload TEXT NOT NULL, date TEXT NOT NULL,
    signature BLOB NOT NULL, PRIMARY KEY (page, time)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_file ON records (file);
CREATE TABLE IF NOT EXISTS texts (
    page INTEGER NOT NULL, number INTEGER NOT NULL, time REAL NOT NULL, digest BLOB NOT NULL, title TEXT NOT NULL,
    language TEXT NOT NULL, published TEXT NOT NULL, modified TEXT NOT NULL, PRIMARY KEY (page, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bodies (
    digest BLOB PRIMARY KEY, uses INTEGER NOT NULL, size INTEGER NOT NULL, packed BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS refusals (page INTEGER PRIMARY KEY, uses INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS beliefs (page INTEGER PRIMARY KEY, belief BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS gone (page INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS validators (page INTEGER PRIMARY KEY, digest BLOB NOT NULL, time REAL NOT NULL);
CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO totals VALUES
    ('records', 0), ('revisits', 0), ('record_bytes', 0), ('texts', 0), ('text_bytes', 0), ('dropped', 0);
CREATE TRIGGER IF NOT EXISTS record_in AFTER INSERT ON records BEGIN
    UPDATE totals SET value = value + 1 WHERE name = 'records';
    UPDATE totals SET value = value + new.revisit WHERE name = 'revisits';
    UPDATE totals SET value = value + new.length WHERE name = 'record_bytes'; END;
CREATE TRIGGER IF NOT EXISTS record_out AFTER DELETE ON records BEGIN
    UPDATE totals SET value = value - 1 WHERE name = 'records';
    UPDATE totals SET value = value - old.revisit WHERE name = 'revisits';
    UPDATE totals SET value = value - old.length WHERE name = 'record_bytes'; END;
CREATE TRIGGER IF NOT EXISTS text_in AFTER INSERT ON texts BEGIN
    UPDATE totals SET value = value + 1 WHERE name = 'texts'; END;
CREATE TRIGGER IF NOT EXISTS text_out AFTER DELETE ON texts BEGIN
    UPDATE totals SET value = value - 1 WHERE name = 'texts'; END;
CREATE TRIGGER IF NOT EXISTS body_in AFTER INSERT ON bodies BEGIN
    UPDATE totals SET value = value + length(new.packed) WHERE name = 'text_bytes'; END;
CREATE TRIGGER IF NOT EXISTS body_out AFTER DELETE ON bodies BEGIN
    UPDATE totals SET value = value - length(old.packed) WHERE name = 'text_bytes'; END;
"""


class RecordRow(Struct, frozen=True):
    """One answer in a WARC file. `first`, `length`: bytes of its member; `signature`: 16 bytes of the decoded body."""

    page: PageId
    time: float
    file: str
    first: int
    length: int
    revisit: bool
    status: int
    mime: str
    payload: str
    date: str
    signature: bytes


class TextRow(Struct, frozen=True):
    """One version of a page's text; dates as the page wrote them, empty where it names none."""

    page: PageId
    number: int
    time: float
    digest: bytes
    title: str
    language: str
    published: str
    modified: str


def open_index(directory: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open the index of a directory of contents; `write`: make it where there is none.

    InputError: nothing is kept there. MachineError: it is damaged, or the disk fails.
    """
    import sqlite3  # 2 ms, which a crawl that keeps nothing does without

    path = directory / NAME
    if not write and not path.exists():
        raise _nothing(path)
    try:
        if write:
            return _writable(path)
        try:
            return _readable(path, "mode=ro")
        except sqlite3.Error:
            if (log := path.with_name(f"{NAME}-wal")).exists() and log.stat().st_size:
                raise
            return _readable(path, "mode=ro&immutable=1")  # a full disk has no room for the locks; nor can anyone write
    except sqlite3.Error as error:
        raise MachineError(
            f"{path}: {error}: free or mend the disk, or move the file away: a new one begins with later reads"
        ) from error


class IndexHandle:
    """The index, opened when it is asked for, and anew where another file has taken its place. `write`: see
    `open_index`."""

    def __init__(self, directory: Path, *, write: bool = False) -> None:
        self._directory = directory
        self._write = write
        self._file: os.stat_result | None = None
        self.opened: sqlite3.Connection | None = None

    def open(self) -> sqlite3.Connection:
        """XyroError: as `open_index` has it."""
        if self.opened is not None and not self._is_there():
            self.close()
        if self.opened is None:
            self.opened = open_index(self._directory, write=self._write)
            self._file = (self._directory / NAME).stat()
        return self.opened

    def _is_there(self) -> bool:
        try:
            return self._file is not None and os.path.samestat(self._file, (self._directory / NAME).stat())
        except OSError:
            return False

    def close(self) -> None:
        """Close it, if it is open."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None


def _connect(path: Path, options: str) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{options}", uri=True, timeout=WAIT, check_same_thread=False,
        isolation_level=None,
    )  # fmt: skip


def _writable(path: Path) -> sqlite3.Connection:
    base = _connect(path, "mode=rwc")
    try:
        base.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new one: what is dropped gives its room back
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last rows, not their records
        base.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        base.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
    except BaseException:
        base.close()
        raise
    return base


def _readable(path: Path, options: str) -> sqlite3.Connection:
    base = _connect(path, options)
    try:
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
        if "totals" not in tables:  # a disk without room may leave an empty file
            raise _nothing(path)
        for name, column in _LATER:
            if name not in tables:
                base.execute(f"CREATE TEMP TABLE {name} (page INTEGER PRIMARY KEY, {column})")
    except BaseException:
        base.close()
        raise
    return base


def _nothing(path: Path) -> InputError:
    return InputError(f"{path}: no page's contents are kept; a crawl with --text or --warc ([keep]) keeps them")


def latest_record(base: sqlite3.Connection, page: PageId) -> RecordRow | None:
    """The page's last answer that has its payload in a file."""
    found = base.execute(
        "SELECT * FROM records WHERE page = ? AND NOT revisit ORDER BY time DESC LIMIT 1", (page,)
    ).fetchone()
    return None if found is None else _record(found)


def validators_digest(etag: str, last_modified: str) -> bytes:
    """8 bytes of the validators of an answer; empty where it has none."""
    return xxh3_64_digest(f"{etag}\n{last_modified}".encode()) if etag or last_modified else b""


def has_validators(base: sqlite3.Connection, page: PageId, digest: bytes) -> bool:
    """Tell whether these are the validators of the page's last body that was kept."""
    found = base.execute("SELECT 1 FROM validators WHERE page = ? AND digest = ?", (page, digest)).fetchone()
    return found is not None


def validated_record(base: sqlite3.Connection, page: PageId, digest: bytes) -> RecordRow | None:
    """The record of the body that these validators are of: the one that an answer 304 to them refers to."""
    found = base.execute(
        "SELECT records.* FROM validators JOIN records USING (page, time) WHERE page = ? AND digest = ?", (page, digest)
    ).fetchone()
    return None if found is None else _record(found)


def records_of(base: sqlite3.Connection, page: PageId) -> Iterator[RecordRow]:
    """The page's answers, oldest first."""
    return map(_record, base.execute("SELECT * FROM records WHERE page = ? ORDER BY time", (page,)))


def texts_of(base: sqlite3.Connection, page: PageId) -> Iterator[TextRow]:
    """The versions of the page's text, oldest first."""
    return (TextRow(*row) for row in base.execute("SELECT * FROM texts WHERE page = ? ORDER BY number", (page,)))


def totals(base: sqlite3.Connection) -> dict[str, int]:
    """Sums over all that is kept."""
    return dict(base.execute("SELECT name, value FROM totals"))


def _record(row: tuple[Any, ...]) -> RecordRow:
    page, time, file, first, length, revisit, status, mime, payload, date, signature = row
    return RecordRow(PageId(page), time, file, first, length, bool(revisit), status, mime, payload, date, signature)


def unpacked_text(packed: bytes) -> dict[str, str]:
    """{"text", "markdown"} as a reader packed them."""
    try:
        return unpacked(packed)
    except ValueError as error:
        raise MachineError(
            f"a text is damaged ({error}): move the index away, a new one begins with later reads"
        ) from error
