"""Rows to a file or standard output: JSON lines, CSV, Parquet (with the extra `parquet`: pyarrow)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from wire.errors import InputError, MachineError

FORMATS = ("jsonl", "csv", "parquet")
COLUMNS = {
    "pages": (
        *("id", "url", "host", "kind", "http_status", "state", "error", "depth", "importance", "cash", "change_rate"),
        *("interval_s", "first_seen", "first_read", "last_read", "last_change", "next_read", "reads", "changes"),
        *("out_links", "signature"),
    ),
    "links": ("source", "target", "source_url", "target_url"),
    "hosts": ("host", "pages", "read", "unread", "errors", "importance", "failures", "next_read", "held"),
}
"""columns of each table, so that an empty table has its heading too"""
Row = dict[str, Any]


def write_rows(table: str, rows: Iterable[Row], form: str, out: IO[str] | Path) -> int:
    """Write all rows; returns how many. MachineError where the disk fails."""
    try:
        if form == "parquet":
            if not isinstance(out, Path):
                raise InputError("--format parquet: writes a file; name it with -o FILE")
            return _parquet(rows, out)
        if isinstance(out, Path):
            with out.open("w", encoding="utf-8", newline="") as file:
                return _text(table, rows, form, file)
        return _text(table, rows, form, out)
    except OSError as error:
        raise MachineError(
            f"{out if isinstance(out, Path) else 'standard output'}: {error.strerror or error}"
        ) from error


def _text(table: str, rows: Iterable[Row], form: str, out: IO[str]) -> int:
    count = 0
    if form == "csv":
        writer = csv.DictWriter(out, COLUMNS[table], lineterminator="\n")
        writer.writeheader()
        for count, row in enumerate(rows, 1):
            writer.writerow(row)
        return count
    for count, row in enumerate(rows, 1):
        out.write(json.dumps(row) + "\n")
    return count


def _parquet(rows: Iterable[Row], path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("--format parquet: needs pyarrow; install it with `pip install 'xyro[parquet]'`") from None
    count, writer, schema = 0, None, None
    for part in _parts(rows, 50_000):
        batch = pa.Table.from_pylist(part, schema=schema)
        if writer is None:
            schema = pa.schema([_typed(pa, field) for field in batch.schema])
            batch = pa.Table.from_pylist(part, schema=schema)
            writer = pq.ParquetWriter(path, schema)
        writer.write_table(batch)
        count += len(part)
    if writer is None:
        pq.write_table(pa.table({}), path)
    else:
        writer.close()
    return count


def _typed(pa: Any, field: Any) -> Any:
    """A column that is empty in the first part may hold text or numbers later: text for all but known numbers."""
    if pa.types.is_null(field.type):
        numbers = {
            "http_status": pa.int64(),
            "interval_s": pa.int64(),
            "out_links": pa.int64(),
            "change_rate": pa.float64(),
        }
        return pa.field(field.name, numbers.get(field.name, pa.string()))
    return field


def _parts(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rows = iter(rows)
    for first in rows:
        yield list(chain([first], islice(rows, size - 1)))
