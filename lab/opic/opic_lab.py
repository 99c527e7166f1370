"""`xyro lab opic`: OPIC against the papers' figures, on patterns, and on any link graph.

    xyro lab opic [figures] [--quick] [-o DIR]           figures 2 to 6 of P2 and the claims of both papers
    xyro lab opic patterns [--pages N] [-o DIR]          chain, ring, star, tree, bow tie, link farm
    xyro lab opic focus [--quick] [--pages N] [-o DIR]   a focus, unread pages paid more, internal links that say less
    xyro lab opic real --graph FILE.npz [-o DIR]         a real graph: errors on line, iterations offline
    xyro lab opic sharded [--pages N] [-o DIR]           four partitions and a post that loses, delays and repeats
    xyro lab opic confidence [--fit] [--pages N] [--graph FILE.npz]   the intervals: laws, and what they cover, as JSON
    xyro lab opic rank [--pages N] [-o DIR] [--memory BYTES]     Table 1 of P1: the offline computation, timed
    xyro lab opic speed [--pages N] [-o DIR]             ns per link and per selection, beside a floor
    xyro lab opic --graph FILE.npz [--reads 10] [--select sweep] [--history static] [--json]

Results that are in DIR already are not computed again, so a run that was stopped goes on. Exit code 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from xyro.lab.exit_codes import exit_code
from xyro.wire.errors import InputError

MOST_READS = 10_000.0
RANK_SIZES = [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 40_000_000]
SPEED_SIZES = [200_000, 2_000_000, 20_000_000]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.graph is not None and options.what not in ("real", "confidence"):
        return exit_code(lambda: _graph(options))
    command = {
        "figures": _figures,
        "patterns": _patterns,
        "focus": _focus,
        "real": _real,
        "sharded": _sharded,
        "confidence": _confidence,
        "rank": _rank,
        "speed": _speed,
    }[options.what]
    return exit_code(lambda: command(options))


PARTS = ("figures", "patterns", "focus", "real", "sharded", "confidence", "rank", "speed")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="xyro lab opic", description="OPIC against the papers and on any graph.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=PARTS,
        default="figures",
        metavar="PART",
        help=f"{', '.join(PARTS)} [figures]",
    )
    parser.add_argument("--quick", action="store_true", help="small graphs: under a minute")
    parser.add_argument("-o", "--out", type=Path, default=Path("opic-lab"), help="where results go [opic-lab]")
    parser.add_argument(
        "--pages",
        type=int,
        help="pages of a pattern [1000], of `sharded` [10000], of `confidence` [6000], of `rank` and `speed` [several]",
    )
    parser.add_argument("--fit", action="store_true", help="confidence: fit the laws anew instead of those in use")
    parser.add_argument("--memory", type=int, help="rank: bytes of private RAM for vectors; the rest goes to files")
    parser.add_argument("--graph", type=Path, help="an .npz with indptr, indices and, if known, pagerank085")
    parser.add_argument("--reads", type=float, default=10.0, help="reads a page [10]")
    parser.add_argument("--select", default="sweep", help="sweep, greedy, cycle, random, buckets [sweep]")
    parser.add_argument("--history", default="static", help="static, paper, window:M, fixed:T, edge:T, improved:T, "
                        "interpolation:T, adaptive [static]; M measures, T turnovers")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of --select random, of the web of `focus` [1]")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    return parser


def _graph(options: argparse.Namespace) -> int:
    from xyro.lab.opic.measure import load, measure, table

    if not 0 < options.reads <= MOST_READS:
        raise InputError(f"--reads {options.reads:g}: above 0, {MOST_READS:g} at most")
    if options.seed < 0:
        raise InputError(f"--seed {options.seed}: 0 or more")
    _check_names(options.select, options.history)
    graph, truth = load(options.graph)
    choice = {"select": options.select, "history": options.history, "reads": options.reads, "seed": options.seed}
    rows = measure(graph, truth, **choice)
    text = json.dumps([row.as_json() for row in rows], indent=1) if options.json else table(rows)
    sys.stdout.write(text + "\n")
    return 0 if all(row.cash_exact for row in rows) else 1


def _check_names(select: str, history: str) -> None:
    """Check the names of options before anything long begins. InputError: no such selector or history."""
    import numpy as np

    from xyro.lab.opic import names

    try:
        names.selector(select, np.ones(1, np.int64), np.random.default_rng(0))
        names.history(history, 1)
    except ValueError as error:
        raise InputError(f"--{error}") from error


def _figures(options: argparse.Namespace) -> int:
    from xyro.lab.opic.opic_figures import FULL, QUICK, figures

    results = figures(options.out, QUICK if options.quick else FULL, show=sys.stderr.isatty())
    _say(options, results)
    return 0


def _patterns(options: argparse.Namespace) -> int:
    from xyro.lab.opic.opic_figures import pattern_files

    pages = options.pages or 1000
    if not 10 <= pages <= 1_000_000:
        raise InputError(f"--pages {pages}: 10 to 1,000,000")
    results = pattern_files(options.out, pages, show=sys.stderr.isatty())
    _say(options, results, "patterns.txt")
    return 0


def _real(options: argparse.Namespace) -> int:
    from xyro.lab.opic.real import real

    if options.graph is None:
        raise InputError("real: --graph FILE.npz says which graph")
    results = real(options.out, options.graph, show=sys.stderr.isatty())
    _say(options, results, "real.txt")
    return 0


def _sharded(options: argparse.Namespace) -> int:
    from xyro.lab.opic.sharded import sharded_files

    pages = options.pages or (2_000 if options.quick else 10_000)
    if not 1000 <= pages <= 1_000_000:
        raise InputError(f"--pages {pages}: 1,000 to 1,000,000")
    results = sharded_files(options.out, pages, show=sys.stderr.isatty())
    _say(options, results, "sharded.txt")
    return 0 if all(run["exact"] for run in results["runs"].values()) else 1


def _confidence(options: argparse.Namespace) -> int:
    from xyro.lab.opic.interval_coverage import coverages

    pages = options.pages or (1_000 if options.quick else 6_000)
    if not 500 <= pages <= 1_000_000:
        raise InputError(f"--pages {pages}: 500 to 1,000,000")
    sys.stdout.write(json.dumps(coverages(pages, options.fit, options.graph), indent=1) + "\n")
    return 0


def _focus(options: argparse.Namespace) -> int:
    from xyro.lab.opic.focus_lab import focus_files

    pages = options.pages or (4_000 if options.quick else 20_000)
    if not 500 <= pages <= 1_000_000:
        raise InputError(f"--pages {pages}: 500 to 1,000,000")
    results = focus_files(options.out, pages, options.seed, show=sys.stderr.isatty())
    _say(options, results, "focus.txt")
    return 0 if results["cash_exact"] else 1


def _rank(options: argparse.Namespace) -> int:
    from xyro.lab.opic.rank import table_one

    sizes = [options.pages] if options.pages else [100_000] if options.quick else RANK_SIZES
    if not all(1000 <= pages <= 200_000_000 for pages in sizes):
        raise InputError(f"--pages {options.pages}: 1,000 to 200,000,000")
    if options.memory is not None and options.memory < 0:
        raise InputError(f"--memory {options.memory}: 0 bytes or more")
    results = table_one(options.out, sizes, options.memory, show=sys.stderr.isatty())
    _say(options, results, "rank.txt")
    return 0


def _speed(options: argparse.Namespace) -> int:
    from xyro.lab.opic.speed import speed

    sizes = [options.pages] if options.pages else [20_000] if options.quick else SPEED_SIZES
    if not all(1000 <= pages <= 50_000_000 for pages in sizes):
        raise InputError(f"--pages {options.pages}: 1,000 to 50,000,000")
    results = speed(options.out, sizes, show=sys.stderr.isatty())
    _say(options, results, "speed.txt")
    return 0


def _say(options: argparse.Namespace, results: object, page: str = "claims.txt") -> None:
    text = json.dumps(results, indent=1) + "\n" if options.json else (options.out / page).read_text(encoding="utf-8")
    sys.stdout.write(text)
    if not options.json:
        sys.stdout.write(f"\nIn {options.out}: {', '.join(sorted(path.name for path in options.out.glob('*.*')))}\n")


if __name__ == "__main__":
    sys.exit(main())
