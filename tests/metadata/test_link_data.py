"""Link-Data: round trips without a copy, limits, damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xyro.metadata import rows
from xyro.wire.errors import MachineError
from xyro.wire.messages import MAX_LINKS


@given(arrays(np.uint32, st.integers(0, 70)))
def test_round_trip(children):
    data = rows.pack_links(children)
    assert len(data) == 4 * len(children)
    back = rows.unpack_links(data)
    assert back.dtype == np.uint32
    assert back.tolist() == children.tolist()


def test_pinned_bytes():
    assert rows.pack_links(np.array([1, 2], np.uint32)).hex() == "01000000" + "02000000"
    assert rows.pack_links(np.empty(0, np.uint32)) == b""


def test_an_unpacked_array_is_a_view_and_cannot_be_written():
    data = rows.pack_links(np.arange(5, dtype=np.uint32))
    array = rows.unpack_links(data)
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    assert not array.flags.writeable


def test_the_most_children_fit_and_one_more_is_refused():
    most = np.arange(MAX_LINKS, dtype=np.uint32)
    assert len(rows.unpack_links(rows.pack_links(most))) == MAX_LINKS
    with pytest.raises(ValueError, match="at most 65534"):
        rows.pack_links(np.zeros(MAX_LINKS + 1, np.uint32))


def test_narrower_numbers_widen_and_wider_ones_are_refused():
    assert rows.unpack_links(rows.pack_links(np.array([7], np.uint16))).tolist() == [7]
    with pytest.raises(TypeError):
        rows.pack_links(np.array([2**40], np.int64))


def test_big_endian_and_strided_arrays_are_stored_the_same():
    plain = np.arange(6, dtype=np.uint32)
    assert rows.pack_links(plain.astype(">u4")) == rows.pack_links(plain)
    assert rows.pack_links(np.arange(12, dtype=np.uint32)[::2]) == rows.pack_links(plain * 2)


def test_cut_at_every_byte_is_damage_or_fewer_children():
    whole = rows.pack_links(np.arange(4, dtype=np.uint32))
    for length in range(len(whole)):
        if length % 4 == 0:  # LevelDB gives whole values: lengths carry the number of children
            assert len(rows.unpack_links(whole[:length])) == length // 4
        else:
            with pytest.raises(MachineError, match="damaged store"):
                rows.unpack_links(whole[:length])


def test_more_than_the_most_children_is_damage():
    data = rows.pack_links(np.zeros(MAX_LINKS, np.uint32))
    with pytest.raises(MachineError, match="damaged store"):
        rows.unpack_links(data + bytes(4))


@given(st.binary(max_size=60))
def test_any_bytes_give_children_or_an_error_of_ours(data):
    try:
        back = rows.unpack_links(data)
    except MachineError:
        return
    assert rows.pack_links(back) == data
