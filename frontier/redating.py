"""All pages dated anew, S and the population counted exactly, in slices: after a switch, and while importance settles.

After a switch of policy, bounds or bandwidth, and in folders each time that OPIC's clock has doubled (Doublings): a
page is dated when it is read, and the importance of its first read is that of a crawl that has hardly begun. Passes
over the pages, some hundred rows a turn, so that no turn is long:

    weigh    rows get the weight of the importance of now; the multiplier follows before the first page is dated
    count    pages before the cursor are in the new counts, those behind it are not yet: a page that is read meanwhile
             is counted where it then stands. When the pass ends the new counts replace the old ones, which serve till
             then

Nothing of it is stored: a crash in between begins both passes anew (Bandwidth.dump, Schedule.load).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from xyro.frontier.bandwidth import Bandwidth, RecountSums
from xyro.frontier.ledger import Ledger
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, State
from xyro.opic.importance import TICKS
from xyro.refresh.policy import weight
from xyro.wire.ids import LocalPage, local_pages

ROWS = 1024
"""rows a step: 13 to 19 ms"""
FIRST = 2.0
"""turnovers of settled flow at the first recount of a graph that has stopped growing"""
CLOSE = 0.02
"""a weight or an interval that moved by less is left as it is: each page dated anew lies in two folders until its old
date has passed"""
_READ = int(State.READ)
_COUNTED = (_READ, int(State.ERROR))
"""a page that failed temporarily keeps its place in S"""
Rewrite = Callable[[LocalPage, RefreshRow, RefreshRow], None]


class Doublings:
    """`passed` in each turn: has the settled part of OPIC's clock doubled since it last said so?

    The clock counts from the moment at which the crawl last outgrew itself (opic.importance.Window), as the evidence
    behind importance does. So a graph that grows without pause is never gone through for it.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.since = -1
        """ticks: what the doublings are counted from"""
        self.next = 0
        """ticks at the next one"""

    def passed(self) -> bool:
        now, since = self._ledger.clock.ticks, self._ledger.window.since
        if since != self.since:
            self.since, self.next = since, since + int(FIRST * TICKS)
        if now < self.next:
            return False
        self.next = since + 2 * (now - since)
        return True

    def dump(self) -> list[int]:
        return [self.since, self.next]

    def load(self, state: Sequence[int] | None) -> None:
        """None: a directory from before there were any; its pages are dated anew at once."""
        self.since, self.next = state or (self._ledger.window.since, 0)


class Recount:
    """`step` in each turn, until it says that it is done. weigh: by the importance of now, not that of each row."""

    def __init__(
        self, partition: Partition, bandwidth: Bandwidth, ledger: Ledger, rewrite: Rewrite, weigh: bool = False
    ) -> None:
        self.partition = partition
        self.bandwidth = bandwidth
        self.ledger = ledger
        self.rewrite = rewrite
        self._weighed = 0 if weigh else partition.columns.n
        """pages before it are weighed, those born since the pass began with the importance of now"""
        self._pages = partition.columns.n
        self._follows = weigh
        """a date that stands nearly where it would be put is left as it is"""
        bandwidth.start_counting()

    def step(self) -> list[tuple[LocalPage, float]]:
        """The next pages whose date changes, and their new dates (seconds since 1970). Within a commit group."""
        if self._weighed < self._pages:
            self._weigh()
            return []
        counting = self.bandwidth.counting
        assert counting is not None, "step follows the constructor, until done"
        stop = min(counting.cursor + ROWS, self.partition.columns.n)
        pages = self._in(counting.cursor, stop, _COUNTED)
        counting.cursor = stop
        dated = [(page, self._look(page, counting)) for page in local_pages(pages)]
        if stop == self.partition.columns.n:
            self.bandwidth.counted()
        return [(page, due) for page, due in dated if due]

    @property
    def done(self) -> bool:
        return self.bandwidth.counting is None

    def _in(self, start: int, stop: int, states: tuple[int, ...]) -> NDArray[np.int64]:
        """Pages of a slice that are in one of these states."""
        found: NDArray[np.int64] = np.flatnonzero(np.isin(self.partition.columns["state"][start:stop], states)) + start
        return found

    def _weigh(self) -> None:
        """The next slice of the first pass."""
        stop = min(self._weighed + ROWS, self._pages)
        pages = self._in(self._weighed, stop, (_READ,))
        self._weighed = stop
        worths = self.ledger.importance(pages) * self.partition.standing.worth(pages, self.partition.children)
        for page, importance in zip(local_pages(pages), worths.tolist(), strict=True):
            row = self.partition.row(page)
            if row is None or not (row.pace and row.weight and 0.0 < importance < math.inf):
                continue
            heavy = weight(importance, row.pace)
            if abs(heavy - row.weight) > CLOSE * row.weight:
                self.rewrite(page, row, msgspec.structs.replace(row, weight=heavy))

    def _look(self, page: LocalPage, counting: RecountSums) -> float:
        """Count a page; its date by the policy of now, 0.0 where it has that (nearly), or it is another's to say."""
        row = self.partition.row(page)
        if row is None or not row.rate:
            return 0.0
        if self.partition.states[page] != _READ:
            counting.add(row.weight, row.pace)
            return 0.0
        importance = row.weight * row.weight / row.pace if row.weight else self._importance(page)
        interval = self.bandwidth.interval(importance, row.pace, row.belief)
        heavy = 0.0 if interval.term == "importance" else row.weight or weight(importance, row.pace)
        counting.add(row.weight, row.pace)
        if heavy != row.weight:  # counted as it was, so that both counts hear of it
            self.rewrite(page, row, msgspec.structs.replace(row, weight=heavy))
        if self.partition.flags[page] & HASTENED:
            return 0.0
        wait = self.bandwidth.wait(interval, page, row.reads - 1)
        due = row.last_read + wait
        unmoved = self._follows and abs(due - self.partition.columns["due"][page]) <= CLOSE * wait
        return 0.0 if unmoved else due

    def _importance(self, page: LocalPage) -> float:
        found = float(self.ledger.importance(np.array([page], np.int64))[0])
        return found if math.isfinite(found) else 0.0
