"""V(x) = 1 - (1+x) e^-x, the freshness that a read gains, and the inverse of alpha x^2/2 + beta V(x) (policy.py)."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Reals = NDArray[np.float64]
_SMALL = 0.02
"""below it V loses digits to cancellation, and its series has enough terms for all of them"""


def lost_freshness(x: Floats) -> Floats:
    """V(x) = 1 - (1+x) e^-x, x >= 0, to the last digits of x's own type: x^2/2 for tiny x, 1 for huge."""
    x = np.asarray(x)
    far = np.minimum(x, x.dtype.type(700.0))  # there V is 1, and inf x 0 would not be a number
    with np.errstate(under="ignore"):
        found = np.asarray(np.exp(-far))
        found *= 1.0 + far
    np.subtract(1.0, found, out=found)
    small = np.flatnonzero(x < _SMALL)
    some = x.flat[small]  # often few: a scan has no time for all
    found.flat[small] = some * some * (0.5 - some * (1 / 3 - some * (1 / 8 - some * (1 / 30 - some * (1 / 144)))))
    return found


def mixed_inverse(wanted: Reals, alpha: float, beta: float) -> Reals:
    """x with alpha x^2/2 + beta V(x) = wanted: a look into a table, then Newton's steps."""
    if alpha == 0.0:
        return _freshness_inverse(wanted / beta)
    table = _table(alpha, beta)
    with np.errstate(divide="ignore", over="ignore"):
        x = np.exp(np.interp(np.log(wanted), table.ln_g, table.ln_x))
        x = np.where(wanted < table.least, np.sqrt(2.0 * wanted / (alpha + beta)), x)
        far = wanted > table.greatest
        x = np.where(far, np.sqrt(2.0 * np.maximum(wanted - beta, 0.0) / alpha), x)
    steady = far | ~(x > 0.0)
    for _ in range(3):
        value = 0.5 * alpha * x * x + beta * lost_freshness(x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = np.where(steady, x, x - (value - wanted) / (x * (alpha + beta * np.exp(-x))))
    return x


def _freshness_inverse(wanted: Reals) -> Reals:
    """V(x) = y is x - ln(1+x) = -ln(1-y), which Newton solves from sqrt(2 L) + L in five steps whatever y is."""
    goal = -np.log1p(-np.where(wanted < 1.0, wanted, 0.0))
    x = np.sqrt(2.0 * goal) + goal
    for _ in range(6):
        value = np.where(x < _SMALL, _grown(x), x - np.log1p(x))
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.where(x > 0.0, x - (value - goal) * (1.0 + x) / x, 0.0)
    return np.where(wanted < 1.0, x, math.inf)


def _grown(x: Reals) -> Reals:
    """x - ln(1+x) for small x, without cancellation."""
    return x * x * (0.5 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x / 7)))))


def one_inverse(wanted: float, alpha: float, beta: float) -> float:
    """Invert the index for one number."""
    if alpha == 0.0:
        return float(_freshness_inverse(np.array([wanted / beta]))[0])
    table = _table(alpha, beta)
    if wanted < table.least:
        x = math.sqrt(2.0 * wanted / (alpha + beta))
        return x * (1.0 + beta * x / (3.0 * (alpha + beta)))  # V is x^2/2 - x^3/3 here, to 1e-10
    if wanted > table.greatest:
        return math.sqrt(2.0 * (wanted - beta) / alpha)
    goal = math.log(wanted)
    index = min(max(bisect_right(table.steps, goal), 1), len(table.steps) - 1)
    part = (goal - table.steps[index - 1]) / (table.steps[index] - table.steps[index - 1])
    x = math.exp(float(table.ln_x[index - 1]) + part * table.width)
    for _ in range(3):
        fading = math.exp(-x)
        value = -math.expm1(-x) - x * fading if x >= _SMALL else float(lost_freshness(np.array(x)))
        x -= (0.5 * alpha * x * x + beta * value - wanted) / (x * (alpha + beta * fading))
    return x


class _Table(NamedTuple):
    ln_g: Reals
    ln_x: Reals
    steps: list[float]
    """ln_g once more: a list is searched faster"""
    width: float
    """from one ln_x to the next"""
    least: float
    greatest: float


@lru_cache(maxsize=8)
def _table(alpha: float, beta: float) -> _Table:
    """g over x from where it is a parabola to where V is 1."""
    x = np.geomspace(1e-5, 60.0, 1024)
    g = 0.5 * alpha * x * x + beta * lost_freshness(x)
    ln_x = np.log(x)
    return _Table(np.log(g), ln_x, np.log(g).tolist(), float(ln_x[1] - ln_x[0]), float(g[0]), float(g[-1]))
