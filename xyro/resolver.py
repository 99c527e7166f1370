"""Names to addresses: c-ares with a cache of our own, one query at a time per name, and failures told apart.

    dns-nxdomain   the name does not exist, or has no address
    dns-servfail   the name servers answered that they cannot, or answered nonsense (a CNAME loop ends so)
    dns-timeout    no name server answered

Answers are kept for their TTL, at least a minute and at most a day; failures for a short while. At most ADDRESSES of a
name count, IPv4 first. `localhost` and literals need no query; under only_net no server outside ever gets one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from xyro.guard import Guard, is_local_name
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError
from xyro.wire.urls import address_of

if TYPE_CHECKING:
    import aiodns

ADDRESSES = 8
"""Addresses of a name that are used (a host may publish a thousand)."""
MIN_TTL, MAX_TTL = 60.0, 86_400.0
FAILURE_TTL = {"dns-nxdomain": 300.0, "dns-servfail": 30.0, "dns-timeout": 10.0}
"""Seconds for which a failure is believed: pages of the host wait longer (xyro/failures.py), so this only spares
bursts.
"""
CACHED = 100_000

_MISSING = frozenset({"ARES_ENOTFOUND", "ARES_ENODATA", "ARES_EBADNAME"})
_SILENT = frozenset({"ARES_ETIMEOUT", "ARES_ECONNREFUSED", "ARES_ECANCELLED"})
_WORST_FIRST = ("dns-timeout", "dns-servfail", "dns-nxdomain")


class _Entry(Struct, frozen=True):
    """`addresses` or else the failure `kind`, believed until `fresh_until` (monotonic)."""

    addresses: tuple[str, ...]
    kind: str
    fresh_until: float


class Resolver:
    """`timeout`: seconds for the first try of a query; `tries` in all, each waiting longer (c-ares). Servers are the
    guard's configured ones, else the system's. To be made inside a running loop, and closed."""

    def __init__(self, guard: Guard, clock: Clock, *, timeout: float = 4.0, tries: int = 2) -> None:
        self._guard = guard
        self._clock = clock
        self._timeout, self._tries = timeout, tries
        self._dns: aiodns.DNSResolver | None = None
        self._entries: dict[str, _Entry] = {}
        self._asking: dict[str, asyncio.Task[_Entry]] = {}

    async def address(self, host: str) -> str:
        """The first address of a canonical host; TheirError with the failure class if it has none."""
        return (await self.addresses(host))[0]

    def knows(self, host: str) -> bool:
        """Tell whether `addresses` can answer, or refuse, without a query."""
        return self.known_for(host) > 0.0

    def known_for(self, host: str) -> float:
        """Seconds for which `addresses` can answer, or refuse, without a query; 0 if it cannot now."""
        if address_of(host) is not None or not self._guard.looks_up_names:
            return math.inf
        name = host.rstrip(".").lower()
        entry = self._entries.get(name)
        if is_local_name(name):
            return math.inf
        return 0.0 if entry is None else max(entry.fresh_until - self._clock.monotonic(), 0.0)

    async def addresses(self, host: str) -> tuple[str, ...]:
        """All addresses that count (1..ADDRESSES), IPv4 first. Raises as `address`."""
        literal = address_of(host)
        if literal is not None:
            return (str(literal),)
        name = host.rstrip(".").lower()
        if is_local_name(name):
            return ("127.0.0.1",)
        entry = self._entries.get(name)
        if entry is None or self._clock.monotonic() >= entry.fresh_until:
            entry = await asyncio.shield(self._asked(name))  # others may wait for the same answer
        if entry.kind:
            raise TheirError(entry.kind, host)
        return entry.addresses

    async def allowed(self, host: str, port: int) -> list[str]:
        """The addresses that the guard lets us connect to, IPv4 first; TheirError if there is none."""
        found = await self.addresses(host)
        allowed = [address for address in found if not self._guard.verdict(address, port)]
        if not allowed:
            self._guard.check(found[0], port)
        return allowed

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    def _asked(self, name: str) -> asyncio.Task[_Entry]:
        if not self._guard.looks_up_names:
            raise TheirError("only-net", f"{name}: no name server inside")
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.create_task(self._ask(name))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return task

    async def _ask(self, name: str) -> _Entry:
        answers = await asyncio.gather(self._query(name, "A"), self._query(name, "AAAA"))
        found = [pair for answer in answers if not isinstance(answer, str) for pair in answer]
        now = self._clock.monotonic()
        if found:
            ttl = min(max(min(seconds for _, seconds in found), MIN_TTL), MAX_TTL)
            entry = _Entry(tuple(dict.fromkeys(text for text, _ in found))[:ADDRESSES], "", now + ttl)
        else:
            kinds = [answer for answer in answers if isinstance(answer, str)] or ["dns-nxdomain"]
            kind = min(kinds, key=_WORST_FIRST.index)
            entry = _Entry((), kind, now + FAILURE_TTL[kind])
        self._entries.pop(name, None)
        self._entries[name] = entry
        if len(self._entries) > CACHED:
            del self._entries[next(iter(self._entries))]
        return entry

    async def _query(self, name: str, record: str) -> list[tuple[str, float]] | str:
        """(address, TTL) of the A or AAAA records, or the failure class."""
        import aiodns  # with pycares 30 ms, which a crawl of addresses does without
        import pycares

        try:
            result = await self._channel().query_dns(name, record)
        except aiodns.error.DNSError as error:
            code = pycares.errno.errorcode.get(error.args[0]) if error.args else None
            return "dns-nxdomain" if code in _MISSING else "dns-timeout" if code in _SILENT else "dns-servfail"
        kind = pycares.QUERY_TYPE_A if record == "A" else pycares.QUERY_TYPE_AAAA
        return list(_addresses(result.answer, kind)) or "dns-nxdomain"

    def _channel(self) -> aiodns.DNSResolver:
        if self._dns is None:
            import aiodns

            servers = list(self._guard.name_servers) or None
            self._dns = aiodns.DNSResolver(nameservers=servers, timeout=self._timeout, tries=self._tries)
        return self._dns


def _addresses(records: Iterable[Any], kind: int) -> Iterable[tuple[str, float]]:
    for record in records:
        if record.type == kind and address_of(record.data.addr) is not None:
            yield record.data.addr, float(record.ttl)
