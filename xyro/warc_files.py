"""WARC 1.1 files as one process writes them: one gzip member a record, a CDXJ line beside each answer, rolled by size.

    NAME.warc.gz     CRAWL-NODE-TIME-PROCESS-NUMBER; begins with a warcinfo record
    NAME.cdxj.part   while it is written: a line for each answer, in the file's order; locked by its writer
    NAME.cdxj        once it is closed: the same lines, sorted
    NAME.cdxj.fresh  beside one with revisits, until they were looked up in the index of contents (retention.py)

A record is written by one call, its line after it. So a kill leaves at most a torn last member and a torn or missing
last line: warc_mending.py cuts the first off and makes the second good. Nothing here waits for the
disk: whoever says that a record is there calls fsync first (plugins/contents).
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from fastwarc.warc import WarcRecord, WarcRecordType

from xyro.archive_disk import ArchiveDisk
from xyro.surt import surt

SERVER_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
PROFILES = {
    "unchanged": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
    "not-modified": SERVER_NOT_MODIFIED,
}
"""why an answer is a revisit -> the profile that WARC 1.1 names it by"""
LEVEL = 4
"""of gzip: 25 kB of HTML in 0.24 ms; level 9 takes .55 ms for 4 % less, level 1 .16 ms for 12 % more"""
FIELDS = "application/warc-fields"
"""media type of what warcinfo and metadata records say"""
GZIP = 31
"""window bits of zlib that make a gzip member"""
GONE = ".gone"
"""ending of the file beside an index that has the places of lines to be left out: a number a line"""
FRESH = ".fresh"
"""ending of the empty file beside an index whose revisits nobody has looked up yet"""
REVISIT = b'"mime": "warc/revisit"'
"""what a line of an index says of a revisit"""
_HEAD = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/[0-9.]+ +([0-9]{3})")
_MIME = re.compile(rb"(?im)^content-type: *([^\s;]+)")
_INTERIM = re.compile(rb"HTTP/[0-9.]+ +1[0-9][0-9][ \r\n]")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One answer on its way into a file. Times are seconds since 1970."""

    url: str
    started: float
    request: bytes
    """the head of the request as it was sent"""
    raw: bytes
    """the answer as it came"""
    status: int
    mime: str = ""
    address: str = ""
    truncated: str = ""
    """WARC's words: length | time | disconnect | unspecified; empty for a whole answer"""
    refused: str = ""
    """uses that the site's robots.txt refuses, as Content-Signal writes them"""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The record that a revisit refers to. `payload`: its WARC-Payload-Digest; `date`: its WARC-Date."""

    reason: str
    """a key of PROFILES"""
    payload: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """The place of a record: file name, first byte and length of its member; digest and date as it says them."""

    file: str
    offset: int
    length: int
    payload: str
    date: str
    record: str
    """WARC-Record-ID"""


def split_answer(raw: bytes) -> tuple[bytes, bytes]:
    """(head with its empty line, body) of an answer as it came; interim answers (1xx) belong to the head."""
    start = 0
    while _INTERIM.match(raw, start) and (found := _HEAD.search(raw, start)):
        start = found.end()
    found = _HEAD.search(raw, start)
    end = found.end() if found else len(raw)
    return raw[:end], raw[end:]


def told_by(record: WarcRecord) -> tuple[int, str]:
    """(status, media type) of the answer that a response or revisit record is of; 0 and empty where it says none."""
    head, _ = split_answer(record.reader.read())
    if not head and record.headers.get("WARC-Profile") == SERVER_NOT_MODIFIED:
        return 304, ""
    status, mime = _STATUS.match(head), _MIME.search(head)
    return int(status[1]) if status else 0, mime[1].decode("latin-1").lower() if mime else ""


def sha1(data: bytes) -> str:
    """A digest as WARC files have it: sha1:BASE32."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def cdxj_line(answer: HttpAnswer, kind: str, written: Written) -> str:
    """A line of the index: key, 14 digits of time, JSON."""
    moment = written.date.translate({ord(c): None for c in "-:TZ"})[:14]
    facts: dict[str, Any] = {
        "url": answer.url,
        "mime": "warc/revisit" if kind == "revisit" else answer.mime or "unk",
        "status": str(answer.status),
        "digest": written.payload,
        "length": str(written.length),
        "offset": str(written.offset),
        "filename": written.file,
    }
    return f"{surt(answer.url)} {moment} {json.dumps(facts, ensure_ascii=False)}\n"


@dataclass(slots=True)
class WarcFile:
    """The file that is being written."""

    path: Path
    warc: IO[bytes]
    index: IO[bytes]
    info: str
    """WARC-Record-ID of its warcinfo"""
    size: int = 0
    """bytes of whole records"""
    lines: int = 0
    """bytes of whole lines of the index"""


