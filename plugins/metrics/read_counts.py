"""Counts the reads of one partition for `GET /metrics`: once a commit group, over all orders that it settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata.states import State
from xyro.metadata.visits import GONE

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

KEY = "metrics"
READ_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""seconds: upper ends of the buckets of read times; one more has no end"""


class ReadCounts:
    """The counts of one partition since the process began."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self.reads: Counter[tuple[str, str]] = Counter()
        """(result, purpose)"""
        self.changes = 0
        self.seconds = np.zeros(len(READ_BOUNDS) + 1, np.int64)
        """reads by their time, a number for each bucket"""
        self.total_seconds = 0.0
        frontier.hooks.settled.append(self.settled)
        frontier.hooks.status[KEY] = self.figures

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Count the orders that a turn settled."""
        if not settled:
            return
        self.reads.update((_result(order), _purpose(order)) for order in settled)
        self.changes += sum(order.visit.changed is True for order in settled)
        spent = [order.report.ended - order.report.started for order in settled if order.report.status]
        self.seconds += np.bincount(np.searchsorted(READ_BOUNDS, spent), minlength=len(self.seconds))
        self.total_seconds += sum(spent)

    def figures(self, now: float) -> dict[str, Any]:
        """Plain values; cash is counted in units, over all columns."""
        frontier = self._frontier
        n, outbox = frontier.columns.n, frontier.outbox
        cash = frontier.ledger.effective(slice(0, n))
        return {
            "reads": [[result, purpose, count] for (result, purpose), count in self.reads.items()],
            "changes": self.changes,
            "seconds": self.seconds.tolist(),
            "total_seconds": self.total_seconds,
            "cash": int(cash[frontier.columns["state"][:n] != State.FOREIGN].sum()),
            "virtual": int(frontier.ledger.virtual.balance),
            "sent": {target: [list(each) for each in waiting] for target, waiting in outbox.unacknowledged.items()},
            "applied": dict(outbox.applied),
        }


def _result(order: Settled) -> str:
    report = order.report
    if report.error:
        return "gone" if report.error in GONE else "failed"
    if report.location:
        return "redirect"
    return "not-modified" if report.status == 304 else "ok"


def _purpose(order: Settled) -> str:
    return "refresh" if order.row is not None and order.row.reads else "discovery"
