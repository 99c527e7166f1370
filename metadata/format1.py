"""A partition of format 1 made one of the present format: its rows, columns and fingerprints, in a new directory.

    format 1                                            now
    flags: 16 bits                                      32 bits, those of optional features apart (states.py)
    Link-Data: 8 bytes ahead of the children            the children alone
    LEASE rows: epoch, priority, depth, attempt         WANTED rows: priority
    HOST rows: ... held, pages, trust, rates            without pages
    journal after the newest snapshot                   none: a snapshot of the last commit takes its place

All else is copied as it is. The old directory is read, never changed (LevelDB may tidy its own files).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.columns import Columns
from xyro.metadata.rows import WantedRow
from xyro.metadata.snapshot import load_snapshot, write_snapshot
from xyro.metadata.states import CLASS_SHIFT, COLUMNS, HASTENED, LEADS, OPTIONAL, QUERY, SOUGHT, WORDED
from xyro.metadata.store import KeyValue, Store
from xyro.metadata.url_index import FingerprintTable, UrlIndex
from xyro.metadata.version import VERSION
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Priority

FORMAT = 1
_BATCH = 1 << 20
"""bytes of rows in one write"""
_COLUMNS = {**COLUMNS, "flags": np.dtype(np.uint16)}
_SAME = np.uint32(0x007F)
"""flags that kept their place: LEASED, WANTED, HINTED, NAMED, the kind"""
_MOVED = {0x0800: WORDED, 0x1000: QUERY, 0x2000: SOUGHT, 0x4000: LEADS, 0x8000: HASTENED}
_CLASS_SHIFT, _CLASS_MASK = 7, 0x0780
_LINK_HEAD = struct.Struct("<BxHI")
_NUMBERED = frozenset(
    layout.prefix
    for layout in (
        *(rows.REFRESH, rows.STATUS, rows.DOCUMENT, rows.VERSIONS),
        *(rows.PUBLISHED, rows.SUBSCRIPTION, rows.KEYED, rows.TOPIC, rows.OUTBOX),
    )
)
"""families whose rows begin with a number that went from 1 to 2, and are the same but for that"""
_FACTS, _SCALARS, _COUNTS = (rows.META.key(name) for name in ("facts", "scalars", "documents"))


def facts_of(store: KeyValue) -> dict[str, Any]:
    """The facts of a partition, whatever its format. MachineError: there are none."""
    packed = store.get(_FACTS)
    if packed is None:
        raise MachineError("no facts of a crawl in a store: restore the directory from a copy")
    facts: dict[str, Any] = msgpack.unpackb(packed)
    return facts


def last_commit(store: KeyValue) -> int:
    """The number of a partition's last commit group; 0: there was none."""
    packed = store.get(_SCALARS)
    return msgpack.unpackb(packed).get("commit", 0) if packed else 0


def convert(old: Store, source: Path, target: Path) -> None:
    """Write what the partition in `source` (its store is open: `old`) holds to `target`, an empty directory."""
    store = Store.open(target / "store", create=True)
    try:
        _convert_rows(old, store)
        columns, table = _hot_state(old, source)
        for _ in write_snapshot(target, last_commit(old), _widened(columns), table):
            pass  # nothing changes meanwhile
    finally:
        store.close()


def convert_row(key: bytes, value: bytes) -> bytes | None:
    """The row's value in the present format; None: the row goes."""
    family = key[:1]
    if family == rows.JOURNAL.prefix:
        return None
    if family == rows.LINK.prefix:
        _, elsewhere, _ = _LINK_HEAD.unpack_from(value)
        return value[_LINK_HEAD.size + 8 * elsewhere :]
    if family == rows.WANTED.prefix:
        return rows.pack(WantedRow(Priority(msgpack.unpackb(value)[2])))
    if family == rows.HOST.prefix:
        fields = msgpack.unpackb(value, unicode_errors="surrogatepass")
        return bytes(msgpack.packb([VERSION, *fields[1:5], *fields[6:]], unicode_errors="surrogatepass"))
    if key == _FACTS:
        return bytes(msgpack.packb({**msgpack.unpackb(value), "format": VERSION}))
    return _renumbered(value) if family in _NUMBERED or key == _COUNTS else value


def convert_flags(old: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """The page flags, each in the place that it has now."""
    wide = old.astype(np.uint32)
    flags: NDArray[np.uint32] = wide & _SAME
    flags |= (wide & _CLASS_MASK) << (CLASS_SHIFT - _CLASS_SHIFT)
    for before, now in _MOVED.items():
        flags[wide & before != 0] |= now
    return flags


def _convert_rows(old: Store, store: Store) -> None:
    batch = store.batch()
    for key, value in old.scan(b""):
        converted = convert_row(key, value)
        if converted is not None:
            batch.put(key, converted)
        if batch.size >= _BATCH:
            store.write(batch)
            batch = store.batch()
    store.write(batch)


def _renumbered(row: bytes) -> bytes:
    """Return the row with the present number: the item after the head of its MessagePack list, 1 or 3 bytes long."""
    offset = 3 if row[:1] == b"\xdc" else 1
    if row[offset : offset + 1] != bytes([FORMAT]):
        raise MachineError("damaged store: a row is not of format 1: run `xyro audit` of the Xyro that wrote it")
    return row[:offset] + bytes([VERSION]) + row[offset + 1 :]


def _hot_state(old: Store, source: Path) -> tuple[Columns, FingerprintTable]:
    """Columns and fingerprints as of the last commit: newest snapshot, journal, Map-Data."""
    loaded = load_snapshot(source, _COLUMNS, optional=OPTIONAL, version=FORMAT)
    columns = loaded.columns if loaded else Columns(_COLUMNS, optional=OPTIONAL, version=FORMAT)
    table = loaded.table if loaded else FingerprintTable()
    number, fresh = loaded.seq if loaded else 0, LocalPage(columns.n)
    for key, record in old.scan(rows.JOURNAL.prefix, rows.JOURNAL.key(number + 1)):
        number += 1
        if rows.JOURNAL.split(key) != number:
            raise MachineError(f"{source}: the journal lacks record {number:,}: restore a copy")
        columns.replay(record)
    if number != last_commit(old):
        raise MachineError(f"{source}: the journal ends at record {number:,}: restore a copy")
    urls = [rows.unpack_map(value) for _, value in old.scan(rows.MAP.prefix, rows.MAP.key(fresh))]
    if fresh + len(urls) != columns.n:
        raise MachineError(f"{source}: Map-Data and the journal do not agree: restore a copy")
    clashes = {
        rows.CLASH.split(key): LocalPage(int.from_bytes(value, "big")) for key, value in old.scan(rows.CLASH.prefix)
    }
    index = UrlIndex(table, facts_of(old)["seed"], lambda page: "", clashes.get)
    for first in range(0, len(urls), 10_000):
        index.restore(urls[first : first + 10_000], LocalPage(fresh + first), bool(clashes))
    return columns, table


def _widened(old: Columns) -> Columns:
    """The columns of the present format."""
    columns = Columns(COLUMNS, optional=OPTIONAL)
    for name in old.spec:
        if name not in columns:
            columns.add(name, old.spec[name])
    n = old.n
    columns.grow(n)
    for name in old.spec:
        columns[name][:n] = convert_flags(old[name][:n]) if name == "flags" else old[name][:n]
    return columns
