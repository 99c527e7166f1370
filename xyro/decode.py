"""Content-Encoding undone piece by piece: gzip and deflate, at most two layers, with caps on what comes out.

Bodies lie, so: a body under a coding header that is not coded passes as it is (told by its first bytes), deflate is
taken with and without its zlib header, garbage after the end of a gzip stream is dropped. What cannot be forgiven is a
TheirError: `encoding` for a coding we did not ask for, a third layer and a broken stream (also a wrong checksum),
`too-large` over the caps, `truncated` for a stream that stops early.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from wire.errors import TheirError

MAX_LAYERS = 2
_GZIP, _ZLIB, _RAW = 31, 15, -15
_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}
_TEXT = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0D, 0xEF, 0xFE, 0xFF}


@dataclass(frozen=True, slots=True)
class Caps:
    """At most `size` bytes come out; from `free` bytes on at most `ratio` times of what went in (reliability.md 4.11)."""

    size: int = 8 * 1024 * 1024
    ratio: int = 200
    free: int = 1024 * 1024


def codings_of(header: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding header in the order they were applied; TheirError `encoding` if not ours."""
    names = [name.strip().lower() for name in header.split(",")]
    found = [name for name in names if name and name != "identity"]
    unknown = [name for name in found if name not in _NAMES]
    if unknown:
        raise TheirError("encoding", f"coding not asked for: {unknown[0][:40]}")
    if len(found) > MAX_LAYERS:
        raise TheirError("encoding", f"{len(found)} layers of coding")
    return tuple(_NAMES[name] for name in found)


class Decoder:
    """`feed` takes bytes as they arrive and returns what they decode to; `finish` checks that the end was reached.

    `received`, `produced`: bytes in and out so far. When `feed` raises, `salvage` has what that piece decoded to before.
    """

    def __init__(self, codings: tuple[str, ...] = (), caps: Caps | None = None) -> None:
        self._caps = caps or Caps()
        self._layers = [_Layer(coding) for coding in reversed(codings)]
        self.received = self.produced = 0
        self.salvage = b""

    def feed(self, data: bytes) -> bytes:
        self.received += len(data)
        if not self._layers:
            return self._counted(data)
        pieces: list[bytes] = []
        try:
            self._through(0, data, pieces)
        except TheirError:
            self.salvage = b"".join(pieces)
            raise
        return b"".join(pieces)

    def finish(self) -> bytes:
        """What was held back (a body of one byte); TheirError `truncated` if a stream has not come to its end."""
        rest = b""
        for depth, layer in enumerate(self._layers):
            pieces: list[bytes] = []
            for piece in layer.flush():
                self._through(depth + 1, piece, pieces)
            rest += b"".join(pieces)
        if not all(layer.whole for layer in self._layers):
            self.salvage = rest
            raise TheirError("truncated", "the coded body stops early")
        return rest

    def _through(self, depth: int, data: bytes, pieces: list[bytes]) -> None:
        """`data` through the layers from `depth` on; in steps, so that the caps hold inside of a layer, too."""
        if depth == len(self._layers):
            pieces.append(self._counted(data))
            return
        for piece in self._layers[depth].feed(data, 1 + self._room()):
            self._through(depth + 1, piece, pieces)

    def _room(self) -> int:
        caps = self._caps
        return min(caps.size, max(caps.free, caps.ratio * self.received)) - self.produced

    def _counted(self, data: bytes) -> bytes:
        room = self._room() if self._layers else self._caps.size - self.produced
        self.produced += len(data)
        if len(data) <= room:
            return data
        self.salvage = data[: max(room, 0)]
        self.produced -= len(data) - len(self.salvage)
        raise _TooLarge(self.salvage)


class _TooLarge(TheirError):
    def __init__(self, salvage: bytes) -> None:
        super().__init__("too-large", "over the cap on decoded bytes")
        self.salvage = salvage
