"""Calibration of the model of freshness: how often changes came beside how often the model expected them.

Real changes come in clumps, beliefs begin from a prior, and rates drift; so the model's freshness is off by a share
that its own reads show. A read after tau days, of a page of importance r that was thought to change within s days with
probability p(s), adds

    P += r int_0^tau p(s) ds    the staleness that the model expected between the two reads
    Q += r x days stale         what came of it (frontier/freshness.py): none without a change; with one whose date is
                                not known what the model expects of such reads, int p / p(tau)
    kappa = Q / P               changes came kappa times as often as believed; freshness = 1 - kappa (1 - the model's)

So a page's reads weigh by the time that they stand for, and pages read often do not drown the others. The sums fade:
what MEMORY typical changes ago was expected counts 1/e. A crawl's cold beginning, when intervals are short and beliefs
are the prior, weighs little and is forgotten first. Until changes enough were expected, kappa is drawn to 1 by DOUBT of
them (the mean of a Gamma belief about it).

`xyro plan` reckons with rates that are known exactly, not with beliefs, and is off by another share: `by_rates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

MEMORY = 200.0
"""expected changes of typical weight that count: kappa is exact to 7 %, and a prior that was wrong is soon forgotten"""
DOUBT = 4.0
"""changes of typical weight that kappa = 1 is worth before any read: kappa is 1 to within a half"""


@dataclass(slots=True)
class Calibration:
    """The sums over the reads of one partition, or of several (`merge`). 4 numbers, 2 us a read."""

    believed: float = 0.0
    """P: importance x days stale, by belief"""
    rated: float = 0.0
    """the same where each page's rate is taken for known"""
    seen: float = 0.0
    """Q: importance x days stale, by what reads found"""
    weights: float = 0.0
    """sum of importance x days between reads, each times its part of P: over P, the weight of a typical change"""

    def read(self, stake: float, believed: float, rated: float, seen: float) -> None:
        """Take a read in, before its page's belief learns from it. All in importance x days.

        stake: since the read before; the others are those of it that the copy was stale, by belief, by the believed
        rate as if it were known, and by what the read found.
        """
        if not (stake > 0.0 and believed > 0.0):
            return
        weights = self.weights + stake * believed
        fade = math.exp(-believed * (self.believed + believed) / (MEMORY * weights))
        self.believed = fade * self.believed + believed
        self.rated = fade * self.rated + rated
        self.seen = fade * self.seen + seen
        self.weights = fade * self.weights + stake * believed

    def merge(self, other: Calibration) -> None:
        """Take the reads of another partition in."""
        self.believed += other.believed
        self.rated += other.rated
        self.seen += other.seen
        self.weights += other.weights

    @property
    def kappa(self) -> float:
        """Changes seen over changes believed; 1 before any read."""
        return self._over(self.believed)

    @property
    def by_rates(self) -> float:
        """Changes seen over those that known rates would have had."""
        return self._over(self.rated)

    def _over(self, expected: float) -> float:
        typical = DOUBT * self.weights / self.believed if self.believed > 0.0 else 1.0
        return (self.seen + typical) / (expected + typical)

    def fresh(self, model: float) -> float:
        """The model's freshness, or a page's probability of being fresh, put right."""
        return corrected(model, self.kappa)

    def dump(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, float] | None) -> Calibration:
        """Take over what `dump` gave; None: a directory from before there was any."""
        return cls(**state) if state else cls()


def corrected(freshness: float, kappa: float) -> float:
    """1 - kappa (1 - freshness), at least 0."""
    return max(1.0 - kappa * (1.0 - freshness), 0.0)
