"""Change rates: lambda of a page from what its reads showed, two numbers a page (algorithms.md E).

A page is a Poisson process of unknown rate lambda; our belief is Gamma(a, b): mean a / b changes per day.

    no change over tau                       b += tau                                   exact
    a change whose age is trusted            a += 1, b += age                           exact
    a change, only the bit                   the Gamma with the posterior's two moments (P1 eq. 9, as the product)
    before each of these                     both are drawn towards the prior by 1 / M  (forgetting)

Batch estimators over a page's whole history, to which the tests hold these rules, stand in lab/refresh/estimators.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DAY = 86_400.0
SHORTEST = 1.0 / DAY
"""Least exposure of a visit (days): dates are kept to the second, and a clock set back must not unlearn."""
MEMORY = 100.0
"""Reads that count. 100 costs nothing without drift (algorithms.md E), and follows a jump sooner than never forgetting:
RMS of ln lambda 1.06 against 1.19 after 40 reads, .96 with 50. On the real histories of ../shared/data forgetting
faster loses, for a burst is no new rate: P1's law at 1 % a day is fresh .9598 of the time with 25, .9615 with 50, .9640
with 100, .9652 without (lab/REFRESH.md)."""
YOUNGEST = 60.0 / DAY
"""Least age (days) of a Last-Modified we trust: dynamic servers answer "now" (RFC 7232 2.2.2 asks for 60 s, too)."""
OLDEST_DATE = 631_152_000.0
"""1990-01-01: before the web. Year 0001, 1970 and 1980 (FAT, reproducible archives) are defaults, not dates."""
SETTLED = 5
"""Reads after which a page's rate counts in the population that the prior is fitted to."""
STEPS = 4096
"""Steps per unit of ln lambda: fine against any sigma, and the sums of 10^9 pages stay within 64 bits."""
EXTREME = 31.0
_ZERO = round(STEPS * EXTREME) + 1
NARROWEST, WIDEST = 0.5, 3.0
NEGLIGIBLE = 1e-12
"""Relative variance under which moment matching has no digits left (a ~ 1e12: unreachable with forgetting)."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Belief about a page never read: Gamma(a, b), b in days. Default: median 0.1 a day, sigma of ln lambda 1.8."""

    a: float = 0.309
    b: float = 1.168

    def __post_init__(self) -> None:
        if not (0.0 < self.a < math.inf and 0.0 < self.b < math.inf):
            raise ValueError(f"Prior: a and b are positive and finite, got {self.a}, {self.b}")

    @classmethod
    def fit(cls, mean_ln: float, sigma: float) -> Prior:
        """From a population of ln lambda: a = 1 / sigma^2, b = a / (median exp(0.3 sigma^2)) (algorithms.md E)."""
        a = 1.0 / (sigma * sigma)
        return cls(a, a * math.exp(-mean_ln - 0.3 * sigma * sigma))


DEFAULT_PRIOR = Prior()


class Evidence(NamedTuple):
    """The evidence of one read: days since the previous read, whether the page changed, the change's trusted age
    (days)."""

    tau_days: float
    changed: bool
    age_days: float | None = None


def rate(a: float, b: float) -> float:
    """Expected changes per day."""
    return a / b


def update(
    a: float, b: float, tau_days: float, changed: bool, age_days: float | None, prior: Prior, memory: float = MEMORY
) -> tuple[float, float]:
    """Belief after one more read. An age outside [0, tau] contradicts the visit and leaves the change bit only.

    memory: reads that count, > 1; infinite = never forget.
    """
    keep = 1.0 - 1.0 / memory
    a = prior.a + keep * (a - prior.a)
    b = prior.b + keep * (b - prior.b)
    tau = tau_days if tau_days > SHORTEST else SHORTEST
    if not changed:
        return a, b + tau
    if age_days is not None and 0.0 <= age_days <= tau:
        return a + 1.0, b + age_days
    return _after_change(a, b, tau)


