"""Samples of what a node does, some seconds apart: its speed, its failures and its clock over the last ten minutes.

The node notes one in its housekeeping. `xyro status` and the dashboard show what came of them.
"""

from __future__ import annotations

import itertools
import resource
import shutil
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from xyro.configs.schema import RefreshSettings
from xyro.refresh.plan_part import PlanPart
from xyro.service.views.forecast import PlanQuestion, forecast, proposal
from xyro.wire.clock import Clock, SystemClock

STEP = 4.0
"""seconds between two samples, at least"""
SAMPLES = 150
"""ten minutes"""
JUMP = 2.0
"""seconds by which the wall clock and the steady one may part between two samples"""
REMEMBERED = 3_600.0
"""seconds for which a step of the clock is told"""
PATIENCE = 60.0
"""seconds between two forecasts: some milliseconds each"""
SHORT = 12
"""samples: the last minute"""


class _Sample(Struct, frozen=True):
    wall: float
    steady: float
    reads: int
    errors: Counter[str]
    processor: float


class RecentFigures:
    """Notes samples, and sums them up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._machine = SystemClock()
        """of this machine, whatever clock the crawl goes by"""
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES)
        self._step = 0.0
        self._stepped_at = 0.0
        self._outlook: dict[str, Any] = {}
        self._outlook_at: tuple[float, str] | None = None

    def note(self, reads: int, errors: Callable[[], Counter[str]]) -> None:
        """Note a sample, unless the last one is too young."""
        wall, steady = self._clock.time(), self._clock.monotonic()
        last = self._samples[-1] if self._samples else None
        if last is not None and steady - last.steady < STEP:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        self._samples.append(_Sample(wall, steady, reads, errors(), used.ru_utime + used.ru_stime))
        if last is not None and abs(step := (wall - last.wall) - (steady - last.steady)) > JUMP:
            self._step, self._stepped_at = step, steady

    @property
    def clock_step(self) -> float:
        """Seconds by which this machine's clock was set, lately; 0: it was not."""
        return self._step if self._clock.monotonic() - self._stepped_at < REMEMBERED else 0.0

    def errors(self, current: Counter[str]) -> dict[str, int]:
        """Failed orders of the last ten minutes, by class."""
        return dict((current - self._samples[0].errors).most_common()) if self._samples else dict(current)

    def reads(self, current: int) -> int:
        """Reads of the last ten minutes."""
        return current - self._samples[0].reads if self._samples else current

    def processor(self) -> float:
        """Share of a core that this process took over the last minute."""
        if len(self._samples) < 2:
            return 0.0
        first, last = self._samples[max(-SHORT, -len(self._samples))], self._samples[-1]
        return (last.processor - first.processor) / max(last.steady - first.steady, 1e-9)

    def series(self) -> list[list[float]]:
        """[seconds since 1970, reads a second, failures a second] between each two samples, the oldest first. Times are
        by the clock of now: those from before it was set are as far back as they are."""
        samples = list(self._samples)
        found: list[list[float]] = []
        ahead = samples[-1].wall - samples[-1].steady if samples else 0.0
        for before, after in itertools.pairwise(samples):
            seconds = max(after.steady - before.steady, 1e-9)
            failures = after.errors.total() - before.errors.total()
            rates = (after.reads - before.reads) / seconds, failures / seconds
            found.append([round(ahead + after.steady, 1), *(round(max(0.0, rate), 3) for rate in rates)])
        return found

    def outlook(self, pages: int, plan_part: Callable[[], PlanPart], settings: RefreshSettings) -> dict[str, Any]:
        """`pages` that are refreshed; where a bandwidth is `set`, the freshness it gives, beside what is proposed."""
        if not settings.bandwidth or not pages:
            return {"pages": pages}
        now, named = self._machine.monotonic(), str(settings.bandwidth)
        if self._outlook_at is not None and self._outlook_at[1] == named and now - self._outlook_at[0] < PATIENCE:
            return self._outlook
        part = plan_part()
        row = forecast(part, settings, PlanQuestion(bandwidth=named))[0]
        better = proposal(part, settings)
        self._outlook_at = now, named
        self._outlook = {
            "pages": pages,
            "set": named,
            "reads_per_day": row["reads_per_day"],
            "freshness": row["freshness"],
            "proposed": better["reads_per_day"],
            "freshness_proposed": better["freshness"],
        }
        return self._outlook


def disk_free(directory: Path) -> int:
    """Bytes; 0 where the directory is gone."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0
