"""One request against servers that misbehave in connection, TLS and framing: each ends in its named failure class.

Numbers are those of the hostile zoo (lab/zoo, A and B).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Literal

import pytest
import uvloop
from msgspec.structs import replace

from tests.xyro import raw_server
from tests.xyro.raw_server import QUICK, Script, Talk, fetched, order, page, reading, says, serving
from xyro.client import Connection
from xyro.exchange import ClientLimits, ConnectionWatch, Exchange
from xyro.guard import Guard
from xyro.reader import client_class
from xyro.resolver import Resolver

OK = page(b"<a href=x>ok</a>")
pytestmark = pytest.mark.usefixtures("client")


async def silence(talk: Talk) -> None:
    await asyncio.sleep(30)


async def reset_in_the_body(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<a href=x>")
    sock = talk.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    talk.reset()


def drip(head: bytes, drop: bytes, pause: float) -> Script:
    async def script(talk: Talk) -> None:
        await talk.say(head)
        for _ in range(200):
            await talk.say(drop, pause=pause)

    return script


H = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CASES: dict[str, tuple[Script, str]] = {
    "1 accepts and never answers": (silence, "first-byte-timeout"),
    "2 headers drip": (drip(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.02), "header-timeout"),
    "3 body drips": (drip(H + b"Content-Length: 9999\r\n\r\n", b"x", 0.02), "slow-body"),
    "3 body stalls": (drip(H + b"Content-Length: 9999\r\n\r\n<p>", b"", 0.02), "slow-body"),
    "3 body takes for ever": (drip(H + b"\r\n", b"x" * 1000, 0.02), "timeout"),
    "5 reset in the body": (reset_in_the_body, "disconnect"),
    "6 closes without a word": (says(), "disconnect"),
    "20 TLS on a plain port": (says(b"\x15\x03\x01\x00\x02\x02\x46"), "bad-status"),
    "21 no status line": (says(b"<html>HTTP/0.9 page</html>"), "bad-status"),
    "21 binary": (says(bytes(range(256)) * 4), "bad-status"),
    "22 a status of five digits": (says(b"HTTP/1.1 99999 Odd\r\n\r\n"), "bad-status"),
    "22 a status of 999": (says(page(b"go away", status=b"999 Request denied")), "http-4xx"),
    "23 interim answers for ever": (says(*[b"HTTP/1.1 103 Early\r\n\r\n" * 1000] * 10), "headers-too-large"),
    "24 switching protocols unasked": (
        says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx"),
        "upgrade",
    ),
    "25 body shorter than announced": (says(H + b"Content-Length: 100\r\n\r\n<a href=x>"), "truncated"),
    "27 negative length": (says(H + b"Content-Length: -1\r\n\r\nx"), "bad-framing"),
    "27 two lengths": (says(H + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), "bad-framing"),
    "27 two lengths in one": (says(H + b"Content-Length: 3, 4\r\n\r\nabcd"), "bad-framing"),
    "27 two equal lengths of nothing": (says(H + b"Content-Length: x\r\nContent-Length: x\r\n\r\nabcd"), "bad-framing"),
    "27 two equal lengths and chunks": (
        says(H + b"Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "bad-framing",
    ),
    "27 overflowing length": (says(H + b"Content-Length: 99999999999999999999999\r\n\r\nx"), "bad-framing"),
    "28 length and chunks": (
        says(H + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "bad-framing",
    ),
    "29 bad chunk size": (says(H + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"), "bad-framing"),
    "29 bad chunk size, later": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n", b"zz\r\nab\r\n", pause=0.05, close=False),
        "bad-framing",
    ),
    "29 chunk of 2^70": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n400000000000000000\r\nab\r\n", close=False),
        "bad-framing",
    ),
    "30 final chunk missing": (says(H + b"Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n"), "truncated"),
    "31 endless chunks": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1000\r\n" + b"x" * 4096 + b"\r\n"] * 200, close=False),
        "too-large",
    ),
    "32 endless body": (says(H + b"\r\n", *[b"x" * 4096] * 200, close=False), "too-large"),
    "33 endless chunk extension": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n1;", *[b"x" * 4096] * 200, close=False),
        "too-large",
    ),
    "34 endless trailers": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", *[b"X: " + b"x" * 4000 + b"\r\n"] * 200, close=False),
        "too-large",
    ),
    "34 10,000 trailers": (
        says(H + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 10_000, b"\r\n"),
        "headers-too-large",
    ),
    "35 a header of 64 kB": (says(H + b"X: " + b"x" * 65_536 + b"\r\n\r\n"), "headers-too-large"),
    "36 20,000 headers": (says(H + b"X: y\r\n" * 20_000 + b"\r\n"), "headers-too-large"),
    "36 5,000 cookies": (says(H + b"Set-Cookie: a=b\r\n" * 5000 + b"\r\n"), "headers-too-large"),
    "37 NUL in a header": (says(H + b"X: a\0b\r\nContent-Length: 0\r\n\r\n"), "bad-framing"),
    "37 bare CR in a header": (says(H + b"X: a\rb\r\nContent-Length: 0\r\n\r\n"), "bad-framing"),
    "40 unasked 206": (says(page(b"<p>", b"Content-Range: bytes 0-2/9", status=b"206 Partial")), "unasked-206"),
    "41 unasked 304": (says(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "unasked-304"),
}


def limits_of(kind: str) -> ClientLimits:
    """Time enough on a busy machine, where time is not what ends the read."""
    if kind in ("first-byte-timeout", "header-timeout", "slow-body"):
        return QUICK
    total = 3.0 if kind == "timeout" else 30.0
    return replace(QUICK, first_byte=30.0, headers=30.0, total=total, slow_window=30.0)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
async def test_hostile_server(name: str) -> None:
    script, kind = CASES[name]
    answer = await fetched(script, limits=limits_of(kind))
    assert answer.error == kind, answer
    assert answer.signature == b""
    assert answer.started <= answer.ended


@pytest.mark.long
def test_on_the_loop_of_a_crawl() -> None:
    """uvloop's transports are not asyncio's: all at once."""

    async def answers() -> list[str]:
        found = await asyncio.gather(*(fetched(script, limits=limits_of(kind)) for script, kind in CASES.values()))
        return [answer.error for answer in found]

    assert dict(zip(CASES, uvloop.run(answers()), strict=True)) == {name: kind for name, (_, kind) in CASES.items()}


async def test_a_port_that_nobody_listens_on() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        async with reading() as fetcher:
            answer = await fetcher.fetch(order(f"http://127.0.0.1:{port}/"))
    assert (answer.error, answer.status) == ("connect-refused", 0)


async def test_a_black_hole() -> None:
    """Zoo 4: connections pile up in a queue of length 0 that nobody accepts from."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        try:
            async with reading(replace(QUICK, connect=0.3)) as fetcher:
                answer = await fetcher.fetch(order(f"http://127.0.0.1:{sock.getsockname()[1]}/"))
        finally:
            for filler in fillers:
                filler.close()
    assert answer.error == "connect-timeout"


