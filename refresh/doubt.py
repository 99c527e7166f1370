"""The worth of a read where the change rate is in doubt: freshness gained, expected over the belief Gamma(a, b).

With a known rate a page is given up once r / lambda <= mu: it changes too fast to be worth following (policy.py). Put
the mean of a belief there and a page that seemed fast in its first two reads is never read again, so nobody ever learns
that it is slow. The gain of a read of a copy of age t, V(lambda t) / lambda, has an expectation over the belief, too
(E[e^(-lambda s)] = (1 + s/b)^-a, integrated over the copy's life):

    G(t) = E[V(lambda t) / lambda] = b (1 - (1 + t/b)^(1-a)) / (a - 1) - t (1 + t/b)^-a

It goes to V(lambda t) / lambda as a grows, and to b / (a - 1) as t does; for a <= 1 without bound. So what few reads
say is always looked at again, later and later; a page is given up for good only when many reads say that it is fast.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

SURE = 1e9
"""shapes from which on a belief is a known rate"""
_SMALL = 1e-3
"""below it (as (a + 2) t / b) the series has digits that the closed form loses"""
_STEPS = 60
_LARGEST = 700.0
"""exponents whose power of e is still a number"""


def expected_gain(shape: Reals, rate: Reals, age: Reals) -> Reals:
    """G in days: of beliefs of these shapes and mean rates (a day, > 0), copies of these ages (days, >= 0)."""
    k, lam = np.minimum(np.asarray(shape, np.float64), SURE), np.asarray(rate, np.float64)
    scale = k / lam
    y = np.asarray(age, np.float64) / scale
    below = 1.0 - k
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        ln = np.log1p(y)
        life = np.where(np.abs(below) < 1e-9, ln, np.expm1(below * ln) / below)
        closed = life - y * np.exp(-k * ln)
        series = k * y * y * (0.5 - (k + 1.0) * y * (1 / 3 - (k + 2.0) * y / 8))
    found: Reals = scale * np.where((k + 2.0) * y < _SMALL, series, closed)
    return found


def wait(shape: float, rate: float, goal: float, longest: float) -> float:
    """Days after which G reaches `goal` (days, > 0): infinite if not within `longest`, or never."""
    if shape >= SURE or _gain(shape, rate, longest) < goal:
        return math.inf
    low, high = math.sqrt(2.0 * goal / rate), longest  # G <= lambda t^2 / 2
    for _ in range(_STEPS):
        if high <= low * (1.0 + 1e-6):
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _gain(shape, rate, middle) < goal else (low, middle)
    return high


def least_wait(shape: float, rate: float, chance: float) -> float:
    """Days after which a page has changed with this chance, 0 <= chance < 1, by the belief Gamma(shape, shape / rate).

    1 - P(quiet over t) = 1 - (1 + t/b)^-a; infinite for a page that never changes.
    """
    if chance <= 0.0 or rate <= 0.0:
        return 0.0 if chance <= 0.0 else math.inf
    patience = -math.log1p(-chance)
    if shape >= SURE:
        return patience / rate
    power = patience / shape
    return shape / rate * math.expm1(power) if power < _LARGEST else math.inf


def _gain(shape: float, rate: float, age: float) -> float:
    """`expected_gain` of one page."""
    scale = shape / rate
    y, below = age / scale, 1.0 - shape
    if (shape + 2.0) * y < _SMALL:
        return scale * shape * y * y * (0.5 - (shape + 1.0) * y * (1 / 3 - (shape + 2.0) * y / 8))
    ln = math.log1p(y)
    life = ln if abs(below) < 1e-9 else math.expm1(below * ln) / below
    return scale * (life - y * math.exp(-shape * ln))
