"""History policies of the papers behind one protocol, for the laboratory (P2 s.4 and figures 4-6).

A policy is told each spending (pages, their cash in page-units, the clock in turnovers) and estimates the importance
of all pages. Every one but `Static` with `paper` leaves the endowment out: the cash a page began with is not flow.
The crawler itself uses `Interpolation`, through the same functions as here.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from xyro.lab.opic import slots
from xyro.opic import importance
from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import UNIT, seeds_of
from xyro.opic.contest import LADDER, Contest, Forecasts
from xyro.opic.importance import TICKS

Times = float | Reals


class History(Protocol):
    """Remembers spendings and estimates importance. Arrays of cash are page-units, times are turnovers."""

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        """These pages (distinct) are spent at `now`, one moment or one each; a page's moments never run back."""
        ...

    def estimate(self, cash: Reals, now: float) -> Reals:
        """Importance of all pages, given the cash they hold now: float64[n], mean about 1."""
        ...


class Static:
    """All that was ever spent: (H + C - C0) / G, or with `paper` P2's (H + C) / (G + 1), endowment and all.

    P2 counts the virtual page as one of the pages, here G counts real pages only. With x_v its share at the fixpoint
    (pagerank.fixpoint), P2's formula brought to mean 1 over the real pages is (H + C) / (G + 1 - x_v): paper = 1 - x_v.

    By Lemma 2.3 the former is one more power-iteration step on H / G, hence its far smaller error.
    """

    def __init__(self, n: int, endowment: float | Reals = 1.0, paper: float = 0.0) -> None:
        self.total = np.zeros(n)
        self.endowed = 0.0 if paper else endowment
        self.extra = paper

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        self.total[pages] += cash

    def estimate(self, cash: Reals, now: float) -> Reals:
        return (self.total + cash - self.endowed) / max(now + self.extra, 1 / TICKS)


class VariableWindow:
    """The last m measures of a page: sum of C over the time they cover; `current` counts the cash of now as one
    more."""

    def __init__(self, n: int, m: int, endowment: float = 1.0, current: bool = False) -> None:
        self.cash = np.zeros((m, n))
        self.span = np.zeros((m, n))
        self.count = np.zeros(n, np.int64)
        self.last = np.zeros(n)
        self.endowed = np.full(n, endowment)
        self.current = current

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        slot = self.count[pages] % self.cash.shape[0]
        self.cash[slot, pages] = cash - self.endowed[pages]
        self.span[slot, pages] = now - self.last[pages]
        self.endowed[pages] = 0.0
        self.last[pages] = now
        self.count[pages] += 1

    def estimate(self, cash: Reals, now: float) -> Reals:
        total, span = self.cash.sum(axis=0), self.span.sum(axis=0)
        open_ended: Mask = (self.count == 0) | self.current
        total = total + np.where(open_ended, cash - self.endowed, 0.0)
        span = span + np.where(open_ended, now - self.last, 0.0)
        estimate: Reals = total / np.maximum(span, 1 / TICKS)
        return estimate


class FixedWindow:
    """The measures of the last T turnovers, over T (P2's X_{t,T}) or over the span they cover (`edge`).

    `least` measures of a page count however old they are (P2's Improved Fixed Window: 3). Naive windows are biased:
    a page spent less than once in T has either nothing or too much in its window.
    """

    def __init__(self, n: int, window: float, edge: bool = False, least: int = 0, endowment: float = 1.0) -> None:
        self.window, self.edge, self.least = window, edge, least
        self.count = np.zeros(n, np.int64)
        self.last = np.zeros(n)
        self.endowed = np.full(n, endowment)
        self.log: list[tuple[Pages, Pages, Reals, Reals, Reals]] = []

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        flow, span = cash - self.endowed[pages], now - self.last[pages]
        self.log.append((pages, self.count[pages], np.full(pages.size, now), flow, span))
        self.endowed[pages] = 0.0
        self.last[pages] = now
        self.count[pages] += 1

    def estimate(self, cash: Reals, now: float) -> Reals:
        if not self.log:
            return np.ones(self.count.size)
        page, ordinal, when, flow, span = (np.concatenate(column) for column in zip(*self.log, strict=True))
        counts = (when > now - self.window) | (ordinal >= self.count[page] - self.least)
        self.log = [(page[counts], ordinal[counts], when[counts], flow[counts], span[counts])]
        total = np.bincount(page[counts], weights=flow[counts], minlength=self.count.size)
        covered = np.bincount(page[counts], weights=span[counts], minlength=self.count.size)
        spans = covered if self.edge else np.full(self.count.size, min(self.window, now))
        estimate: Reals = total / np.maximum(spans, 1 / TICKS)
        return estimate


