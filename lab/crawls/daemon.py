"""`xyro lab daemon`: months of `xyro serve` in minutes, over real HTTP, on a clock that jumps to what is due next.

Each run reads the web once, then refreshes it with a bandwidth that is a share of its pages a day (jumping.py). What
is measured after the burn-in, by the server's own truth (lab/refresh/live.py), and what must hold:

    freshness   share of importance x time in which the crawler's copies were those of the web: within 2 % of what the
                simulator predicts for the policy from the same web, bandwidth and knowledge (lab/refresh/prediction.py)
    spending    reads that the server answered: within 1 % of what the bandwidth allowed
    meter       the interval of `xyro status` covers the truth in 90 % of 50 checks (meter_checks.py)
    found       every page was read at once

Beside it stands what the rows of `export pages` say at the end: the mean of `stale`, and the share of the pages that
have changed since they were read.

Runs go side by side, in processes of their own. Their data directories lie in memory where there is a file system for
that: every commit is synced as ever, but nobody cuts the power here, and a slow disk would only make it last longer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xyro.configs.load import load
from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import rules_of
from xyro.lab.crawls.jumping import Jumping
from xyro.lab.crawls.meter_checks import Checks
from xyro.lab.refresh.live import Live
from xyro.lab.refresh.prediction import RefreshPlan, predicted
from xyro.lab.web.server import WebServer
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.clock import ManualClock, SystemClock
from xyro.wire.errors import MachineError, XyroError

BURN = 1 / 3
"""of the days: not measured"""
FRESHNESS, SPENDING = 0.02, 0.01
"""parts by which freshness may differ from the prediction, and reads from the bandwidth"""
HOSTS_PER = 200
"""pages a host"""
TIME_UNIT = 1200
"""seconds of a folder of due pages; the least jump, and the simulator's tick"""
POLICIES = ("obsolescence", "freshness", "mixed")
MEMORY = Path("/dev/shm")  # noqa: S108  # a file system in memory, where the machine has one
STEPS = 20
"""times that a run tells how far it is"""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """One run. share: reads a day for each page."""

    pages: int
    days: float
    share: float
    policy: str = "obsolescence"
    seed: int = 1

    def web(self) -> Web:
        return Web(seed=self.seed, pages=self.pages, hosts=max(8, self.pages // HOSTS_PER), origin=ORIGIN)

    @property
    def begin(self) -> float:
        """Wall clock from which on it is measured."""
        return ORIGIN + BURN * self.days * DAY

    @property
    def end(self) -> float:
        return ORIGIN + self.days * DAY

    def settings(self, per_day: float) -> Settings:
        options = {
            "crawl.scope": "any",
            "fetch.only_net": ("127.0.0.0/8",),
            "politeness.delay": 0.0,
            "refresh.policy": self.policy,
            "refresh.bandwidth": per_day / DAY,
            "refresh.time_unit": TIME_UNIT,
            "store.commit_seconds": 0.002,
        }
        return load((), {}, options)


FULL = ((20_000, 60.0, 0.2), (20_000, 20.0, 0.5), (20_000, 20.0, 0.05))
QUICK = ((2_000, 30.0, 0.2),)
"""(pages, days, reads a day for each page), the longest first: they go side by side"""


def run(pages: int, days: float, share: float, policy: str, seed: int) -> dict[str, Any]:
    """Measure one run with the settings of the command line; return its report."""
    return measure(Trial(pages, days, share, policy, seed))


def measure(trial: Trial, on: Path | None = None, tell: Tell = lambda text: None) -> dict[str, Any]:
    """Measure one run; return its report. on: directory in which the data directory lies while the run lasts."""
    import uvloop

    began = SystemClock().monotonic()
    live = Live(trial.web())
    settings = trial.settings(trial.share * len(live.pages))
    with tempfile.TemporaryDirectory(prefix="xyro-daemon-", dir=on) as directory:
        checks, jumps, stale = uvloop.run(_live(trial, live, settings, Path(directory) / "data", tell))
    history = live.history(trial.days, BURN * trial.days, checks.start)._replace(recounts=checks.recounts)
    plan = RefreshPlan(rules_of(settings.refresh).policy, "folders", trial.share, TIME_UNIT)
    expected, by_rates = (predicted(history, plan, exact).freshness for exact in (False, True))
    found = _report(trial, live, checks, expected, by_rates)
    return {**found, "stale": stale, "jumps": jumps, "seconds": round(SystemClock().monotonic() - began, 1)}


async def _live(
    trial: Trial, live: Live, settings: Settings, directory: Path, tell: Tell
) -> tuple[Checks, int, dict[str, float]]:
    """Live from the first read to the last day; return the checks made, the number of jumps of the clock, and how stale
    the crawl says its pages are, beside the truth."""
    clock = ManualClock(ORIGIN)
    checks = Checks(live, trial.begin, trial.end)
    async with WebServer(live.web, clock=clock, listener=live.served) as server:
        live.web = server.web
        data = DataDir.open(directory, make=True)
        single = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock, plugins=PLUGINS)
        daemon = Jumping(single, clock, TIME_UNIT, checks.seen)
        try:
            single.start()
            await single.submit([server.entry])
            await daemon.settle()
            checks.watch(single)
            await _days(daemon, trial, live, tell)
            stale = await _stale(single, live, clock.time())
        finally:
            await single.stop()
            data.close()
    return checks, daemon.jumps, stale


async def _stale(single: Node, live: Live, now: float) -> dict[str, float]:
    """{"mean": of `stale` over the pages that are refreshed, "changed": share of these that did change}."""
    urls = {live.web.url(page) for page in live.pages.tolist()}
    with await single.views() as views:
        found = [row["stale"] for row in views.pages() if row["url"] in urls and row["stale"] is not None]
    fresh = live.fresh_now(now, np.ones(len(live.pages)))
    return {"mean": round(float(np.mean(found)), 4), "changed": round(1.0 - fresh, 4)}


async def _days(daemon: Jumping, trial: Trial, live: Live, tell: Tell) -> None:
    """Live on day by day, and begin to measure when the burn-in is over."""
    real, began = SystemClock(), SystemClock().monotonic()
    steps = {ORIGIN + step / STEPS * trial.days * DAY for step in range(1, STEPS)}
    for t in sorted({*steps, trial.begin, trial.end}):
        await daemon.until(t)
        if t == trial.begin:
            live.begin(t)
        day, lasted = (t - ORIGIN) / DAY, real.monotonic() - began
        tell(f"{100 * trial.share:g} % a day: day {day:g} of {trial.days:g}, {lasted:.0f} s")


def _report(trial: Trial, live: Live, checks: Checks, expected: float, by_rates: float) -> dict[str, Any]:
    freshness = live.freshness(trial.end)
    allowed = trial.share * len(live.pages) * (1 - BURN) * trial.days
    claims = {
        "freshness": abs(freshness / expected - 1.0) <= FRESHNESS,
        "spending": abs(live.reads / allowed - 1.0) <= SPENDING,
        "found": live.read_pages == len(live.pages),
        "meter": checks.hold,
    }
    return {
        "ok": all(claims.values()),
        "broken": [name for name, holds in claims.items() if not holds],
        "policy": trial.policy,
        "execution": "folders",
        "bandwidth": trial.share,
        "days": trial.days,
        "pages": len(live.pages),
        "freshness": round(freshness, 4),
        "predicted": round(expected, 4),
        "off": round(freshness / expected - 1.0, 4),
        "predicted_with_known_rates": round(by_rates, 4),
        "reads": live.reads,
        "allowed": round(allowed),
        "spending": round(live.reads / allowed, 4),
        "meter": checks.report(),
    }


# -- the command -------------------------------------------------------------------------------------------------------


def _tell(text: str) -> None:
    sys.stderr.write(f"xyro lab daemon: {text}\n")


def _reports(trials: Sequence[Trial], on: Path | None, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the reports of all runs, in their order; at most `jobs` run at a time.

    XyroError: the error of the first run that failed, or was killed.
    """
    trial_report = partial(measure, on=on, tell=_tell)
    if jobs == 1 or len(trials) == 1:
        yield from map(trial_report, trials)
        return
    with ProcessPoolExecutor(min(jobs, len(trials)), multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(trial_report, trials)
        except BrokenProcessPool as error:
            raise MachineError(f"a run was killed: {error}") from error


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="xyro lab daemon", description="Months of the daemon, on a clock that jumps.")
    parser.add_argument("--quick", action="store_true", help="2,000 pages, 30 days: a minute")
    parser.add_argument("--policy", default="obsolescence", choices=POLICIES)
    parser.add_argument("--seed", type=int, default=1, help="of the web [1]")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs side by side [2]")
    parser.add_argument("--on", type=Path, help="directory of the data directories [memory, where there is /dev/shm]")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not, 2 bad input, 3 the machine failed."""
    options = _parsed(arguments)
    on = options.on or (MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None)
    rest = options.policy, options.seed
    trials = [Trial(*choice, *rest) for choice in (QUICK if options.quick else FULL)]
    ok = True
    try:
        for report in _reports(trials, on, max(1, options.jobs)):
            ok &= report["ok"]
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()
    except XyroError as error:
        _tell(str(error))
        return 3 if isinstance(error, MachineError) else 2
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
