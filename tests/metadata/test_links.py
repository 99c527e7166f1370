"""Link-Data: round trips without a copy, limits, versions, damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xyro.metadata import links
from xyro.wire.errors import InputError, MachineError
from xyro.wire.messages import MAX_LINKS

NONE_HERE = np.empty(0, np.uint32)
NONE_ELSEWHERE = np.empty(0, np.uint64)


@given(arrays(np.uint32, st.integers(0, 70)), arrays(np.uint64, st.integers(0, 70)), st.integers(0, 2**32 - 1))
def test_round_trip(children, foreign, truncated):
    data = links.pack(children, foreign, truncated)
    assert len(data) == 8 + 4 * len(children) + 8 * len(foreign)
    back = links.unpack(data)
    assert back.children.dtype == np.uint32 and back.foreign.dtype == np.uint64
    assert back.children.tolist() == children.tolist()
    assert back.foreign.tolist() == foreign.tolist()
    assert back.truncated == truncated


def test_pinned_bytes():
    data = links.pack(np.array([1, 2], np.uint32), np.array([3], np.uint64), 4)
    assert data.hex() == "01000100" + "04000000" + "0300000000000000" + "01000000" + "02000000"


def test_unpacked_arrays_are_views_and_cannot_be_written():
    data = links.pack(np.arange(5, dtype=np.uint32), np.arange(3, dtype=np.uint64))
    back = links.unpack(data)
    for array in (back.children, back.foreign):
        assert np.shares_memory(array, np.frombuffer(data, np.uint8))
        assert not array.flags.writeable


def test_the_most_children_fit_and_one_more_is_refused():
    most = np.arange(MAX_LINKS, dtype=np.uint32)
    assert len(links.unpack(links.pack(most, NONE_ELSEWHERE)).children) == MAX_LINKS
    assert len(links.unpack(links.pack(NONE_HERE, most.astype(np.uint64))).foreign) == MAX_LINKS
    with pytest.raises(ValueError, match="at most 65534"):
        links.pack(most, np.zeros(1, np.uint64))


def test_truncated_saturates():
    assert links.unpack(links.pack(NONE_HERE, NONE_ELSEWHERE, 2**40)).truncated == 2**32 - 1


def test_narrower_numbers_widen_and_wider_ones_are_refused():
    assert links.unpack(links.pack(np.array([7], np.uint16), NONE_ELSEWHERE)).children.tolist() == [7]
    with pytest.raises(TypeError):
        links.pack(np.array([2**40], np.int64), NONE_ELSEWHERE)


def test_big_endian_and_strided_arrays_are_stored_the_same():
    plain = np.arange(6, dtype=np.uint32)
    assert links.pack(plain.astype(">u4"), NONE_ELSEWHERE) == links.pack(plain, NONE_ELSEWHERE)
    assert links.pack(np.arange(12, dtype=np.uint32)[::2], NONE_ELSEWHERE) == links.pack(plain * 2, NONE_ELSEWHERE)


def test_another_version_names_the_mend():
    data = links.pack(NONE_HERE, NONE_ELSEWHERE)
    with pytest.raises(InputError, match=r"version 2.*use the Xyro that wrote"):
        links.unpack(b"\x02" + data[1:])


def test_cut_at_every_byte_is_damage_or_fewer_local_children():
    whole = links.pack(np.arange(4, dtype=np.uint32), np.arange(2, dtype=np.uint64))
    for length in range(len(whole)):
        if length >= 24 and length % 4 == 0:  # LevelDB gives whole values: lengths carry the number of local children
            assert len(links.unpack(whole[:length]).children) == (length - 24) // 4
        else:
            with pytest.raises(MachineError, match="damaged store"):
                links.unpack(whole[:length])


def test_more_than_the_most_children_is_damage():
    data = links.pack(np.zeros(MAX_LINKS, np.uint32), NONE_ELSEWHERE)
    with pytest.raises(MachineError, match="damaged store"):
        links.unpack(data + bytes(4))


@given(st.binary(max_size=60))
def test_any_bytes_give_children_or_an_error_of_ours(data):
    try:
        back = links.unpack(data)
    except (InputError, MachineError):
        return
    assert links.pack(*back)[8:] == data[8:]
