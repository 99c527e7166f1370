"""The frames between a node and its reader processes: four bytes of length, then MessagePack of an array.

    node -> reader    [number, verb, ...]    one request; `number` comes back with its answer
    reader -> node    [number, kind, ...]    one answer, a body in pieces ahead of it, or the echo of a beat

The process of plug-ins is asked in such frames, too (plug_in_process.py).

Both ends are one program on one machine, so a frame carries no version. What a reader says is still not believed
blindly: it parses what strangers wrote. Types and bounds are checked where an answer becomes a report
(wire/messages.py).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

import msgpack

from xyro.answer import Answer
from xyro.wire.errors import CodecError
from xyro.wire.messages import NO_LINKS, Kind, Links

PIECE: Final = 256 * 1024
"""bytes of a body in one frame: others have their turn between two of them"""
MAX_FRAME: Final = 1 << 30
OPTIONS, FETCH, ROBOTS, ADDRESS, POST, CANCEL, DENY, PATIENCE, BEAT, SIGN, EXPECT, SITES = range(12)
"""verbs of the node"""
ANSWER, BODY, FAILED, VALUE, ECHO = range(5)
"""kinds of what a reader says"""

_LENGTH = struct.Struct(">I")
_PLAIN = tuple(name for name in Answer.__struct_fields__ if name not in ("links", "body"))
_values = attrgetter(*_PLAIN)
_KIND, _TUPLES = _PLAIN.index("kind"), (_PLAIN.index("hubs"), _PLAIN.index("plug_in_faults"))


def frame(*values: Any) -> bytes:
    """`values` as one frame."""
    packed: bytes = msgpack.packb(values, unicode_errors="surrogatepass")
    return _LENGTH.pack(len(packed)) + packed


def answer_frames(number: int, answer: Answer) -> Iterator[bytes]:
    """The frames of an answer: its body in pieces, then everything else."""
    body = answer.body
    for start in range(0, len(body or b""), PIECE):
        yield frame(number, BODY, memoryview(body or b"")[start : start + PIECE])
    links = answer.links
    text = "\n".join(links.urls)
    yield frame(number, ANSWER, _values(answer), body is not None, text, links.flags, links.truncated, links.dropped)


def answer_of(values: list[Any], pieces: list[bytes]) -> Answer:
    """The answer that `answer_frames` wrote. CodecError: it is none."""
    try:
        plain, with_body, text, flags, truncated, dropped = values
        answer = Answer(0.0)
        plain[_KIND] = Kind(plain[_KIND])
        for place in _TUPLES:
            plain[place] = tuple(plain[place])
        for name, value in zip(_PLAIN, plain, strict=True):
            setattr(answer, name, value)
        if text:
            answer.links = Links(tuple(text.split("\n")), flags, truncated, dropped)
        elif truncated or dropped:
            answer.links = Links((), b"", truncated, dropped)
        else:
            answer.links = NO_LINKS
    except (ValueError, TypeError, IndexError) as error:
        raise CodecError(f"a reader's answer: {error}") from error
    answer.body = b"".join(pieces) if with_body else None
    return answer


class FrameWriter:
    """Frames as they leave: those of one turn of the event loop in one write."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self.transport = transport
        self._frames: list[bytes] = []

    def write(self, *values: Any) -> None:
        """Send `values` as one frame."""
        self.send(frame(*values))

    def send(self, data: bytes) -> None:
        """Send a frame."""
        if not self._frames:
            asyncio.get_running_loop().call_soon(self._flush)
        self._frames.append(data)

    def _flush(self) -> None:
        data = b"".join(self._frames)
        self._frames.clear()
        if not self.transport.is_closing():
            self.transport.write(data)


class FrameBuffer:
    """Bytes as they arrive, cut into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The frames that are complete now, unpacked. CodecError: this is no frame."""
        pending = self._bytes
        pending += data
        start, end = 0, len(pending)
        try:
            while end - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(pending, start)
                if length > MAX_FRAME:
                    raise CodecError(f"a child's frame: {length} bytes; at most {MAX_FRAME}")
                if end - start < _LENGTH.size + length:
                    break
                start += _LENGTH.size + length
                yield _unpacked(bytes(memoryview(pending)[start - length : start]))
        finally:
            del pending[:start]


def _unpacked(packed: bytes) -> list[Any]:
    try:
        values = msgpack.unpackb(packed, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError(f"a child's frame: {error}") from error
    if type(values) is not list or len(values) < 2:
        raise CodecError("a child's frame: no array of a number and a verb")
    return values
