"""Content-Encoding undone piece by piece: gzip, deflate, br and zstd, at most two layers, with caps on what comes out.

Bodies lie, so: a coding that does not exist ("none", "utf-8") is none, a body under a coding header that is not coded
passes as it is (told by its first bytes), deflate is taken with and without its zlib header, garbage after the end of a
gzip or zstd stream is dropped. What cannot be forgiven is a failure: `encoding` for a coding not asked for, a third
layer, a broken stream (also a wrong checksum) and bytes behind one of Brotli, which has no members; `too-large` over
the cap on bytes, `ratio-too-large` over that on the ratio, `truncated` for a stream that stops early. What was decoded
of the blocks before it stays good, whatever packets they came in. coded_streams.py has the streams.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from xyro.coded_streams import BrokenStream, BrotliStream, CodedStream, DeflateStream, ZstdStream
from xyro.wire.errors import TheirError

MAX_LAYERS = 2
BLOCK = 4096
"""Bytes of a stream that are decoded at a time, counted from its beginning: where it breaks does not hang on packets.
The libraries tell nothing of a block in which they find a fault."""
UNMARKED_NEEDS = 256
"""Bytes of a stream without a mark (raw deflate, Brotli) that have to decode before it is believed to be one."""
GZIP_MAGIC = b"\x1f\x8b"
MEMBERS = 10_000
"""Streams one after another that a gzip file may have (800 of 64 KiB make a sitemap of 50 MB): an empty one brings
nothing that a cap would count, and costs 2 us for its 20 bytes. As many frames of zstd."""
ACCEPTED = "gzip, deflate, br, zstd"
"""Accept-Encoding: all that is undone here"""

_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
_NOT_OURS = frozenset({"compress", "x-compress", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip"})
"""The other codings that there are (IANA's registry of HTTP content codings)."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"
"""of a zstd frame to be passed over, behind a byte 0x50 to 0x5f"""


class _Format(Struct, frozen=True):
    """One kind of stream. `marked`: its first bytes say so; `members`: another may follow its end."""

    begin: Callable[[], CodedStream]
    marked: bool = True
    members: bool = False


# 31, 15 and -15 are zlib's window bits: they choose the wrapping
_GZIP: Final = _Format(lambda: DeflateStream(31), members=True)
_ZLIB: Final = _Format(lambda: DeflateStream(15))
_RAW: Final = _Format(lambda: DeflateStream(-15), marked=False)
_BROTLI: Final = _Format(BrotliStream, marked=False)
_ZSTD: Final = _Format(ZstdStream, members=True)


class Caps(Struct, frozen=True):
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


def coding_word(headers: Mapping[str, str]) -> str:
    """The content coding of an answer as one word of few, for figures; `identity` for none, `other` for one that is not
    ours and for several."""
    try:
        codings = codings_of(headers.get("Content-Encoding", ""))
    except TheirError:
        return "other"
    return "other" if len(codings) > 1 else codings[0] if codings else "identity"


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
        except BrokenStream:
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
        room, bound = caps.size - self.produced, "too-large"
        if self._layers:
            by_ratio = max(caps.free, caps.ratio * self.received) - self.produced
            if by_ratio < room:
                room, bound = by_ratio, "ratio-too-large"
        if len(data) > room:
            self.failure = bound
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
        self._stream: CodedStream | None = None

    @property
    def is_whole(self) -> bool:
        """Tell whether every stream that began has ended. (An empty body is whole.)"""
        return self._stream is None

    def run(self, pieces: Iterable[bytes], last: bool) -> Iterator[bytes]:
        """Decode `pieces`, in steps of some 64 KiB (or a whole piece that passes as it is)."""
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
            if self._stream is None:
                if not last and len(data) < self._needed(data):
                    self._pending = data
                    return
                self._begin(data)
            else:
                data = yield from self._decoded(data, self._stream, last)

    def _needed(self, data: bytes) -> int:
        """Return the number of bytes needed to decide what begins with `data`."""
        mark = 4 if self._coding == "zstd" else 2
        if len(data) < mark:
            return mark
        form = self._format(data)
        return UNMARKED_NEEDS if form is not None and not form.marked and not self._ended else mark

    def _begin(self, data: bytes) -> None:
        """Decide what begins with `data`, which is fed to it next."""
        form = self._format(data)
        if self._ended >= MEMBERS:
            raise BrokenStream("too many members")
        if self._ended and self._coding == "br":
            raise BrokenStream("bytes behind the end")
        if self._ended and (form is None or not form.members):
            self._over = True
        elif form is None or not (form.marked or _begins(form, data[:UNMARKED_NEEDS])):
            self._plain = True
        else:
            self._stream = form.begin()

    def _format(self, data: bytes) -> _Format | None:
        """Return the format that `data` begins with, by its mark; None: it is not coded."""
        if self._coding == "br":  # a stream of it may begin with any mark
            return _BROTLI
        if self._coding == "zstd":
            skipped = data[1:4] == _SKIPPABLE_MAGIC and data[0] >> 4 == 5
            return _ZSTD if skipped or data.startswith(_ZSTD_MAGIC) else None
        if data.startswith(GZIP_MAGIC):
            return _GZIP
        if self._coding == "gzip" or len(data) < 2:
            return None
        return _ZLIB if data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0 else _RAW

    def _decoded(self, data: bytes, stream: CodedStream, last: bool) -> Generator[bytes, None, bytes]:
        """Yields what the whole blocks of `data` decode to; returns what follows the end of the stream."""
        for start in range(0, len(data), BLOCK):
            block = data[start : start + BLOCK]
            if len(block) < BLOCK and not last:
                self._pending = block
                return b""
            yield from stream.decoded(block)
            if stream.is_over:
                self._stream = None
                self._ended += 1
                return stream.rest + data[start + BLOCK :]
        return b""


def _begins(form: _Format, data: bytes) -> bool:
    """Tell whether a stream without a mark can begin like this."""
    try:
        next(form.begin().decoded(data), b"")
    except BrokenStream:
        return False
    return True
