"""Reader processes against real servers: the same answers, and what becomes of a read whose reader is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.xyro.raw_server import RawServer, Talk, order, page, reading, reading_in_processes, says, serving
from xyro import reader_frames, readers
from xyro.answer import Answer
from xyro.decode import Caps
from xyro.exchange import ClientLimits
from xyro.guard import Guard
from xyro.reader_frames import FrameBuffer, answer_frames, answer_of, frame
from xyro.readers import STRIKES, Readers
from xyro.wire.errors import CodecError
from xyro.wire.messages import Kind, Links

ROOT = Path(__file__).parents[2]
HTML = b"<html><body><a href=/one>1</a> <a href='http://127.0.0.9/two' rel=nofollow>2</a></body></html>"
BIG = b"<?xml version='1.0'?><feed>" + b"<entry/>" * 400_000 + b"</feed>"
TIMES = {"started": 0.0, "ended": 0.0, "duration": 0.0, "received_at": 0.0}


async def pages(talk: Talk) -> None:
    """A site with a page of each sort."""
    answers = {
        "/html": page(HTML, b'ETag: "\xffodd"', b"Link: <http://127.0.0.1/hub>; rel=hub", b"Cache-Control: max-age=60"),
        "/xml": page(BIG, mime=b"application/xml"),
        "/gone": page(b"", status=b"410 Gone"),
        "/moved": page(b"", b"Location: /html", status=b"302 Found"),
        "/robots.txt": page(b"User-agent: *\nDisallow: /no", mime=b"text/plain"),
    }
    if talk.path.startswith("/silent"):
        await asyncio.sleep(60)
    await talk.say(answers.get(talk.path, page(b"", status=b"503 Busy")))


@asynccontextmanager
async def site(processes: int = 1) -> AsyncIterator[tuple[RawServer, Readers]]:
    limits = ClientLimits(body=Caps(size=8_000_000, ratio=10_000))
    async with serving(pages) as server, reading_in_processes(limits, processes=processes) as found:
        yield server, found


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def started(found: Readers) -> int:
    """The first reader's pid, once it answers."""
    await found.address("http://127.0.0.1/")
    pid = found.processes[0].pid
    assert pid > 0  # os.kill(0, ...) would reach the tests themselves
    return pid


async def under_way(server: RawServer, count: int) -> None:
    while len(server.heads) < count:  # noqa: ASYNC110  a list of the server's
        await asyncio.sleep(0.01)


# The same answers


async def test_an_answer_is_the_one_that_a_fetcher_in_this_process_gives() -> None:
    limits = ClientLimits(body=Caps(size=8_000_000, ratio=10_000))
    async with site(2) as (server, found), reading(limits) as fetcher:
        for path in ("/html", "/xml", "/gone", "/moved", "/busy"):
            ours, theirs = await fetcher.fetch(order(server.url + path)), await found.fetch(order(server.url + path))
            assert replace(ours, **TIMES) == replace(theirs, **TIMES)
            assert 0.0 < theirs.started <= theirs.ended
            assert theirs.duration > 0.0
        ours = await fetcher.fetch_robots(server.url + "/robots.txt")
        theirs = await found.fetch_robots(server.url + "/robots.txt")
        assert theirs.body == ours.body is not None


