"""How wrong importances still are: snapshots of a sample, a few in each doubling of the settled time.

Before: ledger.py has spent. After: service/views compares the sample of now with its snapshots (opic/snapshots.py).
Invariant: what is stored is what is in memory, and is stored with the commit group that it is of.
"""

from __future__ import annotations

import msgpack
import numpy as np

from xyro.frontier.ledger import Ledger
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.opic.snapshots import Snapshots

_SNAPSHOTS = rows.META.key("importance snapshots")


class ImportanceError:
    """The snapshots of one partition. `take` is to be called where `settled` is not between `last` and `next`."""

    def __init__(self, partition: Partition, ledger: Ledger) -> None:
        self.partition = partition
        self.ledger = ledger
        self.snapshots = Snapshots()

    def take(self, settled: float) -> None:
        """Take a snapshot, and store all of them with the open commit group. 1 ms."""
        found = self.snapshots
        if settled < found.last or not len(found.pages):
            state = self.partition.columns["state"][: self.partition.columns.n]
            found.draw(np.flatnonzero(state != int(State.FOREIGN)))
        found.take(settled, self.ledger.importance(found.pages.astype(np.int64)))
        self.partition.put(_SNAPSHOTS, msgpack.packb(found.dump()))

    def recover(self) -> None:
        """Go on from what is stored."""
        stored = self.partition.get(_SNAPSHOTS)
        if stored:
            self.snapshots = Snapshots.load(msgpack.unpackb(stored))
