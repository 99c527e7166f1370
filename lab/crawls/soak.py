"""`xyro lab soak`: `xyro serve` at full speed, as a real process, for as long as one likes. Does it leak?

A computed web whose pages change all the time is served on loopback; a daemon of its own process is given its entry and
a bandwidth beyond what any machine reads, so it never rests. Each few seconds its memory, tasks and open files are
noted. What must hold after the warm-up (until all pages are known and every cache is as full as it gets):

    anonymous memory grows by less than 1 MB in ten minutes     least squares through all samples
    it reads all the time: more pages after the warm-up than there are samples
    as many tasks and open files at the end as after the warm-up, to within what reads under way come to
    SIGTERM ends it within 5 seconds with exit code 0, and then every invariant of the data directory holds

RSS is anonymous memory, which a leak fills, and pages of files that are mapped: the program, and LevelDB's tables,
which the kernel takes in as they are read and LevelDB drops as it compacts. In one run of 10 minutes anonymous memory
was 94.2 to 94.9 MB throughout, mapped pages 33.7 to 45.9 MB, above 40 in 16 of 125 samples: the line through RSS rose
by 2.85 MB in ten minutes, of which mapped pages were 2.31 and anonymous memory .54. So that is judged, and both are
shown.

One line of JSON on standard output says all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyro.lab.child import running
from xyro.lab.crawls.crawler_process import CrawlerProcess, crawling
from xyro.lab.speed.measures import memory_of, slope
from xyro.plugins import extensions
from xyro.service.node.stopped import open_stopped
from xyro.service.views.audit import audit
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError, XyroError

EVERY = 2.0
"""seconds between two samples"""
WARM_UP = 1 / 2
"""share of the time that is not measured, at least WARM_LEAST seconds: all pages read, caches and stores filled (on a
loaded machine LevelDB's went on filling for eleven minutes, to 165 MB)"""
WARM_LEAST = 60.0
MOST_GROWTH = 1e6
"""bytes of anonymous memory in ten minutes"""
MOST_STOP = 5.0
TEN_MINUTES = 600.0
STEADY = 0.5
"""how far medians of tasks and open files may lie apart between the first and the last third, in reads under way"""
SPEED = 300.0
"""how much faster than real pages these change. Every version of a document is kept, and LevelDB maps its tables: at
3,000, half an hour is two months of versions, and RSS follows the store (3 MB in ten minutes, .6 of them anonymous)"""
CONFIG = """
[crawl]
scope = "any"
[fetch]
only_net = ["127.0.0.0/8"]
[politeness]
delay = 0.0
[refresh]
bandwidth = 20000.0
time_unit = 1
min_interval = 0.0
least_chance = 0.0
[log]
level = "warning"
"""


@dataclass(frozen=True, slots=True)
class SoakSample:
    """The process's sizes and counts, `moment` seconds after the start."""

    moment: float
    rss: int
    anon: int
    tasks: int
    files: int
    reads: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all holds, 1 something does not, 2 bad input, 3 the machine failed."""
    parser = argparse.ArgumentParser(prog="xyro lab soak", description="`xyro serve` at full speed: does it leak?")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="[30]; of fewer than 10 the growth of memory is not judged"
    )
    parser.add_argument("--pages", type=int, default=20_000, help="pages of the computed web [20000]")
    parser.add_argument("--hosts", type=int, default=64, help="[64]")
    parser.add_argument("--samples", type=Path, default=None, help="write every sample to this file, too")
    options = parser.parse_args(arguments)
    if not options.minutes > 0.0:
        parser.error("--minutes: above 0")
    try:
        report = soak(60.0 * options.minutes, options.pages, options.hosts, options.samples)
    except XyroError as error:
        sys.stderr.write(f"xyro lab soak: {error}\n")
        return 3 if isinstance(error, MachineError) else 2
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report["ok"] else 1


def soak(seconds: float, pages: int, hosts: int, samples: Path | None = None) -> dict[str, Any]:
    """Run the daemon and return the report. MachineError: it did not start, or ended before it was stopped."""
    clock = SystemClock()
    web_of: dict[str, Any] = {"pages": pages, "hosts": hosts, "seed": 1, "speed": SPEED, "origin": clock.time()}
    with tempfile.TemporaryDirectory(prefix="xyro-soak-") as temporary, running(**web_of) as web:
        data, config = Path(temporary, "data"), Path(temporary, "soak.toml")
        config.write_text(CONFIG)
        with crawling("serve", data, config) as daemon:
            daemon.remote.post("/submit", {"urls": [web.entry], "priority": "ordered"})
            seen = list(_samples(daemon, seconds, samples))
            ready = daemon.remote.get("/health")["ok"]
            stopped = daemon.stop()
        with open_stopped(data, extensions) as crawl, crawl.views() as views:
            checked = audit(views)
    return _judged(seen, seconds, stopped, daemon.process.returncode, ready, checked)


def _samples(daemon: CrawlerProcess, seconds: float, file: Path | None) -> Iterator[SoakSample]:
    clock, remote = SystemClock(), daemon.remote
    began = clock.monotonic()
    with file.open("w") if file else contextlib.nullcontext() as out:
        while (moment := clock.monotonic() - began) < seconds:
            if daemon.ended:
                raise MachineError(f"the daemon ended by itself with exit code {daemon.process.returncode}")
            health, memory = remote.get("/health"), memory_of(daemon.process.pid)
            reads = remote.get("/status")["reads_this_run"]
            sample = SoakSample(round(moment, 1), memory.rss, memory.anon, health["tasks"], health["open_files"], reads)
            if out is not None:
                out.write(json.dumps([getattr(sample, name) for name in SoakSample.__slots__]) + "\n")
                out.flush()
            yield sample
            daemon.rest(EVERY)


def _judged(
    seen: Sequence[SoakSample], seconds: float, stopped: float, code: int | None, ready: bool, checked: dict[str, Any]
) -> dict[str, Any]:
    """Judge the samples of a run; sizes in MB."""
    warm = [sample for sample in seen if sample.moment >= min(max(WARM_UP * seconds, WARM_LEAST), 0.5 * seconds)]
    third = max(1, len(warm) // 3)
    first, last = warm[:third], warm[-third:]
    growth = {name: _growth(warm, name) for name in ("rss", "anon")}
    steady = {name: [_median(first, name), _median(last, name)] for name in ("tasks", "files")}
    under_way = max(8.0, STEADY * steady["tasks"][0])
    long_enough = seconds >= TEN_MINUTES  # the rest is warm-up: caches and stores that fill
    claims = {
        "anon_slope": growth["anon"] < MOST_GROWTH or not long_enough,
        **{name: abs(after - before) <= under_way for name, (before, after) in steady.items()},
        "reads": warm[-1].reads - warm[0].reads > len(warm),
        "ready": ready,
        "stop": stopped < MOST_STOP and code == 0,
        "audit": checked["ok"],
    }
    return {
        "ok": all(claims.values()),
        "broken": [name for name, holds in claims.items() if not holds],
        "not_judged": [] if long_enough else ["anon_slope"],
        "seconds": seen[-1].moment,
        "samples": len(warm),
        "reads": seen[-1].reads,
        "reads_per_second": round((last[-1].reads - warm[0].reads) / max(last[-1].moment - warm[0].moment, 1e-9), 1),
        "known": checked["pages"],
        "rss_mb": [round(sample.rss / 1e6, 1) for sample in (warm[0], warm[-1])],
        "anon_mb": [round(sample.anon / 1e6, 1) for sample in (warm[0], warm[-1])],
        "mapped_mb": [round(bound(sample.rss - sample.anon for sample in warm) / 1e6, 1) for bound in (min, max)],
        "rss_mb_per_10_minutes": round(growth["rss"] / 1e6, 3),
        "anon_mb_per_10_minutes": round(growth["anon"] / 1e6, 3),
        **steady,
        "stop_seconds": round(stopped, 2),
        "exit_code": code,
        "violations": checked["violations"],
    }


def _growth(warm: Sequence[SoakSample], name: str) -> float:
    """Return the growth of a size, bytes in ten minutes."""
    if len(warm) < 2:
        raise MachineError("too few samples after the warm-up: give it more --minutes")
    return TEN_MINUTES * slope([(sample.moment, float(getattr(sample, name))) for sample in warm])


def _median(samples: Sequence[SoakSample], name: str) -> float:
    return float(statistics.median(getattr(sample, name) for sample in samples))


if __name__ == "__main__":
    sys.exit(main())
