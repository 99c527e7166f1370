"""The guard of addresses and ports. Its last check is made on the socket address really connected to.

Our own deny list, because ipaddress.is_global has holes; an IPv4 address inside an IPv6 one
(mapped, NAT64, 6to4) is decoded and judged itself. Three settings change what is denied:

    allow_private   networks that may be contacted although the deny list has them (an intranet crawl)
    only_net        these networks may be contacted, private or not, and nothing else ever is (a laboratory)
    ports           further ports beside 80, 443 and 8000-8999; on loopback under only_net any from 1024 on

Denied whatever the settings say: our own endpoints (`deny`), and the unspecified address, which reaches this machine.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from xyro.wire.errors import InputError, TheirError
from xyro.wire.urls import address_of

Address = IPv4Address | IPv6Address
AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]
"""What getaddrinfo tells: family, type, protocol, canonical name, socket address."""

PORTS = frozenset({80, 443, *range(8000, 9000)})
UNPRIVILEGED = 1024
_DENIED = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7"),
        *("fe80::/10", "fec0::/10", "ff00::/8"),
    )
)
_MAPPED, _NAT64, _SIX_TO_FOUR = ip_network("::ffff:0:0/96"), ip_network("64:ff9b::/96"), ip_network("2002::/16")


def parse_network(text: str) -> str:
    """`text` as a network in canonical form (an address is a network of one); InputError if it is none."""
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError:
        raise InputError(f"{text!r}: not a network; write an address and a prefix length, like 127.0.0.0/8") from None


def is_public(address: Address) -> bool:
    """Tell whether an address is outside of the deny list. An IPv4 address inside an IPv6 one is judged itself."""
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    return not any(address in network for network in _DENIED if network.version == address.version)


def _embedded(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFF_FFFF)
    return None


def _plain(text: str) -> Address:
    """The address of a socket's text form: without a zone, and a mapped one as the IPv4 address it stands for."""
    address = ip_address(text.partition("%")[0])
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _MAPPED else address


class GuardRules(Struct, frozen=True):
    """All that a guard was told, for the guard of another process."""

    only_net: tuple[str, ...]
    allow_private: tuple[str, ...]
    ports: tuple[int, ...]
    denied_endpoints: tuple[tuple[str, int], ...]
    name_servers: tuple[str, ...]

    def guard(self) -> Guard:
        """A guard of these rules."""
        return Guard(self.only_net, self.allow_private, self.ports, self.denied_endpoints, self.name_servers)


