"""Folders whose pages are met on each other, hardly elsewhere: does anything speak for them?

Before: frontier.py has resolved the links of a turn, and some folder breeds (metadata/hosts.py, Standing). It was asked
for a name that nobody can have made, and has no such page: it may be a wiki, or a calendar without end.
After: what speaks for it counts like a page that others led to. A folder that has bred CLOSED times as many pages is of
poor standing, until enough speaks for it.

Endless pages lead on, to what lies next to them, and nowhere else. A folder that people made has

    an outside   pages elsewhere lead to pages of it that are known already, or its pages lead to new ones elsewhere
    a past       its pages lead back to pages as old as the elder half of it, which do not lead to them. What the page
                 that led to it shows, too, is a menu, or the way down to it, and says nothing
    ends         pages that lead to no unread page of it, and to none that is younger than themselves

Each page is vouched for once, and each that is read for the first time speaks once of every kind. Only pages of such
folders are looked at, and links to them: on a site of which no folder breeds all of this costs one look at a flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xyro.metadata.hosts import MENU
from xyro.metadata.partition import Partition
from xyro.metadata.states import FOLDER, State
from xyro.wire.ids import LocalPage, local_pages

if TYPE_CHECKING:
    from xyro.frontier.ledger import Spending

MOST_LINKS = 32
"""links of one page, back into its folder, that are looked at"""
REMEMBERED = 1 << 17
"""pages that were vouched for; when there are more all are forgotten, and may be vouched for again"""
_UNREAD = int(State.UNREAD)
Pages = NDArray[np.int64]


class Vouchers:
    """`hear` the pages of a turn whose links are resolved."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._vouched: set[int] = set()
        self._eldest: dict[int, int] = {}
        """by slot of a folder: its first page"""

    def hear(self, spending: Spending, before: int) -> None:
        """Count what the pages that were read first in this turn say. before: pages from this number on are new."""
        standing, folder = self.partition.standing, self.partition.columns[FOLDER]
        first = [
            (page, children.astype(np.int64))
            for page, children in zip(spending.pages, spending.children, strict=True)
            if page in spending.first_reads and page not in spending.redirects
        ]
        if not first:
            return
        pages = np.array([page for page, _ in first])
        children = np.concatenate([met for _, met in first])
        slots = folder[children]
        elsewhere = slots != np.repeat(folder[pages], [len(met) for _, met in first])
        self._vouch(children[elsewhere & (children < before) & standing.doubtful(slots)])
        for place in np.flatnonzero(standing.doubtful(folder[pages])).tolist():
            self._speak(*first[place], before)

    def _speak(self, page: LocalPage, children: Pages, before: int) -> None:
        """Count what a page of such a folder says for it."""
        standing, columns = self.partition.standing, self.partition.columns
        inside = columns[FOLDER][children] == columns[FOLDER][page]
        near, others = children[inside & (children != page)], children[~inside & (children >= before)]
        signs = min(int(np.count_nonzero(~standing.poor(others))), MENU)
        signs += not ((columns["state"][near] == _UNREAD) | (near > page)).any()
        standing.vouch(np.full(signs, columns[FOLDER][page]))
        self._vouch(self._elders(page, near[near < before][:MOST_LINKS]))

    def _vouch(self, pages: Pages) -> None:
        """Let pages be vouched for that nobody vouched for before."""
        fresh = [page for page in pages.tolist() if page not in self._vouched]
        if fresh:
            if len(self._vouched) > REMEMBERED:
                self._vouched.clear()
            self._vouched.update(fresh)
            self.partition.standing.vouch(self.partition.columns[FOLDER][np.array(fresh)])

    def _elders(self, page: LocalPage, near: Pages) -> Pages:
        """Of known pages of its folder that a page shows: those of the elder half, far from it, that were read: of
        others nobody knows whether they lead to it."""
        middle = (self._eldest_of(int(self.partition.columns[FOLDER][page])) + page) / 2
        near = near[self.partition.columns["state"][near] != _UNREAD]
        if not (near < middle).any():
            return near[:0]
        shown: list[NDArray[Any]] = []
        for each in local_pages(near):
            children = self.partition.children(each)
            if children is not None and (children == page).any():
                shown += [children, np.array([each])]
        elders = near[near < middle]
        return elders[~np.isin(elders, np.concatenate(shown))] if shown else elders

    def _eldest_of(self, slot: int) -> int:
        if slot not in self._eldest:
            columns = self.partition.columns
            self._eldest[slot] = int(np.argmax(columns[FOLDER][: columns.n] == slot))
        return self._eldest[slot]
