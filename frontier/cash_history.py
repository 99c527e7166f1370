"""What a partition remembers of its pages' flow: [opic] history, window and measures (algorithms.md B, C).

`flow` (interpolation) is kept whatever the history is: it stands in where another one has no measures yet, so a
crawl may go from one history to another at any moment. variable, fixed, edge and improved keep a page's last
measures beside it in the optional column `slots` (opic/slots.py); static is interpolation over an infinite window.

With window = "auto" T is chosen by a contest on a sample of the pages (opic/adaptive.py). T applies when flow is
measured and when it is read; nothing stored depends on it, so it may change at any moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xyro.metadata.hot import Columns
from xyro.opic import slots
from xyro.opic.adaptive import Sampled
from xyro.opic.arrays import Units
from xyro.opic.importance import TICKS, NewPages, Window, as_if_now, elapsed, measure, received

Ids = NDArray[np.int64]
SLOTS = "slots"
LEAST_WINDOW = 4.0
"""turnovers that count while the crawl's graph grows; T is what it widens to once it has settled"""


class History:
    """Measures pages that spend and says how important pages are. Cash is effective cash, in units."""

    def __init__(self, columns: Columns, history: str, window: float | Literal["auto"], measures: int) -> None:
        self.columns = columns
        self.new_pages = NewPages()
        self.sampled: Sampled | None = None
        self.window = Window()
        self.follow(history, window, measures)

    def follow(self, history: str, window: float | Literal["auto"], measures: int) -> None:
        """Begin with these settings, or go on with others: within a commit group, whose record then has the columns."""
        if window != "auto" or history == "static":
            self.sampled = None
            self._most = math.inf if history == "static" else float(window)
        else:
            self.sampled = self.sampled or Sampled()
            self._most = self.sampled.window
        self._span(self._most)
        self.policy = slots.POLICIES.get(history)
        if self.policy is None:
            self.columns.drop(SLOTS)
        else:
            self.columns.add(SLOTS, np.dtype((np.float32, (2, measures))))

    def _span(self, most: float) -> None:
        """T is `most` once the graph has settled; cumulative means know no short beginning."""
        self.window.most = most
        self.window.least = most if most == math.inf else min(most, LEAST_WINDOW)

    def measure(self, ids: Ids, cash: Units, now: int, known: int) -> None:
        """Distinct pages are about to spend `cash`, at `now` ticks; the crawl knows `known` pages."""
        columns, prior = self.columns, self.new_pages
        flow, last, birth = columns["flow"][ids], columns["clock"][ids], columns["birth"][ids]
        prior.learn(flow, cash, last, now)
        if self.sampled is not None:
            self._compete(self.sampled, ids, cash, now, known)
        window = self.window.at(now)
        if self.policy is not None:
            rows = columns[SLOTS][ids]
            slots.push(rows, received(flow, cash), elapsed(now, last), self.policy.grain(window, rows.shape[2]))
            columns[SLOTS][ids] = rows
            columns.touch(SLOTS, ids)
        columns["flow"][ids] = measure(flow, cash, last, birth, now, window, prior.prior)
        columns["clock"][ids] = now & 0xFFFF_FFFF

    def _compete(self, sampled: Sampled, ids: Ids, cash: Units, now: int, known: int) -> None:
        columns = self.columns
        settled = max(Window.SHARE * (now - self.window.since) / TICKS, LEAST_WINDOW)
        page = columns["flow"][ids], cash, columns["clock"][ids], columns["birth"][ids]
        sampled.measure(ids, *page, now, settled, self.new_pages.prior)
        sampled.passed(len(ids), known)
        self._span(sampled.window)

    def importance(self, pages: Ids | slice, cash: Units, now: int) -> NDArray[np.float64]:
        """As if each page were spent now: page-units a turnover, float64[k]."""
        columns = self.columns
        flow, last, birth = columns["flow"][pages], columns["clock"][pages], columns["birth"][pages]
        window = self.window.at(now)
        found = as_if_now(flow, cash, last, birth, now, window, self.new_pages.prior)
        if self.policy is None:
            return found
        held = received(flow, cash)
        return slots.estimate(columns[SLOTS][pages], elapsed(now, last), held, found, self.policy, window)

    def dump(self) -> dict[str, Any]:
        state = {"new_pages": self.new_pages.dump(), "window": self.window.dump()}
        return state if self.sampled is None else {**state, "sampled": self.sampled.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `dump` gave; the settings are those of now."""
        self.new_pages = NewPages.load(state["new_pages"])
        self.window = Window.load(state["window"])
        if self.sampled is not None and "sampled" in state:
            self.sampled = Sampled.load(state["sampled"])
            self._most = self.sampled.window
        self._span(self._most)
