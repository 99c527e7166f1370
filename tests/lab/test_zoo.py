"""The zoo plays what its table says, bytes on the wire being the judge."""

import asyncio
import contextlib
import gzip
import json
import re
import socket
import ssl
import struct
import zlib
from urllib.parse import urlsplit

import brotli
import pytest
from backports import zstd

from xyro.failures import POLICIES
from xyro.lab.web.server import running
from xyro.lab.zoo import link_cases, name_server
from xyro.lab.zoo.body_cases import bomb, newer_bomb
from xyro.lab.zoo.framing import raw
from xyro.lab.zoo.zoo_server import CASES, HUB, Zoo, address_of
from xyro.wire.errors import MachineError

FAULTS = {
    *("entity-expansion", "entity-loop", "missing-part", "refused-part", "bad-part", "not-well-formed", "xml-version"),
    *("too-large", "too-deep", "text-too-long", "prolog-too-long"),
    *("too-many-parts", "too-many-urls", "too-many-attributes"),
}
"""classes of the XML loader"""
CAP = 1_000_000
"""bytes that the tests read of an endless answer"""
REQUEST = "GET {} HTTP/1.1\r\nHost: zoo\r\n\r\n"
QUIET = {"silent", "header-drip", "body-drip", "body-stops", "tls-stall", "robots-silent"}
"""cases that keep the connection open without end"""


def named(name):
    (case,) = (case for case in CASES if case.name == name)
    return case


async def ask(zoo, case, path=None, seconds=5.0, method="GET", extra=""):
    """(bytes received, how it ended: closed, reset, open, cap) for one request."""
    reader, writer = await asyncio.open_connection(address_of(CASES.index(case)), zoo.port)
    request = f"{method} {path or case.path} HTTP/1.1\r\nHost: zoo\r\n{extra}\r\n"
    received, end = b"", "closed"
    try:
        async with asyncio.timeout(seconds):
            writer.write(request.encode())
            while piece := await reader.read(1 << 16):
                received += piece
                if len(received) > CAP and b"Content-Length" not in received[:400]:
                    end = "cap"
                    break
    except ConnectionError:
        end = "reset"
    except TimeoutError:
        end = "open"
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return received, end


async def get(zoo, name, **options):
    """(head, body) of a case that answers and closes."""
    received, end = await ask(zoo, named(name), **options)
    assert end == "closed"
    head, _, body = received.partition(b"\r\n\r\n")
    return head.decode("latin-1"), body


def test_the_table_is_sound():
    assert len({case.name for case in CASES}) == len(CASES) > 90
    for case in CASES:
        assert case.kinds
        for kinds in (case.kinds, *case.leads.values()):
            assert set(kinds) <= {*POLICIES, *FAULTS, ""}
    assert {case.number for case in CASES} == set(range(1, 82))


async def test_every_host_plays_sound_robots_unless_that_is_its_case():
    async with Zoo() as zoo:
        for case in zoo.cases:
            if case.socket == "serve" and case.scheme == "http" and not case.robots:
                received, end = await ask(zoo, case, "/robots.txt")
                assert (received.startswith(b"HTTP/1.1 200 OK\r\n"), end) == (True, "closed")
                assert received.endswith(b"User-agent: *\nDisallow:\n")
                assert (await ask(zoo, case, "/ok.html"))[0].startswith(b"HTTP/1.1 200 OK\r\n")


async def test_every_case_answers_closes_or_keeps_quiet_as_meant_and_none_stops_another():
    async with Zoo() as zoo:

        async def one(case):
            path = "/robots.txt" if case.name in ("robots-silent", "robots-endless") else None
            return case.name, await ask(zoo, case, path, seconds=0.5 if case.name in QUIET else 20)

        served = [case for case in zoo.cases if case.socket == "serve" and not case.tls]
        results = dict(await asyncio.gather(*map(one, served)))
    ends = {name: end for name, (_, end) in results.items()}
    assert {name for name, end in ends.items() if end == "open"} == QUIET
    assert {name for name, end in ends.items() if end == "reset"} == {"reset-mid-body", "reset-before-answer"}
    endless = {"early-hints-flood", "endless-chunks", "endless-body", "endless-extension", "endless-trailers"}
    assert {name for name, end in ends.items() if end == "cap"} >= {*endless, "robots-endless"}
    assert not results["close-before-answer"][0]
    assert not results["silent"][0]


