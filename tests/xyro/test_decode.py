"""Content codings: each case whole and split at every byte, caps, lies and broken streams (zoo 48-53)."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from xyro.coded_streams import STEP
from xyro.decode import BLOCK, MEMBERS, Caps, Decoder, coding_word, codings_of
from xyro.wire.errors import TheirError

TEXT = b"<html>" + b"some text, and more of it. " * 40 + b"</html>"


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


SKIPPABLE = b"\x53\x2a\x4d\x18" + struct.pack("<I", 5) + b"later"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
}


def packed(data: bytes, *codings: str) -> bytes:
    for coding in codings:
        data = PACK[coding](data)
    return data


CODED = {
    "br": (("br",), brotli.compress(TEXT)),
    "zstd": (("zstd",), packed(TEXT, "zstd")),
    "two frames": (("zstd",), packed(TEXT[:100], "zstd") + packed(TEXT[100:], "zstd")),
    "skippable frames": (("zstd",), SKIPPABLE + packed(TEXT, "zstd") + SKIPPABLE),
    "garbage after a frame": (("zstd",), packed(TEXT, "zstd") + b"\0" * 50),
    "br in gzip": (("br", "gzip"), packed(TEXT, "br", "gzip")),
    "zstd in br": (("zstd", "br"), packed(TEXT, "zstd", "br")),
    "br twice": (("br", "br"), packed(TEXT, "br", "br")),
    "plain called br": (("br",), TEXT),
    "plain called zstd": (("zstd",), TEXT),
    "br once called twice": (("br", "br"), brotli.compress(TEXT)),
    "zstd once called twice": (("zstd", "zstd"), packed(TEXT, "zstd")),
    "gzip": (("gzip",), gzip.compress(TEXT)),
    "two members": (("gzip",), gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
    "zlib": (("deflate",), zlib.compress(TEXT)),
    "raw deflate": (("deflate",), raw_deflate(TEXT)),
    "gzip called deflate": (("deflate",), gzip.compress(TEXT)),
    "gzip twice": (("gzip", "gzip"), gzip.compress(gzip.compress(TEXT))),
    "deflate in gzip": (("deflate", "gzip"), gzip.compress(zlib.compress(TEXT))),
    "plain called gzip": (("gzip",), TEXT),
    "plain called deflate": (("deflate",), TEXT),
    "gzip once called twice": (("gzip", "gzip"), gzip.compress(TEXT)),
    "plain": ((), TEXT),
    "garbage after the end": (("gzip",), gzip.compress(TEXT) + b"\0" * 50),
}


def decode(codings: tuple[str, ...], body: bytes, step: int = 0, caps: Caps | None = None) -> tuple[bytes, str]:
    decoder = Decoder(codings, caps or Caps())
    out = (
        b"".join(decoder.feed(body[at : at + step]) for at in range(0, len(body), step)) if step else decoder.feed(body)
    )
    out += decoder.finish()
    assert decoder.produced == len(out)
    return out, decoder.failure


@pytest.mark.parametrize("name", CODED)
def test_whole_and_in_pieces_of_any_size(name: str) -> None:
    codings, body = CODED[name]
    for step in (0, 1, 2, 3, 7, len(body) - 1):
        assert decode(codings, body, step) == (TEXT, ""), step


@given(st.binary(max_size=2000), st.integers(1, 300))
def test_round_trip(data: bytes, step: int) -> None:
    assert decode(("gzip",), gzip.compress(data), step) == (data, "")
    assert decode(("deflate",), zlib.compress(data), step) == (data, "")
    assert decode(("br",), brotli.compress(data), step) == (data, "")
    assert decode(("zstd",), packed(data, "zstd"), step) == (data, "")


LAYERS = [
    ("gzip",),
    ("deflate",),
    ("br",),
    ("zstd",),
    ("gzip", "gzip"),
    ("deflate", "gzip"),
    ("br", "zstd"),
    ("zstd", "br"),
]


@given(st.binary(max_size=300), st.sampled_from(LAYERS))
def test_no_bytes_raise(data: bytes, codings: tuple[str, ...]) -> None:
    _, failure = decode(codings, data, 5)
    assert failure in ("", "encoding", "truncated")


def test_bodies_of_no_and_one_byte_pass() -> None:
    for codings in LAYERS:
        assert decode(codings, b"") == (b"", "")
    for codings in (("gzip",), ("deflate",), ("zstd",), ("gzip", "gzip"), ("zstd", "gzip")):
        assert decode(codings, b"x") == (b"x", "")
    for byte in range(256):  # one byte may be a whole stream of Brotli, or the beginning of one
        assert decode(("br",), bytes([byte])) in ((bytes([byte]), ""), (b"", ""), (b"", "truncated"))


@pytest.mark.parametrize("name", ["gzip", "two members", "zlib", "raw deflate", "gzip twice", "deflate in gzip"])
def test_a_stream_that_stops_early_is_told_and_its_beginning_kept(name: str) -> None:
    codings, body = CODED[name]
    out, failure = decode(codings, body[:-3])
    assert failure == "truncated"
    assert TEXT.startswith(out)
    # even its trailer matters (zoo 51), and a cut at any place but between two members is seen
    starts = {0, 1, len(gzip.compress(TEXT[:100])), len(gzip.compress(TEXT[:100])) + 1}
    for cut in set(range(len(body))) - starts:
        assert decode(codings, body[:cut])[1] == "truncated", cut


@pytest.mark.parametrize(
    ("name", "sure"), [("br", 1), ("zstd", 4), ("two frames", 4), ("br in gzip", 2), ("zstd in br", 1)]
)
def test_a_stream_of_the_newer_codings_that_stops_early_is_told(name: str, sure: int) -> None:
    """From the byte on that tells what it is; two frames may be cut between them."""
    codings, body = CODED[name]
    end = len(packed(TEXT[:100], "zstd"))
    between = set(range(end, end + 4)) if name == "two frames" else set()
    for cut in set(range(sure, len(body))) - between:
        out, failure = decode(codings, body[:cut])
        assert failure == "truncated", cut
        assert TEXT.startswith(out) or (codings[0] == "zstd" and b"\x28\xb5\x2f".startswith(out)), cut


NOISE = random.Random(4).randbytes(20_000)
STEPS = (0, 1, 3, 100, 1448, BLOCK - 1, BLOCK, BLOCK + 1, 16_384)


@pytest.mark.parametrize("codings", [("gzip",), ("gzip", "gzip"), ("deflate", "gzip")])
@pytest.mark.parametrize("fault", [-8, -1, 10_000, 5_000])
def test_what_is_kept_of_a_broken_stream_does_not_hang_on_packets(codings: tuple[str, ...], fault: int) -> None:
    """A wrong checksum, a wrong length, a fault in the middle."""
    inner = NOISE if len(codings) == 1 else gzip.compress(NOISE) if codings[0] == "gzip" else zlib.compress(NOISE)
    if fault > 0:  # a stored block with a wrong length
        squeeze = zlib.compressobj(wbits=31)
        head = squeeze.compress(inner[:fault]) + squeeze.flush(zlib.Z_FULL_FLUSH)
        body = head + b"\x01\xff\xff\xff\xff" + inner[fault:]
    else:
        whole = bytearray(gzip.compress(inner))
        whole[fault] ^= 1
        body = bytes(whole)
    kept = {decode(codings, body, step) for step in STEPS}
    ((out, failure),) = kept
    assert failure == "encoding"
    if len(codings) == 1:
        assert NOISE.startswith(out)
        assert len(out) >= (fault if fault > 0 else len(NOISE)) - 2 * BLOCK


@pytest.mark.long
@pytest.mark.parametrize("codings", [("br",), ("zstd",), ("zstd", "gzip"), ("br", "zstd")])
@pytest.mark.parametrize("fault", [3_000, 10_000, -2])
def test_a_fault_of_the_newer_codings_does_not_hang_on_packets(codings: tuple[str, ...], fault: int) -> None:
    words = random.Random(5).choices([b"some ", b"words ", b"of ", b"it ", b"<p>", b"1234 "], k=60_000)
    text = b"".join(words)
    body = bytearray(packed(text, *codings))
    assert len(body) > 12_000
    for place in range(fault, fault + 2):
        body[place] ^= 0x55
    ((out, failure),) = {decode(codings, bytes(body), step) for step in STEPS}
    if codings[0] == "zstd":  # its checksum; Brotli has none
        assert failure in ("encoding", "truncated")
    assert failure or codings[0] == "br"
    assert len(out) <= len(text) + STEP


@given(st.binary(max_size=40), st.integers(0, 9_000), st.sampled_from(STEPS), st.sampled_from([*PACK, "raw"]))
def test_no_packets_make_another_body(garbage: bytes, place: int, step: int, coding: str) -> None:
    body = raw_deflate(NOISE[:9_000]) if coding == "raw" else packed(NOISE[:9_000], coding)
    coding = coding.replace("raw", "deflate")
    body = body[:place] + garbage + body[place:]
    assert decode((coding,), body) == decode((coding,), body, step)


def test_the_cap_on_size_cuts_exactly() -> None:
    for step in (0, 1, 100):
        assert decode(("gzip",), gzip.compress(TEXT), step, Caps(size=100)) == (TEXT[:100], "too-large")
        assert decode((), TEXT, step, Caps(size=100)) == (TEXT[:100], "too-large")
        for coding in PACK:
            assert decode((coding,), packed(TEXT, coding), step, Caps(size=100)) == (TEXT[:100], "too-large")
    assert decode((), TEXT, 0, Caps(size=len(TEXT))) == (TEXT, "")


def test_the_cap_on_ratio_counts_beyond_what_is_free() -> None:
    for coding in PACK:
        body = packed(b"x" * 100_000, coding)
        out, failure = decode((coding,), body, 0, Caps(ratio=10, free=1000))
        assert (len(out), failure) == (max(10 * len(body), 1000), "ratio-too-large")
        assert decode((coding,), body, 0, Caps(ratio=10, free=100_000))[1] == ""


@pytest.mark.long
@pytest.mark.parametrize("codings", [("gzip",), ("gzip", "gzip"), ("br",), ("zstd",), ("br", "gzip"), ("zstd", "br")])
def test_a_bomb_takes_little_memory(codings: tuple[str, ...]) -> None:
    bomb = b"\0" * 200_000_000
    for coding in codings:
        bomb = brotli.compress(bomb, quality=3) if coding == "br" else packed(bomb, coding)
    tracemalloc.start()
    decoder = Decoder(codings)
    out = decoder.feed(bomb) + decoder.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decoder.failure == ("too-large" if codings == ("gzip",) else "ratio-too-large")
    assert len(out) <= 8 * 2**20
    assert peak < 20 * 2**20
    assert decoder.feed(bomb) == b""


def test_the_header() -> None:
    assert codings_of("") == ()
    assert codings_of("identity") == ()
    assert codings_of(" X-GZip , deflate") == ("gzip", "deflate")
    for header in ("none", "utf-8", "text/html", "\udcff", "chunked", "binary;q=1", ";", "x-secret"):
        assert codings_of(header) == ()
        assert codings_of(f"{header}, gzip") == ("gzip",)
    assert codings_of("BR, Zstd;q=1") == ("br", "zstd")
    for header in ("compress", "dcb", "dcz", "gzip, exi", "none, compress", "gzip, gzip, gzip", "br, zstd, gzip"):
        with pytest.raises(TheirError) as caught:
            codings_of(header)
        assert caught.value.kind == "encoding"


def test_a_bomb_between_the_layers_is_met_by_the_caps_too() -> None:
    empty = gzip.compress(b"") * 500_000  # 10 MB that come to nothing: no cap on what comes out would ever see them
    decoder = Decoder(("gzip", "gzip"), Caps(size=100_000))
    assert decoder.feed(gzip.compress(empty)) == b""
    assert decoder.failure == "too-large"
    assert decoder._between <= 100_000 + STEP  # and no more than that was made


@pytest.mark.parametrize("step", STEPS)
def test_the_cap_between_layers_cuts_exactly(step: int) -> None:
    """Found by fuzzing: a body called packed twice that is packed not at all, in one piece of more than the cap."""
    assert decode(("gzip", "gzip"), NOISE, step, Caps(size=10_000)) == (NOISE[:10_000], "too-large")


def test_empty_members_are_counted() -> None:
    decoder = Decoder(("gzip",))
    decoder.feed(gzip.compress(b"") * MEMBERS)
    assert decoder.failure == ""
    assert decoder.feed(gzip.compress(TEXT)) + decoder.finish() == b""
    assert decoder.failure == "encoding"


def test_empty_frames_are_counted() -> None:
    empty = packed(b"", "zstd")
    for frame in (empty, SKIPPABLE):
        decoder = Decoder(("zstd",))
        decoder.feed(frame * (2 * MEMBERS) + packed(TEXT, "zstd"))
        decoder.finish()
        assert decoder.failure == "encoding" or frame is SKIPPABLE
        assert decoder.produced <= len(TEXT)


def test_nothing_follows_a_stream_of_brotli() -> None:
    body = brotli.compress(NOISE)
    for step in STEPS:
        assert decode(("br",), body, step) == (NOISE, "")
        assert decode(("br",), body + b"\0", step)[1] == "encoding"
        assert decode(("br",), body + body, step)[1] == "encoding"


def test_a_window_that_would_take_much_memory_is_refused() -> None:
    """RFC 9659: 8 MiB. What asks for more, 128 MiB here, is no content coding."""
    for bits, failure in ((23, ""), (27, "encoding")):
        squeeze = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: bits})
        body = squeeze.compress(TEXT) + squeeze.flush()
        assert decode(("zstd",), body) == (b"" if failure else TEXT, failure)


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("size", [0, 1, STEP - 1, STEP, STEP + 1, 98_272, 100_000, 2 * STEP, 4 * STEP + 7])
def test_a_body_ends_where_its_steps_end(coding: str, size: int) -> None:
    assert decode((coding,), packed(b"x" * size, coding)) == (b"x" * size, "")


@pytest.mark.parametrize(
    ("header", "word"),
    [("", "identity"), ("identity", "identity"), ("BR", "br"), ("x-gzip", "gzip"), ("deflate;q=1", "deflate"),
     ("zstd", "zstd"), ("gzip, br", "other"), ("compress", "other"), (",".join(["gzip"] * 50), "other")],
)  # fmt: skip
def test_a_coding_is_one_word_of_few(header: str, word: str) -> None:
    assert coding_word({"Content-Encoding": header}) == word
