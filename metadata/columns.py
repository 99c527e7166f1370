"""Hot state: one numpy column a field, indexed by the page's local number, and the after-images that make it durable.

A column lies in reserved address space: as long as its capacity from the start, of which only touched pages cost
memory. So it grows without copying and a view of it stays good for ever.

The journal rule. Whoever changes a column marks the changed numbers (`touch`); each commit group packs the marked
values as they are then (`after_images`) into its write batch. A record says what values *are*, not how they changed, so
replaying a run of records in order onto any state that lies within the run ends in the same columns, however often it
is done: that is what lets a snapshot be copied while the columns change (snapshot.py).

Beside the columns that every partition has there may be optional ones, which a setting turns on and off (`add`,
`drop`). A record names its columns, and a replay follows: an optional column that a record has begins empty, one that
it has not is gone, so nothing stale comes back when a column is turned off and on again.

A record, little-endian: checksum u64 (xxh3 of the rest), length of the head u32, head (MessagePack [version, first new
number, n, [[column, dtype, marked] ...]]), then of each column the marked numbers (u32) and their values, then of each
column the values of the numbers that are new since the last record.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from xxhash import xxh3_64_intdigest

from xyro.metadata.version import VERSION
from xyro.wire.errors import InputError, MachineError

CAPACITY = 2**27
"""pages a partition; addresses only, memory is paid as it is used"""
FEW = 16
"""rows for each mark from which on marks are sorted: before that a look at all rows takes less"""
_FRAME = struct.Struct("<QI")
_PAGE = np.dtype("<u4")
_NORESERVE: int = getattr(mmap, "MAP_NORESERVE", 0x4000)

Array = NDArray[Any]
_N = TypeVar("_N", bound=np.generic)


def distinct(values: NDArray[_N]) -> NDArray[_N]:
    """The values in order, each once: np.unique, without its 25 ms for masked arrays at the first call."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def reserve(dtype: DTypeLike, count: int, *, scattered: bool = False) -> Array:
    """A zeroed, writable array of `count` items of which only the touched pages cost memory.

    `scattered`: used in islands, so the kernel shall not back it with huge pages (2 MiB an island).
    """
    kind = np.dtype(dtype)
    try:
        region = mmap.mmap(-1, max(1, count * kind.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    except (OSError, OverflowError, ValueError) as error:
        raise MachineError(
            f"cannot reserve {count * kind.itemsize:,} bytes of addresses: {error}: raise the address limit "
            "(ulimit -v, vm.overcommit_memory) or lower the partition's capacity"
        ) from None
    if scattered and hasattr(mmap, "MADV_NOHUGEPAGE"):
        region.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(region, kind, count)


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """The head of a record: format, new rows, marked values."""

    version: int
    """the format's number"""
    first: int
    """the first number that is new in it"""
    n: int
    marked: tuple[tuple[str, str, int], ...]
    """name, dtype (`text_of`) and number of marked values of each column, in order"""


_PACK_HEAD = msgspec.msgpack.Encoder().encode
_HEAD = msgspec.msgpack.Decoder(_Head)


def text_of(dtype: np.dtype[Any]) -> str:
    """A column's type as records and snapshots name it, little-endian: "<i8", "(2, 8)<f4"."""
    return f"{dtype.shape or ''}{dtype.base.newbyteorder('<').str}"


def type_of(text: str) -> np.dtype[Any]:
    """Return the type that `text_of` named. InputError: no such type."""
    try:
        return np.dtype(text).newbyteorder("=")
    except (TypeError, ValueError, SyntaxError):
        raise InputError(f"journal: a column of type {text!r}: open it with the Xyro that wrote it") from None


class Columns:
    """Named columns of numbers 0..n-1. Rows at and over `n` are zero and belong to nobody.

    Who fills it: the page node's loop, one thread. Other threads may read (snapshot.py copies): a row may then be of
    before or after a change, which the journal repairs.
    """

    def __init__(
        self,
        spec: Mapping[str, DTypeLike],
        capacity: int = CAPACITY,
        optional: Iterable[str] = frozenset(),
        version: int = VERSION,
    ) -> None:
        """`version`: the format of the records that are replayed (those of `after_images` are of the present one)."""
        if not 0 < capacity < 2**32:
            raise ValueError(f"capacity {capacity}: 1..2^32 - 1, local page numbers have 32 bits")
        self.capacity = capacity
        self.version = version
        self.optional = frozenset(optional)
        """names that `add` may be given"""
        self.n = 0
        self.spec: dict[str, np.dtype[Any]] = {}
        self._columns: dict[str, Array] = {}
        self._disk: dict[str, np.dtype[Any]] = {}
        self._texts: dict[str, str] = {}
        """`text_of` each type"""
        self._marks: dict[str, list[Array]] = {}
        self._first_new = 0
        for name, dtype in spec.items():
            self._hold(name, np.dtype(dtype))
        self._always = list(self.spec)

    def __getitem__(self, name: str) -> Array:
        """The whole column up to the capacity; slice it with [:n]."""
        return self._columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.spec

    def add(self, name: str, dtype: DTypeLike) -> None:
        """Have this optional column: all zero, unless it is here already and of this type (which may have a shape)."""
        if name not in self.optional:
            raise ValueError(f"column {name!r} is none of {', '.join(sorted(self.optional)) or 'no optional ones'}")
        if self.spec.get(name) != np.dtype(dtype):
            self.drop(name)
            self._hold(name, np.dtype(dtype))

    def drop(self, name: str) -> None:
        """Have this optional column no more; its memory is free once nobody holds a view of it."""
        if name in self._always:
            raise ValueError(f"column {name!r} is not optional")
        for mapping in (self.spec, self._columns, self._disk, self._texts, self._marks):
            mapping.pop(name, None)

    def _hold(self, name: str, dtype: np.dtype[Any]) -> None:
        items = int(np.prod(dtype.shape, dtype=np.int64))
        self.spec[name] = dtype
        self._columns[name] = reserve(dtype.base, self.capacity * items).reshape(self.capacity, *dtype.shape)
        self._disk[name] = dtype.base.newbyteorder("<")
        self._texts[name] = text_of(dtype)
        self._marks[name] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in use."""
        return self.n * sum(dtype.itemsize for dtype in self.spec.values())

    def grow(self, count: int) -> int:
        """Add `count` zeroed rows, return the number of the first. They are journaled whole: no need to touch them."""
        first, n = self.n, self.n + count
        if count < 0 or n > self.capacity:
            raise MachineError(f"the partition is full: {self.capacity:,} pages; create the crawl with more partitions")
        self.n = n
        return first

    def touch(self, name: str, ids: ArrayLike) -> None:
        """Mark the rows `ids` (integers < n, repeats allowed) of a column as changed. The array is copied."""
        self._marks[name].append(np.array(ids, dtype=_PAGE, ndmin=1))

    def settle(self) -> None:
        """Forget marks and new rows: all of them are durable (after a recovery)."""
        self._first_new = self.n
        for marks in self._marks.values():
            marks.clear()

    def after_images(self) -> bytes:
        """One record of all marked values and all new rows as they are now; clears the marks.

        Raises IndexError if a mark is >= n; then nothing is cleared.
        """
        marked: list[tuple[str, str, int]] = []
        parts: list[bytes] = []
        for name, column in self._columns.items():
            if self._marks[name] and len(ids := self._distinct(name)):
                marked.append((name, self._texts[name], len(ids)))
                parts += ids.tobytes(), self._stored(name, column.take(ids, 0))
            else:
                marked.append((name, self._texts[name], 0))
        first, n = self._first_new, self.n
        if n > first:
            parts += [self._stored(name, column[first:n]) for name, column in self._columns.items()]
        self.settle()
        return _sealed(_Head(VERSION, first, n, tuple(marked)), parts)

    def replay(self, record: bytes) -> None:
        """Apply one record of `after_images`. Nothing is applied unless all of it is sound.

        Raises MachineError for a damaged record or one that does not follow, InputError for another version or columns.
        """
        head, offset = _opened(record, self.version)
        self._check(head, len(record) - offset)
        self.follow([(name, text) for name, text, _ in head.marked])
        self.n = max(self.n, head.n)
        for name, _, count in head.marked:
            ids = np.frombuffer(record, _PAGE, count, offset)
            offset += ids.nbytes
            offset = self._restore(name, ids, record, count, offset)
        if head.n > head.first:
            for name, _, _ in head.marked:
                offset = self._restore(name, slice(head.first, head.n), record, head.n - head.first, offset)
        self.settle()

    def reads(self, texts: Sequence[tuple[str, str]]) -> bool:
        """Columns of these names and types can be taken over: those always here, in order, then optional ones."""
        always = [(name, text_of(self.spec[name])) for name in self._always]
        more = [name for name, _ in texts[len(always) :]]
        return list(texts[: len(always)]) == always and self.optional.issuperset(more) and len(more) == len(set(more))

    def follow(self, texts: Sequence[tuple[str, str]]) -> None:
        """Have the optional columns among these, and no others."""
        types = dict(texts)
        for name in self.optional.difference(types):
            self.drop(name)
        for name, text in texts[len(self._always) :]:
            if name not in self.spec or text_of(self.spec[name]) != text:
                self.drop(name)
                self.add(name, type_of(text))

    def _distinct(self, name: str) -> NDArray[np.uint32]:
        """The marked rows of a column, sorted, each once, without the new ones (those are packed whole)."""
        ids = np.concatenate(self._marks[name])
        if len(ids) and ids.max() >= self.n:
            raise IndexError(f"column {name!r}: row {ids.max()} was touched, there are {self.n}")
        if FEW * len(ids) < self.n:
            ids = distinct(ids)
            return ids[: ids.searchsorted(self._first_new)]
        marked = np.zeros(self.n, np.bool_)
        marked[ids] = True
        return np.flatnonzero(marked[: self._first_new]).astype(_PAGE)

    def _stored(self, name: str, values: Array) -> bytes:
        return values.astype(self._disk[name], copy=False).tobytes()

    def _restore(self, name: str, rows: Array | slice, record: bytes, count: int, offset: int) -> int:
        """Set rows of a column to `count` values of the record from `offset` on; returns where they end."""
        shape = self.spec[name].shape
        values = np.frombuffer(record, self._disk[name], count * int(np.prod(shape, dtype=np.int64)), offset)
        self._columns[name][rows] = values.reshape(count, *shape)
        return offset + values.nbytes

    def _check(self, head: _Head, size: int) -> None:
        """The record is of these columns, follows on what is here, and its `size` bytes of values add up."""
        texts = [(name, text) for name, text, _ in head.marked]
        if not self.reads(texts):
            raise InputError("journal: it has other columns: open the directory with the Xyro that wrote it")
        types = {name: type_of(text) for name, text in texts}
        if head.n > self.capacity:
            raise MachineError(f"journal: {head.n:,} pages, room for {self.capacity:,}: raise the partition's capacity")
        if head.first > self.n:
            raise MachineError(f"journal: a record is missing between row {self.n:,} and row {head.first:,}")
        row = sum(dtype.itemsize for dtype in types.values())
        marks = sum(count * (_PAGE.itemsize + types[name].itemsize) for name, _, count in head.marked)
        if marks + (head.n - head.first) * row != size:
            raise MachineError("damaged journal: a record's values do not add up: restore the directory from a copy")


def _sealed(head: _Head, parts: list[bytes]) -> bytes:
    packed = _PACK_HEAD(head)
    body = b"".join([len(packed).to_bytes(4, "little"), packed, *parts])
    return xxh3_64_intdigest(body).to_bytes(8, "little") + body


def _opened(record: bytes, version: int) -> tuple[_Head, int]:
    """The head of a sound record and where its values begin."""
    if len(record) < _FRAME.size or xxh3_64_intdigest(memoryview(record)[8:]) != _FRAME.unpack_from(record)[0]:
        raise MachineError(f"damaged journal: a record of {len(record)} bytes fails its checksum: restore from a copy")
    start = _FRAME.size + _FRAME.unpack_from(record)[1]
    try:
        head = _HEAD.decode(memoryview(record)[_FRAME.size : start])
    except msgspec.DecodeError as error:  # the checksum holds, so this is how it was written
        raise InputError(f"journal: not of format {version} ({error}): open it with the Xyro that wrote it") from None
    if head.version != version:
        raise InputError(f"journal: of format {head.version}, not {version}: open it with the Xyro that wrote it")
    return head, start
