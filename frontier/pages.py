"""URLs become pages: minted when first met, as deep as the shortest way to them, read if the scope says so.

A page's state is UNREAD, OUT, BLOCKED or FOREIGN by what the scope says of its URL at its depth. Both change: a shorter
way is found (and so on down the stored links), a place is added, a resumed crawl has other rules. Then the pages that
this concerns are judged again: those that come into scope are read, those that leave it are read no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import FetchSettings
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import NO_PAGES, Ids, Ledger
from xyro.frontier.schedule import Schedule
from xyro.frontier.scope import Scope
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import NAMED, State
from xyro.wire.ids import LocalPage, local_pages, page_range
from xyro.wire.urls import authority, host_of, partition_of

_PLACES = rows.META.key("places")
_OUT, _BLOCKED, _FOREIGN = int(State.OUT), int(State.BLOCKED), int(State.FOREIGN)


class Pages:
    """The pages of one partition; `begin` is called in each turn.

    Invariant, between turns: a page is OUT or BLOCKED as the scope judges it at its depth, unless it was exempt.
    """

    def __init__(
        self, partition: Partition, scope: Scope, fetch: FetchSettings, ledger: Ledger, hooks: Hooks, schedule: Schedule
    ) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.scope = scope
        self.ledger = ledger
        self.hooks = hooks
        self.schedule = schedule
        self.touched: list[Ids] = []
        """pages that URLs were resolved to in this turn"""
        self.nearer: list[Ids] = []
        """pages of other partitions to which a shorter way was found in this turn"""
        self._partitions: int = partition.facts["partitions"]
        self._bounds = repr((fetch.only_net, fetch.allow_private, fetch.ports))
        self._places: set[str] = set()
        """places of the scope by which the pages here were judged; stored"""
        self._rejudge = False
        self._now = 0

    @property
    def rules(self) -> str:
        """The rules that decide, beside the places, which URLs are read: other rules on a resume apply to all known
        pages."""
        return self.scope.text + self._bounds

    def recover(self, rules: str) -> None:
        """Go on where pages were judged by these rules."""
        self._rejudge = rules != self.rules
        self.ledger.recover_births([births for _, births in self.partition.scan(rows.BIRTHS.prefix)])
        if self.scope.mode == "any":
            return
        if rules.startswith(self.scope.kind):
            self._places.update(msgpack.unpackb(self.partition.get(_PLACES) or b"\x90"))
            self.scope.places.update(self._places)
        else:
            for page in local_pages(np.flatnonzero(self.columns["depth"][: self.columns.n] == 0)):
                if self.partition.states[page] != _FOREIGN:
                    self.scope.add_seed(self.partition.url(page))

    def begin(self, now: float) -> None:
        """A turn begins: nothing is touched yet, and pages are as the scope of now says."""
        self._now = int(now)
        self.touched, self.nearer = [], []
        self.follow_scope()

    # -- URLs ----------------------------------------------------------------------------------------------------

    def resolve(self, urls: Sequence[str], depths: Sequence[int] | Ids, exempt: bool = False) -> Ids:
        """Pages of URLs; unknown ones are minted at the least depth given. exempt: scope does not hold for them."""
        pages = np.array(self.partition.url_index.find(urls), np.int64)
        unknown = np.flatnonzero(pages < 0)
        if len(unknown):
            wanted = [urls[i] for i in unknown.tolist()]
            new: dict[str, int] = {}
            for url, depth in zip(wanted, np.asarray(depths, np.int64)[unknown].tolist(), strict=True):
                new[url] = min(depth, new.get(url, depth))
            first = self._mint(list(new), list(new.values()), exempt)
            numbers = dict(zip(new, page_range(first, len(new)), strict=True))
            pages[unknown] = [numbers[url] for url in wanted]
        self.touched.append(pages)
        return pages

    def receive(self, urls: list[str], depths: list[int]) -> Ids:
        """Pages that another partition has news or cash of."""
        pages = self.resolve(urls, depths)
        if self.scope.by_depth:
            self.shorten(pages, np.array(depths, np.int64))
        return pages

    def _mint(self, urls: list[str], depths: list[int], exempt: bool) -> LocalPage:
        judge_url = self.scope.judge
        own = self.partition.number
        states = []
        for url, depth in zip(urls, depths, strict=True):
            if self._partitions > 1 and partition_of(host_of(url), self._partitions) != own:
                states.append(State.FOREIGN)
            elif exempt:
                states.append(State.UNREAD if not self.scope.why_refused(url) else self.scope.refusal(url))
            else:
                states.append(judge_url(url, depth))
        hosts = [self.partition.host(authority(url)) for url in urls]
        first = self.partition.mint(urls, hosts, states, depths, self._now)
        for born in self.hooks.born:
            born(first, urls)
        self.ledger.mint(first, np.array(states, np.uint8) == State.FOREIGN)
        for chunk, births in self.ledger.births.changes():
            self.partition.put(rows.BIRTHS.key(chunk), births)
        return first

    # -- depth ---------------------------------------------------------------------------------------------------

    def shorten(self, pages: Ids, depths: Ids) -> None:
        """A shorter way to a page: its depth falls, what was too deep may come into scope, and so on down."""
        column = self.columns["depth"]
        while len(pages):
            nearer = depths < column[pages]
            pages, depths = pages[nearer], depths[nearer]
            np.minimum.at(column, pages, np.minimum(depths, 255).astype(np.uint8))
            pages = np.unique(pages)
            self.columns.touch("depth", pages)
            states = self.columns["state"][pages]
            self.nearer.append(pages[states == _FOREIGN])
            for page in local_pages(pages[states == _OUT]):
                self._judge(page)
            pages, depths = self._below(pages) if self.scope.by_depth else (NO_PAGES, NO_PAGES)

    def _below(self, pages: Ids) -> tuple[Ids, Ids]:
        """The stored children of pages, and how deep they lie by this way."""
        found = [
            (page, children) for page in local_pages(pages) if (children := self.partition.children(page)) is not None
        ]
        if not found:
            return NO_PAGES, NO_PAGES
        depths = self.columns["depth"][[page for page, _ in found]].astype(np.int64) + 1
        below = np.concatenate([children for _, children in found]).astype(np.int64)
        return below, np.repeat(depths, [len(children) for _, children in found])

    # -- scope ---------------------------------------------------------------------------------------------------

    def follow_scope(self) -> None:
        """Judge again what a change of scope concerns: all pages after other rules, else those of the places added."""
        names = self.partition.hosts.names
        if len(self._places) != len(self.scope.places):
            added = self.scope.places - self._places
            self._places |= added
            self.partition.put(_PLACES, msgpack.packb(sorted(self._places)))
            if not self._rejudge:
                self._judge_again(np.array([self.scope.place_of_host(name) in added for name in names], np.bool_))
        if self._rejudge:
            self._judge_again(np.ones(len(names), np.bool_))
            self._rejudge = False

    def _judge_again(self, concerned: NDArray[np.bool_]) -> None:
        """Pages of the hosts concerned come into scope or leave it; sitemaps that robots.txt names stay exempt."""
        n = self.columns.n
        if n:
            pages = concerned[self.columns["host"][:n]] & (self.columns["state"][:n] != _FOREIGN)
            pages &= (self.columns["flags"][:n] & NAMED) == 0
            for page in local_pages(np.flatnonzero(pages)):
                self._judge(page)

    def _judge(self, page: LocalPage) -> None:
        """Bring one page's state in line with the scope. What was read before and is in scope again is due at once."""
        old = self.partition.states[page]
        outside = old in (_OUT, _BLOCKED)
        judged = self.scope.judge(self.partition.url(page), int(self.columns["depth"][page]))
        if judged is State.UNREAD and not outside:
            return
        if judged is State.UNREAD:
            row = self.partition.row(page)
            if row is not None and row.reads:
                judged = State.READ
                self.schedule.put_due(page, self._now)
        elif not outside:
            self.schedule.retire(page)
        self.partition.set_state(page, judged)
        for hook in self.hooks.judged:
            hook(page, self.partition.url(page))
