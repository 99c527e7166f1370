"""What one partition has promised: pages that were published, and pages that are refreshed together (clusters).

Its node asks it at the end of each turn, before orders are chosen (`settled`), and tells it of new URLs (`watch`).
Rows of publications are written with the group that accepts them and removed with the one that settles them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from xyro.frontier.dating import Settled
from xyro.frontier.seams import Node
from xyro.metadata import keys, rows
from xyro.metadata.rows import PublishedRow, RefreshRow
from xyro.metadata.states import HINTED, State
from xyro.metadata.visits import Visit
from xyro.plugins.clusters.page_clusters import Clustered
from xyro.plugins.publish.watch import Watch
from xyro.refresh.evidence import outcome
from xyro.refresh.publications import TELLING, TRUSTED, Publication, Publications, borne_out, hastened
from xyro.refresh.subscriptions import Subscriptions
from xyro.refresh.trust import Source, Trust
from xyro.wire.messages import LINK_HINT, LINK_KIND_MASK, LinkKind, LoadReport, PageReport, Priority, Submit
from xyro.wire.urls import authority

DAY = 86_400.0
AT_ONCE = 4_096
"""published pages that one turn orders"""
_GONE = ("http-404", "http-410")


class Said(msgspec.Struct, frozen=True):
    """What a publisher says of its pages. `rate`: changes a day that it claims, 0 = none; `sure`: the owner's word."""

    claim: str
    at: float
    deadline: float
    rate: float = 0.0
    sure: bool = False


