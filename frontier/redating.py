"""All pages dated anew, S and the population counted exactly, in slices: after a switch, and while beliefs settle.

After a switch of policy, bounds or bandwidth, and in folders each time that OPIC's clock, or the rate of pages of which
nothing is known, has doubled (Doublings): a page is dated when it is read, and the importance and the prior of its
first read are those of a crawl that has hardly begun. Passes over the pages, some hundred rows a turn, so that no turn
is long:

    weigh    rows get the importance and the priors of now; the multiplier follows before the first page is dated
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
from xyro.frontier.change_model import ChangeModel
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import Ledger
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, State
from xyro.opic.importance import TICKS
from xyro.refresh.policy import weight
from xyro.wire.ids import LocalPage, local_pages

ROWS = 1024
"""rows a step: 13 to 19 ms, some 30 where all are believed anew"""
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
    """`passed` in each turn: has the settled part of OPIC's clock doubled since it last said so, or the rate of pages
    of which nothing is known doubled or halved?

    The clock counts from the moment at which the crawl last outgrew itself (opic.importance.Window), as the evidence
    behind importance does. So a graph that grows without pause is never gone through for it. Each pass is a step of
    the EM algorithm, too, for pages that were read once (refresh/rate_belief.py): a few reads that show what a
    population is like are believed of the rest of it at once, not when each of these is read again.
    """

    def __init__(self, ledger: Ledger, change_model: ChangeModel) -> None:
        self._ledger = ledger
        self._change_model = change_model
        self.since = -1
        """ticks: what the doublings are counted from"""
        self.next = 0
        """ticks at the next one"""
        self.rate = change_model.prior_rate
        """changes a day by which pages of which nothing is known are dated"""

    def passed(self) -> bool:
        now, since, rate = self._ledger.clock.ticks, self._ledger.window.since, self._change_model.prior_rate
        if since != self.since:
            self.since, self.next = since, since + int(FIRST * TICKS)
        if now < self.next and 0.5 * self.rate < rate < 2.0 * self.rate:
            return False
        if now >= self.next:
            self.next = since + 2 * (now - since)
        self.rate = rate
        return True

    def dump(self) -> list[float]:
        return [self.since, self.next, self.rate]

    def load(self, state: Sequence[float] | None) -> None:
        """None: a directory from before there were any; its pages are dated anew at once."""
        since, following, *rate = state or (self._ledger.window.since, 0)
        self.since, self.next = int(since), int(following)
        self.rate = rate[0] if rate else self._change_model.prior_rate  # an older directory does not tell it


class Recount:
    """`step` in each turn, until it says that it is done. weigh: by importance and priors of now, not those of rows."""

    def __init__(
        self,
        partition: Partition,
        bandwidth: Bandwidth,
        ledger: Ledger,
        hooks: Hooks,
        change_model: ChangeModel,
        rewrite: Rewrite,
        weigh: bool = False,
    ) -> None:
        self.partition = partition
        self.bandwidth = bandwidth
        self.ledger = ledger
        self.hooks = hooks
        self.change_model = change_model
        self.rewrite = rewrite
        self._weighed = 0 if weigh else partition.columns.n
        """pages before it are weighed, those born since the pass began with the importance of now"""
        self._pages = partition.columns.n
        self._follows = weigh
        """a date that stands nearly where it would be put is left as it is"""
        bandwidth.start_counting()

    def step(self, now: float) -> list[tuple[LocalPage, float]]:
        """The next pages whose date changes, and their new dates (seconds since 1970). Within a commit group."""
        if self._weighed < self._pages:
            self._weigh(now)
            return []
        counting = self.bandwidth.counting
        assert counting is not None, "step follows the constructor, until done"
        stop = min(counting.cursor + ROWS, self.partition.columns.n)
        pages = self._in(counting.cursor, stop, _COUNTED)
        counting.cursor = stop
        dated = [(page, self._look(page, counting, now)) for page in local_pages(pages)]
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

    def _weigh(self, now: float) -> None:
        """The next slice of the first pass."""
        stop = min(self._weighed + ROWS, self._pages)
        pages = self._in(self._weighed, stop, (_READ,))
        self._weighed = stop
        worths = self._importance(pages, now)
        found: list[tuple[LocalPage, RefreshRow]] = []
        importances: list[float] = []
        for page, importance in zip(local_pages(pages), worths.tolist(), strict=True):
            row = self.partition.row(page)
            if row is not None and row.pace and row.weight and 0.0 < importance < math.inf:
                found.append((page, row))
                importances.append(importance)
        anew = self.change_model.believed_anew(found)
        for (page, row), importance in zip(found, importances, strict=True):
            new = anew.get(page, row)
            heavy = weight(importance, new.pace)
            if new is not row or abs(heavy - row.weight) > CLOSE * row.weight:
                self.rewrite(page, row, msgspec.structs.replace(new, weight=heavy))
        self.change_model.keep()

    def _look(self, page: LocalPage, counting: RecountSums, now: float) -> float:
        """Count a page; its date by the policy of now, 0.0 where it has that (nearly), or it is another's to say."""
        row = self.partition.row(page)
        if row is None or not row.rate:
            return 0.0
        if self.partition.states[page] != _READ:
            counting.add(row.weight, row.pace)
            return 0.0
        importance = row.weight * row.weight / row.pace if row.weight else self._own(page, now)
        interval = self.bandwidth.at_site(page, self.bandwidth.interval(importance, row.pace, row.belief))
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

    def _importance(self, pages: NDArray[np.int64], now: float) -> NDArray[np.float64]:
        """The importance of pages as they are dated by it when they are read."""
        worths = self.ledger.importance(pages) * self.partition.standing.worth(pages, self.partition.children)
        return self.hooks.guided(pages, worths, now)

    def _own(self, page: LocalPage, now: float) -> float:
        found = float(self._importance(np.array([page], np.int64), now)[0])
        return found if math.isfinite(found) else 0.0
