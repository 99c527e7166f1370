"""Why `stale` says too much: beliefs with priors of other shapes, each beside what had changed.

    python -m xyro.lab.refresh.prior_shapes

Pages of the computed web's change rates are read by P1's law, in ticks of 6 h, by beliefs that share no code with
refresh/: a likelihood on a grid of rates, the whole of every visit. What differs is the prior alone:

    true       the distribution that the rates are drawn from
    student    Student's t in ln rate that the EM algorithm fits, as rate_belief.py has it
    narrow     the same with the pages' variance for its own, not for its scale's square
    free       no shape: the mean of what is believed of the pages (EM), smoothed over two octaves

Of each the mean of `stale` after day 20, the share of pages that had changed, and both for `stale` from .2 to .4.
REFRESH.md has the table.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web.web import Web

Reals = NDArray[np.float64]

PRIORS = ("true", "student", "narrow", "free")
BANDWIDTHS = (0.1, 0.3, 1.0)
"""reads a page and day"""
SEEDS = (0, 1, 2)
RATES: Reals = np.exp2(np.arange(-12.0, 13.5, 0.5))
LN: Reals = np.log(RATES)
TICK, BURN, REFIT, LOOK = 0.25, 20.0, 8, 20
"""days; days; ticks between two fits of the prior; ticks between two looks"""
NU = 9.0
SMOOTHING = (0.1, 0.2, 0.4, 0.2, 0.1)
MIDDLE = 0.2, 0.4


class Staleness(NamedTuple):
    """Means over the looks: of `stale`, and of the truth; of all pages, and of those of middling `stale`."""

    stale: float
    changed: float
    middle_stale: float
    middle_changed: float


def trial(prior: str, bandwidth: float, seed: int, pages: int = 2000, days: float = 60.0) -> Staleness:
    """Read one world; prior: one of PRIORS."""
    draws = np.random.default_rng(seed)
    pool = np.clip(Web(seed=1, pages=600, hosts=8).rates, 1.0 / 2000.0, 2000.0)
    rates = draws.choice(pool, pages) * np.exp(draws.uniform(-0.17, 0.17, pages))
    importance = np.minimum(draws.pareto(1.2, pages) + 1.0, pages / 20.0)
    evidence, last, changed = np.zeros((pages, RATES.size)), np.zeros(pages), np.zeros(pages, np.bool_)
    ln_prior = _true(pool) if prior == "true" else _student(math.log(0.1), 1.8)
    shares, looks = _shares(evidence, ln_prior), []
    for tick in range(1, round(days / TICK) + 1):
        now = tick * TICK
        changed |= draws.random(pages) < -np.expm1(-rates * TICK)
        urgency = np.sqrt(importance) * (shares @ np.sqrt(RATES)) * (now - last)
        read = np.argsort(-urgency)[: round(bandwidth * pages * TICK)]
        quiet = -(now - last[read])[:, None] * RATES
        evidence[read] += np.where(changed[read, None], np.log(-np.expm1(quiet) + 1e-300), quiet)
        last[read], changed[read] = now, False
        if prior != "true" and tick % REFIT == 0:
            ln_prior = _fitted(prior, _shares(evidence, ln_prior))
        shares[read] = _shares(evidence[read], ln_prior)
        if now > BURN and tick % LOOK == 0:
            stale = 1.0 - (shares * np.exp((last - now)[:, None] * RATES)).sum(axis=1)
            middle = (stale > MIDDLE[0]) & (stale < MIDDLE[1])
            looks.append((stale.mean(), changed.mean(), stale[middle].mean(), changed[middle].mean()))
    return Staleness(*np.nanmean(looks, axis=0).tolist())


def _shares(evidence: Reals, ln_prior: Reals) -> Reals:
    powers = evidence + ln_prior
    powers -= powers.max(axis=1, keepdims=True)
    found: Reals = np.exp(powers)
    found /= found.sum(axis=1, keepdims=True)
    return found


def _true(pool: Reals) -> Reals:
    edges = np.append(LN, LN[-1] + math.log(2.0) / 2.0) - math.log(2.0) / 4.0
    found: Reals = np.log(np.histogram(np.log(pool), edges)[0] + 1e-3)
    return found


def _student(mean: float, scale: float) -> Reals:
    found: Reals = -0.5 * (NU + 1.0) * np.log1p(np.square((LN - mean) / scale) / NU)
    return found


def _fitted(prior: str, shares: Reals) -> Reals:
    """The prior that the EM algorithm takes next."""
    if prior == "free":
        mean = shares.mean(axis=0)
        found: Reals = np.log(np.convolve(np.pad(mean, 2, mode="edge"), SMOOTHING, "valid") + 1e-9)
        return found
    middle = float((shares @ LN).mean())
    variance = float((shares @ np.square(LN)).mean()) - middle * middle
    return _student(middle, math.sqrt(variance * ((NU - 2.0) / NU if prior == "narrow" else 1.0)))


def main() -> int:
    """Print a row for each bandwidth and prior."""
    sys.stdout.write(f"{'reads':>5} {'prior':8} {'said':>6} {'true':>6}   .2 to .4: said, true\n")
    for bandwidth in BANDWIDTHS:
        for prior in PRIORS:
            stale, true, middle, middle_true = np.mean([trial(prior, bandwidth, seed) for seed in SEEDS], axis=0)
            sys.stdout.write(f"{bandwidth:5g} {prior:8} {stale:6.3f} {true:6.3f}   {middle:.3f} {middle_true:.3f}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