def _after_change(a: float, b: float, tau: float) -> tuple[float, float]:
    """Gamma with the mean and variance of the posterior lambda^(a-1) exp(-b lambda) (1 - exp(-lambda tau)).

    `spread` = E[lambda^2] / E[lambda]^2 - 1 has no unit, so no power of a tiny or huge b is formed.
    """
    ln_r = -math.log1p(tau / b)
    d0 = -math.expm1(a * ln_r)
    d1 = -math.expm1((a + 1.0) * ln_r)
    d2 = -math.expm1((a + 2.0) * ln_r)
    spread = (a + 1.0) / a * (d2 * d0) / (d1 * d1) - 1.0
    if spread <= NEGLIGIBLE:
        return a + 1.0, b + 0.5 * tau
    matched = 1.0 / spread
    return matched, matched * b * d0 / (a * d1)


def first_read(prior: Prior, age_days: float | None) -> tuple[float, float]:
    """Belief after the first read; age_days: the age that its Last-Modified proves, or None.

    The age is the backward recurrence time of a Poisson process, exponential like a full interval: one change seen.
    Without it a first read shows nothing (P1 6.1.2 says both "always a change interval" and "we do not assume that").
    """
    return (prior.a, prior.b) if age_days is None else (prior.a + 1.0, prior.b + age_days)


def learn(evidence: Iterable[Evidence], prior: Prior = DEFAULT_PRIOR, memory: float = MEMORY) -> tuple[float, float]:
    """Belief after a whole history of visits, oldest first (a page whose base line was reset, or a replay)."""
    a, b = prior.a, prior.b
    for tau, changed, age in evidence:
        a, b = update(a, b, tau, changed, age, prior, memory)
    return a, b


def usable_last_modified(modified: float | None, read_at: float, changed_after: float | None = None) -> float | None:
    """Age in days that a Last-Modified proves, or None where it is not to be trusted.

    modified, read_at: seconds since 1970. changed_after: a time after which we know the page changed (the read before
    the last change we saw). Not trusted: in the future, younger than a minute, before 1990, older than a change we saw.
    """
    if modified is None or not modified >= OLDEST_DATE:
        return None
    if changed_after is not None and modified < changed_after:
        return None
    age = (read_at - modified) / DAY
    return age if age >= YOUNGEST else None


@dataclass(slots=True)
class RatePopulation:
    """Pages of one kind: how many, the sums of ln lambda and its square in integer steps (no drift, equal replays)."""

    pages: int = 0
    total: int = 0
    squares: int = 0

    def add(self, value: int, sign: int) -> None:
        self.pages += sign
        self.total += sign * value
        self.squares += sign * value * value

    def numbers(self) -> list[int]:
        return [self.pages, self.total, self.squares]

    def pack(self) -> bytes:
        """24 bytes, for a row; empty where it counts no page."""
        if not self.pages:
            return b""
        total = self.total.to_bytes(9, "little", signed=True)
        return self.pages.to_bytes(5, "little") + total + self.squares.to_bytes(10, "little")

    @classmethod
    def unpack(cls, data: bytes) -> RatePopulation:
        """Unpack the bytes that `pack` made; empty for anything else."""
        if len(data) != 24:
            return cls()
        pages, squares = int.from_bytes(data[:5], "little"), int.from_bytes(data[14:], "little")
        return cls(pages, int.from_bytes(data[5:14], "little", signed=True), squares)

    def prior(self) -> Prior:
        """The prior that fits these pages; sigma stays within bounds, or pages all alike would never be unlearnt."""
        mean = self.total / self.pages
        variance = (self.pages * self.squares - self.total * self.total) / (self.pages * self.pages)
        return Prior.fit(mean / STEPS, min(max(math.sqrt(variance) / STEPS, NARROWEST), WIDEST))


