"""Retention: while more is kept than `[keep] bytes`, what matters least goes first.

The worth of a text or an answer is the importance of its page, divided by one more than the changes since: those that
are known (later versions), and those to be expected of the newest one (change rate x age). So old versions of pages
that matter little go first, and what is fresh of pages that matter stays longest. Texts go one by one; WARC files
whole, once they are closed, the one of least worth a byte first, with their index. An answer whose file went is kept
whole again when it is read next.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xyro.contents_index import totals
from xyro.plugins.contents.text_versions import TextVersions
from xyro.wire.ids import PageId

SLACK = 0.95
"""share of the bound that is left when something had to go"""
BATCH = 200
"""texts dropped in one transaction: commit groups wait meanwhile"""
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
        """Bytes of all that is kept."""
        files = sum(
            path.stat().st_size for pattern in ("*.warc.gz", "*.cdxj*") for path in self._directory.glob(pattern)
        )
        return files + totals(self._index)["text_bytes"]

    def sweep(self, now: float) -> int:
        """Drop what is too much; how many bytes went."""
        surplus = self.size() - self._limit
        if not self._limit or surplus <= 0:
            return 0
        wanted, gone = surplus + int((1.0 - SLACK) * self._limit), 0
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

    def _candidates(self, now: float) -> Iterator[Candidate]:
        """Least worth first, texts and files together."""
        found = [
            Candidate(worth, size, page=PageId(page), number=number)
            for page, number, size, worth in self._index.execute(_TEXTS, (now,))
        ]
        for file, worth in self._index.execute(_FILES, (now,)):
            path = self._directory / file
            if path.exists() and not self._part(path).exists():
                found.append(Candidate(worth, path.stat().st_size, file=file))
        return iter(sorted(found, key=lambda candidate: candidate.worth))

    def _part(self, path: Path) -> Path:
        return path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj.part")

    def _drop_file(self, file: str) -> None:
        """The index first: it never names what is gone."""
        (count,) = self._index.execute("SELECT count(*) FROM records WHERE file = ?", (file,)).fetchone()
        with self._transaction():
            self._index.execute("DELETE FROM records WHERE file = ?", (file,))
            self._count(count)
        self._unlink(self._directory / file)

    def _drop_texts(self, texts: list[Candidate]) -> None:
        with self._transaction():
            for text in texts:
                if text.page is not None:
                    self._texts.drop(text.page, text.number)
            self._count(len(texts))

    def _drop_metadata(self) -> None:
        """Files of metadata that are older than every answer that is left."""
        files = {file for (file,) in self._index.execute("SELECT DISTINCT file FROM records")}
        oldest = min(((self._directory / file).stat().st_mtime for file in files), default=0.0)
        for path in self._directory.glob("*.warc.gz"):
            if path.name not in files and not self._part(path).exists() and path.stat().st_mtime < oldest:
                self._unlink(path)

    def _unlink(self, path: Path) -> None:
        path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj").unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    def _count(self, number: int) -> None:
        self._index.execute("UPDATE totals SET value = value + ? WHERE name = 'dropped'", (number,))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._index.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._index.execute("ROLLBACK")
            raise
        self._index.execute("COMMIT")
