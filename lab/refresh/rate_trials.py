"""Trials of the estimate of change rates: `python -m xyro.lab.refresh.rate_trials [table | worlds | histories]`.

Events are drawn, or read from histories, and pages are read at moments; the estimator under trial sees what a crawler
sees, whether a page changed since its last read, and is judged by the events. Two settings:

    table      pages of one rate read at fixed intervals: the median of estimate / truth, and the error of ln
    worlds     P1's law served exactly: every 1 / (B pages) days the page of the greatest sqrt(r lambda) x age is read.
               O: changes missed; F: share of time up to date; m - t: the model's freshness minus the true one, all
               weighted by importance, after the burn-in

Worlds: 2,500 pages, 90 days, the first 30 not measured; importance Pareto (density exponent 2.2, at most pages / 20);
plain: ln lambda ~ N(ln 1/30, 2); news: 3 % of the pages log-uniform 4 to 720 a day; news10: these ten times as
important. `known` is the same law with the true rates, `rate_cap` with the capped estimates. Histories: all pages
alike, the first 30 % not measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import click
import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.history import read
from xyro.lab.refresh.world import of_histories
from xyro.refresh.rate_belief import START, PageBelief, PriorLearner, codes, quiet, rate, shares_of_pages, unread
from xyro.refresh.rate_sums import RateSums

Reals = NDArray[np.float64]
UNREAD = PageBelief(RateSums(), START)
ROWS = ((720.0, 1 / 720), (144.0, 1 / 144), (24.0, 1 / 24), (4.0, 0.25), (1.0, 1.0), (1 / 30, 7.0))
"""(changes a day, days between two reads) of the table"""
BEYOND = ((720.0, 1 / 144), (144.0, 1 / 24))
"""pages that change several times between any two reads"""
SAMPLE = 8
"""of the histories one in so many is replayed: each costs 1,500 reads at .2 a day"""
CAP = 5.0
"""the `rate_cap` that worlds and histories are tried with, beside none"""
EVERY = 200
"""reads between two looks at the freshness that the model expects"""


class EventWorld(NamedTuple):
    """Pages whose every change is known, in days from the beginning."""

    importance: Reals
    rate: Reals
    born: Reals
    """days, ascending"""
    events: Sequence[Reals]
    days: float
    burn: float


class Outcome(NamedTuple):
    """The outcome of a run, weighted by importance."""

    missed: float
    fresh: float
    bias: float
    """the model's freshness minus the true one, on average"""


class Believer(Protocol):
    """The rates that the law is served by, changes a day."""

    rates: Reals

    def read(self, page: int, tau: float, changed: bool) -> None: ...

    def fresh(self, age: Reals) -> Reals: ...


class WorldRates:
    """The true rates."""

    def __init__(self, world: EventWorld) -> None:
        self.rates = world.rate

    def read(self, page: int, tau: float, changed: bool) -> None:
        """Nothing to learn."""

    def fresh(self, age: Reals) -> Reals:
        """Probability that each page is as it was read."""
        return np.exp(-self.rates * age)


class Estimated:
    """The crawler's estimate: its belief about each page, and the prior that all pages teach."""

    def __init__(self, pages: int, cap: float = 0.0) -> None:
        """cap: `[refresh] rate_cap`."""
        self._cap = cap
        self._beliefs, self._codes = [UNREAD] * pages, codes(unread(START)[None, :]) * pages
        self._learner = PriorLearner()
        for code in self._codes:
            self._learner.recount("page", 0, code)
        self.rates = np.full(pages, float(rate(unread(START))))

    def read(self, page: int, tau: float, changed: bool) -> None:
        """Learn from one read."""
        belief = self._beliefs[page]._replace(prior=self._learner.prior("page")).after(tau, changed, None)
        shares = belief.shares()
        self.rates[page], (code,) = belief.sums.capped(belief.rate(), self._cap), codes(shares[None, :])
        self._learner.recount("page", self._codes[page], code)
        self._beliefs[page], self._codes[page] = belief, code

    def fresh(self, age: Reals) -> Reals:
        """Probability that each page is as it was read."""
        return quiet(shares_of_pages(self._beliefs), age)


def drawn(kind: str, seed: int, pages: int = 2500, days: float = 90.0) -> EventWorld:
    """Draw a world: plain, news or news10."""
    rng = np.random.default_rng((seed, 7))
    importance = (1.0 - rng.random(pages)) ** (-1 / 1.2)
    importance = np.minimum(importance / importance.mean(), pages / 20)
    rates = np.exp(rng.normal(math.log(1 / 30), 2.0, pages))
    if kind != "plain":
        news = rng.random(pages) < 0.03
        rates[news] = np.exp(rng.uniform(math.log(4.0), math.log(720.0), int(news.sum())))
        importance[news] *= 10.0 if kind == "news10" else 1.0
    rates = np.clip(rates, 1 / 1095, 720.0)
    events = [np.sort(rng.random(rng.poisson(rate * days)) * days) for rate in rates]
    return EventWorld(importance / importance.mean(), rates, np.zeros(pages), events, days, days / 3)


