"""`xyro lab daemon`: months of `xyro serve` in minutes, over real HTTP, on a clock that jumps to what is due next.

Crawler and computed web share one process, one event loop and one clock. Whenever nothing is on its way (no order out,
no report to commit, no commit group being written), nothing can happen before the planner's next due page or the pool's
next host: the clock jumps there, and the daemon takes its turn. Sockets, commits and parsing are those of every day.

Each run reads the web once, then refreshes it with a bandwidth that is a share of its pages a day. What is measured
after the burn-in, by the server's own truth (lab/live.py):

    freshness   share of importance x time in which the crawler's copies were those of the web, beside what the
                simulator (lab/refresh_sim.py) predicts for the policy with the same changes and bandwidth: with rates
                learned from reads alone, which the daemon should not fall behind by more than 2 points, and with the
                true ones (the daemon knows more than it reads: dates of sitemaps and of a page's first read; and it
                reads all day, where the simulator reads each 6 hours)
    spending    reads that the server answered, beside what the bandwidth allowed
    meter       whether the interval of `xyro status` covers the truth, asked 50 times
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from configs.load import load
from crawl.data_dir import DataDir
from crawl.guarding import guard_of
from crawl.looks.freshness import fresh_now
from crawl.single import Bounds, Single
from lab.live import Live
from lab.refresh_rates import Estimator, Known
from lab.refresh_rules import rule
from lab.refresh_sim import simulate
from lab.server import WebServer
from lab.shape import DAY, ORIGIN
from lab.web import Web
from wire.clock import ManualClock, SystemClock
from wire.errors import MachineError, XyroError

LONGEST = 6 * 3600.0
"""seconds that one jump takes at most"""
LOOK = 0.0005
"""seconds between two looks whether anything is on its way"""
PATIENCE = 60.0
"""seconds that anything may be on its way; then it hangs, which is a bug"""
BURN = 1 / 3
CHECKS, COVERED = 50, 0.9
"""how often the meter is asked, and in what share of them its interval must hold the truth"""
FRESHNESS, SPENDING = 0.02, 0.01
"""what measured and predicted freshness, and reads made and allowed, may differ by at most"""
RULES: Mapping[str, str] = {"obsolescence": "p1", "mixed": "mixed:1"}
"""policies that the simulator calls by another name"""
HOSTS_PER = 200
"""pages a host"""
TIME_UNIT = 1200
"""seconds of a folder of due pages"""
GRAIN = 1200.0
"""seconds that one jump takes at least: what falls due meanwhile is read together, ten minutes late on average"""


class Jumping:
    """A daemon on a clock of its own."""

    def __init__(self, single: Single, clock: ManualClock, seen: Callable[[float], None] = lambda now: None) -> None:
        """seen: called each time that nothing more is to be done at a moment."""
        self.single, self.clock, self.seen = single, clock, seen
        self.jumps = 0

    def busy(self) -> bool:
        """Something is on its way that needs no time to pass."""
        single = self.single
        waiting = len(single.queue) and (single.pool.next_ready_in() or 0.0) <= 0.0
        return bool(
            single.pool.in_flight
            or waiting
            or single.unsynced
            or not single.loads.quiet
            or single.bus.waiting("orders")
            or not all(loop.quiet for loop in single.loops)
        )

    async def rest(self) -> None:
        """Until nothing is on its way. MachineError: it hangs, or a node failed."""
        real = SystemClock()
        deadline = real.monotonic() + PATIENCE
        await asyncio.sleep(0)
        while self.busy():
            await asyncio.sleep(LOOK)
            self.single.check()
            if real.monotonic() > deadline:
                raise MachineError("daemon: something is on its way and does not arrive (a bug)")

    async def settle(self) -> None:
        """Until there is nothing to do at this moment: a turn of every page node orders nothing more."""
        single = self.single
        while True:
            await self.rest()
            before = single.leased
            for loop in single.loops:
                await loop.turn()
            if single.leased <= before:
                return await self.rest()

    async def until(self, t: float) -> None:
        """Live on to this moment (wall clock)."""
        while self.clock.time() < t:
            await self.settle()
            now = self.clock.time()
            self.seen(now)
            self.clock.advance(min(max(self._next() - now, GRAIN), LONGEST, t - now))
            self.jumps += 1
        await self.settle()

    def _next(self) -> float:
        """When something can happen again."""
        ready = self.single.pool.next_ready_in()
        due = min(node.planner.next_time() for node in self.single.nodes)
        return min(due, math.inf if ready is None else self.clock.time() + ready)


class Checks:
    """Does the interval that `xyro status` shows cover the truth? Asked CHECKS times over the measured days.

    The audits' interval is of the mean freshness over their window; the truth is the mean over the same time.
    """

    def __init__(self, live: Live, begin: float, end: float) -> None:
        self.live, self.begin, self.every = live, begin, (end - begin) / CHECKS
        self.single: Single | None = None
        self.made = self.covered = 0
        self.error: list[float] = []
        """of the model's estimate of a moment, at each check"""
        self._times: list[float] = []
        self._fresh: list[float] = []

    def seen(self, now: float) -> None:
        """The crawl has done all there was to do now."""
        self._times.append(now)
        self._fresh.append(self.live.fresh_now(now))
        if self.single is not None and now >= self.begin + (self.made + 1) * self.every - GRAIN:
            self._check(fresh_now(self.single.nodes, now), now)

    def _check(self, told: Mapping[str, Any], now: float) -> None:
        audit = told["audit"]
        self.made += 1
        self.error.append(told["freshness"] - self._fresh[-1])
        if audit["audits"]:
            first = bisect_left(self._times, now - audit["over_s"])
            self.covered += audit["low"] <= fmean(self._fresh[first:]) <= audit["high"]

    def report(self) -> dict[str, Any]:
        return {"checks": self.made, "covered": self.covered, "model_error": round(fmean(self.error), 4)}


