"""The witness of a simulated crawl: it notes what servers, disk and messages see, and holds promises against it.

The witness is no part of the crawler. While a crawl lives it notes requests, contacts, batches and messages, and judges
at once what may never happen: a forbidden address, a page before robots.txt or against it, two requests to a host at
once or too close. After each life `judge` compares what the store says (export and audit) with what was seen.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xyro.lab.simulate.exchanges import PeerReply, PeerRequest, SiteRules
from xyro.metadata.store import Batch
from xyro.opic.cash import UNIT
from xyro.wire import topics
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, Message, PageReport

EPSILON = 2e-3
"""seconds by which moments may be wrong: those that survive a restart are written in thousandths"""
UNHEARD = 0.1
"""seconds before a crash in which an answer may have arrived that nobody has looked at yet"""
PROBE = re.compile(r"[/=]xyro-[0-9a-f]{16}(?:\.[^/?]*)?$")
"""a URL that cannot exist, asked to learn how its host says so: no page, but it has to be asked as politely as one"""
Row = Mapping[str, Any]


@dataclass(slots=True)
class SeenRequest:
    """One request to a host."""

    life: int
    url: str
    began: float
    is_page: bool
    ended: float | None = None
    is_sound: bool = False
    """it was answered whole, in a way that counts as a read"""


@dataclass(slots=True)
class HostLog:
    """The last that a host has seen."""

    current: int = 0
    """requests under way"""
    ended: float = -1e9
    ended_life: int = 0
    gap: float = 0.0
    """seconds after `ended` that it has to be left alone"""


@dataclass(frozen=True, slots=True)
class PromisedGaps:
    """The gaps that a crawl with these settings promises its hosts."""

    least_gap: float
    """seconds between two reads of a host, whatever else"""
    factor: float
    factor_cap: float
    address_gap: float
    grace: float
    """seconds after which what was answered must be on the disk"""


@dataclass(slots=True)
class CrawlWitness:
    """Of one seed, over all lives."""

    promises: PromisedGaps
    endpoints: Collection[tuple[str, int]]
    """(address, port) that may be contacted"""
    place: str
    """directory of the stores: it has another name each time"""
    violations: list[str] = field(default_factory=list)
    life: int = 0
    now: float = 0.0
    visits: list[SeenRequest] = field(default_factory=list)
    accepted: dict[str, None] = field(default_factory=dict)
    """URLs that the crawl said it has on disk"""
    batches: int = 0
    contacts: int = 0
    _digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=8))
    _hosts: defaultdict[str, HostLog] = field(default_factory=lambda: defaultdict(HostLog))
    _addresses: defaultdict[str, HostLog] = field(default_factory=lambda: defaultdict(HostLog))
    _rules: dict[str, SiteRules] = field(default_factory=dict)
    """origin -> what its robots.txt said last in this life"""
    _under_way: dict[int, tuple[str, str]] = field(default_factory=dict)
    """number of a visit -> (host, address)"""
    _orders: dict[tuple[PageId, int], str] = field(default_factory=dict)
    """orders of this life that are out"""
    _requested: dict[str, None] = field(default_factory=dict)
    _reads: Counter[str] = field(default_factory=Counter)
    """requests for each page so far"""
    _life_ended: float = 0.0
    """when the last life ended; what was answered a while before is on disk"""
    _owed: Counter[str] = field(default_factory=Counter)
    """reads of each page that must be stored"""

    @property
    def digest(self) -> str:
        """Of everything noted so far, times included."""
        return str(self._digest.hexdigest())

    def note(self, *event: object) -> None:
        """A line of the trace."""
        self._digest.update(repr((self.now, *event)).replace(self.place, "DISK").encode())

    def blame(self, sentence: str) -> None:
        """A promise is broken."""
        if len(self.violations) < 20:
            self.violations.append(f"life {self.life}, {self.now:.3f} s: {sentence}")

    def begin_life(self, number: int) -> None:
        """Another process: it knows no robots.txt, and nothing is under way."""
        self.life = number
        self._rules.clear()
        self._orders.clear()

    def note_crash(self) -> None:
        """One of several processes is gone: of what it heard last it may have told nobody."""
        self._forget(self.now)
        self.life += 1
        self._life_ended = self.now

    # -- what happens --------------------------------------------------------------------------------------------

    def note_batch(self, partition: int, batch: Batch) -> None:
        """A batch reached the disk."""
        self.batches += 1
        self.note("batch", partition, getattr(batch, "changes", batch.size))

    def note_post(self, topic: str, message: Message) -> None:
        """A message was posted: an order is out until its report is."""
        self.note("post", topic, message)
        if isinstance(message, FetchOrder) and not message.raised:
            self._orders[message.page, message.epoch] = message.url
        elif isinstance(message, PageReport) and topic != topics.ORDERS:
            self._orders.pop((message.page, message.epoch), None)

    def note_accepted(self, urls: Iterable[str]) -> None:
        """A submit was answered."""
        self.accepted.update(dict.fromkeys(urls))
        self.note("accepted", *urls)

    def note_contact(self, address: tuple[str, int]) -> None:
        """A connection is attempted."""
        self.contacts += 1
        self.note("contact", address[:2])
        if address[:2] not in self.endpoints:
            self.blame(f"{address[0]} port {address[1]} was contacted, which is forbidden")

    def note_request(self, request: PeerRequest, address: tuple[str, int]) -> int:
        """A request was sent; returns its number."""
        self.note("request", request.url, address, sorted(request.headers.items()))
        host, origin = request.authority, f"http://{request.authority}"
        is_page = request.path != "/robots.txt" and not request.path.startswith("/robots/")
        if is_page:
            if not PROBE.search(request.url):
                self._requested[request.url] = None
            self._reads[request.url] += 1
            self._check_rules(request, self._rules.get(origin))
        for name, log, gap in (
            (host, self._hosts[host], self.promises.least_gap),
            (address[0], self._addresses[address[0]], self.promises.address_gap),
        ):
            if gap or name == host:
                self._check_gap(request.url, name, log, gap)
            log.current += 1
        self.visits.append(SeenRequest(self.life, request.url, self.now, is_page))
        number = len(self.visits)
        self._under_way[number] = (host, address[0])
        return number

    def note_end(self, number: int, reply: PeerReply | None) -> None:
        """A request has its answer, or came to another end (None)."""
        visit = self.visits[number - 1]
        visit.ended = self.now
        visit.is_sound = reply is not None and reply.status > 0
        self.note("end", number, visit.is_sound)
        host, address = self._under_way.pop(number)
        promises, gap = self.promises, 0.0
        if reply is not None:
            gap = reply.wait
            if reply.robots is not None:
                self._rules[reply.robots.origin] = reply.robots
        rules = self._rules.get(f"http://{host}")
        duration = visit.ended - visit.began
        gap = max(gap, rules.delay if rules else 0.0, min(promises.factor * duration, promises.factor_cap))
        for log, more in ((self._hosts[host], gap), (self._addresses[address], 0.0)):
            log.current -= 1
            log.ended, log.ended_life, log.gap = self.now, self.life, more

    def _check_rules(self, request: PeerRequest, rules: SiteRules | None) -> None:
        if rules is None:
            self.blame(f"{request.url} was read before its robots.txt")
        elif not rules.usable:
            self.blame(f"{request.url} was read while its robots.txt cannot be had")
        elif request.path.startswith(rules.disallowed or ("\0",)):
            self.blame(f"{request.url} was read, which robots.txt disallows")

    def _check_gap(self, url: str, name: str, log: HostLog, least: float) -> None:
        if log.current:
            self.blame(f"{url}: {name} is being read already")
        ready = log.ended + max(least, log.gap)
        if self.now < ready - EPSILON:
            self.blame(f"{url}: {name} was read {self.now - log.ended:.3f} s ago, {ready - self.now:.3f} s too soon")

    def _is_stored(self, ended: float | None) -> bool:
        """Whether what ended then must have been on disk when its process ended."""
        return ended is not None and ended + self.promises.grace <= self._life_ended

    # -- what is left --------------------------------------------------------------------------------------------

    def end_life(self, orderly: bool, since: float | None = None) -> None:
        """The process is gone. `orderly`: everything answered is to be on disk, else what was `since` then."""
        before = self.now if since is None else since
        self._life_ended = self.now + self.promises.grace if orderly else before
        self._forget(self._life_ended)
        for visit in self.visits:
            if visit.life == self.life and visit.is_page and visit.is_sound and self._is_stored(visit.ended):
                self._owed[visit.url] += 1
        self.note("end of life", orderly)

    def _forget(self, end: float) -> None:
        """Of an answer that came just before the end of its process nobody may ever know which gap it asked for."""
        for log in (*self._hosts.values(), *self._addresses.values()):
            if log.ended_life == self.life and log.ended + UNHEARD > end:
                log.gap = 0.0

    def check_orders(self) -> None:
        """At the end of a crawl that is complete no order is out."""
        for url in self._orders.values():
            self.blame(f"the order for {url} has no end")

    def judge(self, rows: Iterable[Row], report: Mapping[str, Any], links: Mapping[str, Collection[str]]) -> None:
        """Hold the export and the audit of what is stored against what was seen.

        links: page -> where it links to, whatever its version, in scope or not.
        """
        by_url = {row["url"]: row for row in rows}
        for violation in report["violations"]:
            self.blame(f"audit: {violation}")
        cash = sum(row["cash"] for row in by_url.values()) + report["virtual"] + report["in_flight"]
        if more := cash - UNIT * len(by_url):
            self.blame(f"cash: {cash:,} units are there, {len(by_url):,} pages are known ({more:+,})")
        for url in sorted(self._requested.keys() - by_url.keys()):
            self.blame(f"{url} was read and is not known")
        for url in sorted(self.accepted.keys() - by_url.keys()):
            self.blame(f"{url} was accepted and is not known")
        for url, row in by_url.items():
            if not self._owed[url] <= row["reads"] <= self._reads[url]:
                self.blame(f"{url}: {row['reads']} reads are stored, {self._owed[url]} to {self._reads[url]} were made")
            if row["out_links"] is not None:
                for target in links.get(url, ()):
                    if target not in by_url:
                        self.blame(f"{target} is not known, to which {url} links")
