"""Claims of sitemaps and feeds about pages: stored with each page until a read settles them, used before as far as
trusted.

A claim of a page never read shapes the belief that it begins with (change_model.py). A claim that a page changed since
its last read draws its next read nearer by the trust its host has earned with such claims (refresh/trust.py): never
past now, and once a read, for a claim that waits to be settled is not repeated. Nothing is ordered by a claim.

Of a document whose links are looked at in slices (pages.py), the claims about each slice are applied with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import NamedTuple

import msgspec

from xyro.frontier.bandwidth import DAY
from xyro.frontier.change_model import ChangeModel, having
from xyro.frontier.revisit_dates import Schedule
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import PageClaim, RefreshRow
from xyro.metadata.states import HINTED, LEASED, State
from xyro.refresh.evidence import bounded, sooner
from xyro.refresh.trust import Source
from xyro.wire.ids import LocalPage
from xyro.wire.messages import LoadReport

AT_ONCE = 500
"""Most pages read before whose claims of one document are looked at in a turn, newest first: some 10 us each."""
LONG_DOCUMENTS = 4
"""Most documents with waiting links whose claims are held, in memory, some 15 MB each: of others, and after a restart,
those about the rest of their links are dropped."""
WORTH = 0.1
"""Least trust with which a claim moves a read; with less it is only kept, so that it can be proved."""
LATEST = 0xFFFF_FFFF
_UNREAD, _READ = int(State.UNREAD), int(State.READ)


class Claim(NamedTuple):
    """A document's claim about one URL. `changed_at`: seconds since 1970; `rate`: changes a day; 0 = not claimed."""

    changed_at: float
    rate: float


class _Document(NamedTuple):
    """The claims of one document, by URL."""

    source: Source
    changed: Mapping[str, float]
    rates: Mapping[str, float]

    def about(self, urls: Collection[str]) -> Mapping[str, Claim]:
        """The claims about these URLs, the latest changes first."""
        changed, rates = self.changed, self.rates
        order = sorted((url for url in urls if url in changed), key=changed.__getitem__, reverse=True)
        rated = (url for url in urls if url in rates)
        return {url: Claim(changed.get(url, 0.0), rates.get(url, 0.0)) for url in (*order, *rated)}


class Claims:
    """The claims of one partition; `hear` is called within a turn, between loads and dates."""

    def __init__(self, partition: Partition, schedule: Schedule, change_model: ChangeModel) -> None:
        self.partition = partition
        self.schedule = schedule
        self.change_model = change_model
        self.long_documents: dict[LocalPage, _Document] = {}
        """whose links have not all been looked at"""

    def hear(
        self,
        page: LocalPage,
        report: LoadReport,
        settled: Container[LocalPage],
        now: float,
        rest: Iterable[str] = (),
    ) -> None:
        """Apply the claims of the document `page`, but those about the rest of its links, which wait for their turn.
        settled: pages whose rows this turn writes anew."""
        self.long_documents.pop(page, None)
        if not report.modified and not report.rates:
            return
        source = Source.SITEMAP if report.format.startswith("sitemap") else Source.FEED
        document, later = _Document(source, dict(report.modified), dict(report.rates)), set(rest)
        if later and len(self.long_documents) < LONG_DOCUMENTS:
            self.long_documents[page] = document
        urls = [url for url in {**document.changed, **document.rates} if url not in later]
        self._apply(page, document, urls, settled, now)

    def hear_slices(
        self, slices: Iterable[tuple[LocalPage, Collection[str]]], settled: Container[LocalPage], now: float
    ) -> None:
        """Apply what long documents claim about links that were looked at in this turn."""
        for page, urls in slices:
            if (document := self.long_documents.get(page)) is not None:
                self._apply(page, document, urls, settled, now)

    def forget(self, waits: Callable[[LocalPage], bool]) -> None:
        """Let go of the long documents of which no link waits for its turn."""
        self.long_documents = {page: document for page, document in self.long_documents.items() if waits(page)}

    def _apply(
        self, page: LocalPage, document: _Document, urls: Collection[str], settled: Container[LocalPage], now: float
    ) -> None:
        partition, claims, dated = self.partition, document.about(urls), document.source
        looked = 0
        host = partition.hosts_of[page]
        for url, about in zip(claims, partition.url_index.find(list(claims)), strict=True):
            claim = claims[url]
            if about < 0 or about in settled or partition.flags[about] & LEASED:
                continue
            if partition.states[about] == _UNREAD:
                self._hint(about, host, dated, claim)
            elif partition.states[about] == _READ and looked < AT_ONCE:
                looked += 1
                self._again(about, host, dated, claim, now)

    def _hint(self, page: LocalPage, host: int, dated: Source, claim: Claim) -> None:
        """Evidence for the first read of a page, from the first document that has any."""
        if self.partition.flags[page] & HINTED:
            return
        claims = _usable_claims(host, dated, claim)
        self.partition.put(rows.REFRESH.key(page), rows.pack(RefreshRow(claims=claims)))
        self.partition.set_flag(page, HINTED)

    def _again(self, page: LocalPage, host: int, dated: Source, claim: Claim, now: float) -> None:
        """Apply a claim to a page read before: a change since then draws its next read nearer, a rate is stored to be
        tested."""
        row = self.partition.row(page)
        if row is None or not row.reads:
            return
        claims = row.claims
        fresh = row.last_read < claim.changed_at <= now and not any(old.source == dated for old in claims)
        for new in _usable_claims(host, dated, claim):
            if (new.rate and not any(old.source == new.source for old in claims)) or (not new.rate and fresh):
                claims = having(claims, new)
        if claims is row.claims:
            return
        self.schedule.rewrite(page, row, msgspec.structs.replace(row, claims=claims))
        trust, due = self.change_model.trust(host).weight(dated), int(self.partition.columns["due"][page])
        if fresh and trust >= WORTH and due > now and self.schedule.refreshing:
            soonest = row.last_read + self.schedule.bandwidth.rules.floor * DAY
            self.schedule.put_due(page, min(due, round(max(sooner(due, now, trust), soonest))))


def _usable_claims(host: int, dated: Source, claim: Claim) -> tuple[PageClaim, ...]:
    claims: list[PageClaim] = []
    if claim.changed_at > 0.0:
        claims.append(PageClaim(dated, host, min(int(claim.changed_at), LATEST)))
    if claim.rate > 0.0:
        claims.append(PageClaim(Source.RATE, host, 0, bounded(claim.rate)))
    return tuple(claims)