class Promises:
    """Of one page node. `watch`, `clusters` and `readers` are shared by all nodes of the process
    (service/node/single.py)."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.publications = Publications()
        self.watch = Watch()
        self.clusters: Clustered | None = None
        self.readers: Subscriptions | None = None
        self.discovered: Callable[[str, tuple[str, ...], str], None] | None = None
        """WebSub is on: told of each page that names hubs, and of its rel=self, empty where it has none"""
        self.kept: Mapping[str, Any] = {}
        """as it was stored: clusters and readers take theirs up when they are made"""
        node.scheduler.deadlines.of = self.deadline
        node.pages.born = self._born

    def _born(self, first: int, urls: Sequence[str]) -> None:
        if not self.watch.on:
            return
        states, base = self.node.partition.states, self.node.partition.base
        for page, url in enumerate(urls, first):
            if states[page] != State.FOREIGN:  # its own partition tells of it
                self.watch.born(page + base, url)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        if self.node.partition.number:
            return {"publications": self.publications.dump()}
        clusters = self.clusters.dump() if self.clusters is not None else self.kept.get("clusters", {})
        readers = self.readers.dump() if self.readers is not None else self.kept.get("readers", {})
        return {"publications": self.publications.dump(), "clusters": clusters, "readers": readers}

    def load(self, state: Mapping[str, Any]) -> None:
        self.publications.load(state.get("publications", {}))
        self.kept = state

    def recover(self) -> None:
        """Take up the publications that were not settled."""
        for key, value in self.node.partition.scan(keys.PUBLISHED.prefix):
            row, page = rows.unpack_published(value), keys.PUBLISHED.split(key)
            said = Publication(page, row.publisher, row.claim, row.at, row.deadline, row.learn, row.ordered)
            self.publications.accept(said, again=True)

    # -- publications --------------------------------------------------------------------------------------------

    def publish(self, urls: Sequence[str], said: Said) -> list[tuple[str, str]]:
        """Within a commit group: keep what is said of canonical URLs of this partition. -> (url, why) of those refused.

        A trusted host's pages are ordered (`settled`, in this very turn); of others the next read is hastened.
        """
        pages = self.node.pages.resolve(urls, [0] * len(urls)).tolist()
        return [(url, why) for url, page in zip(urls, pages, strict=True) if (why := self._take(url, page, said))]

    def _take(self, url: str, page: int, said: Said) -> str:
        """Why a page's publication is refused, empty if it was taken."""
        state, publisher = self.node.partition.states[page], authority(url)
        if state in (State.OUT, State.BLOCKED, State.FOREIGN):
            return "out-of-scope"
        if not self.publications.room(publisher) and page not in self.publications.pages:
            return "too-many"
        trust = self.trust_of(publisher).of(Source.PUBLISHED)
        ordered = said.sure or trust >= TRUSTED
        if said.rate > 0.0:
            self._hear_rate(page, said.rate, said.sure)
        first = page not in self.publications.pages
        new = Publication(page, publisher, said.claim, said.at, said.deadline, not said.sure, ordered)
        kept = self.publications.accept(new)
        row = PublishedRow(kept.publisher, kept.claim, kept.at, kept.deadline, kept.learn, kept.ordered)
        self.node.partition.put(keys.PUBLISHED.key(page), rows.pack(row))
        if first and not kept.ordered:  # what is said again and again is heard once a read
            self._hasten(page, said.at, trust)
        return ""

    def _hasten(self, page: int, now: float, trust: float) -> None:
        due = int(self.node.columns["due"][page])
        if due and self.node.partition.states[page] == State.READ:
            self.node.scheduler.schedule.put_due(page, int(hastened(float(due), now, trust)))

    def _hear_rate(self, page: int, rate: float, sure: bool) -> None:
        """A claimed rate is heard once for each time that it is said with a claim."""
        if page in self.publications.pages:
            return
        row = self.node.partition.row(page) or RefreshRow()
        self.node.scheduler.schedule.rewrite(page, row, self.node.dates.change_model.told(page, row, rate, sure))
        if not row.reads:
            self.node.partition.set_flag(page, HINTED)

    def trust_of(self, host: str) -> Trust:
        """What a host's own word has been worth so far, in this as in all that it says of its pages."""
        number = self.node.partition.hosts.numbers.get(host)
        return Trust() if number is None else self.node.dates.change_model.trust(number)

    def meet(self, loads: Iterable[LoadReport], reports: Iterable[PageReport]) -> None:
        """What was loaded, or read, in this turn: does it name hubs (in a feed, in HTML, in Link headers)?"""
        if self.discovered is not None:
            for report in reports:
                if report.hubs:
                    self.discovered(report.url, report.hubs, report.topic)
            for load in loads:
                if load.hubs:
                    self.discovered(load.url, load.hubs, topic_of(load))

    def deadline(self, page: int) -> float:
        """By when a page was promised to be read, to a publisher or to subscribers; 0 = to nobody."""
        published = self.publications.deadline(page)
        notice = self.readers.deadline(page + self.node.partition.base) if self.readers is not None else 0.0
        return min(published, notice) if published and notice else published or notice

    # -- the end of a turn ---------------------------------------------------------------------------------------

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Orders ended: publications come out true or false, clusters keep together; then what is due is ordered."""
        if self.publications.pages:
            for one in settled:
                if one.page in self.publications.pages:
                    self._settle(one, now)
            if self.publications.waiting:
                self.node.wanted.order(self.publications.release(AT_ONCE), Priority.ORDERED)
        if self.clusters is not None:
            for one in settled:
                if one.visit.state is State.READ:
                    self._keep_together(one, now, self.clusters)
        readers = self.readers
        if readers is not None and (readers.awaited or readers.overdue):
            for one in settled:
                if one.visit.answered or one.report.final:
                    readers.read(one.page + self.node.partition.base, now)
        self.node.dates.change_model.keep()

    def _settle(self, one: Settled, now: float) -> None:
        visit = one.visit
        read = visit.answered and (visit.state is State.READ or one.report.error in _GONE)
        true = self._truth(one, read)
        outcome = self.publications.settled(one.page, now, read, true, one.report.final, one.report.started)
        if outcome is None:
            return
        if one.page not in self.publications.pages:
            self.node.partition.delete(keys.PUBLISHED.key(one.page))
        if outcome.publication.learn and true is not None:
            self._learn(one, visit, true)

    def _truth(self, one: Settled, read: bool) -> bool | None:
        if not read:
            return None
        row, said = one.row, self.publications.pages[one.page]
        seen = row is not None and row.reads > 0
        there = row is not None and not row.gone_since
        news = row is not None and row.last_read >= said.at - TELLING and _showed_news(row)
        return borne_out(said.claim, seen, one.visit.changed, one.report.status, there, news)

    def _learn(self, one: Settled, visit: Visit, true: bool) -> None:
        """The host's word is worth more, or less; what the page would have done anyway moves little."""
        row = one.row
        chance = 0.5
        if row is not None and row.rate_b and row.last_read:
            chance = outcome(row.rate_a, row.rate_b, (one.report.ended - row.last_read) / DAY, True)
        self.node.dates.change_model.published(self.node.partition.hosts_of[one.page], true, chance)

    def _keep_together(self, one: Settled, now: float, clusters: Clustered) -> None:
        base, schedule = self.node.partition.base, self.node.scheduler.schedule
        due = int(self.node.columns["due"][one.page])
        aligned = clusters.read(one.page + base, now, due)
        if aligned is None:
            return
        if aligned.due and aligned.due != due:
            schedule.put_due(one.page, aligned.due)
        self._call(aligned.call, clusters.url)

    def _call(self, pages: Iterable[int], url: Callable[[int], str]) -> None:
        """Order pages, wherever they live."""
        base = self.node.partition.base
        own = [page - base for page in pages if page >> 32 == base >> 32]
        self.node.wanted.order([page for page in own if self._is_readable(page)], Priority.ORDERED)
        if others := tuple(url(page) for page in pages if page >> 32 != base >> 32):
            self.node.wanted.order_elsewhere(Submit(others, Priority.ORDERED, seed=False))

    def _is_readable(self, page: int) -> bool:
        return self.node.partition.states[page] in (State.READ, State.UNREAD)


def _showed_news(row: RefreshRow) -> bool:
    """Was the last read the first one, or did it find a change?"""
    return row.reads == 1 or (row.changes > 0 and row.last_change >= row.last_read)


def topic_of(load: LoadReport) -> str:
    """rel=self of a feed, empty where it has none."""
    for target, flags in zip(load.links.urls, load.links.flags, strict=True):
        if flags & LINK_KIND_MASK == LinkKind.CANONICAL and flags & LINK_HINT:
            return target
    return ""
