"""A scope that has changed reaches the known pages in slices, a turn each: millions of them take minutes.

Pages before the cursor are as the scope of now says, those behind it as that of before; none of these is ordered
without being judged (`settle`). What is left is stored with each commit group: a crash, or a stop, loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.frontier.scope import Scope
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import NAMED, State
from xyro.wire.ids import LocalPage, local_pages

JUDGED = 1_000
"""most pages that one turn judges: some 20 ms"""
WINDOW, WINDOWS = 1 << 17, 8
"""pages that are looked through at once for those of the places concerned, and how often in a turn: 5 ms"""
_STORED = rows.META.key("scope change")
_FOREIGN = int(State.FOREIGN)
Ids = NDArray[np.int64]


class ScopeChange:
    """The pages of one partition that a change of scope has not reached. `step` within a commit group."""

    def __init__(self, partition: Partition, scope: Scope, judge: Callable[[LocalPage], None]) -> None:
        self.partition = partition
        self.scope = scope
        self._judge = judge
        self._next = self._end = 0
        self.pending = False
        """pages are left"""
        self._places: set[str] | None = None
        """those whose pages are judged; None: all pages are"""
        self._concerned: dict[int, bool] = {}
        """by host, of those that were asked for"""

    def begin(self, places: Iterable[str] | None) -> None:
        """Pages of these places, or all pages, are to be judged again; with those that are left."""
        if self.pending:
            places = None if places is None or self._places is None else {*places, *self._places}
        self._begin(0, self.partition.columns.n, places)

    def _begin(self, first: int, end: int, places: Iterable[str] | None) -> None:
        self._next, self._end, self.pending = first, end, first < end
        self._places = None if places is None else set(places)
        self._concerned.clear()

    def recover(self) -> None:
        """Go on where the last commit group was."""
        if stored := self.partition.get(_STORED):
            self._begin(*msgpack.unpackb(stored))

    def step(self) -> None:
        """Judge the next pages, and store what is left."""
        room = JUDGED
        for _ in range(WINDOWS):
            stop = min(self._next + WINDOW, self._end)
            pages = self._among(np.arange(self._next, stop))
            if len(pages) > room:
                pages = pages[:room]
                stop = int(pages[-1]) + 1
            for page in local_pages(pages):
                self._judge(page)
            room, self._next, self.pending = room - len(pages), stop, stop < self._end
            if not room or not self.pending:
                break
        if self.pending:
            places = None if self._places is None else sorted(self._places)
            self.partition.put(_STORED, msgpack.packb([self._next, self._end, places]))
        else:
            self.partition.delete(_STORED)

    def settle(self, pages: Iterable[LocalPage]) -> None:
        """Judge those of some pages that are left, now. Within a commit group."""
        left = [page for page in pages if self._next <= page < self._end]
        for page in local_pages(self._among(np.array(left, np.int64))) if left else ():
            self._judge(page)

    def _among(self, pages: Ids) -> Ids:
        """Choose the pages that are judged: not those that robots.txt names, whatever the scope is."""
        columns = self.partition.columns
        chosen = (columns["state"][pages] != _FOREIGN) & ((columns["flags"][pages] & NAMED) == 0)
        if self._places is not None:
            chosen &= self._of_places(columns["host"][pages])
        found: Ids = pages[chosen]
        return found

    def _of_places(self, hosts: NDArray[np.uint32]) -> NDArray[np.bool_]:
        count = len(self.partition.hosts)
        here, found = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        here[hosts] = True
        places, names = self._places or set(), self.partition.hosts.names
        for host in np.flatnonzero(here).tolist():
            concerned = self._concerned.get(host)
            if concerned is None:
                concerned = self._concerned[host] = self.scope.place_of_host(names[host]) in places
            found[host] = concerned
        return found[hosts]