class PriorLearner:
    """The prior a page starts from and forgets towards: from the running population of ln lambda (algorithms.md E).

    Each counted page is in once, with its present rate: in its key's population (host, MIME class) and in the whole.
    A key answers once it has `enough` pages, before that all pages together, before that `default`.
    Count a page from its SETTLED-th read on: earlier rates are mostly the prior itself and would narrow it.
    `most_keys` bounds the memory; pages of further keys count in the whole only.
    """

    def __init__(self, default: Prior = DEFAULT_PRIOR, enough: int = 50, most_keys: int = 20_000) -> None:
        self.default = default
        self.enough = enough
        self.most_keys = most_keys
        self.whole = RatePopulation()
        self.keys: dict[str, RatePopulation] = {}

    def replace(self, key: str, old: float | None, new: float | None) -> None:
        """A page of `key` went from rate `old` to `new` (1/day); None: it was not, or is no longer, counted.

        `old` must be the very number that was given as `new`, or the population keeps the difference.
        """
        self.recount(key, 0 if old is None else code(old), 0 if new is None else code(new))

    def recount(self, key: str, old: int, new: int) -> None:
        """`replace` by codes as rows keep them (`code`); 0: not counted."""
        population = self.keys.get(key)
        if population is None and not old and len(self.keys) < self.most_keys:
            population = self.keys[key] = RatePopulation()
        shift(self.whole, old, new)
        if population is not None:
            shift(population, old, new)

    def prior(self, key: str) -> Prior:
        """The prior for pages of `key`."""
        population = self.keys.get(key)
        if population is not None and population.pages >= self.enough:
            return population.prior()
        return self.whole.prior() if self.whole.pages >= self.enough else self.default

    def dump(self) -> dict[str, dict[str, list[int]]]:
        """All of its state as plain numbers, [pages, total, squares] each."""
        whole, keys = self.whole.numbers(), {key: population.numbers() for key, population in self.keys.items()}
        return {"whole": {"": whole}, "keys": keys}

    def load(self, state: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        """Take over what `dump` gave."""
        self.whole = RatePopulation(*state["whole"][""])
        self.keys = {key: RatePopulation(*numbers) for key, numbers in state["keys"].items()}


def shift(population: RatePopulation, old: int, new: int) -> None:
    """One of its pages goes from one code to another; 0: it was not, or is no longer, in it."""
    for value, sign in ((old, -1), (new, 1)):
        if value:
            population.add(value - _ZERO, sign)


def code(value: float) -> int:
    """A rate (1/day) as it counts in a population, a small positive integer: what a row keeps to take it out again."""
    return _ZERO + (round(STEPS * min(max(math.log(value), -EXTREME), EXTREME)) if value > 0.0 else 1 - _ZERO)


def update_many(
    a: Floats, b: Floats, tau_days: Floats, changed: Bools, age_days: Floats, prior: Prior, memory: float = MEMORY
) -> tuple[Floats, Floats]:
    """`update` for many pages at once, arrays of one shape; age_days: NaN where no age is trusted."""
    keep = 1.0 - 1.0 / memory
    a = prior.a + keep * (a - prior.a)
    b = prior.b + keep * (b - prior.b)
    tau = np.maximum(tau_days, SHORTEST)
    dated = changed & (age_days >= 0.0) & (age_days <= tau)
    matched_a, matched_b = _after_change_many(a, b, tau)
    new_a = np.where(dated, a + 1.0, np.where(changed, matched_a, a))
    new_b = np.where(dated, b + age_days, np.where(changed, matched_b, b + tau))
    return new_a, new_b


def _after_change_many(a: Floats, b: Floats, tau: Floats) -> tuple[Floats, Floats]:
    ln_r = -np.log1p(tau / b)
    d0, d1, d2 = (-np.expm1((a + k) * ln_r) for k in (0.0, 1.0, 2.0))
    spread = (a + 1.0) / a * (d2 * d0) / (d1 * d1) - 1.0
    blurred = spread <= NEGLIGIBLE
    matched = 1.0 / np.where(blurred, 1.0, spread)
    return np.where(blurred, a + 1.0, matched), np.where(blurred, b + 0.5 * tau, matched * b * d0 / (a * d1))
