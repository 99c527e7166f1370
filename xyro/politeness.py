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
from dataclasses import dataclass

from xyro.server_floors import ServerFloors

DAY = 86_400.0
_SWEEP_FROM = 1_024
"""Tables shorter than this are never searched for what can be forgotten."""


@dataclass(frozen=True, slots=True)
class Manners:
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

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"Manners.{name}: a number of seconds >= 0, not {value!r}")

    @classmethod
    def fixed(cls, delay: float, net_delay: float = 0.0, domain_delay: float = 0.0) -> Manners:
        """`--delay S`: S replaces minimum delay, factor and IP floor (they are promises about S, not beside it).

        With 0 only Crawl-delay, Retry-After and back-off remain, and the floors of networks and domains that are set.
        """
        delays = {"net_delay": net_delay, "domain_delay": domain_delay}
        return cls(min_delay=delay, factor=0.0, factor_cap=0.0, ip_delay=delay, **delays)


@dataclass(slots=True)
class _Host:
    ready_at: float
    failures: int


class Politeness:
    """Floors per host and per server, and the count of a host's temporary failures in a row.

    Invariant: forgetting never makes a read earlier. A host is forgotten when its floor has passed and it has no
    failures (or failed last a day ago), a server when its floor and its line have passed and nobody reads it. So the
    tables are bounded by the hosts and servers read within the last delay, and the hosts that failed within a day.
    """

    def __init__(self, manners: Manners = Manners()) -> None:
        self.manners = manners
        self._hosts: dict[str, _Host] = {}
        self._hosts_limit = _SWEEP_FROM
        self.servers = ServerFloors(manners.ip_delay, manners.net_delay, manners.domain_delay)

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
        delay = max(self._delay(duration, crawl_delay), self._backoff(failures), _sane(retry_after, DAY))
        ready_at = ended + delay
        self._remember(host, ready_at, failures, ended)
        return ready_at

    def restore(self, host: str, ready_at: float, failures: int = 0) -> None:
        """After a restart: what `finished` had said, its wall-clock time turned into this process's monotonic one."""
        entry = self._hosts.get(host)
        if entry is not None:
            ready_at, failures = max(ready_at, entry.ready_at), max(failures, entry.failures)
        self._remember(host, ready_at, failures, -math.inf)

    def _delay(self, duration: float, crawl_delay: float | None) -> float:
        m = self.manners
        delay = max(m.min_delay, _sane(m.factor * duration, m.factor_cap))
        return delay if crawl_delay is None else max(delay, _sane(crawl_delay, m.crawl_delay_cap))

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
