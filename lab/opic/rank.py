"""Table 1 of P1: the offline computation on large graphs: direct, inverse, and both in one scan; timed.

For each number of pages: the matrix warm (in the page cache) and cold (read from disk in every iteration), one and two
threads, with all vectors in RAM and under caps of private RAM; beside scipy's product of the same matrix where scipy is
installed and the matrix fits. The matrices lie on files in OUT/matrix-N and are mapped; what is over the cap is mapped
too. Seconds are the fastest of a few iterations: machines are noisy, and slower ones say more about the neighbours.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab import work_parts
from xyro.lab.opic.matrix_builds import forget, on_files, random_matrix, reversed_matrix
from xyro.opic.graph import tiny
from xyro.opic.matrix import Matrix, of_graph
from xyro.opic.offline import Effort, IterationStep, pageranks
from xyro.opic.rank_both import both
from xyro.wire.clock import SystemClock

ITERATIONS = 4
COLD_ITERATIONS = 3
SCIPY_LINKS = 50_000_000
"""links up to which scipy is asked: it holds 12 bytes a link in RAM"""
CAP = 4
"""bytes a page of the cap under which P1 computed: 80 MB for 20 M pages"""
P1_SECONDS, P1_PAGES = 178.0, 20_000_000
Run = Callable[[Effort, Callable[[IterationStep], None]], None]
Found = dict[str, Any]


def table_one(out: Path, sizes: Sequence[int], memory: int | None, show: bool = True) -> Found:
    """OUT/rank.json, rank.txt and (with matplotlib) rank.png: every way to compute, timed, for each number of pages.

    memory: a cap in bytes to try besides none and P1's.
    """
    results = {str(pages): _one_size(out, pages, memory, show) for pages in sizes}
    report = {"memory": memory, "iterations": ITERATIONS, "sizes": results}
    work_parts.write(out / "rank.json", report)
    (out / "rank.txt").write_text(page(report), encoding="utf-8")
    if len(sizes) > 1:
        from xyro.lab.opic.opic_plots import draw_rank

        draw_rank(results, out / "rank.png")
    return report


def _one_size(out: Path, pages: int, memory: int | None, show: bool) -> Found:
    folder = out / f"matrix-{pages}"
    made: dict[str, Matrix] = {}

    def direct() -> Matrix:
        return made.setdefault("direct", random_matrix(folder, pages))

    def inverse() -> Matrix:
        return made.setdefault("inverse", reversed_matrix(folder / "reversed", direct()))

    work = _ways(direct, inverse, on_files(folder / "vectors"), {CAP * pages, memory} - {None})
    work["links"] = lambda watch: direct().m
    work["scipy"] = lambda watch: _scipy(direct()) if direct().m <= SCIPY_LINKS else None
    found = work_parts.compute(work, {"pages": pages}, out / f"rank-{pages}", show)
    return {"pages": pages, "links": found.pop("links"), "ways": {name: row for name, row in found.items() if row}}


def _ways(direct: Callable[[], Matrix], inverse: Callable[[], Matrix], spill: Any, caps: set[Any]) -> Found:
    """Named parts. Warm unless they say cold; two threads unless they say one."""
    work: Found = {}

    def add(name: str, run: Callable[[], Run], matrix: Callable[[], Matrix], cold: bool, effort: Effort) -> None:
        work[name] = partial(_timed, run, matrix, cold, effort)

    base = Effort(1e-12, ITERATIONS)
    single = replace(base, threads=1)
    straight, turned, joined = _single(direct), _single(inverse), _both(direct)
    for name, run, matrix in (("direct", straight, direct), ("inverse", turned, inverse)):
        add(name, run, matrix, False, base)
        add(f"{name}, one thread", run, matrix, False, single)
        add(f"{name}, cold", run, matrix, True, base)
        add(f"{name}, one thread, cold", run, matrix, True, single)
    add("both in one scan, one thread", joined, direct, False, single)
    add("both in one scan, one thread, cold", joined, direct, True, single)
    add("direct, jacobi", straight, direct, False, replace(base, method="jacobi"))
    for cap in sorted(caps):
        add(f"direct, {cap:,} bytes", straight, direct, False, replace(base, memory=cap, spill=spill))
    return work


def _single(matrix: Callable[[], Matrix]) -> Callable[[], Run]:
    """One ranking of a matrix, in place."""

    def make() -> Run:
        links = matrix()
        return lambda effort, hear: _drop(pageranks(links, [None], effort=effort, watch=hear))

    return make


def _both(matrix: Callable[[], Matrix]) -> Callable[[], Run]:
    """PageRank, and the interest towards one page in a hundred, in one scan."""

    def make() -> Run:
        links = matrix()
        targets = np.zeros(links.n, np.float32)
        targets[:: max(1, links.n // 100)] = 1
        return lambda effort, hear: _drop(both(links, targets, effort=effort, watch=hear))

    return make


def _drop(result: object) -> None:
    """Drop the result: the way there is timed."""


def _timed(
    run: Callable[[], Run], matrix: Callable[[], Matrix], cold: bool, effort: Effort, watch: work_parts.Watch
) -> Found | None:
    """Seconds of the fastest iteration but the first (which may compile), and bytes a page of RAM of the process's own
    above what it had before. None: this system cannot forget files."""
    begun, links, clock = run(), matrix(), SystemClock()
    _warm()
    before, peak, seconds, moment = _private(), [0.0], [], [clock.monotonic()]
    effort = replace(effort, max_steps=COLD_ITERATIONS if cold else effort.max_steps)
    if cold and not forget(links):
        return None

    def hear(step: IterationStep) -> None:
        seconds.append(clock.monotonic() - moment[0])
        peak.append(_private() - before)
        watch(step.iteration / effort.max_steps)
        if cold:
            forget(links)
        moment[0] = clock.monotonic()

    begun(effort, hear)
    return {"seconds": min(seconds[1:]), "ram_per_page": max(peak) / links.n}


_compiled: list[bool] = []


def _warm() -> None:
    """Compile what will be needed, once."""
    if not _compiled:
        small, unit = of_graph(tiny(), np.float32), np.ones(5, np.float32)
        pageranks(small, [None], effort=Effort(1e-3))
        both(small, unit, effort=Effort(1e-3))
        _compiled.append(True)


def _private() -> float:
    """Bytes of RAM that are this process's own (what maps files can be dropped by the system)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024.0 if sys.platform != "darwin" else 1.0)
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def _scipy(matrix: Matrix) -> Found | None:
    """scipy's product with a vector, float64; None where scipy is not installed."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        return None
    clock, before = SystemClock(), _private()
    product = csr_matrix((np.ones(matrix.m), matrix.sources, matrix.indptr), shape=(matrix.n, matrix.n))
    vector, seconds = np.ones(matrix.n), []
    for _ in range(ITERATIONS):
        begun = clock.monotonic()
        product @ vector
        seconds.append(clock.monotonic() - begun)
    return {"seconds": min(seconds), "ram_per_page": (_private() - before) / matrix.n}


def page(report: Found) -> str:
    """The table for people, and what it says of P1's claims."""
    lines = []
    for found in report["sizes"].values():
        lines.append(f"{found['pages']:,} pages, {found['links']:,} links")
        lines.append(f"  {'':38} {'s / iteration':>14} {'ns / link':>10} {'own RAM':>12}")
        for name, row in found["ways"].items():
            each = 1e9 * row["seconds"] / found["links"]
            lines.append(f"  {name:38} {row['seconds']:>14.4f} {each:>10.2f} {row['ram_per_page']:>7.1f} B/page")
        lines.append("")
    return "\n".join([*lines, *_verdicts(list(report["sizes"].values()))]) + "\n"


