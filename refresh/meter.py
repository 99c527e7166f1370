"""The audit of freshness: pages read at random, whatever the plan thinks of them, and what that proves.

A page is chosen with a probability in proportion to its importance, so the share of audited pages that had not changed
since they were last read estimates the importance-weighted freshness without bias (Hansen-Hurwitz), whether changes are
Poisson or not and whatever the model believes. Audits follow reads, which may come in bursts: each run of RUN audits
weighs as much as the time that passed until the next one, so the estimate is of the mean over time.
Each audit is a coin of its own, fresh with the freshness of its moment; so Wilson's interval (JASA 1927) holds for that
mean, and is wide where coins are few or stand for unequal times.

What the model expected of the very pages audited says by how much it is wrong (the difference estimator of survey
sampling: Sarndal et al., Model Assisted Survey Sampling, 1992, ch. 6). The model is the calibrated one
(calibration.py), which learns from these reads, too, as from all; `shifted` moves it as far as it is off by more than
chance. Audits are of the mean over the time of their window, the headline is of now: two intervals, of two numbers.

Choosing in proportion from millions of pages has to be cheap: `Blocks` keeps the importance of each run of BLOCK pages
as it last saw it, chooses a block by that and a page in it by the importances of now. That a block's sum has moved
since makes its pages more or less likely than they should be by a factor that is then known; the audit weighs as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from xyro.refresh.calibration import Headline
from xyro.wire.ids import LocalPage

Reals = NDArray[np.float64]

WINDOW = 512
"""audits that count: half an interval is 4 points at a freshness of .85"""
PARTS = 32
"""the window moves on by a part"""
RUN = 4
"""audits that share the time until the next run begins. More: a burst drags its neighbours along; fewer: chance gaps
between audits become unequal weights (with 1 and audits at random times, half of their worth is lost)"""
LEAST = 1.0
"""seconds that a run stands for at least, such as one of audits at one moment"""
CONFIDENCE = 0.99
"""Of one look at the interval. Who looks 50 times over a few windows, as an operator does, sees it miss the truth in
bunches: it holds in 45 of the 50 for 97 of 100 crawls (one of 95 %: for 83; measured, tests/refresh/test_meter.py)."""
Z = 2.575829
"""of 99 %"""
BLOCK = 4096
"""pages a block: 50 us to look at"""


class AuditPart(Struct):
    """Sums over audits that followed each other. Stored: append only."""

    audits: int = 0
    weights: float = 0.0
    """of a run as chosen, about 1 an audit; of a part of the window the seconds that it stands for"""
    squares: float = 0.0
    """sum of squared weights"""
    fresh: float = 0.0
    """sum of the weights of pages that had not changed"""
    expected: float = 0.0
    """sum of weight x the probability of that by the model"""
    since: float = 0.0
    """first audit, seconds"""
    until: float = 0.0
    """last audit, seconds"""
    chance: float = 0.0
    """sum of weight^2 x the variance of one audit about what the model expects of it, as that has it"""
    misses: float = 0.0
    """sum of weight^2 x the square by which an audit differed from that"""
    squares_fresh: float = 0.0
    """sum of the squared weights of pages that had not changed"""

    def numbers(self) -> list[float]:
        return [getattr(self, name) for name in self.__struct_fields__]

    def add(self, fresh: bool, expected: float, weight: float, now: float) -> None:
        """One audit of a run."""
        square = weight * weight
        self.audits += 1
        self.weights += weight
        self.squares += square
        self.fresh += weight * fresh
        self.expected += weight * expected
        self.until = max(self.until, now)
        self.chance += square * expected * (1.0 - expected)
        self.misses += square * (fresh - expected) ** 2
        self.squares_fresh += square * fresh

    def take(self, other: AuditPart, seconds: float) -> None:
        """The audits of another one stand for so much time."""
        factor = seconds / other.weights
        self.audits += other.audits
        self.weights += seconds
        self.squares += factor * factor * other.squares
        self.fresh += factor * other.fresh
        self.expected += factor * other.expected
        self.until = max(self.until, other.until)
        self.chance += factor * factor * other.chance
        self.misses += factor * factor * other.misses
        self.squares_fresh += factor * factor * other.squares_fresh

    def spread(self, share: float) -> float:
        """Variance of fresh / weights, where that is `share`: of coins (Kish), or more where heavy ones vary more."""
        coins = share * (1.0 - share) * self.squares
        seen = self.squares_fresh * (1.0 - 2.0 * share) + share * share * self.squares  # sum w^2 (fresh - share)^2
        return max(coins, seen) / (self.weights * self.weights)

    @property
    def noise(self) -> float:
        """Variance of (fresh - expected) / weights: the greater of what the model and what the audits say of it."""
        return max(self.chance, self.misses) / (self.weights * self.weights)


class AuditFindings(NamedTuple):
    """The findings of audits: the mean freshness over the time of the window, all weighted by importance."""

    freshness: float | None
    """None: nothing was audited yet"""
    low: float
    high: float
    """the interval, of CONFIDENCE"""
    expected: float | None
    """what the model expected of the same pages at the same moments"""
    noise: float
    """variance of freshness - expected where the model is right"""
    audits: int
    since: float
    """the window's first audit, seconds"""


