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

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.hard_worlds import HARD
from xyro.lab.refresh.history import read
from xyro.lab.refresh.world import COMPUTED
from xyro.lab.web.news_site import NewsShape, news_site, weights
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN

Reals = NDArray[np.float64]
HOUR = DAY / 24.0
COMPUTED_PAGES = 800
MOST_PAGES = 1_000
"""of a history: a longer one is sampled"""


class BeliefWorld(NamedTuple):
    """Pages by path, in order, and what each weighs (mean 1)."""

    pages: dict[str, ScriptedPage]
    importance: Reals


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


def world(named: list[tuple[str, list[list[float]], Reals]], days: float) -> BeliefWorld:
    """A world of folders: (name, changes of each page, importance of each page)."""
    pages, importance, end = dict[str, ScriptedPage](), list[float](), ORIGIN + days * DAY
    for folder, changes, worths in named:
        for number, (times, worth) in enumerate(zip(changes, worths.tolist(), strict=True)):
            pages[f"/{folder}/{number}.html"] = ScriptedPage(changes=[t for t in times if t < end])
            importance.append(worth)
    whole = np.array(importance)
    return BeliefWorld(pages, whole / whole.mean())


def news(days: float, seed: int) -> BeliefWorld:
    site = news_site(NewsShape(days, 100, 1_000, seed))
    return BeliefWorld(site, weights(site))


def shop(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 1))
    folders = (("offers", 100, 3.0, 4.0), ("products", 500, 0.2, 1.0), ("help", 400, 1 / 365, 1.0))
    return world([(name, [poisson(rate, days, rng) for _ in range(n)], heavy * pareto(n, rng))
                  for name, n, rate, heavy in folders], days)  # fmt: skip


def fast(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 2))
    quick = [poisson(rate, days, rng) for rate in np.exp(rng.uniform(np.log(8.0), np.log(100.0), 40)).tolist()]
    return world([("live", quick, 2.0 * pareto(40, rng)),
                  ("old", [poisson(2 / 365, days, rng) for _ in range(960)], pareto(960, rng))], days)  # fmt: skip


def forum(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 3))
    threads = [poisson(6.0, 2.0, rng, start) for start in rng.uniform(-2.0, days, 300).tolist()]
    threads = [[t for t in times if t > ORIGIN] for times in threads]
    return world([("thread", threads, pareto(300, rng)),
                  ("old", [poisson(1 / 365, days, rng) for _ in range(500)], pareto(500, rng)),
                  ("list", [poisson(24.0, days, rng) for _ in range(30)], 3.0 * pareto(30, rng))], days)  # fmt: skip


def night(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 4))
    nightly = [[ORIGIN + day * DAY + 2 * HOUR + x for day, x in enumerate(rng.uniform(0, HOUR, round(days)).tolist())]
               for _ in range(300)]  # fmt: skip
    return world([("daily", nightly, pareto(300, rng)),
                  ("old", [poisson(4 / 365, days, rng) for _ in range(500)], pareto(500, rng))], days)  # fmt: skip


def computed(name: str, days: float, seed: int) -> BeliefWorld:
    """The first days of a world of the refresh laboratory after its burn-in, all pages there from the beginning."""
    made = {**COMPUTED, **HARD}[name](COMPUTED_PAGES, seed)
    times = np.split(ORIGIN + (made.times - made.burn) * DAY, made.indptr[1:-1])
    return world([("all", [changes[changes > ORIGIN].tolist() for changes in times], made.importance)], days)


def wiki(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 6))
    talk = []
    for rate in np.exp(rng.normal(np.log(0.15), 1.0, 300)).tolist():
        bursts = poisson(rate / 3.0, days, rng)
        talk.append(sorted(t + x * HOUR for t in bursts for x in rng.exponential(3.0, 1 + rng.poisson(4.0)).tolist()))
    worths = pareto(600, rng)
    rates = np.exp(rng.normal(np.log(0.05), 1.5, 600)) * np.sqrt(worths)
    return world([("talk", talk, 0.5 * pareto(300, rng)),
                  ("article", [poisson(rate, days, rng) for rate in rates.tolist()], worths),
                  ("file", [[] for _ in range(100)], 0.3 * pareto(100, rng))], days)  # fmt: skip


def board(days: float, seed: int) -> BeliefWorld:
    rng = np.random.default_rng((seed, 7))
    offers = []
    for start in rng.uniform(-10.0, days, 500).tolist():
        ages = rng.exponential(2.0 / np.log(2.0), rng.poisson(4.0 / np.log(2.0)))
        offers.append(sorted(ORIGIN + (start + age) * DAY for age in ages.tolist() if start + age > 0.0))
    lists = [sorted(ORIGIN + day * DAY + rng.uniform(7.0, 23.0) * HOUR for day in range(round(days)) for _ in range(20))
             for _ in range(40)]  # fmt: skip
    past = [poisson(1 / 365, days, rng) for _ in range(400)]
    return world([("offer", offers, pareto(500, rng)), ("list", lists, 3.0 * pareto(40, rng)),
                  ("past", past, 0.5 * pareto(400, rng))], days)  # fmt: skip


def history(file: Path, days: float, seed: int) -> BeliefWorld:
    """A history drawn together to so many days: its pages are there from the beginning, whenever they were born."""
    found = read([file])
    rng = np.random.default_rng((seed, 8))
    sample = np.sort(rng.permutation(len(found))[:MOST_PAGES]).tolist()
    begin = min(page.born for page in found)
    end = max(max(page.changes, default=page.born) for page in found)
    scale = days * DAY / (end - begin)
    pages = {f"/{found[k].path}": ScriptedPage(changes=[ORIGIN + (t - begin) * scale for t in found[k].changes])
             for k in sample}  # fmt: skip
    return BeliefWorld(pages, pareto(len(pages), rng))


WORLDS: dict[str, Callable[[float, int], BeliefWorld]] = {
    "news": news, "shop": shop, "fast": fast, "forum": forum, "night": night,
    **{name: partial(computed, name) for name in ("poisson", "periodic", "bursty", "correlated", "hot", "ephemeral")}
}  # fmt: skip
HELD_OUT: dict[str, Callable[[float, int], BeliefWorld]] = {"wiki": wiki, "board": board}
