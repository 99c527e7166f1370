"""Priors of change rates, learned from the pages of a host, of a kind, and of the whole crawl, by the EM algorithm.

Each page counts with what is believed of u = ln l after its last read: E[u] and E[u^2] under its shares. A population's
prior has their mean and variance, and pages are believed by that prior when they are read next (Dempster, Laird, Rubin,
JRSS B 39, 1977, one page a step as in Neal and Hinton 1998). A page of which little is known counts with nearly what
the prior says of it, so it does not narrow the prior, and a fast one that was read often counts once, like all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.rate_belief import LN, START, RatePrior

Reals = NDArray[np.float64]

STEPS = 512
"""moments are summed in integer steps: no drift, equal replays, and 10^9 pages stay within 64 bits"""
_SHIFT, _ZERO = 16, 1 << 13
_MOMENTS: Reals = np.stack((LN, LN * LN), axis=1) * STEPS


def codes(shares: Reals) -> list[int]:
    """E[u] and E[u^2] of pages, in one number each above 0: what a row keeps to take the page out again."""
    moments = np.rint(shares @ _MOMENTS).astype(np.int64)
    found: list[int] = (((moments[:, 0] + _ZERO) << _SHIFT) + moments[:, 1]).tolist()
    return found


@dataclass(slots=True)
class RatePopulation:
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
        """The prior that fits these pages."""
        mean = self.total / self.pages
        variance = self.squares * STEPS / self.pages - mean * mean
        return RatePrior.fit(mean / STEPS, math.sqrt(max(variance, 0.0)) / STEPS)


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
        return self.whole.prior() if self.whole.pages >= self.enough else START

    def dump(self) -> dict[str, dict[str, list[int]]]:
        """All of its state as plain numbers, [pages, total, squares] each."""
        whole, keys = self.whole.numbers(), {key: population.numbers() for key, population in self.keys.items()}
        return {"whole": {"": whole}, "keys": keys}

    def load(self, state: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        """Take over what `dump` gave."""
        self.whole = RatePopulation(*state["whole"][""])
        self.keys = {key: RatePopulation(*numbers) for key, numbers in state["keys"].items()}
