"""The worth of a read where the change rate is in doubt: freshness gained, expected over what is believed of it.

With a known rate a page is given up once r / lambda <= mu: it changes too fast to be worth following (policy.py). Put
one number of a belief there and a page that seemed fast in its first two reads is never read again, so nobody ever
learns that it is slow. The gain of a read of a copy of age t, V(lambda t) / lambda, has an expectation over the shares
p of the rates l (rate_belief.py), too:

    G(t) = E[V(lambda t) / lambda] = sum p V(l t) / l

It goes to V(lambda t) / lambda as a belief narrows, and to sum p / l as t does. So what few reads say is always looked
at again, later and later; a page is given up for good only when many reads say that it is fast.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.inverse import lost_freshness
from xyro.refresh.rate_belief import RATES

Reals = NDArray[np.float64]
_STEPS = 60


def expected_gain(shares: NDArray[np.floating], age: Reals | float) -> Reals:
    """G in days: of beliefs (shares of the rates, a row each), copies of these ages (days, >= 0)."""
    found: Reals = (shares * (lost_freshness(np.asarray(age, np.float64)[..., None] * RATES) / RATES)).sum(axis=-1)
    return found


def wait(shares: Reals, goal: float, longest: float) -> float:
    """Days after which G of one belief reaches `goal` (days, > 0): infinite if not within `longest`, or never."""
    if float(expected_gain(shares, longest)) < goal:
        return math.inf
    low, high = math.sqrt(2.0 * goal / float(shares @ RATES)), longest  # G <= E[lambda] t^2 / 2
    for _ in range(_STEPS):
        if high <= low * (1.0 + 1e-6):
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(expected_gain(shares, middle)) < goal else (low, middle)
    return high
