"""`xyro lab refresh`: a benchmark of continuous crawling.

    xyro lab refresh [--quick] [--histories FILE...] [-o DIR] [--jobs N]
                                                                   all policies on all worlds; numbers, verdict, plots
    xyro lab refresh --changes FILE... --bandwidth 0.05 [--policy NAME]... [--importance zipf] [--json]
                                                                   given change histories replayed, a row per policy
    xyro lab refresh --crawl FILE [--reads-per-day N] [--policy P]... [--json]
                                                                   a crawl's own history, beside what was

A benchmark to use for other crawlers, too: the worlds are in lab/refresh/world.py (and its files' form in
lab/refresh/history.py), what is measured in lab/refresh/copies.py (exact integrals over the true change times), what a
rule may see in lab/refresh/rules.py, where another one is a class of two methods, `choose` and `learn`; lab/REFRESH.md
says how to use and how to extend it. A tick is 6 h,
bandwidth is a share of the pages born so far a day (a deleted page stays one: it may come back, and its end is a change
to be found), discovery is free: a page is known, and read, at birth.

Results that are in DIR already are not computed again, so a run that was stopped goes on. Exit code 1 where something
that is asked does not hold (see DIR/verdict.txt), 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from xyro.lab.exit_codes import exit_code
from xyro.wire.errors import InputError

MOST_BANDWIDTH = 100.0
COMPARED = ("p1", "freshness", "freshness:mean", "mixed:0.3", "proportional", "nutch", "stormcrawler")
"""what `--changes` replays by default"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xyro lab refresh",
        description="Who keeps a changing collection freshest: our policies and outside baselines.",
        epilog="Policies: uniform, proportional, p1, freshness, freshness:mean, mixed:ALPHA, kolobov, azar, whittle, "
        "p1:filed (or any :filed), nutch, nutch-shipped, stormcrawler, azar-random, lambdacrawl, mirror-sync, "
        "learning-to-crawl.",
    )
    parser.add_argument("--quick", action="store_true", help="small worlds: five minutes of one core")
    parser.add_argument("-o", "--out", type=Path, default=Path("refresh-lab"), help="where results go [refresh-lab]")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes to compute with [1]")
    parser.add_argument("--histories", type=Path, nargs="+", default=[], metavar="FILE",
                        help="real change histories to add to the worlds")  # fmt: skip
    parser.add_argument("--changes", type=Path, nargs="+", default=[], metavar="FILE", action="extend",
                        help="replay these histories only: .jsonl.gz, a line a page")  # fmt: skip
    parser.add_argument("--crawl", type=Path, metavar="FILE",
                        help="replay a crawl's own history (`xyro export histories`) beside what was")  # fmt: skip
    parser.add_argument("--reads-per-day", type=float, default=0.0, metavar="N",
                        help="--crawl: of all pages [those of the crawl, half and twice of them]")  # fmt: skip
    parser.add_argument("--bandwidth", type=float, default=0.05,
                        help="--changes: reads a day, as a share of the pages that are there [0.05]")  # fmt: skip
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="--changes: a policy, or `all`; may be repeated"
    )
    parser.add_argument("--importance", choices=("uniform", "zipf"), default="uniform",
                        help="--changes: of pages: all 1, or 1 / rank dealt at random [uniform]")  # fmt: skip
    parser.add_argument("--memory", type=float, default=100.0, help="--changes: reads an estimate remembers [100]")
    parser.add_argument("--last-modified", action="store_true", help="--changes: every change comes with its date")
    parser.add_argument("--seed", type=int, default=1, help="of --importance zipf and Poisson reads [1]")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.crawl is not None:
        return _replay_crawl(options)
    return _replay(options) if options.changes else _figures(options)


def _replay_crawl(options: argparse.Namespace) -> int:
    from xyro.lab.refresh.crawl_replay import replay_crawl

    if not 0.0 <= options.reads_per_day < float("inf"):
        raise InputError(f"--reads-per-day {options.reads_per_day:g}: 0 or more")
    try:
        policies = options.policy or ()
        text = replay_crawl(options.crawl, policies, options.reads_per_day, options.seed, options.json)
    except ValueError as error:
        raise InputError(f"--{error}") from error
    sys.stdout.write(f"{text}\n")
    return 0


def _replay(options: argparse.Namespace) -> int:
    import numpy as np

    from xyro.lab.refresh import history, replay
    from xyro.lab.refresh.rates import Estimator
    from xyro.lab.refresh.world import of_histories, zipf

    names = _checked(options)
    histories = history.read(options.changes)
    n = len(histories)
    world = of_histories(histories, zipf(n, options.seed) if options.importance == "zipf" else np.ones(n))
    estimator = Estimator(options.memory, options.last_modified)
    rows = replay.rows(world, options.bandwidth, names, estimator, options.seed)
    if options.json:
        sys.stdout.write(json.dumps([row.as_json() for row in rows], indent=1) + "\n")
        return 0
    caption = (
        f"{n:,} pages, {len(world.times):,} changes, {world.days:,.0f} days, the first {world.burn:,.0f} not measured"
    )
    sys.stdout.write(
        f"{caption}; importance {options.importance}; B = {100 * options.bandwidth:g} % of the pages a day\n"
    )
    sys.stdout.write(replay.HEAD + "\n")
    for row in rows:
        sys.stdout.write(replay.line(row) + "\n")
        sys.stdout.flush()
    return 0


def _checked(options: argparse.Namespace) -> list[str]:
    """Return the policies to replay. InputError: an option makes no sense; found before anything long begins."""
    import numpy as np

    from xyro.lab.refresh.rules import NAMES, rule

    if not 0.0 < options.bandwidth <= MOST_BANDWIDTH:
        raise InputError(f"--bandwidth {options.bandwidth:g}: above 0, {MOST_BANDWIDTH:g} at most")
    if not options.memory > 1.0:
        raise InputError(f"--memory {options.memory:g}: above 1; `inf` never forgets")
    if options.seed < 0:
        raise InputError(f"--seed {options.seed}: 0 or more")
    wanted = options.policy or list(COMPARED)
    names = [name for word in wanted for name in (NAMES if word == "all" else (word,))]
    for name in names:
        try:
            rule(name, np.zeros(1), 0)
        except ValueError as error:
            raise InputError(f"--{error}") from error
    return names


def _figures(options: argparse.Namespace) -> int:
    from xyro.lab.refresh.history import read
    from xyro.lab.refresh.refresh_figures import FULL, QUICK, figures

    if options.jobs < 1:
        raise InputError(f"--jobs {options.jobs}: 1 or more")
    histories = read(options.histories) if options.histories else []
    scale, show = QUICK if options.quick else FULL, sys.stderr.isatty()
    results = figures(options.out, scale, histories, show, options.jobs)
    if options.json:
        sys.stdout.write(json.dumps(results, indent=1) + "\n")
    else:
        sys.stdout.write((options.out / "verdict.txt").read_text(encoding="utf-8"))
        sys.stdout.write(f"\nIn {options.out}: {', '.join(sorted(path.name for path in options.out.glob('*.*')))}\n")
    return 0 if all(claim["holds"] for claim in results["claims"]) else 1


if __name__ == "__main__":
    sys.exit(main())
