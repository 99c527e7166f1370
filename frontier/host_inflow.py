"""What reaches hosts over links from other hosts, measured as it happens: the hook of a partition's ledger."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import keys
from xyro.metadata.manager import Partition
from xyro.opic.importance import Clock
from xyro.opic.sites import Inflow

Ids = NDArray[np.int64]
_STORED = keys.META.key("sites")


class Timed(Protocol):
    """Whoever keeps the OPIC clock (ledger.py)."""

    clock: Clock

    @property
    def remembered(self) -> float: ...


class HostInflow:
    """External inflow of the hosts of one partition, as it happens; stored each quarter turnover (8 bytes a host)."""

    def __init__(self, partition: Partition, ledger: Timed) -> None:
        self.partition, self.ledger = partition, ledger
        self._inflow: Inflow | None = None

    @property
    def inflow(self) -> Inflow:
        """Taken up when it is first needed: by then the ledger's clock is the stored one's."""
        if self._inflow is None:
            stored = self.partition.get(_STORED) or b""
            self._inflow = Inflow.load(stored, self.ledger.clock.ticks)
        self._inflow.grow(len(self.partition.hosts))
        return self._inflow

    def spent(self, ids: Ids, degrees: Ids, targets: Ids, amounts: Ids) -> None:
        """Pages spend over their links: what leaves their host arrives at another one."""
        host = self.partition.columns["host"]
        there = host[targets]
        apart = np.flatnonzero(np.repeat(host[ids], degrees) != there)
        self.inflow.add(there[apart].astype(np.int64), amounts[apart])

    def came(self, pages: Ids, amounts: Ids) -> None:
        """Cash from other partitions: all of it from other hosts."""
        self.inflow.add(self.partition.columns["host"][pages].astype(np.int64), amounts)

    def keep(self) -> None:
        """Within a commit group: measure and store, when it is time."""
        inflow, now = self.inflow, self.ledger.clock.ticks
        if inflow.due(now):
            inflow.measure(now, self.ledger.remembered)
            self.partition.put(_STORED, inflow.dump())

    def estimate(self) -> NDArray[np.float64]:
        """External inflow of every host as if measured now: page-units a turnover."""
        return self.inflow.estimate(self.ledger.clock.ticks, self.ledger.remembered)

    def mixed(self, cash: Ids, hosts: NDArray[np.uint32], weight: float) -> Ids:
        """Urgency of pages: `weight` of it by their host's inflow, the rest by their cash, both about their means."""
        flow = self.estimate()[hosts]
        mean = float(flow.mean()) if len(flow) else 0.0
        if mean <= 0:
            return cash
        urged: Ids = ((1.0 - weight) * cash + weight * float(cash.mean()) / mean * flow).astype(np.int64)
        return urged
