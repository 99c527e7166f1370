"""Floors of servers: when may an address, its network, and a registrable domain on it, be read again. Pure: moments are
monotonic seconds that the caller gives.

    address   an IPv4 address, or the /64 of an IPv6 one (its owner has all of them)      ip_delay
    network   the /24 of an IPv4 address, the /48 of an IPv6 one                          net_delay
    domain    all hosts of one registrable domain on one address                          domain_delay

A read has the turn of all its floors, or of none, and a floor has one read at a time. A delay of 0 switches a kind off.
"""

from __future__ import annotations

import ipaddress
import math
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xyro.wire.urls import site_of

if TYPE_CHECKING:
    from xyro.clock_log import ClockLog

_SWEEP_FROM = 1_024
"""A table shorter than this is never searched for what can be forgotten."""


class AddressClaims(Protocol):
    """Turns at addresses that other processes read, too: one of them has an address at a time."""

    def claim(self, address: str, now: float, floor: float) -> float:
        """`now` if we may read there, else when to ask again. floor: seconds between two reads."""

    def has_apart(self, address: str) -> bool:
        """Tell whether nobody gives turns there now: each process reads at its own pace."""

    def begin(self, address: str) -> None:
        """A read begins."""

    def leave(self, address: str, ended: float) -> None:
        """It has ended; -inf: nobody was contacted."""


class _Floor(Struct):
    delay: float
    ready_at: float = -math.inf
    """end of the last read + delay"""
    read: bool = False
    """somebody has the turn"""
    line: float = -math.inf
    """the last turn given away to somebody who has to wait"""


