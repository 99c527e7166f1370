"""Snapshots of the hot state: columns and fingerprint table in one file, copied while both go on changing.

A snapshot of record `seq` holds every change of journal records <= seq and any part of the later ones: replaying the
records after `seq` makes it exact (columns.py), as they say what values are. Two duties are the caller's:

    1. `seq` is the last record taken by `columns.after_images()` when the snapshot begins.
    2. When the generator yields Step.COPIED, every change made so far must be in a *synced* journal record before it is
       resumed. Otherwise a power cut could leave a snapshot that is ahead of the journal, with cash that never moved.

Older journal records than those after `oldest_snapshot(directory)` are no longer needed.

A file is a run of frames: tag, what, start, length, checksum (xxh3 of the frame), payload. HEAD first, then EXTRA, the
columns in chunks of rows, the fingerprints with their ids (only ids < n: the caller learns later ones from Map-Data),
and END with the number of frames. It is written under a temporary name, synced, renamed, and the directory is synced:
under its final name it is whole. The newest two are kept, so that one damaged by the disk costs only a longer replay.
"""

from __future__ import annotations

import bisect
import enum
import logging
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from xxhash import xxh3_64

from xyro.metadata.columns import CAPACITY, Columns, text_of
from xyro.metadata.url_index import MISSING, FingerprintTable
from xyro.metadata.version import VERSION
from xyro.wire.errors import InputError, MachineError

CHUNK = 1 << 21
"""bytes copied between two yields: 0.4 ms of copying, 1-2 ms with the write"""
SYNC_EVERY = 1 << 25
"""bytes between two fsyncs, so that no single one takes long"""
MAX_SNAPSHOTS = 2

_FRAME = struct.Struct("<4sIQIQ")
_CHECKED = struct.Struct("<4sIQI")
_PAIR = np.dtype("<u4").itemsize + np.dtype("<u8").itemsize
_log = logging.getLogger(__name__)


class SnapshotStep(enum.Enum):
    """A pause in the writing of a snapshot."""

    CHUNK = "some more is copied"
    COPIED = "all is copied and synced; resumed, it becomes valid: the journal must be synced up to now"


class Snapshot(NamedTuple):
    """The result of `load_snapshot`."""

    seq: int
    """replay the journal records after this one"""
    columns: Columns
    table: FingerprintTable
    """of the pages < columns.n, but those whose fingerprint another one owns"""
    extra: bytes


class _Head(msgspec.Struct, frozen=True, array_like=True):
    version: int
    seq: int
    n: int
    columns: tuple[tuple[str, str], ...]
    bits: int


class _Frame(NamedTuple):
    """A frame of a snapshot file. `what`: number of the column; `start`: first row, or frames before (END), or 0."""

    tag: bytes
    column: int
    start: int
    payload: bytes


class _Place(NamedTuple):
    """Fingerprints in a snapshot file: where their payload lies, and the header before it."""

    offset: int
    length: int
    header: bytes


class _Damaged(Exception):
    """The file is no valid snapshot, for this reason."""


def write_snapshot(
    directory: Path, seq: int, columns: Columns, table: FingerprintTable, extra: bytes = b""
) -> Iterator[SnapshotStep]:
    """Write one snapshot, yielding after each chunk; valid only when exhausted. Abandoned, it leaves no trace but a
    temporary file that the next one removes.

    `next` may be called from another thread than the one that changes columns and table. Raises MachineError if the
    disk fails; then the earlier snapshots stand.
    """
    final = _path(directory, seq)
    temporary = final.with_suffix(".tmp")
    try:
        for stale in directory.glob("snapshot-*.tmp"):
            stale.unlink()
        with temporary.open("wb", buffering=0) as file:
            yield from _write(file, _frames(seq, columns, table, extra))
        yield SnapshotStep.COPIED
        temporary.rename(final)
        _sync_directory(directory)
        for old in _snapshots(directory)[MAX_SNAPSHOTS:]:
            old.unlink()
    except OSError as error:
        raise MachineError(f"cannot write a snapshot to {directory}: {error}: free or mend the disk") from error


def load_snapshot(
    directory: Path,
    spec: Mapping[str, DTypeLike],
    *,
    capacity: int = CAPACITY,
    optional: Iterable[str] = (),
    version: int = VERSION,
    report: Callable[[str], None] = _log.warning,
    look: bool = False,
) -> Snapshot | None:
    """The newest valid snapshot, or None if none was ever finished. A damaged one is reported and skipped.

    `optional` columns are there if they are in the file. `look`: fingerprints stay in the file until wanted.

    Raises MachineError if there are snapshots and all are damaged (an older journal is gone, so the state is not to be
    had from here), InputError if one was written by another version or with other columns.
    """
    files = _snapshots(directory)
    reasons = []
    for path in files:
        try:
            return _load(path, Columns(spec, capacity, optional, version), look)
        except (_Damaged, OSError) as error:
            reasons.append(f"snapshot {path} is damaged: {error}")
            report(f"{reasons[-1]}: taking an older one")
    if files:
        raise MachineError(f"no valid snapshot: {'; '.join(reasons)}: restore a copy, or `xyro repair`")
    return None


