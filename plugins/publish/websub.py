"""WebSub (W3C Recommendation 2018): hubs tell us when feeds have changed, for feeds that name a hub.

    discovered  a feed, HTML or Link headers that were read name a hub        -> its row is stored, the hub asked
    verify      the hub asks back whether we meant it                         -> its challenge, once for each asking
    content     the hub sends the changed feed                                -> signature checked, then published:
                the feed and those of its entries that are new or newer than their last read are ordered
    run         asks again, and renews each lease before it ends

A hub is asked one thing at a time, in its turn: the delays of its host, and Retry-After, hold as for pages. One that
takes what it is asked and never verifies is asked ever more seldom. What it sends says something of the feed's own host
alone: entries on other hosts are found when the feed is read. A host has MOST_OF_HOST feeds at most, or one site could
take all places.

The callback's path and the secret are random, 128 bits or more, one pair a feed; a signature is required.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from xyro.frontier.batch import Settled
from xyro.metadata import rows
from xyro.plugins.publish.promises import PublisherClaim
from xyro.plugins.publish.publish_messages import HubNamed, RowTable, store_row
from xyro.plugins.publish.publishing import Publishing
from xyro.plugins.publish.stored_rows import TopicRow, unpack_topic
from xyro.posts import Posted
from xyro.refresh.hub_leases import LEASE, lease, next_asking, takes, unheard
from xyro.wire.errors import InputError, TheirError
from xyro.wire.ids import HOME, PageId
from xyro.wire.messages import LINK_HINT, LINK_KIND_MASK, Kind, LinkKind, LoadReport, XmlPage
from xyro.wire.urls import authority, canonical, host_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services

Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[Posted]]
MOST_TOPICS, MOST_OF_HOST = 1_000, 50
MOST_NAMED = 10_000
"""pages of a partition whose hubs were told, remembered at once"""
MOST_ENTRIES = 1_000
"""entries of one delivery that are looked at"""
MOST_BODY = 4 << 20
AT_ONCE = 8
"""hubs that are asked at once"""
TICK = 1.0
HASHES = ("sha1", "sha256", "sha384", "sha512")
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_log = logging.getLogger("xyro")


class HubNames:
    """Tells the home partition of hubs that pages of one partition name (in a feed, in HTML, in Link headers)."""

    def __init__(self, frontier: Frontier) -> None:
        self._hooks = frontier.hooks
        self._named: set[tuple[str, str]] = set()
        """(URL, rel=self) of pages that were told of"""
        self._hooks.visited.append(self.visited)

    def visited(self, settled: Sequence[Settled], loads: Iterable[LoadReport]) -> None:
        """Look for hubs that the pages read in a turn name."""
        for order in settled:
            if order.report.hubs:
                self._tell(order.report.url, order.report.hubs, order.report.topic)
        for load in loads:
            if load.hubs:
                self._tell(load.url, load.hubs, topic_of(load))

    def _tell(self, url: str, hubs: Sequence[str], topic: str) -> None:
        if (url, topic) not in self._named:
            if len(self._named) >= MOST_NAMED:
                self._named.clear()  # they are told again: nothing comes of that
            self._named.add((url, topic))
            self._hooks.post(HOME, HubNamed(0, url, tuple(hubs), topic))


class WebSub:
    """The feeds of a crawl that name hubs, in its home partition. An answer leaves after its row is on disk."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        """frontier: of the home partition."""
        self.services = services
        self.publishing = Publishing(services)
        self._partition = frontier.partition
        self.callback = services.settings.publish.callback.rstrip("/") + "/websub/"
        self.delivered = self.unsigned = 0
        """deliveries that were taken; those whose signature was missing or wrong"""
        self._rows: dict[int, TopicRow] = {}
        self._by_path: dict[str, int] = {}
        self._by_topic: dict[str, int] = {}
        self._of_host: Counter[str] = Counter()
        """feeds of each host"""
        self._until: dict[str, float] = {}
        """hosts of hubs that are left alone until then"""
        self._next = 1
        frontier.hooks.recover.append(self._recover)
        frontier.hooks.status["websub"] = lambda now: self.counters()
        frontier.commands.handle(HubNamed, self._hear)

    def _recover(self) -> None:
        """Take up the subscriptions."""
        for key, value in self._partition.scan(rows.TOPIC.prefix):
            number, row = rows.TOPIC.split(key), unpack_topic(value)
            self._hold(number, row)
            self._next = max(self._next, number + 1)

    def _hold(self, number: int, row: TopicRow) -> None:
        self._of_host[authority(row.topic)] += number not in self._rows
        self._rows[number] = row
        self._by_path[row.path] = self._by_topic[row.topic] = number

    async def _store(self, number: int, row: TopicRow) -> None:
        """In memory at once, and on disk when this returns."""
        packed = rows.pack(row)
        self._hold(number, row)
        await store_row(self.services.commands, RowTable.TOPIC, number, packed)

    # -- discovery -----------------------------------------------------------------------------------------------

    def _hear(self, command: HubNamed) -> None:
        self.discovered(command.url, command.hubs, command.topic)

    def discovered(self, url: str, hubs: Sequence[str], self_link: str) -> None:
        """A page was read that names hubs; `self_link`: its rel=self. Stored and asked by the next round of `run`."""
        topic = (
            self_link if self_link and authority(self_link) == authority(url) else url
        )  # for others' pages it cannot speak
        if topic in self._by_topic or len(self._rows) >= MOST_TOPICS or not self.publishing.readable([topic])[0]:
            return
        if self._of_host[authority(topic)] >= MOST_OF_HOST:
            return
        hub = next((hub for hub in hubs if not self.services.scope.why_refused(hub)), None)
        if hub is None:
            return
        row = TopicRow(topic, hub, secrets.token_urlsafe(24), secrets.token_urlsafe(32))
        number, self._next = self._next, self._next + 1
        self._hold(number, row)

    # -- asking --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled: ask hubs when it is time."""
        while True:
            due = self._due(self.services.clock.time())
            await asyncio.gather(*(self._ask(number) for number in due))
            await self.services.clock.sleep(0.0 if len(due) == AT_ONCE else TICK)

    def _due(self, now: float) -> list[int]:
        """Feeds whose hubs are asked now: one of a hub's host, AT_ONCE of all."""
        self._until = {host: until for host, until in self._until.items() if until > now}
        of_hub: dict[str, int] = {}
        for number, row in self._rows.items():
            if self._when(row) <= now and (host := authority(row.hub)) not in self._until:
                of_hub.setdefault(host, number)
        return list(of_hub.values())[:AT_ONCE]

    def _when(self, row: TopicRow) -> float:
        return next_asking(row.state, row.asked, row.begun, row.until, row.failures)

    async def _ask(self, number: int) -> None:
        """One request to a hub. The row is on disk before: the hub may verify before its answer is here."""
        row = self._rows[number]
        now = self.services.clock.time()
        state = "asked" if row.state == "denied" else row.state
        await self._store(number, msgspec.structs.replace(row, asked=now, state=state))
        form = {
            "hub.callback": self.callback + row.path,
            "hub.mode": "subscribe",
            "hub.topic": row.topic,
            "hub.lease_seconds": str(int(LEASE)),
            "hub.secret": row.secret,
        }
        try:
            status, again = await self.services.post(row.hub, urlencode(form).encode(), _FORM)
        except TheirError as error:
            status, again = 0, 0.0
            _log.info("WebSub: %s: %s", row.hub, error)
        row, accepted = self._rows[number], 200 <= status < 300
        if again:
            self._until[authority(row.hub)] = self.services.clock.time() + again
        if row.asked:  # it has not verified yet
            await self._store(number, msgspec.structs.replace(row, failures=unheard(row.failures, accepted)))

    async def verify(self, path: str, query: Mapping[str, str]) -> str | None:
        """The hub asks back: its challenge if we meant it, else None."""
        number = self._by_path.get(path)
        row = self._rows[number] if number is not None else None
        if number is None or row is None or query.get("hub.topic") != row.topic:
            return None
        now, challenge = self.services.clock.time(), query.get("hub.challenge", "")
        if query.get("hub.mode") == "denied":
            await self._store(number, msgspec.structs.replace(row, state="denied", asked=0.0, begun=now))
            return ""
        if query.get("hub.mode") != "subscribe" or not row.asked or not 0 < len(challenge) <= 1_024:
            return None
        until = now + lease(query.get("hub.lease_seconds", ""))
        active = msgspec.structs.replace(row, state="active", asked=0.0, begun=now, until=until, failures=0)
        await self._store(number, active)
        return challenge

    # -- content -------------------------------------------------------------------------------------------------

    def is_ours(self, path: str) -> bool:
        """Tell whether it is the path of a feed's callback that may still be used."""
        row = self._rows.get(self._by_path.get(path, -1))
        return row is not None and takes(row.state, row.until, self.services.clock.time())

    async def content(self, path: str, body: bytes, signature: str, mime: str) -> None:
        """A delivery to one of our callbacks: ignored if its signature is not right."""
        row = self._rows[self._by_path[path]]
        if len(body) > MOST_BODY or not signed(row.secret, body, signature):
            self.unsigned += 1
            return
        self.delivered += 1
        now = self.services.clock.time()
        claim = PublisherClaim("changed", now, now + self.services.settings.publish.deadline)
        report = await asyncio.to_thread(_read, row.topic, body, mime, now)
        urls = [row.topic, *(await self._fresh(row.topic, report) if report is not None else ())]
        readable, _ = await self.publishing.sift(urls)
        if not self.publishing.allowance.take(host_of(row.topic), len(readable), self.services.clock.monotonic()):
            await self.publishing.publish(readable, claim)

    async def _fresh(self, topic: str, report: LoadReport) -> list[str]:
        """Entries of the feed's own host that were never read, or say that they changed since."""
        dates, own = dict(report.modified), authority(topic)
        entries = [
            url
            for url, flags in zip(report.links.urls, report.links.flags, strict=True)
            if flags & LINK_KIND_MASK == LinkKind.FEED
        ]
        entries = [url for url in entries[:MOST_ENTRIES] if authority(url) == own]
        places = await self.services.pages.find(entries)
        described = await self.services.pages.describe([place.page for place in places])
        existing = {facts.url: facts.row for facts in described}
        return [
            url
            for url in entries
            if (row := existing.get(url)) is None or not row.reads or dates.get(url, 0.0) > row.last_read
        ]

    def counters(self) -> dict[str, int]:
        """For `xyro status`."""
        states = [row.state for row in self._rows.values()]
        return {
            "topics": len(states),
            "active": states.count("active"),
            "delivered": self.delivered,
            "unsigned": self.unsigned,
        }