class ServerFloors:
    """Give each server to one reader at a time. A floor that has passed, with nobody in its line, is forgotten."""

    def __init__(
        self,
        ip_delay: float,
        net_delay: float = 0.0,
        domain_delay: float = 0.0,
        log: ClockLog | None = None,
        nodes: int = 1,
        turns: AddressClaims | None = None,
    ) -> None:
        """`log`: where floors that outlive a restart are written; None: nowhere. `nodes`: processes that read beside
        each other: without `turns`, each waits as many times as long."""
        self._whole_log = log
        self._turns = turns
        self._floors: dict[str, _Floor] = {}
        self._limit = _SWEEP_FROM
        self.follow(ip_delay, net_delay, domain_delay, nodes)

    def follow(self, ip_delay: float, net_delay: float, domain_delay: float, nodes: int = 1) -> None:
        """Other delays, from the end of each read under way on."""
        longest, log = nodes * max(ip_delay, net_delay, domain_delay), self._whole_log
        self._log = log if log is not None and longest > log.pause else None
        self.ip_delay = ip_delay
        self.net_delay = net_delay
        self.domain_delay = domain_delay
        self.nodes = nodes
        self.active = bool(ip_delay or net_delay or domain_delay)
        """some kind of floor is on: whoever reads has to know the address"""
        self._floors = {key: floor for key, floor in self._floors.items() if self._delay_of(key)}

    def __len__(self) -> int:
        """Floors remembered now."""
        return len(self._floors)

    def ready(self, host: str, address: str) -> float:
        """Return the moment from which the server may be read; +inf while it is, -inf where nothing is known."""
        floors = [self._floors[key] for key, _ in self._kinds(host, address) if key in self._floors]
        return max((math.inf if floor.read else floor.ready_at for floor in floors), default=-math.inf)

    def claim(self, host: str, address: str, now: float) -> float:
        """Take the turn to read a server: `now` if it is the caller's (then `leave` or `unclaim` must follow), else the
        moment to ask again.

        Those who must wait get turns a delay apart, so N hosts on one address cost one question per turn, not N.
        """
        single = _networks(address)[0] if self._turns is not None and address and self.ip_delay else ""
        if self._turns is not None and single and (moment := self._turns.claim(single, now, self.ip_delay)) > now:
            floor = self._floor(single, self.ip_delay, now)
            floor.line = max(moment, floor.line + self.ip_delay)
            return floor.line
        floors = self._floors_of(host, address, now)
        shut = [floor for floor in floors if floor.read or floor.ready_at > now]
        if not shut:
            for floor in floors:
                floor.read = True
            if self._turns is not None and single:
                self._turns.begin(single)
            if self._log is not None:
                for key, delay in self._kinds(host, address):
                    self._log.begin("floor", key, delay)
            return now
        for floor in shut:
            floor.line = max(floor.ready_at, floor.line + floor.delay, now + floor.delay)
        return max(floor.line for floor in shut)

    def unclaim(self, host: str, address: str) -> None:
        """Give back a turn that was not used: nobody was contacted."""
        for key, _ in self._kinds(host, address):
            if key in self._floors:
                self._floors[key].read = False
        self._end(address, -math.inf)
        self._write(host, address, waits=False)

    def touched(self, host: str, address: str, ended: float) -> None:
        """End a read at an address whose turn nobody had claimed (the name has several): its floors hold all the
        same."""
        for floor in self._floors_of(host, address, ended):
            floor.ready_at = ended + floor.delay
        self._write(host, address)

    def leave(self, host: str, address: str, ended: float) -> None:
        """End a read, and give back its turn."""
        for floor in self._floors_of(host, address, ended):
            floor.read = False
            floor.ready_at = ended + floor.delay
        self._end(address, ended)
        self._write(host, address)

    def _end(self, address: str, ended: float) -> None:
        if self._turns is not None and address:
            self._turns.leave(_networks(address)[0], ended)

    def restore(self, key: str, ready_at: float) -> None:
        """After a restart: what the log says of a floor."""
        if delay := self._delay_of(key):
            self._floor(key, delay, -math.inf).ready_at = ready_at

    def _delay_of(self, key: str) -> float:
        single = "@" not in key and not key.endswith(("/24", "/48"))
        return self.domain_delay if "@" in key else self.ip_delay if single else self.net_delay

    def _write(self, host: str, address: str, waits: bool = True) -> None:
        """Log the end of a request."""
        if self._log is not None:
            for key, delay in self._kinds(host, address):
                self._log.end("floor", key, delay if waits else 0.0, delay)

    def _kinds(self, host: str, address: str) -> list[tuple[str, float]]:
        """The floors of a server that are on, each with its delay."""
        if not (address and self.active):
            return []
        single, network = _networks(address)
        alone = self._turns is not None and not self._turns.has_apart(single)
        kinds = [(single, self.ip_delay * (1 if alone else self.nodes))] if self.ip_delay else []
        if self.net_delay:
            kinds.append((network, self.net_delay * self.nodes))
        if self.domain_delay and host:
            kinds.append((f"{site_of(_bare(host))}@{single}", self.domain_delay * self.nodes))
        return kinds

    def _floors_of(self, host: str, address: str, now: float) -> list[_Floor]:
        return [self._floor(key, delay, now) for key, delay in self._kinds(host, address)]

    def _floor(self, key: str, delay: float, now: float) -> _Floor:
        floor = self._floors.get(key)
        if floor is None:
            if len(self._floors) >= self._limit:
                self._forget(now)
            floor = self._floors[key] = _Floor(delay)
        floor.delay = delay
        return floor

    def _forget(self, now: float) -> None:
        """Amortised O(1): runs when the table has doubled since the last time."""
        self._floors = {
            key: floor for key, floor in self._floors.items() if floor.read or floor.ready_at > now or floor.line > now
        }
        self._limit = max(_SWEEP_FROM, 2 * len(self._floors))


def _networks(address: str) -> tuple[str, str]:
    """Return what counts as one address, and as one network, as text. An IPv4 address within IPv6 is that address."""
    if ":" not in address:
        return address, f"{address.rpartition('.')[0]}.0/24"
    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return _networks(str(parsed.ipv4_mapped))
    return _prefix(parsed, 64), _prefix(parsed, 48)


def _prefix(address: ipaddress.IPv6Address, bits: int) -> str:
    return str(ipaddress.IPv6Network((int(address), bits), strict=False))


def _bare(host: str) -> str:
    """The host of an authority, without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and not name.endswith(":") else host
