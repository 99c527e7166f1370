"""The links of a crawl as arrays: a pass over its rows, in chunks, so that RAM holds 16 bytes a link and no more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xyro.wire.errors import InputError

if TYPE_CHECKING:
    import pyarrow

CHUNK = 65_536
"""rows that are turned together"""
UNKNOWN = -1
Links = Iterable[Mapping[str, Any]]


def link_pairs(rows: Links) -> NDArray[np.int64]:
    """int64[n, 2]: the ids of source and target of each link; UNKNOWN of a target whose page is not known."""
    ends = (end for row in rows for end in (row["source"], UNKNOWN if row["target"] is None else row["target"]))
    return np.fromiter(ends, np.int64).reshape(-1, 2)


def link_table(rows: Links) -> pyarrow.Table:
    """A table of source, target (null: not known), source_url, target_url and stale (null: its source is
    not there any more). InputError: pyarrow is not there."""
    try:
        import pyarrow
    except ImportError:
        raise InputError("links(\"arrow\"): pip install 'xyro[parquet]' brings pyarrow") from None
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    schema = pyarrow.schema([
        *(pyarrow.field(name, pyarrow.int64()) for name in ("source", "target")),
        *(pyarrow.field(name, text) for name in ("source_url", "target_url")),
        pyarrow.field("stale", pyarrow.float64()),
    ])  # fmt: skip
    batches = [pyarrow.RecordBatch.from_pylist(chunk, schema=schema) for chunk in _chunks(rows)]
    return pyarrow.Table.from_batches(batches, schema=schema).unify_dictionaries()


def _chunks(rows: Links) -> Iterator[list[dict[str, Any]]]:
    source = iter(rows)
    while chunk := [dict(row) for row in itertools.islice(source, CHUNK)]:
        yield chunk
