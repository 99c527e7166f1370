"""Tells how stale a copy is: `stale` of every row that shows a page, the probability that it has changed since then.

Every answer and export asks here, so that all of them say the same of a page at one moment: rows of pages, documents
and links (views.py), rankings, versions, lines of changes, notices, kept texts, values of the library. 0 of a page that
was just read; 1 of a version that a later read has replaced; None where nothing is known to be there: a page never
read, or gone.

It is what the belief about the page says (rate_belief.py), and that allows for a rate that has changed since. Where
rates never change, it is a few points too high (docs/figures.md); where they do, pages would else be called fresh that
have begun to change. Only the sum over all pages is put right by what reads found (refresh/calibration.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xyro.metadata.states import State
from xyro.refresh.rate_belief import quiet, shares_of_pages

if TYPE_CHECKING:
    from xyro.metadata.rows import RefreshRow
    from xyro.refresh.rate_belief import PageBelief

DAY = 86_400.0
THERE = (State.READ, State.ERROR)
"""states of a page that is there: a temporary failure says nothing of its content"""
REPLACED = 1.0
"""`stale` of a version after which another one was read"""


def staleness(belief: PageBelief, last_read: float, now: float) -> float:
    """P(it has changed since `last_read`), both seconds since 1970; a clock set back makes nothing stale."""
    return 1.0 - belief.quiet(max(0.0, now - last_read) / DAY)


def stale_of(state: int, row: RefreshRow, now: float) -> float | None:
    """`stale` of a page in this state; None where it was not read, or is not there. now: 0 where nobody asks."""
    if not now or not row.last_read or state not in THERE:
        return None
    return round(staleness(row.belief, row.last_read, now), 6)


def stale_of_many(states: NDArray[np.uint8], rows: Mapping[int, RefreshRow], now: float) -> NDArray[np.float32]:
    """`stale` of pages 0, 1 ... in these states, NaN where there is none; rows: of those of them that were read."""
    found = np.full(len(states), np.nan, np.float32)
    pages = [page for page, row in rows.items() if now and row.last_read and states[page] in THERE]
    if pages:
        days = np.array([max(0.0, now - rows[page].last_read) / DAY for page in pages])
        found[pages] = 1.0 - quiet(shares_of_pages([rows[page].belief for page in pages]), days)
    return found
