"""Change rates from a page's whole history, as the papers estimate them: the simulator's comparison, not the crawler's.

The crawler keeps three sums a page (refresh/rate_sums.py). These batch estimators ask the last visits instead, packed
at 4 or 8 bytes a visit: the most likely rate of the change bits (P1 eq. 9), and the same with the dates of changes (P1
eq. 10). The tests hold the Gamma belief to them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.gamma_belief import Bools, Floats, Prior
from xyro.refresh.rate_sums import SHORTEST

VISITS: Final = 64
"""Most visits kept of a page for the batch estimators: 256 bytes a page, 512 with ages."""


def mle(tau_days: Floats, changed: Bools) -> Floats:
    """Most likely rate (1/day) from change bits alone; visits along the last axis, tau > 0.

    Solves sum over changes of c / (exp(lambda c) - 1) = sum of quiet intervals (P1 eq. 9, its sum mended to a product);
    0 where nothing changed, infinite where every visit showed a change, NaN without visits.
    """
    quiet = np.where(changed, 0.0, tau_days).sum(axis=-1)
    busy = np.where(changed, tau_days, 0.0)
    count = changed.sum(axis=-1)
    # 1 - x/2 <= x / (exp x - 1) <= 1 brackets the root; halving its logarithm needs no slope and cannot leave it
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = np.log(count / (quiet + 0.5 * busy.sum(axis=-1))), np.log(count / quiet)
        for _ in range(60):
            middle = 0.5 * (low + high)
            score = np.where(changed, busy / np.expm1(np.exp(middle)[..., None] * busy), 0.0).sum(axis=-1)
            low, high = np.where(score > quiet, middle, low), np.where(score > quiet, high, middle)
    found: Floats = np.where(
        count == 0, np.where(quiet > 0.0, 0.0, np.nan), np.where(quiet > 0.0, np.exp(high), np.inf)
    )
    return found


def mle_last_modified(tau_days: Floats, changed: Bools, age_days: Floats) -> Floats:
    """Most likely rate (1/day) where every change has an age: C / (sum l + sum v); P1 eq. 10 leaves out the v."""
    exposure = np.where(changed, age_days, tau_days).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = changed.sum(axis=-1) / exposure
    return found


def remember(history: bytes, tau_days: float, changed: bool, age_days: float | None, ages: bool) -> bytes:
    """Return the history with one more visit, without the oldest beyond VISITS. ages: keep them, too (8 bytes a visit).

    A visit is a little-endian float32: its exposure in days, negative where it showed a change; with ages a second
    one: the change's trusted age, NaN without.
    """
    tau = max(tau_days, SHORTEST)
    values = [-tau if changed else tau]
    if ages:
        values.append(math.nan if age_days is None or not changed else age_days)
    return (history + np.array(values, "<f4").tobytes())[-4 * len(values) * VISITS :]


def by_bits(history: bytes, ages: bool) -> tuple[float, float]:
    """Batch MLE of change bits (product form) as (a, b): a = changes, a / b = the rate. `history` is not empty.

    Where the likelihood has no maximum half a visit decides: nothing changed = half a change in all that time,
    everything changed = half the shortest visit was quiet.
    """
    tau, changed, _ = _visits(history, ages)
    return _pair(tau, changed, _bounded(tau, changed))


def by_dates(history: bytes) -> tuple[float, float]:
    """Censored Last-Modified MLE as (a, b): C / (sum l + sum v). A change without an age counts as it did at its
    expected moment under the MLE of the bits. `history` (with ages) is not empty."""
    tau, changed, ages = _visits(history, True)
    bits = _bounded(tau, changed)
    dated = changed & (ages >= 0.0) & (ages <= tau)
    x = np.minimum(bits * tau, 700.0)
    late = 1.0 / bits - tau / np.expm1(x)  # mean age of the last change in tau, given one
    rate = float(mle_last_modified(tau, changed, np.where(dated, ages, late)))
    return _pair(tau, changed, rate if 0.0 < rate < math.inf else bits)


def _visits(history: bytes, ages: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Unpack a history: (exposures, changed, ages), float64[n], bool[n], float64[n]."""
    values = np.frombuffer(history, "<f4").astype(np.float64)
    signed = values[::2] if ages else values
    age_days = values[1::2] if ages else np.full(signed.shape, np.nan)
    return np.abs(signed), signed < 0.0, age_days


def _bounded(tau: NDArray[np.float64], changed: NDArray[np.bool_]) -> float:
    if not changed.any():
        return 0.5 / float(tau.sum())
    if changed.all():
        tau, changed = np.append(tau, 0.5 * tau.min()), np.append(changed, False)
    return float(mle(tau, changed))


def _pair(tau: NDArray[np.float64], changed: NDArray[np.bool_], rate: float) -> tuple[float, float]:
    count = max(float(changed.sum()), 0.5)
    return count, count / rate


def estimate(
    kind: str, history: bytes, belief: tuple[float, float], prior: Prior, visits_least: int = 2
) -> tuple[float, float]:
    """Return (a, b) by an estimator: "gamma" is the running belief, others ask a history of at least visits_least."""
    if kind == "gamma" or len(history) < visits_least * (8 if kind == "last-modified" else 4):
        return belief if belief[1] > 0.0 else (prior.a, prior.b)
    return by_dates(history) if kind == "last-modified" else by_bits(history, ages=False)
