"""Frames of the cluster: what goes in comes out, in messages that a broker takes, and nothing else is taken for one."""

from __future__ import annotations

import itertools
import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.wire.errors import CodecError
from xyro.wire.frames import MAX_FRAME, Entry, FrameReader, frames

BROKER_LIMIT = 1 << 20
"""nats-server's max_payload"""
entries = st.builds(
    Entry,
    st.sampled_from(["pages.0", "pages.4095", "answers.3"]),
    st.integers(-1, 4095),
    st.integers(0, 2**40),
    st.binary(max_size=3000),
)


def read_all(reader: FrameReader, data: list[bytes]) -> list[Entry]:
    return [entry for each in data if (frame := reader.read(each)) is not None for entry in frame.entries]


@given(st.lists(entries, max_size=50))
def test_entries_come_out_in_their_order(found):
    assert read_all(FrameReader(), list(frames(7, "a", found, itertools.count()))) == found


def test_large_messages_travel_in_pieces_that_a_broker_takes_in_any_order():
    found = [Entry("pages.1", 2, 3, bytes([i]) * size) for i, size in enumerate((10, MAX_FRAME, 5_000_000, 10))]
    data = list(frames(1, "a", found, itertools.count()))
    assert max(map(len, data)) <= BROKER_LIMIT
    random.Random(4).shuffle(data)
    read = read_all(FrameReader(), data)
    assert sorted(read, key=lambda entry: entry.message) == sorted(found, key=lambda entry: entry.message)


def test_many_small_messages_stay_below_the_limit_of_a_broker():
    found = [Entry("pages.1", 2, 3, b"x" * 100)] * 30_000
    data = list(frames(1, "a", found, itertools.count()))
    assert max(map(len, data)) <= BROKER_LIMIT
    assert len(read_all(FrameReader(), data)) == 30_000


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_a_codec_error(data):
    try:
        FrameReader().read(data)
    except CodecError:
        return


@pytest.mark.parametrize(
    "forged",
    [
        {"a": 1},
        (1,),
        (1, 2),
        ("1", []),
        (1, [("pages.1", 1, 1)]),
        (1, [("pages.1", 1, "1", b"")]),
        (1, 1, 0, 10**9, b""),
        (1, 1, 5, 5, b""),
        (1, 1, 0, 1, b""),
    ],
)
def test_a_forged_frame_is_refused(forged):
    with pytest.raises(CodecError):
        FrameReader().read(msgpack.packb(forged))


def test_pieces_of_messages_that_never_end_are_given_up():
    reader = FrameReader()
    for number in range(1000):
        assert reader.read(msgpack.packb((1, number, 0, 2, b"x" * 1000))) is None
    assert len(reader._parts) <= 17