def oldest_snapshot(directory: Path) -> int | None:
    """`seq` of the oldest snapshot kept: the journal must reach back to the record after it."""
    files = _snapshots(directory)
    return int(files[-1].stem.removeprefix("snapshot-")) if files else None


def _path(directory: Path, seq: int) -> Path:
    return directory / f"snapshot-{seq:020d}.bin"


def _snapshots(directory: Path) -> list[Path]:
    """Newest first."""
    return sorted(directory.glob("snapshot-" + "[0-9]" * 20 + ".bin"), reverse=True)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Writing


def _frames(seq: int, columns: Columns, table: FingerprintTable, extra: bytes) -> Iterator[_Frame]:
    n = columns.n
    views = [columns[name][:n] for name in columns.spec]  # optional ones may go meanwhile: the journal tells
    head = _Head(VERSION, seq, n, _layout(columns.spec), table.bits)
    yield _Frame(b"HEAD", 0, 0, msgspec.msgpack.encode(head))
    yield _Frame(b"EXTR", 0, 0, extra)
    for number, column in enumerate(views):
        yield from _column_frames(number, column)
    yield from _table_frames(table, n)


def _column_frames(number: int, column: NDArray[Any]) -> Iterator[_Frame]:
    rows = max(1, CHUNK // column[:1].nbytes) if len(column) else 1
    disk = column.dtype.newbyteorder("<")
    for start in range(0, len(column), rows):
        yield _Frame(b"COLU", number, start, column[start : start + rows].astype(disk).tobytes())


def _table_frames(table: FingerprintTable, n: int) -> Iterator[_Frame]:
    """Fingerprints and ids below n of several segments together; whole segments are what inserts fastest."""
    parts: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = []
    size = 0
    for fps, ids in table.segments():
        present = ids < n
        parts.append((fps[present], ids[present]))
        size += len(ids) * _PAIR
        if size >= CHUNK:
            yield _pairs(parts)
            parts, size = [], 0
    yield _pairs(parts)


def _pairs(parts: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]]) -> _Frame:
    fps = b"".join(fps.astype("<u8", copy=False).tobytes() for fps, _ in parts)
    ids = b"".join(ids.astype("<u4", copy=False).tobytes() for _, ids in parts)
    return _Frame(b"FPID", 0, 0, fps + ids)


def _write(file: BinaryIO, frames: Iterator[_Frame]) -> Iterator[SnapshotStep]:
    unsynced = count = 0
    for frame in frames:
        unsynced += _write_frame(file, frame)
        count += 1
        if unsynced >= SYNC_EVERY:
            os.fsync(file.fileno())
            unsynced = 0
        yield SnapshotStep.CHUNK
    _write_frame(file, _Frame(b"END.", 0, count, b""))
    os.fsync(file.fileno())


def _write_frame(file: BinaryIO, frame: _Frame) -> int:
    checked = _CHECKED.pack(frame.tag, frame.column, frame.start, len(frame.payload))
    whole = memoryview(checked + _checksum(checked, frame.payload).to_bytes(8, "little") + frame.payload)
    done = 0
    while done < len(whole):
        done += file.write(whole[done:])
    return done


def _checksum(checked: bytes, payload: bytes | memoryview) -> int:
    state = xxh3_64(checked)
    state.update(payload)
    return state.intdigest()


