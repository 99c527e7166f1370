"""Gives out what is kept of pages: HTML as it came, texts, versions, WARC files. A running crawl need not be asked.

A version of a page is one of its text; of a page of which no text is kept, an answer with a body of its own. HTML of a
version is what was read then, out of the WARC files.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastwarc.warc import WarcRecord
from numpy.typing import NDArray

from xyro.body import whole_body
from xyro.contents_index import RecordRow, TextRow, open_index, records_of, texts_of, unpacked_text
from xyro.maintext import LONG, MAX_DEPTH
from xyro.plugins.contents.page_standing import kept_stale
from xyro.service.views.staleness import REPLACED
from xyro.wire.errors import InputError, MachineError, TheirError
from xyro.wire.ids import PageId, first_id, owner_of
from xyro.wire.text import stamp
from xyro.wire.uses import names_of

ORDERS = {"url": "url", "importance": "now DESC, url", "date": "time, url"}
"""what exported texts can be sorted by -> SQL"""
NOW = "coalesce(weight, importance)"
"""SQL: a page's importance of now where that was looked up, else that of its last read"""
TEXT_BOUNDS = f"up to {LONG.size >> 20} MiB, {LONG.tags:,} tags, {MAX_DEPTH} levels"
"""of pages whose text is found"""


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One version of a page. `text` is None where only its HTML is kept."""

    number: int
    time: float
    text: TextRow | None


Version = TypeVar("Version", bound=PageVersion)


class ContentsView:
    """The contents in a directory. InputError: none are kept there. Close it."""

    missing: Sequence[str] = ()
    """as of ClusterContents: here is all that there is"""

    def __init__(self, directory: Path, now: float = 0.0) -> None:
        """now: seconds since 1970; 0 where nobody asks how stale they are."""
        self._directory, self._now = directory, now
        self._index = open_index(directory)
        self._index.execute("PRAGMA temp_store = MEMORY")
        self._index.execute("CREATE TEMP TABLE weights (page INTEGER PRIMARY KEY, weight REAL NOT NULL)")

    def __enter__(self) -> ContentsView:
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()

    def weigh(self, parts: Iterable[tuple[int, NDArray[np.float32]]]) -> None:
        """Take importances of now for those of each page's last read, in what `texts` and `warc` say and choose. parts:
        (partition, importances of its pages, by their numbers there), a mean page of the crawl having 1."""
        for partition, importances in parts:
            first, after = first_id(partition), first_id(partition + 1)
            found = self._rows("SELECT page FROM pages WHERE page >= ? AND page < ?", (first, after))
            pages = (page for (page,) in found if page - first < len(importances))
            rows = ((page, float(importances[page - first])) for page in pages)
            self._index.executemany("INSERT OR REPLACE INTO weights VALUES (?, ?)", list(rows))

    def page(self, url: str) -> PageId:
        """The id of a page of which something is kept. `url`: canonical."""
        if (found := self.find(url)) is None:
            raise InputError(
                f"{url}: nothing is kept of it: it was not read since [keep] is on, is no page of HTML, or shows no "
                f"text that can be found ({TEXT_BOUNDS}); `xyro why URL` tells what its reads brought"
            )
        return found

    def find(self, url: str) -> PageId | None:
        """The same, None where nothing is kept of it."""
        found = self._index.execute("SELECT page FROM pages WHERE url = ?", (url,)).fetchone()
        return None if found is None else PageId(found[0])

    def versions(self, page: PageId) -> list[PageVersion]:
        """Its versions, oldest first."""
        texts = list(texts_of(self._index, page))
        if texts:
            return [PageVersion(text.number, text.time, text) for text in texts]
        answers = [record for record in records_of(self._index, page) if not record.revisit]
        return [PageVersion(number, record.time, None) for number, record in enumerate(answers, start=1)]

    def version(self, page: PageId, number: int | None, until: float = math.inf) -> PageVersion:
        """The one of this number, or the latest until a moment. InputError: there is no such one."""
        return chosen_version(self.versions(page), number, until)

    def text(self, version: PageVersion) -> dict[str, str]:
        """{"text", "markdown"} of a version. InputError: its text is not kept."""
        if version.text is None:
            raise InputError(
                "its text is not kept: [keep] bytes dropped it, or since [keep] text is on no read brought a page of "
                f"HTML whose text can be found ({TEXT_BOUNDS}); "
                "`xyro why URL` tells what they brought"
            )
        row = self._index.execute("SELECT packed FROM bodies WHERE digest = ?", (version.text.digest,)).fetchone()
        if row is None:
            raise MachineError(
                f"{self._directory}: a text is missing: move the index away, a new one begins with later reads"
            )
        return unpacked_text(row[0])

    def latest(self, page: PageId) -> tuple[TextRow, bytes] | None:
        """The latest text of a page, and how it is packed; None where none is kept."""
        found = self._index.execute(
            "SELECT texts.*, packed FROM texts JOIN bodies USING (digest) WHERE page = ? ORDER BY number DESC LIMIT 1",
            (page,),
        ).fetchone()
        return None if found is None else (TextRow(*found[:-1]), found[-1])

    def html(self, page: PageId, until: float) -> bytes:
        """The body of the last answer that was read until then; decoded."""
        bodies = [row for row in records_of(self._index, page) if not row.revisit and row.time <= until]
        if not bodies:
            raise InputError("its HTML is not kept; [keep] warc = true keeps it from the next read on")
        return self.body(bodies[-1])

    def answers(self, page: PageId) -> dict[str, list[float]]:
        """When the answers in WARC files were read, oldest first: {"all", "bodies": those that have their own}."""
        found = [*records_of(self._index, page)]
        return {"all": [row.time for row in found], "bodies": [row.time for row in found if not row.revisit]}

    def body(self, record: RecordRow) -> bytes:
        """The body of a record, its codings undone."""
        path = self._directory / record.file
        try:
            with path.open("rb") as file:
                file.seek(record.first)
                member = file.read(record.length)
            found = WarcRecord.from_bytes(zlib.decompress(member, 31))
            found.parse_http(auto_decode="transfer")
            coding = found.http_headers.get("Content-Encoding") if found.http_headers is not None else None
            return whole_body(coding or "", found.reader.read())
        except (OSError, zlib.error, ValueError, TheirError) as error:
            raise MachineError(f"{path}: {error}: restore the file from a copy") from error

    def describe(self, page: PageId) -> Iterator[dict[str, Any]]:
        """Rows of `page versions`; `stale`: has the page changed since."""
        _, stale, gone = self.stale(page)
        return described(self.versions(page), self.size, set(self.answers(page)["all"]), stale, gone)

    def stale(self, page: PageId) -> tuple[float, float | None, str | None]:
        """(when it was read last, `stale` since then, why it shows that no more)."""
        query = (
            "SELECT checked, belief, reason FROM pages LEFT JOIN beliefs USING (page) LEFT JOIN gone USING (page) "
            "WHERE page = ?"
        )
        checked, belief, reason = self._index.execute(query, (page,)).fetchone() or (0.0, None, None)
        return checked, kept_stale(belief, checked, self._now), reason

    def size(self, text: TextRow) -> int | None:
        """Bytes of a version's text and Markdown; None where they are missing."""
        row = self._index.execute("SELECT size FROM bodies WHERE digest = ?", (text.digest,)).fetchone()
        return row[0] if row else None

    def partitions(self) -> list[int]:
        """Partitions of whose pages something is kept."""
        found: list[int] = []
        while row := self._index.execute(
            "SELECT page FROM pages WHERE page >= ? ORDER BY page LIMIT 1", (first_id(found[-1] + 1) if found else 0,)
        ).fetchone():
            found.append(owner_of(PageId(row[0])))
        return found

    def is_empty(self, table: str) -> bool:
        """Tell whether nothing of a table is kept: texts, or answers in WARC files (warc)."""
        query = f"SELECT 1 FROM {'texts' if table == 'texts' else 'records'} LIMIT 1"  # noqa: S608
        return self._index.execute(query).fetchone() is None

    def times(self, partition: int) -> Iterator[tuple[int, float]]:
        """(id, seconds) of the latest text of each page of a partition."""
        return self._rows(
            "SELECT page, max(time) FROM texts WHERE page >= ? AND page < ? GROUP BY page",
            (first_id(partition), first_id(partition + 1)),
        )

    def texts(self, by: str, since: float, least: float) -> Iterator[dict[str, Any]]:
        """The latest text of each page: of texts read first since then, of pages at least so important."""
        query = (
            f"SELECT pages.page, url, {NOW} AS now, rate, checked, number, time, title, language, published, modified, "  # noqa: S608
            "refusals.uses, belief, reason, packed FROM pages JOIN texts ON texts.page = pages.page "
            "JOIN bodies USING (digest) LEFT JOIN refusals ON refusals.page = pages.page "
            "LEFT JOIN beliefs ON beliefs.page = pages.page LEFT JOIN gone ON gone.page = pages.page "
            "LEFT JOIN weights ON weights.page = pages.page "
            "WHERE number = (SELECT max(number) FROM texts AS newer WHERE newer.page = pages.page) "
            f"AND time >= ? AND now >= ? ORDER BY {ORDERS[by]}"
        )
        for page, url, importance, rate, checked, number, time, *facts, refused, belief, gone, packed in self._rows(
            query, (since, least)
        ):
            title, language, published, modified = (fact or None for fact in facts)
            yield {
                "id": page,
                "url": url,
                "version": number,
                "read_at": stamp(time),
                "checked_at": stamp(checked),
                "importance": round(importance, 6),
                "change_rate": round(rate, 6),
                "stale": kept_stale(belief, checked, self._now),
                "gone": gone,
                "title": title,
                "language": language,
                "published": published,
                "modified": modified,
                "refused": ",".join(names_of(refused or 0)) or None,
                **unpacked_text(packed),
            }

    def warc(self, by: str, since: float, least: float) -> Iterator[dict[str, Any]]:
        """The WARC files that hold answers of such pages since then, with the numbers and bytes of these; where pages
        of any importance are asked for, those of metadata, too, in which are no answers."""
        query = (
            f"SELECT file, count(*), sum(length), min(time), max(time), max({NOW}) "  # noqa: S608
            "FROM records JOIN pages USING (page) LEFT JOIN weights USING (page) "
            f"WHERE time >= ? AND {NOW} >= ? GROUP BY file"
        )
        found = list(self._rows(query, (since, least)))
        answers = {file for (file,) in self._rows("SELECT DISTINCT file FROM records", ())}
        every = self._directory.glob("*.warc.gz") if least <= 0.0 else ()
        others = (path for path in every if path.name not in answers)
        facts = ((path.name, path.stat()) for path in others)
        found += [(name, 0, it.st_size, it.st_mtime, it.st_mtime, 0.0) for name, it in facts if it.st_mtime >= since]
        keys: dict[str, Callable[[Any], Any]] = {"importance": lambda row: -row[5], "date": lambda row: row[3]}
        for file, count, size, first, last, importance in sorted(found, key=keys.get(by, lambda row: row[0])):
            yield {
                "file": str(self._directory / file),
                "records": count,
                "size": size,
                "first": stamp(first),
                "last": stamp(last),
                "importance": round(importance, 6),
                "node": None,
            }

    def _rows(self, query: str, values: tuple[float, ...]) -> Iterator[tuple[Any, ...]]:
        try:
            found = self._index.execute(query, values)
            yield from iter(found.fetchone, None)  # the cursor itself would be closed at the end, after the index
        except sqlite3.OperationalError as error:
            raise MachineError(f"{self._directory}: {error}: mend the disk") from error


