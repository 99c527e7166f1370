"""TLS of our own: whole bodies, sessions that are resumed where nothing differs, counted by the server."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.xyro.raw_server import RawServer, Talk, order, page, reading, serving
from xyro.connector import ConnectedProtocol, Connector
from xyro.guard import Guard
from xyro.lab.web.certificates import Authority
from xyro.resolver import Resolver
from xyro.site_entries import Proxy
from xyro.tls_transport import TlsTransport
from xyro.wire.clock import SystemClock

OK = page(b"<a href='/x'>", b"Connection: close")
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    authority = Authority(SystemClock().time())
    authority.save(path := tmp_path_factory.mktemp("ca") / "ca.pem")
    return authority, path


def trusting(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(ca))


@asynccontextmanager
async def counting(authority: Authority, version: str = "1.3") -> AsyncIterator[tuple[RawServer, list[bool]]]:
    """A server for 127.0.0.1, and whether each request's connection had resumed a session."""
    resumed: list[bool] = []

    async def script(talk: Talk) -> None:
        resumed.append(talk.writer.get_extra_info("ssl_object").session_reused)
        await talk.say(OK)
        talk.writer.close()

    context = authority.context(1, 1, "127.0.0.1")
    context.minimum_version = context.maximum_version = VERSIONS[version]
    async with serving(script, context) as server:
        yield server, resumed


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("client")
async def test_the_next_connection_resumes_the_session(signed: tuple[Authority, Path], version: str) -> None:
    async with counting(signed[0], version) as (server, resumed), reading(tls=trusting(signed[1])) as fetcher:
        for number in range(4):
            answer = await fetcher.fetch(order(f"{server.url}/{number}"))
            assert answer.error == "" and answer.links.urls == (f"{server.url}/x",)
    assert resumed == [False, True, True, True] and server.connections == 4


@pytest.mark.usefixtures("client")
async def test_a_server_that_forgot_makes_a_new_session(signed: tuple[Authority, Path]) -> None:
    async with AsyncExitStack() as stack:
        fetcher = await stack.enter_async_context(reading(tls=trusting(signed[1])))
        first, second = [await stack.enter_async_context(counting(signed[0])) for _ in range(2)]
        await fetcher.fetch(order(first[0].url + "/"))
        connector = getattr(fetcher._client, "connector", None) or fetcher._client._connector.connections  # type: ignore[attr-defined]
        ((place, session),) = connector._sessions.items()
        connector._sessions[place._replace(port=second[0].port)] = session
        answer = await fetcher.fetch(order(second[0].url + "/"))
        assert answer.error == "" and second[1] == [False]


@pytest.mark.usefixtures("client")
async def test_another_port_and_another_client_resume_nothing(signed: tuple[Authority, Path]) -> None:
    async with counting(signed[0]) as (one, first), counting(signed[0]) as (other, second):
        async with reading(tls=trusting(signed[1])) as fetcher:
            for server in (one, other, one):
                assert (await fetcher.fetch(order(server.url + "/"))).error == ""
        async with reading(tls=trusting(signed[1])) as fetcher:
            assert (await fetcher.fetch(order(one.url + "/"))).error == ""
    assert (first, second) == ([False, True, False], [False])


class Asking(ConnectedProtocol):
    """Asks for one page, and remembers the session."""

    def __init__(self, connector: Connector) -> None:
        self.connector, self.place, self.address = connector, None, ""
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(b"GET / HTTP/1.1\r\n\r\n")  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        assert self.place is not None
        self.connector.note_session(self.place, self.transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set_result(error)


async def test_another_address_name_or_proxy_resumes_nothing(signed: tuple[Authority, Path]) -> None:
    """One server, one context, one port: what differs is whom we spoke to."""
    authority, ca = signed
    context = authority.context(1, 1, "127.0.0.1")
    context.sni_callback = lambda *_: None  # names are asked for, and all are answered alike
    resumed: list[bool] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        resumed.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(OK)
        await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    proxy = await asyncio.start_server(relay, "127.0.0.1", 0)
    chosen: list[Proxy | None] = [None]
    guard = Guard(only_net=["127.0.0.0/8"])
    resolver = Resolver(guard, SystemClock())
    trust = trusting(ca)
    trust.check_hostname = True
    connector = Connector(guard, resolver, trust, lambda _: chosen[0], 10.0)

    async def ask(address: str) -> bool:
        made = await connector.connect(lambda: Asking(connector), "h", port, [address], "127.0.0.1")
        assert await made.ended is None
        return resumed[-1]

    try:
        assert [await ask("127.0.0.1") for _ in range(2)] == [False, True]
        assert [await ask("127.0.0.2") for _ in range(2)] == [False, True]
        chosen[0] = Proxy("127.0.0.1", proxy.sockets[0].getsockname()[1])
        assert [await ask("127.0.0.1") for _ in range(2)] == [False, True]
        chosen[0] = replace(chosen[0], login="Basic eDp5")
        assert await ask("127.0.0.1") is False
        chosen[0] = None
        assert await ask("127.0.0.1") is True
        with pytest.raises(ssl.SSLCertVerificationError):
            await connector.connect(lambda: Asking(connector), "h", port, ["127.0.0.1"], "other.example")
    finally:
        server.close()
        proxy.close()
        await resolver.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_server_encrypts_comes_out_whole(signed: tuple[Authority, Path], version: str) -> None:
    """Without a network: 2 MB in packets of any size, the handshake among them."""
    authority, ca = signed
    theirs = authority.context(1, 1, "127.0.0.1")
    theirs.maximum_version = VERSIONS[version]
    rng, body = random.Random(7), random.Random(8).randbytes(2_000_000)
    s_in, s_out, c_in, c_out = (ssl.MemoryBIO() for _ in range(4))
    served = theirs.wrap_bio(s_in, s_out, server_side=True)
    ours = trusting(ca).wrap_bio(c_in, c_out, server_hostname="127.0.0.1")
    got: list[bytes] = []
    protocol = SimpleNamespace(connection_made=lambda _: None, data_received=got.append, connection_lost=got.append)
    closing: list[bool] = []
    tcp = SimpleNamespace(
        write=s_in.write, is_closing=lambda: bool(closing), close=lambda: closing.append(True), abort=closing.clear
    )
    with asyncio.Runner() as runner:
        shaken = runner.get_loop().create_future()
        tls = TlsTransport(protocol, ours, c_in, c_out, shaken)  # type: ignore[arg-type]
        tls.connection_made(tcp)  # type: ignore[arg-type]
        wire, done = b"", False
        while not done:
            try:
                served.do_handshake()
                served.write(body)
                done = True
            except ssl.SSLWantReadError:
                pass
            wire = s_out.read()
            if not done:
                tls.data_received(wire)
        try:
            served.unwrap()
        except ssl.SSLWantReadError:
            wire += s_out.read()
        while wire:
            size = rng.choice([1, 5, 700, 16_384, 300_000])
            tls.data_received(wire[:size])
            wire = wire[size:]
        assert shaken.done() and b"".join(got) == body
        assert closing and tls.is_closing()  # the server said goodbye
        tls.connection_lost(None)
        assert got[-1] is None
