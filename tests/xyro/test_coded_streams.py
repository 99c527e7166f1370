"""Deflate by ISA-L beside zlib: the same bytes at every split, and no damaged stream passes for a whole one."""

from __future__ import annotations

import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.coded_streams import BrokenStream, DeflateStream

GZIP, ZLIB, RAW = 31, 15, -15
BODIES = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 5_000)).map(lambda parts: parts[0] * parts[1]),
)
CUTS = st.lists(st.integers(0, 400), max_size=8)


def coded(body: bytes, bits: int, level: int = 6) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, bits)
    return deflate.compress(body) + deflate.flush()


def undone(stream: DeflateStream, data: bytes, cuts: list[int]) -> bytes:
    """Feed the data in pieces, up to the stream's end."""
    out, places = b"", [*sorted(cuts), len(data)]
    for start, stop in zip([0, *places], places, strict=False):
        if stream.is_over:
            stream.rest += data[start:stop]
        else:
            out += b"".join(stream.decoded(data[start:stop]))
    return out


@pytest.mark.parametrize("bits", [GZIP, ZLIB, RAW])
@given(BODIES, CUTS, st.binary(max_size=30), st.sampled_from([0, 1, 6, 9]))
def test_a_whole_stream_gives_its_body_and_what_follows_it(bits, body, cuts, after, level):
    stream = DeflateStream(bits)
    assert undone(stream, coded(body, bits, level) + after, cuts) == body
    assert stream.is_over and stream.rest == after


@pytest.mark.parametrize("bits", [GZIP, ZLIB, RAW])
@given(BODIES, CUTS, st.data())
def test_a_stream_that_is_cut_gives_a_beginning_of_its_body_and_never_ends(bits, body, cuts, data):
    whole = coded(body, bits)
    stream = DeflateStream(bits)
    out = undone(stream, whole[: data.draw(st.integers(0, len(whole) - 1))], cuts)
    assert body.startswith(out) and not stream.is_over


@pytest.mark.parametrize("bits", [GZIP, ZLIB])
@given(BODIES, CUTS, st.data())
def test_a_bit_that_was_turned_over_never_passes_for_another_body(bits, body, cuts, data):
    damaged = bytearray(coded(body, bits))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    stream = DeflateStream(bits)
    with contextlib.suppress(BrokenStream):
        out = undone(stream, bytes(damaged), cuts)
        assert not stream.is_over or out == body


def test_what_is_no_stream_is_told():
    for bits in (GZIP, ZLIB):
        with pytest.raises(BrokenStream):
            undone(DeflateStream(bits), b"<html><title>plain text</title></html>" * 3, [])
