"""External inflow: the cash that reaches hosts over links from other hosts, measured while pages spend ([opic] sites).

The ledger reports what reaches pages from other hosts, and the time with it; `estimate` goes to views and, as far as
[opic] site_weight says, into the choice of unread pages (discovery.py). Nothing of this runs when the settings are off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.opic.sites import Inflow

Ids = NDArray[np.int64]
_STORED = rows.META.key("sites")


class HostInflow:
    """External inflow of the hosts of one partition; stored each quarter turnover (8 bytes a host).

    `now` is the OPIC clock in ticks, `window` is T in turnovers.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._inflow: Inflow | None = None

    def inflow(self, now: int) -> Inflow:
        """The columns of all hosts of now. They are read at the first call: the clock is the stored one's by then."""
        if self._inflow is None:
            self._inflow = Inflow.load(self.partition.get(_STORED) or b"", now)
        self._inflow.grow(len(self.partition.hosts))
        return self._inflow

    def add(self, pages: Ids, amounts: Ids, now: int) -> None:
        """Note cash that reached pages from other hosts."""
        self.inflow(now).add(self.partition.columns["host"][pages].astype(np.int64), amounts)

    def store(self, now: int, window: float) -> None:
        """Measure and store within a commit group, when it is time."""
        inflow = self.inflow(now)
        if inflow.due(now):
            inflow.measure(now, window)
            self.partition.put(_STORED, inflow.dump())

    def estimate(self, now: int, window: float) -> NDArray[np.float64]:
        """External inflow of every host as if measured now: page-units a turnover."""
        return self.inflow(now).estimate(now, window)


def mixed(cash: Ids, flow: NDArray[np.float64], weight: float) -> Ids:
    """Urgency of pages: `weight` of it by the inflow of their hosts, the rest by their cash, both about their means."""
    mean = float(flow.mean()) if len(flow) else 0.0
    if mean <= 0:
        return cash
    urged: Ids = ((1.0 - weight) * cash + weight * float(cash.mean()) / mean * flow).astype(np.int64)
    return urged
