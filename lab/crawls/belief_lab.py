"""`xyro lab beliefs`: is what a crawl believes of its freshness true? The frontier itself, without HTTP.

`Frontier.turn` is driven with reports made up from a world whose every change is known (belief_worlds.py): the change
model, dates, calibration, audits and bandwidth are the daemon's, with the settings of `serve`; importance is given by
the world, so that nothing but beliefs decides. Fourteen days in seconds. A line a world, in the mean of days 3 to 14
and of all seeds, by importance:

    fresh       share of time that copies were up to date
    missed      changes that a copy was behind
    error       how far a day's headline was from that day's freshness
    floor       the same of one who knows how often each page changes by the world's law (in a history, and in the
                ephemeral world: as often as it did, at any time), and no change: the mean of DRAWS other draws, under
                the same reads
    bias        the headline minus the truth
    model       the model alone minus the truth
    covered     share of the looks, one an hour, whose interval held the freshness of the moment
    rate        mean of ln(believed rate / changes a day that came), pages that changed at least 5 times
    day, week   how far the freshness that `xyro plan` foretold at the end of a day for the next one was from that which
                came, in parts of that; the same of the next week
    plan        the same of the long run, as foretold on the evenings of the last third of all days, and came in that
                third: the long run, if a third of the days are a cycle of reads; plan_bias: with its sign
    spends      what it foretold of the next day's reads over those that came, less 1
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.configs.load import SERVE, load
from xyro.frontier.batch import MessageBatch
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.lab.crawls.belief_worlds import HELD_OUT, HOUR, WORLDS, BeliefWorld, history
from xyro.lab.crawls.script_referee import Reals, ScriptReferee, day_of
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.metadata.partition import Partition
from xyro.metadata.recovery import recover
from xyro.metadata.store import MemoryStore
from xyro.refresh.meter import found as audited
from xyro.refresh.meter import shifted
from xyro.refresh.plan_part import PlanPart
from xyro.service.views.forecast import PlanQuestion, forecast
from xyro.wire.ids import LocalPage
from xyro.wire.messages import FetchOrder, Kind, Links, PageReport, Priority, Submit

SITE = "http://site.example"
WARM_UP, WEEK = 2, 7
"""days that are not judged, and those of a week"""
GRAIN = 60.0
"""seconds between two turns at least"""
ROOM = 1 << 30
DRAWS, SEED = 20, 11
"""worlds with other changes that the floor is the mean of"""
NO_LINKS = Links((), b"")


@dataclass(frozen=True, slots=True)
class BeliefVerdict:
    """The figures of a run, or their means over several: see the module."""

    fresh: float
    missed: float
    error: float
    floor: float
    bias: float
    model: float
    covered: float
    rate: float
    day: float
    week: float
    plan: float
    plan_bias: float
    spends: float


@dataclass(frozen=True, slots=True)
class BeliefMoment:
    """The beliefs of a crawl at one moment."""

    time: float
    model: float
    headline: float
    low: float
    high: float


class Foretold(NamedTuple):
    """The forecast of `xyro plan`: freshness in the long run, of the next day and week, and reads a day."""

    long_run: float
    next_day: float
    next_week: float
    reads: float


class MadeUpCrawl:
    """A frontier over a world. `live` until a moment; `reads` are (page of the world, time)."""

    def __init__(self, world: BeliefWorld, reads_per_day: float) -> None:
        self.world = world
        self.number = {f"{SITE}{path}": place for place, path in enumerate(world.pages)}
        self.changes = [np.array(page.changes) for page in world.pages.values()]
        self.reads: list[tuple[int, float]] = []
        self.moments: list[BeliefMoment] = []
        self.plans: list[Foretold] = []
        """at the end of each day"""
        self.now = ORIGIN
        self.bandwidth = f"{reads_per_day:.3f}/day"
        options: dict[str, object] = {
            "refresh.bandwidth": self.bandwidth,
            "crawl.scope": "any",
            "store.leases_per_host": 64,
        }
        self.settings = settings = load((SERVE,), {}, options)
        store = MemoryStore()
        directory = Path(tempfile.gettempdir()) / "no-snapshots-here"
        facts = {"number": 0, "partitions": 1, "seed": 7}
        partition = Partition(directory, store, facts, recover(directory, store, 64))
        self.frontier = Frontier(partition, Scope(settings.crawl, settings.rules), settings, refreshing=True)
        self.frontier.recover(self.now)
        self.frontier.hooks.importance.append(lambda pages, importance, now: self._importance(pages))
        self._places: list[int] = []
        """page of the world by page of the partition, -1: none"""
        self._batch = MessageBatch()
        for url in self.number:
            self._batch.add(Submit((url,), Priority.ORDERED, True))

    def _importance(self, pages: np.ndarray) -> list[float]:
        while len(self._places) < self.frontier.columns.n:
            self._places.append(self.number.get(self.frontier.partition.url(LocalPage(len(self._places))), -1))
        places = [self._places[page] for page in pages.tolist()]
        return [float(self.world.importance[place]) if place >= 0 else 0.0 for place in places]

    def live(self, until: float) -> None:
        """Take turns until this moment, and look at what is believed."""
        frontier, partition = self.frontier, self.frontier.partition
        while True:
            batch, self._batch = self._batch, MessageBatch()
            effects = frontier.turn(batch, self.now, ROOM)
            partition.write(effects.commit)
            partition.written(effects.commit)
            for order in effects.orders:
                self._batch.add(self._report(order))
            if effects.orders:
                continue
            if self.now >= until:
                break
            self.now = min(max(self.now + GRAIN, frontier.scheduler.next_time()), until)
        self._note()

    def _report(self, order: FetchOrder) -> PageReport:
        place = self.number.get(order.url)
        if place is None or order.probe:
            return PageReport(order.page, order.url, order.epoch, self.now, self.now, status=404, error="http-404",
                              final=True)  # fmt: skip
        self.reads.append((place, self.now))
        version = int(np.searchsorted(self.changes[place], self.now, "right"))
        signature = (place * 1_000_000 + version + 1).to_bytes(16, "big")
        return PageReport(order.page, order.url, order.epoch, self.now, self.now, status=200, kind=Kind.HTML,
                          signature=signature, links=NO_LINKS)  # fmt: skip

    def _note(self) -> None:
        fresh = self.frontier.freshness
        expected = fresh.expectation(self.now)
        whole, model = expected.importance, expected.freshness(self.now)
        if model is None:
            return
        headline = shifted(fresh.calibration.headline(expected.stale(self.now), whole),
                           audited([(fresh.audits.window, whole)]))  # fmt: skip
        self.moments.append(BeliefMoment(self.now, model, headline.freshness, headline.low, headline.high))

    def plan(self) -> None:
        """Note what `xyro plan` foretells of the bandwidth that is set."""
        fresh = self.frontier.freshness
        part = PlanPart(self.frontier.scheduler.bandwidth.population, fresh.calibration, fresh.expectation(self.now))
        row = forecast(part, self.settings.refresh, PlanQuestion(bandwidth=self.bandwidth), self.now)[0]
        self.plans.append(Foretold(row["freshness"], row["next_day"], row["next_week"], row["used_per_day"]))

    def rates(self) -> Reals:
        """The rates that are believed, by page of the world; 0: none is."""
        found = np.zeros(len(self.changes))
        for page in map(LocalPage, range(self.frontier.columns.n)):
            row, place = self.frontier.partition.row(page), self.number.get(self.frontier.partition.url(page))
            if row is not None and place is not None:
                found[place] = row.rate
        return found


def run(world: BeliefWorld, share: float, days: int) -> tuple[BeliefVerdict, MadeUpCrawl]:
    """One run at so many reads a day for each page."""
    crawl = MadeUpCrawl(world, share * len(world.pages))
    for hour in range(1, days * 24 + 1):
        crawl.live(ORIGIN + hour * HOUR)
        if hour % 24 == 0:
            crawl.plan()
    return judged(crawl, days), crawl


def judged(crawl: MadeUpCrawl, days: int) -> BeliefVerdict:
    """Hold a run against the truth."""
    world, end = crawl.world, ORIGIN + days * DAY
    pages, times = np.array([page for page, _ in crawl.reads]), np.array([when for _, when in crawl.reads])
    truth = ScriptReferee(world.pages, world.importance).judge(pages, times, end)
    spans = truth.fresh
    start = ORIGIN + WARM_UP * DAY
    came = np.array([truth.freshness(*day_of(day)) for day in range(1, days + 1)])
    headlines = [np.mean([moment.headline for moment in crawl.moments if begin < moment.time <= stop])
            for begin, stop in map(day_of, range(1, days + 1))]  # fmt: skip
    made = np.histogram(times, [day_of(day)[0] for day in range(1, days + 2)])[0]
    judged_days = range(WARM_UP, days)  # as places in `came`
    late_days = range(days - max(days // 3, 1), days)
    errors = np.array(headlines)[judged_days] - came[judged_days]
    evenings = [(crawl.plans[day - 1], day) for day in judged_days]
    next_day = [foretold.next_day / came[day] - 1.0 for foretold, day in evenings]
    next_week = [foretold.next_week / came[day : day + WEEK].mean() - 1.0
                 for foretold, day in evenings if day + WEEK <= days]  # fmt: skip
    long_run = [crawl.plans[day - 1].long_run / came[late_days].mean() - 1.0 for day in late_days]
    spends = [foretold.reads / max(made[day], 1) - 1.0 for foretold, day in evenings]
    late = [moment for moment in crawl.moments if start < moment.time < end]
    fresh = [float(spans.weight[(spans.start <= moment.time) & (moment.time < spans.stop)].sum()) / truth.weight
             for moment in late]  # fmt: skip
    inside = [moment.low <= true <= moment.high for moment, true in zip(late, fresh, strict=True)]
    model = [moment.model - true for moment, true in zip(late, fresh, strict=True)]
    counts = np.array([len(changes) for changes in crawl.changes])
    rates = crawl.rates()
    fast = (counts >= 5) & (rates > 0.0)
    off = float(np.mean(np.log(rates[fast] * days / counts[fast]))) if fast.any() else math.nan
    return BeliefVerdict(
        truth.freshness(start, end),
        truth.changes_missed(start, end),
        float(np.mean(np.abs(errors))),
        float(np.mean(np.abs(knowing(world, pages, times, days) - came[judged_days]))),
        float(np.mean(errors)),
        float(np.mean(model)),
        float(np.mean(inside)),
        off,
        float(np.mean(np.abs(next_day))),
        float(np.mean(np.abs(next_week))) if next_week else math.nan,
        float(np.mean(np.abs(long_run))),
        float(np.mean(long_run)),
        float(np.mean(spends)),
    )


def knowing(world: BeliefWorld, pages: NDArray[np.int64], times: Reals, days: int) -> Reals:
    """Compute the freshness of each judged day in the mean of worlds with other changes, under these reads."""
    draw, end = np.random.default_rng(SEED), ORIGIN + days * DAY
    counts = [len(page.changes) for page in world.pages.values()]
    found = np.zeros(days - WARM_UP)
    for _ in range(DRAWS):
        changes = world.again(draw) if world.again is not None else [
            np.sort(draw.uniform(ORIGIN, end, count)).tolist() for count in counts]  # fmt: skip
        other = {path: ScriptedPage(changes=each) for path, each in zip(world.pages, changes, strict=True)}
        truth = ScriptReferee(other, world.importance).judge(pages, times, end)
        found += [truth.freshness(*day_of(day)) for day in range(WARM_UP + 1, days + 1)]
    return found / DRAWS


NAMES = [field.name for field in fields(BeliefVerdict)]


def line(name: str, share: float, verdicts: Sequence[BeliefVerdict]) -> str:
    """The mean over seeds; behind `error`, its standard error."""
    cells = [f"{name:12} {share:5g}"]
    for each in NAMES:
        values = [getattr(verdict, each) for verdict in verdicts]
        cells.append(f"{np.mean(values):9.3f}")
    spread = np.std([verdict.error for verdict in verdicts], ddof=1) if len(verdicts) > 1 else math.nan
    return " ".join(cells) + f"  {spread / math.sqrt(len(verdicts)):.3f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="xyro lab beliefs", description=str(__doc__).split("\n")[0])
    parser.add_argument("worlds", nargs="*", help="of " + ", ".join((*WORLDS, *HELD_OUT)) + "; or files of histories")
    parser.add_argument("--days", type=int, default=14, help="[14]")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1], help="[1]")
    parser.add_argument("--shares", nargs="*", type=float, default=[0.2], help="reads a day for each page [.2]")
    options = parser.parse_args(arguments)
    if options.days <= WARM_UP:
        parser.error(f"--days: more than {WARM_UP}")
    makers = WORLDS | HELD_OUT
    sys.stdout.write(f"{'world':12} share " + " ".join(f"{name:>9}" for name in NAMES) + "  +-error\n")
    for share in options.shares:
        for name in options.worlds or WORLDS:
            verdicts = []
            for seed in options.seeds:
                made = makers[name](options.days, seed) if name in makers else history(Path(name), options.days, seed)
                verdicts.append(run(made, share, options.days)[0])
            sys.stdout.write(line(Path(name).name.split(".")[0], share, verdicts) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
