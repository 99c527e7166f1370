"""Opens a partition: the newest snapshot of its hot state, the journal's after-images over it, then Map-Data.

The columns are as of the last synced batch afterwards. The fingerprints of pages that were minted after the snapshot
are in Map-Data only (`unindexed`); the partition adds them to its URL index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from xyro.metadata import rows
from xyro.metadata.columns import Columns
from xyro.metadata.partition import JOURNAL_FROM, Partition, Recovery, Witness
from xyro.metadata.snapshot import load_snapshot
from xyro.metadata.states import COLUMNS, OPTIONAL
from xyro.metadata.store import KeyValue, LookedAt, Store, StoreReader
from xyro.metadata.url_index import FingerprintTable
from xyro.metadata.version import VERSION
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import LocalPage

_CHUNK = 10_000
"""URLs that are added to the index at once"""


def open_partition(directory: Path, *, bits: int = 64, look: bool = False) -> Partition:
    """Open and recover a partition. InputError: no such crawl, another version, in use; MachineError: damaged.

    `bits`: width of the fingerprints where there is no snapshot yet. `look`: nothing is written.
    """
    store: KeyValue = LookedAt(directory / "store") if look else Store.open(directory / "store")
    try:
        facts, witness = _facts(directory, store), Witness(directory)
        recovery = recover(directory, store, bits, look)
        _compare(directory, recovery.commit, witness.last())
        return Partition(directory, store, facts, recovery, None if look else witness)
    except BaseException:
        store.close()
        raise


def _compare(directory: Path, commit: int, witnessed: int) -> None:
    """MachineError: the store has lost its end."""
    if commit < witnessed:
        raise MachineError(
            f"{directory}: the store ends with commit {commit:,}, but {witnessed:,} were made: the last "
            f"{witnessed - commit:,} are lost: {_mend(directory)}"
        )


def recover(directory: Path, store: StoreReader, bits: int = 64, look: bool = False) -> Recovery:
    """Return the hot state of a directory and its open store. MachineError: damaged."""
    loaded = load_snapshot(directory, COLUMNS, optional=OPTIONAL, look=look)
    columns = loaded.columns if loaded else Columns(COLUMNS, optional=OPTIONAL)
    table = loaded.table if loaded else FingerprintTable(bits)
    since, indexed = loaded.seq if loaded else 0, LocalPage(columns.n)
    packed = store.get(rows.META.key("scalars"))
    scalars: dict[str, Any] = msgpack.unpackb(packed) if packed else {}
    commit = scalars.get("commit", 0)
    first, replayed, size = _replay(directory, store, columns, since, commit)
    unindexed = _unindexed(directory, store, indexed, columns.n)
    return Recovery(columns, table, unindexed, scalars, commit, first, replayed, size)


def _replay(directory: Path, store: StoreReader, columns: Columns, since: int, commit: int) -> tuple[int, int, int]:
    """Replay the journal after the snapshot `since`, which must be whole: since + 1 ... commit.

    Returns the number of the oldest record, how many were replayed, and their bytes.
    """
    first = expected = since + 1
    size = 0
    oldest = msgpack.unpackb(store.get(JOURNAL_FROM) or b"\0")  # before it lie only marks of what was deleted
    for key, record in store.scan(rows.JOURNAL.prefix, rows.JOURNAL.key(min(oldest, since + 1))):
        number = rows.JOURNAL.split(key)
        first = min(first, number)
        if number <= since:
            continue
        if number != expected or number > commit:
            raise _torn(directory, number, since, commit)
        columns.replay(record)
        size += len(record)
        expected += 1
    if expected != commit + 1:
        raise _torn(directory, expected, since, commit)
    return first, expected - since - 1, size


def _torn(directory: Path, record: int, since: int, commit: int) -> MachineError:
    return MachineError(
        f"{directory}: the journal is not whole at record {record:,} (snapshot {since:,}, last commit {commit:,}): "
        + _mend(directory)
    )


def _unindexed(directory: Path, store: StoreReader, first: LocalPage, n: int) -> Iterator[tuple[LocalPage, list[str]]]:
    """Yield the URLs of the pages first ... n - 1 in chunks, each with its first page. MachineError: a hole."""
    page, chunk = first, list[str]()
    for key, value in store.scan(rows.MAP.prefix, rows.MAP.key(first)):
        if rows.MAP.split(key) != page + len(chunk):
            raise MachineError(f"{directory}: Map-Data has a hole at page {page + len(chunk)}: {_mend(directory)}")
        chunk.append(rows.unpack_map(value))
        if len(chunk) == _CHUNK:
            yield page, chunk
            page, chunk = LocalPage(page + len(chunk)), []
    yield page, chunk
    if page + len(chunk) != n:
        raise MachineError(
            f"{directory}: Map-Data knows {page + len(chunk):,} pages, the journal {n:,}: {_mend(directory)}"
        )


def _facts(directory: Path, store: StoreReader) -> Mapping[str, Any]:
    packed = store.get(rows.META.key("facts"))
    if packed is None:
        raise MachineError(f"{directory}: no facts of a crawl in its store: {_mend(directory)}")
    facts: dict[str, Any] = msgpack.unpackb(packed)
    found = facts.get("format")
    if found != VERSION:
        mend = f"run `xyro migrate --data {directory.parent}`" if found == 1 else "open it with the Xyro that wrote it"
        raise InputError(f"{directory.parent}: data of format {found}, this Xyro works on format {VERSION}: {mend}")
    return facts


def _mend(directory: Path) -> str:
    return f"restore a copy, or `xyro repair --data {directory.parent}`"
