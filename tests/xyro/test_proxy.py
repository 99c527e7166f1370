"""Pages through a real small proxy, judged by its own log of CONNECT lines and by what the servers behind were sent."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.xyro.raw_server import QUICK, order, reading, says, serving
from tests.xyro.test_client import OK, _certificate, _server_side
from xyro.guard import Guard
from xyro.proxy import UnresolvedNames, context_with, parse_proxy
from xyro.site_entries import Proxy, SiteEntries, SiteEntry, SiteOptions
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]

pytestmark = pytest.mark.usefixtures("client")


@dataclass
class SmallProxy:
    """Knows CONNECT only. `names`: what it resolves itself; `answer`: said instead of a tunnel."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    """its log: the first line of each request"""
    heads: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    answer: bytes = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            self.asked.append(head.split("\r\n")[0])
            verb, target, _ = self.asked[-1].split(" ")
            if self.answer or verb != "CONNECT":
                writer.write(self.answer or b"HTTP/1.1 405 no\r\n\r\n")
                await writer.drain()
                return
            host, _, port = target.rpartition(":")
            inner, outer = await asyncio.open_connection(
                "127.0.0.1" if host in self.names else host.strip("[]"), self.names.get(host, int(port))
            )
            ends.append(outer)
            writer.write(b"HTTP/1.1 200 Connection established\r\nX-Via: small\r\n\r\n")
            await asyncio.gather(_pump(reader, outer), _pump(inner, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for end in ends:
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def accepting(serve: Serve) -> AsyncIterator[int]:
    """A server on a port of loopback; nothing of it is left behind."""
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


@asynccontextmanager
async def proxying(**options: object) -> AsyncIterator[SmallProxy]:
    proxy = SmallProxy(**options)
    async with accepting(proxy.serve) as proxy.port:
        yield proxy


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.sleep(30)
    finally:
        writer.close()


async def test_plain_http_goes_through_a_tunnel_to_the_address_that_was_checked() -> None:
    async with serving(says(OK, close=False)) as server, proxying() as proxy:
        host = f"localhost:{server.port}"
        chosen = Proxy("127.0.0.1", proxy.port, "Basic dTpw")
        async with reading(proxy_of=lambda name: chosen) as fetcher:
            for _ in range(2):
                answer = await fetcher.fetch(order(f"http://{host}/good"))
                assert (answer.error, answer.status, answer.address) == ("", 200, "127.0.0.1")
    assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]  # kept for the second
    assert f"Host: 127.0.0.1:{server.port}\r\nProxy-Authorization: Basic dTpw\r\n" in proxy.heads[0]
    assert len(server.heads) == 2
    for head in server.heads:
        assert head.startswith("GET /good HTTP/1.1\r\n") and f"\r\nHost: {host}\r\n" in head
        assert "proxy" not in head.lower()


async def test_over_tls_the_name_is_in_sni_and_is_verified(tmp_path) -> None:
    named = ("-addext", "subjectAltName=DNS:shop.localhost", "-days", "30")
    pair = _certificate(tmp_path, "good", *named)
    seen: list[str | None] = []
    context = _server_side(pair)
    context.sni_callback = lambda sock, name, _: seen.append(name)
    async with serving(says(OK), tls=context) as server, proxying() as proxy:
        chosen = Proxy("127.0.0.1", proxy.port)
        trusted = context_with(str(pair[1]))
        assert trusted is not None
        for host, tls, error in (("shop", trusted, ""), ("other", trusted, "tls"), ("shop", None, "tls")):
            async with reading(tls=tls, proxy_of=lambda name: chosen) as fetcher:
                answer = await fetcher.fetch(order(f"https://{host}.localhost:{server.port}/good"))
                assert answer.error == error, host
    assert seen == ["shop.localhost", "other.localhost", "shop.localhost"]
    assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"] * 3


async def test_the_guard_decides_before_the_proxy_is_asked() -> None:
    async with proxying() as proxy:
        chosen = Proxy("127.0.0.1", proxy.port)
        async with reading(guard=Guard(allow_private=["127.0.0.1/32"]), proxy_of=lambda name: chosen) as fetcher:
            for url in ("http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://127.0.0.2/"):
                assert (await fetcher.fetch(order(url))).error == "blocked-address", url
                assert (await fetcher.fetch_robots(url + "robots.txt")).error == "blocked-address", url
        async with reading(guard=Guard(["127.0.0.0/8"]), proxy_of=lambda name: chosen) as fetcher:
            assert (await fetcher.fetch(order("http://93.184.216.34/"))).error == "only-net"
    assert proxy.asked == []


async def test_a_proxy_outside_of_only_net_is_never_contacted() -> None:
    async with proxying() as proxy:
        chosen = Proxy("127.0.0.1", proxy.port)
        async with reading(guard=Guard(["127.0.0.2/32"]), proxy_of=lambda name: chosen) as fetcher:
            assert (await fetcher.fetch(order("http://127.0.0.2:8000/"))).error in ("only-net", "proxy-failed")
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "proxy-failed"),
        (b"HTTP/1.1 403 no\r\n\r\n", "proxy-failed"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "connect-failed"),
        (b"HTTP/1.1 504 Gateway Timeout\r\n\r\n", "connect-timeout"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "proxy-failed"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "proxy-failed"),
        (b"HTTP/1.1 200 ok\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "proxy-failed"),
        (b"HTTP/1.1 200 ok\r\nX: " + b"a" * 20_000, "proxy-failed"),
        (b"HTTP/1.1 200 ok\r\n", "proxy-failed"),
    ],
)
async def test_what_a_proxy_says_instead_of_a_tunnel_has_a_name(said: bytes, error: str) -> None:
    async with serving(says(OK)) as server, proxying(answer=said) as proxy:
        chosen = Proxy("127.0.0.1", proxy.port)
        async with reading(proxy_of=lambda name: chosen) as fetcher:
            assert (await fetcher.fetch(order(server.url + "/good"))).error == error
    assert server.heads == [] and len(proxy.asked) == 1


@pytest.mark.long
async def test_a_proxy_that_is_gone_or_mute_costs_no_more_than_a_connection() -> None:
    async with serving(says(OK)) as server:
        async with reading(proxy_of=lambda name: Proxy("127.0.0.1", 9)) as fetcher:
            assert (await fetcher.fetch(order(server.url + "/good"))).error == "proxy-failed"
        async with accepting(mute) as port, reading(proxy_of=lambda name: Proxy("127.0.0.1", port)) as fetcher:
            answer = await fetcher.fetch(order(server.url + "/good"))
        assert (answer.error, answer.duration < 5 * QUICK.connect) == ("proxy-failed", True)
        assert server.heads == []


@pytest.mark.long
async def test_a_proxy_that_answers_about_others_is_not_blamed_for_a_silent_host() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b":9981 " in await reader.readuntil(b"\r\n\r\n"):
            await mute(reader, writer)
        writer.write(b"HTTP/1.1 502 no\r\n\r\n")
        writer.close()

    async with accepting(serve) as port, reading(proxy_of=lambda name: Proxy("127.0.0.1", port)) as fetcher:
        silent = asyncio.create_task(fetcher.fetch(order("http://127.0.0.1:9981/")))
        while not silent.done():
            assert (await fetcher.fetch(order("http://127.0.0.1:9982/"))).error == "connect-failed"
        assert (await silent).error == "connect-timeout"


async def test_each_host_has_the_proxy_of_its_entry() -> None:
    async with serving(says(OK)) as server, proxying() as first, proxying() as second:
        entries = SiteEntries(
            SiteOptions(
                (SiteEntry("a.localhost", proxied=True, proxy=Proxy("127.0.0.1", second.port)),
                 SiteEntry("b.localhost", proxied=True), SiteEntry("c.localhost", delay=1.0)),
                proxy=Proxy("127.0.0.1", first.port),
            )
        )  # fmt: skip
        async with reading(proxy_of=entries.proxy) as fetcher:
            for name in ("a", "b", "c", "d"):
                assert (await fetcher.fetch(order(f"http://{name}.localhost:{server.port}/good"))).error == ""
    assert (len(first.asked), len(second.asked), len(server.heads)) == (2, 1, 4)


async def test_a_proxy_that_resolves_is_given_names_that_nobody_here_looks_up() -> None:
    async with serving(says(OK)) as server, proxying(names={"wiki.example": server.port}) as proxy:
        chosen = Proxy("127.0.0.1", proxy.port, resolves=True)
        guard = Guard(name_servers=["127.0.0.1:9"], ports=[server.port])
        resolver = UnresolvedNames(guard, SystemClock(), lambda name: chosen)
        async with reading(guard=guard, resolver=resolver, proxy_of=lambda name: chosen) as fetcher:
            assert fetcher.knows("http://wiki.example/") and await fetcher.address("http://wiki.example/") == ""
            answer = await fetcher.fetch(order(f"http://wiki.example:{server.port}/good"))
            assert (answer.error, answer.status, answer.address) == ("", 200, "")
            again = await fetcher.fetch(order("http://10.0.0.1/"))
            assert again.error == "blocked-address"
    assert proxy.asked == [f"CONNECT wiki.example:{server.port} HTTP/1.1"]
    assert f"\r\nHost: wiki.example:{server.port}\r\n" in server.heads[0]


def test_settings_that_only_net_forbids_are_refused() -> None:
    laboratory = Guard(["127.0.0.0/8"])
    assert parse_proxy("http://127.0.0.1:3128/", "", False, laboratory, "here").port == 3128
    assert parse_proxy("http://localhost:3128", "", False, laboratory, "here").host == "localhost"
    assert parse_proxy("http://proxy.example:3128", "", True, Guard(), "here").resolves
    assert parse_proxy("http://[::1]:3128", "", False, Guard(["::1/128"]), "here").host == "::1"
    for url, resolves, complaint in (
        ("http://10.0.0.1:3128", False, "outside of --only-net"),
        ("http://proxy.example:3128", False, "is a name"),
        ("http://127.0.0.1:3128", True, "cannot go with --only-net"),
        ("http://127.0.0.1:99999", False, "a port of 1 to 65535"),
    ):
        with pytest.raises(InputError, match=complaint):
            parse_proxy(url, "", resolves, laboratory, "here")


def test_authorities_of_a_file_are_trusted_beside_the_systems(tmp_path) -> None:
    assert context_with("") is None
    context = context_with(str(_certificate(tmp_path, "good", "-days", "30")[1]))
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    for content in (None, "no certificate"):
        path = tmp_path / "bad.pem"
        if content is not None:
            path.write_text(content)
        with pytest.raises(InputError, match=r"ca_file: .*bad\.pem: .*PEM"):
            context_with(str(path))
