"""After a switch of policy, bounds or bandwidth: all pages dated anew, S and the population counted exactly, in slices.

One pass over the pages, some hundred rows a turn, so that no turn is long. Pages before the cursor are in the new
counts, those behind it are not yet: a page that is read meanwhile is counted where it then stands. When the pass ends
the new counts replace the old ones; until then the old ones serve.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from crawl.turn.pace import Counts, Pace
from crawl.turn.purse import Purse
from metadata.manager import Partition
from metadata.rows import RefreshRow
from metadata.states import HASTENED, State
from refresh.interval import weight

ROWS = 1024
"""rows a step: 5 to 10 ms"""
_READ = int(State.READ)
_COUNTED = (_READ, int(State.ERROR))
"""a page that failed for now keeps its place in S"""


class Recount:
    """`step` in each turn, until it says that it is done."""

    def __init__(
        self,
        partition: Partition,
        pace: Pace,
        purse: Purse,
        rewrite: Callable[[int, RefreshRow, RefreshRow], None],
    ) -> None:
        self.partition = partition
        self.pace = pace
        self.purse = purse
        self.rewrite = rewrite
        pace.counting = Counts()

    def step(self) -> list[tuple[int, float]]:
        """The next pages whose date changes, and their new dates (seconds since 1970). Within a commit group."""
        counting = self.pace.counting
        assert counting is not None, "step follows the constructor, until done"
        columns = self.partition.columns
        stop = min(counting.cursor + ROWS, columns.n)
        pages = np.flatnonzero(np.isin(columns["state"][counting.cursor : stop], _COUNTED)) + counting.cursor
        counting.cursor = stop
        dated = [(page, self._look(page, counting)) for page in pages.tolist()]
        if stop == columns.n:
            self.pace.counted()
        return [(page, due) for page, due in dated if due]

    @property
    def done(self) -> bool:
        return self.pace.counting is None

    def _look(self, page: int, counting: Counts) -> float:
        """Count a page; its date by the policy of now, 0.0 where it is another's to say."""
        row = self.partition.row(page)
        if row is None or not row.rate:
            return 0.0
        if self.partition.states[page] != _READ:
            counting.add(row.weight, row.rate)
            return 0.0
        importance = row.weight * row.weight / row.rate if row.weight else self._importance(page)
        interval = self.pace.interval(importance, row.rate, row.rate_a)
        heavy = 0.0 if interval.term == "importance" else row.weight or weight(importance, row.rate)
        counting.add(row.weight, row.rate)
        if heavy != row.weight:  # counted as it was, so that both counts hear of it
            self.rewrite(page, row, msgspec.structs.replace(row, weight=heavy))
        if self.partition.flags[page] & HASTENED:
            return 0.0
        return row.last_read + min(interval.seconds, self.pace.rules.ceiling * 86_400.0)

    def _importance(self, page: int) -> float:
        found = float(self.purse.importance(np.array([page], np.int64))[0])
        return found if math.isfinite(found) else 0.0
