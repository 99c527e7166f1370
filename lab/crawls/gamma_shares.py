"""`xyro lab gamma`: is gamma kept, by the server's log, in `xyro crawl --refresh` and in `xyro serve`?

A computed web is crawled for a minute by a process of its own; its server notes every request. From that log alone: the
share of first reads of a URL among all reads of pages, in each window of 10 seconds and in each of 200 reads. A read
counts where both kinds have work. Where hosts bound the speed (each is read as often as its delay allows) that is at a
host that was read first 10 seconds before, and to an unread page of which a link was shown LAG seconds before. Where
the machine does (half of the times between two reads of a host are above twice its delay) all hosts wait for one queue,
and every read counts after WARM_UP, until half of its host's pages were read. Each row of the table is one run.

    asked     gamma: a percentage, "auto" (what `status` told just before or just after: it is not known when in
              between it moved), or a schedule by pages read
    share     percent of the reads that were first reads, all windows together
    off       percent points between a window's share and what was asked: the median, and the worst window

It holds where no window of 200 reads, and no window of 10 seconds with as many, is off by more than 5 points.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from xyro.lab.child import Running, running
from xyro.lab.crawls.crawler_process import crawling
from xyro.lab.web.places import address_of, disallows, host_at
from xyro.lab.web.web import Link, Web
from xyro.refresh.sharing import GammaSchedule
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError, XyroError

WINDOW, READS = 10.0, 200
MOST_OFF = 5.0
"""percent points"""
LAG = 2.0
"""seconds from a link that is shown to an order for its page that can be read"""
WARM_UP = 10.0
"""seconds of a run that are not judged: at first no page is known that could be read again"""
SCHEDULE = ((0.0, 90.0), (3000.0, 10.0))
GAMMAS = ("5", "25", "50", "75", "95", "auto", "schedule")
CONFIG = """
[crawl]
scope = "any"
[fetch]
only_net = ["127.0.0.0/8"]
[politeness]
delay = {delay}
[refresh]
least_chance = 0.0
min_interval = 0.0
time_unit = {unit}
{gamma}
"""
ASKED_EVERY = 0.5
"""seconds between two looks at what gamma is, where it is `auto`"""


class PageRead(NamedTuple):
    """A line of the log."""

    time: float
    host: str
    first: bool
    uri: str = "/"


@dataclass(frozen=True, slots=True)
class GammaTrial:
    """One run: a command ("crawl", "serve"), a gamma, a web."""

    command: str
    gamma: str
    hosts: int
    pages: int
    delay: float
    seconds: float

    def config(self) -> str:
        setting = {"auto": 'gamma = "auto"', "schedule": f"gamma_schedule = {json.dumps(SCHEDULE)}"}
        gamma = setting.get(self.gamma, f"gamma = {self.gamma}")
        return CONFIG.format(delay=self.delay, unit=1 if self.command == "crawl" else 5, gamma=gamma)


def measure(trial: GammaTrial) -> dict[str, Any]:
    """Run it; return its row."""
    with tempfile.TemporaryDirectory(prefix="xyro-gamma-") as temporary:
        directory = Path(temporary)
        log, config = directory / "access.log", directory / "gamma.toml"
        config.write_text(trial.config())
        with running(pages=trial.pages, hosts=trial.hosts, seed=1, log=log) as web:
            shares = list(_crawled(trial, web, directory / "data", config))
        reads = _reads(log)
    return _row(trial, reads, _asked(trial, reads, shares))


def _crawled(trial: GammaTrial, web: Running, data: Path, config: Path) -> Iterator[tuple[float, float]]:
    """Crawl for as long as the trial says; yield (wall clock, gamma) as `status` told it."""
    bounds = [web.entry, "--refresh", "--max-seconds", str(trial.seconds)] if trial.command == "crawl" else []
    clock = SystemClock()
    with tempfile.TemporaryFile() as output, crawling(trial.command, data, config, *bounds, output=output) as crawler:
        if trial.command == "serve":
            crawler.remote.post("/submit", {"urls": [web.entry], "priority": "ordered"})
        deadline = clock.monotonic() + trial.seconds
        while clock.monotonic() < deadline and not crawler.ended:
            if trial.gamma == "auto":
                try:
                    yield clock.time(), float(crawler.remote.get("/status")["gamma"])
                except MachineError:
                    if trial.command == "serve":
                        raise
                    break  # --max-seconds is over: a crawl that ends answers no more before its process has ended
            crawler.rest(min(ASKED_EVERY, max(deadline - clock.monotonic(), 0.01)))


def _reads(log: Path) -> list[PageRead]:
    """The reads of pages, in the order of time."""
    seen: set[tuple[str, str]] = set()
    reads: list[PageRead] = []
    for line in log.read_text(encoding="utf-8").splitlines():
        time, host, method, *_, uri = line.split("\t")
        if method == "GET" and uri != "/robots.txt":
            reads.append(PageRead(float(time), host, (host, uri) not in seen, uri))
            seen.add((host, uri))
    return reads


def _asked(
    trial: GammaTrial, reads: Sequence[PageRead], shares: Sequence[tuple[float, float]]
) -> Callable[[float], tuple[float, float]]:
    """Return the least and the greatest gamma that may hold at a time."""
    if trial.gamma == "schedule":
        schedule, times = GammaSchedule(SCHEDULE), [read.time for read in reads]

        def scheduled(t: float) -> tuple[float, float]:
            gamma = schedule.gamma_at(bisect_right(times, t))
            return gamma, gamma

        return scheduled
    if trial.gamma == "auto":
        times = [t for t, _ in shares]

        def shown(t: float) -> tuple[float, float]:
            place = bisect_right(times, t)
            near = [gamma for _, gamma in shares[max(place - 1, 0) : place + 1]]
            return min(near), max(near)

        return shown
    return lambda t: (float(trial.gamma), float(trial.gamma))


def _contested(web: Web, reads: Sequence[PageRead]) -> Iterator[PageRead]:
    """The reads at hosts that have both kinds of work, by the links that the server has shown so far."""
    begins: dict[str, float] = {}
    unread: dict[int, set[int]] = {}
    done: set[int] = set()
    shown: deque[tuple[float, list[int]]] = deque()
    for read in reads:
        while shown and shown[0][0] < read.time - LAG:
            for page in shown.popleft()[1]:
                if page not in done:
                    unread.setdefault(web.host(page), set()).add(page)
        host = host_at(read.host)
        old = begins.setdefault(read.host, read.time) < read.time - WINDOW
        if old and unread.get(host):
            yield read
        page = web.places.find(host, read.uri)
        if page >= 0 and page not in done:
            done.add(page)
            unread.get(host, set()).discard(page)
            shown.append((read.time, [link.target for link in web.shown(page, read.time) if _leads_on(web, link)]))


def _leads_on(web: Web, link: Link) -> bool:
    """Tell whether a crawl follows a link to a page of the web that may be read."""
    if link.nofollow or link.target >= web.shape.pages:
        return False
    return not (disallows(web.host(link.target)) and web.places.path(link.target).startswith("/private/"))


def _behind(web: Web, reads: Sequence[PageRead]) -> Iterator[PageRead]:
    """The reads of hosts that wait for a machine, while less than half of a host's pages were read."""
    sizes = Counter(address_of(host) for host in web.places.hosts.tolist())
    first_reads: Counter[str] = Counter()
    for read in reads:
        first_reads[read.host] += read.first
        if first_reads[read.host] < sizes[read.host] / 2:
            yield read


