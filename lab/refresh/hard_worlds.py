"""Computed worlds harder than those of world.py: hot and ephemeral pages, noisy signals, hosts that bound reads.

hot             poisson, and 3 % of the pages change 4 to 720 times a day (log-uniform): faster than anyone reads
ephemeral       articles are born at any time, change about daily at first, half as fast after each week, for 20 days on
                average, and then never again; users lose interest in a change within days (Score.interest)
signals-good    poisson, and signals of changes of precision .9 and recall .8
signals-fair    the same, .5 and .5
signals-poor    the same, .2 and .45: about what Busa-Fekete et al. measured of sitemaps ("below 0.2", "below 0.5")
polite          poisson on hosts of Zipf's sizes: no host gets more than 4 % of a tick's reads; the largest of 100
                hosts has 19 % of the pages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from xyro.lab.refresh.change_signals import ChangeSignals, SignalQuality
from xyro.lab.refresh.compared_policies import FADING
from xyro.lab.refresh.world import (
    BURN,
    DAYS,
    Reals,
    World,
    log_normal_rates,
    of_events,
    pagerank,
    poisson,
    poisson_changes,
)

HOT_SHARE = 0.03
COOLEST, HOTTEST = 4.0, 720.0
"""changes a day"""
LIFE, HALVED = 20.0, 7.0
"""days: mean life of an article, and after which it changes half as often"""
ARCHIVE = 1.0 / 3.0
"""share of the ephemeral world's pages that were there before it began, and have ended changing"""
QUALITIES = {
    "signals-good": SignalQuality(0.9, 0.8),
    "signals-fair": SignalQuality(0.5, 0.5),
    "signals-poor": SignalQuality(0.2, 0.45),
}
HOSTS, HOST_SHARE = 100, 0.04


def hot(n: int, seed: int) -> World:
    """Make a world in which some pages change faster than they can be read."""
    rng = np.random.default_rng((seed, 21))
    rate = log_normal_rates(n, rng)
    some = rng.random(n) < HOT_SHARE
    rate[some] = np.exp(rng.uniform(np.log(COOLEST), np.log(HOTTEST), int(some.sum())))
    return of_events(pagerank(n, seed), rate, *poisson_changes(rate, DAYS, rng))


def ephemeral(n: int, seed: int) -> World:
    """Make a world of articles that are born, change for a while, and never again."""
    rng = np.random.default_rng((seed, 22))
    born = np.sort(np.where(np.arange(n) < ARCHIVE * n, 0.0, rng.uniform(0.0, DAYS, n)))
    life = np.where(born > 0.0, np.minimum(rng.exponential(LIFE, n), DAYS - born), 0.0)
    start = np.exp(rng.normal(0.0, 1.0, n))
    page = np.repeat(np.arange(n), rng.poisson(start * life))
    age = life[page] * rng.random(len(page))
    lasting = rng.random(len(page)) < 0.5 ** (age / HALVED)
    page, age = page[lasting], age[lasting]
    ends = np.flatnonzero((life > 0.0) & (born + life < DAYS))  # it is gone: a change, too
    page, times = np.concatenate((page, ends)), np.concatenate((born[page] + age, (born + life)[ends]))
    order = np.lexsort((times, page))
    counts = np.bincount(page, minlength=n)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    rate: Reals = counts / np.maximum(DAYS - born, 1.0)
    importance = np.random.default_rng((seed, 23)).permutation(pagerank(n, seed))
    return World(importance, rate, born, indptr, times[order], DAYS, BURN, fading=FADING)


def signals_of(world: World, quality: SignalQuality, seed: int) -> ChangeSignals:
    """Draw the signals of a world's changes, and the false ones. precision above 0."""
    rng = np.random.default_rng((seed, 11))
    pages = np.repeat(np.arange(world.n), np.diff(world.indptr))
    announced = rng.random(len(pages)) < quality.recall
    false_rate = quality.recall * world.rate * (1.0 - quality.precision) / quality.precision
    counts = rng.poisson(false_rate * (world.days - world.born))
    idle = np.repeat(np.arange(world.n), counts)
    moments = world.born[idle] + (world.days - world.born[idle]) * rng.random(len(idle))
    page, times = np.concatenate((pages[announced], idle)), np.concatenate((world.times[announced], moments))
    order = np.argsort(times, kind="stable")
    return ChangeSignals(page[order], times[order], quality)


def signalled(quality: SignalQuality, n: int, seed: int) -> World:
    """Make a Poisson world with signals of this quality."""
    world = poisson(n, seed)
    return replace(world, signals=signals_of(world, quality, seed))


def polite(n: int, seed: int) -> World:
    """Make a Poisson world whose hosts bound the reads."""
    sizes = 1.0 / np.arange(1, HOSTS + 1)
    host_of = np.random.default_rng((seed, 24)).choice(HOSTS, n, p=sizes / sizes.sum())
    return replace(poisson(n, seed), host_of=host_of, host_share=HOST_SHARE)


HARD: Mapping[str, Callable[[int, int], World]] = {
    "hot": hot,
    "ephemeral": ephemeral,
    **{name: partial(signalled, quality) for name, quality in QUALITIES.items()},
    "polite": polite,
}
