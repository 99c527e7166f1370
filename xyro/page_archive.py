"""The archive of a reading process: of each answer it writes a WARC record, and tells the node where that lies.

The fetcher calls `keep` at the end of each GET; what came of it goes along in the answer. The node makes sure that the
record is on disk before its commit group (plugins/contents), so no body passes through the node for its sake.

A disk that has no room pauses this and nothing else: `full` = "skip" reads on without keeping and tries again after
PAUSE seconds; "wait" holds the answer back until there is room, and with it, as slots run out, the crawl.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec.structs import replace

from xyro.answer import Answer
from xyro.archive_options import ArchiveOptions
from xyro.contents_index import (
    IndexHandle,
    has_validators,
    latest_record,
    texts_of,
    validated_record,
    validators_digest,
)
from xyro.packed_text import StoredText, stored_text
from xyro.page_client import Reply
from xyro.page_copy import PageCopy
from xyro.site_entries import masked
from xyro.tape import Tape
from xyro.text_libraries import extractor_of
from xyro.warc_files import Earlier, HttpAnswer, WarcFiles, Written, sha1, split_answer
from xyro.wire.clock import Clock
from xyro.wire.errors import XyroError
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder
from xyro.wire.text import printable
from xyro.wire.uses import signals

PAUSE = 5.0
"""seconds until a full disk is tried again"""
MOST_WHOLE = 100_000
"""pages that are remembered to have been read as a whole"""
BIG = 128 * 1024
"""bytes of an answer from which on it is packed in a thread: a millisecond; of a page whose text is found in one"""


_log = logging.getLogger("xyro")


class StoredRecord(msgspec.Struct, array_like=True, frozen=True):
    """The place of a record, as warc_files.Written tells it, and whether it is a revisit."""

    file: str
    first: int
    length: int
    payload: str
    date: str
    record: str
    revisit: bool
    signature: bytes


class PageContents(msgspec.Struct, array_like=True, frozen=True):
    """The part of one answer that was kept, as the node learns of it."""

    record: StoredRecord | None = None
    text: StoredText | None = None
    failure: str = ""
    """why its record could not be kept: the disk's words"""
    validators: bytes = b""
    """of its body (contents_index.py: validators_digest), or of the earlier one that it confirms"""
    textless: bool = False
    """a page of HTML whose text was wanted, and could not be found"""


