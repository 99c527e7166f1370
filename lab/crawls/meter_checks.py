"""Check whether the interval that `xyro status` shows covers the truth (`xyro lab daemon` asks 50 times).

The interval is that of the mean freshness over the time of its audits. The truth is the mean over the very same time,
by the server: exact integrals, not samples. It is weighed in two ways. What has to hold is held with the importance
that the web's graph has: that is what a reader of `xyro status` takes the number for. Beside it stands the count with
the importance that the crawl itself has learned, by which audits are drawn: where only that one holds, the audits are
right, and importance is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from xyro.frontier.frontier import Frontier
from xyro.lab.refresh.executions import RecountMoment
from xyro.lab.refresh.live import Live
from xyro.lab.refresh.world import Ids, Reals
from xyro.lab.web.shape import DAY
from xyro.service.node.node import Node
from xyro.service.views.freshness_report import freshness_report

CHECKS, COVERED = 50, 0.9
"""how often the meter is asked, and in what share of them its interval must hold the truth"""
_ROUNDING = 1.0
"""seconds"""


class Mean:
    """Mean freshness between any two looks; the weights may change from one look to the next."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._areas: list[float] = []
        """freshness x seconds, up to each look"""
        self._fresh: Reals | None = None

    def look(self, now: float, fresh: Reals, weights: Reals) -> None:
        """Add a look at the copies. fresh: float64[pages], seconds in which each was fresh, up to now."""
        gained = 0.0 if self._fresh is None else float(weights @ (fresh - self._fresh)) / float(weights.sum())
        self._times.append(now)
        self._areas.append(gained + (self._areas[-1] if self._areas else 0.0))
        self._fresh = fresh.copy()

    def since(self, then: float) -> float:
        """Return the mean from `then`, or the first look if that is later, to the last look; NaN: no time passed."""
        then, now = max(then, self._times[0]), self._times[-1]
        if now <= then:
            return float("nan")
        return (self._areas[-1] - float(np.interp(then, self._times, self._areas))) / (now - then)


class Checks:
    """CHECKS comparisons of the shown interval with the truth, from `begin` to `end` (wall clock).

    `seen` is to be called at each moment at which the crawl rests.
    """

    def __init__(self, live: Live, begin: float, end: float) -> None:
        self.live, self.begin, self.every = live, begin, (end - begin) / CHECKS
        self.made = self.covered = self.covered_own = self.covered_now = 0
        self.error: list[float] = []
        """of the shown freshness of a moment, at each check"""
        self.inside = 0
        """checks in which it lay in the interval shown beside it"""
        self.model_error: list[float] = []
        """of the model alone"""
        self.kappa: list[float] = []
        """changes over believed ones, as shown"""
        self.width: list[float] = []
        """of the interval"""
        self._true, self._own = Mean(), Mean()
        self.start = live.importance
        """importance by which each page is dated when the watch begins, in units of the web's"""
        self.recounts: list[RecountMoment] = []
        """since then: when all pages were dated anew, by which importance"""
        self._counted: tuple[float, ...] = ()
        self._recounts: Callable[[], tuple[float, ...]] = tuple
        """moves at each recount of the crawl's own accord"""
        self._dated: Callable[[], Reals] = lambda: live.importance
        self._learned: Callable[[], Reals] = lambda: live.importance
        self._weights = live.importance
        self._ask: Callable[[float], Mapping[str, Any]] = lambda now: {}

    def watch(self, single: Node) -> None:
        """Attach to a crawl of one partition that knows all pages: the checks will ask it."""
        (frontier,) = single.frontiers
        urls = [self.live.web.url(page) for page in self.live.pages.tolist()]
        pages = np.array(frontier.partition.url_index.find(urls), np.int64)
        self._learned = lambda: frontier.ledger.importance(pages)
        self._weights = self._learned()
        self._dated = lambda: _dated_by(frontier, pages) / float(self._learned().mean())
        self._recounts = lambda: _next_doubling(frontier)
        self.start, self._counted = self._dated(), self._recounts()
        self._ask = lambda now: freshness_report(single.crawl_views.statuses(now), now)

    def seen(self, now: float) -> None:
        """Take note that the crawl has nothing more to do at this moment; check when a check is due."""
        fresh = self.live.fresh_seconds(now)
        self._true.look(now, fresh, self.live.importance)
        self._own.look(now, fresh, self._weights)
        if (counted := self._recounts()) != self._counted:
            self._counted = counted
            self.recounts.append(RecountMoment((now - self.live.web.shape.origin) / DAY, self._dated()))
        if now >= self.begin + (self.made + 1) * self.every - _ROUNDING:
            self.check(self._ask(now), now)
            self._weights = self._learned()

    def check(self, status: Mapping[str, Any], now: float) -> None:
        """Compare the shown interval with the truth. status: the freshness that `xyro status` shows."""
        audit = status["audit"]
        self.made += 1
        true = self.live.fresh_now(now)
        low, fresh, high = (status[f"freshness{end}"] for end in ("_low", "", "_high"))
        if fresh is None:  # it may be anything
            low, fresh, high = 0.0, status["freshness_model"], 1.0
        self.error.append(fresh - true)
        self.model_error.append(status["freshness_model"] - true)
        self.kappa.append(status["changes_over_believed"] or 1.0)
        if audit["audits"]:
            self.inside += low <= fresh <= high
            self.covered_now += low <= true <= high
            then, low, high = now - audit["over_s"], audit["low"], audit["high"]
            self.width.append(high - low)
            self.covered += low <= self._true.since(then) <= high
            self.covered_own += low <= self._own.since(then) <= high

    @property
    def hold(self) -> bool:
        return self.made == CHECKS == self.inside and self.covered >= COVERED * self.made

    def report(self) -> dict[str, Any]:
        return {
            "checks": self.made,
            "covered": self.covered,
            "covered_by_own_importance": self.covered_own,
            "covered_now": self.covered_now,
            "mean_width": round(fmean(self.width), 4) if self.width else None,
            "inside": self.inside,
            "error": _mean(self.error),
            "model_error": _mean(self.model_error),
            "changes_over_believed": _mean(self.kappa),
        }


def _mean(values: list[float]) -> float | None:
    return round(fmean(values), 4) if values else None


def _next_doubling(frontier: Frontier) -> tuple[float, ...]:
    """Ticks of OPIC's clock at the next recount, and the prior's rate at the last one."""
    doublings = frontier.scheduler.schedule.doublings
    return () if doublings is None else (doublings.next, doublings.rate)


def _dated_by(frontier: Frontier, pages: Ids) -> Reals:
    """Return the importance by which the rows of these pages were dated; 0 for pages that are not refreshed."""
    rows = [frontier.partition.row(page) for page in pages.tolist()]
    return np.array([row.weight**2 / row.rate if row is not None and row.rate else 0.0 for row in rows])
