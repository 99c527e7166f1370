"""T adapted to how fast the web changes (algorithms.md B): the window that would have foretold the cash best.

On a sample of the pages all windows of LADDER run side by side. When a sampled page is spent, each is asked what cash
it expected over the turnovers since the page's last spending, and scored by |X d - C| / ((C + X d) / 2). Twice per turn
of reads the best one becomes T for all pages, if it is better than the present one by more than HYSTERESIS; the scores
then fade to a half. Only flow is stored, never H, so a new T needs no touch of the store.

`Adaptive` is the laboratory's, on a graph whose pages are known; `Sampled` a crawl's, on a sample that thins out as the
crawl grows. `Contest` keeps the scores of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from opic.arrays import Flow, Pages, Reals, Ticks, Units
from opic.cash import UNIT, seeds_of
from opic.importance import WINDOW, elapsed, measure, never_measured
from opic.windows import NO_PRIOR, Interpolation, Times

LADDER = (2.0, 4.0, 8.0, 16.0, 32.0)
"""windows that compete, in turnovers: 1 to 16 times what a sweep or greedy spends on N reads, roughly"""
HYSTERESIS = 0.02
SAMPLE = 0.01
LEAST_SAMPLE = 1000
"""pages sampled at least (all of them, if there are fewer): 500 scores a decision have 2 % noise"""
FADE = 0.5
LIMIT = 1024
"""pages that a crawl samples at most: 24 B each in every commit group"""
_ALL = 1 << 64


@dataclass(slots=True)
class Contest:
    """Which window of LADDER foretells best. `window` is the present T, maybe none of LADDER until one has won."""

    window: float = 32.0
    scores: list[float] = field(default_factory=lambda: [0.0] * len(LADDER))
    weight: float = 0.0
    reads: int = 0
    """since the last choice"""

    def score(self, flows: Reals | Flow, cash: Reals, spans: Reals) -> None:
        """Pages received `cash` page-units in `spans` turnovers, where window k held their flow for flows[:, k]."""
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
            nearest = min(range(len(LADDER)), key=lambda k: abs(LADDER[k] - self.window))
            best = min(range(len(LADDER)), key=self.scores.__getitem__)
            if self.scores[best] < (1 - HYSTERESIS) * self.scores[nearest]:
                self.window = LADDER[best]
        self.scores = [FADE * score for score in self.scores]
        self.weight *= FADE


class Adaptive:
    """Interpolation whose window is chosen anew every n/2 reads. `window` is the present T."""

    def __init__(self, n: int, endowment: float = 1.0, start: float = 32.0) -> None:
        share = max(SAMPLE, min(1.0, LEAST_SAMPLE / max(n, 1)))
        chosen = np.flatnonzero(seeds_of(np.arange(n), 0) < share * 2.0**64)
        self.place = np.full(n, -1, np.int64)
        self.place[chosen] = np.arange(chosen.size)
        self.inner = Interpolation(n, start, endowment, prior_window=NO_PRIOR)
        self.rivals = [Interpolation(chosen.size, window, endowment, prior_window=NO_PRIOR) for window in LADDER]
        self.contest = Contest(start)

    @property
    def window(self) -> float:
        return self.inner.window

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        self.inner.measure(pages, cash, now)
        sampled = self.place[pages] >= 0
        if sampled.any():
            moments = np.broadcast_to(np.asarray(now, np.float64), pages.shape)[sampled]
            self._compete(self.place[pages[sampled]], cash[sampled], moments)
        self.contest.passed(pages.size, self.place.size)
        self.inner.window = self.contest.window

    def _compete(self, places: Pages, cash: Reals, now: Reals) -> None:
        spans = self.rivals[0].since(places, now)
        known = ~self.rivals[0].unmeasured(places) & (spans > 0)
        flows = np.column_stack([rival.flow[places[known]] for rival in self.rivals])
        self.contest.score(flows, cash[known], spans[known])
        for rival in self.rivals:
            rival.measure(places, cash, now)

    def estimate(self, cash: Reals, now: float) -> Reals:
        return self.inner.estimate(cash, now)


class Sampled:
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
        flows, spans = self.flows[places], elapsed(now, columns[2])
        known = ~never_measured(columns[0]) & (spans > 0)
        self.contest.score(flows[known], columns[1][known] / UNIT, spans[known])
        for k, window in enumerate(LADDER):
            self.flows[places, k] = measure(flows[:, k], *columns[1:], now, min(window, least), prior)
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
            self.flows = np.concatenate((self.flows, np.repeat(flow[new][:, None], len(LADDER), axis=1)))
        return np.array([self.places[page] for page in pages.tolist()], np.int64)

    def _thin(self) -> None:
        while len(self.places) > LIMIT:
            self.share //= 2
            pages = np.fromiter(self.places, np.int64, len(self.places))
            kept = np.flatnonzero(seeds_of(pages, 0) <= np.uint64(self.share - 1))
            self.flows = self.flows[kept]
            self.places = {page: place for place, page in enumerate(pages[kept].tolist())}

    def dump(self) -> dict[str, Any]:
        pages = np.fromiter(self.places, np.int64, len(self.places))
        return {
            "contest": asdict(self.contest),
            "share": self.share - 1,
            "pages": pages.astype("<u4").tobytes(),
            "flows": self.flows.astype("<f4").tobytes(),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Sampled:
        sampled = cls()
        sampled.contest = Contest(**state["contest"])
        sampled.share = state["share"] + 1
        pages = np.frombuffer(state["pages"], "<u4")
        sampled.places = {page: place for place, page in enumerate(pages.tolist())}
        flows = np.frombuffer(state["flows"], "<f4").astype(np.float32)
        sampled.flows = flows.reshape(len(pages), len(LADDER))
        return sampled
