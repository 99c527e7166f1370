"""Frames carry messages between nodes: bytes, each frame small enough for a broker.

A frame is MessagePack `[number of the sending node, instance, [[topic, partition, epoch, message] ...]]`: `instance`
names the process, `partition` and `epoch` are those of the sender (-1 and 0: the node itself sends), `message` is the
codec's bytes. A message that is too large
for one frame travels as pieces `[node, number, index, count, bytes]`, which the receiver joins. Whatever is none of
this raises CodecError; nothing of it is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from xyro.wire.codec import MAX_MESSAGE
from xyro.wire.errors import CodecError

MAX_FRAME: Final = 900_000
"""bytes of a frame: a broker takes 1 MB"""
MAX_ENTRIES: Final = 4096
MAX_PIECES: Final = MAX_MESSAGE // MAX_FRAME + 2
MOST_OPEN: Final = 16
"""messages of which some pieces came; the oldest is given up"""
_OVERHEAD = 64
FROM_NODE: Final = -1
"""partition of a sender that is no partition"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a frame."""

    topic: str
    partition: int
    epoch: int
    message: bytes

    def row(self) -> tuple[str, int, int, bytes]:
        return self.topic, self.partition, self.epoch, self.message


@dataclass(frozen=True, slots=True)
class Frame:
    """The messages that came together from one node."""

    node: int
    instance: str
    """random: which process runs, or ran, as the node"""
    entries: tuple[Entry, ...]


def frames(node: int, instance: str, entries: Iterable[Entry], number: Iterator[int]) -> Iterator[bytes]:
    """The entries as frames, in order, those that are too large in pieces. number: names of messages in pieces."""
    rows: list[tuple[str, int, int, bytes]] = []
    size = 0
    for entry in entries:
        length = len(entry.message) + len(entry.topic) + _OVERHEAD
        if length > MAX_FRAME:
            yield from _pieces(node, msgpack.packb((node, instance, [entry.row()])), next(number))
            continue
        if rows and (size + length > MAX_FRAME or len(rows) == MAX_ENTRIES):
            yield msgpack.packb((node, instance, rows))
            rows, size = [], 0
        rows.append(entry.row())
        size += length
    if rows:
        yield msgpack.packb((node, instance, rows))


def _pieces(node: int, data: bytes, number: int) -> Iterator[bytes]:
    count = -(-len(data) // MAX_FRAME)
    for index in range(count):
        yield msgpack.packb((node, number, index, count, data[index * MAX_FRAME : (index + 1) * MAX_FRAME]))


@dataclass(slots=True)
class FrameReader:
    """Reads what `frames` made, and joins pieces."""

    _parts: dict[tuple[int, int], dict[int, bytes]] = field(default_factory=dict)

    def read(self, data: bytes) -> Frame | None:
        """The frame; None: a piece of one that is not whole yet. CodecError: it is none."""
        raw = _unpacked(data)
        if len(raw) == 5:
            whole = self._join(raw)
            if whole is None:
                return None
            raw = _unpacked(whole)
        if [type(value) for value in raw] != [int, str, list]:
            raise CodecError("frame: not a node, its process and their messages")
        return Frame(raw[0], raw[1], tuple(map(_entry, raw[2])))

    def _join(self, raw: list[Any]) -> bytes | None:
        if [type(value) for value in raw] != [int, int, int, int, bytes]:
            raise CodecError("frame: a piece of other types")
        node, number, index, count, data = raw
        if not (1 < count <= MAX_PIECES and 0 <= index < count):
            raise CodecError("frame: a piece beyond the bounds")
        parts = self._parts.setdefault((node, number), {})
        parts[index] = data
        if len(parts) < count:
            while len(self._parts) > MOST_OPEN:
                del self._parts[next(iter(self._parts))]
            return None
        del self._parts[node, number]
        if set(parts) != set(range(count)):
            raise CodecError("frame: pieces of two messages")
        return b"".join(parts[i] for i in range(count))


def _unpacked(data: bytes) -> list[Any]:
    try:
        raw = msgpack.unpackb(data, max_map_len=0, max_ext_len=0, max_array_len=min(len(data), MAX_ENTRIES))
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError(f"frame: not MessagePack within its bounds: {error}") from error
    if type(raw) is not list:
        raise CodecError("frame: not an array")
    return raw


def _entry(raw: Any) -> Entry:
    if type(raw) is not list or [type(value) for value in raw] != [str, int, int, bytes]:
        raise CodecError("frame: a message of other types")
    return Entry(*raw)
