"""`xyro lab beliefs`: is what a crawl believes of its freshness true? The frontier itself, without HTTP.

`Frontier.turn` is driven with reports made up from a world whose every change is known (belief_worlds.py): the change
model, dates, calibration, audits and bandwidth are the daemon's, with the settings of `serve`; importance is given by
the world, so that nothing but beliefs decides. Fourteen days in seconds. A line a world, in the mean of days 3 to 14
and of all seeds, by importance:

    fresh       share of time that copies were up to date
    missed      changes that a copy was behind
    error       how far a day's headline was from that day's freshness
    bias        the headline minus the truth
    model       the model alone minus the truth
    covered     share of the looks, one an hour, whose interval held the freshness of the moment
    rate        mean of ln(believed rate / changes a day that came), pages that changed at least 5 times
    plan        how far the freshness that `xyro plan` foretold at the end of a day was from that of the next one, in
                parts of that; plan_bias: the same with its sign
    spends      what it foretold of that day's reads over those that came, less 1
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from xyro.configs.load import SERVE, load
from xyro.frontier.batch import MessageBatch
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.lab.crawls.belief_worlds import HELD_OUT, HOUR, WORLDS, BeliefWorld, history
from xyro.lab.crawls.script_referee import Reals, ScriptReferee, day_of
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
WARM_UP = 2
"""days that are not judged"""
GRAIN = 60.0
"""seconds between two turns at least"""
ROOM = 1 << 30
NO_LINKS = Links((), b"")


@dataclass(frozen=True, slots=True)
class BeliefVerdict:
    """The figures of a run, or their means over several: see the module."""

    fresh: float
    missed: float
    error: float
    bias: float
    model: float
    covered: float
    rate: float
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


class MadeUpCrawl:
    """A frontier over a world. `live` until a moment; `reads` are (page of the world, time)."""

    def __init__(self, world: BeliefWorld, reads_per_day: float) -> None:
        self.world = world
        self.number = {f"{SITE}{path}": place for place, path in enumerate(world.pages)}
        self.changes = [np.array(page.changes) for page in world.pages.values()]
        self.reads: list[tuple[int, float]] = []
        self.moments: list[BeliefMoment] = []
        self.plans: list[tuple[float, float]] = []
        """freshness, reads a day: as foretold at the end of each day"""
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
        whole = fresh.expected.importance
        model = fresh.expected.freshness(self.now)
        if not whole or model is None:
            return
        headline = shifted(fresh.calibration.headline(fresh.expected.stale(self.now), whole),
                           audited([(fresh.audits.window, whole)]))  # fmt: skip
        self.moments.append(BeliefMoment(self.now, model, headline.freshness, headline.low, headline.high))

    def plan(self) -> None:
        """Note what `xyro plan` foretells of the bandwidth that is set."""
        fresh = self.frontier.freshness
        part = PlanPart(self.frontier.scheduler.bandwidth.population, fresh.calibration, fresh.expected.believed)
        row = forecast(part, self.settings.refresh, PlanQuestion(bandwidth=self.bandwidth))[0]
        self.plans.append((row["freshness"], row["used_per_day"]))

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
    pages, times = (np.array(values) for values in zip(*crawl.reads, strict=True))
    truth = ScriptReferee(world.pages, world.importance).judge(pages.astype(np.int64), times.astype(np.float64), end)
    spans = truth.fresh
    start = ORIGIN + WARM_UP * DAY
    errors, planned, spends = [], [], []
    for day in range(WARM_UP + 1, days + 1):
        begin, stop = day_of(day)
        headlines = [moment.headline for moment in crawl.moments if begin < moment.time <= stop]
        came = truth.freshness(begin, stop)
        errors.append(float(np.mean(headlines)) - came)
        foretold, reads = crawl.plans[day - 2]  # of the evening before
        planned.append(foretold / came - 1.0)
        spends.append(reads / max(sum(begin < when <= stop for _, when in crawl.reads), 1) - 1.0)
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
        float(np.mean(errors)),
        float(np.mean(model)),
        float(np.mean(inside)),
        off,
        float(np.mean(np.abs(planned))),
        float(np.mean(planned)),
        float(np.mean(spends)),
    )


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
