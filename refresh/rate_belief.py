"""Belief in a page's change rate: shares of 51 rates, from the sums of its visits and the prior of its kind of page.

With the sums V, n, C of rate_sums.py the share of the rate l is

    p(l) ~ prior(l) e^(-l V) (1 - e^(-l C/n))^n          51 nodes, 2 an octave, 2^-12 to 2^13 changes a day

The likelihood of change bits (P1 6.1.2) with all changed intervals taken as long as their mean. The prior is Student's
t with NU degrees of freedom in (ln l - mean) / sigma: about normal, with tails for pages unlike the others.

    rate(shares)          (sum p sqrt l)^2, changes a day: what P1's weight sqrt(r l) is in expectation
    quiet(shares, days)   P(no change within so many days) = sum p e^(-l days), at most 1
    chance_days(shares, chance)    the time at which 1 - quiet reaches `chance`, its inverse

A rate may change, and a page that was quiet for a month begin to change every hour. Where a change comes that was
hardly expected, the belief forks (Onset): with some chance w the rate is a new one since, of which no earlier visit
tells anything. Both are kept side by side, each read moves w by Bayes' rule, and the fork ends where w is settled, or
the page was quiet for longer since than before (either then says the same):

    odds of w before the change       HAZARD (1 - e^(-tau / SETTLED)) / (1 - that), tau its interval
    at each read from then on         times P(what it showed | new) / P(what it showed | old)
    shares                            (1 - w) those of all visits + w those of the visits since

So one change of a slow page is followed by a few reads more, and a second soon after it ends the doubt (Adams, MacKay,
"Bayesian online changepoint detection", 2007, with the two run lengths that matter).

Shares of one page are an array of NODES numbers, those of many a row each; sums to 1.

Priors are learned from the pages of a host, of a kind, and of the whole crawl by the EM algorithm. Each page counts
with what is believed of u = ln l after its last read: E[u] and E[u^2] under its shares. A population's prior has their
mean and variance, and pages are believed by that prior when they are read next (Dempster, Laird, Rubin, JRSS B 39,
1977, one page a step as in Neal and Hinton 1998). A page of which little is known counts with nearly what the prior
says of it, so it does not narrow the prior, and a fast one that was read often counts once, like all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from xyro.refresh.rate_sums import MEMORY, NO_CHANGES, SHORTEST, RateSums

Reals = NDArray[np.float64]

STEPS = 2
"""nodes an octave"""
SLOWEST, FASTEST = -12, 13
"""rates from 2^-12 (once in 11 years) to 2^13 a day (every 10 s): nobody could tell faster ones apart, or follow them,
and a page that showed a change at each read would be believed to be one of them"""
NODES = (FASTEST - SLOWEST) * STEPS + 1
LN = math.log(2.0) * np.linspace(SLOWEST, FASTEST, NODES)
"""ln of the nodes' rates"""
_EDGES = math.log(2.0) * (SLOWEST + (np.arange(NODES + 1) - 0.5) / STEPS)
RATES: Reals = np.exp(LN)
ROOTS: Reals = np.sqrt(RATES)
LOWEST_OCTAVE, OCTAVES = -9, 14
"""octaves of rates that are summed apart: 2^-9 to 2^5 changes a day, the ends take in what lies beyond"""
NU = 9.0
"""degrees of freedom of the prior. 6 learns faster and over-reads, a normal distribution is too slow."""
GRID = 32
"""priors lie on a grid of 1/32 in either parameter: a row keeps the number of its own, and few differ"""
NARROWEST, WIDEST = 0.5, 3.0
"""bounds of sigma: pages all alike would never be unlearnt"""
LEAST = -80.0
"""e to this power counts as nothing (a number that small takes the processor 100 times as long)"""
HAZARD, SETTLED = 0.08, 8.0
"""chance that a page changes at another rate after a long interval than before it, and the days that are long"""
ONSET_CAP = 5.0
"""changes in the typical interval that showed one, which a new rate is put at most at, while it is in doubt"""
FORKED, REFUTED, PROVEN = 0.05, 0.01, 0.9
"""chances of a new rate from which on a belief forks, at which it is dropped again, and at which the past is"""
MOMENT_STEPS = 512
"""moments are summed in integer steps: no drift, equal replays, and 10^9 pages stay within 64 bits"""
_SHIFT, _ZERO = 16, 1 << 13
_MOMENTS: Reals = np.stack((LN, LN * LN), axis=1) * MOMENT_STEPS
_MEAN, _SIGMA = math.log(0.1), 1.8
_SPREADS = 128
"""numbers of priors with one mean"""
_TIMES = np.exp2(np.arange(-44.0, 20.25, 0.5))
"""days, at which all chances are looked at first"""
_CHANCES: Reals = -np.expm1(-RATES[:, None] * _TIMES)


