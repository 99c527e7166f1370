"""A page's last measures in m slots, long histories compressed by grouping (P2 s.4: Variable and Fixed Window).

A measure is (cash received, turnovers it took). A slot holds one or more neighbouring measures as their sums, so both
are conserved; the slots of a page follow each other without a gap, the newest first, and its newest ends when the page
was last spent. So the time of each slot follows from the spans, and 8 bytes a slot are all there is.

With a window of T turnovers a slot takes further measures until it covers T / (m - 1): then m slots always reach back
over T, however often a hub is spent. Counting measures (no window) a slot is one measure; measures within one tick of
the clock are one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.opic.arrays import Reals
from xyro.opic.importance import PRIOR_WINDOW

Slots = NDArray[Any]
"""float32 or float64 (k, 2, m): cash in page-units and spans in turnovers, newest first; empty slots are zero"""


class SlotPolicy(NamedTuple):
    """A rule by which slots become importance."""

    windowed: bool
    """those of the last T turnovers count; else all m"""
    over_window: bool = False
    """their cash over T, as P2's X_{t,T} (biased: a page spent less than once in T has nothing or too much in it);
    else over the turnovers they cover"""
    least: int = 0
    """so many slots count however old they are (P2's Improved Fixed Window)"""

    def grain(self, window: float, m: int) -> float:
        """Turnovers from which on a slot is full."""
        return window / (m - 1) if self.windowed and m > 1 else 0.0


POLICIES = {
    "variable": SlotPolicy(windowed=False),
    "fixed": SlotPolicy(windowed=True, over_window=True),
    "edge": SlotPolicy(windowed=True),
    "improved": SlotPolicy(windowed=True, least=3),
}
"""P2's Variable Window, Fixed Window as printed, its edge-corrected form, Improved Fixed Window"""


def push(slots: Slots, cash: Reals, spans: Reals, grain: float = 0.0) -> None:
    """Add a measure to each of k pages, in place; where no slot is free the oldest is forgotten."""
    newest = slots[:, 1, 0]
    full = np.flatnonzero((newest > 0) & (newest >= grain))
    slots[full, :, 1:] = slots[full, :, :-1]
    slots[full, :, 0] = 0
    slots[:, 0, 0] += cash
    slots[:, 1, 0] += spans


def counted(slots: Slots, since: Reals, policy: SlotPolicy, window: float) -> tuple[Reals, Reals]:
    """Cash and turnovers of the slots that count `since` turnovers after the last measure: two float64[k].

    A slot counts whole or not, as its end lies within the window or not.
    """
    cash, spans = slots[:, 0].astype(np.float64), slots[:, 1].astype(np.float64)
    if policy.windowed:
        ends = since[:, None] + np.cumsum(spans, axis=1) - spans
        counting = (ends < window) | (np.arange(spans.shape[1]) < policy.least)
        cash, spans = cash * counting, spans * counting
    return cash.sum(axis=1), spans.sum(axis=1)


def estimate(slots: Slots, since: Reals, cash: Reals, flow: Reals, policy: SlotPolicy, window: float) -> Reals:
    """Importance as if the pages were spent now, with the cash received since the last measure: float64[k].

    `flow` is the estimate by interpolation; it stands in where there is no slot yet, or too little time in them to tell
    (less than PRIOR_WINDOW, as for a new page).
    """
    total, covered = counted(slots, since, policy, window)
    spans_known = slots[:, 1].sum(axis=1, dtype=np.float64)
    remembered = spans_known + since
    over = np.minimum(window, remembered) if policy.over_window else covered + since
    settled = (spans_known > 0) & (remembered >= PRIOR_WINDOW)
    return np.where(settled, (total + cash) / np.where(over > 0, over, 1.0), flow)