@dataclass(slots=True)
class WarcFiles:
    """`crawl`, `node`: words of the file names; `file_bytes`: a file that has so many is closed; `facts`: fields of
    each warcinfo. `write` and `write_metadata` raise OSError where the disk fails, and leave the file as before, or to
    `mend`: a new one begins when there is room."""

    directory: Path
    crawl: str
    node: str
    file_bytes: int
    facts: Mapping[str, str] = field(default_factory=dict)
    _open: WarcFile | None = None
    _number: int = 0
    _disk: ArchiveDisk = field(init=False)

    def __post_init__(self) -> None:
        self._disk = ArchiveDisk(self.directory)

    def write(self, answer: HttpAnswer, earlier: Earlier | None = None) -> Written:
        """Write an answer (a revisit where an earlier record has its payload) and its request."""
        file = self._file(answer.started)
        head, body = split_answer(answer.raw)
        kind = WarcRecordType.revisit if earlier else WarcRecordType.response
        record = _record(kind, answer.url, answer.started, file.info)
        record.headers["Content-Type"] = "application/http; msgtype=response"
        payload = earlier.payload if earlier else sha1(body)
        if payload:
            record.headers["WARC-Payload-Digest"] = payload
        if answer.address:
            record.headers["WARC-IP-Address"] = answer.address
        if answer.refused:
            record.headers["X-Content-Signal"] = answer.refused
        if earlier:
            record.headers["WARC-Profile"] = PROFILES[earlier.reason]
            record.headers["WARC-Refers-To-Target-URI"] = answer.url
            if earlier.date:
                record.headers["WARC-Refers-To-Date"] = earlier.date
        elif answer.truncated:
            record.headers["WARC-Truncated"] = answer.truncated
        unmodified = earlier is not None and earlier.reason == "not-modified"
        response = _packed(record, b"" if unmodified else head if earlier else answer.raw)
        name = record.headers["WARC-Record-ID"]
        request = _record(WarcRecordType.request, answer.url, answer.started, file.info)
        request.headers["Content-Type"] = "application/http; msgtype=request"
        request.headers["WARC-Concurrent-To"] = name
        place = Written(file.path.name, file.size, len(response), payload, record.headers["WARC-Date"], name)
        line = cdxj_line(answer, "revisit" if earlier else "response", place)
        members = response + _packed(request, answer.request)
        if unmodified:
            members += _packed_head(answer, name, file.info, head)
        self._append(file, members, line)
        return place

    def write_metadata(self, url: str, time: float, record: str, fields: Mapping[str, str]) -> None:
        """Write what is known of the page behind a record (application/warc-fields)."""
        file = self._file(time)
        metadata = _record(WarcRecordType.metadata, url, time, file.info)
        metadata.headers["Content-Type"] = FIELDS
        metadata.headers["WARC-Concurrent-To"] = record
        self._append(file, _packed(metadata, _fields(fields)), "")

    def sync(self) -> None:
        """Wait until all that was written is on disk. OSError: the disk fails."""
        if self._open is not None:
            os.fsync(self._open.warc.fileno())

    def close(self) -> None:
        """Close the file that is being written; its index is sorted. OSError: there is no room for that; `mend` does
        it later."""
        if self._open is not None:
            file = self._open
            try:
                seal(file.path)
            finally:
                self._abandon(file)

    def let_go(self) -> None:
        """Close the file being written if somebody removed it, or its disk: what is written there is nowhere."""
        if self._open is not None and not _is_at(self._open.path, self._open.warc):
            self._abandon(self._open)

    def _abandon(self, file: WarcFile) -> None:
        """Write no more to a file; whether it is whole, `mend` will see."""
        self._open = None
        file.warc.close()
        file.index.close()

    def _file(self, time: float) -> WarcFile:
        self.let_go()
        if self._open is not None and self._open.size >= self.file_bytes:
            os.fsync(self._open.warc.fileno())
            self.close()
        if self._open is None:
            self._open = self._begin(time)
        return self._open

    def _begin(self, time: float) -> WarcFile:
        self._disk.check()
        self._number += 1
        moment = datetime.fromtimestamp(time, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
        name = f"{self.crawl}-{self.node}-{moment}-{os.getpid()}-{self._number:05d}"
        path = self.directory / f"{name}.warc.gz"
        info = _record(WarcRecordType.warcinfo, "", time, "")
        info.headers["Content-Type"] = FIELDS
        info.headers["WARC-Filename"] = path.name
        index = (self.directory / f"{name}.cdxj.part").open("xb", buffering=0)
        try:
            fcntl.flock(index, fcntl.LOCK_EX)
            file = WarcFile(path, path.open("xb", buffering=0), index, info.headers["WARC-Record-ID"])
        except OSError:
            index.close()
            with contextlib.suppress(OSError):
                Path(index.name).unlink(missing_ok=True)
            raise
        try:
            self._append(file, _packed(info, _fields({"format": "WARC file version 1.1", **self.facts})), "")
            _sync(self.directory)
        except OSError:
            self._abandon(file)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                Path(index.name).unlink(missing_ok=True)
            raise
        return file

    def _append(self, file: WarcFile, members: bytes, line: str) -> None:
        """Write members and their line, or neither."""
        text = line.encode("utf-8", "replace")
        try:
            _write_all(file.warc, members)
            _write_all(file.index, text)
        except OSError:
            try:
                _cut(file.warc, file.size)
                _cut(file.index, file.lines)
            except OSError:  # a disk that takes nothing any more: nothing may follow what is torn
                self._abandon(file)
            raise
        file.size += len(members)
        file.lines += len(text)


def _write_all(file: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _cut(file: IO[bytes], size: int) -> None:
    file.truncate(size)
    file.seek(size)


def _is_at(path: Path, file: IO[bytes]) -> bool:
    """The path is that of the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except OSError:
        return False


def _record(kind: WarcRecordType, url: str, time: float, info: str) -> WarcRecord:
    record = WarcRecord()
    record.init_headers(record_type=kind)
    record.headers["WARC-Date"] = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if url:
        record.headers["WARC-Target-URI"] = url
    if info:
        record.headers["WARC-Warcinfo-ID"] = info
    return record


def _packed(record: WarcRecord, block: bytes) -> bytes:
    """One record as one gzip member.

    Packed here, in one call: fastwarc's GzipWriter takes 70 to 300 us to begin and end a member, which is more than
    the member of a request takes to write.
    """
    out = io.BytesIO()
    record.headers["WARC-Block-Digest"] = sha1(block)
    record.set_bytes_content(block)
    record.write(out)
    return zlib.compress(out.getbuffer(), LEVEL, GZIP)


def _packed_head(answer: HttpAnswer, name: str, info: str, head: bytes) -> bytes:
    """The head of an answer 304, of which its revisit has nothing.

    A head in a revisit is what replay shows, and of a 304 pywb shows just that; without one it shows the answer that
    the revisit refers to. The head is told in fields, the first of them its status line: what is no FIELDS pywb takes
    for a capture.
    """
    record = _record(WarcRecordType.metadata, answer.url, answer.started, info)
    record.headers["Content-Type"] = FIELDS
    record.headers["WARC-Concurrent-To"] = name
    return _packed(record, b"status: " + head)


def _fields(fields: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in fields.items()).encode()


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def warc_of(index: Path) -> Path:
    """The WARC file that an index is of."""
    return index.with_name(index.name.removesuffix(".part").removesuffix(".cdxj") + ".warc.gz")


def index_of(path: Path) -> Path:
    """The index of a WARC file that is closed."""
    return path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj")


def seal(path: Path) -> None:
    """Sort the index of a file that is whole. OSError: there is no room; all stays as it is."""
    final = index_of(path)
    part = final.with_name(final.name + ".part")
    with _alone(path.parent):
        lines = sorted(part.read_bytes().splitlines(keepends=True))
        if any(REVISIT in line for line in lines):
            final.with_name(final.name + FRESH).touch()
        _write_index(final, lines)
        part.unlink()
    _sync(path.parent)


def drop_lines(path: Path, places: Iterable[int]) -> None:
    """Take the records that begin at these bytes of a file out of its index; where the file is being written, once it
    is closed: their places wait in a file beside. OSError: there is no room for that."""
    final = index_of(path)
    with _alone(path.parent):
        with final.with_name(final.name + GONE).open("a") as file:
            file.writelines(f"{place}\n" for place in places)
        if final.exists():  # else `seal` reads it
            _write_index(final, final.read_bytes().splitlines(keepends=True))


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Nobody else closes an index in the directory, or takes lines out of one, meanwhile."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_index(final: Path, lines: Sequence[bytes]) -> None:
    """Write an index without the lines whose places wait beside it. OSError: there is no room; all stays."""
    beside = final.with_name(final.name + GONE)
    try:
        gone = {int(place) for place in beside.read_text().split()}
    except FileNotFoundError:
        gone = set()
    fresh = final.with_name(final.name + ".new")
    try:
        with fresh.open("wb") as file:
            file.writelines(line for line in lines if not gone or _place_of(line) not in gone)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    fresh.rename(final)
    beside.unlink(missing_ok=True)


def _place_of(line: bytes) -> int:
    """The first byte of the record that a line leads to."""
    return int(json.loads(line.split(b" ", 2)[2])["offset"])