async def test_a_request_on_a_kept_connection_that_is_closed_is_sent_once() -> None:
    """Zoo 6: whoever wants the page asks again in its turn, which is on a new connection."""

    async def script(talk: Talk) -> None:
        if talk.number:
            talk.writer.close()
        else:
            await talk.say(OK)

    async with serving(script) as server, reading() as fetcher:
        answers = [(path, (await fetcher.fetch(order(server.url + path))).error) for path in ("/1", "/2", "/2")]
        assert answers == [("/1", ""), ("/2", "closed-idle"), ("/2", "")]
        assert [head.split(" ")[1] for head in server.heads] == ["/1", "/2", "/2"] and server.connections == 2


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", b"garbage", b"\0"])
@pytest.mark.parametrize("later", [False, True])
async def test_surplus_bytes_are_never_the_next_answer(surplus: bytes, later: bool) -> None:
    """Zoo 7: in the packet of an answer, or while the connection is idle."""

    async def script(talk: Talk) -> None:
        if talk.path == "/second":
            await talk.say(page(b"<a href=good>"))
        elif later:
            await talk.say(OK, pause=0.02)
            await talk.say(surplus)
        else:
            await talk.say(OK + surplus)

    async with serving(script) as server, reading() as fetcher:
        first = await fetcher.fetch(order(server.url + "/first"))
        assert (first.error, len(first.links.urls)) == ("", 1)
        await asyncio.sleep(0.1)
        second = await fetcher.fetch(order(server.url + "/second"))
        assert (second.error, second.links.urls) == ("", (server.url + "/good",))
        assert server.connections == 2


