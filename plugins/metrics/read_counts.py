"""Counts the reads of one partition for `GET /metrics`: once a commit group, over all orders that it settled.

What was read of a page is its result: ok, not-modified, redirect, gone, or failed (also where nothing answered). An
answer that is none of its page's is a `challenge` (or a block), or `doubted`: it looks like one, and is asked for
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata.states import State
from xyro.metadata.visits import GONE
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

KEY = "metrics"
RESULTS = ("ok", "not-modified", "redirect", "gone", "failed", "challenge", "doubted")
PURPOSES = ("discovery", "refresh")
PHASES = ("read", "settle")
"""of an order: from its request to the last byte, and from there until its commit group takes it"""
READ_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""seconds: upper ends of the buckets of read times; one more has no end"""
WAIT_BOUNDS = (0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0)
"""seconds: those of the time for which orders waited, up to a week"""


class TimeCounts:
    """Times in buckets. bounds: their upper ends in seconds; one more has no end."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._total = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """Count each."""
        self._counts += np.bincount(np.searchsorted(self._bounds, seconds), minlength=len(self._counts))
        self._total += sum(seconds)

    def figures(self) -> tuple[list[int], float]:
        """Return the number of each bucket, and the sum of all."""
        return self._counts.tolist(), self._total


class ReadCounts:
    """The counts of one partition since the process began."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self.reads: Counter[tuple[str, str]] = Counter(dict.fromkeys(product(RESULTS, PURPOSES), 0))
        """(result, purpose); each from the beginning, for a rate does not see the one that a count begins with"""
        self.changes: Counter[str] = Counter()
        """by what the read was ordered for: names of priorities"""
        self.decoded = 0
        """bytes of bodies, their encodings undone"""
        self.phases = {phase: TimeCounts(READ_BOUNDS) for phase in PHASES}
        self.waits = {priority: TimeCounts(WAIT_BOUNDS) for priority in Priority}
        """from when a page was due, or its order was given out, to its request"""
        frontier.hooks.settled.append(self.settled)
        frontier.hooks.set_aside.append(self.set_aside)
        frontier.hooks.status[KEY] = self.figures

    def settled(self, settled: Sequence[Settled], now: float) -> None:
        """Count the orders that a turn settled."""
        if not settled:
            return
        self.reads.update((_result(order), _purpose(order)) for order in settled)
        self.changes.update(order.lease.priority.name.lower() for order in settled if order.visit.changed is True)
        self._count_answers([order for order in settled if order.report.status], now)

    def set_aside(self, order: Settled, now: float) -> None:
        """Count an order whose answer is none of its page's. One that the pool spared was not answered."""
        if order.report.status:
            self.reads[self._doubt(order), _purpose(order)] += 1
            self._count_answers([order], now)

    def _doubt(self, order: Settled) -> str:
        partition = self._frontier.partition
        mask = partition.hosts.masks.get(partition.hosts_of[order.page])
        return "challenge" if mask is not None and mask.vendor else "doubted"

    def _count_answers(self, sent: Sequence[Settled], now: float) -> None:
        """Bytes and times."""
        self.decoded += sum(order.report.size for order in sent)
        self.phases["read"].add([order.report.ended - order.report.started for order in sent])
        self.phases["settle"].add([max(now - order.report.ended, 0.0) for order in sent])
        waits = defaultdict[Priority, list[float]](list)
        for order in sent:
            waits[order.lease.priority].append(max(order.report.started - order.lease.since, 0.0))
        for priority, times in waits.items():
            self.waits[priority].add(times)

    def figures(self, now: float) -> dict[str, Any]:
        """Plain values; cash is counted in units, over all columns."""
        frontier = self._frontier
        n, outbox = frontier.columns.n, frontier.outbox
        cash = frontier.ledger.effective(slice(0, n))
        return {
            "reads": [[result, purpose, count] for (result, purpose), count in self.reads.items()],
            "changes": dict(self.changes),
            "decoded": self.decoded,
            "phases": {phase: times.figures() for phase, times in self.phases.items()},
            "waits": {priority.name.lower(): waits.figures() for priority, waits in self.waits.items()},
            "overdue": frontier.freshness.overdue(now) if frontier.scheduler.schedule.refreshing else 0.0,
            "refreshed": frontier.freshness.totals.importance if frontier.scheduler.schedule.refreshing else 0.0,
            "cash": int(cash[frontier.columns["state"][:n] != State.FOREIGN].sum()),
            "virtual": int(frontier.ledger.virtual.balance),
            "sent": {
                target: [(seq, units) for seq, units, _ in waiting] for target, waiting in outbox.unacknowledged.items()
            },
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
