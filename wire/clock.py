"""Time is an argument: this is the only file that reads a clock.

Planners, queues and policies take `now` as a number; services take a Clock, which a test replaces by a ManualClock.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from typing import Protocol


class Clock(Protocol):
    """Two readings and one wait. Wall time may jump (NTP, a suspended laptop); monotonic time never goes back."""

    def time(self) -> float:
        """Seconds since 1970 (UTC): for what is stored and shown."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment: for durations and deadlines inside one process."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of monotonic time; 0 or less lets the other tasks run once."""
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that stands still until `advance` is called.

    Wall time begins at `start`, monotonic time at 0: code that confuses the two cannot pass a test.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def time(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """Return the number of tasks that wait in `sleep` now."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    def advance(self, seconds: float) -> None:
        """Let `seconds` (>= 0) pass; whoever is due wakes, in order of deadline, then of falling asleep.

        The woken run at the caller's next await and read the time at the end of the step: take small steps where a
        task sleeps again and again.
        """
        if not (0 <= seconds < math.inf):
            raise ValueError(f"time goes forward: cannot advance by {seconds}")
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)
