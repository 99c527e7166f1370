"""Interest online: which pages lead to documents that a [[focus]] table seeks (`leads_to`), as the crawl finds them.

P1 5.2 ranks HTML pages by how surely they lead to XML, offline over the inverse of the link graph (`xyro rank --method
interest`). Here a newly found document shares a bonus back to its parents: they are of another class at the virtual
page (opic/focus.py), which pays them more, so that they are due sooner; and so are the unread pages beside it, those
that a parent shows too, which are read sooner. The total of the cash stays exact, for only the virtual page's shares
change.

No inverse of the links is kept. Whoever first showed a page is remembered (column `parent`), and hears of it as soon as
the page is loaded; every other parent is looked at when it spends over its links, which it does the oftener the richer
it is. Entries of other partitions are never SOUGHT here: a link over partitions shares nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.ledger import Spending
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import KIND_MASK, KIND_SHIFT, LEADS, SOUGHT, State
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import Kind, LoadReport, LoadState, PageReport

Ids = NDArray[np.int64]
PARENT = "parent"
_NO_PAGES: Ids = np.empty(0, np.int64)
_MARKUP = (Kind.XML, Kind.DTD)
_UNMARKED = ~(SOUGHT | LEADS) & 0xFFFF_FFFF
_UNREAD = int(State.UNREAD)


class Interest:
    """Flags SOUGHT and LEADS of one partition's pages; the latter of a page that was read if it spent last over a link
    to a SOUGHT one, of an unread page if a page that LEADS showed it. `changed`: whose LEADS changed in this group.
    """

    def __init__(self, partition: Partition, formats: frozenset[str]) -> None:
        """`formats`: what `leads_to` names; none: off, and nothing here is to be called but `renew`."""
        self.partition, self.formats = partition, formats
        self.columns = partition.columns
        self.on = bool(formats)
        self.changed: set[LocalPage] = set()
        if self.on:
            self.columns.add(PARENT, np.uint32)
        elif PARENT in self.columns:
            self.columns.drop(PARENT)

    def introduced(self, spending: Spending, before: int) -> None:
        """Pages from `before` on are new in this group: whoever is first showed them."""
        if not spending.open:
            return
        shown = [spending.children[index] for index, _, _ in spending.open]
        found = np.concatenate(shown).astype(np.int64)
        parents = np.repeat([spending.pages[index] for index, _, _ in spending.open], [len(links) for links in shown])
        new = np.flatnonzero(found >= before)[::-1]
        self.columns[PARENT][found[new]] = (parents[new] + 1).astype(np.uint32)
        self._lead(found[new][self.columns["flags"][parents[new]] & LEADS != 0])

    def loaded(self, loads: Sequence[tuple[LocalPage, LoadReport]]) -> None:
        """Loads that ended in this group, by page."""
        for page, report in loads:
            wanted = report.state is not LoadState.FAILED and report.format in self.formats
            if wanted == bool(self.partition.flags[page] & SOUGHT):
                continue
            if not wanted:
                self.partition.clear_flag(page, SOUGHT)
                continue
            self.partition.set_flag(page, SOUGHT)
            parent = LocalPage(int(self.columns[PARENT][page]) - 1)
            if parent >= 0 and self._mark(parent, leads=True):
                shown = self.partition.children(parent)
                self._lead(_NO_PAGES if shown is None else shown.astype(np.int64))

    def settled(self, page: LocalPage, report: PageReport, first: bool) -> None:
        """An order is settled, of a page that was not read before if it is the `first` one: it may be a document no
        more, or no page. To be called before its links are `introduced` or `spent`."""
        flags = self.partition.flags[page]
        if flags & LEADS and first and report.status:
            self._mark(page, leads=False)
        if flags & (SOUGHT | LEADS) and ((report.error and report.final) or report.location):
            self.partition.clear_flag(page, SOUGHT)
            self._mark(page, leads=False)
        elif flags & SOUGHT and report.status == 200 and report.kind not in _MARKUP:
            self.partition.clear_flag(page, SOUGHT)

    def spent(self, pages: Sequence[LocalPage], children: Sequence[NDArray[Any]]) -> None:
        """Pages that spend in this group, and over what."""
        if not pages:
            return
        flags, ids = self.columns["flags"], np.array(pages, np.int64)
        degrees = np.fromiter(map(len, children), np.int64, len(children))
        found, sources = np.concatenate(children).astype(np.int64), np.repeat(np.arange(len(ids)), degrees)
        leads = np.bincount(sources[flags[found] & SOUGHT != 0], minlength=len(ids)) > 0
        self._lead(found[leads[sources]])
        other = (degrees > 0) & (leads != (flags[ids] & LEADS != 0))
        for place in np.flatnonzero(other).tolist():
            self._mark(pages[place], leads=bool(leads[place]))

    def take_changed(self) -> set[LocalPage]:
        changed, self.changed = self.changed, set()
        return changed

    def renew(self, format_of: Callable[[LocalPage], str]) -> None:
        """Other formats are sought: mark all pages anew, by what is stored of them and of their links."""
        columns, n = self.columns, self.columns.n
        flags: NDArray[np.uint32] = columns["flags"][:n] & np.uint32(_UNMARKED)
        if self.on:
            kinds = (flags & KIND_MASK) >> KIND_SHIFT
            for page in local_pages(np.flatnonzero(np.isin(kinds, _MARKUP))):
                flags[page] |= SOUGHT * (format_of(page) in self.formats)
            self._follow_links(flags)
        changed = np.flatnonzero(columns["flags"][:n] != flags)
        columns["flags"][changed] = flags[changed]
        columns.touch("flags", changed)

    def _follow_links(self, flags: NDArray[np.uint32]) -> None:
        """LEADS by the stored links of all pages."""
        unread = self.columns["state"][: len(flags)] == _UNREAD
        for key, value in self.partition.scan(rows.LINK.prefix):
            page, children = rows.LINK.split(key), rows.unpack_links(value)
            if page < len(flags) and (flags[children] & SOUGHT).any():
                flags[page] |= LEADS
                flags[children[unread[children]]] |= LEADS

    def _mark(self, page: LocalPage, *, leads: bool) -> bool:
        """Set or clear the flag LEADS of a page; tell whether it changed."""
        if leads == bool(self.partition.flags[page] & LEADS):
            return False
        (self.partition.set_flag if leads else self.partition.clear_flag)(page, LEADS)
        self.changed.add(page)
        return True

    def _lead(self, shown: Ids) -> None:
        """A page that LEADS shows these."""
        unread = self.columns["state"][shown] == _UNREAD
        for page in local_pages(np.unique(shown[unread & (self.columns["flags"][shown] & LEADS == 0)])):
            self._mark(page, leads=True)
