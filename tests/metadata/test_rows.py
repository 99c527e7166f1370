"""Rows: round trips for all field values, versions told from damage, layouts pinned."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from xyro.metadata import rows
from xyro.metadata.documents import CountsRow, DocumentRow, VersionRow, unpack_counts, unpack_document, unpack_version
from xyro.wire.errors import InputError, MachineError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind, Priority, Verdict

INTS = st.integers(0, 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = {int: INTS, float: FLOATS, str: TEXT, bytes: st.binary(max_size=40), bool: st.booleans()}
VALUES |= {Kind: st.sampled_from(Kind), Priority: st.sampled_from(Priority), tuple[int, ...]: st.lists(INTS).map(tuple)}
VALUES |= {Verdict: st.sampled_from(Verdict), tuple[str, ...]: st.lists(TEXT).map(tuple)}
VALUES |= {tuple[LocalPage, ...]: VALUES[tuple[int, ...]]}
MARKS = st.builds(rows.Mark, importance=FLOATS, backed=INTS, clock=INTS, time=INTS)
VALUES |= {tuple[rows.Mark, ...]: st.lists(MARKS, max_size=2).map(tuple)}
SAID = st.builds(rows.PageClaim, source=INTS, host=INTS, time=INTS, rate=FLOATS)
VALUES |= {tuple[rows.PageClaim, ...]: st.lists(SAID, max_size=2).map(tuple)}
MASKS = st.builds(rows.HostMask, vendor=TEXT, times=INTS, since=FLOATS, until=FLOATS, probed=st.lists(INTS).map(tuple))
VALUES |= {tuple[rows.HostMask, ...]: st.lists(MASKS, max_size=1).map(tuple)}
VALUES |= {dict[str, int]: st.dictionaries(TEXT, INTS)}
VALUES |= {tuple[float, ...]: st.lists(FLOATS, max_size=4).map(tuple)}

READERS = {
    rows.RefreshRow: rows.unpack_refresh,
    rows.HostRow: rows.unpack_host,
    rows.WantedRow: rows.unpack_wanted,
    rows.WaitRow: rows.unpack_wait,
    DocumentRow: unpack_document,
    VersionRow: unpack_version,
    CountsRow: unpack_counts,
}
SAMPLES = {
    rows.RefreshRow: rows.RefreshRow(reads=3, etag='"x"', kind=Kind.HTML, quiet_days=0.5, rate=0.1),
    rows.HostRow: rows.HostRow("example.org:8080", 17.5, 2, "paused", b"trust"),
    rows.WantedRow: rows.WantedRow(Priority.ORDERED),
    rows.WaitRow: rows.WaitRow(7, (1 << 32 | 5, 6), b"body", "http://a/x.xml"),
    DocumentRow: DocumentRow(3, 5, 7),
    VersionRow: VersionRow(b"d" * 16, 17.5, Kind.DTD, Verdict.VALID, ("line 1: no",), parts=("http://a/e",)),
    CountsRow: CountsRow({"XML": 3}, {"VALID": 2}, 5),
}


def any_row(kind):
    return st.builds(kind, **{field.name: VALUES[field.type] for field in msgspec.structs.fields(kind)})


@given(st.one_of(*map(any_row, READERS)))
def test_round_trip(row):
    assume(not isinstance(row, rows.RefreshRow) or row.rate or not row.change_days)  # such a row is an older version's
    back = READERS[type(row)](rows.pack(row))
    assert back == row
    assert [type(value) for value in msgspec.structs.astuple(back)] == [
        type(value) for value in msgspec.structs.astuple(row)
    ]


def test_pinned_bytes():
    """Stored directories depend on these."""
    assert rows.pack(SAMPLES[rows.WantedRow]) == b"\x92\x02\x01"
    assert rows.pack(rows.HostRow("a")) == b"\x98\x02\xa1a\xcb" + bytes(8) + b"\x00\xa0\xc4\x00\xc4\x00\x90"
    assert " ".join(field.name for field in msgspec.structs.fields(rows.RefreshRow)) == (
        "first_read last_read last_change signature reads changes last_modified etag quiet_days "
        "change_days weight kind status error failures gone_since mime size charset location noindex epoch marks "
        "claims counted diary visits fault "
        "change_sum rate prior capped onset refused"
    )


def test_a_row_from_before_a_field_was_appended_is_read():
    row = SAMPLES[rows.RefreshRow]
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(rows.pack(row))[:-1])
    assert rows.unpack_refresh(older) == msgspec.structs.replace(row, refused=0)


@pytest.mark.parametrize("kind", READERS)
def test_rows_are_frozen(kind):
    with pytest.raises(AttributeError):
        SAMPLES[kind].epoch = 1
    assert not hasattr(SAMPLES[kind], "__dict__")


@pytest.mark.parametrize("kind", READERS)
def test_another_version_names_the_mend(kind):
    fields = msgspec.msgpack.decode(rows.pack(SAMPLES[kind]))
    for version in (0, 1, 99):
        with pytest.raises(InputError, match=f"{kind.__name__}: version {version}.*run `xyro migrate`"):
            READERS[kind](msgspec.msgpack.encode([version, *fields[1:]]))


@pytest.mark.parametrize("kind", READERS)
def test_cut_at_every_byte_is_damage(kind):
    whole = rows.pack(SAMPLES[kind])
    for length in range(len(whole)):
        with pytest.raises(MachineError, match="damaged store"):
            READERS[kind](whole[:length])
    with pytest.raises(MachineError, match="damaged store"):
        READERS[kind](whole + b"\0")


@pytest.mark.parametrize("data", [b"\x80", b"\x02", b"\x90", b"\x91\xa1x", b"\xc1", b"\x92\x02\xa1x", b"\x92\x02\xc0"])
def test_the_wrong_shape_is_damage(data):
    with pytest.raises(MachineError, match="damaged store"):
        rows.unpack_wanted(data)


def test_a_field_too_many_is_not_dropped_silently():
    fields = msgspec.msgpack.decode(rows.pack(SAMPLES[rows.WantedRow]))
    with pytest.raises(MachineError):
        rows.unpack_wanted(msgspec.msgpack.encode([*fields, "more"]))


def test_an_older_row_without_the_last_fields_takes_their_defaults():
    assert unpack_document(b"\x94\x02\x03\x05\x07") == DocumentRow(3, 5, 7)
    assert rows.unpack_host(b"\x92\x02\xa1a") == rows.HostRow("a")


@pytest.mark.parametrize(
    ("a", "b", "quiet_days"),
    [(3.309, 31.168, 30.0), (1.309, 0.02, 0.02 / 1.309), (0.309, 1.168, 0.0), (0.309, 41.168, 40.0)],
)
def test_a_row_of_a_gamma_belief_is_read_as_sums_and_its_rate_stays(a, b, quiet_days):
    """As the version before wrote it: a, b and a code where the sums and another code are now, no last fields."""
    fields = msgspec.msgpack.decode(rows.pack(rows.RefreshRow(reads=9, weight=2.0, quiet_days=a, change_days=b)))
    names = [field.name for field in msgspec.structs.fields(rows.RefreshRow)]
    fields[1 + names.index("counted")] = 126_977
    row = rows.unpack_refresh(msgspec.msgpack.encode(fields[:30]))
    assert (row.reads, row.weight, row.counted, row.rate) == (9, 2.0, 0, a / b)
    assert row.change_sum == pytest.approx(a - 0.309)
    assert row.quiet_days == pytest.approx(quiet_days)
    assert row.change_sum < 2.0 or row.belief.rate() == pytest.approx(a / b, rel=0.4)
    assert rows.unpack_refresh(rows.pack(row)) == row


@given(st.binary(max_size=60))
def test_any_bytes_give_a_row_or_an_error_of_ours(data):
    for read in READERS.values():
        try:
            row = read(data)
        except (InputError, MachineError):
            continue
        assert isinstance(row, rows.Row)


@given(TEXT)
def test_map_row_is_the_url_itself(url):
    row = rows.pack_map(url, 1_795_309_741)
    assert row[4:] == url.encode() and rows.unpack_map(row) == url and rows.first_seen(row) == 1_795_309_741


def test_a_map_row_that_is_not_utf8_is_damage():
    with pytest.raises(MachineError, match="Map-Data"):
        rows.unpack_map(b"\0\0\0\0http://a/\xff")