class Slotted:
    """Variable or fixed window in m slots of 8 bytes, as the crawler keeps it: long histories are grouped (slots.py).

    `kind` names one of slots.POLICIES; `current` counts the cash of now as one more measure.
    """

    def __init__(
        self,
        n: int,
        kind: str = "improved",
        m: int = 8,
        window: float = importance.WINDOW,
        endowment: float = 1.0,
        current: bool = True,
    ) -> None:
        self.policy, self.window, self.current = slots.POLICIES[kind], window, current
        self.slots = np.zeros((n, 2, m), np.float32)
        self.inner = Interpolation(n, window, endowment)

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        units = np.rint(cash * UNIT).astype(np.int64)
        rows = self.slots[pages]
        grain = self.policy.grain(self.window, rows.shape[2])
        slots.push(rows, importance.received(self.inner.flow[pages], units), self.inner.since(pages, now), grain)
        self.slots[pages] = rows
        self.inner.measure(pages, cash, now)

    def estimate(self, cash: Reals, now: float) -> Reals:
        since = importance.elapsed(int(now * TICKS), self.inner.last)
        in_hand = importance.received(self.inner.flow, np.rint(cash * UNIT).astype(np.int64))
        flow = self.inner.estimate(cash, now)
        if self.current:
            return slots.estimate(self.slots, since, in_hand, flow, self.policy, self.window)
        total, covered = slots.counted(self.slots, since, self.policy, self.window)
        over = np.full(total.size, min(self.window, now)) if self.policy.over_window else covered
        return np.where(covered > 0, total / np.maximum(over, 1 / TICKS), 0.0)


NO_PRIOR = 1 / TICKS
"""prior window of a page whose birth says nothing about it (importance.PRIOR_WINDOW is for pages found by a crawl)"""


class Interpolation:
    """P2's interpolation in 8 bytes a page; `current` applies the read-time correction with the cash of now.

    prior_window weighs the history that a page is born with: in a graph known from the start NO_PRIOR is best.
    """

    def __init__(
        self,
        n: int,
        window: float = importance.WINDOW,
        endowment: float = 1.0,
        current: bool = True,
        prior_window: float = importance.PRIOR_WINDOW,
    ) -> None:
        self.window, self.current, self.prior_window = window, current, prior_window
        self.flow = importance.at_birth(np.full(n, round(endowment * UNIT), np.int64))
        self.last = np.zeros(n, np.uint32)
        self.birth = np.zeros(n, np.uint32)

    def measure(self, pages: Pages, cash: Reals, now: Times) -> None:
        ticks, units = np.uint32(np.asarray(now) * TICKS), np.rint(cash * UNIT).astype(np.int64)
        # only differences count, and modulo 2^32: with each page's own now as 0 they may all have different ones
        columns = self.flow[pages], units, self.last[pages] - ticks, self.birth[pages] - ticks
        self.flow[pages] = importance.measure(*columns, 0, self.window, 1.0, self.prior_window)
        self.last[pages] = ticks

    def since(self, pages: Pages, now: Times) -> Reals:
        """Turnovers since the pages were last measured (or born)."""
        return importance.elapsed(0, self.last[pages] - np.uint32(np.asarray(now) * TICKS))

    def unmeasured(self, pages: Pages) -> Mask:
        return importance.never_measured(self.flow[pages])

    def estimate(self, cash: Reals, now: float) -> Reals:
        units = np.rint(cash * UNIT).astype(np.int64)
        columns = self.flow, units, self.last, self.birth
        corrected = importance.as_if_now(*columns, int(now * TICKS), self.window, 1.0, self.prior_window)
        measured = ~importance.never_measured(self.flow)
        return corrected if self.current else np.where(measured, self.flow, corrected)


SAMPLE = 0.01
LEAST_SAMPLE = 1000
"""pages sampled at least (all of them, if there are fewer)"""


class Adaptive:
    """Interpolation whose window is chosen anew every n/2 reads. `window` is the present T."""

    def __init__(self, n: int, endowment: float = 1.0, start: float = 32.0) -> None:
        share = max(SAMPLE, min(1.0, LEAST_SAMPLE / max(n, 1)))
        chosen = np.flatnonzero(seeds_of(np.arange(n), 0) < share * 2.0**64)
        self.place = np.full(n, -1, np.int64)
        self.place[chosen] = np.arange(chosen.size)
        self.inner = Interpolation(n, start, endowment, prior_window=NO_PRIOR)
        self.rivals = [Interpolation(chosen.size, window, endowment, prior_window=NO_PRIOR) for window in LADDER]
        self.contest, self.forecasts = Contest(start), Forecasts(chosen.size)

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
        for rival in self.rivals:
            rival.measure(places, cash, now)
        flows = np.column_stack([rival.flow[places] for rival in self.rivals])
        self.contest.score(*self.forecasts.judge(places, cash, now, flows))

    def estimate(self, cash: Reals, now: float) -> Reals:
        return self.inner.estimate(cash, now)
