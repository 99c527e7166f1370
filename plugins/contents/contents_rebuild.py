"""Makes the index of kept contents anew from what lies beside it (`xyro repair --contents`).

Answers are read from the WARC files, importance and change rates from their metadata records. Texts lie in the index
alone: what the old one still gives is taken over, page by page; of the others the HTML in the WARC files is extracted
again, as the settings say now. Revisits whose answer was dropped stay out of it, and of the CDXJ indexes. The new index
takes the place of the old one when it is whole.
"""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from fastwarc.warc import WarcRecord, WarcRecordType

from xyro.body import whole_body
from xyro.charset import codec_for
from xyro.configs.schema import Settings
from xyro.contents_index import NAME, RecordRow, TextRow, open_index, texts_of, totals
from xyro.packed_text import StoredText, stored_text
from xyro.plugins.contents.page_standing import PageStanding
from xyro.plugins.contents.retention import DANGLING
from xyro.plugins.contents.text_versions import TextVersions
from xyro.text_libraries import extractor_of
from xyro.warc_files import FIELDS, drop_lines, told_by
from xyro.warc_mending import members, mend
from xyro.wire.errors import InputError, MachineError, TheirError
from xyro.wire.ids import PageId
from xyro.wire.uses import USES, bits

HTML = ("text/html", "application/xhtml+xml")
FRESH = ".rebuilding"
_log = logging.getLogger("xyro")


@dataclass(slots=True)
class ReadFacts:
    """The last that metadata records say of a page."""

    time: float = 0.0
    importance: float = 0.0
    rate: float = 0.0
    refused: int = 0