def _layout(spec: Mapping[str, np.dtype[Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text_of(dtype)) for name, dtype in spec.items())


# Reading


def _load(path: Path, columns: Columns, look: bool) -> Snapshot:
    """Fill `columns`, which are new."""
    capacity, passed = columns.capacity, list[_Place]()
    with path.open("rb") as file:
        frames = _read(file, path.stat().st_size, passed if look else None)
        head = _head(next(frames, None), path, columns)
        if head.n > capacity:
            raise InputError(f"{path}: {head.n:,} pages, room for {capacity:,}: raise the partition's capacity")
        table = StoredFingerprints(path, passed, head.bits) if look else FingerprintTable(head.bits, capacity)
        columns.follow(head.columns)
        columns.grow(head.n)
        filled = dict.fromkeys(range(len(columns.spec)), 0)
        extra = b""
        for frame in frames:
            if frame.tag == b"COLU":
                filled[frame.column] = _fill(columns, frame, filled)
            elif frame.tag == b"FPID":
                _insert(table, frame.payload)
            elif frame.tag == b"EXTR":
                extra = bytes(frame.payload)
    if any(rows != head.n for rows in filled.values()):
        raise _Damaged("a column is not whole")
    columns.settle()
    return Snapshot(head.seq, columns, table, extra)


def _read(file: BinaryIO, size: int, passed: list[_Place] | None = None) -> Iterator[_Frame]:
    """All sound frames before END; raises _Damaged at the first that is not. passed: fingerprints are passed over, and
    where they lie is noted here."""
    count = 0
    while True:
        header = file.read(_FRAME.size)
        if len(header) < _FRAME.size:
            raise _Damaged(f"it ends after {count} frames")
        tag, column, start, length, checksum = _FRAME.unpack(header)
        if length > size:
            raise _Damaged(f"frame {count} is longer than the file")
        if tag == b"FPID" and passed is not None:
            passed.append(_Place(file.tell(), length, header))
            file.seek(length, os.SEEK_CUR)
            count += 1
            continue
        payload = file.read(length)
        if len(payload) < length or _checksum(header[: _CHECKED.size], payload) != checksum:
            raise _Damaged(f"frame {count} fails its checksum")
        if tag == b"END.":
            if start != count or file.read(1):
                raise _Damaged(f"{count} frames where {start} were written")
            return
        yield _Frame(tag, column, start, payload)
        count += 1


def _head(frame: _Frame | None, path: Path, columns: Columns) -> _Head:
    if frame is None or frame.tag != b"HEAD":
        raise _Damaged("it does not begin with its head")
    try:
        head = msgspec.msgpack.decode(frame.payload, type=_Head)
    except msgspec.DecodeError as error:  # the checksum holds, so this is how it was written
        raise InputError(f"{path}: not of format {columns.version} ({error}): use the Xyro that wrote it") from None
    if head.version != columns.version:
        raise InputError(f"{path}: of format {head.version}, not {columns.version}: use the Xyro that wrote it")
    if not columns.reads(head.columns):
        raise InputError(f"{path}: it has other columns: use the Xyro that wrote it")
    return head


def _fill(columns: Columns, frame: _Frame, filled: Mapping[int, int]) -> int:
    """Copy a chunk of rows into its column; returns how many rows the column now has."""
    if filled.get(frame.column) != frame.start:
        raise _Damaged(f"rows of column {frame.column} are missing")
    name = list(columns.spec)[frame.column]
    dtype = columns.spec[name]
    values = np.frombuffer(frame.payload, dtype.base.newbyteorder("<")).reshape(-1, *dtype.shape)
    end = frame.start + len(values)
    if end > columns.n:
        raise _Damaged(f"column {frame.column} is too long")
    columns[name][frame.start : end] = values
    return end


def _insert(table: FingerprintTable, payload: bytes) -> None:
    count = len(payload) // _PAIR
    table.insert(np.frombuffer(payload, "<u8", count), np.frombuffer(payload, "<u4", count, count * 8))


class StoredFingerprints(FingerprintTable):
    """The table of a directory that is looked at: those of its snapshot are read when they are asked for, a frame at a
    time, all of them once PATIENCE were asked for.

    A frame holds whole segments, in their order: so the first fingerprint of each tells which frame has which.
    """

    PATIENCE = 2_000

    def __init__(self, path: Path, places: list[_Place], bits: int) -> None:
        super().__init__(bits)
        self._path = path
        self._frames: list[tuple[int, _Place]] | None = None
        """first segment of each frame that holds any, and where it lies; None: nobody asked yet"""
        self._places = places
        self._read_frames: dict[int, tuple[NDArray[np.uint64], NDArray[np.uint32]]] = {}
        self._asked = 0

    def find(self, fps: ArrayLike) -> NDArray[np.uint32]:
        """As that of a table that holds all of them. MachineError: the file is damaged."""
        wanted = np.asarray(fps, np.uint64)
        found = super().find(wanted)
        absent = np.flatnonzero(found == MISSING)
        if not self._places or not len(absent):
            return found
        self._asked += len(wanted)
        if self._asked > self.PATIENCE:
            self._read_all()
            return super().find(wanted)
        for k in absent.tolist():
            found[k] = self._find_stored(wanted[k] & np.uint64(self.mask))
        return found

    def segments(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
        """As those of a table that holds all of them."""
        self._read_all()
        return super().segments()

    def _find_stored(self, fingerprint: np.uint64) -> int:
        if self._frames is None:
            self._frames = [(first, place) for place in self._places if (first := self._first(place)) is not None]
        segment = int(fingerprint) << self._shift >> 56
        number = bisect.bisect_right([first for first, _ in self._frames], segment) - 1
        if number < 0:
            return MISSING
        if number not in self._read_frames:
            self._read_frames[number] = self._pairs(self._frames[number][1])
        fps, ids = self._read_frames[number]
        (hits,) = np.nonzero(fps == fingerprint)
        return int(ids[hits[0]]) if len(hits) else MISSING

    def _first(self, place: _Place) -> int | None:
        """The segment of the first fingerprint of a frame; None where there is none."""
        if not place.length:
            return None
        with self._path.open("rb") as file:
            file.seek(place.offset)
            return int.from_bytes(file.read(8), "little") << self._shift >> 56

    def _pairs(self, place: _Place) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        with self._path.open("rb") as file:
            file.seek(place.offset)
            payload = file.read(place.length)
        if _checksum(place.header[: _CHECKED.size], payload) != _FRAME.unpack(place.header)[4]:
            raise MachineError(f"snapshot {self._path} is damaged: restore a copy, or `xyro repair`")
        count = len(payload) // _PAIR
        return np.frombuffer(payload, "<u8", count), np.frombuffer(payload, "<u4", count, count * 8)

    def _read_all(self) -> None:
        places, self._places, self._read_frames = self._places, [], {}
        for place in places:
            self.insert(*self._pairs(place))