NOTHING = AuditFindings(None, 0.0, 1.0, None, math.inf, 0, 0.0)


class AuditWindow(Struct):
    """The last WINDOW audits, to within a part. 33 x 10 numbers."""

    parts: list[AuditPart] = field(default_factory=list)
    run: AuditPart = field(default_factory=AuditPart)
    """audits that do not know yet for how long they stand"""

    def add(self, fresh: bool, expected: float, weight: float, now: float) -> None:
        """A page was audited. weight: as its importance was chosen for, about 1."""
        if self.run.audits >= RUN:
            self._close(now)
        if not self.run.audits:
            self.run.since = now
        self.run.add(fresh, expected, weight, now)

    def _close(self, now: float) -> None:
        run = self.run
        if not self.parts or self.parts[-1].audits >= WINDOW // PARTS:
            self.parts = [*self.parts[1 - PARTS :], AuditPart(since=run.since)]
        self.parts[-1].take(run, max(now - run.since, LEAST))
        self.run = AuditPart()

    @property
    def whole(self) -> AuditPart:
        """All together, in seconds."""
        whole = AuditPart(since=self.parts[0].since if self.parts else self.run.since)
        for part in self.parts:
            whole.take(part, part.weights)
        if self.run.audits:
            whole.take(self.run, max(self.run.until - self.run.since, LEAST))
        return whole

    def dump(self) -> list[list[float]]:
        """The parts, then the run."""
        return [part.numbers() for part in (*self.parts, self.run)]

    @classmethod
    def load(cls, state: Sequence[Sequence[float]]) -> AuditWindow:
        """Take over what `dump` gave, of this version or of the one that had no runs."""
        parts = [AuditPart(int(audits), *sums) for audits, *sums in state]
        if not parts or len(state[0]) == len(AuditPart.__struct_fields__):
            return cls(parts[:-1], parts[-1]) if parts else cls()
        window = cls()
        for part in parts:  # nothing is known of the variance: the most there can be
            if window.run.audits:
                window._close(part.since)
            square = part.squares / part.weights
            window.run = replace(part, until=part.since, chance=0.25 * part.squares, squares_fresh=square * part.fresh)
        return window


def found(windows: Iterable[tuple[AuditWindow, float]]) -> AuditFindings:
    """Combine windows; each with the importance of its pages, which strata weigh."""
    return combined((window.whole, size) for window, size in windows)


def combined(wholes: Iterable[tuple[AuditPart, float]]) -> AuditFindings:
    """Combine whole windows (`AuditWindow.whole`) of partitions, each with the importance of its pages."""
    parts = [(part, size) for part, size in wholes if part.audits and size > 0.0]
    if not parts:
        return NOTHING
    total = sum(size for _, size in parts)
    shares = [(part, size / (total * part.weights)) for part, size in parts]
    fresh = sum(share * part.fresh for part, share in shares)
    low, high = wilson(fresh, _coins(fresh, shares))
    return AuditFindings(
        freshness=fresh,
        low=low,
        high=high,
        expected=sum(share * part.expected for part, share in shares),
        noise=sum((share * part.weights) ** 2 * part.noise for part, share in shares),
        audits=sum(part.audits for part, _ in parts),
        since=min(part.since for part, _ in parts),
    )


