"""Names to addresses: c-ares with a cache of our own, one query at a time per name, and failures told apart.

    dns-nxdomain   the name does not exist, or has no address
    dns-servfail   the name servers answered that they cannot, or answered nonsense (a CNAME loop ends so)
    dns-timeout    no name server answered

Answers are kept for their TTL, at least a minute and at most a day; failures for a short while. At most ADDRESSES of a
name count, IPv4 first. `localhost` and literals need no query; under only_net no server outside ever gets one.

Names that the operator writes (of receivers, of proxies) mean what they mean on this machine: its hosts file comes
first, then its search domains. A name that a page writes is never looked for there.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from xyro.guard import Guard, family_of, is_local_name
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
HOSTS_FILE = Path("/etc/hosts")

_MISSING = frozenset({"ARES_ENOTFOUND", "ARES_ENODATA", "ARES_EBADNAME"})
_SILENT = frozenset({"ARES_ETIMEOUT", "ARES_ECONNREFUSED", "ARES_ECANCELLED"})
_WORST_FIRST = ("dns-timeout", "dns-servfail", "dns-nxdomain")


class _Entry(Struct, frozen=True):
    """`addresses` or else the failure `kind`, believed until `fresh_until` (monotonic)."""

    addresses: tuple[str, ...]
    kind: str
    fresh_until: float


class _Name(NamedTuple):
    text: str
    operator: bool
    """the operator wrote it"""


class Resolver:
    """`timeout`: seconds for the first try of a query; `tries` in all, each waiting longer (c-ares). Servers are the
    guard's configured ones, else the system's. `operator`: all its names are the operator's. To be made inside a
    running loop, and closed."""

    def __init__(
        self,
        guard: Guard,
        clock: Clock,
        *,
        timeout: float = 4.0,
        tries: int = 2,
        operator: bool = False,
        hosts_file: Path = HOSTS_FILE,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._timeout, self._tries = timeout, tries
        self._operator, self._hosts_file = operator, hosts_file
        self._dns: aiodns.DNSResolver | None = None
        self._entries: dict[_Name, _Entry] = {}
        self._asking: dict[_Name, asyncio.Task[_Entry]] = {}

    async def address(self, host: str) -> str:
        """The first address of a canonical host; TheirError with the failure class if it has none."""
        return (await self.addresses(host))[0]

    def knows(self, host: str) -> bool:
        """Tell whether `addresses` can answer, or refuse, without a query."""
        return self.known_for(host) > 0.0

    def known_for(self, host: str) -> float:
        """Seconds for which `addresses` can answer, or refuse, without a query; 0 if it cannot now."""
        name = _Name(host.rstrip(".").lower(), self._operator)
        if address_of(host) is not None or is_local_name(name.text) or not self._may_ask(name):
            return math.inf
        entry = self._entries.get(name)
        return 0.0 if entry is None else max(entry.fresh_until - self._clock.monotonic(), 0.0)

    async def addresses(self, host: str) -> tuple[str, ...]:
        """All addresses that count (1..ADDRESSES), IPv4 first. Raises as `address`."""
        return await self._addresses(host, self._operator)

    async def operator_addresses(self, host: str) -> tuple[str, ...]:
        """As `addresses`, of a name that the operator wrote."""
        return await self._addresses(host, True)

    async def _addresses(self, host: str, operator: bool) -> tuple[str, ...]:
        literal = address_of(host)
        if literal is not None:
            return (str(literal),)
        name = _Name(host.rstrip(".").lower(), operator)
        if is_local_name(name.text):
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

    def _may_ask(self, name: _Name) -> bool:
        return name.operator or self._guard.looks_up_names

    def _asked(self, name: _Name) -> asyncio.Task[_Entry]:
        if not self._may_ask(name):
            raise TheirError("only-net", f"{name.text}: no name server inside")
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.create_task(self._ask(name))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return task

    async def _ask(self, name: _Name) -> _Entry:
        kinds = ("",) if name.operator else ("A", "AAAA")
        answers = await asyncio.gather(*(self._answer(name.text, kind) for kind in kinds))
        found = [pair for answer in answers if not isinstance(answer, str) for pair in answer]
        now = self._clock.monotonic()
        if found:
            ttl = min(max(min(seconds for _, seconds in found), MIN_TTL), MAX_TTL)
            entry = _Entry(tuple(dict.fromkeys(text for text, _ in found))[:ADDRESSES], "", now + ttl)
        else:
            failures = [answer for answer in answers if isinstance(answer, str)] or ["dns-nxdomain"]
            failure = min(failures, key=_WORST_FIRST.index)
            entry = _Entry((), failure, now + FAILURE_TTL[failure])
        self._entries.pop(name, None)
        self._entries[name] = entry
        if len(self._entries) > CACHED:
            del self._entries[next(iter(self._entries))]
        return entry

    async def _answer(self, name: str, record: str) -> list[tuple[str, float]] | str:
        """(address, TTL) of the A or AAAA records, of both kinds as this machine knows them where `record` is empty, or
        the failure class."""
        import aiodns  # with pycares 30 ms, which a crawl of addresses does without
        import pycares

        try:
            found = await (self._records(name, record) if record else self._known_here(name))
        except aiodns.error.DNSError as error:
            code = pycares.errno.errorcode.get(error.args[0]) if error.args else None
            return "dns-nxdomain" if code in _MISSING else "dns-timeout" if code in _SILENT else "dns-servfail"
        return found or "dns-nxdomain"

    async def _records(self, name: str, record: str) -> list[tuple[str, float]]:
        import pycares

        result = await self._channel().query_dns(name, record)
        return list(_addresses(result.answer, pycares.QUERY_TYPE_A if record == "A" else pycares.QUERY_TYPE_AAAA))

    async def _known_here(self, name: str) -> list[tuple[str, float]]:
        if found := await asyncio.to_thread(named_in, self._hosts_file, name):
            return [(address, 0.0) for address in found]
        if not self._guard.looks_up_names:
            return []
        result = await self._channel().getaddrinfo(name)
        nodes = sorted(result.nodes, key=lambda node: node.family != socket.AF_INET)
        return [(bytes(node.addr[0]).decode(), float(node.ttl)) for node in nodes]

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


def named_in(hosts_file: Path, name: str) -> list[str]:
    """Addresses that a hosts file has for a name in lower case, IPv4 first; none where it cannot be read."""
    try:
        lines = hosts_file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = [words[0] for line in lines if name in (words := line.partition("#")[0].lower().split())[1:]]
    return sorted((address for address in found if address_of(address) is not None), key=family_of)
