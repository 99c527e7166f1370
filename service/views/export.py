"""Writes rows to a file or standard output: JSON lines, CSV, Parquet (with the extra `parquet`: pyarrow).

A file is written under another name and renamed at the end, so it is never there in part; what is no regular file (a
pipe, a device) is written to as it comes. A name that ends in .gz is gzipped. On a terminal, what could steer it is
escaped. COLUMNS are the contract: every row has them, more may come.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from xyro.service.views.claim_evidence import COLUMNS as HOST_CLAIMS
from xyro.service.views.host_standing import HOST_STANDING
from xyro.wire.errors import InputError, MachineError
from xyro.wire.text import shown

COLUMNS: dict[str, dict[str, type]] = {
    "pages": {
        "id": int,
        "url": str,
        "host": str,
        "kind": str,
        "http_status": int,
        "state": str,
        "error": str,
        "depth": int,
        "importance": float,
        "importance_low": float,
        "importance_high": float,
        "convergence": float,
        "error_bound": float,
        "trend": float,
        "trend_low": float,
        "trend_high": float,
        "trend_day": float,
        "trend_day_low": float,
        "trend_day_high": float,
        "cash": int,
        "change_rate": float,
        "rate_from": str,
        "stale": float,
        "interval_s": int,
        "first_seen": str,
        "first_read": str,
        "last_read": str,
        "last_change": str,
        "next_read": str,
        "reads": int,
        "changes": int,
        "out_links": int,
        "signature": str,
        "refused": str,
    },
    "documents": {
        "id": int,
        "url": str,
        "kind": str,
        "format": str,
        "version": int,
        "versions": int,
        "read_at": str,
        "verdict": str,
        "problems": str,
        "dtd": str,
        "public_id": str,
        "root": str,
        "size": int,
        "depth": int,
        "elements": int,
        "tags": int,
        "parts": int,
        "changed": int,
        "digest": str,
        "mime": str,
        "charset": str,
        "importance": float,
        "change_rate": float,
        "rate_from": str,
        "stale": float,
        "refused": str,
    },
    "histories": {
        "path": str,
        "events": list,
        "between": list,
        "importance": float,
        "rate": float,
        "reads": int,
        "last_read": int,
        "stale": float,
    },
    "texts": {
        "id": int,
        "url": str,
        "version": int,
        "read_at": str,
        "checked_at": str,
        "importance": float,
        "change_rate": float,
        "stale": float,
        "gone": str,
        "title": str,
        "language": str,
        "published": str,
        "modified": str,
        "refused": str,
        "text": str,
        "markdown": str,
    },
    "warc": {
        "file": str,
        "records": int,
        "size": int,
        "first": str,
        "last": str,
        "importance": float,
        "node": int,
    },
    "links": {"source": int, "target": int, "source_url": str, "target_url": str, "stale": float},
    "hosts": {
        "host": str,
        "pages": int,
        "in_scope": int,
        "read": int,
        "unread": int,
        "errors": int,
        "importance": float,
        "site_rank": float,
        "external_inflow": float,
        "measured_inflow": float,
        "internal_share": float,
        "failures": int,
        "next_read": str,
        "held": str,
        "challenge": str,
        "challenges": int,
        **HOST_CLAIMS,
        **HOST_STANDING,
    },
}
"""columns of each table and their types; any may be null"""
ANSWERS: dict[str, dict[str, type]] = {
    "rank": {"url": str, "rank": float, "importance": float, "interest": float, "kind": str, "stale": float},
}
"""columns of results that are computed, not exported"""
TIMES = frozenset(
    ("first_seen", "first_read", "last_read", "last_change", "next_read", "read_at", "checked_at", "first", "last")
)
"""columns that are times: timestamps in Parquet; text by RFC 3339 elsewhere"""
PACKED, LEVEL = ".gz", 6
"""ending of gzipped files; 25 MB/s of JSON lines, a sixth of their size"""
ROWS_AT_ONCE = 50_000
"""rows of one Parquet row group"""
Row = dict[str, Any]


def _columns(table: str) -> dict[str, type]:
    return COLUMNS[table] if table in COLUMNS else ANSWERS[table]


def form_of(form: str | None, out: Path | None) -> str:
    """The form that was asked for; without one, what the file's name ends in, else JSON lines.

    InputError: the name promises a form that is not written.
    """
    ending = _plain_name(out).suffix.removeprefix(".").lower() if out is not None else ""
    if form or ending in _WRITERS:
        return form or ending
    if ending not in _PLAIN_ENDINGS:
        known = ".jsonl, .csv or .parquet (.gz behind the first two)"
        raise InputError(f"-o {out}: .{ending} is not written; end it in {known}, or add --format")
    return "jsonl"


def _is_packed(out: Path) -> bool:
    return out.suffix.lower() == PACKED


def _plain_name(out: Path) -> Path:
    return out.with_suffix("") if _is_packed(out) else out


def check(form: str, out: Path | None) -> None:
    """InputError where `write_rows` would fail before its first row; nothing is made."""
    if form == "parquet":
        if out is None:
            raise InputError("--format parquet: writes a file; name it with -o FILE")
        if _is_packed(out):
            raise InputError(f"-o {out}: Parquet is compressed by itself; leave out {PACKED}")
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise InputError("--format parquet: needs pyarrow; install it with `pip install 'xyro[parquet]'`") from None
    if out is not None and not out.parent.is_dir():
        raise InputError(f"-o {out}: there is no directory {out.parent}; make it first")


def write_rows(table: str, rows: Iterable[Row], form: str, out: Path | None) -> int:
    """Write all rows, to standard output if `out` is None; returns how many. MachineError: the disk failed."""
    write = _WRITERS[form]
    try:
        if out is None:
            out_stream: IO[str] = _Terminal() if sys.stdout.isatty() else sys.stdout
            count = write(table, rows, out_stream)
            sys.stdout.flush()
            return count
        packed = _is_packed(out)

        def write_to(file: IO[bytes]) -> int:
            with _stream(file, form, packed) as stream:
                return write(table, rows, stream)

        if out.exists() and not out.is_file():
            with out.open("wb") as file:
                return write_to(file)
        return _whole(out, write_to)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise MachineError(f"{out or 'standard output'}: {error.strerror or error}: free or mend the disk") from error


def write_bytes(data: bytes, out: Path | None) -> None:
    """Bytes as they are, to standard output if `out` is None; on a terminal what would steer it is escaped. InputError:
    there is no such directory."""
    check("jsonl", out)
    try:
        if out is None and sys.stdout.isatty():
            _Terminal().write(data.decode("utf-8", "backslashreplace"))
        elif out is None:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        elif out.exists() and not out.is_file():
            out.write_bytes(data)
        else:
            _whole(out, lambda file: file.write(data))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise MachineError(f"{out or 'standard output'}: {error.strerror or error}: free or mend the disk") from error


class _Terminal(io.StringIO):
    """Standard output that is a terminal: what strangers wrote shall not steer it."""

    def write(self, text: str) -> int:
        return sys.stdout.write(shown(text))


@contextlib.contextmanager
def _stream(file: IO[bytes], form: str, packed: bool) -> Iterator[IO[Any]]:
    """The stream, above a file, that the writer of a form writes to."""
    if form == "parquet":
        yield file
    elif packed:
        with gzip.GzipFile("", "wb", LEVEL, file) as below, io.TextIOWrapper(below, "utf-8", newline="") as text:
            yield text
    else:
        with io.TextIOWrapper(file, "utf-8", newline="") as text:
            yield text


def _whole(out: Path, write: Callable[[IO[bytes]], int]) -> int:
    fresh = out.with_name(f".{out.name}.new")
    try:
        with fresh.open("wb") as file:
            count = write(file)
        fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
    return count


def _jsonl(_: str, rows: Iterable[Row], out: IO[str]) -> int:
    count = 0
    for row in rows:
        out.write(json.dumps(row) + "\n")
        count += 1
    return count


def _csv(table: str, rows: Iterable[Row], out: IO[str]) -> int:
    count = 0
    writer = csv.DictWriter(out, _columns(table), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
        count += 1
    return count


def _parquet(table: str, rows: Iterable[Row], out: IO[bytes]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    columns = _columns(table)
    times = [name for name in columns if name in TIMES]
    fields = {name: types[kind] for name, kind in columns.items()} | dict.fromkeys(times, pa.timestamp("ms", tz="UTC"))
    schema = pa.schema(list(fields.items()))
    count = 0
    with pq.ParquetWriter(out, schema) as writer:
        for part in _parts(rows, ROWS_AT_ONCE):
            for row in part:
                row.update({name: datetime.fromisoformat(row[name]) for name in times if row.get(name)})
            writer.write_table(pa.Table.from_pylist(part, schema=schema))
            count += len(part)
    return count


_PLAIN_ENDINGS = frozenset(("", "json", "ndjson", "txt"))
"""endings of names that promise no other form than lines of JSON"""
_WRITERS: dict[str, Callable[[str, Iterable[Row], IO[Any]], int]] = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}


def _parts(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rows = iter(rows)
    for first in rows:
        yield list(chain([first], islice(rows, size - 1)))
