"""`xyro lab news`: two weeks of `xyro serve` on a news site, over real HTTP on a clock that jumps, beside the truth.

The site is a script (lab/web/news_site.py): a front page that changes all day, articles that change twice, an archive.
A daemon with the settings of every day, but one bandwidth, is given its front page. From the script and the server's
log alone, for each day:

    freshness    share of importance x time that is fresh
    missed       changes that the copy of a page is behind, in the mean by importance

beside those of two crawls with as many reads a day: P1's intervals where all rates are known, and one interval for all
pages. And what the daemon believed, each hour: the model's freshness, the headline (the model as its reads and audits
correct it), and the interval of the audits beside the truth over their time; the forecast of `xyro plan`, made at the
end of the day before.

    headline     it lies in the interval shown beside it, always; its mean over a day is within .02 of the truth
    interval     it holds the freshness of the moment in nine looks of ten (`held`: of the 24 of each day)
    audit        the interval holds the truth in nine looks of ten
    followed     on the last day the front page is read before half of its changes by day are .5 h old
    plan         freshness and reads of the later days, together, are within 10 % of what each evening before foretold

`--offered`: no bandwidth is set; the one that the daemon's log proposes is taken, and its promise held against what
then happens. `--delay`: the site allows fewer reads than the bandwidth: then those that it allows are the budget.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from xyro.configs.load import SERVE, load
from xyro.lab.crawls.jumping import Jumping
from xyro.lab.crawls.script_referee import (
    Reals,
    ScriptReferee,
    TrueWorth,
    best_intervals,
    day_of,
    planned_reads,
)
from xyro.lab.web.news_site import ARCHIVE_RATE, FRONT, HOUR, NewsShape, kind_of, news_site, weights
from xyro.lab.web.scripted import ScriptedPage, ScriptedSite
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.progress import offer
from xyro.service.views.forecast import PlanQuestion, forecast
from xyro.service.views.freshness_report import freshness_report
from xyro.wire.clock import ManualClock, SystemClock

GRAIN = 60.0
"""seconds that the clock jumps at least: a folder of due pages"""
SHARES = (0.05, 0.2, 1.0)
"""bandwidths: reads a day for each page"""
MOST_OFF, COVERED, FOLLOWED, PLANNED = 0.02, 0.9, 0.5, 0.1
WARM_UP = 2
"""days that are shown, and not judged"""
MEMORY = Path("/dev/shm")  # noqa: S108  # a file system in memory, where the machine has one
LEAST_INTERVAL = 600.0
"""seconds: `min_interval` of serve.toml, which the plan with known rates keeps, too"""
PROPOSED = re.compile(r"proposes ([\d.]+) reads a day .*: ([\d.]+) % fresh")


@dataclass(frozen=True, slots=True)
class BeliefLook:
    """The beliefs of the daemon at one moment."""

    time: float
    model: float
    headline: float
    kappa: float
    interval: tuple[float, float]
    """of the headline: to hold the freshness of 95 of 100 such moments"""
    low: float | None
    high: float | None
    """of the mean over the audits"""
    over: float
    """seconds that the audits were made in"""
    audits: int
    true: float
    """freshness of this moment, by the script"""
    own: float
    """the same by the importance that the daemon has learned"""

    @property
    def inside(self) -> bool:
        return self.interval[0] <= self.headline <= self.interval[1]

    @property
    def holds_truth(self) -> bool:
        return self.interval[0] <= self.true <= self.interval[1]


@dataclass(slots=True)
class NewsRun:
    """The traces of one run: the server's log, looks of each hour, forecasts by day."""

    site: ScriptedSite
    looks: list[BeliefLook] = field(default_factory=list)
    plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    offered: dict[str, float] = field(default_factory=dict)
    """of the log: reads a day, freshness, the day on which it was taken"""


