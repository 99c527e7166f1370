"""Politeness: when may a host, and an address, be read again. Pure: moments are monotonic seconds that the caller
gives.

    next read of a host >= end of its last read + max(min_delay, min(Crawl-delay, cap), min(factor x duration, cap),
                                                      back-off, Retry-After)
    next read of an IP  >= end of its last read + ip_delay, and one read of an IP at a time (server_floors.py)

Precedents: Heritrix 3 (5 x the last duration, at most 30 s; Crawl-delay up to 300 s), BUbiNG (two floors, one per host
and a shorter one per IP, so 50,000 names on one address cannot add up to a flood), Nutch (the delay doubles with each
failure in a row).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from xyro.server_floors import AddressClaims, ServerFloors

if TYPE_CHECKING:
    from xyro.clock_log import ClockLog

DAY = 86_400.0
_SWEEP_FROM = 1_024
"""Tables shorter than this are never searched for what can be forgotten."""


class Manners(Struct, frozen=True):
    """The settings, in seconds (`factor` is a number)."""

    min_delay: float = 2.0
    factor: float = 5.0
    factor_cap: float = 30.0
    ip_delay: float = 0.5
    crawl_delay_cap: float = 300.0
    backoff_base: float = 4.0
    """wait after the first temporary failure of a host; doubles with each further one in a row"""
    backoff_cap: float = 3_600.0
    net_delay: float = 0.0
    domain_delay: float = 0.0
    nodes: int = 1
    """processes that read beside each other (server_floors.py)"""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"Manners.{name}: a number of seconds >= 0, not {value!r}")

    @classmethod
    def fixed(cls, delay: float, net_delay: float = 0.0, domain_delay: float = 0.0) -> Manners:
        """`--delay S`: S replaces minimum delay, factor and IP floor (they are promises about S, not beside it).

        With 0 only Crawl-delay, Retry-After and back-off remain, and the floors of networks and domains that are set.
        """
        return cls(delay, 0.0, 0.0, delay, net_delay=net_delay, domain_delay=domain_delay)


DEFAULT_MANNERS = Manners()


class _Host(Struct):
    ready_at: float
    failures: int


class Politeness:
    """Floors per host and per server, and the count of a host's temporary failures in a row.

    Invariant: forgetting never makes a read earlier. A host is forgotten when its floor has passed and it has no
    failures (or failed last a day ago), a server when its floor and its line have passed and nobody reads it. So the
    tables are bounded by the hosts and servers read within the last delay, and the hosts that failed within a day.

    `log`: where delays that outlive a restart are written as they begin; None: nowhere. `delay_of`: seconds that stand
    in for min_delay and factor at a host; None: none do. `turns`: of addresses that other processes read, too.
    """

    def __init__(
        self,
        manners: Manners = DEFAULT_MANNERS,
        log: ClockLog | None = None,
        delay_of: Callable[[str], float | None] | None = None,
        turns: AddressClaims | None = None,
    ) -> None:
        self.manners = manners
        self.delay_of = delay_of
        self._log = log
        self._hosts: dict[str, _Host] = {}
        self._hosts_limit = _SWEEP_FROM
        delays = manners.ip_delay, manners.net_delay, manners.domain_delay
        self.servers = ServerFloors(*delays, log, manners.nodes, turns)

    def follow(self, manners: Manners) -> None:
        """Other delays, from the end of each read under way on."""
        self.manners = manners
        self.servers.follow(manners.ip_delay, manners.net_delay, manners.domain_delay, manners.nodes)

    def __len__(self) -> int:
        """Hosts, and floors of servers, remembered now."""
        return len(self._hosts) + len(self.servers)

    def host_ready(self, host: str) -> float:
        """The moment from which `host` may be read; -inf for a host nothing is known of."""
        entry = self._hosts.get(host)
        return entry.ready_at if entry is not None else -math.inf

    def failures(self, host: str) -> int:
        """Temporary failures of `host` in a row."""
        entry = self._hosts.get(host)
        return entry.failures if entry is not None else 0

    def remembered_gap(self, host: str) -> float | None:
        """The Crawl-delay that a host had before its robots.txt has been read again, perhaps in another process."""
        entry = self._log.entries.get(("host", host)) if self._log is not None else None
        return entry.gap if entry is not None else None

    def begin(self, host: str, crawl_delay: float | None = None) -> None:
        """A request to `host` leaves."""
        log = self._log
        if log is None:
            return
        gap = self._gap(host, crawl_delay)
        if (entry := log.entries.get(("host", host))) is not None:
            gap = max(gap, entry.gap)
        if max(gap, self.manners.factor_cap if self.manners.factor else 0.0) > log.pause:
            log.begin("host", host, gap)

    def finished(
        self,
        host: str,
        address: str,
        ended: float,
        duration: float,
        failed: bool = False,
        retry_after: float = 0.0,
        crawl_delay: float | None = None,
    ) -> float:
        """A read of `host` at `address` (claimed, or empty) ended; the moment of the host's next read.

        `failed`: a host-wide temporary failure. Numbers from the web may be anything: NaN and negative count as
        absent, Crawl-delay is capped by the setting, Retry-After by a day.
        """
        self.servers.leave(host, address, ended)
        failures = self.failures(host) + 1 if failed else 0
        gap = self._gap(host, crawl_delay)
        own = _sane(self.manners.factor * duration, self.manners.factor_cap) if self._own_delay(host) is None else 0.0
        delay = max(gap, own, self._backoff(failures), _sane(retry_after, DAY))
        ready_at = ended + delay
        self._remember(host, ready_at, failures, ended)
        log = self._log
        if log is not None and (max(delay, gap) > log.pause or ("host", host) in log.entries):
            log.end("host", host, delay, gap)
        return ready_at

    def unsent(self, host: str, address: str, now: float) -> float:
        """A request of `begin` did not leave: nobody was contacted; the moment of the host's next read."""
        self.servers.unclaim(host, address)
        if self._log is not None and (entry := self._log.entries.get(("host", host))) is not None:
            self._log.end("host", host, 0.0, entry.gap)
        return max(self.host_ready(host), now)

    def slow_down(self, host: str, now: float, crawl_delay: float) -> float:
        """A Crawl-delay of `host` was found elsewhere; the moment of its next read."""
        gap = self._gap(host, crawl_delay)
        ready_at = max(self.host_ready(host), now + gap)
        self._remember(host, ready_at, self.failures(host), now)
        if self._log is not None:
            self._log.end("host", host, ready_at - now, gap)
        return ready_at

    def restore_log(self, now: float) -> Iterator[tuple[str, float]]:
        """After a restart: take up what the log says; yield each host that is to be left alone, and until when."""
        if self._log is None:
            return
        for kind, name, wait in self._log.restore(self.manners.factor, self.manners.factor_cap):
            if kind == "host":
                self.restore(name, now + wait)
                yield name, now + wait
            else:
                self.servers.restore(name, now + wait)

    def restore(self, host: str, ready_at: float, failures: int = 0) -> None:
        """After a restart: what `finished` had said, its wall-clock time turned into this process's monotonic one."""
        entry = self._hosts.get(host)
        if entry is not None:
            ready_at, failures = max(ready_at, entry.ready_at), max(failures, entry.failures)
        self._remember(host, ready_at, failures, -math.inf)

    def _own_delay(self, host: str) -> float | None:
        return None if self.delay_of is None else self.delay_of(host)

    def _gap(self, host: str, crawl_delay: float | None) -> float:
        """Seconds between two requests to a host, however fast it answers."""
        own = self._own_delay(host)
        least = self.manners.min_delay if own is None else own
        return least if crawl_delay is None else max(least, _sane(crawl_delay, self.manners.crawl_delay_cap))

    def _backoff(self, failures: int) -> float:
        if not failures:
            return 0.0
        return min(self.manners.backoff_base * 2.0 ** min(failures - 1, 64), self.manners.backoff_cap)

    def _remember(self, host: str, ready_at: float, failures: int, now: float) -> None:
        entry = self._hosts.get(host)
        if entry is not None:
            entry.ready_at, entry.failures = ready_at, failures
            return
        if ready_at <= now and not failures:
            return
        if len(self._hosts) >= self._hosts_limit:
            self._forget_hosts(now)
        self._hosts[host] = _Host(ready_at, failures)

    def _forget_hosts(self, now: float) -> None:
        """Amortised O(1): runs when the table has doubled since the last time."""
        self._hosts = {
            name: host for name, host in self._hosts.items() if host.ready_at + (DAY if host.failures else 0.0) > now
        }
        self._hosts_limit = max(_SWEEP_FROM, 2 * len(self._hosts))


def _sane(seconds: float, cap: float) -> float:
    """`seconds` within [0, cap]; NaN is 0."""
    return min(seconds, cap) if seconds > 0.0 else 0.0
