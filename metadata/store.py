"""Ordered keys and values on disk (LevelDB), and their twin in memory. The only module that imports plyvel.

One batch is the unit of truth: it is written whole or not at all, and `write` returns when it is on the disk. There is
no unsynced write, as LevelDB with unsynced writes loses batches from the middle over a power cut.
Reading verifies LevelDB's checksums: a flipped bit is a MachineError, never a wrong answer (costs 0.6 us a get). So do
its compactions and the indexes of its tables, by paranoid_checks: without it a damaged block is written anew with a
true checksum, rows are lost without a word, and a length read from a damaged index ends the process (std::bad_alloc).

Options, measured with `xyro lab speed scale`. LevelDB maps its tables, so many open ones cost no anonymous memory but
their indexes and filters, and no file handles up to 1,000 tables: 4 MB each, so that these are 4 GB. Blocks are small
because most gets are for one URL anywhere: of 1 M URLs one takes 8.1 us with blocks of 1 kB, 10.4 with 2, 14.9 with 4,
for 27 % more disk than with 4. With 40 tables open a get among 10 M URLs opened one anew each time (114 us instead of
58). The bloom filter nearly halves a get that finds nothing. Each batch is written anew by compactions, bodies are
compressed by whoever puts them, and Snappy as plyvel brings it is slow: without it, and with buffers of 8 MB rather
than 4, a link that a crawl of 1 M URLs takes in costs 21 us of CPU, all threads counted, instead of 34, a far one 13
instead of 17, for 65 B more of disk a URL (200 rather than 136). Blocks that were written with Snappy are read still.

Every call may come from any thread, also while another one closes the store (_Access). Errors of the library are
translated: a directory in use or without a store is an InputError, all else a MachineError.
"""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import plyvel

from xyro.metadata import level_log
from xyro.metadata.directories import Lock, Shadow, is_locked
from xyro.wire.errors import InputError, MachineError

OPTIONS: Mapping[str, Any] = {
    "bloom_filter_bits": 10,
    "write_buffer_size": 8 << 20,
    "lru_cache_size": 8 << 20,
    "max_open_files": 1000,
    "max_file_size": 4 << 20,
    "block_size": 1 << 10,
    "compression": None,
    "paranoid_checks": True,
}

PATIENCE, TICK = 30.0, 0.05
"""seconds to wait for processes that look at a store before it is opened; between two attempts"""

CALL = 0.001
"""seconds between two looks whether the last call of a store that closes has ended"""
FIRST_ROWS, MOST_ROWS, LARGE = 4, 64, 1 << 12
"""rows that a scan reads ahead, at first and at most; bytes of a value behind which it reads none"""

Pairs = Iterator[tuple[bytes, bytes]]


class Batch(Protocol):
    """Changes that become true together, the later one of a key winning. Writing it again does the same again."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    @property
    def size(self) -> int:
        """Bytes, about."""


class StoreReader(Protocol):
    """Something to read: a store as it is, or a snapshot as it was."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, prefix: bytes, start: bytes = b"", reverse: bool = False) -> Pairs:
        """Pairs whose key has the prefix, in order, as they are at the moment of the call.

        `start` (a whole key, not what follows the prefix) is the first one wanted, inclusive; in reverse, the last one.
        """

    def close(self) -> None: ...


class KeyValue(StoreReader, Protocol):
    """The store of a partition."""

    def batch(self) -> Batch: ...

    def write(self, batch: Batch) -> None:
        """Make it durable: returns when it is synced to the disk. For a batch of this store only (ValueError)."""

    def snapshot(self) -> StoreReader:
        """A view that later writes do not change. Close it."""

    @property
    def pinned(self) -> bool:
        """Whether snapshots of it are open."""

    def compact(self, first: bytes, last: bytes) -> None:
        """Let go of what was deleted between these keys: it takes room, and time of scans. Some seconds a gigabyte."""


class _Bounds:
    """Keys of one scan: lower <= key < upper, or <= upper if `closed`."""

    __slots__ = ("closed", "lower", "upper")

    def __init__(self, prefix: bytes, start: bytes, reverse: bool) -> None:
        self.lower, self.upper, self.closed = prefix, _after(prefix), False
        if start and not reverse:
            self.lower = max(prefix, start)
        elif start and (self.upper is None or start < self.upper):
            self.upper, self.closed = start, True

    def hold(self, key: bytes) -> bool:
        upper = self.upper
        return key >= self.lower and (upper is None or key < upper or (self.closed and key == upper))


