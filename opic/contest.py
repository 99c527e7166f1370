"""T adapted to how fast the web changes: the window that would have foretold the cash best.

On a sample of the pages all windows of LADDER run side by side. When a sampled page is spent, each says what flow X it
expects; at the first spending HORIZON or more turnovers later, d after, it is held against all the cash C that came in
between, and scored by |X d - C| / ((C + X d) / 2). Twice per turn of reads T for all pages becomes the geometric mean
of the windows, each weighing exp(-p / SOFTNESS) when its score is p above the best one's, unless that is within
HYSTERESIS of the present T; the scores then fade to a half. Only flow is stored, never H, so a new T needs no touch of
the store.

Why a mean: neighbours on the ladder often score within 1 % of each other, and the best of them by chance can be at the
edge of those good ones: T cost up to 1.32 times the best fixed T (10 % change, sweep), by the mean at most 1.12.

Why a horizon: what comes between one spending and the next is noisy itself, by 10-20 %. That hides the noise of short
windows (errors add as squares), but not the lag of long ones, so change in a few pages made T too short; and a hub,
spent ten times a turnover, had ten votes. Judged by each page's next spending, as section B says, T came out up to 1.9
times as wrong as the best fixed T (1,000 sampled pages of 100,000, greedy, 1 % change). A horizon of 4 turnovers sees
change too late (1.34 at 3 %, N = 20,000).

`SampledContest` is a crawl's, on a sample that thins out as the crawl grows; lab/opic/histories.py has one over a graph
whose pages are known. `Contest` keeps the scores of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict

from xyro.opic.arrays import Flow, Pages, Reals, Ticks, Units
from xyro.opic.cash import UNIT, seeds_of
from xyro.opic.importance import TICKS, WINDOW, measure

LADDER = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""windows that compete, in turnovers: 1/2 to 16 times what a sweep or greedy spends on N reads, roughly"""
HORIZON = 2.0
"""turnovers that a window must foresee"""
SOFTNESS = 0.01
"""a score so much above the best one's, as a share of it, divides a window's say by e"""
HYSTERESIS = 0.05
"""of ln T: less does not move T"""
FADE = 0.5
LIMIT = 1024
"""pages that a crawl samples at most: 64 B each in every commit group"""
_ALL = 1 << 64


class Contest(Struct):
    """Compares the windows of LADDER by how well they predict. `window` is the present T, between the first and the
    last."""

    window: float = 32.0
    scores: list[float] = field(default_factory=lambda: [0.0] * len(LADDER))
    weight: float = 0.0
    reads: int = 0
    """since the last choice"""

    def score(self, flows: Reals | Flow, cash: Reals, spans: Reals) -> None:
        """Pages received `cash` page-units in `spans` turnovers, where window k said their flow was flows[:, k]."""
        expected = flows * spans[:, None]
        wrong = np.abs(expected - cash[:, None]) / np.maximum(0.5 * (expected + cash[:, None]), 1e-12)
        self.scores = [old + new for old, new in zip(self.scores, wrong.sum(axis=0).tolist(), strict=True)]
        self.weight += len(cash)

    def passed(self, reads: int, pages: int) -> None:
        """`reads` more of `pages` pages were read; every half of them the best window becomes T."""
        self.reads += reads
        if self.reads < pages / 2:
            return
        self.reads = 0
        if self.weight:
            window = self._best()
            if abs(math.log(window / self.window)) > HYSTERESIS:
                self.window = window
        self.scores = [FADE * score for score in self.scores]
        self.weight *= FADE

    def _best(self) -> float:
        least = max(min(self.scores), 1e-12)
        says = [math.exp((1.0 - score / least) / SOFTNESS) for score in self.scores]
        return math.exp(sum(say * math.log(window) for say, window in zip(says, LADDER, strict=True)) / sum(says))