def chosen_version(versions: Sequence[Version], number: int | None, until: float) -> Version:
    """The one of this number, or the last version until a moment. InputError: there is none."""
    if number is not None:
        versions = [version for version in versions if version.number == number]
    else:
        versions = [version for version in versions if version.time <= until]
    if not versions:
        raise InputError("no such version is kept; `xyro page versions URL` lists those that are")
    return versions[-1]


def described(
    versions: Sequence[PageVersion],
    size: Callable[[TextRow], int | None],
    times: Container[float],
    stale: float | None,
    gone: str | None,
) -> Iterator[dict[str, Any]]:
    """Rows of `page versions`. size: of a version's text; times: when answers in WARC files were read; stale, gone: of
    the last version."""
    ends = [stamp(version.time) for version in versions[1:]]
    for version, until in zip(versions, [*ends, None], strict=True):
        text = version.text
        yield {
            "version": version.number,
            "read_at": stamp(version.time),
            "until": until,
            "gone": gone if until is None else None,
            "size": size(text) if text else None,
            "title": text.title if text else None,
            "language": (text.language or None) if text else None,
            "published": (text.published or None) if text else None,
            "modified": (text.modified or None) if text else None,
            "digest": text.digest.hex() if text else None,
            "html": version.time in times,
            "stale": stale if until is None else REPLACED,
        }
