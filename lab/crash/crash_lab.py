"""Kill a crawl again and again, resume it to its end, and compare it with one that nobody disturbed.

    xyro lab crash --kills 50 --seconds 40 --partitions 4
    xyro lab crash --xml --kills 200
    xyro lab crash --kills 20 --seconds 0 --disk 1 --hosts 100

A computed web in a process of its own is crawled twice by the real command: once in peace; once slowed by --delay, so
that it lasts `--seconds`, and killed at seeded moments. Every life says its number in its User-Agent, so the server's
log tells who asked for what. After each kill `audit` must hold, and reads that the log knows and the store does not
are counted: a kill may cost no more than those that may wait for the disk and the requests under way. At the end see
check.py. With --xml most pages are documents that wait for DTDs and entities on other hosts, some of them slow,
missing, moved or looping: see xml.py. With --disk reads do wait for the disk. Exit code 0 only if all holds.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xyro.lab.child import Running, running
from xyro.lab.crash import xml as crash_xml
from xyro.lab.crash.check import AT_RISK, CONCURRENCY, ROBOTS, Left, life, losses, requests_of, shortest_gap, violations
from xyro.lab.crash.kill import KilledCrawl, Killer, KillMoment
from xyro.lab.web.web import Web
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

WRITES = 8
"""that a process on a slow disk has time for before it is killed: reads begin after the third"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The disturbance of a crawl. seconds: its duration without the kills (0: as fast as it can)."""

    moments: tuple[KillMoment, ...]
    seconds: float
    window: float
    """a process at work is killed within so many seconds after it began to"""
    partitions: int = 1
    pages: int = 4000
    hosts: int = 20
    seed: int = 1
    xml: bool = False
    slow: float = 0.0
    """seconds that a slow part takes; 0: longer than a life, so that what needs one waits until the last"""
    disk: float = 0.0
    """seconds that each write of a process to be killed takes longer"""
    concurrency: int = CONCURRENCY
    """most requests under way"""

    @property
    def shape(self) -> dict[str, Any]:
        """The computed web."""
        shape = {"pages": self.pages, "hosts": self.hosts, "seed": self.seed, "rate_median": 0.0}
        return shape | crash_xml.SHAPE | {"slow": self.slow or 1.0 + 2 * self.window} if self.xml else shape

    @property
    def allowance(self) -> int:
        """Reads that a kill may cost."""
        return AT_RISK + self.concurrency

    @property
    def delay(self) -> float:
        """Seconds between reads of a host; a sixth of its pages is not read (robots.txt, files)."""
        return round(self.seconds / (self.pages / self.hosts) * 1.2, 3)


def plan(kills: int, interrupts: int, seconds: float, **shape: Any) -> Plan:
    """Draw a plan: seven of ten kills hit a process at work, the others while it recovers, or writes a snapshot."""
    chance = random.Random(shape.get("seed", 1))
    kinds = chance.choices((KillMoment.WORK, KillMoment.RECOVERY, KillMoment.SNAPSHOT), (70, 15, 15), k=kills)
    moments = [*kinds, *[KillMoment.INTERRUPT] * interrupts]
    chance.shuffle(moments)
    window = 2.2 * max(seconds, 1.0) / max(1, kinds.count(KillMoment.WORK))
    return Plan(tuple(moments), seconds, max(window, WRITES * shape.get("disk", 0.0)), **shape)


@dataclass(slots=True)
class CrashOutcome:
    """The result of a plan."""

    plan: Plan
    pages: int = 0
    """read by the undisturbed crawl"""
    pages_known: int = 0
    ends: Counter[KillMoment] = field(default_factory=Counter)
    torn: int = 0
    """kills that left half a snapshot behind"""
    seconds: float = 0.0
    """of the killed crawl, all lives and audits together"""
    requests: int = 0
    reads: int = 0
    last: int = 0
    """page requests before the last kill"""
    left: list[Left] = field(default_factory=list)
    """in the store by each end"""
    cost: int = 0
    """most reads that one end cost"""
    gap: float = 0.0
    """shortest time between two requests to a host, of one process or of two"""
    waiting: int = 0
    """most loads that waited when a process was killed"""
    over: bool = False
    """the crawl came to its end before all kills were done"""
    violations: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.ends.values()) - self.ends[KillMoment.INTERRUPT]

    @property
    def ok(self) -> bool:
        return not self.violations and not self.over

    def sentence(self) -> str:
        """Return the outcome in one line."""
        waited = f"up to {self.waiting} documents waiting, " if self.plan.xml else ""
        verdict = "BROKEN" if self.violations else "over too soon" if self.over else "holds"
        hit = ", ".join(f"{count} {moment.value}" for moment, count in self.ends.items())
        return (
            f"{verdict}: partitions {self.plan.partitions}, {self.kills} kills "
            f"({hit}; {self.torn} left half a snapshot), {self.pages} pages of {self.pages_known} URLs, "
            f"{waited}{self.requests} page requests ({self.last} before the last kill), {self.reads} reads, "
            f"{self.requests - self.reads} lost, at most {self.cost} by one kill ({self.plan.allowance} allowed), "
            f"shortest gap {self.gap:.3f} s (delay {self.plan.delay:.3f} s), {self.seconds:.0f} s"
        )