async def test_the_hub_links_to_every_case():
    async with Zoo() as zoo:
        assert urlsplit(zoo.hub).hostname == HUB
        reader, writer = await asyncio.open_connection(HUB, zoo.port)
        writer.write(REQUEST.format("/").encode())
        body = (await reader.read()).decode()
        writer.close()
        assert re.findall(r'href="([^"]+)"', body) == [zoo.url(case) for case in zoo.cases]
        assert zoo.requests == [("hub", "GET", "/")]


async def test_connections_that_cannot_be_made():
    async with Zoo() as zoo:
        loop = asyncio.get_running_loop()
        with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
            sock.setblocking(False)
            await loop.sock_connect(sock, (address_of(CASES.index(named("refused"))), zoo.port))
        with socket.socket() as sock, pytest.raises(TimeoutError):
            sock.setblocking(False)
            hole = (address_of(CASES.index(named("black-hole"))), zoo.port)
            await asyncio.wait_for(loop.sock_connect(sock, hole), 0.5)


async def test_headers_lie_as_their_names_say():
    async with Zoo() as zoo:
        for name, sign in (("length-too-long", 1), ("length-too-short", -1)):
            head, body = await get(zoo, name)
            told = int(re.search(r"Content-Length: (\d+)", head)[1])
            assert (told > len(body)) - (told < len(body)) == sign
        lengths = re.findall(r"Content-Length: (\S+)", (await get(zoo, "lengths-differ"))[0])
        assert len(set(lengths)) == 2
        head, _ = await get(zoo, "length-and-chunked")
        assert "Content-Length" in head
        assert "chunked" in head
        head, _ = await get(zoo, "headers-20000")
        assert head.count("\r\n") > 20_000
        head, _ = await get(zoo, "cookies-5000")
        assert head.count("Set-Cookie") == 5_000
        received, _ = await ask(zoo, named("lines-lf-only"))
        assert b"\r" not in received
        received, _ = await ask(zoo, named("surplus-answer"))
        assert received.count(b"HTTP/1.1 200 OK") == 2
        assert (await ask(zoo, named("status-99999")))[0].startswith(b"HTTP/1.1 99999 ")
        body = (await get(zoo, "no-last-chunk"))[1]
        assert not body.endswith(b"0\r\n\r\n")


async def test_validators_lie_as_their_names_say():
    async with Zoo() as zoo:
        tags = [re.search(r"ETag: (\S+)", (await get(zoo, "etag-always-new"))[0])[1] for _ in range(2)]
        assert tags[0] != tags[1]
        first, second = [await get(zoo, "etag-never-new") for _ in range(2)]
        assert first[1] != second[1]
        head, _ = await get(zoo, "etag-never-new", extra='If-None-Match: "for ever"\r\n')
        assert head.startswith("HTTP/1.1 304")
        assert (await get(zoo, "head-disagrees", method="HEAD"))[0].startswith("HTTP/1.1 404")
        assert (await get(zoo, "head-disagrees"))[0].startswith("HTTP/1.1 200")


async def test_codings_lie_as_their_names_say():
    async with Zoo() as zoo:
        once = gzip.decompress((await get(zoo, "gzip-twice"))[1])
        assert b"<html>" in gzip.decompress(once)
        with pytest.raises(EOFError):
            gzip.decompress((await get(zoo, "gzip-cut"))[1])
        with pytest.raises(gzip.BadGzipFile, match="CRC"):
            gzip.decompress((await get(zoo, "gzip-bad-crc"))[1])
        assert (await get(zoo, "plain-as-gzip"))[1].startswith(b"<!DOCTYPE")
        assert b"<urlset" in gzip.decompress((await get(zoo, "zipped-sitemap-as-xml"))[1])
        for coding, unpack, broken in (
            ("br", brotli.decompress, brotli.error),
            ("zstd", zstd.decompress, zstd.ZstdError),
        ):
            assert b"<html>" in unpack(unpack((await get(zoo, f"{coding}-twice"))[1]))
            assert b"<html>" in unpack((await get(zoo, f"{coding}-in-members"))[1])
            for name in ("cut", "broken"):
                body = (await get(zoo, f"{coding}-{name}"))[1]
                with pytest.raises(broken):
                    unpack(body)
            assert (await get(zoo, f"plain-as-{coding}"))[1].startswith(b"<!DOCTYPE")


def test_newer_bombs_are_small_and_unpack_to_what_they_promise():
    for coding, unpack in (("br", brotli.decompress), ("zstd", zstd.decompress)):
        bomb_of_it = newer_bomb(coding, 16)
        assert len(bomb_of_it) < 2_000
        assert unpack(bomb_of_it) == b" " * (16 << 20)


