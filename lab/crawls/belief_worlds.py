"""Sites whose every change is known, each with folders that are unlike: what a belief about change rates is tried on.

    news        a front page, 100 articles that change twice, an archive of 1,000 (lab/web/news_site.py)
    shop        100 offers that change 3 times a day and weigh 4, 500 products every 5 days, 400 pages of help yearly
    fast        40 pages that change 8 to 100 times a day among 960 that change twice a year
    forum       300 threads that change 6 times a day for 2 days, and then never; 500 old ones; 30 lists, hourly
    night       300 pages that change at 2 h each night, 500 once a quarter
    poisson, periodic, bursty, correlated, hot, ephemeral
                those of the refresh laboratory, 800 pages in one folder
    history     a file of lab/refresh/history.py, drawn together to the days of the trial; folders as in the file

Held out, for rules that are laid down before the look:

    wiki        300 talk pages in bursts of 5, 600 articles (log-normal, faster where they weigh more), 100 still files
    board       500 offers that are born changing (twice a day, half as fast after each 2 days), 40 lists that change
                20 times by day and never by night, 400 old offers

Importance is Pareto (density exponent 2.2) and mean 1, but where it is said; changes are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.hard_worlds import HARD
from xyro.lab.refresh.history import read
from xyro.lab.refresh.world import COMPUTED, World, bursty_changes, of_events, periodic_changes, poisson_changes
from xyro.lab.refresh.world import DAYS as COMPUTED_DAYS
from xyro.lab.web.news_site import NewsShape, news_site, weights
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN

Reals = NDArray[np.float64]
HOUR = DAY / 24.0
COMPUTED_PAGES = 800
MOST_PAGES = 1_000
"""of a history: a longer one is sampled"""


Changes = Sequence[Sequence[float]]
"""of each page, ascending"""
Redraw = Callable[[np.random.Generator], Changes]
"""changes of the same pages by the same law: what whoever knows the law, and no change, can tell"""


class BeliefWorld(NamedTuple):
    """Pages by path, in order, what each weighs (mean 1), and how other changes are drawn; None: none is known."""

    pages: dict[str, ScriptedPage]
    importance: Reals
    again: Redraw | None = None


def poisson(rate: float, days: float, rng: np.random.Generator, start: float = 0.0) -> list[float]:
    """Changes of a page that changes `rate` times a day from `start` (days) on, for so many days."""
    times = start + np.sort(rng.random(rng.poisson(rate * days))) * days
    found: list[float] = (ORIGIN + times * DAY).tolist()
    return found


def pareto(n: int, rng: np.random.Generator) -> Reals:
    """Importances of density exponent 2.2, none above a twentieth of all."""
    found = np.minimum((1.0 - rng.random(n)) ** (-1.0 / 1.2), n / 20.0)
    shares: Reals = found / found.mean()
    return shares


def world(named: list[tuple[str, Redraw, Reals]], days: float, rng: np.random.Generator) -> BeliefWorld:
    """A world of folders: (name, what draws the changes of its pages, importance of each page)."""
    end = ORIGIN + days * DAY

    def again(rng: np.random.Generator) -> Changes:
        return [[t for t in times if ORIGIN < t < end] for _, draw, _ in named for times in draw(rng)]

    paths = [f"/{folder}/{number}.html" for folder, _, worths in named for number in range(len(worths))]
    whole = np.concatenate([worths for _, _, worths in named])
    pages = {path: ScriptedPage(changes=times) for path, times in zip(paths, again(rng), strict=True)}
    return BeliefWorld(pages, whole / whole.mean(), again)


def changing(rates: Sequence[float], days: float) -> Redraw:
    """Pages that change so many times a day."""
    return lambda rng: [poisson(rate, days, rng) for rate in rates]


def news(days: float, seed: int) -> BeliefWorld:
    site = news_site(NewsShape(days, 100, 1_000, seed))

    def again(rng: np.random.Generator) -> Changes:
        return [page.changes for page in news_site(NewsShape(days, 100, 1_000, int(rng.integers(1 << 30)))).values()]

    return BeliefWorld(site, weights(site), again)


def shop(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 1))
    folders = (("offers", 100, 3.0, 4.0), ("products", 500, 0.2, 1.0), ("help", 400, 1 / 365, 1.0))
    return world([(name, changing([rate] * n, days), heavy * pareto(n, rng)) for name, n, rate, heavy in folders],
                 days, rng)  # fmt: skip


def fast(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 2))
    quick = np.exp(rng.uniform(np.log(8.0), np.log(100.0), 40)).tolist()
    return world([("live", changing(quick, days), 2.0 * pareto(40, rng)),
                  ("old", changing([2 / 365] * 960, days), pareto(960, rng))], days, rng)  # fmt: skip


def forum(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 3))
    starts = rng.uniform(-2.0, days, 300).tolist()
    return world([("thread", lambda rng: [poisson(6.0, 2.0, rng, start) for start in starts], pareto(300, rng)),
                  ("old", changing([1 / 365] * 500, days), pareto(500, rng)),
                  ("list", changing([24.0] * 30, days), 3.0 * pareto(30, rng))], days, rng)  # fmt: skip


def night(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 4))

    def nightly(rng: np.random.Generator) -> Changes:
        return [[ORIGIN + day * DAY + 2 * HOUR + x for day, x in enumerate(rng.uniform(0, HOUR, round(days)).tolist())]
                for _ in range(300)]  # fmt: skip

    return world([("daily", nightly, pareto(300, rng)),
                  ("old", changing([4 / 365] * 500, days), pareto(500, rng))], days, rng)  # fmt: skip


def computed(name: str, days: float, seed: int) -> BeliefWorld:
    """The first days of a world of the refresh laboratory after its burn-in, all pages there from the beginning."""
    made = {**COMPUTED, **HARD}[name](COMPUTED_PAGES, seed)

    def within(world: World) -> Changes:
        times = np.split(ORIGIN + (world.times - world.burn) * DAY, world.indptr[1:-1])
        return [some[(some > ORIGIN) & (some < ORIGIN + days * DAY)].tolist() for some in times]

    def again(rng: np.random.Generator) -> Changes:
        law = {"periodic": periodic_changes, "bursty": bursty_changes}.get(name)
        found = law(made.rate, rng) if law is not None else poisson_changes(made.rate, COMPUTED_DAYS, rng)
        return within(of_events(made.importance, made.rate, *found))

    pages = {f"/all/{number}.html": ScriptedPage(changes=times) for number, times in enumerate(within(made))}
    return BeliefWorld(pages, made.importance / made.importance.mean(), None if name == "ephemeral" else again)


def wiki(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 6))
    talkative = np.exp(rng.normal(np.log(0.15), 1.0, 300)).tolist()

    def talk(rng: np.random.Generator) -> Changes:
        bursts = [poisson(rate / 3.0, days, rng) for rate in talkative]
        return [sorted(t + x * HOUR for t in some for x in rng.exponential(3.0, 1 + rng.poisson(4.0)).tolist())
                for some in bursts]  # fmt: skip

    worths = pareto(600, rng)
    rates = np.exp(rng.normal(np.log(0.05), 1.5, 600)) * np.sqrt(worths)
    return world([("talk", talk, 0.5 * pareto(300, rng)), ("article", changing(rates.tolist(), days), worths),
                  ("file", changing([0.0] * 100, days), 0.3 * pareto(100, rng))], days, rng)  # fmt: skip


def board(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 7))
    starts = rng.uniform(-10.0, days, 500).tolist()

    def offers(rng: np.random.Generator) -> Changes:
        ages = [rng.exponential(2.0 / np.log(2.0), rng.poisson(4.0 / np.log(2.0))).tolist() for _ in starts]
        return [sorted(ORIGIN + (start + age) * DAY for age in some) for start, some in zip(starts, ages, strict=True)]

    def lists(rng: np.random.Generator) -> Changes:
        return [sorted(ORIGIN + day * DAY + rng.uniform(7.0, 23.0) * HOUR for day in range(round(days))
                       for _ in range(20)) for _ in range(40)]  # fmt: skip

    return world([("offer", offers, pareto(500, rng)), ("list", lists, 3.0 * pareto(40, rng)),
                  ("past", changing([1 / 365] * 400, days), 0.5 * pareto(400, rng))], days, rng)  # fmt: skip


def history(file: Path, days: float, seed: int) -> BeliefWorld:
    """A history from the moment on at which half of its pages had been born, drawn together to so many days: these
    pages, and no others. (A page that is not there yet cannot change, and is no sign that it is still.)"""
    whole = read([file])
    begin = float(np.median([page.born for page in whole]))
    end = max(max(page.changes, default=page.born) for page in whole)
    found = [page for page in whole if page.born <= begin]
    rng = np.random.default_rng((seed, 8))
    sample = np.sort(rng.permutation(len(found))[:MOST_PAGES]).tolist()
    scale = days * DAY / (end - begin)
    pages = {}
    for page in map(found.__getitem__, sample):
        times = [ORIGIN + (t - begin) * scale for t in page.changes if t > begin]
        pages[f"/{page.path}"] = ScriptedPage(changes=times)
    return BeliefWorld(pages, pareto(len(pages), rng))


WORLDS: dict[str, Callable[[float, int], BeliefWorld]] = {
    "news": news, "shop": shop, "fast": fast, "forum": forum, "night": night,
    **{name: partial(computed, name) for name in ("poisson", "periodic", "bursty", "correlated", "hot", "ephemeral")}
}  # fmt: skip
HELD_OUT: dict[str, Callable[[float, int], BeliefWorld]] = {"wiki": wiki, "board": board}