class _Offers(logging.Handler):
    """Hears the bandwidth that the daemon's log proposes."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.heard: list[tuple[float, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if found := PROPOSED.search(record.getMessage()):
            self.heard.append((float(found[1]), float(found[2]) / 100.0))


@dataclass(frozen=True, slots=True)
class NewsTrial:
    """One run; share: reads a day for each page, 0 = what the daemon proposes; delay: seconds between two reads."""

    shape: NewsShape
    share: float
    delay: float = 0.0

    def options(self, per_day: float) -> dict[str, object]:
        return {
            "fetch.only_net": ("127.0.0.0/8",),
            "politeness.delay": self.delay,
            "refresh.bandwidth": f"{per_day:.0f}/day" if per_day else 0.0,
            "store.commit_seconds": 0.002,
        }


def measure(trial: NewsTrial, on: Path | None = None) -> dict[str, Any]:
    """Run it; return its report."""
    import uvloop

    began = SystemClock().monotonic()
    with tempfile.TemporaryDirectory(prefix="xyro-news-", dir=on) as directory:
        run = uvloop.run(_live(trial, Path(directory) / "data"))
    report = report_of(trial, run)
    return {**report, "seconds": round(SystemClock().monotonic() - began, 1)}


async def _live(trial: NewsTrial, directory: Path) -> NewsRun:
    clock, offers = ManualClock(ORIGIN), _Offers()
    settings = load((SERVE,), {}, trial.options(trial.share * trial.shape.pages))
    async with ScriptedSite(news_site(trial.shape), clock) as site:
        run, referee = NewsRun(site), ScriptReferee(site.pages, weights(site.pages))
        data = DataDir.open(directory, make=True)
        node = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock, plugins=PLUGINS)
        daemon = Jumping(node, clock, GRAIN)
        logging.getLogger("xyro").addHandler(offers)
        logging.getLogger("xyro").setLevel(logging.INFO)
        offering = asyncio.create_task(offer(node))
        try:
            node.start()
            await node.submit([site.url(FRONT)])
            for hour in range(1, round(trial.shape.days * 24) + 1):
                await daemon.until(ORIGIN + hour * HOUR)
                run.looks.append(_look(node, run.site, referee, clock.time()))
                if not trial.share and not run.offered and offers.heard:
                    reads, fresh = offers.heard[0]
                    run.offered = {"reads_per_day": reads, "freshness": fresh, "hour": hour}
                    refresh = msgspec.structs.replace(node.settings.refresh, bandwidth=f"{reads:.0f}/day")
                    node.follow(msgspec.structs.replace(node.settings, refresh=refresh))
                if hour % 24 == 0:
                    run.plans[hour // 24] = _plan(node)
                    sys.stderr.write(f"xyro lab news: day {hour // 24}, {len(site.reads)} reads\n")
        finally:
            offering.cancel()
            logging.getLogger("xyro").removeHandler(offers)
            await node.stop()
            data.close()
    return run


def _plan(node: Node) -> dict[str, Any]:
    """The forecast of `xyro plan` for the bandwidth that is set, and the day from now."""
    question = PlanQuestion(bandwidth=str(node.settings.refresh.bandwidth or 1.0))
    now = node.clock.time()
    part = node.crawl_views.plan_part(now)
    return forecast(part, node.settings.refresh, question, now)[0] if part.pages.pages else {}


def _look(node: Node, site: ScriptedSite, referee: ScriptReferee, now: float) -> BeliefLook:
    (frontier,) = node.frontiers
    shown = freshness_report(node.crawl_views.statuses(now), now)
    audit = shown["audit"]
    numbers = np.array(frontier.partition.url_index.find([site.url(path) for path in site.pages]), np.int64)
    last = {read.path: read.time for read in site.reads}
    states = [path in last and page.until(last[path]) > now for path, page in site.pages.items()]
    learned = np.nan_to_num(frontier.ledger.importance(np.maximum(numbers, 0))) * (numbers >= 0)
    return BeliefLook(
        now,
        shown["freshness_model"] or 0.0,
        shown["freshness"] or 0.0,
        shown["changes_over_believed"] or 1.0,
        (shown["freshness_low"] or 0.0, shown["freshness_high"] or 1.0),
        audit["low"],
        audit["high"],
        audit["over_s"] or 0.0,
        audit["audits"],
        float((referee.importance * states).sum() / referee.importance.sum()),
        float((learned * states).sum() / max(learned.sum(), 1e-9)),
    )


# -- the report --------------------------------------------------------------------------------------------------------


def report_of(trial: NewsTrial, run: NewsRun) -> dict[str, Any]:
    """Judge a run by the script and the server's log."""
    shape, site = trial.shape, run.site.pages
    number = {path: place for place, path in enumerate(site)}
    importance = weights(site)
    referee, end = ScriptReferee(site, importance), ORIGIN + shape.days * DAY
    pages = np.array([number[read.path] for read in run.site.reads], np.int64)
    times = np.array([read.time for read in run.site.reads])
    budget = run.offered.get("reads_per_day") or trial.share * shape.pages
    if trial.delay:
        budget = min(budget, DAY / trial.delay)
    verdicts = {"xyro": referee.judge(pages, times, end), **_others(referee, site, importance, budget, shape.days)}
    days = [_day(day, verdicts, run, times) for day in range(1, round(shape.days) + 1)]
    kinds = {
        kind: _means(referee.judge(pages, times, end, np.array([kind_of(path) == kind for path in site])), shape.days)
        for kind in ("front", "article", "archive")
    }
    late = [look for look in run.looks if look.time > ORIGIN + WARM_UP * DAY]
    covered = [_covered(look, verdicts["xyro"]) for look in late if look.audits]
    claims = {
        "headline inside": all(look.inside for look in run.looks),
        "interval": fmean(look.holds_truth for look in late) >= COVERED,
        "headline": all(abs(day["headline"] - day["freshness"]) <= MOST_OFF for day in days[WARM_UP:]),
        "audit": not covered or fmean(covered) >= COVERED,
        "followed": _lag(site[FRONT], times[pages == 0], end) <= FOLLOWED,
        "plan": _keeps_promise(days[WARM_UP:], run.offered),
    }
    return {
        "ok": all(claims.values()),
        "broken": [name for name, holds in claims.items() if not holds],
        "reads_a_day": round(budget),
        "share": round(budget / shape.pages, 4),
        **({"offered": run.offered} if run.offered else {}),
        "whole": {name: _means(verdict, shape.days) for name, verdict in verdicts.items()},
        "kinds": kinds,
        "importance": {
            kind: round(float(importance[[kind_of(path) == kind for path in site]].sum() / importance.sum()), 4)
            for kind in kinds
        },
        "front_reads": [int(((times[pages == 0] >= a) & (times[pages == 0] < b)).sum()) for a, b in _days(shape.days)],
        "front_lag_hours": round(_lag(site[FRONT], times[pages == 0], end), 3),
        "interval_held": round(fmean(look.holds_truth for look in late), 3),
        "audit_covered": round(fmean(covered), 3) if covered else None,
        "days": days,
    }


