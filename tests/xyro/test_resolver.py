"""The resolver against a real name server of ours on loopback (zoo 9-12, 14)."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from xyro.guard import Guard, is_local_name
from xyro.resolver import ADDRESSES, Resolver
from xyro.wire.clock import ManualClock
from xyro.wire.errors import TheirError

A, CNAME, AAAA = 1, 5, 28
Answer = tuple[int, list[tuple[int, int, str]]] | None
"""(response code, [(type, TTL, data)]) or None: no answer at all."""


def _name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _data(kind: int, text: str) -> bytes:
    if kind == CNAME:
        return _name(text)
    return socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, text)


class NameServer(asyncio.DatagramProtocol):
    """Answers (name, type) as `zone` says; counts what it was asked."""

    def __init__(self, zone: Callable[[str, int], Answer]) -> None:
        self.zone = zone
        self.asked: list[tuple[str, int]] = []

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, kind = ".".join(labels).lower(), struct.unpack("!H", data[at + 1 : at + 3])[0]
        self.asked.append((name, kind))
        answer = self.zone(name, kind)
        if answer is None:
            return
        code, records = answer
        reply = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0) + data[12 : at + 5]
        for record, ttl, text in records:
            payload = _data(record, text)
            reply += b"\xc0\x0c" + struct.pack("!HHIH", record, 1, ttl, len(payload)) + payload
        self.transport.sendto(reply, peer)


@asynccontextmanager
async def serving(zone: Callable[[str, int], Answer]) -> AsyncIterator[tuple[NameServer, Resolver, ManualClock]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(zone), local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    guard = Guard(only_net=["127.0.0.0/8", "::1"], name_servers=[f"127.0.0.1:{port}"])
    clock = ManualClock()
    resolver = Resolver(guard, clock, timeout=0.1, tries=2)
    try:
        yield server, resolver, clock
    finally:
        await resolver.close()
        transport.close()


def only_a(*addresses: str, ttl: int = 300) -> Callable[[str, int], Answer]:
    return lambda name, kind: (0, [(A, ttl, address) for address in addresses] if kind == A else [])


async def kind_of_failure(resolver: Resolver, host: str) -> str:
    with pytest.raises(TheirError) as caught:
        await resolver.address(host)
    return caught.value.kind


async def test_an_answer_is_kept_and_asked_for_once() -> None:
    """A TTL of 0 keeps c-ares' own cache, which knows no manual clock, out of the test."""
    async with serving(only_a("127.0.0.7", ttl=0)) as (server, resolver, clock):
        answers = await asyncio.gather(*(resolver.address("Example.org") for _ in range(20)))
        assert set(answers) == {"127.0.0.7"}
        assert sorted(server.asked) == [("example.org", A), ("example.org", AAAA)]
        clock.advance(59)
        await resolver.address("example.org.")
        assert server.asked.count(("example.org", A)) == 1
        clock.advance(2)
        await resolver.address("example.org")
        assert server.asked.count(("example.org", A)) == 2


@pytest.mark.parametrize(("ttl", "kept"), [(0, 60), (600, 600), (10**9, 86_400)])
async def test_ttls_are_clamped(ttl: int, kept: int) -> None:
    async with serving(only_a("127.0.0.7", ttl=ttl)) as (_, resolver, _):
        await resolver.address("h.org")
        assert resolver.known_for("h.org") == kept


async def test_failures_have_their_own_classes_and_are_remembered() -> None:
    """Zoo 10."""
    answers: dict[str, Answer] = {
        "missing.org": (3, []),
        "broken.org": (2, []),
        "silent.org": None,
        "refused.org": (5, []),
    }
    async with serving(lambda name, kind: answers.get(name, (0, []))) as (server, resolver, clock):
        expected = {
            "missing.org": "dns-nxdomain",
            "no-address.org": "dns-nxdomain",
            "broken.org": "dns-servfail",
            "refused.org": "dns-servfail",
            "silent.org": "dns-timeout",
        }
        for host, kind in expected.items():
            assert await kind_of_failure(resolver, host) == kind
        asked = len(server.asked)
        for host, kind in expected.items():
            assert await kind_of_failure(resolver, host) == kind
        assert len(server.asked) == asked
        clock.advance(301)
        assert await kind_of_failure(resolver, "silent.org") == "dns-timeout"
        assert len(server.asked) > asked


async def test_a_thousand_addresses_are_cut_and_ipv4_comes_first() -> None:
    """Zoo 9, 14."""

    def zone(name: str, kind: int) -> Answer:
        if kind == AAAA:
            return 0, [(AAAA, 60, "::1")]
        return 0, [(A, 60, f"127.0.1.{number}") for number in range(1, 25)]

    async with serving(zone) as (_, resolver, _):
        found = await resolver.addresses("many.org")
        assert found == tuple(f"127.0.1.{number}" for number in range(1, ADDRESSES + 1))


async def test_one_family_is_enough() -> None:
    def zone(name: str, kind: int) -> Answer:
        return (0, [(AAAA, 60, "::1")]) if kind == AAAA else (2, [])

    async with serving(zone) as (_, resolver, _):
        assert await resolver.addresses("six.org") == ("::1",)