def _windows(counted: Sequence[PageRead], start: float) -> Iterator[tuple[str, Sequence[PageRead]]]:
    """Yield ("seconds" | "reads", the reads of one window)."""
    counted = [read for read in counted if read.time >= start]
    for begin in range(0, len(counted) - READS + 1, READS // 4):
        yield "reads", counted[begin : begin + READS]
    t = start
    while counted and t + WINDOW <= counted[-1].time:
        yield "seconds", [read for read in counted if t <= read.time < t + WINDOW]
        t += WINDOW / 2


def _gap(reads: Sequence[PageRead]) -> float:
    """Median seconds between two reads of a host; 0 where none was read twice."""
    last: dict[str, float] = {}
    gaps = []
    for read in reads:
        if read.host in last:
            gaps.append(read.time - last[read.host])
        last[read.host] = read.time
    return statistics.median(gaps) if gaps else 0.0


def _row(trial: GammaTrial, reads: Sequence[PageRead], asked: Callable[[float], tuple[float, float]]) -> dict[str, Any]:
    web = Web(seed=1, pages=trial.pages, hosts=trial.hosts)
    off: dict[str, list[float]] = {"seconds": [], "reads": []}
    shares: list[float] = []
    elapsed = max(reads[-1].time - reads[0].time, 1e-9) if reads else 1.0
    all_wait = trial.delay > 0.0 and _gap(reads) > 2.0 * trial.delay
    counted = list((_behind if all_wait else _contested)(web, reads))
    for kind, window in _windows(counted, reads[0].time + WARM_UP) if reads else ():
        if len(window) >= READS:
            share = 100.0 * sum(read.first for read in window) / len(window)
            gammas = [asked(read.time) for read in window]
            least, greatest = (statistics.fmean(bounds) for bounds in zip(*gammas, strict=True))
            off[kind].append(max(least - share, share - greatest, 0.0))
            shares.append(share)
    worst = {kind: round(max(found), 1) if found else None for kind, found in off.items()}
    return {
        "ok": bool(off["reads"]) and max(off["reads"] + off["seconds"]) <= MOST_OFF,
        "command": trial.command,
        "hosts": trial.hosts,
        "asked": trial.gamma,
        "bound_by": "machine" if all_wait else "hosts",
        "share": round(statistics.fmean(shares), 1) if shares else None,
        "median_off": round(statistics.median(off["reads"]), 1) if off["reads"] else None,
        "worst_of_10_seconds": worst["seconds"],
        "worst_of_200_reads": worst["reads"],
        "windows": len(off["seconds"]) + len(off["reads"]),
        "reads": len(reads),
        "reads_a_second": round(len(reads) / elapsed, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab gamma", description="Is gamma kept? By the server's log.")
    add = partial(parser.add_argument, nargs="+")
    add("--commands", default=["crawl", "serve"], choices=["crawl", "serve"], metavar="C", help="crawl, serve [both]")
    add("--gammas", default=list(GAMMAS), choices=GAMMAS, metavar="G", help=f"{', '.join(GAMMAS)} [all]")
    add("--hosts", type=int, default=[1, 20, 2000], metavar="N", help="of the web [1 20 2000]")
    parser.add_argument("--pages", type=int, default=0, help="of the web [20000, or 40 a host]")
    parser.add_argument("--delay", type=float, default=-1.0, help="seconds between reads of a host [hosts / 100]")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run [60]")
    options = parser.parse_args(arguments)
    ok = True
    try:
        for hosts in options.hosts:
            pages, delay = options.pages or max(20_000, 40 * hosts), options.delay
            delay = delay if delay >= 0.0 else hosts / 100
            for command in options.commands:
                for gamma in options.gammas:
                    row = measure(GammaTrial(command, gamma, hosts, pages, delay, options.seconds))
                    ok &= row["ok"]
                    sys.stdout.write(json.dumps(row) + "\n")
                    sys.stdout.flush()
    except XyroError as error:
        sys.stderr.write(f"xyro lab gamma: {error}\n")
        return 3
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