def signed(secret: str, body: bytes, header: str) -> bool:
    """Tell whether `header` (X-Hub-Signature: method=hex) signs the body. Constant time; unknown methods do not
    sign."""
    method, _, digest = header.partition("=")
    if method not in HASHES:
        return False
    right = hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()
    return hmac.compare_digest(right.encode(), digest.strip().lower().encode("utf-8", "surrogateescape"))


def _read(topic: str, body: bytes, mime: str, now: float) -> LoadReport | None:
    """Links and dates of a feed's body, None where it is none."""
    from xyro.loader.intake import Intake  # lxml and more, which only subscribers need

    intake = Intake(patience_s=0.0, part_cache_bytes=1 << 20, waiting_bytes=1 << 20)
    try:
        page = XmlPage(PageId(0), topic, 0, now, Kind.XML, mime, "", body)
        reports = [report for report in intake.take(page, now) if isinstance(report, LoadReport)]
        return reports[-1] if reports else None
    finally:
        intake.close()


def callback_of(text: str) -> str:
    """[publish] callback, checked. InputError: none is given, or it is no URL."""
    if not text:
        raise InputError("[publish] websub needs callback: the URL under which hubs reach [publish] listen")
    return canonical(text)


def topic_of(load: LoadReport) -> str:
    """rel=self of a feed, empty where it has none."""
    for target, flags in zip(load.links.urls, load.links.flags, strict=True):
        if flags & LINK_KIND_MASK == LinkKind.CANONICAL and flags & LINK_HINT:
            return target
    return ""
