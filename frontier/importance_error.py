"""How wrong importances still are: snapshots of a sample, a few in each window of the OPIC clock; and their sum.

`relative` is importance as people see it: on one scale, of mean 1 over all pages that the crawl knows.

Before: ledger.py has spent. After: service/views compares the sample of now with its snapshots (opic/snapshots.py).
Invariant: what is stored is what is in memory, and is stored with the commit group that it is of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.frontier.ledger import Ledger
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.opic.importance import never_measured
from xyro.opic.page_parts import PART, Mass, RunningMass
from xyro.opic.snapshots import Snapshots

if TYPE_CHECKING:
    from xyro.refresh.other_sums import OtherSums

MEAN_OF = 1 << 16
"""pages at least, where there are as many, over which the mean importance is taken: 5 ms"""
LEAST = 1e-9
MOVED = 0.01
"""turnovers, or part of the pages, after which the mean is taken anew"""
_FOREIGN = int(State.FOREIGN)
_MASS = rows.META.key("importance mass")
_SNAPSHOTS = rows.META.key("importance snapshots")


class ImportanceError:
    """Snapshots of one partition, and the mass of its importances. `follow` each turn, when its pages have spent."""

    def __init__(self, partition: Partition, ledger: Ledger) -> None:
        self.partition = partition
        self.ledger = ledger
        self.snapshots = Snapshots()
        self.mass = RunningMass(self._mass_of)
        self._own, self._measured = 0.0, (-math.inf, 0)
        """sum of the importances here; turnovers and pages as of when it was taken"""
        self._others, self._other_pages = 0.0, 0

    def follow(self) -> None:
        """Take a part of the mass anew, and a snapshot where it is time for one. For SMALLEST pages and more."""
        n = self.partition.columns.n
        if n > PART and self.mass.step(n):
            self.partition.put(_MASS, msgpack.packb(self.mass.dump()))
        if self.ledger.clock.turnovers >= self.snapshots.next:
            self.measure()

    def _mass_of(self, pages: slice) -> Mass:
        importance = self.ledger.importance(pages)
        own = self.partition.columns["state"][pages] != _FOREIGN
        return Mass(float(importance[own].sum()), float(importance.sum()), int((importance > 0.0).sum()))

    def hear_others(self, others: OtherSums) -> None:
        """Take the sums of all other partitions into the mean from now on."""
        self._others, self._other_pages = others.importance, others.page_count

    @property
    def own(self) -> float:
        """Sum of the importances of the pages here, page-units a turnover, as of a moment ago."""
        n, time = self.partition.columns.n, self.ledger.clock.turnovers
        if time > self._measured[0] + MOVED or n > self._measured[1] * (1.0 + MOVED):
            self._own, self._measured = self.mass.total(n).own, (time, n)
        return self._own

    @property
    def mean(self) -> float:
        """Importance of a mean page of all that the crawl knows, page-units a turnover: 1 once the crawl has settled,
        several while it is young."""
        total, pages = self.own + self._others, self.ledger.known_pages + self._other_pages
        return total / pages if pages and total > 0.0 else 1.0

    def relative(self, pages: NDArray[np.int64]) -> list[float]:
        """Importances of some pages, mean 1 over all that the crawl knows now."""
        mean = self.mean
        return [importance / mean for importance in self.ledger.importance(pages).tolist()]

    def measure(self) -> None:
        """Take a snapshot, and store all of them with the open commit group. 1 to 8 ms."""
        time, columns = self.ledger.clock.turnovers, self.partition.columns
        some = slice(0, columns.n, 1 + columns.n // MEAN_OF)
        mean = self.ledger.importance(some)[columns["state"][some] != _FOREIGN].mean()
        pages = self.snapshots.pages(columns.n)
        unknown = never_measured(columns["flow"][pages]) | (columns["state"][pages] == _FOREIGN)
        window = self.ledger.window.length_at(self.ledger.clock.ticks)
        middle = self.ledger.centred(self.ledger.importance(pages), pages)
        importance = np.where(unknown, np.nan, middle / max(mean, LEAST))
        self.snapshots.take(time, window, importance)
        self.partition.put(_SNAPSHOTS, msgpack.packb(self.snapshots.dump()))

    def recover(self) -> None:
        """Go on from what is stored."""
        if stored := self.partition.get(_SNAPSHOTS):
            self.snapshots = Snapshots.load(msgpack.unpackb(stored))
        if stored := self.partition.get(_MASS):
            self.mass.load(msgpack.unpackb(stored))
