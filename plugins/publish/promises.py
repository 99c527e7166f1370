"""Keeps the promises made to publishers of one partition's pages: each page is read by a deadline.

Takes part in the partition's turns (frontier/hooks.py) as soon as there is a publication: `settled` at the end of a
turn, before orders are chosen. Rows of publications are written with the group that accepts them and removed with the
one that settles them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from xyro.frontier.scope import BESIDE
from xyro.metadata import rows
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HINTED, State
from xyro.metadata.visits import GONE, Visit
from xyro.plugins.publish.publish_messages import Publish
from xyro.plugins.publish.stored_rows import PublishedRow, unpack_published
from xyro.refresh.evidence import outcome
from xyro.refresh.publications import (
    PUBLICATION_NUMBERS,
    TELLING,
    TRUSTED,
    Publication,
    Publications,
    borne_out,
    hastened,
)
from xyro.refresh.trust import Source, Trust
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import Priority
from xyro.wire.text import stamp
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

DAY = 86_400.0
AT_ONCE = 4_096
"""published pages that one turn orders"""


class PublisherClaim(msgspec.Struct, frozen=True):
    """A publisher's claim about its pages. `rate`: changes a day that it claims, 0 = none; `sure`: the owner's word."""

    claim: str
    made_at: float
    deadline: float
    rate: float = 0.0
    sure: bool = False


class Promises:
    """Publications of one partition."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.publications = Publications()
        self._registered = False
        frontier.hooks.recover.append(self._recover)
        frontier.hooks.why.append(self.why)
        frontier.hooks.status["published"] = self.figures
        frontier.commands.handle(Publish, self._publish)

    def _register(self) -> None:
        """There are publications: take part in the turns from now on."""
        if not self._registered:
            self._registered = True
            hooks = self.frontier.hooks
            hooks.settled.append(self.settled)
            hooks.deadlines.append(self.publications.deadline)
            hooks.keep("publications", self.publications.dump)

    def _recover(self) -> None:
        """Take up the publications that were not settled."""
        self.publications.load(self.frontier.hooks.stored.get("publications", {}))
        for key, value in self.frontier.partition.scan(rows.PUBLISHED.prefix):
            row, page = unpack_published(value), rows.PUBLISHED.split(key)
            publication = Publication(page, row.publisher, row.claim, row.made_at, row.deadline, row.learn, row.ordered)
            self.publications.accept(publication, again=True)
            self._register()

    def why(self, page: LocalPage, now: float) -> list[str]:
        """For `xyro why`: the publication that the page waits to be read for."""
        claim = self.publications.pages.get(page)
        if claim is None:
            return []
        trust = "it is ordered ahead of the plan" if claim.ordered else "it is not trusted, and only hastens the read"
        late = f", {now - claim.deadline:.0f} s ago" if claim.deadline < now else ""
        return [
            f"{claim.publisher} published it as {claim.claim} at {stamp(claim.time)}: {trust}; "
            f"to be read by {stamp(claim.deadline)}{late}."
        ]

    def figures(self, now: float) -> dict[str, Any]:
        """Counters, for `xyro status`: those of all partitions add up (promise_report.py)."""
        counts = self.publications.counts
        named = {name: getattr(counts, name) for name in PUBLICATION_NUMBERS}
        overdue = tuple(self.publications.overdue(now))
        return {"counts": named, "delays": counts.delays.counts, "waiting": len(self.publications), "overdue": overdue}

    # -- publications --------------------------------------------------------------------------------------------

    def _publish(self, command: Publish) -> list[tuple[str, str]]:
        claim = PublisherClaim(command.claim, command.made_at, command.deadline, command.rate, command.sure)
        return self.publish(command.urls, claim)

    def publish(self, urls: Sequence[str], claim: PublisherClaim) -> list[tuple[str, str]]:
        """Keep a claim about canonical URLs of this partition, within a commit group. -> (url, why) of those refused.

        A trusted host's pages are ordered (`settled`, in this very turn); of others the next read is hastened.
        """
        self._register()
        pages = local_pages(self.frontier.pages.resolve(urls, [BESIDE] * len(urls)))
        return [(url, why) for url, page in zip(urls, pages, strict=True) if (why := self._take(url, page, claim))]

    def _take(self, url: str, page: LocalPage, claim: PublisherClaim) -> str:
        """Accept the publication of a page; return the reason if it is refused, else an empty text."""
        state, publisher = self.frontier.partition.states[page], authority(url)
        if state in (State.OUT, State.BLOCKED, State.FOREIGN):
            return "out-of-scope"
        if not self.publications.room(publisher) and page not in self.publications.pages:
            return "too-many"
        trust = self.trust_of(publisher).weight(Source.PUBLISHED)
        ordered = claim.sure or trust >= TRUSTED
        if claim.rate > 0.0:
            self._hear_rate(page, claim.rate, claim.sure)
        first = page not in self.publications.pages
        new = Publication(page, publisher, claim.claim, claim.made_at, claim.deadline, not claim.sure, ordered)
        accepted = self.publications.accept(new)
        row = PublishedRow(
            accepted.publisher, accepted.claim, accepted.time, accepted.deadline, accepted.learn, accepted.ordered
        )
        self.frontier.partition.put(rows.PUBLISHED.key(page), rows.pack(row))
        if first and not accepted.ordered:  # a claim that is repeated counts once a read
            self._hasten(page, claim.made_at, trust)
        return ""

    def _hasten(self, page: LocalPage, now: float, trust: float) -> None:
        due = int(self.frontier.columns["due"][page])
        if due and self.frontier.partition.states[page] == State.READ:
            self.frontier.scheduler.schedule.put_due(page, int(hastened(float(due), now, trust)))

    def _hear_rate(self, page: LocalPage, rate: float, sure: bool) -> None:
        """Count a claimed rate once for each claim that it comes with."""
        if page in self.publications.pages:
            return
        row = self.frontier.partition.row(page) or RefreshRow()
        self.frontier.scheduler.schedule.rewrite(
            page, row, self.frontier.dating.change_model.claim_rate(page, row, rate, sure)
        )
        if not row.reads:
            self.frontier.partition.set_flag(page, HINTED)

    def trust_of(self, host: str) -> Trust:
        """Return the trust in a host: the worth of its claims so far, of this kind and of all others."""
        number = self.frontier.partition.hosts.numbers.get(host)
        return Trust() if number is None else self.frontier.dating.change_model.trust(number)

    # -- the end of a turn ---------------------------------------------------------------------------------------

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Orders ended: publications come out true or false; then what is trusted is ordered."""
        if self.publications.pages:
            for order in settled:
                if order.page in self.publications.pages:
                    self._settle(order, now)
            if self.publications.waiting:
                self.frontier.requests.order(self.publications.release(AT_ONCE), Priority.ORDERED)
        self.frontier.dating.change_model.keep()

    def _settle(self, order: Settled, now: float) -> None:
        visit = order.visit
        read = visit.answered and (visit.state is State.READ or order.report.error in GONE)
        true = self._truth(order, read)
        outcome = self.publications.settled(order.page, now, read, true, order.report.final, order.report.started)
        if outcome is None:
            return
        if order.page not in self.publications.pages:
            self.frontier.partition.delete(rows.PUBLISHED.key(order.page))
        if outcome.publication.learn and true is not None:
            self._learn(order, visit, true)

    def _truth(self, order: Settled, read: bool) -> bool | None:
        if not read:
            return None
        row, publication = order.row, self.publications.pages[order.page]
        seen = row is not None and row.reads > 0
        there = row is not None and not row.gone_since
        news = row is not None and row.last_read >= publication.time - TELLING and _showed_news(row)
        return borne_out(publication.claim, seen, order.visit.changed, order.report.status, there, news)

    def _learn(self, order: Settled, visit: Visit, true: bool) -> None:
        """The host's word is worth more, or less; what the page would have done anyway moves little."""
        row = order.row
        chance = 0.5
        if row is not None and row.rate and row.last_read:
            chance = outcome(row.belief, (order.report.ended - row.last_read) / DAY, True)
        self.frontier.dating.change_model.published(self.frontier.partition.hosts_of[order.page], true, chance)


def promises_of(frontier: Frontier) -> Promises:
    """Return the promises of a partition. MachineError: it was made without this extension."""
    found = frontier.hooks.extension(Promises)
    if found is None:
        raise MachineError("a partition was made without the extension for publications (a bug)")
    return found


def _showed_news(row: RefreshRow) -> bool:
    """Was the last read the first one, or did it find a change?"""
    return row.reads == 1 or (row.changes > 0 and row.last_change >= row.last_read)
