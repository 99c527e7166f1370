"""Key layouts: round trips, order in the key, no two families mixed up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.metadata import rows
from xyro.wire.errors import MachineError

NUMBERS = [layout for layout in rows.LAYOUTS if isinstance(layout, rows.NumberKey)]


def test_every_family_has_its_own_prefix_of_one_byte_and_a_line_in_the_table():
    prefixes = [layout.prefix for layout in rows.LAYOUTS]
    assert len(set(prefixes)) == len(prefixes) == len(rows.LAYOUTS) >= 17
    assert all(len(prefix) == 1 for prefix in prefixes)
    documented = re.findall(r"^    (\w) [A-Z]+ ", rows.__doc__ or "", re.MULTILINE)
    assert sorted(documented) == sorted(prefix.decode() for prefix in prefixes)


def test_pinned_bytes():
    """Stored directories depend on these."""
    assert rows.META.key("facts") == b"mfacts"
    assert rows.MAP.key(0x01020304) == b"u\x01\x02\x03\x04"
    assert rows.CLASH.key("http://a/") == b"xhttp://a/"
    assert rows.LINK.key(1) == b"l\0\0\0\1"
    assert rows.REFRESH.key(1) == b"r\0\0\0\1"
    assert rows.STATUS.key(1) == b"s\0\0\0\1"
    assert rows.WAITING.key(1) == b"w\0\0\0\1"
    assert rows.HOST.key(1) == b"h\0\0\0\1"
    assert rows.WANTED.key(1) == b"e\0\0\0\1"
    assert rows.JOURNAL.key(258) == b"j\0\0\0\0\0\0\1\2"
    assert rows.OUTBOX.key(3, 258) == b"o\0\3\0\0\0\0\0\0\1\2"
    assert rows.INBOX.key(3) == b"i\0\3"
    assert rows.OUTBOX.prefix_of(3) == b"o\0\3"
    assert rows.DOCUMENT.key(1) == b"d\0\0\0\1"
    assert rows.VERSIONS.key(1, 258) == b"v\0\0\0\1\0\0\1\2"
    assert rows.BODY.key(bytes(range(16))) == b"b" + bytes(range(16))
    assert rows.COUNT.key(bytes(range(16))) == b"c" + bytes(range(16))


@pytest.mark.parametrize("layout", NUMBERS, ids=lambda layout: layout.prefix.decode())
def test_numbers_round_trip_in_order_and_stay_in_their_width(layout):
    most = 256**layout.width - 1
    numbers = [0, 1, 255, 256, most - 1, most]
    made = [layout.key(number) for number in numbers]
    assert [layout.split(key) for key in made] == numbers
    assert made == sorted(made)
    for wrong in (-1, most + 1):
        with pytest.raises(ValueError, match="does not fit"):
            layout.key(wrong)


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 2**64 - 1))))
def test_outbox_order_is_partition_then_number(pairs):
    made = sorted(rows.OUTBOX.key(*pair) for pair in pairs)
    assert [rows.OUTBOX.split(key) for key in made] == sorted(pairs)
    assert all(key.startswith(rows.OUTBOX.prefix_of(rows.OUTBOX.split(key)[0])) for key in made)


@pytest.mark.parametrize("pair", [(-1, 0), (2**16, 0), (0, -1), (0, 2**64)])
def test_outbox_refuses_what_does_not_fit(pair):
    with pytest.raises(ValueError):
        rows.OUTBOX.key(*pair)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_round_trips(text):
    assert rows.CLASH.split(rows.CLASH.key(text)) == text


@pytest.mark.parametrize(
    ("layout", "key"),
    [
        (rows.MAP, b"u\0\0\0"),
        (rows.MAP, b"u\0\0\0\0\0"),
        (rows.MAP, b"l\0\0\0\1"),
        (rows.MAP, b""),
        (rows.OUTBOX, b"o\0\3"),
        (rows.META, b"x"),
        (rows.META, b"m\xff"),
    ],
)
def test_a_key_of_another_family_or_shape_is_damage(layout, key):
    with pytest.raises(MachineError, match="damaged store"):
        layout.split(key)