class RatePrior(NamedTuple):
    """The belief about a page never read, in steps of 1 / GRID from that with which a crawl begins, `RatePrior()`."""

    mean_steps: int = 0
    sigma_steps: int = 0

    @classmethod
    def fit(cls, mean: float, sigma: float) -> RatePrior:
        """The nearest prior with these parameters of ln l, within bounds."""
        mean, sigma = min(max(mean, float(LN[0])), float(LN[-1])), min(max(sigma, NARROWEST), WIDEST)
        return cls(round((mean - _MEAN) * GRID), round((sigma - _SIGMA) * GRID))

    @property
    def mean(self) -> float:
        """Of ln l."""
        return _MEAN + self.mean_steps / GRID

    @property
    def sigma(self) -> float:
        """Scale of ln l; its standard deviation is sqrt(NU / (NU - 2)) as long."""
        return _SIGMA + self.sigma_steps / GRID

    @property
    def code(self) -> int:
        """A small number for a row; 0: the prior with which a crawl begins."""
        return self.mean_steps * _SPREADS + self.sigma_steps

    @property
    def renewed(self) -> RatePrior:
        """The belief about a page whose rate changed: it may be any."""
        return RatePrior(self.mean_steps, round((WIDEST - _SIGMA) * GRID))

    @classmethod
    @lru_cache(maxsize=4096)
    def decode(cls, code: int) -> RatePrior:
        """The prior of this code."""
        mean_steps = (code + _SPREADS // 2) // _SPREADS
        return cls(mean_steps, code - mean_steps * _SPREADS)


START = RatePrior()


@lru_cache(maxsize=4096)
def ln_prior(prior: RatePrior) -> Reals:
    """ln of the prior at the nodes, up to a constant."""
    z = (LN - prior.mean) / prior.sigma
    found: Reals = -0.5 * (NU + 1.0) * np.log1p(z * z / NU)
    found -= found.max()
    found.flags.writeable = False
    return found


@lru_cache(maxsize=4096)
def unread(prior: RatePrior) -> Reals:
    """Shares of a page of which nothing is known but the prior."""
    shares = np.exp(ln_prior(prior))
    shares /= shares.sum()
    shares.flags.writeable = False
    return shares


class Onset(NamedTuple):
    """The chance that a page changes at a new rate since a change that was hardly expected, and the visits since."""

    chance: float
    sums: RateSums


class PageBelief(NamedTuple):
    """The belief about one page, as it follows from its sums and the prior of pages of its kind."""

    sums: RateSums
    prior: RatePrior
    onset: Onset | None = None

    def shares(self) -> Reals:
        """Float64[NODES], not to be written to."""
        return shares(self.sums, self.prior) if self.onset is None else _forked(*self)

    def after(self, tau_days: float, changed: bool, age_days: float | None, memory: float = MEMORY) -> PageBelief:
        """The belief after one more read; parameters as of `RateSums.after`."""
        sums = self.sums.after(tau_days, changed, age_days, memory)
        if self.onset is None and (not changed or not self.sums.quiet_days):
            return PageBelief(sums, self.prior)
        tau = max(tau_days, SHORTEST)
        if self.onset is None:
            before, since = HAZARD * -math.expm1(-tau / SETTLED), RateSums()
        else:
            before, since = self.onset
        fading = _fading(tau)
        new, old = float(shares(since, self.prior.renewed) @ fading), float(shares(self.sums, self.prior) @ fading)
        if changed:
            new, old = 1.0 - new, max(1.0 - old, 0.0)
        new, old = before * new, (1.0 - before) * old
        chance = new / (new + old) if new > 0.0 else 0.0
        if chance < (FORKED if self.onset is None else REFUTED):
            return PageBelief(sums, self.prior)
        since = since.after(tau_days, changed, age_days, memory)
        if chance > PROVEN:
            return PageBelief(since, self.prior)
        if since.quiet_days >= 0.5 * sums.quiet_days:
            return PageBelief(sums, self.prior)
        return PageBelief(sums, self.prior, Onset(chance, since))

    def rate(self) -> float:
        """Changes a day. Of a fork, the geometric mean of both by their chances: a new rate in doubt is no rate of
        hundreds a day (ONSET_CAP)."""
        if self.onset is None:
            return float(rate(self.shares()))
        chance, since = self.onset
        old = float(rate(shares(self.sums, self.prior)))
        new = since.capped(float(rate(shares(since, self.prior.renewed))), ONSET_CAP)
        return old * math.exp(chance * math.log(new / old))

    def quiet(self, days: float) -> float:
        """P(no change within `days`)."""
        return float(self.shares() @ _fading(days))

    def chance_days(self, chance: float) -> float:
        """Days after which it has changed with this probability: as `chance_days`, of one page."""
        if not 0.0 < chance < 1.0:
            return 0.0 if chance <= 0.0 else math.inf
        shares = self.shares()
        reached = shares @ _CHANCES
        place = min(max(int(np.searchsorted(reached, chance)), 1), len(_TIMES) - 1)
        wanted = math.log(-math.log1p(-chance))
        low, high = (math.log(-math.log1p(-min(float(reached[k]), 1.0 - 1e-15))) for k in (place - 1, place))
        part = min(max((wanted - low) / (high - low), 0.0), 1.0) if high > low else 0.0
        days: float = float(_TIMES[place - 1]) * math.exp2(0.5 * part)
        for _ in range(2 if self.onset is None else 3):  # a fork of two rates far apart is no line
            gone = shares * np.expm1(np.maximum(RATES * -days, LEAST))
            changed, leaving = float(gone.sum()), float((shares + gone) @ RATES)
            hazard = -math.log1p(max(changed, 1e-15 - 1.0))
            days *= math.exp((wanted - math.log(hazard)) * hazard * (1.0 + changed) / (leaving * days))
        return days


@lru_cache(maxsize=1024)
def shares(sums: RateSums, prior: RatePrior) -> Reals:
    """The belief about one page: float64[NODES], not to be written to. A turn asks for it several times."""
    if not sums.changes and not sums.quiet_days:
        return unread(prior)
    powers = ln_prior(prior) - sums.quiet_days * RATES
    if sums.changes > NO_CHANGES:
        powers += _ln_changes(RATES * (sums.change_days / sums.changes)) * sums.changes
    powers -= powers.max()
    np.maximum(powers, LEAST, out=powers)
    np.exp(powers, out=powers)
    powers /= powers.sum()
    powers.flags.writeable = False
    return powers


@lru_cache(maxsize=1024)
def _forked(sums: RateSums, prior: RatePrior, onset: Onset) -> Reals:
    found = shares(sums, prior) * (1.0 - onset.chance) + shares(onset.sums, prior.renewed) * onset.chance
    found.flags.writeable = False
    return found


def _fading(days: float) -> Reals:
    """e^(-l days) of the nodes; less than e^LEAST counts as that."""
    powers = RATES * -days
    np.maximum(powers, LEAST, out=powers)
    return np.exp(powers, out=powers)


def shares_of_pages(beliefs: Sequence[PageBelief]) -> Reals:
    """The beliefs about many pages: float64[pages, NODES]."""
    found = shares_of_many(np.array([page.sums for page in beliefs]), [page.prior.code for page in beliefs])
    forks = [(turn, page.prior.renewed.code, page.onset) for turn, page in enumerate(beliefs) if page.onset is not None]
    if forks:
        turns, codes_of, onsets = zip(*forks, strict=True)
        mix_in(found, np.array(turns), np.array([onset.chance for onset in onsets]),
               shares_of_many(np.array([onset.sums for onset in onsets]), codes_of))  # fmt: skip
    return found


def rates_of_pages(beliefs: Sequence[PageBelief], shares: Reals) -> list[float]:
    """The rates of pages, changes a day; shares: as `shares_of_pages` makes them."""
    found: list[float] = rate(shares).tolist()
    for turn, page in enumerate(beliefs):
        if page.onset is not None:
            found[turn] = page.rate()
    return found


def mix_in(shares: Reals, pages: NDArray[np.int64], chances: Reals, new: Reals) -> None:
    """Let `pages` of the shares be those of another rate (`new`) with these chances, in place."""
    shares[pages] += chances[:, None] * (new - shares[pages])


def shares_of_many(sums: Reals, priors: Sequence[int]) -> Reals:
    """The beliefs about many pages: float64[pages, NODES]. sums: a row of V, n, C each; priors: their codes."""
    powers = ln_likelihood(sums)
    if len(sums):
        powers += _by_code(priors[0]) if len(set(priors)) == 1 else np.stack([_by_code(code) for code in priors])
    return normal(powers)


def ln_likelihood(sums: Reals) -> Reals:
    """ln of the likelihood of the nodes' rates by the visits of many pages: float64[pages, NODES], up to a constant of
    each page. sums: a row of V, n, C each."""
    quiet_days, changes, change_days = sums.T
    powers: Reals = quiet_days[:, None] * -RATES
    changed = np.flatnonzero(changes > NO_CHANGES)
    if len(changed):
        count = changes[changed]
        evidence = _ln_changes((change_days[changed] / count)[:, None] * RATES)
        evidence *= count[:, None]
        powers[changed] += evidence
    return powers


def rate(shares: Reals) -> Reals:
    """(sum p sqrt l)^2 of each page, changes a day."""
    found: Reals = np.square(shares @ ROOTS)
    return found


def quiet(shares: Reals, days: Reals | float) -> Reals:
    """P(no change within `days`) of each page; days: one number (>= 0), or one of each page."""
    fading = np.asarray(days, np.float64)[..., None] * -RATES
    np.maximum(fading, LEAST, out=fading)
    found: Reals = (shares * np.exp(fading)).sum(axis=-1)
    return found


def quantile(shares: Reals, share: float) -> Reals:
    """The rate below which so great a share (0 to 1) of one belief lies: a node stands for the rates half a step about
    it, evenly in ln."""
    found: Reals = np.exp(np.interp(share, np.concatenate(([0.0], np.cumsum(shares))), _EDGES))
    return found


def chance_days(shares: Reals, chance: float) -> Reals:
    """Days after which each page has changed with this probability: within 1e-6 of its length; infinite for 1.

    chance: 0 <= chance <= 1. By a look at times half an octave apart, then Newton's steps between ln of either, where a
    mixture of exponentials is nearly a line.
    """
    pages = np.atleast_2d(shares)
    if not 0.0 < chance < 1.0:
        return np.full(shares.shape[:-1], 0.0 if chance <= 0.0 else math.inf)
    first = ((pages @ _CHANCES) < chance).sum(axis=1)
    days = _TIMES[np.minimum(first, len(_TIMES) - 1)].copy()
    for _ in range(3):
        powers = days[:, None] * -RATES
        np.maximum(powers, LEAST, out=powers)
        reached = (pages * -np.expm1(powers)).sum(axis=1)
        slope = (pages * RATES * np.exp(powers)).sum(axis=1) * days
        ratio = np.log1p(-reached) / math.log1p(-chance)
        step = -np.log(ratio) * np.log1p(-reached) * (reached - 1.0) / np.maximum(slope, 1e-300)
        days *= np.exp(np.clip(step, -0.5, 0.5))
    found: Reals = days.reshape(shares.shape[:-1])
    return found


@lru_cache(maxsize=4096)
def _by_code(code: int) -> Reals:
    return ln_prior(RatePrior.decode(code))


def _ln_changes(x: Reals) -> Reals:
    """ln(1 - e^-x), x > 0."""
    powers = np.maximum(-x, LEAST)
    np.expm1(powers, out=powers)
    np.negative(powers, out=powers)
    return np.log(powers, out=powers)


def normal(powers: Reals) -> Reals:
    """The powers of e as shares, a row each, in place."""
    powers -= powers.max(axis=-1, keepdims=True, initial=-math.inf)
    np.maximum(powers, LEAST, out=powers)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def octave(rate: float) -> int:
    """The number of the octave of rates (changes a day, above 0) that a page belongs to: 0 to OCTAVES - 1."""
    return min(max(math.frexp(rate)[1] - 1 - LOWEST_OCTAVE, 0), OCTAVES - 1)


def codes(shares: Reals) -> list[int]:
    """E[u] and E[u^2] of pages, in one number each above 0: what a row keeps to take the page out again."""
    moments = np.rint(shares @ _MOMENTS).astype(np.int64)
    found: list[int] = (((moments[:, 0] + _ZERO) << _SHIFT) + moments[:, 1]).tolist()
    return found


class RatePopulation(Struct):
    """Pages of one kind: how many, the sums of E[u] and E[u^2] in steps."""

    pages: int = 0
    total: int = 0
    squares: int = 0

    def shift(self, old: int, new: int) -> None:
        """One of its pages goes from one code to another; 0: it was not, or is no longer, in it."""
        for code, sign in ((old, -1), (new, 1)):
            if code:
                self.pages += sign
                self.total += sign * ((code >> _SHIFT) - _ZERO)
                self.squares += sign * (code & ((1 << _SHIFT) - 1))

    def numbers(self) -> list[int]:
        return [self.pages, self.total, self.squares]

    def pack(self) -> bytes:
        """21 bytes, for a row; empty where it counts no page."""
        if not self.pages:
            return b""
        total = self.total.to_bytes(8, "little", signed=True)
        return self.pages.to_bytes(5, "little") + total + self.squares.to_bytes(8, "little")

    @classmethod
    def unpack(cls, data: bytes) -> RatePopulation:
        """Unpack the bytes that `pack` made; empty for anything else, such as 24 bytes of an older version."""
        if len(data) != 21:
            return cls()
        pages, squares = int.from_bytes(data[:5], "little"), int.from_bytes(data[13:], "little")
        return cls(pages, int.from_bytes(data[5:13], "little", signed=True), squares)

    def prior(self) -> RatePrior:
        """The prior that fits these pages. Its sigma is their standard deviation, so it is wider than they are, by
        sqrt(NU / (NU - 2)) and more where little is known of them: such pages repeat the prior, which widens with each
        step of the EM algorithm. That is wanted: with their variance alone a quarter more changes are missed where 3 %
        of the pages are fast (lab/refresh/rate_trials.py, news), and intervals hold no more of the rates."""
        mean = self.total / self.pages
        variance = self.squares * MOMENT_STEPS / self.pages - mean * mean
        return RatePrior.fit(mean / MOMENT_STEPS, math.sqrt(max(variance, 0.0)) / MOMENT_STEPS)


class PriorLearner:
    """`recount` as pages are read; `prior` of a key, once it has `enough` pages, before that of all pages together.

    Each counted page is in twice, in its key's population and in the whole. `most_keys` bounds the memory; pages of
    further keys count in the whole only.
    """

    def __init__(self, enough: int = 50, most_keys: int = 20_000) -> None:
        self.enough = enough
        self.most_keys = most_keys
        self.whole = RatePopulation()
        self.keys: dict[str, RatePopulation] = {}

    def recount(self, key: str, old: int, new: int) -> None:
        """A page of `key` goes from one code to another (`codes`); 0: it was not, or is no longer, counted.

        `old` must be the very number that was given as `new`, or the population keeps the difference.
        """
        population = self.keys.get(key)
        if population is None and not old and len(self.keys) < self.most_keys:
            population = self.keys[key] = RatePopulation()
        self.whole.shift(old, new)
        if population is not None:
            population.shift(old, new)

    def prior(self, key: str) -> RatePrior:
        """The prior for pages of `key`."""
        population = self.keys.get(key)
        if population is not None and population.pages >= self.enough:
            return population.prior()
        return self.common

    @property
    def common(self) -> RatePrior:
        """The prior of all pages together."""
        return self.whole.prior() if self.whole.pages >= self.enough else START

    def dump(self) -> dict[str, dict[str, list[int]]]:
        """All of its state as plain numbers, [pages, total, squares] each."""
        whole, keys = self.whole.numbers(), {key: population.numbers() for key, population in self.keys.items()}
        return {"whole": {"": whole}, "keys": keys}

    def load(self, state: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        """Take over what `dump` gave."""
        self.whole = RatePopulation(*state["whole"][""])
        self.keys = {key: RatePopulation(*numbers) for key, numbers in state["keys"].items()}
