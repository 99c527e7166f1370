"""Calibration of the model of freshness: how often changes came beside how often the model expected them.

Real changes come in clumps, beliefs begin from a prior, and rates drift; so the model's freshness is off by a share
that its own reads show. A read after tau days, of a page of importance r that was thought to change within s days with
probability p(s), adds

    P += r int_0^tau p(s) ds    the staleness that the model expected between the two reads
    Q += r x days stale         what came of it (frontier/freshness.py): none without a change; with one whose date is
                                not known what the model expects of such reads, int p / p(tau)
    kappa = Q / P               changes came kappa times as often as believed; freshness = 1 - kappa (1 - the model's)

So a page's reads weigh by the time that they stand for, and pages read often do not drown the others. One kappa for
all: what one folder is believed wrong by, and another is not, is for the beliefs to learn (fitted_rates.py); with one
for each octave of rates besides, the headline of 15 sites was no nearer (lab/crawls/NEWS.md). No kappa sees pages that
are stale and not read: where dates are far off it hears of them late. The sums fade: what MEMORY typical changes ago
was expected counts 1/e, or as many as there are stale pages, where these are more (`remember`: kappa is then about as
exact as a moment's freshness can be); in a young crawl what SHARE of all changes ago was, so a cold beginning, when
intervals are short and beliefs are the prior, is soon forgotten. Until changes enough were expected, kappa is drawn to
1 by DOUBT of them (the mean of a Gamma belief about it).

How far the freshness of a moment lies from that is told by the same reads. The staleness of now, of mean S, is the sum
of pages that are stale, and varies about S by

    g S (1 - S)     pages each by itself: g = sum r Q / (sum Q x all importance), one stale page's part of all
    V S^2           pages together: changes come in waves over a site. What a read finds beside what the few reads just
                    before it found: V = sum of products of (Q - kappa P) / sum of products of kappa P
    (1 + V) S^2 / 2n    kappa itself, which rests on n changes (of an average that fades so much)

and is taken for a Gamma variable, whose quantiles are Wilson and Hilferty's (1931), of CONFIDENCE. It may be one page
less. On change histories replayed in the frontier at 1 and 5 % a day it held the true freshness of 95 to 97 of 100
moments on three of them, of 83 (1 %) and 96 (5 %) on datasette, whose pace changes over years; of all moments in
computed webs, where waves are taken for more than the none there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

MEMORY = 50.0
"""expected changes of typical weight that count at least: on histories replayed at 1 and 5 % a day the mean error is
below .004, with 200 up to .005, and twice that in computed webs, for beliefs change as they learn"""
SHARE, SHORTEST = 0.15, 4.0
"""of all changes expected so far that a young crawl remembers, and the changes that it remembers at least"""
DOUBT = 16.0
"""changes of typical weight that kappa = 1 is worth before any read: kappa is 1 to within a quarter. With 4 the
headline of nine computed sites is off by .018 and .036 (.2 and .05 reads a page and day), with 16 by .016 and .033,
with 64 by .015 at .2, where it hears too little of histories whose pace changes"""
JUST_BEFORE = 8.0
"""reads that are compared with the next one"""
WAVES = 10.0
"""how many times as long what was learned of waves counts"""
CONFIDENCE = 0.95
Z = 1.959964
LEAST = 1e-9
LUMPIEST = 0.1
"""shape of a Gamma variable below which its quantiles are not Wilson and Hilferty's any more"""


class Headline(NamedTuple):
    """Freshness of now, and the interval of CONFIDENCE that is to hold the true one."""

    freshness: float
    low: float
    high: float


class ReadSums(Struct):
    """The fading sums over some reads, of one partition or of several (`merge`)."""

    believed: float = 0.0
    """P: importance x days stale, by belief"""
    seen: float = 0.0
    """Q: importance x days stale, by what reads found"""
    weights: float = 0.0
    """sum of importance x days between reads, each times its part of P: over P, the weight of a typical change"""
    changes: float = 0.0
    """changes of typical weight expected so far; this one does not fade"""

    def expected(self, stake: float, believed: float) -> float:
        """Changes of typical weight that were expected of a read."""
        return believed * (self.believed + believed) / (self.weights + stake * believed)

    def add(self, stake: float, believed: float, seen: float, memory: float) -> float:
        """Add a read; return what is left of those before."""
        count = self.expected(stake, believed)
        self.changes += count
        fade = math.exp(-count / max(min(memory, SHARE * self.changes), SHORTEST))
        self.believed = fade * self.believed + believed
        self.seen = fade * self.seen + seen
        self.weights = fade * self.weights + stake * believed
        return fade

    @property
    def ratio(self) -> float:
        """Return what was seen over what was believed, drawn to 1 by DOUBT."""
        typical = DOUBT * self.weights / self.believed if self.believed > 0.0 else 1.0
        return (self.seen + typical) / (self.believed + typical)

    def numbers(self) -> tuple[float, float, float, float]:
        """Return them in the order of the constructor (dataclasses.astuple copies deeply: 50 us a turn more)."""
        return self.believed, self.seen, self.weights, self.changes

    def merge(self, other: ReadSums) -> None:
        """Take the reads of another partition in."""
        self.believed += other.believed
        self.seen += other.seen
        self.weights += other.weights
        self.changes += other.changes