@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.parametrize("head", [b"200 OK\r\nContent-Length: 3", b"204 No\r\nContent-Length: 3", b"204 No"])
async def test_a_body_longer_than_announced_is_cut_there(head: bytes, pause: float) -> None:
    """Zoo 26, 39: in one packet or in several."""
    raw = b"HTTP/1.1 " + head + b"\r\nContent-Type: text/html\r\n\r\n"

    async def script(talk: Talk) -> None:
        await talk.say(*([raw, b"<p>", b"<a href=x>"] if pause else [raw + b"<p><a href=x>"]), pause=pause)

    async with serving(script) as server, reading() as fetcher:
        for path in ("/1", "/2"):
            answer = await fetcher.fetch(order(server.url + path))
            assert (answer.error, answer.size, answer.links.urls) == ("", 3 * (head[:3] == b"200"), ())
            await asyncio.sleep(3 * pause)  # politeness keeps a distance that such surplus comes in
        assert server.connections == 2


async def test_an_answer_before_the_request_is_not_taken() -> None:
    """Zoo 7: whatever a server says unasked, the page of the second URL is never that of the first."""

    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await reader.read(10_000)
        writer.close()

    server = await asyncio.start_server(eager, "127.0.0.1", 0)
    async with server, reading() as fetcher:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        answer = await fetcher.fetch(order(url))
        assert answer.error in ("", "disconnect", "bad-framing")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 10\n\n<a href=x>", 200),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n charset=utf-8\r\nContent-Length: 10\r\n\r\n<a href=x>", 200),
        (b"HTTP/1.0 200\r\nContent-Type: text/html\r\n\r\n<a href=x>", 200),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n" + page(b"<a href=x>"), 200),
        (H + b"X: \xff\xfe\xe9\r\nContent-Length: 10\r\n\r\n<a href=x>", 200),
        (H + b"Content-Security-Policy: " + b"x" * 20_000 + b"\r\nContent-Length: 10\r\n\r\n<a href=x>", 200),
        (H + b"Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\n<a hr\r\n5\r\nef=x>\r\n0\r\nTrailer: x\r\n\r\n", 200),
    ],
)
async def test_what_has_to_be_tolerated(raw: bytes, status: int) -> None:
    """Zoo 35, 37, 38, and framing that is only unusual."""
    answer = await fetched(says(raw))
    assert (answer.error, answer.status, len(answer.links.urls)) == ("", status, 1)


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 13\r\nContent-Length: 13",
        b"content-length:13 \r\nX: y\r\nContent-Length: 13\r\nCONTENT-LENGTH: 13",
        b"Content-Length: 13, 13",
        b"Content-Length: 13\r\nX: Content-Length: 14\r\nContent-Length: 13 ,13",
    ],
)
@pytest.mark.parametrize("apart", [False, True])
async def test_equal_lengths_are_one(lengths: bytes, apart: bool) -> None:
    """RFC 9110 8.6: in a head that comes in one packet."""
    head, body = H + lengths + b"\r\n\r\n", b"<a href=good>"

    async def script(talk: Talk) -> None:
        await talk.say(*([head, body] if apart else [head + body]), pause=0.001)

    async with serving(script) as server, reading() as fetcher:
        for path in ("/1", "/2"):
            answer = await fetcher.fetch(order(server.url + path))
            assert (answer.error, answer.status, answer.size) == ("", 200, 13)
            assert answer.links.urls == (server.url + "/good",)
        assert server.connections == 1


