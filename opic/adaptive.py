"""T adapted to how fast the web changes (algorithms.md B): the window that would have foretold the cash best.

On a sample of the pages all windows of LADDER run side by side. When a sampled page is spent, each is asked what cash
it expected over the turnovers since the page's last spending, and scored by |X d - C| / ((C + X d) / 2). Twice per turn
of reads the best one becomes T for all pages, if it is better than the present one by more than HYSTERESIS; the scores
then fade to a half. Only flow is stored, never H, so a new T needs no touch of the store.
"""

from __future__ import annotations

import numpy as np

from opic.arrays import Pages, Reals
from opic.cash import seeds_of
from opic.windows import NO_PRIOR, Interpolation, Times

LADDER = (2.0, 4.0, 8.0, 16.0, 32.0)
"""windows that compete, in turnovers: 1 to 16 times what a sweep or greedy spends on N reads, roughly"""
HYSTERESIS = 0.02
SAMPLE = 0.01
LEAST_SAMPLE = 1000
"""pages sampled at least (all of them, if there are fewer): 500 scores a decision have 2 % noise"""
FADE = 0.5


class Adaptive:
    """Interpolation whose window is chosen anew every n/2 reads. `window` is the present T."""

    def __init__(self, n: int, endowment: float = 1.0, start: float = 32.0) -> None:
        share = max(SAMPLE, min(1.0, LEAST_SAMPLE / max(n, 1)))
        chosen = np.flatnonzero(seeds_of(np.arange(n), 0) < share * 2.0**64)
        self.place = np.full(n, -1, np.int64)
        self.place[chosen] = np.arange(chosen.size)
        self.inner = Interpolation(n, start, endowment, prior_window=NO_PRIOR)
        self.rivals = [Interpolation(chosen.size, window, endowment, prior_window=NO_PRIOR) for window in LADDER]
        self.scores, self.weight = np.zeros(len(LADDER)), 0.0
        self.reads = 0

    @property
    def window(self) -> float:
        return self.inner.window

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        self.inner.measure(pages, cash, now)
        sampled = self.place[pages] >= 0
        if sampled.any():
            moments = np.broadcast_to(np.asarray(now, np.float64), pages.shape)[sampled]
            self._compete(self.place[pages[sampled]], cash[sampled], moments)
        self.reads += pages.size
        if self.reads >= self.place.size / 2:
            self.reads = 0
            self._choose()

    def _compete(self, places: Pages, cash: Reals, now: Reals) -> None:
        spans = self.rivals[0].since(places, now)
        known = ~self.rivals[0].unmeasured(places) & (spans > 0)
        for k, rival in enumerate(self.rivals):
            expected = rival.flow[places[known]] * spans[known]
            both = 0.5 * (cash[known] + expected)
            self.scores[k] += float((np.abs(expected - cash[known]) / np.maximum(both, 1e-12)).sum())
            rival.measure(places, cash, now)
        self.weight += int(known.sum())

    def _choose(self) -> None:
        if self.weight:
            present = self.scores[LADDER.index(self.window)]
            best = int(self.scores.argmin())
            if self.scores[best] < (1 - HYSTERESIS) * present:
                self.inner.window = LADDER[best]
        self.scores *= FADE
        self.weight *= FADE

    def estimate(self, cash: Reals, now: float) -> Reals:
        return self.inner.estimate(cash, now)
