"""Puts the pages of a partition into the classes of the virtual page, which pays each class by its weight ([[focus]]).

A page's class (opic/focus.py) is twice the number of the [[focus]] table that it fits, 0 for none, and one more while
it waits to be read for the first time. Patterns and hosts decide when a page is minted, kinds when it is read, words
when a link with such words is met, `leads_to` when one of its links is found to be such a document (interest.py); the
class lies in the column `flags`. The ledger pays the classes (frontier/ledger.py, by frontier/terms.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import FocusTable as Table
from xyro.configs.schema import Settings
from xyro.frontier.batch import Settled
from xyro.frontier.ledger import Spending
from xyro.frontier.scope import globs
from xyro.frontier.terms import link_words, terms_of
from xyro.metadata import rows
from xyro.metadata.columns import Columns
from xyro.metadata.states import CLASS_SHIFT, KIND_MASK, KIND_SHIFT, LEADS, QUERY, WORDED, State
from xyro.metadata.visits import Spend
from xyro.opic.cash import LINK
from xyro.plugins.focus.interest import Interest
from xyro.wire.ids import LocalPage, local_pages, page_range
from xyro.wire.messages import LINK_FOCUSED, LINK_HINT, LINK_NOFOLLOW, Kind, Links, LoadReport
from xyro.wire.urls import host_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

Ids = NDArray[np.int64]
_UNREAD, _FOREIGN = int(State.UNREAD), int(State.FOREIGN)
_UNFOLLOWED = LINK_NOFOLLOW | LINK_HINT
NONE: frozenset[str] = frozenset()
_NO_QUERY = ~QUERY & 0xFFFF_FFFF
_UNASKED = ~(QUERY | WORDED) & 0xFFFF_FFFF


class _TableFilter:
    """A test whether a page fits a [[focus]] table: it meets every condition that the table names."""

    def __init__(self, table: Table) -> None:
        self.pattern = globs(table.patterns)
        self.hosts = frozenset(table.hosts)
        self.below = tuple(host[1:] for host in table.hosts if host.startswith("*."))
        self.kinds = frozenset(Kind[kind] for kind in table.kinds)
        self.words, self.leads = bool(table.words), bool(table.leads_to)

    def __call__(self, url: str, host: str, kind: int, flags: int) -> bool:
        if (self.words and not flags & WORDED) or (self.leads and not flags & LEADS):
            return False
        if self.kinds and kind not in self.kinds and not (self.leads and kind == Kind.UNKNOWN):
            return False
        if self.hosts and host not in self.hosts and not host.endswith(self.below):
            return False
        return self.pattern is None or bool(self.pattern(url))


class Focus:
    """The settings, made ready. `on`: they ask something of pages; `terms`: what they ask of cash."""

    def __init__(self, settings: Settings) -> None:
        tables = settings.focus
        self.terms = terms_of(settings)
        self.tables = [_TableFilter(table) for table in tables] if self.terms.by_class else []
        self.words = link_words(settings)
        self.formats = frozenset(form for table in tables for form in table.leads_to) if self.terms.by_class else NONE
        """of documents that pages are to lead to"""
        self.queries = self.terms.query != LINK
        self.on = self.terms.by_class or self.queries
        asked = [(table.patterns, table.hosts, table.kinds, bool(table.words), table.leads_to) for table in tables]
        self.text = repr((asked, self.terms.by_class, self.queries)) if self.on else ""
        """what decides classes and flags: another text on a resume applies to all known pages"""

    def slot(self, url: str, kind: int, flags: int) -> int:
        """Number of the first table that fits, 1 ...; 0: none does. flags: WORDED, LEADS."""
        if self.tables:
            host = host_of(url)
            for number, fits in enumerate(self.tables, 1):
                if fits(url, host, kind, flags):
                    return number
        return 0


class PageClasses:
    """Classes of one partition's pages. Always holds between groups: a page's odd class says that it is UNREAD."""

    def __init__(self, frontier: Frontier, focus: Focus) -> None:
        """Register with the node's hooks. With a focus that is off it only undoes what another one did before."""
        self.partition, self.ledger, self.focus = frontier.partition, frontier.ledger, focus
        self.documents = frontier.loads.documents
        self.pages, self.outbox, self.hooks = frontier.pages, frontier.outbox, frontier.hooks
        self.interest = Interest(frontier.partition, focus.formats)
        self._worded: list[str] = []
        self._moved: dict[LocalPage, str] = {}
        self._other_words = False
        self.hooks.recover.append(self.recover)
        self.hooks.keep("focus", self.dump)
        if focus.on:
            self.hooks.born.append(self.born)
            self.hooks.judged.append(self.moved)
            self.hooks.visited.append(self.visited)
            self.hooks.settled.append(self.settled)
        if self.interest.on:
            self.hooks.linked.append(self.linked)

    def dump(self) -> list[str]:
        return [self.focus.text, " ".join(sorted(self.focus.words))]

    def recover(self) -> None:
        """Compare with the rules that made the stored classes; other rules make them anew in the next turn."""
        text, words = self.hooks.stored.get("focus", ("", ""))
        now_text, now_words = self.dump()
        self._other_words = words != now_words
        if self._other_words or text != now_text:
            self.hooks.renew.append(self.renew)

    def born(self, first: LocalPage, urls: Sequence[str]) -> None:
        """Flags of pages just minted, before the ledger knows of them."""
        states = self.partition.states
        made = [
            0 if states[page] == _FOREIGN else self._class(page, url) << CLASS_SHIFT | self._query(url)
            for page, url in zip(page_range(first, len(urls)), urls, strict=True)
        ]
        self.partition.columns["flags"][first : first + len(made)] = made

    def moved(self, page: LocalPage, url: str) -> None:
        """The page was read, or another scope judged it: its class may change in this group."""
        self._moved[page] = url

    def visited(self, settled: Sequence[Settled], _: Iterable[LoadReport]) -> None:
        """Links with words make the pages they lead to known for it; a page read may be a document no more."""
        for page in settled:
            report = page.report
            if page.visit.spend is Spend.LINKS and not report.location and not report.nofollow:
                self.show(report.links)
            if self.interest.on:
                self.interest.settled(page.page, report, page.row is None or not page.row.reads)

    def linked(self, spending: Spending, before: int) -> None:
        """Pages were met by links, documents were loaded, pages spend: some of them lead to what is sought."""
        self.interest.introduced(spending, before)
        self.interest.loaded(spending.loaded)
        self.interest.spent(spending.pages, spending.children)

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Move the pages that were read, judged or met by links' words in this turn to their class at the virtual
        page."""
        for page in settled:
            self.moved(page.page, page.report.url)
        self.pages.nearer.append(self._follow(self.outbox.take_marked()))

    def show(self, found: Links) -> None:
        """Links of a page: those with words make the pages they lead to known for it."""
        if self.focus.words and max(found.flags, default=0) >= LINK_FOCUSED:
            pairs = zip(found.urls, found.flags, strict=True)
            self._worded += [url for url, flag in pairs if flag & LINK_FOCUSED and not flag & _UNFOLLOWED]

    def _follow(self, marked: Iterable[Ids]) -> Ids:
        """Mark what links with words led to, here and from other partitions (`marked`), and put pages into their
        classes. Returns the marked entries of other partitions, whose transfers are marked."""
        partition = self.partition
        pages = np.concatenate([partition.url_index.find(self._worded), *marked]).astype(np.int64)
        foreign = partition.columns["state"][pages] == _FOREIGN
        self.outbox.mark({partition.url(page) for page in local_pages(np.unique(pages[foreign]))})
        for page in local_pages(np.unique(pages[~foreign])):
            if not partition.flags[page] & WORDED:
                partition.set_flag(page, WORDED)
                self._moved.setdefault(page, partition.url(page))
        for page in self.interest.take_changed():
            self._moved.setdefault(page, partition.url(page))
        self._settle()
        self._worded = []
        return np.unique(pages[foreign])

    def _settle(self) -> None:
        moved, self._moved = self._moved, {}
        if self.focus.terms.by_class:
            classes = [self._class(page, url) for page, url in moved.items()]
            self.ledger.classify(np.array(list(moved), np.int64), np.array(classes, np.int64))

    def renew(self) -> None:
        """All pages by the rules of now. Nothing of this group may have touched a page."""
        columns, n = self.partition.columns, self.partition.columns.n
        own = columns["state"][:n] != _FOREIGN
        flags: NDArray[np.uint32] = columns["flags"][:n] & np.uint32(_UNASKED if self._other_words else _NO_QUERY)
        _write(columns, flags)
        self.interest.renew(self._format)
        flags = columns["flags"][:n].copy()
        classes = (
            np.where(columns["state"][:n] == _UNREAD, 1, 0) if self.focus.terms.by_class else np.zeros(n, np.int64)
        )
        if self.focus.tables or self.focus.queries:
            for key, value in self.partition.scan(rows.MAP.prefix):
                page, url = rows.MAP.split(key), rows.unpack_map(value)
                if page < n and own[page]:
                    classes[page], flags[page] = self._class(page, url), int(flags[page]) | self._query(url)
            _write(columns, flags)
        self.ledger.classify(np.flatnonzero(own), classes[own])
        self._other_words = False

    def _class(self, page: LocalPage, url: str) -> int:
        flags = self.partition.flags[page]
        slot = self.focus.slot(url, (flags & KIND_MASK) >> KIND_SHIFT, flags)
        return 2 * slot + (self.partition.states[page] == _UNREAD) if self.focus.terms.by_class else 0

    def _format(self, page: LocalPage) -> str:
        stored = self.documents.latest(page)
        return stored.format if stored is not None else ""

    def _query(self, url: str) -> int:
        return QUERY if self.focus.queries and "?" in url else 0


def _write(columns: Columns, flags: NDArray[np.uint32]) -> None:
    """The flags of all pages; those that differ are marked as changed."""
    changed = np.flatnonzero(columns["flags"][: len(flags)] != flags)
    columns["flags"][changed] = flags[changed]
    columns.touch("flags", changed)