async def test_what_a_request_looks_like() -> None:
    async with serving(says(OK, close=False)) as server, reading() as fetcher:
        await fetcher.fetch(order(server.url + "/a%7Eb?q=%C3%A9&x=[1]|", etag='W/"1"'))
        head = server.heads[0]
    assert head.startswith("GET /a%7Eb?q=%C3%A9&x=[1]| HTTP/1.1\r\n")
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    assert lines.pop("Host") == f"127.0.0.1:{server.port}"
    assert lines.pop("Accept").startswith("text/html")
    assert lines == {
        "User-Agent": "xyro/0.1 (+http://x.test)",
        "From": "a@x.test",
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "If-None-Match": 'W/"1"',
    }


async def test_cookies_are_neither_kept_nor_sent() -> None:
    async with serving(says(page(b"<p>x", b"Set-Cookie: a=b"), close=False)) as server, reading() as fetcher:
        for _ in range(2):
            assert (await fetcher.fetch(order(server.url + "/"))).error == ""
        assert server.connections == 1
        assert not any("cookie:" in head.lower() for head in server.heads)


async def test_environment_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert (await fetched(says(OK))).error == ""


async def test_cancelling_a_read_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.say(H + b"Content-Length: 1000\r\n\r\n<p>")
        await talk.reader.read()
        closed.set()

    limits = ClientLimits()
    async with serving(script) as server, reading(limits) as fetcher:
        task = asyncio.create_task(fetcher.fetch(order(server.url + "/")))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 5)


async def test_no_time_passes_while_it_is_we_who_do_not_read_on() -> None:
    limits = ClientLimits(total=0.05, slow_window=0.05)
    watch = ConnectionWatch(limits, lambda host: 1.0)
    failed: asyncio.Queue[str] = asyncio.Queue()

    class Watched:
        def fail(self, exchange: Exchange, kind: str) -> None:
            failed.put_nowait(kind)
            watch.remove(exchange)

    exchange = Exchange(Watched(), asyncio.get_running_loop().time(), 1_000, headed=True)
    exchange.paused = True
    watch.add(exchange)
    await asyncio.sleep(0.3)
    assert failed.empty()
    exchange.paused = False
    assert await failed.get() in ("timeout", "slow-body")
    watch.close()


async def test_the_watch_stops_when_nothing_is_read() -> None:
    async with serving(says(OK, close=False)) as server, reading() as fetcher:
        await fetcher.fetch(order(server.url + "/"))
        watch = fetcher._client.watch
        assert not watch._exchanges
        await asyncio.sleep(4 * watch._tick)
        assert watch._timer is None


