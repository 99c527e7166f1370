"""gamma: how the orders are shared between discovery and refresh while both have pages waiting.

    fixed       [refresh] gamma
    schedule    gamma_schedule: more discovery at first, then maintenance
    target      target_freshness: discovery gets what refresh does not need for it (refresh/split.py Controller)
    auto        gamma = "auto": one index for read and unread pages. Discovery's marginal page has the index nu; pages
                are refreshed as often as they would be if nu were the multiplier, and discovery gets the rest

Each partition finds its own; the queue, which they share, takes the mean (single.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xyro.configs.schema import Refresh
from xyro.frontier.bandwidth import Bandwidth
from xyro.refresh.split import Controller, GammaSchedule

EVERY = 5.0
"""seconds between two looks, fixed, scheduled and auto"""
CONTROL = 300.0
"""seconds between two steps towards a target"""
LEAST, MOST = 1.0, 99.0
"""bounds of what is adjusted: neither side is shut out, so both go on being measured"""


class Gamma:
    """`renew` once a turn."""

    def __init__(self, settings: Refresh) -> None:
        self.margin = 0.0
        """index of the unread pages that are ordered last, as discovery.py last saw it; 0 = none was seen"""
        self.measured: Callable[[], float | None] = lambda: None
        """weighted freshness as it is now, where somebody measures it (frontier/freshness.py); else the plan's
        outlook"""
        self.percent = 50.0
        self.follow(settings)

    def follow(self, settings: Refresh) -> None:
        """Other settings."""
        self.auto = settings.gamma == "auto"
        fixed = self.percent if settings.gamma == "auto" else float(settings.gamma)
        self.schedule = GammaSchedule(settings.gamma_schedule) if settings.gamma_schedule else None
        target = settings.target_freshness
        self.controller = Controller(target, fixed, LEAST, MOST) if target else None
        self.percent = fixed
        self._looked = self._heard = -math.inf

    def resume(self, gamma: float) -> None:
        """Go on from where adjusting it had got to."""
        if self.controller is not None:
            self.controller.gamma = self.percent = min(max(gamma, LEAST), MOST)
        elif self.auto:
            self.percent = gamma

    def seeks(self, now: float) -> bool:
        """Is the margin wanted?"""
        return self.auto and _is_over(self._heard, EVERY, now)

    def hear(self, margin: float, now: float) -> None:
        """The index of the unread pages that are ordered last; 0 = none wait."""
        self.margin, self._heard = margin, now

    def refresh_share(self, contested: bool, fixed: bool) -> float:
        """Refresh's part of the bandwidth. One that was set is refresh's own, unless gamma is there to divide it."""
        divided = not fixed or self.auto or self.controller is not None
        return 1.0 - self.percent / 100.0 if contested and divided else 1.0

    def renew(self, now: float, reads: int, bandwidth: Bandwidth) -> None:
        """gamma as of now; `reads`: of the crawl so far."""
        if not _is_over(self._looked, CONTROL if self.controller is not None else EVERY, now):
            return
        self._looked = now
        if self.controller is not None:
            if bandwidth.population.pages and bandwidth.reads_per_second > 0.0:
                measured = self.measured()
                self.percent = self.controller.hear(bandwidth.outlook().freshness if measured is None else measured)
        elif self.schedule is not None:
            self.percent = self.schedule.at(reads)
        elif self.auto and self.margin > 0.0:
            self.percent = self._competing(bandwidth)

    def _competing(self, bandwidth: Bandwidth) -> float:
        """What the pages that are refreshed leave over, if each is read once its index is that of the margin."""
        whole = bandwidth.whole
        if whole <= 0.0 or not math.isfinite(self.margin):
            return self.percent
        return min(max(100.0 * (1.0 - bandwidth.spends_at(self.margin) / whole), LEAST), MOST)


def _is_over(since: float, seconds: float, now: float) -> bool:
    """Have so many seconds passed? A clock that was set back makes nobody wait for its old time."""
    return not since <= now < since + seconds
