"""The change times of pages: a Poisson process per page that can be asked at any time, in any order.

In the page's own time s = lambda (t - origin) every page changes at rate 1. That time is cut into cells of 16 expected
changes; how many a cell has (Poisson) and when (uniform) is drawn from (seed, page, cell) alone. So version(page, t) is
a pure function and true change times are known. The first question about a late moment adds up the cells before it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from xyro.lab.web.chance import unit
from xyro.lab.web.shape import DAY

CELL = 16.0
WEB_BEGAN = 788_918_400.0
"""1995-01-01: no page claims to be older"""
_BIRTH, _CHANGE = 101, 102
"""keys that keep the draws of different purposes apart"""


class ChangeState(NamedTuple):
    """A page from its last change up to (excluding) its next one. Times are seconds since 1970."""

    version: int
    """changes since the origin"""
    modified: float
    """time of the last change, before the origin for version 0"""
    since: float
    """first time at which this state holds: `modified`, or -inf for version 0"""
    until: float


def state_at(seed: int, page: int, rate: float, origin: float, t: float) -> ChangeState:
    """State at time t of a page that changes `rate` times a day on average."""
    if rate <= 0.0:
        return ChangeState(0, WEB_BEGAN, -math.inf, math.inf)
    own = max(0.0, (t - origin) * rate / DAY)
    cell = int(own // CELL)
    changes = _cell(seed, page, cell)
    done = bisect_right(changes, own - cell * CELL)
    last = _last_before(seed, page, cell, done)
    modified = _birth(seed, page, rate, origin) if last is None else origin + last * DAY / rate
    until = origin + _next_after(seed, page, cell, done) * DAY / rate
    return ChangeState(_before(seed, page, cell) + done, modified, -math.inf if last is None else modified, until)


@lru_cache(maxsize=1 << 16)
def _cell(seed: int, page: int, cell: int) -> array[float]:
    """Times of the changes in a cell, ascending, from the cell's start."""
    rng = np.random.default_rng((seed, page, cell, _CHANGE))
    return array("d", np.sort(rng.random(rng.poisson(CELL)) * CELL).tobytes())


@lru_cache(maxsize=1 << 16)
def _before(seed: int, page: int, cell: int) -> int:
    """Changes in all cells before this one."""
    return sum(len(_cell(seed, page, earlier)) for earlier in range(cell))


def _last_before(seed: int, page: int, cell: int, done: int) -> float | None:
    """Time (page's own) of the last change up to here; None where none happened since the origin."""
    while done == 0:
        if cell == 0:
            return None
        cell -= 1
        done = len(_cell(seed, page, cell))
    return cell * CELL + _cell(seed, page, cell)[done - 1]


def _next_after(seed: int, page: int, cell: int, done: int) -> float:
    while done == len(_cell(seed, page, cell)):
        cell, done = cell + 1, 0
    return cell * CELL + _cell(seed, page, cell)[done]


def _birth(seed: int, page: int, rate: float, origin: float) -> float:
    """The last change before the origin: looking back, a Poisson process waits exponentially too."""
    return max(WEB_BEGAN, origin + math.log1p(-unit(seed, page, _BIRTH)) * DAY / rate)