def _others(
    referee: ScriptReferee, site: Mapping[str, ScriptedPage], importance: Reals, budget: float, days: float
) -> dict[str, TrueWorth]:
    """The same days by two other crawls of as many reads a day, which begin by reading all pages."""
    rates = {"front": len(site[FRONT].changes) / days, "article": 2.0 / days, "archive": ARCHIVE_RATE}
    known = np.array([rates[kind_of(path)] for path in site])
    spans = {
        "known_rates": best_intervals(importance, known, budget, LEAST_INTERVAL / DAY),
        "uniform": np.full(len(site), len(site) / budget),
    }
    return {
        name: referee.judge(*planned_reads(intervals, ORIGIN, days), ORIGIN + days * DAY)
        for name, intervals in spans.items()
    }


def _days(days: float) -> list[tuple[float, float]]:
    return [day_of(day) for day in range(1, round(days) + 1)]


def _means(verdict: TrueWorth, days: float) -> dict[str, float]:
    """Over all days after the first two."""
    start, stop = day_of(WARM_UP + 1)[0], ORIGIN + days * DAY
    return {
        "freshness": round(verdict.freshness(start, stop), 4),
        "missed": round(verdict.changes_missed(start, stop), 4),
    }


def _day(day: int, verdicts: Mapping[str, TrueWorth], run: NewsRun, times: Reals) -> dict[str, Any]:
    start, stop = day_of(day)
    looks = [look for look in run.looks if start < look.time <= stop]
    last, plan = looks[-1], run.plans.get(day - 1, {})
    row: dict[str, Any] = {"day": day, "reads": int(((times >= start) & (times < stop)).sum())}
    for name, verdict in verdicts.items():
        mark = "" if name == "xyro" else f"_{name}"
        row[f"freshness{mark}"] = round(verdict.freshness(start, stop), 4)
        row[f"missed{mark}"] = round(verdict.changes_missed(start, stop), 4)
    since = max(last.time - last.over, ORIGIN)
    return {
        **row,
        "model": round(fmean(look.model for look in looks), 4),
        "headline": round(fmean(look.headline for look in looks), 4),
        "kappa": round(last.kappa, 3),
        "held": sum(look.holds_truth for look in looks),
        "own_importance": round(fmean(look.own for look in looks), 4),
        "audit": [last.low, last.high],
        "audits": last.audits,
        "truth_of_audit": round(verdicts["xyro"].freshness(since, last.time), 4) if last.over else None,
        "planned": plan.get("next_day"),
        "planned_reads": plan.get("used_per_day"),
    }