def _after(prefix: bytes) -> bytes | None:
    """The first key after all keys with the prefix; None if there is no such key."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


# On disk


class _Access:
    """The way of all threads to something of LevelDB's (a store, a snapshot of it) until one of them closes it.

    LevelDB works without the interpreter's lock, and what is closed under a call of another thread ends the process. So
    every call is made `with` this, and `close` waits for the calls under way, each of which is short; then it closes
    what was opened here (snapshots, cursors), and what comes later is refused. There is no lock to enter, as appending
    is atomic: so it costs 0.3 us, and a cursor may be dropped anywhere, as the garbage collector does.
    """

    __slots__ = ("_calls", "_closing", "_lock", "_opened", "_path", "source")

    def __init__(self, source: Any, path: Path) -> None:
        self.source = source
        self._path = path
        self._calls: list[None] = []
        """one for each call under way"""
        self._closing = False
        self._opened = set[Any]()
        self._lock = threading.Lock()  # of those who close

    def __enter__(self) -> None:
        self._calls.append(None)  # before the look at `_closing`, as `close` does the two the other way round
        if self._closing:
            self._calls.pop()
            raise _closed(self._path)

    def __exit__(self, *_: object) -> None:
        self._calls.pop()

    def opened(self, child: Any) -> None:
        """Note what was opened by a call under way; it is closed with the rest unless it is let go of before."""
        self._opened.add(child)

    def let_go(self, child: Any) -> None:
        """Close what was opened, once; nothing calls it any more."""
        try:
            with self:
                if child in self._opened:
                    self._opened.discard(child)
                    child.close()
        except MachineError:
            pass  # whoever closes the whole closes it

    @property
    def pinned(self) -> bool:
        """Whether snapshots are open."""
        return any(isinstance(child, _Access) for child in tuple(self._opened))

    def close(self) -> None:
        """Wait for the calls under way, and close. Closing twice is fine."""
        with self._lock:
            self._closing = True
            while self._calls:
                threading.Event().wait(CALL)
            while self._opened:
                self._opened.pop().close()
            self.source.close()


class _LevelReader:
    """Reading, the same on a plyvel DB and on its snapshot."""

    def __init__(self, source: Any, path: Path) -> None:
        self._access = _Access(source, path)
        self.path = path

    def get(self, key: bytes) -> bytes | None:
        try:
            with self._access:
                value: bytes | None = self._access.source.get(key, verify_checksums=True)
        except (plyvel.Error, RuntimeError) as error:
            raise _failed(self.path, error) from error
        return value

    def scan(self, prefix: bytes, start: bytes = b"", reverse: bool = False) -> Pairs:
        pairs = self._pairs(_Bounds(prefix, start, reverse), reverse)
        next(pairs)  # it stands at its first row, and closes its cursor wherever it is dropped
        return pairs

    @property
    def pinned(self) -> bool:
        return self._access.pinned

    def close(self) -> None:
        """Closing twice is fine; reading afterwards is a MachineError."""
        self._access.close()

    def _pairs(self, bounds: _Bounds, reverse: bool) -> Pairs:
        """A pair of nothing, then those in the bounds, read some at a time: at first few, as many scans end soon."""
        access, limit, cursor = self._access, FIRST_ROWS, None
        try:
            with access:
                cursor = access.source.raw_iterator(verify_checksums=True, fill_cache=False)
                access.opened(cursor)
                (_seek_last if reverse else _seek_first)(cursor, bounds)
                step = cursor.prev if reverse else cursor.next
                found, fault = _next_pairs(cursor, step, bounds, limit)
            yield b"", b""
            while found:
                yield from found
                if fault is not None:
                    break
                limit = min(2 * limit, MOST_ROWS)
                with access:
                    found, fault = _next_pairs(cursor, step, bounds, limit)
            if fault is not None:
                raise fault
        except (plyvel.Error, RuntimeError) as error:
            raise _failed(self.path, error) from error
        finally:
            access.let_go(cursor)


def _next_pairs(
    cursor: Any, step: Callable[[], None], bounds: _Bounds, limit: int
) -> tuple[list[tuple[bytes, bytes]], Exception | None]:
    """The next pairs in the bounds, and why there are no more, where it is damage.

    By plyvel's raw iterator: the other one ends without a word at a damaged block, as if there were no more.
    """
    found = list[tuple[bytes, bytes]]()
    try:
        for _ in range(limit):
            if not cursor.valid() or not bounds.hold(key := cursor.key()):
                break
            value = cursor.value()
            found.append((key, value))
            step()
            if len(value) > LARGE:
                break
    except plyvel.Error as error:
        return found, error
    return found, None


def _seek_first(cursor: Any, bounds: _Bounds) -> None:
    cursor.seek(bounds.lower)


def _seek_last(cursor: Any, bounds: _Bounds) -> None:
    if bounds.upper is None:
        cursor.seek_to_last()
        return
    cursor.seek(bounds.upper)
    if not cursor.valid():
        cursor.seek_to_last()
    elif not bounds.hold(cursor.key()):
        cursor.prev()


class _Snapshot(_LevelReader):
    """A store as it was."""

    def __init__(self, store: _Access, path: Path) -> None:
        with store:
            super().__init__(store.source.snapshot(), path)
            store.opened(self._access)
        self._store = store

    def close(self) -> None:
        self._store.let_go(self._access)

    def __del__(self) -> None:
        if hasattr(self, "_store"):
            self._store.let_go(self._access)


class LookedAt(_LevelReader):
    """The store of a directory that is not written to: LevelDB, which always writes when it opens, works on a shadow of
    it in memory or among temporary files, with links to the tables (which never change) and copies of the rest.

    So a look needs neither the right to write nor room on the disk, and leaves no trace; several may go on at once.
    """

    def __init__(self, path: Path) -> None:
        """Raises as `Store.open`."""
        _check_directory(path, create=False)
        self._lock = _shared(path)
        self._shadow: Shadow | None = None
        try:
            self._shadow = Shadow(path)
            super().__init__(plyvel.DB(self._shadow.path, **OPTIONS), path)
        except plyvel.Error as error:
            self._leave()
            raise _failed(path, error) from error
        except OSError as error:
            self._leave()
            raise MachineError(f"{path}: cannot be looked at ({error}): mend its rights, or set TMPDIR") from error

    def close(self) -> None:
        super().close()
        self._leave()

    def _leave(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self._shadow is not None:
            self._shadow.remove()

    def batch(self) -> Batch:
        raise MachineError(f"{self.path}: opened to be looked at (a bug: nothing is written here)")

    def write(self, batch: Batch) -> None:
        self.batch()

    def snapshot(self) -> StoreReader:
        return _Snapshot(self._access, self.path)

    def compact(self, first: bytes, last: bytes) -> None:
        self.batch()


def _shared(path: Path) -> Lock | None:
    """A lock that others who look may share; None where nobody ever locked it, or it must not even be opened."""
    try:
        lock = Lock(os.open(path / "OWNER", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return None
    if not lock.take(wait=False, shared=True):
        raise InputError(f"{path}: in use by another process: stop that one, or name another directory")
    return lock


class Store(_LevelReader):
    """A LevelDB directory, open once at a time on this machine: a second opening is refused.

    By a lock of our own, because LevelDB's is a POSIX record lock: it is silently lost as soon as anything in this
    process opens and closes its file, be it a copy of the directory or a second opening that was refused.
    """

    def __init__(self, source: Any, path: Path, lock: Lock) -> None:
        super().__init__(source, path)
        self._lock = lock

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Store:
        """Open the store in `path`; `create` makes an empty one where there is none.

        Raises InputError if another process has it open or there is none, MachineError if it is damaged. A directory
        that has lost its CURRENT file is never opened: LevelDB would begin anew and delete what is left.
        """
        _check_directory(path, create)
        lock = _owned(path, create)
        try:
            return cls(plyvel.DB(str(path), create_if_missing=create, **OPTIONS), path, lock)
        except plyvel.Error as error:
            lock.release()
            raise _failed(path, error) from error

    def close(self) -> None:
        super().close()
        self._lock.release()

    def batch(self) -> Batch:
        with self._access:
            return _LevelBatch(self._access.source.write_batch(sync=True), self)

    def write(self, batch: Batch) -> None:
        if not isinstance(batch, _LevelBatch) or batch.owner is not self:
            raise ValueError("a batch is written to the store that made it")
        try:
            with self._access:
                batch.changes.write()
        except (plyvel.Error, RuntimeError) as error:
            raise _failed(self.path, error) from error

    def snapshot(self) -> StoreReader:
        return _Snapshot(self._access, self.path)

    def compact(self, first: bytes, last: bytes) -> None:
        try:
            with self._access:
                self._access.source.compact_range(start=first, stop=last)
        except (plyvel.Error, RuntimeError) as error:
            raise _failed(self.path, error) from error


def mend(path: Path) -> int:
    """Let LevelDB make what it can of a damaged store: every row whose block is whole. Work on a copy: it writes.

    Returns in how many places its log is damaged. What was written there is lost, and older rows stand for it again.
    """
    gaps = sum(level_log.clean(log) for log in path.glob("*.log"))
    try:
        plyvel.repair_db(str(path), paranoid_checks=True, bloom_filter_bits=OPTIONS["bloom_filter_bits"])
    except plyvel.Error as error:
        raise _failed(path, error) from error
    return gaps


class _LevelBatch:
    __slots__ = ("changes", "owner")

    def __init__(self, changes: Any, owner: Store) -> None:
        self.changes = changes
        self.owner = owner

    def put(self, key: bytes, value: bytes) -> None:
        self.changes.put(key, value)

    def delete(self, key: bytes) -> None:
        self.changes.delete(key)

    @property
    def size(self) -> int:
        return int(self.changes.approximate_size())


def _check_directory(path: Path, create: bool) -> None:
    try:
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    except OSError as error:
        raise InputError(f"{path}: not a directory that can be read ({error.strerror}): name another one") from None
    if "CURRENT" in names:
        return
    if any(name.startswith("MANIFEST-") or name.endswith((".ldb", ".sst")) for name in names):
        raise MachineError(f"{path}: damaged store: its file CURRENT is missing: restore a copy, or `xyro repair`")
    if not create:
        raise InputError(f"{path}: there is no store: name the directory of a crawl")


def _owned(path: Path, create: bool) -> Lock:
    """Waits PATIENCE for processes that look: a crawl that is started again must not fail by them."""
    for _ in range(round(PATIENCE / TICK)):
        try:
            path.mkdir(parents=create, exist_ok=True)
            lock = Lock(os.open(path / "OWNER", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        except OSError as error:
            raise MachineError(f"{path}: cannot be locked: {error}: mend its rights, or name another one") from error
        if lock.take(wait=False):
            return lock
        if is_locked(path / "OWNER"):
            break
        threading.Event().wait(TICK)
    raise InputError(f"{path}: in use by another process: stop that one, or name another directory")


def _closed(path: Path) -> MachineError:
    return MachineError(f"{path}: the store is closed")


def _failed(path: Path, error: Exception) -> InputError | MachineError:
    text = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
    if isinstance(error, RuntimeError):
        return _closed(path)
    if isinstance(error, plyvel.CorruptionError):
        return MachineError(f"{path}: damaged store ({text}): restore the directory from a copy, or `xyro repair`")
    return MachineError(f"{path}: the store failed ({text}): free or mend the disk, then start again")


# In memory


class _MemoryReader:
    """Reading, the same on the store and on its snapshot."""

    def __init__(self, values: dict[bytes, bytes], keys: list[bytes]) -> None:
        self._values: dict[bytes, bytes] | None = values
        self._keys = keys
        """sorted"""

    @property
    def _open(self) -> dict[bytes, bytes]:
        if self._values is None:
            raise MachineError("the store is closed")
        return self._values

    def get(self, key: bytes) -> bytes | None:
        return self._open.get(key)

    def scan(self, prefix: bytes, start: bytes = b"", reverse: bool = False) -> Pairs:
        values, bounds = self._open, _Bounds(prefix, start, reverse)
        first = bisect.bisect_left(self._keys, bounds.lower)
        last = len(self._keys)
        if bounds.upper is not None:
            last = (bisect.bisect_right if bounds.closed else bisect.bisect_left)(self._keys, bounds.upper)
        pairs = [(key, values[key]) for key in self._keys[first:last]]
        return reversed(pairs) if reverse else iter(pairs)

    def close(self) -> None:
        self._values = None


class MemoryStore(_MemoryReader):
    """A store without a disk, for tests and laboratories; what is written is gone with the process."""

    def __init__(self) -> None:
        super().__init__({}, [])

    def batch(self) -> Batch:
        _ = self._open
        return _MemoryBatch(self)

    def write(self, batch: Batch) -> None:
        if not isinstance(batch, _MemoryBatch) or batch.owner is not self:
            raise ValueError("a batch is written to the store that made it")
        values = self._open
        for key, value in batch.changes:
            if value is None:
                if values.pop(key, None) is not None:
                    del self._keys[bisect.bisect_left(self._keys, key)]
            else:
                if key not in values:
                    bisect.insort(self._keys, key)
                values[key] = value

    @property
    def pinned(self) -> bool:
        return False  # what was opened needs it no more

    def compact(self, first: bytes, last: bytes) -> None:
        _ = self._open

    def snapshot(self) -> StoreReader:
        return _MemoryReader(dict(self._open), list(self._keys))


class _MemoryBatch:
    __slots__ = ("changes", "owner", "size")

    def __init__(self, owner: MemoryStore) -> None:
        self.owner = owner
        self.changes: list[tuple[bytes, bytes | None]] = []
        self.size = 12

    def put(self, key: bytes, value: bytes) -> None:
        self.changes.append((bytes(key), bytes(value)))
        self.size += len(key) + len(value) + 3

    def delete(self, key: bytes) -> None:
        self.changes.append((bytes(key), None))
        self.size += len(key) + 2
