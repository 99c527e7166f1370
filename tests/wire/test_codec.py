"""The codec: every message comes back as it went, and nothing but a message comes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from xyro.wire.codec import MAX_ITEMS, MAX_MESSAGE, PLUGIN_TAGS, TAGS, VERSION, decode, encode, register
from xyro.wire.commands import Command, CommandAnswer, HoldHost, ReturnOrders
from xyro.wire.errors import CodecError
from xyro.wire.messages import (
    MAX_LINKS,
    MAX_NUMBER,
    MAX_URL,
    Ack,
    CashTransfer,
    Document,
    FetchOrder,
    HostChallenged,
    Kind,
    Links,
    LoadReport,
    LoadState,
    Message,
    PageReport,
    Passing,
    Priority,
    Submit,
    Verdict,
    XmlPage,
)
from xyro.wire.questions import DescribePages, FindPages, FindPart, MatchPages

# --- every message -------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
URLS = st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=30)
TUPLES_OF_URLS = st.lists(URLS, max_size=4).map(tuple)
COUNT = st.integers(0, 2**32)
NUMBER = st.integers(0, MAX_NUMBER)
TIME = st.floats(-1e12, 1e12) | st.integers(-(2**53), 2**53)
LINKS = st.lists(st.tuples(URLS, st.integers(0, 255)), max_size=6).flatmap(
    lambda pairs: st.builds(
        Links, st.just(tuple(url for url, _ in pairs)), st.just(bytes(flag for _, flag in pairs)), COUNT, COUNT
    )
)
ORDERS = st.builds(
    FetchOrder, NUMBER, URLS, st.sampled_from(Priority), COUNT, TEXT, TEXT, COUNT, TIME, refused=st.integers(0, 7)
)
REPORTS = st.builds(
    lambda times, answer, **rest: PageReport(started=min(times), ended=max(times), **answer, **rest),
    st.tuples(TIME, TIME),
    st.fixed_dictionaries({"status": st.integers(1, 999)})
    | st.fixed_dictionaries({"error": st.text(min_size=1, max_size=9), "final": st.booleans(), "retry_at": TIME}),
    page=NUMBER,
    url=URLS,
    epoch=COUNT,
    kind=st.sampled_from(Kind),
    mime=TEXT,
    size=COUNT,
    truncated=TEXT,
    signature=st.just(b"") | st.binary(min_size=16, max_size=16),
    etag=TEXT,
    last_modified=TEXT,
    location=TEXT,
    links=LINKS,
    noindex=st.booleans(),
    nofollow=st.booleans(),
    loading=st.booleans(),
    charset=TEXT,
    host_next=TIME,
    host_failures=COUNT,
    sitemaps=TUPLES_OF_URLS,
    fresh_for=st.floats(0.0, 1e12),
    vendor=TEXT,
    skeleton=st.just(b"") | st.binary(min_size=16, max_size=16),
    refused=st.integers(0, 7),
    received=NUMBER,
)
XML_PAGES = st.builds(
    XmlPage, NUMBER, URLS, COUNT, TIME, st.sampled_from([Kind.XML, Kind.DTD]), TEXT, TEXT, st.binary(max_size=300)
)
EVIDENCE = st.lists(st.tuples(URLS, TIME), max_size=4).map(tuple)
LOADS = st.builds(
    lambda needs, state, **rest: LoadReport(needs=needs, state=LoadState.WAITING if needs else state, **rest),
    needs=TUPLES_OF_URLS,
    state=st.sampled_from([LoadState.LOADED, LoadState.INCOMPLETE, LoadState.FAILED]),
    page=NUMBER,
    url=URLS,
    epoch=COUNT,
    format=TEXT,
    error=TEXT,
    links=LINKS,
    modified=EVIDENCE,
)
ITEMS = st.lists(st.builds(Passing, URLS, NUMBER, COUNT), max_size=5).map(tuple)
TRANSFERS = st.builds(
    CashTransfer,
    st.integers(0, 9),
    st.integers(10, 99),
    st.integers(1, MAX_NUMBER),
    ITEMS,
    NUMBER,
    NUMBER,
    NUMBER,
    st.integers(-1, MAX_NUMBER),
)
SUBMITS = st.builds(Submit, TUPLES_OF_URLS, st.sampled_from(Priority), st.booleans(), NUMBER)
CHALLENGED = st.builds(HostChallenged, URLS, TIME, COUNT, TEXT)
ACKS = st.builds(Ack, st.integers(), st.integers(), NUMBER, TUPLES_OF_URLS, TUPLES_OF_URLS).filter(
    lambda ack: max(abs(ack.source), abs(ack.target)) <= MAX_NUMBER
)
DOCUMENTS = st.builds(
    Document,
    page=NUMBER,
    url=URLS,
    epoch=COUNT,
    read_at=TIME,
    kind=st.sampled_from([Kind.XML, Kind.DTD]),
    digest=st.binary(min_size=16, max_size=16),
    packed=st.binary(max_size=40),
    size=COUNT,
    verdict=st.sampled_from(Verdict),
    problems=st.lists(TEXT, max_size=4).map(tuple),
    grammars=TUPLES_OF_URLS,
    parts=TUPLES_OF_URLS,
    depth=COUNT,
    elements=COUNT,
    tags=COUNT,
)
ANSWERS = st.builds(CommandAnswer, st.integers(1, MAX_NUMBER), TEXT, st.binary(max_size=20))
HOLDS = st.builds(HoldHost, NUMBER, TEXT, st.sampled_from(["paused", "blocked", ""]))
RETURNS = st.builds(
    lambda request, orders: ReturnOrders(request, tuple(p for p, _ in orders), tuple(e for _, e in orders)),
    NUMBER,
    st.lists(st.tuples(NUMBER, COUNT), max_size=4),
)
EVERY: dict[type[Message], st.SearchStrategy[Any]] = {
    FetchOrder: ORDERS,
    PageReport: REPORTS,
    XmlPage: XML_PAGES,
    LoadReport: LOADS,
    CashTransfer: TRANSFERS,
    Submit: SUBMITS,
    HostChallenged: CHALLENGED,
    Ack: ACKS,
    Document: DOCUMENTS,
    CommandAnswer: ANSWERS,
    HoldHost: HOLDS,
    ReturnOrders: RETURNS,
    FindPages: st.builds(FindPages, NUMBER, TUPLES_OF_URLS),
    DescribePages: st.builds(DescribePages, NUMBER, st.lists(NUMBER, max_size=4).map(tuple)),
    MatchPages: st.builds(MatchPages, NUMBER, TUPLES_OF_URLS, NUMBER, COUNT),
    FindPart: st.builds(FindPart, NUMBER, URLS),
}
MESSAGES = st.one_of(*EVERY.values())


@pytest.mark.parametrize("kind", EVERY)
def test_every_message_comes_back_equal_and_of_the_same_types(kind: type[Message]) -> None:
    @given(EVERY[kind])
    def round_trip(message: Any) -> None:
        back = decode(encode(message))
        assert back == message
        assert type(back) is kind
        for name in kind.__struct_fields__:
            was, came = getattr(message, name), getattr(back, name)
            assert type(came) is type(was) or (type(came), type(was)) == (float, int)

    round_trip()


def test_the_tags_cover_the_messages() -> None:
    commands = {HoldHost, ReturnOrders, FindPages, DescribePages, MatchPages, FindPart}
    assert set(TAGS.values()) == set(EVERY) == {*get_args(Message), *commands} - {Command}


def test_a_plug_in_registers_its_commands_under_a_tag_of_its_own() -> None:
    class Water(Command, frozen=True):
        plants: tuple[str, ...]

    with pytest.raises(CodecError, match="no message"):
        encode(Water(0, ("fern",)))
    for tag in (6, PLUGIN_TAGS - 1):
        with pytest.raises(ValueError, match="tag"):
            register(tag, Water)
    register(9_999, Water)
    assert decode(encode(Water(3, ("fern",)))) == Water(3, ("fern",))
    for tag, command in ((9_999, HoldHost), (9_998, Water)):
        with pytest.raises(ValueError, match="tag"):
            register(tag, command)


# --- the format is pinned ------------------------------------------------------------------------------------------

SHAPES = {
    1: "page url priority epoch etag last_modified attempt not_before deadline raised probe refused",
    2: "page url epoch started ended status error final retry_at kind mime size truncated signature etag "
    "last_modified location links noindex nofollow loading charset host_next host_failures sitemaps "
    "fresh_for hubs topic vendor skeleton refused received",
    3: "page url epoch read_at kind mime charset body",
    4: "page url epoch state format error links modified needs rates hubs",
    5: "source target seq items virtual spent pages weighted focused",
    6: "urls priority seed request",
    7: "source target seq full free",
    8: "page url epoch read_at kind digest packed size verdict problems format root public_id grammars parts depth "
    "elements tags mime charset",
    9: "request error value",
    10: "request host state",
    11: "request pages epochs",
    12: "request urls",
    13: "request pages",
    14: "request patterns first limit",
    15: "host until failures vendor",
    16: "request url",
}


def test_the_fields_of_messages_are_pinned() -> None:
    """Nodes of two codes may talk to each other, and outboxes outlive a code: a new field comes last and has a default;
    for any other change raise VERSION."""
    assert VERSION == 2
    assert {tag: " ".join(kind.__struct_fields__) for tag, kind in TAGS.items()} == SHAPES


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (
            FetchOrder(7, "http://h/", Priority.DISCOVER, 3),
            [2, 1, 7, "http://h/", 3, 3, "", "", 0, 0.0, 0.0, False, False, 0],
        ),
        (
            CashTransfer(0, 2, 1, (Passing("http://h/", 9, 4),), 5, 6, 8, 24, (0,)),
            [2, 5, 0, 2, 1, [["http://h/", 9, 4]], 5, 6, 8, 24, [0]],
        ),
        (Submit(("http://h/", "http://k/")), [2, 6, ["http://h/", "http://k/"], 1, True, 0]),
        (Ack(1, 0, 5, ("h",)), [2, 7, 1, 0, 5, ["h"], []]),
        (
            LoadReport(
                1, "u", 2, LoadState.LOADED, "rss", links=Links(("a", "b"), b"\x00\x10", 1, 2), modified=(("a", 1.5),)
            ),
            [2, 4, 1, "u", 2, 0, "rss", "", ["a\nb", b"\x00\x10", 1, 2], [["a", 1.5]], [], [], []],
        ),
        (
            XmlPage(1, "u", 2, 3.5, Kind.DTD, "a/b", "", b"<!ELEMENT a>"),
            [2, 3, 1, "u", 2, 3.5, 3, "a/b", "", b"<!ELEMENT a>"],
        ),
    ],
)
def test_bytes_are_as_documented(message: Message, wire: list[Any]) -> None:
    assert msgpack.unpackb(encode(message)) == wire
    assert decode(msgpack.packb(wire)) == message


@pytest.mark.parametrize(
    ("older", "message"),
    [
        (lambda: TRANSFER, CashTransfer(0, 2, 1, (Passing("http://h/", 9, 4),), 5, 6, 8, -1, ())),
        (lambda: REPORT[:-1], PageReport(7, "http://h/", 1, 1.0, 2.0, status=200)),
        (lambda: REPORT[:LINKS_AT], PageReport(7, "http://h/", 1, 1.0, 2.0, status=200)),
        (lambda: LOAD[:-3], LoadReport(1, "u", 2, LoadState.LOADED, "rss", modified=(("a", 1.5),))),
    ],
)
def test_a_message_of_an_earlier_code_takes_defaults(older: Callable[[], list[Any]], message: Message) -> None:
    assert decode(msgpack.packb(older())) == message


# --- what is no message --------------------------------------------------------------------------------------------

ORDER = [2, 1, 7, "http://h/", 3, 3, "", "", 0, 0.0, 0.0, False, False, 0]
REPORT = msgpack.unpackb(encode(PageReport(7, "http://h/", 1, 1.0, 2.0, status=200)))
LINKS_AT = 2 + PageReport.__struct_fields__.index("links")
TRANSFER = [2, 5, 0, 2, 1, [["http://h/", 9, 4]], 5, 6, 8]
LOAD = [2, 4, 1, "u", 2, 0, "rss", "", ["", b"", 0, 0], [["a", 1.5]], [], [], []]


def put(wire: list[Any], index: int, value: Any) -> list[Any]:
    return [*wire[:index], value, *wire[index + 1 :]]


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [
        (None, "not an array"),
        ([], "not an array"),
        ([1], "not an array"),
        ("text", "not an array"),
        (put(ORDER, 0, 1), "version 1; this node speaks 2"),
        (put(ORDER, 0, True), "version bool"),
        (put(ORDER, 0, 1.0), "version float"),
        (put(ORDER, 1, 99), "unknown tag 99"),
        (put(ORDER, 1, [1]), "unknown tag list"),
        (put(ORDER, 1, True), "unknown tag bool"),
        (ORDER[:5], "FetchOrder: 3 fields; version 2 has 12"),
        ([*ORDER, 0], "FetchOrder: 13 fields"),
        ([*REPORT, 0], f"PageReport: {len(REPORT) - 1} fields; version 2 has {len(REPORT) - 2}"),
        (put(ORDER, 2, "7"), "FetchOrder.page: expected int, got str"),
        (put(ORDER, 2, 7.0), "FetchOrder.page: expected int, got float"),
        (put(ORDER, 2, True), "FetchOrder.page: expected int, got bool"),
        (put(ORDER, 2, -1), "FetchOrder.page"),
        (put(ORDER, 2, 2**63), "FetchOrder.page"),
        (put(ORDER, 3, b"http://h/"), "FetchOrder.url: expected str, got bytes"),
        (put(ORDER, 3, ""), "FetchOrder.url: 1..4096"),
        (put(ORDER, 3, "x" * 4097), "FetchOrder.url: 1..4096"),
        (put(ORDER, 4, 5), "FetchOrder: 5 is no Priority"),
        (put(ORDER, 9, None), "FetchOrder.not_before: expected float, got NoneType"),
        (put(ORDER, 9, float("nan")), "FetchOrder.not_before, deadline: finite times"),
        (put(ORDER, 9, float("inf")), "FetchOrder.not_before, deadline: finite times"),
        (put(REPORT, 5, 3.0), "ended before it started"),
        (put(REPORT, 6, float("inf")), "finite times"),
        (put(REPORT, 7, 0), "no status and no error"),
        (put(REPORT, LINKS_AT, []), "Links: expected an array of 4"),
        (put(REPORT, LINKS_AT, "http://h/"), "PageReport.links: expected list, got str"),
        (put(REPORT, LINKS_AT, ["a", "b", 0, 0]), "Links: expected bytes, got str"),
        (put(REPORT, LINKS_AT, ["a\nb", b"\0", 0, 0]), "one flag byte per URL"),
        (put(REPORT, LINKS_AT, ["a", b"\0\0", 0, 0]), "one flag byte per URL"),
        (put(REPORT, LINKS_AT, ["a", b"", 0, 0]), "one flag byte per URL"),
        (put(REPORT, LINKS_AT, ["", b"\0", 0, 0]), "one flag byte per URL"),
        (put(REPORT, LINKS_AT, ["a\n\nb", b"\0\0\0", 0, 0]), "Links: 1..4096"),
        (put(REPORT, LINKS_AT, ["\na", b"\0\0", 0, 0]), "Links: 1..4096"),
        (put(REPORT, LINKS_AT, ["a\n", b"\0\0", 0, 0]), "Links: 1..4096"),
        (put(REPORT, LINKS_AT, ["a\n" + "b" * 4097, b"\0\0", 0, 0]), "Links: 1..4096"),
        (put(REPORT, LINKS_AT, ["a", b"\0", -1, 0]), "truncated, dropped >= 0"),
        (put(REPORT, LINKS_AT, ["\n".join("a" * 65_535), bytes(65_535), 0, 0]), "at most 65534"),
        (put(TRANSFER, 5, [["http://h/", 9]]), "Passing: expected an array of 3"),
        (put(TRANSFER, 5, [["http://h/", 9, 4.0]]), "Passing: expected int, got float"),
        (put(TRANSFER, 5, [["http://h/", -9, 4]]), "Passing: cash"),
        (put(TRANSFER, 5, ["http://h/"]), "Passing: expected an array of 3"),
        (put(TRANSFER, 3, 0), "two partitions"),
        (put(TRANSFER, 4, 0), "CashTransfer.seq"),
        (put(TRANSFER, 7, 2**63), "numbers fit in 63 bits"),
        (TRANSFER[:4], "CashTransfer: 2 fields; version 2 has 9"),
        ([*TRANSFER, -2, []], "CashTransfer.weighted"),
        ([*TRANSFER, 1, [1]], "CashTransfer.focused"),
        ([*TRANSFER, 1, [-1]], "CashTransfer.focused"),
        ([*TRANSFER, 1, ["0"]], "entry: expected int, got str"),
        (put(LOAD, 9, [["a", "1.5"]]), "entry: expected float, got str"),
        (put(LOAD, 9, [["a", float("nan")]]), "finite times"),
        (put(LOAD, 10, [1]), "entry: expected str, got int"),
        (put(LOAD, 10, ["dtd"]), "needs go with WAITING"),
        (put(LOAD, 5, 9), "9 is no LoadState"),
        ([2, 3, 1, "u", 2, 3.5, 1, "", "", b""], "XML or DTD"),
        ([2, 6, ["http://h/", ""], 1, True, 0], "Submit.urls"),
        ([2, 6, {}, 1, True, 0], "expected list, got dict"),
        ([2, 6, {"a": 1}, 1, True, 0], "not MessagePack within its bounds"),
        ([2, 6, msgpack.ExtType(5, b"x"), 1, True, 0], "not MessagePack within its bounds"),
        ([2, 6, msgpack.ExtType(5, b""), 1, True, 0], "expected list, got ExtType"),
        ([2, 6, msgpack.Timestamp(1), 1, True, 0], "not MessagePack within its bounds"),
        ([2, 6, ["http://h/"] * (MAX_ITEMS + 1), 1, True, 0], "not MessagePack within its bounds"),
    ],
)
def test_names_what_is_wrong(wire: Any, complaint: str) -> None:
    with pytest.raises(CodecError) as refusal:
        decode(msgpack.packb(wire))
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\xdd\xff\xff\xff\xff",  # 4 G entries announced
        b"\xdb\xff\xff\xff\xff",  # 4 GiB of text
        b"\xc6\xff\xff\xff\xff",
        b"\xdd\x00\x00\xff\xff" * 13_000,  # 13,000 arrays of 65,535 entries, one in the other
        b"\x91" * 2_000_000,
        b"\xc7\x00\xff",  # a time stamp of no length
        b"\x93\x01\x07\xa1\xff",  # a text that is not UTF-8
        encode(Ack(0, 1, 2)) + b"\x00",
        bytes(MAX_MESSAGE + 1),
    ],
    ids=lambda data: data[:6].hex() or "empty",
)
def test_refuses_what_is_not_messagepack_or_has_no_bounds(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode(data)


def refused_or_whole(data: bytes) -> None:
    """Decoding may fail as CodecError only; what comes through is a valid message, so it can be sent again."""
    try:
        message = decode(data)
    except CodecError:
        return
    assert decode(encode(message)) == message


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    refused_or_whole(data)


@given(MESSAGES)
@example(CashTransfer(0, 2, 1, (Passing("http://h/", 9, 4),), 5, 6, 8))
def test_a_message_cut_at_any_byte_is_refused(message: Message) -> None:
    data = encode(message)
    for end in range(len(data)):
        with pytest.raises(CodecError):
            decode(data[:end])


@given(MESSAGES, st.data())
def test_fields_that_are_lacking_take_their_defaults(message: Message, data: st.DataObject) -> None:
    fields, defaults = message.__struct_fields__, message.__struct_defaults__
    lacking = data.draw(st.integers(0, len(defaults)))
    wire = msgpack.unpackb(encode(message), unicode_errors="surrogatepass")
    try:
        found = decode(msgpack.packb(wire[: len(wire) - lacking], unicode_errors="surrogatepass"))
    except CodecError as error:  # the defaults do not go with what is there: no status and no error, for instance
        assert lacking and "fields" not in str(error)
        return
    assert found == replace(message, **dict(list(zip(reversed(fields), reversed(defaults), strict=False))[:lacking]))


@given(MESSAGES, st.data())
def test_messages_with_bytes_changed(message: Message, data: st.DataObject) -> None:
    damaged = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    refused_or_whole(bytes(damaged))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=16),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(MESSAGES, st.data())
def test_messages_with_a_field_of_anything(message: Message, data: st.DataObject) -> None:
    wire = msgpack.unpackb(encode(message), unicode_errors="surrogatepass")
    wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(JUNK)
    refused_or_whole(msgpack.packb(wire, unicode_errors="surrogatepass"))


# --- what cannot be sent -------------------------------------------------------------------------------------------


def linked(urls: tuple[str, ...]) -> PageReport:
    return PageReport(1, "u", 1, 0.0, 0.0, status=200, links=Links(urls, bytes(len(urls))))


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (linked(("a\nb",)), "a line feed in a URL"),
        (linked(("a", "")), "Links: 1..4096"),
        (linked(("",)), "Links: 1..4096"),
        (linked(("a" * (MAX_URL + 1),)), "Links: 1..4096"),
        (Submit(("u",) * (MAX_ITEMS + 1)), f"Submit.urls: {MAX_ITEMS + 1} entries; send at most {MAX_ITEMS} at once"),
        (XmlPage(1, "u", 1, 0.0, Kind.XML, "", "", bytes(MAX_MESSAGE)), "XmlPage: 67108"),
        (Ack(2**64, 0, 1), "Ack: cannot be encoded"),
        (replace(Ack(0, 1, 1), source=object()), "Ack: cannot be encoded: a message holds no object"),  # type: ignore[arg-type]
        ("text", "str is no message"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_no_node_would_take_is_not_sent(message: Any, complaint: str) -> None:
    with pytest.raises(CodecError) as refusal:
        encode(message)
    assert complaint in str(refusal.value)


def test_the_largest_of_everything_goes_through() -> None:
    urls = tuple(f"http://h/{n}" for n in range(MAX_LINKS))
    for message in (
        linked(urls),
        Submit(urls[: MAX_ITEMS - 2]),
        CashTransfer(0, 1, MAX_NUMBER, tuple(Passing(url, MAX_NUMBER) for url in urls[:5000]), MAX_NUMBER, 0, 0),
        XmlPage(MAX_NUMBER, "u" * MAX_URL, 1, 0.0, Kind.XML, "", "", bytes(MAX_MESSAGE - MAX_URL - 100)),
    ):
        assert decode(encode(message)) == message


def test_a_list_where_a_tuple_belongs_comes_back_a_tuple() -> None:
    back = decode(encode(Submit(["http://h/"])))  # type: ignore[arg-type]
    assert back == Submit(("http://h/",))
