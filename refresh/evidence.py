"""Evidence of claims on a page's change rate, and how far a claim moves its next read. Pure.

A claim never commands: of the host's learned trust w (refresh.trust)

    "it changes N times a day"    w of one change seen in 1 / N days, once, when the page's belief begins
    "it changed at T"             of a page never read: w of one change of age now - T
                                  of a page read before T: the rest of its interval shrinks to (1 - w) of it
"""

from __future__ import annotations

from xyro.refresh.rate_belief import PageBelief
from xyro.refresh.rate_sums import SHORTEST, RateSums

FASTEST = 1440.0
"""Changes a day, at most, that a claim is heard to say: once a minute."""
SLOWEST = 1 / 3650.0


def outcome(belief: PageBelief, tau_days: float, changed: bool) -> float:
    """Probability of what a visit showed under the belief."""
    still = belief.quiet(max(tau_days, SHORTEST))
    return 1.0 - still if changed else still


def claimed_outcome(rate: float, tau_days: float, changed: bool) -> float:
    """Probability of what a visit showed if the page changes about `rate` times a day, right in its order of magnitude:
    an exponential distribution of that mean.
    """
    still = 1.0 / (1.0 + bounded(rate) * max(tau_days, SHORTEST))
    return 1.0 - still if changed else still


def bounded(rate: float) -> float:
    """A claimed rate within reason, 1/day."""
    return min(max(rate, SLOWEST), FASTEST)


def weigh_rate(sums: RateSums, rate: float, trust: float) -> RateSums:
    """The sums with a claimed rate (1/day) added: `trust` of one change seen after 1 / rate days."""
    return sums.dated(1.0 / bounded(rate), trust) if trust > 0.0 else sums


def weigh_age(sums: RateSums, age_days: float, trust: float) -> RateSums:
    """The sums with a claimed date of the last change added: `trust` of one change of that age."""
    return sums.dated(max(age_days, SHORTEST), trust) if trust > 0.0 else sums


def sooner(due: float, now: float, trust: float) -> float:
    """The next read of a page that is said to have changed: what is left of the interval shrinks by the trust."""
    return due - trust * (due - now) if due > now else due
