"""Content-Encoding undone piece by piece: gzip and deflate, at most two layers, with caps on what comes out.

Bodies lie, so: a coding that does not exist ("none", "utf-8") is none, a body under a coding header that is not coded
passes as it is (told by its first bytes), deflate is taken with and without its zlib header, garbage after the end of a
gzip stream is dropped. What cannot be forgiven is a failure: `encoding` for a coding we did not ask for, a third layer
and a broken stream (also a wrong checksum), `too-large` over the caps, `truncated` for a stream that stops early. What
was decoded of the blocks before it stays good, whatever packets they came in.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from xyro.wire.errors import TheirError

MAX_LAYERS = 2
STEP = 64 * 1024
"""Bytes that one call of zlib may bring: the caps are looked at in between."""
BLOCK = 4096
"""Bytes of a stream that zlib is given at a time, counted from its beginning: where it breaks does not hang on packets.
zlib tells nothing of a block in which it finds a fault."""
RAW_NEEDS = 256
"""Bytes of a raw deflate stream, which has no mark, that have to inflate before it is believed to be one."""
GZIP_MAGIC = b"\x1f\x8b"
MEMBERS = 10_000
"""Streams one after another that a gzip file may have (800 of 64 KiB make a sitemap of 50 MB): an empty one brings
nothing that a cap would count, and costs 2 us for its 20 bytes."""

_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}
_NOT_OURS = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip"})
"""The other codings that there are (IANA's registry of HTTP content codings)."""
_GZIP, _ZLIB, _RAW = 31, 15, -15  # window bits of zlib.decompressobj: they choose the format


@dataclass(frozen=True, slots=True)
class Caps:
    """At most `size` bytes come out, of an inner layer too, and of those beyond `free` at most `ratio` times what went
    in."""

    size: int = 8 * 1024 * 1024
    ratio: int = 200
    free: int = 1024 * 1024


DEFAULT_CAPS = Caps()


def codings_of(header: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding header in the order applied; TheirError `encoding` if they are not ours.

    What is no coding is passed over, as browsers do. So is "chunked": a Transfer-Encoding may be read along, behind.
    """
    names = [name.partition(";")[0].strip().lower() for name in header.split(",")]
    for name in names:
        if name in _NOT_OURS:
            raise TheirError("encoding", f"a coding not asked for: {name}")
    codings = tuple(_NAMES[name] for name in names if name in _NAMES)
    if len(codings) > MAX_LAYERS:
        raise TheirError("encoding", f"{len(codings)} layers of coding")
    return codings


class Decoder:
    """`feed` takes bytes as they arrive and returns what they decode to; `finish` says that no more will come.

    `failure`: a failure class as soon as one is known; nothing comes out after it. `received`, `produced`: bytes in
    and out. One output may be as large as the caps leave room for.
    """

    def __init__(self, codings: tuple[str, ...] = (), caps: Caps = DEFAULT_CAPS) -> None:
        self.caps = caps
        """may grow while bytes are fed"""
        self._layers = [_Layer(coding) for coding in reversed(codings)]
        self.received = self.produced = 0
        self._between = 0
        """bytes that came out of the layers before the last one"""
        self.failure = ""

    def feed(self, data: bytes) -> bytes:
        if self.failure:
            return b""
        self.received += len(data)
        if not self._layers:
            return self._counted(data)
        return self._drained((data,))

    def finish(self) -> bytes:
        """Return the bytes held back so far; set `failure` to `truncated` if a stream has not come to its end."""
        if self.failure or not self._layers:
            return b""
        rest = self._drained((), last=True)
        if not self.failure and not all(layer.is_whole for layer in self._layers):
            self.failure = "truncated"
        return rest

    def _drained(self, pieces: Iterable[bytes], *, last: bool = False) -> bytes:
        """All that comes out of the last layer, up to the caps."""
        for layer in self._layers[:-1]:
            pieces = self._watched(layer.run(pieces, last))
        pieces = self._layers[-1].run(pieces, last)
        out: list[bytes] = []
        try:
            for piece in pieces:
                out.append(self._counted(piece))
                if self.failure:
                    break
        except zlib.error:
            self.failure = "encoding"
        return b"".join(out)

    def _watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Pass on one layer's output to the next, up to the cap: a bomb may lie between the layers, and come to
        nothing."""
        for piece in pieces:
            room = self.caps.size - self._between
            self._between += len(piece)
            yield piece[:room] if len(piece) > room else piece
            if len(piece) > room:
                self.failure = "too-large"
                return

    def _counted(self, data: bytes) -> bytes:
        caps = self.caps
        room = caps.size - self.produced
        if self._layers:
            room = min(room, max(caps.free, caps.ratio * self.received) - self.produced)
        if len(data) > room:
            self.failure = "too-large"
            data = data[:room]
        self.produced += len(data)
        return data


class _Layer:
    """One coding. Begins undecided; becomes plain or a stream; a stream ends, after which only another may follow."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._pending = b""
        self._plain = False
        self._over = False
        self._ended = 0
        self._inflate: zlib._Decompress | None = None

    @property
    def is_whole(self) -> bool:
        """Tell whether every stream that began has ended. (An empty body is whole.)"""
        return self._inflate is None

    def run(self, pieces: Iterable[bytes], last: bool) -> Iterator[bytes]:
        """Decode `pieces`, in steps of at most STEP bytes (or a whole piece that passes as it is)."""
        for piece in pieces:
            yield from self._feed(piece, False)
        if last and self._pending:
            yield from self._feed(b"", True)

    def _feed(self, data: bytes, last: bool) -> Iterator[bytes]:
        data, self._pending = self._pending + data, b""
        while data and not self._over:
            if self._plain:
                yield data
                return
            if self._inflate is None:
                if not last and len(data) < self._needed(data):
                    self._pending = data
                    return
                self._begin(data)
            else:
                data = yield from self._inflated(data, self._inflate, last)

    def _needed(self, data: bytes) -> int:
        """Return the number of bytes needed to decide what begins with `data`."""
        return 2 if len(data) < 2 or self._bits(data) != _RAW else RAW_NEEDS

    def _begin(self, data: bytes) -> None:
        """Decide what begins with `data`, which is fed to it next."""
        bits = self._bits(data)
        if self._ended >= MEMBERS:
            raise zlib.error("too many members")
        if self._ended and bits != _GZIP:
            self._over = True
        elif bits == _RAW and not _is_raw_deflate(data):
            self._plain = True
        elif bits:
            self._inflate = zlib.decompressobj(bits)
        else:
            self._plain = True

    def _bits(self, data: bytes) -> int:
        if data.startswith(GZIP_MAGIC):
            return _GZIP
        if self._coding == "gzip" or len(data) < 2:
            return 0
        return _ZLIB if data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0 else _RAW

    def _inflated(self, data: bytes, inflate: zlib._Decompress, last: bool) -> Generator[bytes, None, bytes]:
        """Yields what the whole blocks of `data` decode to; returns what follows the end of the stream."""
        for start in range(0, len(data), BLOCK):
            block = data[start : start + BLOCK]
            if len(block) < BLOCK and not last:
                self._pending = block
                return b""
            yield from self._inflated_block(block, inflate)
            if inflate.eof:
                self._inflate = None
                self._ended += 1
                return inflate.unused_data + data[start + BLOCK :]
        return b""

    def _inflated_block(self, block: bytes, inflate: zlib._Decompress) -> Iterator[bytes]:
        while True:
            out = inflate.decompress(block, STEP)
            if out:
                yield out
            block = inflate.unconsumed_tail
            if inflate.eof or (not block and len(out) < STEP):
                return


def _is_raw_deflate(data: bytes) -> bool:
    try:
        zlib.decompressobj(_RAW).decompress(data, 1)
    except zlib.error:
        return False
    return True