async def test_aiohttp_makes_our_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one place where a private name of aiohttp is set: an upgrade that renames it must be seen here."""
    monkeypatch.setattr(raw_server, "CLIENT", "aiohttp")
    async with serving(says(OK, close=False)) as server, reading() as fetcher:
        reply = await fetcher._client.get(server.url + "/")
        assert isinstance(reply._exchange.connection, Connection)
        assert reply.address == "127.0.0.1"
        await reply.drop()


# --- TLS (zoo 17, 18, 20)


def _certificate(folder: Path, name: str, *options: str) -> tuple[Path, Path]:
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={name}", *options]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


def _expired(folder: Path, key: Path, certificate: Path) -> tuple[Path, Path]:
    """The same certificate as it was valid in January 2020 (only `openssl ca` takes dates)."""
    old, request = folder / "old.pem", folder / "old.csr"
    (folder / "index").touch()
    (folder / "serial").write_text("01")
    (folder / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=c\n[c]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
        "default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n"
        "[e]\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=CA:TRUE\n"
    )
    common = {"check": True, "capture_output": True}
    subprocess.run(["openssl", "req", "-new", "-key", str(key), "-subj", "/CN=old", "-out", str(request)], **common)
    command = [
        "openssl",
        "ca",
        "-config",
        str(folder / "ca.cnf"),
        "-selfsign",
        "-keyfile",
        str(key),
        "-batch",
        "-notext",
    ]
    command += ["-in", str(request), "-out", str(old), "-startdate", "20200101000000Z", "-enddate", "20200201000000Z"]
    subprocess.run(command, **common)
    return key, old


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("tls")
    address = ("-addext", "subjectAltName=IP:127.0.0.1")
    good = _certificate(folder, "good", *address, "-days", "30")
    return {
        "good": good,
        "wrong host": _certificate(folder, "wrong", "-addext", "subjectAltName=DNS:other.example", "-days", "30"),
        "expired": _expired(folder, *good),
    }


def _server_side(pair: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair[1], pair[0])
    return context


def _trusting(*pairs: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for _, certificate in pairs:
        context.load_verify_locations(certificate)
    return context


async def test_tls_that_is_right(certificates: dict[str, tuple[Path, Path]]) -> None:
    good = certificates["good"]
    async with serving(says(OK, close=False), _server_side(good)) as server, reading(tls=_trusting(good)) as fetcher:
        answer = await fetcher.fetch(order(server.url + "/"))
        assert (answer.error, answer.status) == ("", 200)


@pytest.mark.parametrize("name", ["self-signed", "wrong host", "expired", "old protocol"])
async def test_tls_that_is_wrong_is_never_read(name: str, certificates: dict[str, tuple[Path, Path]]) -> None:
    served = _server_side(certificates.get(name, certificates["good"]))
    trusted = _trusting() if name == "self-signed" else _trusting(*certificates.values())
    if name == "old protocol":
        trusted.minimum_version = ssl.TLSVersion.TLSv1_3
        served.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(says(OK), served) as server, reading(tls=trusted) as fetcher:
        answer = await fetcher.fetch(order(server.url + "/"))
        assert (answer.error, answer.status) == ("tls", 0)
        assert server.heads == []


async def test_plain_http_where_tls_is_expected() -> None:
    """Zoo 20."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server, reading() as fetcher:
        answer = await fetcher.fetch(order(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
        assert answer.error == "tls"


async def test_a_handshake_that_stalls() -> None:
    """Zoo 18."""
    async with serving(silence) as server, reading(replace(QUICK, connect=0.3)) as fetcher:
        answer = await fetcher.fetch(order(f"https://127.0.0.1:{server.port}/"))
        assert answer.error == "connect-timeout"


async def test_a_context_that_does_not_verify_is_refused(client: Literal["fast", "aiohttp"]) -> None:
    guard = Guard()
    context = ssl.create_default_context()
    context.check_hostname = False
    with pytest.raises(ValueError, match="verify"):
        client_class(client)(guard, Resolver(guard, None), user_agent="x", tls=context)  # type: ignore[arg-type]


async def test_idle_connections_are_bounded_and_those_used_last_stay() -> None:
    """Each is an open file, and a crawl meets hundreds of hosts a second."""
    at_servers: list[asyncio.StreamWriter] = []

    async def script(talk: Talk) -> None:
        at_servers.append(talk.writer)
        await talk.say(OK)

    limits = replace(QUICK, most_idle=5)
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serving(script)) for _ in range(20)]
        fetcher = await stack.enter_async_context(reading(limits))
        for server in servers:
            assert (await fetcher.fetch(order(server.url + "/"))).error == ""
        async with asyncio.timeout(5):
            while sum(not writer.is_closing() for writer in at_servers) > 5:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for server in servers[-5:]:
            assert (await fetcher.fetch(order(server.url + "/again"))).error == ""
        assert [server.connections for server in servers] == [1] * 20


async def test_a_connection_is_free_as_soon_as_an_answer_is_whole(client: Literal["fast", "aiohttp"]) -> None:
    """A busy machine lets pages wait for seconds until they are parsed: meanwhile the server's time-out runs."""
    guard = Guard(only_net=["127.0.0.0/8"])
    resolver = Resolver(guard, None)
    getter = client_class(client)(guard, resolver, user_agent="x", limits=QUICK)
    async with serving(says(page(b"<p>" * 5_000), close=False)) as server:
        first = await getter.get(server.url + "/1")
        await asyncio.sleep(0.05)
        second = await getter.get(server.url + "/2")
        for reply in (first, second):
            body = b""
            while piece := await reply.read():
                body += piece
            assert body == b"<p>" * 5_000 and reply.whole
            reply.close()
        assert server.connections == 1
        third = await getter.get(server.url + "/3")
        third.close()
        assert server.connections == 1
    await getter.close()
    await resolver.close()