def _verdicts(sizes: Sequence[Found]) -> list[str]:
    """P1's claims, held against what was measured."""
    last = sizes[-1]
    ways = {name: row["seconds"] for name, row in last["ways"].items()}
    lines = [f"At {last['pages']:,} pages:"]
    rate = P1_SECONDS / P1_PAGES * last["pages"] / ways["direct"]
    lines.append(
        f"  An iteration takes {ways['direct']:.2f} s; P1's machine of 2000 {rate:,.0f} times as long (scaled)."
    )
    for state in ("", ", cold"):
        joined = ways.get(f"both in one scan, one thread{state}")
        apart = sum(ways.get(f"{name}, one thread{state}", 0.0) for name in ("direct", "inverse"))
        if joined and apart:
            gain = 1 - joined / apart
            cache = "from disk" if state else "in the page cache"
            lines.append(f"  One scan for both saves {100 * gain:.0f} % of two with the matrix {cache} (P1: modest).")
    cold, warm = ways.get("direct, cold"), ways["direct"]
    if cold:
        lines.append(f"  From disk an iteration takes {cold / warm:.1f} times as long as from the page cache.")
    if len(sizes) > 1:
        first = sizes[0]
        small, large = (1e9 * size["ways"]["direct"]["seconds"] / size["links"] for size in (first, last))
        grows = "linear in N but for cache misses" if large < 4 * small else "not linear in N"
        costs = f"{small:.2f} ns at {first['pages']:,} pages, {large:.2f} at {last['pages']:,}"
        lines.append(f"  A link costs {costs}: time is {grows}.")
    return lines