class Guard:
    """`name_servers`: the configured ones (address or address:port); with `only_net` a name may be looked up only
    through one inside. `denied_endpoints`: our own API's (address, port); an empty or unspecified address means every
    address of this machine. InputError for a network, address or port that is none.
    """

    def __init__(
        self,
        only_net: Sequence[str] = (),
        allow_private: Sequence[str] = (),
        ports: Iterable[int] = (),
        denied_endpoints: Iterable[tuple[str, int]] = (),
        name_servers: Sequence[str] = (),
    ) -> None:
        self._only = tuple(ip_network(parse_network(text)) for text in only_net)
        self._private = tuple(ip_network(parse_network(text)) for text in allow_private)
        self._ports = PORTS | frozenset(ports)
        if not all(0 < port < 65_536 for port in self._ports):
            raise InputError(f"ports {sorted(ports)}: a port is a number from 1 to 65535")
        self._loopback_only = bool(self._only) and all(network.is_loopback for network in self._only)
        self._denied: set[tuple[Address | None, int]] = set()
        self._rules = GuardRules(tuple(only_net), tuple(allow_private), tuple(ports), (), tuple(name_servers))
        self.name_servers = tuple(server for server in name_servers if not self._only or self.is_inside(server))
        self._authority = lru_cache(maxsize=65_536)(self._judge)
        for address, port in denied_endpoints:
            self.deny(address, port)

    @property
    def only_net(self) -> bool:
        """Tell whether the crawl is confined to some networks."""
        return bool(self._only)

    @property
    def loopback_only(self) -> bool:
        """Tell whether nothing but this machine can be reached. (Then a contact address is not required.)"""
        return self._loopback_only

    @property
    def looks_up_names(self) -> bool:
        """Tell whether a name may be looked up at all: not with only_net and no name server inside."""
        return not self._only or bool(self.name_servers)

    @property
    def rules(self) -> GuardRules:
        """The rules as they are now; another object after each `deny`."""
        return self._rules

    def deny(self, address: str, port: int) -> None:
        """From now on never connect to this endpoint of our own."""
        self._rules = replace(self._rules, denied_endpoints=(*self._rules.denied_endpoints, (address, port)))
        plain = _plain(address) if address else None
        self._denied.add((None if plain is None or plain.is_unspecified else plain, port))
        self._authority.cache_clear()

    def verdict(self, address: str, port: int) -> str:
        """The failure class that forbids this address and port, or an empty string."""
        plain = _plain(address)
        if plain.is_unspecified or (plain, port) in self._denied:
            return "blocked-address"
        if (None, port) in self._denied and not is_public(plain):
            return "blocked-address"
        if self._only:
            if not any(plain in network for network in self._only if network.version == plain.version):
                return "only-net"
        elif not is_public(plain) and not self._is_allowed(plain):
            return "blocked-address"
        if port in self._ports or (self._only and plain.is_loopback and port >= UNPRIVILEGED):
            return ""
        return "blocked-port"

    def check(self, address: str, port: int) -> None:
        """TheirError (blocked-address, blocked-port, only-net) if this may not be connected to."""
        kind = self.verdict(address, port)
        if kind:
            raise TheirError(kind, f"{address} port {port}")

    def host_allowed(self, url: str) -> str:
        """Judge a canonical URL by itself: return an empty string, or the failure class.

        A name is judged by its port only, and under only_net by whether it could be looked up; what it resolves to is
        judged when it is connected to.
        """
        return self._authority(url[: url.index("/", 8)])

    def socket_factory(self, info: AddressInfo) -> socket.socket:
        """A socket for this address, for either client: all connections begin here. Raises as `check`."""
        family, kind, protocol, _, where = info
        address, port = where[:2]
        self.check(str(address), int(str(port)))
        found = socket.socket(family, kind, protocol)
        found.setblocking(False)
        return found

    def operator_verdict(self, address: str, port: int) -> str:
        """The failure class that forbids a server which the operator names, such as a proxy: only_net, and our own
        endpoints; no deny list."""
        plain = _plain(address)
        if (
            plain.is_unspecified
            or (plain, port) in self._denied
            or ((None, port) in self._denied and plain.is_loopback)
        ):
            return "blocked-address"
        if self._only and not any(plain in network for network in self._only if network.version == plain.version):
            return "only-net"
        return ""

    def check_receiver(self, url: str, place: str) -> None:
        """InputError: the URL of a receiver that the operator names is none, or has an address outside of only_net. A
        name is judged by its address, when it is connected to."""
        try:
            host = urlsplit(url).hostname or ""
        except ValueError as error:
            raise InputError(f"{place} {url}: {error}") from error
        address = address_of("127.0.0.1" if is_local_name(host) else host)
        if address is not None and self.operator_verdict(str(address), 0) == "only-net":
            raise InputError(f"{place} {url} is outside of --only-net; name an address inside")

    def operator_socket(self, address: str, port: int) -> socket.socket:
        """A socket for such a server. TheirError: it may not be contacted."""
        if kind := self.operator_verdict(address, port):
            raise TheirError(kind, f"{address} port {port}")
        found = socket.socket(family_of(address), socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setblocking(False)
        return found

    def _judge(self, origin: str) -> str:
        scheme, _, authority = origin.partition("://")
        host, port = split_authority(authority, 443 if scheme == "https" else 80)
        address = "127.0.0.1" if is_local_name(host) else address_of(host)
        if address is not None:
            return self.verdict(str(address), port)
        if not self.looks_up_names:
            return "only-net"
        if port in self._ports or (self._loopback_only and port >= UNPRIVILEGED):
            return ""
        return "blocked-port"

    def _is_allowed(self, plain: Address) -> bool:
        return any(plain in network for network in self._private if network.version == plain.version)

    def is_inside(self, place: str) -> bool:
        """Tell whether an address, or address:port, is in a network of only_net. A name never is."""
        host, _ = split_authority(place, 0)
        address = address_of(host)
        return address is not None and any(address in net for net in self._only if net.version == address.version)


def family_of(address: str) -> socket.AddressFamily:
    """The family of an address in text form."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def is_local_name(host: str) -> bool:
    """localhost and names below it never leave this machine (RFC 6761 6.3): they mean 127.0.0.1, without a query."""
    name = host.rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def split_authority(authority: str, default: int) -> tuple[str, int]:
    """(host, port) of 'host', 'host:port', '[v6]:port' or a bare IPv6 address."""
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host[-1] == "]"):
        return host, int(port)
    return authority, default
