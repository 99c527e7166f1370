"""URLs become pages: minted when first met, as deep as the shortest way to them, read if the scope says so.

A page's state is UNREAD, OUT, BLOCKED or FOREIGN by what the scope says of its URL at its depth. Both change: a shorter
way is found (and so on down the stored links), a place is added, a resumed crawl has other rules. Then the pages that
this concerns are judged again: those that come into scope are read, those that leave it are read no more.

A link in scope becomes a page when the standing of its host allows (waiting_links.py); until then it has no id and
mints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import FetchSettings, StandingSettings
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import NO_PAGES, Ids, Ledger, Spending
from xyro.frontier.revisit_dates import Schedule
from xyro.frontier.scope import Scope
from xyro.frontier.scope_change import ScopeChange
from xyro.frontier.waiting_links import WaitingLinks
from xyro.metadata import rows
from xyro.metadata.columns import distinct
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.wire.ids import LocalPage, local_pages, page_range
from xyro.wire.urls import authority, host_of, origin, site_of

_PLACES = rows.META.key("places")
_OUT, _BLOCKED, _FOREIGN = int(State.OUT), int(State.BLOCKED), int(State.FOREIGN)


class Pages:
    """The pages of one partition; `begin` is called in each turn.

    Invariant, between turns: a page is OUT or BLOCKED as the scope judges it at its depth, unless it was exempt, or a
    change of scope has not reached it yet (scope_change.py).
    """

    def __init__(
        self,
        partition: Partition,
        scope: Scope,
        scope_change: ScopeChange,
        fetch: FetchSettings,
        ledger: Ledger,
        hooks: Hooks,
        schedule: Schedule,
        standing: StandingSettings,
    ) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.scope = scope
        self.ledger = ledger
        self.hooks = hooks
        self.schedule = schedule
        self.waiting_links = WaitingLinks(partition, scope, ledger, standing)
        self.heritage = self.waiting_links.heritage
        self.touched: list[Ids] = []
        """pages that URLs were resolved to in this turn"""
        self.nearer: list[Ids] = []
        """pages of other partitions to which a shorter way was found in this turn"""
        self.slices: list[tuple[LocalPage, list[str]]] = []
        """pages of whose waiting links some were looked at in this turn, and these"""
        self.admitted: list[tuple[LocalPage, NDArray[np.uint32]]] = []
        """pages of whose waiting links some became pages in this turn, or were by then, and these"""
        self._partitions: int = partition.facts["partitions"]
        self._bounds = repr((fetch.only_net, fetch.allow_private, fetch.ports))
        self._places: set[str] = set()
        """places of the scope by which the pages here were judged; stored"""
        self.scope_change = scope_change
        self._now = 0

    @property
    def rules(self) -> str:
        """The rules that decide, beside the places, which URLs are read: other rules on a resume apply to all known
        pages."""
        return self.scope.text + self._bounds

    def recover(self, rules: str) -> None:
        """Go on where pages were judged by these rules."""
        self.scope_change.recover()
        if rules != self.rules:
            self.scope_change.begin(None)
        self.waiting_links.recover()
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
        self._now, self.waiting_links.now = int(now), now
        self.touched, self.nearer, self.slices, self.admitted = [], [], [], []
        self.follow_scope()

    # -- URLs ----------------------------------------------------------------------------------------------------

    def resolve(
        self,
        urls: Sequence[str],
        depths: Sequence[int] | Ids,
        exempt: bool = False,
        parents: Ids | None = None,
    ) -> Ids:
        """Pages of URLs; unknown ones are minted at the least depth given. exempt: scope does not hold for them.
        parents: the pages that show them; then those that have to wait are -1."""
        pages = np.array(self.partition.url_index.find(urls), np.int64)
        unknown = np.flatnonzero(pages < 0)
        if len(unknown):
            deep = np.asarray(depths, np.int64)[unknown].tolist()
            new: dict[str, int] = {}
            if parents is not None:
                self._admit(urls, unknown.tolist(), deep, parents, new)
            else:
                for i, depth in zip(unknown.tolist(), deep, strict=True):
                    url = urls[i]
                    new[url] = min(depth, new.get(url, depth))
                    is_new = authority(url) not in self.partition.hosts.numbers
                    if is_new and (exempt or self.may_be_read(url, depth)):  # only seeds grant credit for new hosts
                        self.partition.introductions.inherit(site_of(host_of(url)), 0)
            if new:
                first = self._mint(list(new), list(new.values()), exempt)
                numbers = dict(zip(new, page_range(first, len(new)), strict=True))
                pages[unknown] = [numbers.get(urls[i], -1) for i in unknown.tolist()]
        self.touched.append(pages[pages >= 0])
        return pages

    def _admit(
        self, urls: Sequence[str], unknown: list[int], depths: list[int], parents: Ids, new: dict[str, int]
    ) -> None:
        """Add the unknown URLs that become pages now to `new`, with their depths."""
        admits, is_full = self.waiting_links.admits, self.waiting_links.is_full
        self.waiting_links.begin()
        waiting: set[str] = set()
        full: set[str] = set()
        for i, depth in zip(unknown, depths, strict=True):
            url = urls[i]
            if url in new:
                new[url] = min(depth, new[url])
            elif (site := origin(url)) not in full and url not in waiting:  # tens of thousands of one page may wait
                if admits(url, depth, LocalPage(int(parents[i]))):
                    new[url] = depth
                elif is_full(url):
                    full.add(site)
                else:
                    waiting.add(url)

    def resolve_links(self, spending: Spending, store: bool) -> None:
        """Turn the URL runs of the pages that spend into children, and store these; the links that wait, too."""
        runs = spending.open
        owners = [spending.pages[index] for index, _, _ in runs]
        lengths = [stop - start for _, start, stop in runs]
        depths = np.repeat(self.columns["depth"][owners].astype(np.int64) + 1, lengths)
        found = self.resolve(spending.urls, depths, parents=np.repeat(np.array(owners, np.int64), lengths))
        whole = bool((found >= 0).all())
        numbers = found.astype(np.uint32)
        for run, (index, start, stop) in enumerate(runs):
            page, children = spending.pages[index], numbers[start:stop]
            if not whole:
                known = found[start:stop] >= 0
                children = children[known]
            rest = spending.rest.get(run, ())
            if not whole or rest or page in self.waiting_links.counts:
                late = [spending.urls[start + i] for i in np.flatnonzero(found[start:stop] < 0).tolist()]
                self.waiting_links.put(page, late, rest)
            spending.children[index] = children
            if store:
                self.partition.put(rows.LINK.key(page), rows.pack_links(children))
        if self.scope.by_depth:
            self.shorten(found[found >= 0], depths[found >= 0])

    def admit(self, store: bool) -> None:
        """Let links that have waited become pages, as far as the standing of their hosts allows."""
        for page, place in self.waiting_links.ready():
            urls = self.waiting_links.look(page, place)
            self.slices.append((page, urls))
            depth = int(self.columns["depth"][page]) + 1
            found = self.resolve(urls, [depth] * len(urls), parents=np.full(len(urls), page))
            admitted = found[found >= 0].astype(np.uint32)
            late = [url for url, number in zip(urls, found.tolist(), strict=True) if number < 0]
            self.waiting_links.put_back(page, place, late)
            self.admitted.append((page, admitted))
            if len(admitted) and store:
                children = self.partition.children(page)
                whole = admitted if children is None else np.concatenate([children, admitted])
                self.partition.put(rows.LINK.key(page), rows.pack_links(whole))
            if self.scope.by_depth:
                self.shorten(admitted.astype(np.int64), np.full(len(admitted), depth))

    def receive(self, urls: list[str], depths: list[int]) -> Ids:
        """Pages that another partition has news or cash of."""
        pages = self.resolve(urls, depths)
        if self.scope.by_depth:
            self.shorten(pages, np.array(depths, np.int64))
        return pages

    def full(self, hosts: Iterable[int]) -> set[int]:
        """Return those of the hosts that have as many unread pages as they may."""
        return set(self.waiting_links.full(hosts))

    def half_free(self, host: int) -> bool:
        """Tell whether half of the places of a host are free."""
        return self.waiting_links.half_free(host)

    def answered(self, owner: int, full: Iterable[str], free: Iterable[str], now: float) -> None:
        """Another partition has what it was told, and says which of its hosts are full, and which are no more."""
        self.waiting_links.answered(owner, full, free, now)

    def may_be_read(self, url: str, depth: int) -> bool:
        """Tell whether scope lets a page in that another partition met."""
        return self.scope.judge(url, depth) is State.UNREAD

    def _mint(self, urls: list[str], depths: list[int], exempt: bool) -> LocalPage:
        judge_url = self.scope.judge
        hosts = [self.partition.host(authority(url)) for url in urls]
        own = self.partition.number
        owners = self.partition.owners()[hosts].tolist() if self._partitions > 1 else [own] * len(hosts)
        states = []
        for url, depth, owner in zip(urls, depths, owners, strict=True):
            if owner != own:
                states.append(State.FOREIGN)
            elif exempt:
                states.append(self.scope.judge_by_guard(url))
            else:
                states.append(judge_url(url, depth))
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
            pages = distinct(pages)
            self.columns.touch("depth", pages)
            states = self.columns["state"][pages]
            self.nearer.append(pages[states == _FOREIGN])
            for page in local_pages(pages[states == _OUT]):
                self.judge(page)
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
        if len(self._places) != len(self.scope.places):
            added = self.scope.places - self._places
            self._places |= added
            self.partition.put(_PLACES, msgpack.packb(sorted(self._places)))
            self.scope_change.begin(added)
        if self.scope_change.pending:
            self.scope_change.step()

    def judge(self, page: LocalPage) -> None:
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