class Forecasts:
    """The last forecast of each page's flow by every window, its time, and the cash that came since: 36 B a page."""

    def __init__(self, pages: int = 0) -> None:
        self.forecast: Flow = np.zeros((pages, len(LADDER)), np.float32)
        self.since = np.full(pages, np.nan)
        """turnovers; nan: no forecast yet"""
        self.came = np.zeros(pages, np.float32)

    def judge(self, places: Pages, cash: Reals, now: Reals, flows: Flow) -> tuple[Flow, Reals, Reals]:
        """Distinct pages are spent at `now`, holding `cash`; flows[:, k] is what window k says from now on.

        Returns of those whose horizon is over what was said, what came, and in how many turnovers.
        """
        came, spans = self.came[places] + cash, now - self.since[places]
        due = spans >= HORIZON
        begun = due | np.isnan(spans)
        judged = self.forecast[places[due]], came[due], spans[due]
        self.came[places] = np.where(begun, 0.0, came)
        self.forecast[places[begun]], self.since[places[begun]] = flows[begun], now[begun]
        return judged

    def resize(self, rows: Pages, more: int = 0) -> None:
        """Keep only these rows, in that order; so many new ones follow."""
        new = Forecasts(more)
        self.forecast = np.concatenate((self.forecast[rows], new.forecast))
        self.since = np.concatenate((self.since[rows], new.since))
        self.came = np.concatenate((self.came[rows], new.came))

    def dump(self) -> dict[str, bytes]:
        columns = {"said": (self.forecast, "<f4"), "since": (self.since, "<f8"), "came": (self.came, "<f4")}
        return {name: column.astype(kind).tobytes() for name, (column, kind) in columns.items()}

    @classmethod
    def load(cls, state: Mapping[str, bytes]) -> Forecasts:
        forecasts = cls()
        forecasts.forecast = np.frombuffer(state["said"], "<f4").astype(np.float32).reshape(-1, len(LADDER))
        forecasts.since = np.frombuffer(state["since"], "<f8").astype(np.float64)
        forecasts.came = np.frombuffer(state["came"], "<f4").astype(np.float32)
        return forecasts


class SampledContest:
    """The contest of a crawl: flow by each window of up to LIMIT pages, drawn by their number.

    A page is in the sample while the draw of its number is below `share`, of 2^64; full, the sample gives up half of
    the share and of its pages. What else windows need of a page (cash, clock, birth) the crawl's columns hold. A page
    that comes in begins with the crawl's own flow.
    """

    def __init__(self, window: float = WINDOW) -> None:
        self.contest = Contest(window)
        self.share = _ALL
        self.places: dict[int, int] = {}
        self.flows: Flow = np.zeros((0, len(LADDER)), np.float32)
        self.forecasts = Forecasts()

    @property
    def window(self) -> float:
        return self.contest.window

    def measure(
        self, pages: Pages, flow: Flow, cash: Units, last: Ticks, birth: Ticks, now: int, least: float, prior: float
    ) -> None:
        """These pages are about to be measured: arguments as of `importance.measure`, before it.

        least: turnovers that every window spans at the moment (importance.Window: the graph has just settled).
        """
        drawn = seeds_of(pages, 0)
        chosen = np.flatnonzero(drawn <= np.uint64(self.share - 1))
        if not chosen.size:
            return
        columns = flow[chosen], cash[chosen], last[chosen], birth[chosen]
        places = self._places(pages[chosen], columns[0])
        for k, window in enumerate(LADDER):
            self.flows[places, k] = measure(self.flows[places, k], *columns[1:], now, min(window, least), prior)
        moments = np.full(places.size, now / TICKS)
        self.contest.score(*self.forecasts.judge(places, columns[1] / UNIT, moments, self.flows[places]))
        self._thin()

    def passed(self, reads: int, pages: int) -> None:
        """`reads` of `pages` known pages were spent."""
        self.contest.passed(reads, pages)

    def _places(self, pages: Pages, flow: Flow) -> Pages:
        """Rows of these pages in `flows`; those that have none get one."""
        new = [i for i, page in enumerate(pages.tolist()) if page not in self.places]
        if new:
            for page in pages[new].tolist():
                self.places[page] = len(self.places)
            self.forecasts.resize(np.arange(len(self.flows)), len(new))
            self.flows = np.concatenate((self.flows, np.repeat(flow[new][:, None], len(LADDER), axis=1)))
        return np.array([self.places[page] for page in pages.tolist()], np.int64)

    def _thin(self) -> None:
        while len(self.places) > LIMIT:
            self.share //= 2
            pages = np.fromiter(self.places, np.int64, len(self.places))
            rows = np.flatnonzero(seeds_of(pages, 0) <= np.uint64(self.share - 1))
            self.flows = self.flows[rows]
            self.forecasts.resize(rows)
            self.places = {page: place for place, page in enumerate(pages[rows].tolist())}

    def dump(self) -> dict[str, Any]:
        pages = np.fromiter(self.places, np.int64, len(self.places))
        return {
            "contest": asdict(self.contest),
            "share": self.share - 1,
            "pages": pages.astype("<u4").tobytes(),
            "flows": self.flows.astype("<f4").tobytes(),
            "forecasts": self.forecasts.dump(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> SampledContest:
        """Go on from what `dump` gave. What an earlier version dumped had no forecasts: of it T stays."""
        sampled = cls(state["contest"]["window"])
        if "forecasts" not in state:
            return sampled
        sampled.contest = Contest(**state["contest"])
        sampled.share = state["share"] + 1
        pages = np.frombuffer(state["pages"], "<u4")
        sampled.places = {page: place for place, page in enumerate(pages.tolist())}
        flows = np.frombuffer(state["flows"], "<f4").astype(np.float32)
        sampled.flows = flows.reshape(len(pages), len(LADDER))
        sampled.forecasts = Forecasts.load(state["forecasts"])
        return sampled
