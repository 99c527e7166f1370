"""What claims and kept histories say of a page's change rate; how far a claim moves its next read. Pure.

A claim never commands: of the host's learned trust w (refresh.trust)

    "it changes N times a day"    w of one change seen in 1 / N days, once, when the page's belief begins
    "it changed at T"             of a page never read: w of one change of age now - T
                                  of a page read before T: the rest of its interval shrinks to (1 - w) of it

The estimators that need a page's history (mle, last-modified) get its last visits, packed: 4 or 8 bytes a visit.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.change import SHORTEST, Prior, mle, mle_last_modified

VISITS: Final = 64
"""Most visits kept of a page for the batch estimators: 256 bytes a page, 512 with ages."""
FASTEST = 1440.0
"""Changes a day, at most, that a claim is heard to say: once a minute."""
SLOWEST = 1 / 3650.0
_SHAPE = 1.0
"""A claimed rate is heard as Gamma(1, 1 / rate): right in its order of magnitude."""


def quiet(a: float, b: float, tau_days: float) -> float:
    """P(no change within tau) under the belief Gamma(a, b)."""
    tau = tau_days if tau_days > SHORTEST else SHORTEST
    return math.exp(-a * math.log1p(tau / b))


def outcome(a: float, b: float, tau_days: float, changed: bool) -> float:
    """Probability of what a visit showed under the belief Gamma(a, b)."""
    still = quiet(a, b, tau_days)
    return 1.0 - still if changed else still


def claimed_outcome(rate: float, tau_days: float, changed: bool) -> float:
    """Probability of what a visit showed if the page changes `rate` times a day, more or less."""
    return outcome(_SHAPE, _SHAPE / heard(rate), tau_days, changed)


def heard(rate: float) -> float:
    """A claimed rate within reason, 1/day."""
    return min(max(rate, SLOWEST), FASTEST)


def weigh_rate(a: float, b: float, rate: float, trust: float) -> tuple[float, float]:
    """Belief with a claimed rate (1/day) added: `trust` of one change seen in 1 / rate days."""
    return a + trust, b + trust / heard(rate)


def weigh_age(a: float, b: float, age_days: float, trust: float) -> tuple[float, float]:
    """Belief with a claimed date of the last change added: `trust` of one change of that age."""
    return a + trust, b + trust * max(age_days, SHORTEST)


def sooner(due: float, now: float, trust: float) -> float:
    """The next read of a page that is said to have changed: what is left of the interval shrinks by the trust."""
    return due - trust * (due - now) if due > now else due


# --- histories for the batch estimators -----------------------------------------------------------------------------


def remember(history: bytes, tau_days: float, changed: bool, age_days: float | None, ages: bool) -> bytes:
    """The history with one more visit; of more than VISITS the oldest go. ages: keep them, too (8 bytes a visit).

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
    """(exposures, changed, ages), float64[n], bool[n], float64[n]."""
    values = np.frombuffer(history, "<f4").astype(np.float64)
    signed = values[::2] if ages else values
    known = values[1::2] if ages else np.full(signed.shape, np.nan)
    return np.abs(signed), signed < 0.0, known


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
    """(a, b) by the estimator: "gamma" is the running belief, the others ask the history once it has enough visits."""
    if kind == "gamma" or len(history) < visits_least * (8 if kind == "last-modified" else 4):
        return belief if belief[1] > 0.0 else (prior.a, prior.b)
    return by_dates(history) if kind == "last-modified" else by_bits(history, ages=False)
