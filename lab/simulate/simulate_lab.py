"""`xyro lab simulate`: many seeds on all cores, one line for each that fails, and the line that replays it."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from xyro.lab.simulate.cluster_lives import simulate_cluster
from xyro.lab.simulate.faults import CALLBACK, STEPS
from xyro.lab.simulate.lives import SeedOutcome, simulate
from xyro.wire.clock import SystemClock

TWICE = 50
"""one seed in so many is run in two processes, whose traces must be the same"""
PROGRESS = 100
"""seeds from one word to the next"""
MAX_FAILED = 5
"""seeds that fail, before the run ends"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Exit code: 0 every promise holds for every seed, 1 one does not."""
    parser = argparse.ArgumentParser(prog="xyro lab simulate", description="Whole crawls on a seeded machine.")
    parser.add_argument("--seeds", type=int, default=None, help="how many [500; of clusters 2]")
    parser.add_argument("--hours", type=int, default=0, help="clusters of three nodes, so long, a fault an hour")
    parser.add_argument("--first", type=int, default=None, help="the first one [another each time]")
    parser.add_argument("--seed", type=int, default=None, help="this one alone, and tell its lives")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="[one a core]")
    parser.add_argument("--max-failed", type=int, default=MAX_FAILED, help=f"ends the run [{MAX_FAILED}]")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    clock = SystemClock()
    first = int(clock.time()) if options.first is None else options.first
    if options.hours:
        seeds = range(first, first + (options.seeds or 2)) if options.seed is None else [options.seed]
        return _run_clusters(seeds, options.hours, options.processes, options.json)
    if options.seed is not None:
        return _replay(options.seed, options.json)
    began = clock.monotonic()
    outcomes, failed = _run(range(first, first + (options.seeds or 500)), options.processes, options.max_failed)
    report = _report(first, outcomes, failed, clock.monotonic() - began)
    sys.stdout.write(f"{json.dumps(report) if options.json else _sentence(report)}\n")
    return 1 if failed else 0


def _replay(seed: int, as_json: bool) -> int:
    outcome = simulate(seed)
    if as_json:
        sys.stdout.write(f"{json.dumps(asdict(outcome))}\n")
    else:
        lives = "\n".join(f"life {number}: {end}" for number, end in enumerate(outcome.lives, 1))
        counts = f"{outcome.requests} requests, {outcome.pages} pages known, {outcome.batches} batches"
        text = "\n".join([lives, *outcome.violations, f"seed {seed}: {counts}, trace {outcome.digest}"])
        sys.stdout.write(f"{text}\n")
    return int(bool(outcome.violations))


def _run_clusters(seeds: Sequence[int], hours: int, processes: int, as_json: bool) -> int:
    """Each seed's cluster, told as it comes, by its faults where it fails or is the only one."""
    failed = 0
    with multiprocessing.get_context("spawn").Pool(min(processes, len(seeds))) as pool:
        for outcome in pool.imap_unordered(partial(simulate_cluster, hours=hours), seeds):
            failed += bool(outcome.violations)
            if as_json:
                sys.stdout.write(f"{json.dumps(asdict(outcome))}\n")
                continue
            verdict = "BROKEN" if outcome.violations else "holds"
            lines = [*(outcome.faults if outcome.violations or len(seeds) == 1 else ()), *outcome.violations]
            lines.append(
                f"{verdict}: seed {outcome.seed}, {outcome.hours:.0f} simulated hours of three nodes, "
                f"{len(outcome.faults)} faults, {outcome.requests} requests, {outcome.pages} pages known, "
                f"{outcome.messages} messages, trace {outcome.digest}"
            )
            if outcome.violations:
                lines.append(f"xyro lab simulate --hours {hours} --seed {outcome.seed}")
            sys.stdout.write("\n".join([*lines, ""]))
            sys.stdout.flush()
    return int(failed > 0)


def _run(seeds: range, processes: int, max_failed: int) -> tuple[list[SeedOutcome], list[SeedOutcome]]:
    """All outcomes, and those that failed; each is told as it comes."""
    outcomes, failed, traces = list[SeedOutcome](), list[SeedOutcome](), dict[int, str]()
    jobs = [*seeds, *seeds[::TWICE]]
    with multiprocessing.get_context("spawn").Pool(min(processes, len(jobs))) as pool:
        for number, outcome in enumerate(pool.imap_unordered(simulate, jobs, chunksize=2), 1):
            if not number % PROGRESS:
                sys.stderr.write(f"{number} of {len(jobs)} seeds, {len(failed)} failed\n")
            trace = traces.setdefault(outcome.seed, outcome.digest)
            if trace != outcome.digest:
                outcome.violations.append(f"its trace is {outcome.digest}, in another process {trace}")
            outcomes.append(outcome)
            if outcome.violations:
                failed.append(outcome)
                _tell(outcome)
                if len(failed) >= max_failed:
                    break
        pool.terminate()
    return outcomes, failed


def _tell(outcome: SeedOutcome) -> None:
    sys.stderr.write("\n".join([*outcome.violations, f"xyro lab simulate --seed {outcome.seed}", ""]))
    sys.stderr.flush()


def _report(
    first: int, outcomes: Iterable[SeedOutcome], failed: Sequence[SeedOutcome], seconds: float
) -> dict[str, Any]:
    every = list(outcomes)
    ends = Counter(end.split(" ")[0] for outcome in every for end in outcome.lives)
    reached = sum((Counter(outcome.reached) for outcome in every), Counter[str]())
    crashes = Counter(end.split(" ")[2] for outcome in every for end in outcome.lives if end.startswith("crash"))
    return {
        "ok": not failed,
        "first": first,
        "seeds": len({outcome.seed for outcome in every}),
        "lives": sum(len(outcome.lives) for outcome in every),
        "ends": dict(ends.most_common()),
        "crashes": {step: crashes[step] for step in (CALLBACK, *STEPS)},
        "reached": {step: reached[step] for step in STEPS},
        "requests": sum(outcome.requests for outcome in every),
        "batches": sum(outcome.batches for outcome in every),
        "hours": round(sum(outcome.seconds for outcome in every) / 3600, 1),
        "failed": [outcome.seed for outcome in failed],
        "seconds": round(seconds, 1),
    }


def _sentence(report: dict[str, Any]) -> str:
    verdict = "holds" if report["ok"] else "BROKEN"
    ends = ", ".join(f"{count} {end}" for end, count in report["ends"].items())
    crashes = ", ".join(f"{count} {step}" for step, count in report["crashes"].items())
    return (
        f"{verdict}: seeds {report['first']} to {report['first'] + report['seeds'] - 1}, {report['lives']} lives "
        f"({ends}; crashes: {crashes}), {report['requests']} requests, {report['batches']} batches, "
        f"{report['hours']} simulated hours in {report['seconds']:.0f} s, {len(report['failed'])} seeds failed"
    )


if __name__ == "__main__":
    sys.exit(main())