def ordeal(plan: Plan, directory: Path, tell: Callable[[str], None] = lambda _: None) -> CrashOutcome:
    """Carry out a plan in a directory that exists. MachineError: a process failed by itself."""
    log = directory / "access.log"
    outcome = CrashOutcome(plan)
    with running(**plan.shape, log=log) as web:
        calm = _crawl("calm", directory, web, 0.0)
        calm.finish(calm.start())
        rough = _crawl("rough", directory, web, plan.delay, "--partitions", str(plan.partitions))
        rough.disk, rough.settings["XYRO_FETCH__CONCURRENCY"] = plan.disk, str(plan.concurrency)
        clock = SystemClock()
        began = clock.monotonic()
        _torment(rough, outcome, tell)
        rough.finish(rough.start())
        outcome.seconds = clock.monotonic() - began
    _judge(outcome, calm, rough, log.read_text(), web.port)
    return outcome


def _crawl(name: str, directory: Path, web: Running, delay: float, *options: str) -> KilledCrawl:
    loopback = ("--only-net", "127.0.0.0/8", "--scope", "any")
    return KilledCrawl(name, directory, web.entry, [*loopback, "--delay", str(delay), *options])


def _torment(crawl: KilledCrawl, outcome: CrashOutcome, tell: Callable[[str], None]) -> None:
    killer = Killer(crawl, outcome.plan.window, outcome.plan.seed)
    for moment in outcome.plan.moments:
        if not killer.end(moment):
            outcome.over = True
            return
        outcome.ends[moment] += 1
        outcome.torn = killer.torn
        if crawl.data.exists():  # else it was killed before there was anything to lose
            report = crawl.audit()
            holds = "holds" if report["ok"] else "BROKEN"
            if outcome.plan.xml:
                outcome.waiting = max(outcome.waiting, crawl.waiting())
            tell(f"life {crawl.lives}: {moment.value}: {holds}, {report['pages']} pages known")
            outcome.violations += [f"life {crawl.lives} ({moment.value}): {each}" for each in report["violations"]]
            outcome.left.append(_left(crawl, moment, outcome.plan))


def _left(crawl: KilledCrawl, moment: KillMoment, plan: Plan) -> Left:
    """Read the store's contents after an end; Ctrl-C may cost only documents that were not parsed in time."""
    reads = {row["url"]: row["reads"] for row in crawl.pages() if row["reads"]}
    return Left(crawl.lives, reads, plan.allowance if moment is not KillMoment.INTERRUPT or plan.xml else 0)


def _judge(outcome: CrashOutcome, calm: KilledCrawl, rough: KilledCrawl, log: str, port: int) -> None:
    expected, found = calm.pages(), rough.pages()
    requests = [request for request in requests_of(log, port) if request.life.startswith(rough.name)]
    outcome.pages_known = len(expected)
    outcome.pages = sum(row["reads"] > 0 for row in expected)
    pages = [request for request in requests if request.uri != ROBOTS]
    outcome.requests = len(pages)
    outcome.reads = sum(row["reads"] for row in found)
    outcome.last = sum(request.life != life(rough.name, rough.lives) for request in pages)
    outcome.cost = max(losses(outcome.left, pages), default=0)
    outcome.gap = shortest_gap(requests)
    outcome.violations += [f"at the end: {each}" for each in rough.audit()["violations"]]
    outcome.violations += violations(expected, found, requests, outcome.left, outcome.plan.delay)
    if outcome.plan.xml:
        web = Web(port=port, **outcome.plan.shape)
        outcome.violations += crash_xml.violations(web, found, rough.documents(), rough.waiting())
    outcome.violations += [f"{path} was left behind" for path in rough.data.rglob("*.tmp")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: one line a kill on stderr, one summary line on stdout, then the violations.

    Exit code: 0 all holds, 1 something does not, 3 the machine failed.
    """
    parser = argparse.ArgumentParser(prog="xyro lab crash", description="Kill a crawl, audit, resume, compare.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--interrupts", type=int, default=0, help="Ctrl-C so many times, beside the kills")
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"it is slowed to last so long; 0: not at all [40, with --xml {crash_xml.SECONDS}]",
    )
    parser.add_argument("--pages", type=int, help=f"[4000, with --xml {crash_xml.PAGES}]")
    for name, default in (("partitions", 1), ("hosts", 20), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    parser.add_argument("--disk", type=float, default=0.0, help="seconds that each write takes longer [0]")
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help=f"most requests under way [{CONCURRENCY}]")
    parser.add_argument("--xml", action="store_true", help="documents that wait for DTDs and entities")
    options = parser.parse_args(arguments)
    options.pages = options.pages or (crash_xml.PAGES if options.xml else 4000)
    if options.seconds is None:
        options.seconds = crash_xml.SECONDS if options.xml else 40.0
    try:
        with tempfile.TemporaryDirectory(prefix="xyro-crash-") as directory:
            outcome = ordeal(plan(**vars(options)), Path(directory), _tell)
    except MachineError as error:
        _tell(f"xyro lab crash: {error}")
        return 3
    sys.stdout.write("\n".join([outcome.sentence(), *outcome.violations, ""]))
    return 0 if outcome.ok else 1


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
