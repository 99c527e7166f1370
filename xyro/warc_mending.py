"""Mends the WARC files that a killed process left open: a torn last member goes, the index beside becomes whole.

Only the end is read: from the last line of the index on, whose record is known to have been written before it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fastwarc.warc import WarcRecord, WarcRecordType

from xyro.warc_files import HttpAnswer, Written, cdxj_line, seal, told_by, warc_of

PATIENCE, TICK = 10.0, 0.02
"""seconds that a writer which is ending is waited for at most, and between two looks"""
STEP = 1 << 20
"""bytes of a file that are looked at together"""


def mend(directory: Path, *, wait: bool = True) -> list[str]:
    """Finish the files that a process left open: cut a torn last member off, make their index whole. Returns a line for
    each that was torn. OSError: the disk fails; what was not finished stays as it is.

    wait: for a writer that is just ending, PATIENCE at most; files that have a writer are passed over.
    """
    found = []
    for part in sorted(directory.glob("*.cdxj.part")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # its writer has finished it, or has it
            found.append(_mend(part, round(PATIENCE / TICK) if wait else 0))
    return [line for line in found if line]


def _lock(file: IO[bytes], tries: int) -> None:
    """BlockingIOError: it has a writer, also after so many tries."""
    pause = threading.Event()
    for _ in range(tries):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        pause.wait(TICK)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _mend(part: Path, tries: int) -> str:
    path = warc_of(part)
    with part.open("r+b") as index:
        _lock(index, tries)
        if not part.exists():  # while this waited
            return ""
        if not path.exists():
            part.unlink(missing_ok=True)
            return ""
        lines, end = _whole_lines(index.read(), path.stat().st_size)
        with path.open("r+b") as warc:
            found = list(members(warc, end))
            whole = found[-1][0] + found[-1][1] if found else end
            torn = path.stat().st_size - whole
            warc.truncate(whole)
            lines += [line for offset, length in found if (line := _line_of(warc, path.name, offset, length))]
            os.fsync(warc.fileno())
        index.seek(0)
        index.truncate()
        index.write("".join(lines).encode())
        index.flush()
        if whole:
            seal(path)
        else:
            path.unlink()
            part.unlink()
    return f"{path.name}: {torn:,} bytes of a record that was being written are cut off" if torn else ""


def _whole_lines(data: bytes, size: int) -> tuple[list[str], int]:
    """The lines whose records are in a file of this size, and where the last of these begins (0: at the beginning)."""
    lines, last = list[str](), 0
    for raw in data.splitlines(keepends=True):
        try:
            facts = json.loads(raw.split(b" ", 2)[2])
            begin, end = int(facts["offset"]), int(facts["offset"]) + int(facts["length"])
        except (ValueError, IndexError, KeyError, UnicodeDecodeError):
            break
        if not raw.endswith(b"\n") or end > size:
            break
        lines.append(raw.decode())
        last = begin
    if lines:
        lines.pop()  # its request may be torn; it is read again
    return lines, last


def members(file: IO[bytes], start: int = 0) -> Iterator[tuple[int, int]]:
    """(first byte, length) of each whole gzip member from `start` on."""
    file.seek(start)
    offset, inflate, length = start, zlib.decompressobj(31), 0
    while data := file.read(STEP):
        while data:
            try:
                inflate.decompress(data)
            except zlib.error:
                return
            rest = inflate.unused_data
            length += len(data) - len(rest)
            if not inflate.eof:
                break
            yield offset, length
            offset, inflate, length, data = offset + length, zlib.decompressobj(31), 0, rest


def _line_of(file: IO[bytes], name: str, offset: int, length: int) -> str:
    """The line of a record that has one."""
    file.seek(offset)
    record = WarcRecord.from_bytes(zlib.decompress(file.read(length), 31))
    if record.record_type not in (WarcRecordType.response, WarcRecordType.revisit):
        return ""
    kind = "revisit" if record.record_type == WarcRecordType.revisit else "response"
    headers = record.headers
    status, mime = told_by(record)
    answer = HttpAnswer(headers.get("WARC-Target-URI") or "", 0.0, b"", b"", status, mime)
    payload, date = headers.get("WARC-Payload-Digest") or "", headers.get("WARC-Date") or ""
    return cdxj_line(answer, kind, Written(name, offset, length, payload, date, ""))
