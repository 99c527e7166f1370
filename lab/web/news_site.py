"""A news site by script: a front page that changes all day, articles that change twice, an archive that hardly does.

    front page   by day (7 to 23 h UTC) it changes every 5 to 20 minutes, by night once an hour
    articles     each changes twice in the time, some hours apart (4 in the mean), and then never
    archive      each page changes once a year, in the mean
    links        the front page leads to all articles and to the root of the archive, which is a tree of tens; each page
                 leads home, an article to the two beside it, a page of the archive to its parent

All is there from the beginning. What changes is told by a seed; links never change, so importance stands still.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xyro.lab.reference_rank import reference
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.opic.arrays import Reals
from xyro.opic.graph import Graph

FRONT = "/"
MINUTE, HOUR = 60.0, 3_600.0
MORNING, EVENING = 7.0, 23.0
BRANCHES = 10
UPDATE_HOURS = 4.0
ARCHIVE_RATE = 1 / 365
"""changes a day"""


@dataclass(frozen=True, slots=True)
class NewsShape:
    """Sizes and seed."""

    days: float
    articles: int = 300
    archive: int = 5_000
    seed: int = 1

    @property
    def pages(self) -> int:
        return 1 + self.articles + self.archive


def news_site(shape: NewsShape) -> dict[str, ScriptedPage]:
    """The pages by path, the front page first."""
    draw = random.Random(shape.seed)
    end = ORIGIN + shape.days * DAY
    articles, archive = [*map(_article, range(shape.articles))], [*map(_archived, range(shape.archive))]
    site = {FRONT: ScriptedPage([*articles, *archive[:1]], _front_changes(draw, end))}
    for number, path in enumerate(articles):
        beside = [articles[(number + step) % shape.articles] for step in (1, -1)]
        first = ORIGIN + draw.random() * shape.days * DAY
        site[path] = ScriptedPage([FRONT, *beside], [first, first + draw.expovariate(1 / (UPDATE_HOURS * HOUR))])
    for number, path in enumerate(archive):
        first = BRANCHES * number + 1
        parent = [archive[(number - 1) // BRANCHES]] if number else []
        site[path] = ScriptedPage([FRONT, *parent, *archive[first : first + BRANCHES]], _yearly(draw, end))
    return site


def kind_of(path: str) -> str:
    """front | article | archive."""
    return "front" if path == FRONT else path.split("/")[1]


def weights(site: Mapping[str, ScriptedPage]) -> Reals:
    """PageRank of the pages, in their order, mean 1."""
    number = {path: place for place, path in enumerate(site)}
    targets = [[number[link] for link in page.links] for page in site.values()]
    indptr = np.cumsum([0, *map(len, targets)])
    return reference(Graph(indptr, np.concatenate([np.array(some, np.int64) for some in targets])))


def _article(number: int) -> str:
    return f"/article/{number}.html"


def _archived(number: int) -> str:
    return f"/archive/{number}.html"


def _front_changes(draw: random.Random, end: float) -> list[float]:
    t, changes = ORIGIN, []
    while t < end:
        by_day = MORNING <= (t - ORIGIN) % DAY / HOUR < EVENING
        t += draw.uniform(5.0, 20.0) * MINUTE if by_day else HOUR
        changes.append(t)
    return changes


def _yearly(draw: random.Random, end: float) -> list[float]:
    t, changes = ORIGIN, []
    while (t := t + draw.expovariate(ARCHIVE_RATE) * DAY) < end:
        changes.append(t)
    return changes