@pytest.mark.long
def test_the_tests_of_the_fetcher_pass_through_a_process() -> None:
    """All but those that replace a part of the fetcher in this process, and one that counts what came before a cap:
    how much is read ahead differs between event loops."""
    apart = ("half_a_page_counts", "socket_has_the_last_word", "does_not_hold_the_others_up", "others_are_read")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/xyro/test_fetcher.py", "-k"]
    done = subprocess.run(
        [*command, " and ".join(f"not {name}" for name in apart)],
        cwd=ROOT,
        env={**os.environ, "TEST_READERS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]


async def test_a_name_is_known_once_its_reader_has_its_address() -> None:
    async with site() as (server, found):
        url = f"http://localhost:{server.port}/html"
        assert not found.knows(url)
        assert await found.address(url) == "127.0.0.1"
        assert found.knows(url)
        assert await found.address("http://example.org/") == ""  # only-net: nobody is asked


async def test_a_post_and_its_refusal() -> None:
    async with site() as (server, found):
        assert (await found.post(server.url + "/hub", b"hub.mode=subscribe", {"X-A": "b"})).status == 503
        assert server.heads[-1].startswith("POST /hub")
        assert (await found.post("http://198.51.100.1/hub", b"", {})).error == "only-net"


async def test_the_guard_holds_in_the_reader_and_learns_of_our_own_endpoints() -> None:
    guard = Guard(only_net=["127.0.0.0/8"])
    async with serving(says(page(HTML))) as server, reading_in_processes(guard=guard) as found:
        assert (await found.fetch(order("http://198.51.100.1/"))).error == "only-net"
        assert (await found.fetch(order(server.url + "/"))).error == ""
        before = server.connections
        guard.deny("127.0.0.1", server.port)
        assert (await found.fetch(order(server.url + "/"))).error == "blocked-address"
        assert server.connections == before


async def test_the_rules_of_a_guard_make_an_equal_one() -> None:
    guard = Guard(["127.0.0.0/8"], ["10.1.0.0/16"], [9000], [("127.0.0.1", 8080)], ["127.0.0.1:53"])
    guard.deny("", 8081)
    other = guard.rules.guard()
    endpoints = [("127.0.0.1", 8080), ("127.0.0.1", 8081), ("127.0.0.1", 82), ("127.0.0.1", 9000), ("10.1.2.3", 80)]
    assert [other.verdict(*each) for each in endpoints] == [guard.verdict(*each) for each in endpoints]
    assert other.rules == guard.rules
    assert other.name_servers == guard.name_servers


# Readers that end


async def test_a_killed_reader_costs_its_reads_one_attempt_and_is_started_again() -> None:
    async with site() as (server, found):
        pid = await started(found)
        reads = [asyncio.create_task(found.fetch(order(f"{server.url}/silent?{n}"))) for n in range(3)]
        await under_way(server, 3)
        os.kill(pid, signal.SIGKILL)
        lost = await asyncio.gather(*reads)
        assert [(answer.error, answer.status) for answer in lost] == [("reader-lost", 0)] * 3
        assert (await found.fetch(order(server.url + "/html"))).status == 200
        assert found.processes[0].pid not in (0, pid)
        assert not alive(pid)


async def test_a_reader_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site() as (server, found):
        pid = await started(found)
        monkeypatch.setattr(readers, "BEAT", 0.2)
        monkeypatch.setattr(readers, "HUNG", 1.0)
        os.kill(pid, signal.SIGSTOP)
        assert (await found.fetch(order(server.url + "/html"))).error == "reader-lost"
        monkeypatch.undo()
        assert (await found.fetch(order(server.url + "/html"))).status == 200
        assert not alive(pid)


async def test_a_page_on_which_readers_end_is_poison_and_its_neighbours_are_not() -> None:
    async with site() as (server, found):
        errors = []
        for count in range(STRIKES):
            pid = await started(found)
            other = asyncio.create_task(found.fetch(order(f"{server.url}/silent?{count}")))
            await under_way(server, 2 * count + 1)
            read = asyncio.create_task(found.fetch(order(server.url + "/silent?bad")))  # it goes on last
            await under_way(server, 2 * count + 2)
            os.kill(pid, signal.SIGKILL)
            errors.append(((await read).error, (await other).error))
        assert errors == [("reader-lost", "reader-lost")] * (STRIKES - 1) + [("poison", "reader-lost")]


async def test_memory_is_bounded_and_no_core_is_written() -> None:
    async with site() as (_, found):
        limits = Path(f"/proc/{await started(found)}/limits").read_text()  # noqa: ASYNC240  no disk
        rows = {line[:25].strip(): line[26:46].strip() for line in limits.splitlines()}
        assert rows["Max core file size"] == "0"
        assert 2 << 30 < int(rows["Max address space"]) < 4 << 30


async def test_signals_that_end_the_node_do_not_end_its_readers() -> None:
    """A terminal's Ctrl-C and a supervisor's SIGTERM reach all processes; the node lets its reads end."""
    async with site() as (server, found):
        pid = await started(found)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
        assert (await found.fetch(order(server.url + "/html"))).status == 200
        assert found.processes[0].pid == pid


async def test_a_read_that_is_cut_off_closes_its_connection() -> None:
    async with site() as (server, found):
        read = asyncio.create_task(found.fetch(order(server.url + "/silent")))
        await under_way(server, 1)
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        assert (await found.fetch(order(server.url + "/html"))).status == 200
        assert server.connections == 2


async def test_close_leaves_no_process() -> None:
    async with site(3) as (_, found):
        await asyncio.gather(*(process.request(reader_frames.ADDRESS, "a", "http://a/") for process in found.processes))
        pids = [process.pid for process in found.processes]
    assert [pid for pid in pids if alive(pid)] == []


async def test_a_host_with_less_patience_is_cut_off_sooner() -> None:
    """Deadlines of a read under way shrink while slots are scarce (SlotShares.patience)."""
    shares: dict[str, float] = {}
    async with serving(pages) as server:
        slow = server.url.removeprefix("http://")
        async with reading_in_processes(ClientLimits(), patience=lambda host: shares.get(host, 1.0)) as found:
            await started(found)
            read = asyncio.create_task(found.fetch(order(server.url + "/silent")))
            await under_way(server, 1)
            shares[slow] = 0.05
            answer = await read
    assert answer.error == "first-byte-timeout"
    assert answer.duration < 5.0 < ClientLimits().first_byte


# Frames

ANSWERS = st.builds(
    Answer,
    started=st.floats(0, 1e10),
    status=st.integers(0, 999),
    error=st.text(max_size=5),
    etag=st.text(st.characters(codec=None, exclude_categories=()), max_size=5),
    kind=st.sampled_from(Kind),
    hubs=st.tuples() | st.tuples(st.text(max_size=3)),
    body=st.none() | st.binary(max_size=40),
    links=st.lists(st.text("ab", min_size=1, max_size=3), max_size=4).map(
        lambda urls: Links(tuple(urls), bytes(len(urls)), 0, len(urls))
    ),
)


@given(st.lists(ANSWERS, max_size=3), st.integers(1, 50))
def test_answers_survive_their_frames_cut_anywhere(answers: list[Answer], step: int) -> None:
    data = b"".join(each for number, answer in enumerate(answers) for each in answer_frames(number, answer))
    buffer, bodies, found = FrameBuffer(), dict[int, list[bytes]](), list[Answer]()
    for at in range(0, len(data), step):
        for number, kind, *values in buffer.feed(data[at : at + step]):
            if kind == reader_frames.BODY:
                bodies.setdefault(number, []).append(values[0])
            else:
                found.append(answer_of(values, bodies.get(number, [])))
    assert found == answers


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\1\xc1", b"\0\0\0\1\x01", frame()], ids=repr)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        list(FrameBuffer().feed(data))


@pytest.mark.parametrize("values", [[], [[], False, "", b"", 0, 0], [[0] * 30, 1, "a", b"", 0, 0]], ids=repr)
def test_what_is_no_answer_is_refused(values: list[object]) -> None:
    with pytest.raises(CodecError):
        answer_of(values, [])