def replayed(files: Sequence[Path], times: float = 1.0, every: int = 1) -> EventWorld:
    """Make a world of every n-th of real histories, `times` as fast; pages are there from their birth on, and alike."""
    histories = read(files)[::every]
    world = of_histories(histories, np.ones(len(histories)))
    events = [world.times[a:b] / times for a, b in zip(world.indptr[:-1], world.indptr[1:], strict=True)]
    born, days, burn = world.born / times, world.days / times, world.burn / times
    return EventWorld(world.importance, world.rate * times, born, events, days, burn)


def serve(world: EventWorld, believer: Believer, reads_per_day: float) -> Outcome:
    """Read by P1's law, reads_per_day for each page, and judge by the events."""
    importance, pages = world.importance, len(world.rate)
    read_at, seen, missed, stale = world.born.copy(), np.zeros(pages, np.int64), 0.0, 0.0
    weight, bias, now, turn = np.sqrt(importance * believer.rates), list[float](), 0.0, 0
    while True:
        there = int(np.searchsorted(world.born, now, "right"))
        now, turn = now + 1.0 / (reads_per_day * there), turn + 1
        if now >= world.days:
            break
        page = int((weight[:there] * (now - read_at[:there])).argmax())
        events, before = world.events[page], int(seen[page])
        past = int(np.searchsorted(events, now))
        if now > world.burn and past > before:
            missing = np.maximum(events[before:past], world.burn)
            missed += importance[page] * float((now - missing).sum())
            stale += importance[page] * float(now - missing[0])
        believer.read(page, now - float(read_at[page]), past > before)
        weight[page] = math.sqrt(importance[page] * believer.rates[page])
        read_at[page], seen[page] = now, past
        if now > world.burn and turn % EVERY == 0:
            true = [n == len(e) or e[n] > now for n, e in zip(seen.tolist(), world.events, strict=True)]
            off = (believer.fresh(np.maximum(now - read_at, 0.0)) - np.array(true))[:there]
            bias.append(float((importance[:there] * off).sum() / importance[:there].sum()))
    for page, (n, events) in enumerate(zip(seen.tolist(), world.events, strict=True)):
        missing = np.maximum(events[n:], world.burn)
        missed += importance[page] * float((world.days - missing).sum())
        stale += importance[page] * float(world.days - missing[0]) if len(missing) else 0.0
    span = float((importance * (world.days - np.maximum(world.born, world.burn))).sum())
    return Outcome(missed / span, 1.0 - stale / span, float(np.mean(bias)) if bias else math.nan)


def fixed(true: float, tau: float, reads: int, pages: int = 400, seed: int = 1) -> Reals:
    """Estimates of pages that change `true` times a day, each after so many reads tau days apart."""
    rng = np.random.default_rng((seed, reads))
    found = np.empty(pages)
    for page in range(pages):
        belief = UNREAD
        for changed in (rng.poisson(true * tau, reads) > 0).tolist():
            belief = belief.after(tau, changed, None)
        found[page] = belief.rate()
    return found


def error(found: Reals, true: float) -> float:
    """Root of the mean square of ln(estimate / truth)."""
    return float(np.sqrt(np.mean(np.log(found / true) ** 2)))


def _table() -> None:
    for true, tau in (*ROWS, *BEYOND):
        medians = " ".join(f"{np.median(fixed(true, tau, reads)):9.4g}" for reads in (5, 24, 98))
        found = fixed(true, tau, 24)
        click.echo(
            f"{true:9.4g} a day, read every {tau:8.4g} d: {medians}   rmse of ln at 24: {error(found, true):.3f}"
        )


def _line(name: str, world: EventWorld, reads_per_day: float) -> None:
    believers: dict[str, Believer] = {
        "known": WorldRates(world),
        "estimated": Estimated(len(world.rate)),
        f"rate_cap {CAP:g}": Estimated(len(world.rate), CAP),
    }
    for label, believer in believers.items():
        found = serve(world, believer, reads_per_day)
        click.echo(
            f"{name} B {reads_per_day:g} {label:10}: O {found.missed:.4f}  F {found.fresh:.4f}  m-t {found.bias:+.4f}"
        )


def _worlds() -> None:
    for kind in ("plain", "news", "news10"):
        for seed in (1, 2, 3):
            _line(f"{kind} {seed}", drawn(kind, seed), 0.2)


def _histories() -> None:
    files = sorted(Path("../shared/data/changes").glob("*.jsonl.gz"))
    for bandwidth in (0.01, 0.05, 0.2):
        _line("histories", replayed(files, every=SAMPLE), bandwidth)
    _line("histories, 1,000 x as fast", replayed(files, 1000.0, SAMPLE), 0.05 * 1000.0)


TRIALS: dict[str, Callable[[], None]] = {"table": _table, "worlds": _worlds, "histories": _histories}

if __name__ == "__main__":
    for trial in sys.argv[1:] or TRIALS:
        TRIALS[trial]()