class Calibration(Struct):
    """The sums over the reads of one partition, or of several (`merge`). 10 numbers; 3 us a read."""

    whole: ReadSums = field(default_factory=ReadSums)
    grains: float = 0.0
    """sum of importance x its part of Q"""
    excess: float = 0.0
    """Q - kappa P of the reads just before, a mean"""
    share: float = 0.0
    """kappa P of the reads just before, a mean"""
    waves: float = 0.0
    """sum of products of Q - kappa P"""
    squares: float = 0.0
    """sum of products of kappa P"""
    memory: float = MEMORY
    """changes of typical weight that count"""

    def read(self, stake: float, believed: float, seen: float, importance: float) -> None:
        """Take a read in, before its page's belief learns from it. The first three in importance x days.

        stake: since the read before; the others are those of it that the copy was stale, by belief and by what the read
        found.
        """
        if not (stake > 0.0 and believed > 0.0):
            return
        count = self.whole.expected(stake, believed)
        self._compare(seen, self.kappa * believed, math.exp(-count / (WAVES * self.memory)))
        fade = self.whole.add(stake, believed, seen, self.memory)
        self.grains = fade * self.grains + importance * seen

    def remember(self, stale: float) -> None:
        """So much importance is stale by the model: kappa is to rest on as many changes as there are stale pages."""
        self.memory = max(MEMORY, stale * self.whole.seen / self.grains) if self.grains > 0.0 else MEMORY

    def _compare(self, seen: float, expected: float, fade: float) -> None:
        """Compare a read with those just before it."""
        self.waves = fade * (self.waves + (seen - expected) * self.excess)
        self.squares = fade * (self.squares + expected * self.share)
        self.excess += (seen - expected - self.excess) / JUST_BEFORE
        self.share += (expected - self.share) / JUST_BEFORE

    def merge(self, other: Calibration) -> None:
        """Take the reads of another partition in."""
        self.whole.merge(other.whole)
        self.grains += other.grains
        self.waves += other.waves
        self.squares += other.squares
        self.memory += other.memory

    @property
    def kappa(self) -> float:
        """Changes seen over changes believed, of all pages; 1 before any read."""
        return self.whole.ratio

    def fresh(self, model: float) -> float:
        """A page's probability of being fresh by the model, put right."""
        return corrected(model, self.kappa)

    def headline(self, stale: float, importance: float) -> Headline:
        """The model's freshness of now put right, with its interval (0 to 1 without reads).

        stale: importance that is stale by the model; importance: of all, above 0.
        """
        fresh = corrected(1.0 - stale / importance, self.kappa)
        off, whole = 1.0 - fresh, self.whole
        if whole.believed <= 0.0:
            return Headline(fresh, 0.0, 1.0)
        grain = min(self.grains / whole.seen / importance, 1.0) if whole.seen > 0.0 else 0.0
        together = max(self.waves / self.squares, 0.0) if self.squares > 0.0 else 0.0
        rests_on = DOUBT + whole.believed * whole.believed / whole.weights
        relative = together + (1.0 + together) / (2.0 * rests_on) + grain * fresh / max(off, grain, LEAST)
        shape = max(1.0 / relative, LUMPIEST)
        low, high = (max(1.0 - 1.0 / (9.0 * shape) + z / (3.0 * math.sqrt(shape)), 0.0) ** 3 for z in (-Z, Z))
        return Headline(fresh, max(1.0 - off * max(high, 1.0), 0.0), min(1.0 - off * min(low, 1.0) + grain, 1.0))

    def dump(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**{name: getattr(self, name) for name in self.__struct_fields__}, "whole": self.whole.numbers()}

    @classmethod
    def load(cls, state: Mapping[str, Any] | None) -> Calibration:
        """Take over what `dump` gave. None, or of a version that believed pages by their own priors: nothing is known
        of how far off these are."""
        if not state or "octaves" in state or "whole" not in state:
            return cls()
        return cls(**{**state, "whole": ReadSums(*state["whole"])})


def corrected(freshness: float, kappa: float) -> float:
    """1 - kappa (1 - freshness), at least 0."""
    return max(1.0 - kappa * (1.0 - freshness), 0.0)
