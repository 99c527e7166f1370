"""A daemon on a clock that jumps: months of `xyro serve` in minutes (`xyro lab daemon`).

Crawler and computed web share one process, one event loop and one clock. Whenever nothing is on its way (no order out,
no report to commit, no commit group being written), nothing can happen before the scheduler's next due page or the
pool's next host: the clock jumps there, and the daemon takes its turn. Sockets, commits and parsing are those of every
day.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from xyro.service.node.node import Node
from xyro.wire.clock import ManualClock, SystemClock
from xyro.wire.errors import MachineError

LONGEST = 6 * 3600.0
"""seconds that one jump takes at most"""
LOOK = 0.001
"""seconds between two checks whether anything is on its way: uvloop takes less for none at all, and spins"""
IDLE = 200
"""turns in a row that order nothing, at one moment: a daemon takes four a second"""
PATIENCE = 60.0
"""seconds in which something is on its way and nothing arrives; then it hangs, which is a bug"""


class Jumping:
    """A daemon on a clock that jumps: `until` lets it live on, and nothing is on its way between two jumps."""

    def __init__(
        self, single: Node, clock: ManualClock, grain: float, seen: Callable[[float], None] = lambda now: None
    ) -> None:
        """grain: seconds that one jump takes at least; what falls due meanwhile is read together, half of it late.

        seen: called each time that nothing more is to be done at a moment.
        """
        self.single, self.clock, self.grain, self.seen = single, clock, grain, seen
        self.jumps = 0

    def busy(self) -> bool:
        """Tell whether anything is on its way that needs no time to pass."""
        single = self.single
        waiting = len(single.queue) and (single.pool.next_ready_in() or 0.0) <= 0.0
        return bool(
            single.pool.in_flight
            or waiting
            or single.unsynced
            or not single.load_loop.quiet
            or single.bus.waiting("orders")
            or not all(loop.quiet for loop in single.partition_loops)
        )

    async def rest(self) -> None:
        """Wait until nothing is on its way. MachineError: nothing arrives any more, or a node failed."""
        real = SystemClock()
        arrived, deadline = -1, 0.0
        await asyncio.sleep(0)
        while self.busy():
            await asyncio.sleep(LOOK)
            self.single.check()
            if self.single.reads != arrived:
                arrived, deadline = self.single.reads, real.monotonic() + PATIENCE
            elif real.monotonic() > deadline:
                raise MachineError("daemon: something is on its way and does not arrive (a bug)")

    async def settle(self) -> None:
        """Take turns until there is nothing to do at this moment.

        Then a turn of every partition orders nothing more, and no partition has pages left to ask whether they are due,
        for which a clock that runs would give it turns enough.
        """
        single, idle = self.single, 0
        while idle < IDLE:
            await self.rest()
            before = single.leased
            for loop in single.partition_loops:
                await loop.turn()
            if single.leased > before:
                idle = 0
            elif self._next() > self.clock.time():
                break
            else:
                idle += 1
        await self.rest()

    async def until(self, t: float) -> None:
        """Live on to this moment (wall clock)."""
        while self.clock.time() < t:
            await self.settle()
            now = self.clock.time()
            self.seen(now)
            self.clock.advance(min(max(self._next() - now, self.grain), LONGEST, t - now))
            self.jumps += 1
        await self.settle()
        self.seen(t)

    def _next(self) -> float:
        """Return the earliest time at which anything can happen again."""
        ready = self.single.pool.next_ready_in()
        due = min(frontier.scheduler.next_time() for frontier in self.single.frontiers)
        return min(due, math.inf if ready is None else self.clock.time() + ready)