async def test_a_chain_of_names_without_an_end_is_a_failure() -> None:
    """Zoo 11."""
    async with serving(lambda name, kind: (0, [(CNAME, 60, "b.org")])) as (_, resolver, _):
        assert (await kind_of_failure(resolver, "a.org")).startswith("dns-")


async def test_aiohttp_gets_only_addresses_that_may_be_contacted() -> None:
    """Zoo 12: a public name that points inside."""
    async with serving(only_a("10.0.0.1", "127.0.0.7", "169.254.169.254")) as (_, resolver, _):
        assert await resolver.allowed("h.org", 8080) == ["127.0.0.7"]
        with pytest.raises(TheirError, match="only-net"):
            await resolver.allowed("h.org", 22)
    async with serving(only_a("10.0.0.1")) as (_, resolver, _):
        with pytest.raises(TheirError, match="only-net"):
            await resolver.allowed("h.org", 80)


async def test_literals_and_localhost_need_no_query() -> None:
    async with serving(lambda name, kind: None) as (server, resolver, _):
        assert await resolver.addresses("192.0.2.1") == ("192.0.2.1",)
        assert await resolver.addresses("[2001:db8::1]") == ("2001:db8::1",)
        assert await resolver.addresses("a.localhost") == ("127.0.0.1",)
        assert server.asked == []


async def test_only_net_without_a_name_server_inside_never_asks() -> None:
    resolver = Resolver(Guard(only_net=["127.0.0.0/8"], name_servers=["8.8.8.8"]), ManualClock())
    assert await kind_of_failure(resolver, "example.org") == "only-net"
    assert resolver._dns is None
    await resolver.close()


async def test_who_gives_up_waiting_does_not_spoil_the_query_for_others() -> None:
    async with serving(only_a("127.0.0.7")) as (_, resolver, _):
        first = asyncio.create_task(resolver.address("h.org"))
        second = asyncio.create_task(resolver.address("h.org"))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "127.0.0.7"
        assert first.cancelled()


async def test_close_while_a_query_is_out() -> None:
    async with serving(lambda name, kind: None) as (_, resolver, _):
        waiting = asyncio.create_task(resolver.address("h.org"))
        await asyncio.sleep(0.01)
        await resolver.close()
        with pytest.raises((asyncio.CancelledError, TheirError)):
            await waiting


async def test_names_no_server_could_be_asked_for() -> None:
    async with serving(only_a("127.0.0.7")) as (_, resolver, _):
        for host in ("a" * 64 + ".org", ".".join(["a" * 60] * 6), "a..b"):
            assert (await kind_of_failure(resolver, host)).startswith("dns-")


def own_name() -> tuple[str, str]:
    """(name, address) of this machine, as its hosts file alone has it."""
    for line in Path("/etc/hosts").read_text().splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            if address.startswith("127.") and not is_local_name(name):
                return name, address
    return pytest.skip("the hosts file names no loopback address but localhost")


HOSTS = """
127.0.0.3 hook.internal Hook # hook.example
::1  hook.internal
127.0.0.4	hook.internal
nonsense odd
"""


async def test_the_hosts_file_decides_names_of_the_operator_and_none_of_the_web(tmp_path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(HOSTS)
    async with serving(only_a("127.0.0.9")) as (server, plain, clock):
        resolver = Resolver(plain._guard, clock, hosts_file=hosts)
        assert await resolver.operator_addresses("hook.internal") == ("127.0.0.3", "127.0.0.4", "::1")
        assert await resolver.operator_addresses("HOOK.") == ("127.0.0.3",) and not server.asked
        assert await resolver.addresses("hook.internal") == ("127.0.0.9",) and server.asked
        for name in ("hook.example", "odd"):
            assert await resolver.operator_addresses(name) == ("127.0.0.9",), "then the servers"
        hosts.unlink()
        clock.advance(61)
        assert await resolver.operator_addresses("hook") == ("127.0.0.9",)
        await resolver.close()


async def test_under_only_net_the_hosts_file_alone_knows_names_of_the_operator() -> None:
    name, address = own_name()
    confined = Resolver(Guard(only_net=["127.0.0.0/8"]), ManualClock(), operator=True)
    assert await confined.addresses(name) == (address,)
    assert await kind_of_failure(confined, "hook.example") == "dns-nxdomain"
    assert confined._dns is None
    await confined.close()


async def test_names_of_the_operator_are_below_the_search_domains_of_the_machine(monkeypatch) -> None:
    monkeypatch.setenv("LOCALDOMAIN", "cluster.example")
    zone = only_a("127.0.0.9")
    async with serving(lambda n, k: zone(n, k) if n == "hook.cluster.example" else (3, [])) as (_, resolver, _clock):
        assert await resolver.operator_addresses("hook") == ("127.0.0.9",)
        assert await kind_of_failure(resolver, "hook") == "dns-nxdomain", "a page's name is no name of ours"