def run(pages: int, days: float, share: float, policy: str, seed: int) -> dict[str, Any]:
    """One run; its report."""
    import uvloop

    web = Web(seed=seed, pages=pages, hosts=max(8, pages // HOSTS_PER), origin=ORIGIN)
    began = SystemClock().monotonic()
    with tempfile.TemporaryDirectory(prefix="xyro-daemon-") as directory:
        measured = uvloop.run(_live(Path(directory) / "data", web, days, share, policy))
    wall = SystemClock().monotonic() - began
    return {**measured, "seconds": round(wall, 1)}


async def _live(directory: Path, web: Web, days: float, share: float, policy: str) -> dict[str, Any]:
    clock = ManualClock(web.shape.origin)
    live = Live(web)
    per_day = share * len(live.pages)
    options = {
        "crawl.scope": "any",
        "fetch.only_net": ("127.0.0.0/8",),
        "politeness.delay": 0.0,
        "refresh.policy": policy,
        "refresh.bandwidth": per_day / DAY,
        "refresh.time_unit": TIME_UNIT,
        "store.commit_seconds": 0.002,
    }
    async with WebServer(web, clock=clock, told=live.served) as server:
        live.web = server.web
        settings = load((), {}, options)
        data = DataDir.open(directory, make=True)
        single = Single(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock)
        checks = Checks(live, web.shape.origin + BURN * days * DAY, web.shape.origin + days * DAY)
        checks.single = single
        daemon = Jumping(single, clock, checks.seen)
        try:
            single.start()
            await single.submit([server.entry])
            return await _measured(daemon, live, days, share, policy, checks)
        finally:
            await single.stop()
            data.close()


async def _measured(
    daemon: Jumping, live: Live, days: float, share: float, policy: str, checks: Checks
) -> dict[str, Any]:
    clock, origin = daemon.clock, live.web.shape.origin
    await daemon.settle()
    found = live.read_pages / len(live.pages)
    await daemon.until(origin + BURN * days * DAY)
    live.begin(clock.time())
    await daemon.until(origin + days * DAY)
    freshness = live.freshness(clock.time())
    allowed = share * len(live.pages) * (1 - BURN) * days
    predicted, known = _predictions(live, days, share, policy)
    held = {
        "freshness": min(predicted, known) - FRESHNESS <= freshness <= max(predicted, known) + FRESHNESS,
        "spending": abs(live.reads / allowed - 1) <= SPENDING,
        "found": found == 1.0,
        "meter": checks.covered >= COVERED * checks.made,
    }
    return {
        "ok": all(held.values()),
        "broken": [name for name, holds in held.items() if not holds],
        "policy": policy,
        "bandwidth": share,
        "days": days,
        "pages": len(live.pages),
        "freshness": round(freshness, 4),
        "predicted": round(predicted, 4),
        "predicted_with_known_rates": round(known, 4),
        "reads": live.reads,
        "allowed": round(allowed),
        "spending": round(live.reads / allowed, 4),
        "meter": checks.report(),
        "jumps": daemon.jumps,
    }


def _predictions(live: Live, days: float, share: float, policy: str) -> tuple[float, float]:
    """Freshness of the simulator: with rates learned as the daemon learns them, and with the true ones."""
    world = live.world(days, BURN * days)
    name = RULES.get(policy, policy)
    learned = simulate(world, rule(name, world.born, 0), Estimator(last_modified=True).of(world), share)
    known = simulate(world, rule(name, world.born, 0), Known(world), share)
    return learned.freshness, known.freshness


FULL = ((20_000, 60.0, 0.2), (20_000, 20.0, 0.05), (20_000, 20.0, 0.5))
QUICK = ((2_000, 30.0, 0.2),)
"""(pages, days, reads a day for each page)"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not, 2 bad input, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab daemon", description="Months of the daemon, on a clock that jumps.")
    parser.add_argument("--quick", action="store_true", help="2,000 pages, 30 days: a minute")
    parser.add_argument("--policy", default="obsolescence", choices=("obsolescence", "freshness", "mixed", "uniform"))
    parser.add_argument("--seed", type=int, default=1, help="of the web [1]")
    options = parser.parse_args(arguments)
    ok = True
    try:
        for pages, days, share in QUICK if options.quick else FULL:
            said = run(pages, days, share, options.policy, options.seed)
            ok &= said["ok"]
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
    except XyroError as error:
        sys.stderr.write(f"xyro lab daemon: {error}\n")
        return 3 if isinstance(error, MachineError) else 2
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
