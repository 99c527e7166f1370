"""Columns: reserved memory, after-images replayed onto copies, damage, versions."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from xyro.metadata.columns import Columns, reserve, text_of, type_of
from xyro.wire.errors import InputError, MachineError

SPEC = {"cash": "i8", "flow": "f4", "due": ">u4", "state": "u1", "flags": "u2"}
NAMES = sorted(SPEC)


def same(ours, theirs):
    assert ours.n == theirs.n
    for name in SPEC:
        assert ours[name][: ours.n].tolist() == theirs[name][: theirs.n].tolist(), name
        assert not theirs[name][theirs.n : theirs.n + 100].any(), "rows beyond n are zero"


def filled(n):
    columns = Columns(SPEC, 1000)
    columns.grow(n)
    for i, name in enumerate(SPEC):
        columns[name][:n] = np.arange(n) % 100 + i
    return columns


GROW = st.tuples(st.just("grow"), st.integers(0, 12))
SET = st.tuples(st.just("set"), st.sampled_from(NAMES), st.lists(st.integers(0, 99), max_size=8), st.integers(0, 120))
SEAL = st.tuples(st.just("seal"))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(GROW, SET, SEAL), max_size=40), st.data())
def test_after_images_replayed_onto_any_state_of_the_run_give_the_same_columns(steps, data):
    ours, records, copies = Columns(SPEC, 1000), [], [(0, Columns(SPEC, 1000))]
    for step in [*steps, ("seal",)]:
        if step[0] == "grow":
            assert ours.grow(step[1]) == ours.n - step[1]
        elif step[0] == "set" and ours.n:
            rows = np.array(step[2], np.int64) % ours.n
            ours[step[1]][rows] = step[3] + np.arange(len(rows))
            ours.touch(step[1], rows)
        elif step[0] == "seal":
            records.append(ours.after_images())
        if data.draw(st.booleans()):
            copies.append((len(records), fuzzy(ours, data)))
    for seen, copy in copies:
        again = max(0, seen - data.draw(st.integers(0, 3)))  # some that it has seen are applied once more
        for record in [*records[again:], records[-1]]:
            copy.replay(record)
        same(ours, copy)


def fuzzy(columns, data):
    """A copy as a snapshot makes it: taken of the state of now."""
    copy = Columns(SPEC, 1000)
    copy.grow(columns.n)
    for name in SPEC:
        copy[name][: columns.n] = columns[name][: columns.n]
    copy.settle()
    return copy


def test_a_copy_torn_over_several_records_is_repaired():
    """Half of it from before, half from after: what a snapshot taken while the columns change looks like."""
    ours = filled(100)
    ours.after_images()
    torn = Columns(SPEC, 1000)
    torn.grow(100)
    for name in SPEC:
        torn[name][:50] = ours[name][:50]
    records = []
    for i in range(5):
        rows = np.arange(i, 100, 7)
        for name in SPEC:
            ours[name][rows] += 1
            ours.touch(name, rows)
        ours.grow(3)
        records.append(ours.after_images())
        if i == 2:
            for name in SPEC:
                torn[name][50:100] = ours[name][50:100]
    for record in records:
        torn.replay(record)
    same(ours, torn)


def test_columns_are_views_that_stay_good_while_they_grow():
    columns = Columns(SPEC, 10_000)
    cash = columns["cash"]
    assert len(cash) == 10_000 and cash.dtype == np.int64
    assert columns.grow(3) == 0
    cash[2] = 7
    assert columns.grow(9_000) == 3
    assert columns["cash"] is cash and cash[2] == 7 and not cash[3:9_003].any()
    assert columns.nbytes == 9_003 * 19


def test_reserved_memory_costs_only_what_is_touched():
    """A terabyte of addresses."""
    array = reserve(np.uint64, 2**37)
    array[2**36] = 5
    assert array[2**36] == 5 and array[0] == 0


def test_what_cannot_be_reserved_names_the_mend():
    with pytest.raises(MachineError, match="lower the partition's capacity"):
        reserve(np.uint8, 2**62)


def test_a_full_partition_says_so_and_stays_as_it_was():
    columns = Columns(SPEC, 10)
    columns.grow(10)
    for count in (1, -1):
        with pytest.raises(MachineError, match="10 pages; create the crawl with more partitions"):
            columns.grow(count)
    assert columns.n == 10


@pytest.mark.parametrize("capacity", [0, -1, 2**32])
def test_capacity_is_of_32_bits(capacity):
    with pytest.raises(ValueError, match="32 bits"):
        Columns(SPEC, capacity)


def test_only_marked_rows_are_in_a_record_each_once():
    columns = filled(500)
    assert len(columns.after_images()) >= 500 * 19
    empty = len(columns.after_images())
    columns.touch("cash", np.array([7, 7, 3], np.uint32))
    columns.touch("cash", [3])
    columns.touch("cash", 499)
    columns.touch("state", np.array([], np.int64))
    record = columns.after_images()
    assert len(record) == empty + 3 * (4 + 8)
    assert len(columns.after_images()) == empty
    copy = Columns(SPEC, 1000)
    copy.grow(500)
    copy.replay(record)
    assert copy["cash"].nonzero()[0].tolist() == [3, 7, 499]
    columns.grow(2)
    columns.touch("cash", [500, 3, 501])
    assert len(columns.after_images()) == empty + 1 * (4 + 8) + 2 * 19, "new rows go whole, their marks add nothing"


def test_an_old_record_takes_no_rows_away():
    columns = filled(5)
    old = columns.after_images()
    columns.grow(5)
    columns.replay(old)
    assert columns.n == 10


def test_marks_are_copied_and_values_are_those_of_the_sealing():
    columns = filled(10)
    columns.after_images()
    rows = np.array([1, 2])
    columns.touch("cash", rows)
    rows[:] = 5
    columns["cash"][1] = 77
    copy = filled(10)
    copy["cash"][:10] = 0
    copy.replay(columns.after_images())
    assert copy["cash"][:10].tolist() == [0, 77, 2, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("times", [1, 2, 40])
def test_a_record_tells_each_row_once_however_often_it_was_marked(times):
    once, often = filled(500), filled(500)
    for columns in (once, often):
        columns.after_images()
        columns.grow(10)
    once.touch("cash", [3, 77, 499])
    often.touch("cash", times * [499, 3, 77, 505])  # 505 is new: it is told with the other new ones
    assert often.after_images() == once.after_images()


@pytest.mark.parametrize("wrong", [10, -1, 2**31])
def test_a_mark_beyond_the_rows_is_refused(wrong):
    columns = filled(10)
    columns.touch("cash", np.array([wrong]))
    with pytest.raises(IndexError, match="'cash'"):
        columns.after_images()


def test_settled_columns_have_nothing_to_tell():
    columns = filled(10)
    columns.touch("cash", [1])
    empty = len(Columns(SPEC, 1000).after_images())
    columns.settle()
    assert len(columns.after_images()) == empty


def test_every_flipped_or_missing_byte_is_damage_and_applies_nothing():
    columns = filled(3)
    columns.touch("cash", [1])
    record = columns.after_images()
    copy = Columns(SPEC, 1000)
    for at in range(len(record)):
        flipped = bytearray(record)
        flipped[at] ^= 0x10
        for damaged in (bytes(flipped), record[:at]):
            with pytest.raises(MachineError, match="damaged journal"):
                copy.replay(damaged)
    with pytest.raises(MachineError, match="damaged journal"):
        copy.replay(record + b"\0")
    same(Columns(SPEC, 1000), copy)


def test_a_missing_record_is_noticed():
    columns = filled(3)
    columns.after_images()
    columns.grow(2)
    with pytest.raises(MachineError, match="a record is missing between row 0 and row 3"):
        Columns(SPEC, 1000).replay(columns.after_images())


def test_a_record_for_more_pages_than_there_is_room():
    with pytest.raises(MachineError, match="room for 2: raise the partition's capacity"):
        Columns(SPEC, 2).replay(filled(3).after_images())


def test_a_record_of_other_columns_or_another_version():
    record = filled(3).after_images()
    for spec in ({**SPEC, "more": "u1"}, {**SPEC, "cash": "i4"}, dict(reversed(SPEC.items()))):
        with pytest.raises(InputError, match="other columns"):
            Columns(spec, 1000).replay(record)
    length = int.from_bytes(record[8:12], "little")
    head = msgspec.msgpack.decode(record[12 : 12 + length])
    for changed in ([1, *head[1:]], head[:2], {"version": 1}):
        packed = msgspec.msgpack.encode(changed)
        body = len(packed).to_bytes(4, "little") + packed + record[12 + length :]
        with pytest.raises(InputError, match="open it with the Xyro that wrote it"):
            Columns(SPEC, 1000).replay(xxh3_64_intdigest(body).to_bytes(8, "little") + body)


def test_values_that_do_not_add_up_are_damage():
    record = filled(3).after_images()
    body = record[8:] + b"\0"
    with pytest.raises(MachineError, match="do not add up"):
        Columns(SPEC, 1000).replay(xxh3_64_intdigest(body).to_bytes(8, "little") + body)


def test_pinned_bytes():
    """Stored directories depend on these."""
    columns = Columns({"a": "u2"}, 10)
    columns.grow(2)
    columns["a"][:2] = 258, 3
    columns.after_images()
    columns.touch("a", [0])
    columns.grow(1)
    head = b"\x94\x02\x02\x03\x91\x93\xa1a\xa3<u2\x01"
    values = b"\0\0\0\0" + b"\x02\x01" + b"\0\0"
    assert columns.after_images()[8:] == len(head).to_bytes(4, "little") + head + values


# Optional columns

WIDE = np.dtype((np.float32, (2, 3)))


def optional(*names):
    return Columns(SPEC, 1000, names or ("slots", "more"))


def test_an_optional_column_is_journaled_like_the_others():
    ours = optional()
    ours.add("slots", WIDE)
    ours.grow(4)
    ours["slots"][:4] = np.arange(24).reshape(4, 2, 3)
    records = [ours.after_images()]
    ours["slots"][2] = 9
    ours.touch("slots", [2, 2])
    ours.grow(1)
    ours["slots"][4, 1] = 7
    records.append(ours.after_images())
    for times in (1, 2):
        copy = optional()
        for record in records * times:
            copy.replay(record)
        assert copy.spec == ours.spec and copy.nbytes == 5 * (19 + 24)
        assert (copy["slots"][:9] == ours["slots"][:9]).all()


def test_a_column_turned_on_later_is_zero_for_the_pages_before():
    ours, records = optional(), []
    ours.grow(3)
    records.append(ours.after_images())
    ours.add("slots", WIDE)
    ours["slots"][1] = 5
    ours.touch("slots", [1])
    records.append(ours.after_images())
    copy = optional()
    for record in records:
        copy.replay(record)
    assert (copy["slots"][:3] == ours["slots"][:3]).all() and copy["slots"][:3].any(axis=(1, 2)).tolist() == [0, 1, 0]


@pytest.mark.parametrize("between", [None, np.dtype((np.float32, (2, 4)))])
def test_what_was_turned_off_or_changed_comes_back_empty(between):
    """A replay over a state that still has the old values, as an old snapshot does."""
    ours, records = optional(), []
    for dtype, value in ((WIDE, 1), (between, 2), (WIDE, 3)):
        ours.drop("slots")
        if dtype is not None:
            ours.add("slots", dtype)
            ours["slots"][ours.n] = value
        ours.grow(1)
        records.append(ours.after_images())
    for start in range(3):
        copy = optional()
        for record in [*records[: start + 1], *records]:
            copy.replay(record)
        assert copy["slots"][:3].any(axis=(1, 2)).tolist() == [False, False, True]


def test_adding_what_is_there_changes_nothing():
    ours = optional()
    ours.add("slots", WIDE)
    ours["slots"][0] = 1
    ours.add("slots", WIDE)
    assert ours["slots"][0].all() and "slots" in ours and "more" not in ours
    ours.add("slots", "u1")
    assert ours["slots"].shape == (1000,) and not ours["slots"][0]


def test_only_optional_columns_come_and_go():
    ours = optional()
    with pytest.raises(ValueError, match="'cash' is not optional"):
        ours.drop("cash")
    with pytest.raises(ValueError, match="'fog' is none of more, slots"):
        ours.add("fog", "u1")
    with pytest.raises(ValueError, match="no optional ones"):
        Columns(SPEC, 10).add("slots", "u1")


def test_optional_columns_that_this_version_does_not_know_are_refused():
    ours = optional()
    ours.add("slots", WIDE)
    ours.grow(1)
    record = ours.after_images()
    for columns in (Columns(SPEC, 10), optional("more")):
        with pytest.raises(InputError, match="other columns"):
            columns.replay(record)
        assert columns.n == 0
    with pytest.raises(InputError, match="of type 'fog'"):
        type_of("fog")


@pytest.mark.parametrize("text", ["<i8", "|u1", "(2, 8)<f4", "(3,)<u2"])
def test_types_have_names(text):
    assert text_of(type_of(text)) == text