class ContentsRebuild:
    """One rebuild of a directory. find: page id of a URL; None: the crawl does not know it. standing_of: what the crawl
    knows of a page; None: it does not know it."""

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        find: Callable[[str], PageId | None],
        standing_of: Callable[[PageId], PageStanding | None],
    ) -> None:
        """InputError: there is nothing to make an index of."""
        self._directory = directory
        self._find = find
        self._standing_of = standing_of
        self._settings = settings
        if not directory.is_dir():
            raise InputError(f"{directory}: nothing is kept there; [keep] warc = true keeps answers")
        self._extract = extractor_of(settings.keep.extractor)
        self._facts: dict[PageId, ReadFacts] = {}
        self._urls: dict[PageId, str] = {}
        self._dangling: dict[str, list[int]] = {}
        """of files, the places of revisits whose answer was dropped"""

    def run(self) -> dict[str, int]:
        """Rebuild; {"pages", "records", "texts", "bodies" ...}. MachineError: the disk fails."""
        fresh = self._directory / FRESH
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        try:
            mend(self._directory)
            index = open_index(fresh, write=True)
            try:
                found = self._fill(index)
                index.execute("PRAGMA journal_mode = DELETE")
            finally:
                index.close()
            for end in ("-wal", "-shm"):
                (self._directory / f"{NAME}{end}").unlink(missing_ok=True)
            (fresh / NAME).replace(self._directory / NAME)
            for file, places in self._dangling.items():
                drop_lines(self._directory / file, places)
        except OSError as error:
            raise MachineError(f"{error.filename}: {error.strerror}") from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return found

    def _fill(self, index: sqlite3.Connection) -> dict[str, int]:
        records = sorted(self._records(), key=lambda row: row.time)
        index.execute("BEGIN")
        rescued = self._take_texts(index)
        texts = TextVersions(index, self._settings.store.versions, self._settings.store.version_days)
        for row in records:
            index.execute(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (row.page, row.time, row.file, row.first, row.length, row.revisit, row.status, row.mime, row.payload,
                 row.date, row.signature),
            )  # fmt: skip
            if row.page not in rescued and (text := self._text(row)) is not None:
                texts.store(row.page, row.time, text)
        for file, first in index.execute(f"SELECT file, first FROM records WHERE {DANGLING}"):  # noqa: S608
            self._dangling.setdefault(file, []).append(first)
        index.execute(f"DELETE FROM records WHERE {DANGLING}")  # noqa: S608
        for page, url in self._urls.items():
            facts = self._facts.get(page, ReadFacts())
            index.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)",
                (page, url, facts.importance, facts.rate, facts.time),
            )
            if (standing := self._standing_of(page)) is not None:
                if standing.belief:
                    index.execute("INSERT OR REPLACE INTO beliefs VALUES (?, ?)", (page, standing.belief))
                if standing.gone:
                    index.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", (page, standing.gone))
            if facts.refused:
                index.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?)", (page, facts.refused))
        index.execute("COMMIT")
        (pages,) = index.execute("SELECT count(*) FROM pages").fetchone()
        return {"pages": pages, **totals(index)}

    def _take_texts(self, index: sqlite3.Connection) -> set[PageId]:
        """Take over the texts of the old index, of each page all that can be read; the pages."""
        rescued: set[PageId] = set()
        try:
            old = open_index(self._directory)
        except (InputError, MachineError):
            return rescued
        try:
            for page, url, importance, rate, time in old.execute("SELECT * FROM pages"):
                for text in list(texts_of(old, page)):
                    body = old.execute("SELECT * FROM bodies WHERE digest = ?", (text.digest,)).fetchone()
                    if body is not None:
                        self._take(index, text, body)
                        rescued.add(PageId(page))
                if page in rescued and page not in self._urls:
                    self._urls[page] = url
                    self._facts.setdefault(page, ReadFacts(time, importance, rate))
        except sqlite3.Error as error:
            _log.warning("%s: %s: of its texts %d pages' are taken over", self._directory / NAME, error, len(rescued))
        finally:
            old.close()
        return rescued

    def _take(self, index: sqlite3.Connection, text: TextRow, body: tuple[bytes, int, int, bytes]) -> None:
        digest, _, size, packed = body
        index.execute(
            "INSERT INTO bodies VALUES (?, 1, ?, ?) ON CONFLICT (digest) DO UPDATE SET uses = uses + 1",
            (digest, size, packed),
        )
        index.execute(
            "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (text.page, text.number, text.time, text.digest, text.title, text.language, text.published, text.modified),
        )

    def _text(self, row: RecordRow) -> StoredText | None:
        """Extract the text of an answer anew, where texts are kept and it is a page."""
        if not self._settings.keep.text or row.revisit or row.status != 200 or row.mime not in HTML:
            return None
        try:
            with (self._directory / row.file).open("rb") as file:
                file.seek(row.first)
                record = WarcRecord.from_bytes(zlib.decompress(file.read(row.length), 31))
            record.parse_http(auto_decode="transfer")
            headers = dict(record.http_headers or ())
            body = whole_body(headers.get("Content-Encoding") or "", record.reader.read())
            label = re.search(r"(?i)charset=[\"']?([^\s;\"']+)", headers.get("Content-Type") or "")
            charset = codec_for(body, label[1] if label else "")
            found = self._extract(body, charset, self._urls[row.page])
        except (zlib.error, ValueError, TheirError) as error:
            _log.warning("%s: at byte %d: %s: no text of it", row.file, row.first, error)
            return None
        return None if found is None else stored_text(found)

    # -- the WARC files ------------------------------------------------------------------------------------------

    def _records(self) -> Iterator[RecordRow]:
        """Every answer of a page that the crawl knows; what metadata records say of pages is noted."""
        for path in sorted(self._directory.glob("*.warc.gz")):
            with path.open("rb") as file:
                for first, length in list(members(file)):
                    row = self._record(file, path.name, first, length)
                    if row is not None:
                        yield row

    def _record(self, file: IO[bytes], name: str, first: int, length: int) -> RecordRow | None:
        file.seek(first)
        record = WarcRecord.from_bytes(zlib.decompress(file.read(length), 31))
        kind, headers = record.record_type, record.headers
        url, date = headers.get("WARC-Target-URI") or "", headers.get("WARC-Date") or ""
        if kind not in (WarcRecordType.response, WarcRecordType.revisit, WarcRecordType.metadata) or not url:
            return None
        page = self._find(url)
        if page is None:
            return None
        self._urls[page] = url
        time = datetime.fromisoformat(date).timestamp()
        if kind == WarcRecordType.metadata:
            if headers.get("Content-Type") == FIELDS:
                self._note(page, time, record.reader.read().decode("utf-8", "replace"))
            return None
        status, mime = told_by(record)
        return RecordRow(
            page, time, name, first, length, kind == WarcRecordType.revisit, status, mime,
            headers.get("WARC-Payload-Digest") or "", date, b"",
        )  # fmt: skip

    def _note(self, page: PageId, time: float, fields: str) -> None:
        facts = self._facts.setdefault(page, ReadFacts())
        if time < facts.time:
            return
        values = dict(line.split(": ", 1) for line in fields.splitlines() if ": " in line)
        refused = [name for name in re.findall(r"([\w-]+)=no", values.get("content-signal", "")) if name in USES]
        facts.time, facts.refused = time, bits(refused)
        facts.importance = float(values.get("importance", 0.0))
        facts.rate = float(values.get("change-rate-per-day", 0.0))