def _coins(fresh: float, shares: Sequence[tuple[AuditPart, float]]) -> float:
    """Audits of equal weight, each fresh with this probability, that would tell as much."""
    equal = sum(share * share * part.squares for part, share in shares)
    if not 0.0 < fresh < 1.0:
        return 1.0 / equal
    spread = sum((share * part.weights) ** 2 * part.spread(fresh) for part, share in shares)
    return fresh * (1.0 - fresh) / max(spread, fresh * (1.0 - fresh) * equal)


def wilson(share: float, coins: float, z: float = Z) -> tuple[float, float]:
    """Wilson's interval of a share seen in so many coins (of unequal weights: Kish's effective number)."""
    if coins <= 0.0:
        return 0.0, 1.0
    square = z * z / coins
    middle = (share + 0.5 * square) / (1.0 + square)
    half = z / (1.0 + square) * math.sqrt(max(share * (1.0 - share) / coins, 0.0) + 0.25 * square / coins)
    return max(0.0, middle - half), min(1.0, middle + half)


def shifted(model: Headline, seen: AuditFindings) -> Headline:
    """The calibrated model's freshness of now, moved by what audits found it to be off beyond chance, of CONFIDENCE.

    What was of the window is of now in log odds. Rises with the model's number.
    """
    if seen.freshness is None or seen.expected is None:
        return model
    chance = Z * math.sqrt(seen.noise)
    off = min(max(seen.freshness, seen.expected - chance), seen.expected + chance)
    if seen.freshness == off:
        return model
    moved = _odds(seen.expected + seen.freshness - off) - _odds(seen.expected)
    fresh, low, high = (_share(_odds(share) + moved) for share in model)
    return Headline(fresh, min(low, model.low), max(high, model.high))


def _odds(share: float) -> float:
    """Log odds, of no more than a million to one."""
    share = min(max(share, 1e-6), 1.0 - 1e-6)
    return math.log(share / (1.0 - share))


def _share(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


class Chosen(NamedTuple):
    page: LocalPage
    weight: float
    """the importance of its block now by what it was when the block was chosen by it: about 1"""


class Blocks:
    """Importance by block of pages, as last seen. 8 bytes for 4,096 pages.

    `look` at every block now and then (`behind` says which is next); until all were seen once nothing is chosen.
    """

    def __init__(self) -> None:
        self._sums: Reals = np.zeros(0)
        self._next = 0

    def __len__(self) -> int:
        return len(self._sums)

    def whole(self, pages: int) -> bool:
        """Tell whether every block of so many pages has been looked at."""
        return len(self._sums) * BLOCK >= pages

    def behind(self, pages: int) -> int:
        """The block to look at next: a new one, else each in its turn."""
        if not self.whole(pages):
            return len(self._sums)
        self._next = (self._next + 1) % max(1, len(self._sums))
        return self._next

    def look(self, block: int, importance: Reals) -> None:
        """The importance of a block's pages is now; 0 of those that cannot be audited."""
        if block == len(self._sums):
            self._sums = np.append(self._sums, 0.0)
        self._sums[block] = importance.sum()

    def block(self, random: float) -> int | None:
        """A block in proportion to its importance; random: 0 <= random < 1. None: no importance anywhere."""
        sums = np.cumsum(self._sums)
        if not len(sums) or not sums[-1] > 0.0:
            return None
        return min(int(np.searchsorted(sums, random * sums[-1], side="right")), len(sums) - 1)

    def page(self, block: int, importance: Reals, random: float) -> Chosen | None:
        """A page of the chosen block, in proportion to the importances of now. None: none of it can be audited."""
        before = float(self._sums[block])
        self.look(block, importance)
        sums = np.cumsum(importance)
        if not sums[-1] > 0.0:
            return None
        place = int(np.searchsorted(sums, random * sums[-1], side="right"))
        return Chosen(LocalPage(block * BLOCK + min(place, len(sums) - 1)), float(sums[-1]) / before)