class PageArchive:
    """Of one reading process. Files are made with the first record."""

    def __init__(self, options: ArchiveOptions, clock: Clock) -> None:
        self._options = options
        self._directory = Path(options.directory)
        self._clock = clock
        facts = {"software": options.user_agent, "isPartOf": options.crawl, "hostname": options.node,
                 "robots": "obey", "operator": options.contact}  # fmt: skip
        self._files = WarcFiles(
            self._directory, options.crawl, options.node, options.file_bytes, {k: v for k, v in facts.items() if v}
        )
        self._extract = extractor_of(options.extractor) if options.text else None
        self._index = IndexHandle(self._directory)
        self._read_whole: set[PageId] = set()
        """pages whose text was not there to be found, and that were read as a whole since"""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="warc")
        self._texts = ThreadPoolExecutor(1, thread_name_prefix="texts")
        self._turn = asyncio.Lock()
        self._paused_until = 0.0
        self._pause = ""

    def follow(self, private: tuple[str, ...], bytes_signature: bool) -> None:
        """Other [[sites]]. Values that were hidden stay hidden: requests under way have them."""
        names = tuple(sorted({*self._options.private, *private}))
        self._options = replace(self._options, private=names, bytes_signature=bytes_signature)

    @property
    def keeps_texts(self) -> bool:
        """Tell whether texts are kept."""
        return self._extract is not None

    @property
    def tape_of(self) -> Callable[[], Tape] | None:
        """Makes the tape of one answer; None: records are not kept."""
        return self._tape if self._options.warc else None

    def _tape(self) -> Tape:
        return Tape(self._options.limit, self._directory)

    def asking(self, order: FetchOrder) -> FetchOrder:
        """The order, without validators where the body that they are of is not kept: keeping began later, the disk had
        no room, retention dropped it. An answer 304 would refer to nothing, or to a body before it. For the sake of a
        text once in this process: some pages have none."""
        digest = validators_digest(order.etag, order.last_modified)
        if order.probe or not digest or self._pause or self._has(order.page, digest):
            return order
        if len(self._read_whole) >= MOST_WHOLE:
            self._read_whole.clear()
        self._read_whole.add(order.page)
        return replace(order, etag="", last_modified="")

    def _has(self, page: PageId, digest: bytes) -> bool:
        """Tell whether the body of the page that has these validators is kept."""
        try:
            index = self._index.open()
            if self._options.warc and validated_record(index, page, digest) is None:
                return False
            if self._extract is None or page in self._read_whole:
                return True
            return has_validators(index, page, digest) and next(texts_of(index, page), None) is not None
        except (XyroError, sqlite3.Error):  # not made yet, or its disk fails
            self._index.close()
            return page in self._read_whole

    async def keep(self, page: PageId | None, url: str, copy: PageCopy, answer: Answer) -> None:
        """Keep what was read; what came of it is in `answer.contents`. page: None where the URL is no page."""
        reply = copy.reply
        if reply is None:
            return
        record, failure = None, ""
        if reply.tape is not None:
            try:
                raw = reply.tape.read()
                record = await self._record(page, url, copy, reply, raw, answer)
                failure = "" if record is not None else self._pause
            except OSError as error:
                failure = self._failure(error)
            reply.tape.close()
        text, textless = None, False
        if (copy.charset or copy.parsed) and self._extract is not None and page is not None and not answer.error:
            text = await self._text(url, copy)
            textless = text is None
        if record is not None or text is not None or failure or textless:
            etag, last_modified = answer.etag, answer.last_modified
            if answer.status == 304:
                asked = _conditions(reply.request)
                etag, last_modified = etag or asked[0], last_modified or asked[1]
            digest = validators_digest(etag, last_modified) if answer.status in (200, 304) else b""
            answer.contents = msgspec.msgpack.encode(PageContents(record, text, failure, digest, textless))

    async def _record(
        self, page: PageId | None, url: str, copy: PageCopy, reply: Reply, raw: bytes, answer: Answer
    ) -> StoredRecord | None:
        while True:
            if self._clock.monotonic() >= self._paused_until:
                try:
                    async with self._turn:
                        if len(raw) <= BIG:
                            found = self._write(page, url, copy, reply, raw, answer)
                        else:
                            loop = asyncio.get_running_loop()
                            found = await loop.run_in_executor(
                                self._thread, self._write, page, url, copy, reply, raw, answer
                            )
                    self._pause = ""
                    return found
                except OSError as error:
                    self._pause = self._failure(error)
                    self._index.close()  # else a disk that was unmounted could not be checked, or detached
                    self._paused_until = self._clock.monotonic() + PAUSE
            if self._options.full == "skip":
                return None
            await self._clock.sleep(PAUSE)

    def _failure(self, error: OSError) -> str:
        return f"{self._directory}: {error.strerror or error}"

    async def _text(self, url: str, copy: PageCopy) -> StoredText | None:
        """The text of a page that was read whole; that of a long one in a thread, one at a time."""
        if copy.parsed is not None:
            return stored_text(copy.parsed)
        if not copy.body or self._extract is None:
            return None
        page = copy.body, copy.charset, url
        try:
            if len(copy.body) <= BIG:
                found = self._extract(*page)
            else:
                found = await asyncio.get_running_loop().run_in_executor(self._texts, self._extract, *page)
        except Exception as error:  # a library's mistake costs the text of this page
            _log.warning("contents: %s: no text of it: %r", printable(url), error)
            return None
        if found is None:
            return None
        return stored_text(found)

    def _write(
        self, page: PageId | None, url: str, copy: PageCopy, reply: Reply, raw: bytes, answer: Answer
    ) -> StoredRecord | None:
        """The place of the record; None for a 304 that confirms a body which is not kept any more: the page's next read
        brings it whole."""
        cut = reply.tape is not None and reply.tape.cut
        word = "length" if answer.truncated == "ratio" else answer.truncated  # WARC has no word for it
        truncated = "" if reply.whole and not cut else word or ("length" if cut else "unspecified")
        request = masked(reply.request, self._options.private)
        http = HttpAnswer(
            url, answer.started, request, raw, answer.status, answer.mime, answer.address, truncated,
            signals(copy.refused),
        )  # fmt: skip
        signature = answer.signature if self._options.bytes_signature else b""
        earlier = self._earlier(page, http, signature)
        if earlier is None and page is not None and http.status == 304:
            return None
        written: Written = self._files.write(http, earlier)
        return StoredRecord(
            written.file, written.offset, written.length, written.payload, written.date, written.record,
            earlier is not None, signature,
        )  # fmt: skip

    def _earlier(self, page: PageId | None, http: HttpAnswer, signature: bytes) -> Earlier | None:
        """The record of the page that has the same payload, if there is one."""
        if page is None or http.status not in (200, 304) or http.truncated:
            return None
        last = None
        try:
            if http.status == 304:
                last = validated_record(self._index.open(), page, validators_digest(*_conditions(http.request)))
            else:
                last = latest_record(self._index.open(), page)
        except (XyroError, sqlite3.Error):  # not made yet, or its disk fails: the answer is kept whole
            self._index.close()
        if http.status == 304:
            return None if last is None else Earlier("not-modified", last.payload, last.date)
        if last is None or last.status != http.status:
            return None
        same = signature == last.signature if signature else sha1(split_answer(http.raw)[1]) == last.payload
        return Earlier("unchanged", last.payload, last.date) if same else None

    async def close(self) -> None:
        """Close the files."""
        self._thread.shutdown()
        self._texts.shutdown()
        with contextlib.suppress(OSError):  # no room for the index: the node mends, and tells what fails
            self._files.close()
        self._index.close()


def _conditions(request: bytes) -> tuple[str, str]:
    """(ETag, Last-Modified) that a request asks for changes since, as its headers have them; empty: none."""
    lines = (line.partition(b":") for line in request.split(b"\r\n")[1:])
    found = {name.lower(): value.strip().decode("latin-1") for name, _, value in lines}
    return found.get(b"if-none-match", ""), found.get(b"if-modified-since", "")