def test_the_bomb_is_small_and_unpacks_to_what_it_promises():
    packed = bomb(16)
    assert len(packed) < 40_000
    unpacker, size = zlib.decompressobj(31), 0
    for place in range(0, len(packed), 1_000):
        size += len(unpacker.decompress(packed[place : place + 1_000]))
    assert size == 16 << 20
    assert len(bomb(512)) < 1 << 20


async def test_traps_always_have_one_more_url():
    async with Zoo() as zoo:
        for case in (case for case in link_cases.CASES if case.endless):
            path, seen = case.path, set()
            for _ in range(15):
                received, _ = await ask(zoo, case, path)
                assert path not in seen
                seen.add(path)
                text = received.decode()
                target = (re.search(r"Location: (\S+)", text) or re.search(r'href="([^"]+)"', text))[1]
                path = target if target.startswith("/") else path + target


async def test_redirects_lead_where_their_names_say():
    async with Zoo() as zoo:
        path = "/hop/0"
        for _ in range(100):
            path = re.search(r"Location: (\S+)", (await get(zoo, "redirect-chain", path=path))[0])[1]
        assert path == "/hop/100"
        assert "Location: /loop-a" in (await get(zoo, "redirect-loop", path="/loop-b"))[0]
        assert "Location" not in (await get(zoo, "redirect-nowhere"))[0]


def query(name, kind=name_server.A):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x07\x07\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack("!HH", kind, 1)


async def test_names_are_answered_as_their_names_say():
    """Asked as a resolver asks, over UDP and TCP, and read by hand."""
    async with Zoo() as zoo:
        reader, writer = await asyncio.open_connection(name_server.NAMES, zoo.port)
        question = query("many.zoo.test")
        writer.write(struct.pack("!H", len(question)) + question)
        (size,) = struct.unpack("!H", await reader.readexactly(2))
        assert struct.unpack("!H", (await reader.readexactly(size))[6:8]) == (1_000,)
        writer.close()
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.connect((name_server.NAMES, zoo.port))

            async def asked(name, kind=name_server.A):
                sock.send(query(name, kind))
                reply = await asyncio.wait_for(loop.sock_recv(sock, 4096), 5)
                return reply[3] & 15, struct.unpack("!H", reply[6:8])[0], reply[-4:], reply[2] & 2

            home = socket.inet_aton(address_of(CASES.index(named("link-farm"))))
            assert (await asked("f12345.farm.zoo.test"))[:3] == (0, 1, home)
            assert (await asked("nobody.zoo.test"))[:2] == (3, 0)
            assert (await asked("broken.zoo.test"))[:2] == (2, 0)
            assert (await asked("many.zoo.test"))[3] == 2, "truncated: over TCP, then"
            assert [(await asked("rebinds.zoo.test"))[2] for _ in range(3)][1:] != [home, home]
            assert (await asked("six.zoo.test", name_server.AAAA))[:2] == (0, 1)
            with pytest.raises(TimeoutError):
                sock.send(query("silent.zoo.test"))
                await asyncio.wait_for(loop.sock_recv(sock, 4096), 0.2)


async def test_no_handshake_is_one_that_a_careful_client_accepts():
    async with Zoo() as zoo:
        for case in (case for case in zoo.cases if case.tls):
            address = address_of(zoo.cases.index(case))
            for careful in (True, False):
                context = ssl.create_default_context()
                if not careful:  # what a lenient client would fall for is served, where a handshake can be had at all
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                try:
                    _, writer = await asyncio.open_connection(
                        address, zoo.port, ssl=context, server_hostname="zoo.test"
                    )
                except (ssl.SSLError, ConnectionError):
                    assert careful or case.tls in ("no-cipher", "unknown-name", "many-names")
                else:
                    assert not careful
                    writer.transport.abort()


async def test_a_port_in_use_leaves_nothing_open():
    async with Zoo() as zoo:
        with pytest.raises(MachineError, match="cannot listen"):
            async with Zoo(port=zoo.port):
                pass
    async with Zoo(port=zoo.port):
        pass


def test_raw_sends_exactly_what_it_is_given():
    assert raw("A: 1", body="x") == b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nA: 1\r\n\r\nx"


def test_the_zoo_runs_as_a_child_and_writes_its_table(tmp_path):
    table = tmp_path / "zoo.json"
    with running("xyro.lab.zoo.zoo_server", table=table) as child:
        assert child.entry == f"http://{HUB}:{child.port}/"
        rows = json.loads(table.read_text())
        assert [row["name"] for row in rows] == [case.name for case in CASES]
        assert all(urlsplit(row["url"]).port == child.port for row in rows)
