"""Evidence of claims on a page's change rate, and how far a claim moves its next read. Pure.

A claim never commands: of the host's learned trust w (refresh.trust)

    "it changes N times a day"    w of one change seen in 1 / N days, once, when the page's belief begins
    "it changed at T"             of a page never read: w of one change of age now - T
                                  of a page read before T: the rest of its interval shrinks to (1 - w) of it
"""

from __future__ import annotations

import math

from xyro.refresh.change import SHORTEST

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
    return outcome(_SHAPE, _SHAPE / bounded(rate), tau_days, changed)


def bounded(rate: float) -> float:
    """A claimed rate within reason, 1/day."""
    return min(max(rate, SLOWEST), FASTEST)


def weigh_rate(a: float, b: float, rate: float, trust: float) -> tuple[float, float]:
    """Belief with a claimed rate (1/day) added: `trust` of one change seen in 1 / rate days."""
    return a + trust, b + trust / bounded(rate)


def weigh_age(a: float, b: float, age_days: float, trust: float) -> tuple[float, float]:
    """Belief with a claimed date of the last change added: `trust` of one change of that age."""
    return a + trust, b + trust * max(age_days, SHORTEST)


def sooner(due: float, now: float, trust: float) -> float:
    """The next read of a page that is said to have changed: what is left of the interval shrinks by the trust."""
    return due - trust * (due - now) if due > now else due
