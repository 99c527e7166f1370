"""`xyro lab opic real --graph FILE.npz`: a real link graph, read on line and computed offline.

Writes OUT/real.json, real.txt and real.png: error and rank correlation after 1, 2, 5, 10 N reads for several selectors,
and how many iterations Jacobi, Gauss-Seidel and chaotic slice workers need until the vector is right to an epsilon.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab import work_parts
from xyro.lab.opic.measure import MeasureRow, load, measure
from xyro.lab.reference_rank import reference
from xyro.lab.work_parts import KeyedPart, Watch
from xyro.opic.arrays import Reals
from xyro.opic.graph import Graph
from xyro.opic.importance import normalise
from xyro.opic.matrix import Matrix, of_graph
from xyro.opic.offline import Effort, pageranks
from xyro.opic.slices import chaotic, synchronous, workers

SELECTORS = ("sweep", "greedy", "buckets", "cycle", "random")
EPSILONS = (1e-2, 1e-4, 1e-6)
"""L1 distance to the reference, both of sum 1"""
WORKERS = 4
ITERATION_LIMIT = 200
"""iterations tried"""


def real(out: Path, path: Path, show: bool = True) -> dict[str, Any]:
    """Everything about the graph in this file. InputError: no graph."""
    graph, truth = load(path)
    truth = reference(graph) if truth is None else normalise(truth)
    key = {"pages": graph.n, "links": graph.m, "graph": _fingerprint(graph, truth)}
    work: dict[str, work_parts.Part] = {
        f"real {select}": KeyedPart({**key, "select": select}, _reading(graph, truth, select)) for select in SELECTORS
    }
    work["real iterations"] = KeyedPart({**key, "epsilons": EPSILONS}, lambda watch: iterations(graph, truth, watch))
    found = work_parts.compute(work, {}, out, show)
    report = {
        **key,
        "file": path.name,
        "online": {select: found[f"real {select}"] for select in SELECTORS},
        "iterations": found["real iterations"],
    }
    work_parts.write(out / "real.json", report)
    (out / "real.txt").write_text(page(report), encoding="utf-8")
    draw(report, out / "real.png")
    return report


def _fingerprint(graph: Graph, truth: Reals) -> str:
    arrays = (graph.indptr, graph.indices, truth)
    return hashlib.blake2b(b"".join(array.tobytes() for array in arrays), digest_size=8).hexdigest()


def _reading(graph: Graph, truth: Reals, select: str) -> work_parts.Part:
    def part(watch: Watch) -> list[dict[str, Any]]:
        rows: list[MeasureRow] = measure(graph, truth, select=select, watch=watch)
        return [row.as_json() for row in rows]

    return part


def iterations(graph: Graph, truth: Reals, watch: Watch) -> dict[str, list[float | None]]:
    """Count the iterations of each method (sweeps a worker) to each of EPSILONS; None: not within ITERATION_LIMIT."""
    matrix, goal = of_graph(graph), truth / truth.sum()
    found = {}
    for k, method in enumerate(("jacobi", "gauss-seidel")):
        found[method] = _offline(matrix, goal, method)
        watch((k + 1) / 4)
    found[f"synchronous, {WORKERS} workers"] = [_sliced(matrix, goal, epsilon, wild=False) for epsilon in EPSILONS]
    watch(0.75)
    found[f"chaotic, {WORKERS} workers"] = [_sliced(matrix, goal, epsilon, wild=True) for epsilon in EPSILONS]
    return found


def _offline(matrix: Matrix, goal: Reals, method: Any) -> list[float | None]:
    """Bisect over the number of iterations, with which the distance falls."""

    def far(limit: int) -> float:
        (rank,), _ = pageranks(matrix, effort=Effort(1e-300, limit, method, threads=1))
        return float(np.abs(rank - goal).sum())

    return [_least(far, epsilon) for epsilon in EPSILONS]


def _least(far: Any, epsilon: float) -> float | None:
    low, high = 0, 1
    while far(high) > epsilon:
        low, high = high, 2 * high
        if high > ITERATION_LIMIT:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if far(middle) > epsilon else (low, middle)
    return high


def _sliced(matrix: Matrix, goal: Reals, epsilon: float, wild: bool) -> float | None:
    """Rounds at which slice workers stop by a residual that gets them within epsilon of the goal."""
    residual = epsilon
    while residual > 1e-12:
        team = workers(matrix, WORKERS)
        done = chaotic(team, residual, np.random.default_rng(1)) if wild else synchronous(team, residual)
        if float(np.abs(done.rank - goal).sum()) <= epsilon:
            return done.rounds
        residual /= 2
    return None


def page(report: Mapping[str, Any]) -> str:
    """The tables for people."""
    lines = [
        f"{report['file']}: {report['pages']:,} pages, {report['links']:,} links; endowment-free estimate, per cent",
        "",
        f"{'':10} {'reads/page':>10} {'all':>8} {'top 10 %':>9} {'rank corr.':>10}  cash",
    ]
    for select, rows in report["online"].items():
        lines += [
            f"{select:10} {row['reads_per_page']:>10g} {row['error_all']:>8.3f} {row['error_top10']:>9.3f} "
            f"{row['spearman']:>10.5f}  {'exact' if row['cash_exact'] else 'NOT CONSERVED'}"
            for row in rows
        ]
    head = "".join(f"{epsilon:>9.0e}" for epsilon in EPSILONS)
    lines += ["", f"{'iterations until the L1 distance is':36}{head}"]
    for method, counts in report["iterations"].items():
        lines.append(f"{method:36}" + "".join(f"{_count(count):>9}" for count in counts))
    return "\n".join(lines) + "\n"


def _count(count: float | None) -> str:
    return f"> {ITERATION_LIMIT}" if count is None else f"{count:g}"


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Error on all pages and on the top decile by reads, one line a selector."""
    from xyro.lab.figure_axes import figure_of

    figure, axes = figure_of(f"{report['file']} ({report['pages']:,} pages)", "reads / N", "mean relative error, %")
    for select, rows in report["online"].items():
        reads: Sequence[float] = [row["reads_per_page"] for row in rows]
        (line,) = axes.plot(reads, [row["error_all"] for row in rows], "-o", markersize=3, label=select)
        top = [row["error_top10"] for row in rows]
        axes.plot(reads, top, "--", color=line.get_color(), label=f"{select}, top decile")
    axes.set_yscale("log")
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=120)
