"""The listener's bounds, with real clients that are slow, many, or too long."""

import asyncio
import gzip
import json
import logging

import pytest

from tests.service.neighbours import KEY, TOKEN, Neighbours, crawling
from xyro.plugins.publish import listener
from xyro.service.node import admission
from xyro.service.node.admission import Admission

HEAD = b"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n"


async def connect(running):
    return await asyncio.open_connection("127.0.0.1", int(running.base.rpartition(":")[2]))


async def drip(running, text, at_once=b""):
    """Send byte after byte, far too slowly; what came before the connection was closed."""
    reader, writer = await connect(running)
    writer.write(at_once)
    try:
        async with asyncio.timeout(60):
            for byte in text:
                writer.write(bytes([byte]))
                try:
                    async with asyncio.timeout(0.1):
                        return await reader.read(4096)
                except TimeoutError:
                    continue
            return await reader.read(4096)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("xyro.plugins.publish.listener.PATIENCE", 0.5)
    monkeypatch.setattr("xyro.plugins.publish.listener.SHUTDOWN", 0.2)


async def test_a_head_or_a_body_that_drips_is_not_waited_for(tmp_path, impatient):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        assert await drip(running, HEAD) == b"", "half a head: closed without an answer"
        assert b" 408 " in await drip(running, b"{{{", HEAD + b"\r\n")
        reader, writer = await connect(running)
        assert await asyncio.wait_for(reader.read(), 15.0) == b"", "and one that never says anything"
        writer.close()
        await running.until(lambda: len(running.listener.admission) == 0)


async def test_heads_are_short_and_few(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        for text in (
            b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(200)) + b"\r\n",
        ):
            reader, writer = await connect(running)
            writer.write(text)
            assert b" 400 " in (await asyncio.wait_for(reader.read(), 15.0)).partition(b"\r\n")[0]
            writer.close()


async def test_a_packed_body_is_not_unpacked(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        bomb = gzip.compress(b"[" + b" " * 50_000_000 + b"]")
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        assert (await running.ask("POST", "/indexnow", data=bomb, headers=headers))[0] == 400


async def test_connections_are_bounded_by_address_and_in_all(tmp_path, monkeypatch):
    monkeypatch.setattr(admission, "CONNECTION_LIMIT", 8)
    monkeypatch.setattr("xyro.plugins.publish.listener.CONNECTION_LIMIT", 4)  # what one address has
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        held = [await connect(running) for _ in range(4)]
        await running.until(lambda: len(running.listener.admission) == 4)
        reader, writer = await connect(running)
        with pytest.raises(ConnectionError):
            raise ConnectionError if await asyncio.wait_for(reader.read(), 5.0) == b"" else AssertionError
        writer.close()
        assert running.listener.admission.refused == 1
        for _, one in held:
            one.close()
        await running.until(lambda: len(running.listener.admission) == 0)
        body = {"host": neighbours.host, "key": KEY, "urlList": [neighbours.url("/p1.html")]}
        assert (await running.ask("POST", "/indexnow", json=body))[0] == 202
        said = json.dumps({"urls": []})
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert (await running.ask("POST", "/publish", data=said, headers=bearer))[0] == 200


async def test_who_sends_slow_bodies_keeps_nobody_else_out(tmp_path, monkeypatch):
    """Bodies that drip take all places of their sender, which is a whole network of IPv6, and no more."""
    monkeypatch.setattr(listener, "SENDER_AT_ONCE", 3)
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        monkeypatch.setattr(
            running.listener, "_sender", lambda request: admission.sender_of(request.headers.get("X-From", "192.0.2.9"))
        )
        slow = [await connect(running) for _ in range(9)]
        for number, (_, writer) in enumerate(slow):
            writer.write(HEAD + b"X-From: 2001:db8::%d\r\n\r\n" % number)
        await running.until(lambda: running.listener._busy == 3)
        said = json.dumps({"host": neighbours.host, "key": KEY, "urlList": [neighbours.url("/p1.html")]})
        answers = [
            (await running.ask("POST", "/indexnow", data=said, headers={"X-From": sender}))[0]
            for sender in ("2001:db8::ffff", "2001:db8:0:1::", "192.0.2.1")
        ]
        assert answers == [429, 202, 202]
        for _, writer in slow:
            writer.close()
        await running.until(lambda: not running.listener._busy and not running.listener._busy_of)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GARBAGE\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%zz?\xff HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"POST /indexnow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"\r\n{",
    ],
)
async def test_a_client_that_speaks_no_http_or_hangs_up_writes_nothing_into_the_log(tmp_path, sent, caplog):
    """Ten lines of traceback for each such request: anybody could fill the disk of whoever keeps the log."""
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        caplog.clear()
        reader, writer = await connect(running)
        writer.write(sent)
        if sent.startswith(HEAD):
            await running.until(lambda: running.listener._busy)
            writer.close()
            await running.until(lambda: not running.listener._busy)
        else:
            assert b" 400 " in await asyncio.wait_for(reader.read(4096), 10.0)
            writer.close()
        await running.until(lambda: len(running.listener.admission) == 0)
        assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_a_network_of_ipv6_is_one_sender_at_the_door(monkeypatch):
    class Transport(asyncio.Transport):
        def __init__(self, address):
            super().__init__({"peername": (address, 1, 0, 0)})

        def abort(self):
            pass

    made = Admission(asyncio.Protocol, of_sender=2)
    for number in range(9):
        made.enter().connection_made(Transport(f"2001:db8::{number}"))
    made.enter().connection_made(Transport("2001:db8:0:1::9"))
    assert (len(made), made.refused) == (3, 7)


def test_admission_counts_connections(monkeypatch):
    monkeypatch.setattr(admission, "CONNECTION_LIMIT", 3)
    made = Admission(asyncio.Protocol, of_sender=2)
    assert [made.take(address) for address in "aabaabb"] == [True, True, True, False, False, False, False]
    made.leave("a")
    assert made.take("b") and not made.take("b") and len(made) == 3 and made.refused == 5
    for address in "abb":
        made.leave(address)
    assert len(made) == 0
