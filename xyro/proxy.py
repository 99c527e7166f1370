"""Connections through an HTTP proxy that the operator names; the guard still decides which address is read.

We resolve the host and check its address, as without a proxy, and ask the proxy for that address: CONNECT ADDRESS:PORT,
for http:// as for https://, because a proxy that is given a URL replaces Host by what stands in it (RFC 9112 3.2.2).
The name goes into SNI and Host, through the tunnel. With `resolves` the proxy is given the name instead, and nobody
here looks it up; addresses written as such are still checked. The proxy itself is the operator's, so no deny list holds
for it, but --only-net does.

    proxy-failed      it cannot be reached, wants other credentials, refuses, or stays silent: nobody's host is to blame
    connect-failed    it says that the host cannot be reached (502, 503)
    connect-timeout   it says that the host is silent (504), or is silent about this host while it answers about others
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from xyro.guard import Guard, is_local_name
from xyro.resolver import Resolver
from xyro.site_entries import Proxy
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, TheirError
from xyro.wire.text import short
from xyro.wire.urls import address_of, host_and_port

HEAD: Final = 16_384
"""bytes of a proxy's answer"""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]").match
_BEHIND: Final = {502: "connect-failed", 503: "connect-failed", 504: "connect-timeout"}

ProxyOf = Callable[[str], Proxy | None]
"""host[:port] -> the proxy that it is read through; None: none"""


def parse_proxy(url: str, login: str, resolves: bool, guard: Guard, place: str) -> Proxy:
    """The proxy of a setting, http://HOST:PORT. InputError: --only-net forbids it."""
    host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not 0 < int(port) < 65_536:
        raise InputError(f"{place}: expected http://HOST:PORT, with a port of 1 to 65535")
    proxy = Proxy(host.strip("[]"), int(port), login, resolves)
    if guard.only_net:
        address = "127.0.0.1" if is_local_name(proxy.host) else proxy.host
        if address_of(host) is None and not is_local_name(host):
            raise InputError(f"{place}: {host} is a name: with --only-net write the proxy's address")
        if guard.operator_verdict(address, proxy.port):
            raise InputError(f"{place}: {host} is outside of --only-net: name a proxy inside, or open its network")
        if resolves:
            raise InputError(f"{place}: proxy_resolves lets the proxy contact anything: it cannot go with --only-net")
    return proxy


class UnresolvedNames(Resolver):
    """The resolver of a client whose proxy resolves: names that it is given are not looked up here."""

    def __init__(self, guard: Guard, clock: Clock, proxy_of: ProxyOf, *, operator: bool = False) -> None:
        super().__init__(guard, clock, operator=operator)
        self._proxy_of = proxy_of

    def _leaves(self, host: str) -> bool:
        """Tell whether a name goes to a proxy as it is."""
        proxy = self._proxy_of(host)
        return proxy is not None and proxy.resolves and address_of(host) is None and not is_local_name(host)

    def known_for(self, host: str) -> float:
        return float("inf") if self._leaves(host) else super().known_for(host)

    async def address(self, host: str) -> str:
        return "" if self._leaves(host) else await super().address(host)

    async def allowed(self, host: str, port: int) -> list[str]:
        return [host.rstrip(".")] if self._leaves(host) else await super().allowed(host, port)


class Tunnels:
    """Opens tunnels for one client."""

    def __init__(self, guard: Guard, resolver: Resolver) -> None:
        self._guard, self._resolver = guard, resolver
        self._answers: Counter[Proxy] = Counter()
        """of each proxy, about any host"""

    async def open(self, proxy: Proxy, targets: Sequence[str], port: int, seconds: float) -> tuple[socket.socket, str]:
        """A socket that leads to one of these addresses (to a name, where the proxy resolves), and which, within
        seconds. TheirError."""
        before = self._answers[proxy]
        try:
            async with asyncio.timeout(seconds):
                return await self._first(proxy, targets, port)
        except TimeoutError as error:
            if self._answers[proxy] > before:
                raise TheirError("connect-timeout", "its proxy answers about other hosts only") from error
            raise TheirError("proxy-failed", f"no answer within {seconds:g} s") from error

    async def _first(self, proxy: Proxy, targets: Sequence[str], port: int) -> tuple[socket.socket, str]:
        failure = TheirError("connect-failed", "no address")
        for target in targets:
            if address_of(target) is not None or ":" in target:
                self._guard.check(target, port)
            try:
                return await self._connect(proxy, target, port), target
            except TheirError as error:
                if error.kind != "connect-failed":
                    raise
                failure = error
        raise failure

    async def _connect(self, proxy: Proxy, target: str, port: int) -> socket.socket:
        loop = asyncio.get_running_loop()
        try:
            address = (await self._resolver.operator_addresses(proxy.host))[0]
        except TheirError as error:
            raise TheirError("proxy-failed", f"its name has no address: {error.kind}") from error
        sock = self._guard.operator_socket(address, proxy.port)
        try:
            await loop.sock_connect(sock, (address, proxy.port))
            place = host_and_port(target, port)
            login = f"Proxy-Authorization: {proxy.login}\r\n" if proxy.login else ""
            request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n"
            await loop.sock_sendall(sock, request.encode("latin-1"))
            head = await _head(loop, sock)
            self._answers[proxy] += 1
            _judge(head)
        except OSError as error:
            sock.close()
            raise TheirError("proxy-failed", os.strerror(error.errno) if error.errno else short(error)) from error
        except BaseException:
            sock.close()
            raise
        return sock


async def _head(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < HEAD:
        data = await loop.sock_recv(sock, 4096)
        if not data:
            raise TheirError("proxy-failed", "it closed the connection")
        head += data
    return head


def _judge(head: bytes) -> None:
    """TheirError: this is no tunnel. A host says nothing before we do, so nothing may follow the head."""
    found = _STATUS(head)
    status = int(found[1]) if found else 0
    if not 200 <= status < 300:
        kind = _BEHIND.get(status, "proxy-failed")
        raise TheirError(kind, f"it answered {status or 'no HTTP'}")
    if not head.endswith(b"\r\n\r\n") or head.count(b"\r\n\r\n") != 1:
        raise TheirError("proxy-failed", "bytes behind its answer")


def context_with(ca_file: str) -> ssl.SSLContext | None:
    """The judge of certificates that knows these authorities beside the system's; None: it knows no others. InputError:
    there are none."""
    if not ca_file:
        return None
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(Path(ca_file))
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise InputError(f"[fetch] ca_file: {ca_file}: {reason}: name a file of PEM certificates") from error
    return context
