"""Content codings: each case whole and split at every byte, caps, lies and broken streams (zoo 48-53)."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.decode import BLOCK, MEMBERS, STEP, Caps, Decoder, codings_of
from xyro.wire.errors import TheirError

TEXT = b"<html>" + b"some text, and more of it. " * 40 + b"</html>"


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


CODED = {
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


@given(st.binary(max_size=300), st.sampled_from([("gzip",), ("deflate",), ("gzip", "gzip"), ("deflate", "gzip")]))
def test_no_bytes_raise(data: bytes, codings: tuple[str, ...]) -> None:
    _, failure = decode(codings, data, 5)
    assert failure in ("", "encoding", "truncated")


def test_bodies_of_no_and_one_byte_pass() -> None:
    for codings in (("gzip",), ("deflate",), ("gzip", "gzip")):
        assert decode(codings, b"") == (b"", "")
        assert decode(codings, b"x") == (b"x", "")


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


@given(st.binary(max_size=40), st.integers(0, 9_000), st.sampled_from(STEPS), st.sampled_from(["gzip", "deflate"]))
def test_no_packets_make_another_body(garbage: bytes, place: int, step: int, coding: str) -> None:
    body = gzip.compress(NOISE[:9_000]) if coding == "gzip" else raw_deflate(NOISE[:9_000])
    body = body[:place] + garbage + body[place:]
    assert decode((coding,), body) == decode((coding,), body, step)


def test_the_cap_on_size_cuts_exactly() -> None:
    for step in (0, 1, 100):
        assert decode(("gzip",), gzip.compress(TEXT), step, Caps(size=100)) == (TEXT[:100], "too-large")
        assert decode((), TEXT, step, Caps(size=100)) == (TEXT[:100], "too-large")
    assert decode((), TEXT, 0, Caps(size=len(TEXT))) == (TEXT, "")


def test_the_cap_on_ratio_counts_beyond_what_is_free() -> None:
    body = gzip.compress(b"x" * 100_000)
    out, failure = decode(("gzip",), body, 0, Caps(ratio=10, free=1000))
    assert (len(out), failure) == (10 * len(body), "too-large")
    assert decode(("gzip",), body, 0, Caps(ratio=10, free=100_000))[1] == ""


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bomb_takes_little_memory(layers: int) -> None:
    bomb = (
        gzip.compress(b"\0" * 200_000_000, 9)
        if layers == 1
        else gzip.compress(gzip.compress(b"\0" * 200_000_000, 9), 9)
    )
    tracemalloc.start()
    decoder = Decoder(("gzip",) * layers)
    out = decoder.feed(bomb) + decoder.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decoder.failure == "too-large"
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
    for header in ("br", "zstd", "gzip, br", "none, compress", "gzip, gzip, gzip"):
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