def _covered(look: BeliefLook, verdict: TrueWorth) -> bool:
    if look.low is None or look.high is None:
        return True
    return look.low <= verdict.freshness(max(look.time - look.over, ORIGIN), look.time) <= look.high


def _lag(front: ScriptedPage, reads: Reals, end: float) -> float:
    """Median hours from a change of the last day to the next read."""
    changes = np.array([t for t in front.changes if end - DAY <= t < end - HOUR])
    place = np.searchsorted(reads, changes, "left")
    return float(np.median(np.append(reads, end)[place] - changes)) / HOUR


def _keeps_promise(days: Sequence[Mapping[str, Any]], offered: Mapping[str, float]) -> bool:
    """Did these days come as was foretold on the evening before each, and by the offer, within 10 %, all together?"""

    def near(happened: Sequence[float], promise: Sequence[float]) -> bool:
        return abs(fmean(happened) / fmean(promise) - 1.0) <= PLANNED

    planned = [day for day in days if day["planned"] is not None]
    fresh = [day["freshness"] for day in planned]
    if not planned:
        return True
    near_plan = near(fresh, [day["planned"] for day in planned])
    near_plan &= near([day["reads"] for day in planned], [day["planned_reads"] for day in planned])
    return near_plan and (not offered or near(fresh, [offered["freshness"]]))


COLUMNS = (
    ("day", "day"),
    ("reads", "reads"),
    ("freshness", "fresh"),
    ("freshness_known_rates", "known"),
    ("freshness_uniform", "uniform"),
    ("missed", "missed"),
    ("missed_known_rates", "known"),
    ("missed_uniform", "uniform"),
    ("model", "model"),
    ("headline", "headline"),
    ("held", "held"),
    ("kappa", "kappa"),
    ("audit", "audit"),
    ("truth_of_audit", "its truth"),
    ("planned", "planned"),
)


def table(report: Mapping[str, Any]) -> str:
    """The days of a report as a table of Markdown."""
    lines = [" | ".join(title for _, title in COLUMNS), " | ".join("---" for _ in COLUMNS)]
    lines += [" | ".join(_cell(day[name]) for name, _ in COLUMNS) for day in report["days"]]
    return "".join(f"| {line} |\n" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "-" if value[0] is None else "{:.2f}-{:.2f}".format(*value)
    return "-" if value is None else f"{value:.3f}".lstrip("0") if isinstance(value, float) else f"{value}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not."""
    parser = argparse.ArgumentParser(prog="xyro lab news", description="Two weeks of `xyro serve` on a news site.")
    parser.add_argument("--days", type=int, default=14, help="[14]")
    parser.add_argument("--articles", type=int, default=300, help="[300]")
    parser.add_argument("--archive", type=int, default=5_000, help="pages of it [5000]")
    parser.add_argument("--seed", type=int, default=1, help="of the script [1]")
    parser.add_argument("--shares", nargs="*", type=float, default=list(SHARES), help="reads a day for each page")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between two reads of the site [0]")
    parser.add_argument("--offered", action="store_true", help="last of all, the bandwidth that the daemon proposes")
    parser.add_argument("--table", action="store_true", help="tables of the days instead of JSON")
    options = parser.parse_args(arguments)
    if options.days <= WARM_UP:
        parser.error(f"--days: more than {WARM_UP}")
    shape = NewsShape(options.days, options.articles, options.archive, options.seed)
    on = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    ok = True
    for share in (*options.shares, *((0.0,) if options.offered else ())):
        report = measure(NewsTrial(shape, share, options.delay), on)
        ok &= report["ok"]
        days = report.pop("days") if options.table else None
        sys.stdout.write(json.dumps(report) + "\n" + (table({"days": days}) + "\n" if days else ""))
        sys.stdout.flush()
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
