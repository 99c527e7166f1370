"""Sums of a page's visits: all that its change rate is estimated from, three numbers a page.

V    days of the intervals in which it did not change
n    changes seen
C    n times the typical interval that showed one, in days: their geometric mean

A short interval that shows a change says the most: for l t << 1 its likelihood is l t, and that of several is as of
their geometric mean. An arithmetic one is that of the longest, and a page that turned fast is thought slow for long.

Before each read all three fade by 1 - 1 / memory. The prior is in none of them, so nothing draws a page towards it, and
a better prior acts on every page at once (rate_belief.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

DAY = 86_400.0
SHORTEST = 1.0 / DAY
"""Least exposure of a visit (days): dates are kept to the second, and a clock set back must not unlearn."""
MEMORY = 100.0
"""Reads that count: of a page that is read about as often as it changes, 100 say its rate within 12 %."""
INSTANT = 1e-6
"""days: the interval of a change whose age is known, so short that it shows one change and no more"""
QUIET = 0.2
"""share of a changed interval that has to be quiet before a rate stands without a cap"""


NO_CHANGES = 1e-12
"""fewer changes than this are forgotten ones"""


class RateSums(NamedTuple):
    """The visits of one page, faded. `RateSums()`: nothing was shown."""

    quiet_days: float = 0.0
    """V"""
    changes: float = 0.0
    """n"""
    change_days: float = 0.0
    """C; above 0 where n is"""

    @classmethod
    def from_gamma(cls, a: float, b: float) -> RateSums:
        """Make sums of what an older version's Gamma(a, b), b in days, says beyond the prior that it began with."""
        changes = max(a - 0.309, 0.0)
        quiet_days = b - 1.168 if b > 1.168 else changes * b / a
        return cls(quiet_days, changes, changes * INSTANT)

    def after(self, tau_days: float, changed: bool, age_days: float | None, memory: float = MEMORY) -> RateSums:
        """The sums after one more read, tau days after the one before.

        age_days: days since the change, where its date is trusted. One outside [0, tau] contradicts the visit and
        leaves the change bit. memory: reads that count, > 1; infinite = never forget.
        """
        keep = 1.0 - 1.0 / memory
        faded = RateSums(self.quiet_days * keep, self.changes * keep, self.change_days * keep)
        tau = tau_days if tau_days > SHORTEST else SHORTEST
        if not changed:
            return RateSums(faded.quiet_days + tau, faded.changes, faded.change_days)
        if age_days is not None and 0.0 <= age_days <= tau:
            return faded.dated(age_days)
        return faded.with_change(tau)

    def with_change(self, tau_days: float) -> RateSums:
        """The sums with one more interval that showed a change."""
        changes, typical = self.changes + 1.0, tau_days
        if self.changes > NO_CHANGES:
            before = math.log(self.change_days / self.changes)
            typical = math.exp((self.changes * before + math.log(tau_days)) / changes)
        return RateSums(self.quiet_days, changes, changes * typical)

    def dated(self, age_days: float, weight: float = 1.0) -> RateSums:
        """The sums with `weight` of one change, quiet for `age_days` since.

        The age of a first read is the backward recurrence time of a Poisson process, exponential like a whole interval.
        """
        quiet = self.quiet_days + weight * max(age_days, 0.0)
        return RateSums(quiet, self.changes + weight, self.change_days + weight * INSTANT)

    def capped(self, rate: float, cap: float) -> float:
        """The rate by which the page is read where `cap` bounds it: cap / its mean interval that showed a change.

        Only where quiet intervals say next to nothing against faster rates (V < QUIET C/n). cap: 0 = none.
        """
        if not (cap and self.changes) or self.quiet_days * self.changes >= QUIET * self.change_days:
            return rate
        return min(rate, cap * self.changes / self.change_days)

    @property
    def hopeless_rate(self) -> float:
        """The slowest rate (a day) that explains the changes half as well as the best one, where all visits showed one.

        Then the likelihood (1 - e^(-l C/n))^n only rises with the rate, and the belief says little against faster ones.
        0: nothing was shown.
        """
        if not self.changes:
            return 0.0
        return -math.log(-math.expm1(-math.log(2.0) / self.changes)) * self.changes / self.change_days
