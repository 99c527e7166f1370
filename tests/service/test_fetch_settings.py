"""The keys of [fetch] and [politeness]: each one, written in settings, changes what a reader does on the wire."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import socket

import pytest

from tests.xyro.raw_server import Talk, order, page, says, serving
from xyro.configs.load import load
from xyro.politeness import Politeness
from xyro.reader import Reader
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.reader_factory import manners_of, options_of
from xyro.wire.clock import SystemClock

BODY = b"<p>text</p><a href=/next>next</a>"
LOOPBACK = {"fetch.only_net": ("127.0.0.0/8",), "politeness.delay": 0.0}


def options(**overrides):
    """The settings that a file with these keys (section__key) gives."""
    return load(overrides={**LOOPBACK, **{name.replace("__", "."): value for name, value in overrides.items()}})


@contextlib.asynccontextmanager
async def reader_of(**overrides):
    """A reader as a node makes it from settings."""
    settings = options(**overrides)
    reader = Reader(
        options_of(settings, frozenset(), 50.0), guard_of(settings.fetch), SystemClock(), lambda report, answer: None
    )
    try:
        yield reader
    finally:
        await reader.fetcher.close()


async def answer_of(script, **overrides):
    """The answer to one order; the server runs `script`."""
    async with serving(script) as server, reader_of(**overrides) as reader:
        return await reader.fetcher.fetch(order(server.url + "/p"))


async def test_connect_timeout_ends_waiting_for_a_connection():
    with socket.socket() as sock, contextlib.ExitStack() as stack:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        for _ in range(4):  # they fill the queue of connections that nobody accepts
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        async with reader_of(fetch__connect_timeout=0.2) as reader:
            answer = await reader.fetcher.fetch(order(f"http://127.0.0.1:{sock.getsockname()[1]}/"))
    assert answer.error == "connect-timeout" and answer.duration < 5.0


SILENT = says(close=False)
HALF_A_HEAD = says(b"HTTP/1.1 200 OK\r\n", close=False)
HALF_A_BODY = says(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\n" + BODY, close=False)


@pytest.mark.parametrize(
    ("script", "limits", "failure"),
    [
        (SILENT, {"first_byte_timeout": 0.2}, "first-byte-timeout"),
        (HALF_A_HEAD, {"first_byte_timeout": 0.2, "header_timeout": 0.3}, "header-timeout"),
        (
            HALF_A_BODY,
            {"connect_timeout": 0.2, "first_byte_timeout": 0.2, "header_timeout": 0.3, "total_timeout": 0.5},
            "time",
        ),
    ],
    ids=["first_byte_timeout", "header_timeout", "total_timeout"],
)
async def test_each_timeout_ends_the_part_of_an_answer_that_it_is_for(script, limits, failure):
    answer = await answer_of(script, **{f"fetch__{key}": seconds for key, seconds in limits.items()})
    assert failure in (answer.error, answer.truncated)
    assert answer.duration < 5.0


def test_min_throughput_is_the_least_that_a_body_brings():
    """Bodies are judged in windows of 20 s (tests/xyro/test_client.py has the reads)."""
    assert options_of(options(fetch__min_throughput=7), frozenset(), 50.0).limits.slow_bytes == 7


@pytest.mark.parametrize(("max_body", "truncated", "size"), [(100_000, "", 50_000), (10_000, "length", 10_000)])
async def test_max_body_cuts_a_body(max_body, truncated, size):
    answer = await answer_of(says(page(b"x" * 50_000)), fetch__max_body=max_body)
    assert (answer.truncated, answer.size) == (truncated, size)


@pytest.mark.parametrize(("max_ratio", "whole"), [(10_000, True), (10, False)])
async def test_max_ratio_bounds_what_compression_may_blow_up(max_ratio, whole):
    packed = gzip.compress(b"x" * 5_000_000)
    answer = await answer_of(says(page(packed, b"Content-Encoding: gzip")), fetch__max_ratio=max_ratio)
    assert (answer.error == "" and not answer.truncated and answer.size == 5_000_000) is whole
    assert answer.error == ("" if whole else "ratio-too-large")


@pytest.mark.parametrize("signature", ["bytes", "text", "links"])
async def test_signature_is_of_the_bytes_the_text_or_the_links(signature):
    """A page in other bytes, with the same text and links; and one with another text."""
    bodies = {"/": BODY, "/styled": BODY.replace(b"<p>", b"<p class=a>"), "/edited": BODY.replace(b"text", b"word")}

    async def script(talk: Talk) -> None:
        await talk.say(page(bodies[talk.path]))

    async with serving(script) as server, reader_of(fetch__signature=signature) as reader:
        answers = [await reader.fetcher.fetch(order(server.url + path)) for path in bodies]
    original, styled, edited = (answer.signature for answer in answers)
    assert (original == hashlib.md5(BODY).digest()) is (signature == "bytes")
    assert (original == styled) is (signature != "bytes")
    assert (original == edited) is (signature == "links")


async def test_user_agent_and_contact_stand_in_every_request():
    heads = []

    async def script(talk: Talk) -> None:
        heads.append((talk.header("User-Agent"), talk.header("From")))
        await talk.say(page(BODY))

    await answer_of(script, fetch__user_agent="Finder", fetch__contact="me@example.org")
    ((agent, sender),) = heads
    assert agent.startswith("Finder/") and "mailto:me@example.org" in agent and sender == "me@example.org"


def test_ports_name_more_that_may_be_contacted():
    url, contact = "http://example.org:7000/", {"fetch__contact": "me@example.org", "fetch__only_net": ()}
    assert guard_of(options(**contact).fetch).host_allowed(url) == "blocked-port"
    assert guard_of(options(**contact, fetch__ports=(7000,)).fetch).host_allowed(url) == ""


def test_allow_private_opens_networks_that_are_never_contacted():
    url, contact = "http://10.1.2.3/", {"fetch__contact": "me@example.org", "fetch__only_net": ()}
    closed = guard_of(options(**contact).fetch)
    opened = guard_of(options(**contact, fetch__allow_private=("10.1.0.0/16",)).fetch)
    assert closed.host_allowed(url) == "blocked-address" and opened.host_allowed(url) == ""


def test_name_servers_are_those_that_names_are_looked_up_at():
    assert list(guard_of(options(fetch__name_servers=("127.0.0.1:5353",)).fetch).name_servers) == ["127.0.0.1:5353"]


def test_concurrency_bounds_the_reads_and_the_connections():
    chosen = options_of(options(fetch__concurrency=3), frozenset(), 50.0)
    assert (chosen.concurrency, chosen.limits.most_idle) == (3, 12)


# [politeness]: seconds from the end of a read to the next one of its host


@pytest.mark.parametrize(
    ("polite", "read", "wait"),
    [
        ({"min_delay": 7.0}, {"duration": 0.1}, 7.0),
        ({"factor": 3.0}, {"duration": 4.0}, 12.0),
        ({"factor_cap": 9.0}, {"duration": 100.0}, 9.0),
        ({"crawl_delay_cap": 40.0}, {"duration": 0.1, "crawl_delay": 1000.0}, 40.0),
        ({"delay": 1.5}, {"duration": 100.0}, 1.5),
    ],
    ids=["min_delay", "factor", "factor_cap", "crawl_delay_cap", "delay"],
)
def test_each_delay_sets_when_a_host_is_read_again(polite, read, wait):
    settings = load(overrides={f"politeness.{key}": value for key, value in polite.items()})
    assert Politeness(manners_of(settings)).finished("h", "", 100.0, **read) == 100.0 + wait


def test_ip_delay_sets_when_an_address_is_read_again():
    politeness = Politeness(manners_of(load(overrides={"politeness.ip_delay": 1.25})))
    politeness.servers.touched("h", "192.0.2.1", 100.0)
    assert politeness.servers.ready("h", "192.0.2.1") == 101.25


@pytest.mark.parametrize("delay", [None, 1.0])
def test_networks_and_domains_have_delays_of_their_own_which_delay_does_not_set(delay):
    wanted = {"politeness.net_delay": 3.0, "politeness.domain_delay": 5.0, "politeness.delay": delay}
    floors = Politeness(manners_of(load(overrides={key: value for key, value in wanted.items() if value}))).servers
    floors.touched("a.example.org", "192.0.2.1", 100.0)
    assert floors.ready("c.test", "192.0.2.9") == 103.0
    assert floors.ready("b.example.org", "192.0.2.1") == 105.0
    assert not Politeness(manners_of(load(overrides={"politeness.delay": 0.0}))).servers.active


@pytest.mark.parametrize("delay", [None, 0.2])
def test_several_nodes_read_an_address_together_no_more_often_than_one(delay):
    polite = {"politeness.delay": delay, "politeness.net_delay": 0.1, "politeness.domain_delay": 0.3}
    settings = load(overrides={name: value for name, value in polite.items() if value is not None})
    one, four = manners_of(settings), manners_of(settings, 4)
    for read, nodes in ((one, 1), (four, 4)):  # without turns at addresses (service/cluster/address_turns.py)
        floors = Politeness(read).servers
        floors.touched("a.example.org", "192.0.2.1", 100.0)
        assert floors.ready("c.test", "192.0.2.1") == pytest.approx(100 + nodes * one.ip_delay)
        assert floors.ready("c.test", "192.0.2.9") == pytest.approx(100 + nodes * 0.1)
        assert floors.ready("b.example.org", "192.0.2.1") == pytest.approx(100 + nodes * max(one.ip_delay, 0.3))
    assert four.min_delay == one.min_delay
