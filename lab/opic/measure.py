"""OPIC on any link graph: reads against error (`xyro lab opic --graph FILE.npz`).

What comes in: a graph in CSR form and, if it is known, its PageRank; what goes out: a row for each count of reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xyro.lab.opic import names, simulate
from xyro.lab.opic.simulate import Advance, SimulatedWorld, errors, spearman
from xyro.lab.reference_rank import reference
from xyro.opic.arrays import Reals
from xyro.opic.cash import UNIT
from xyro.opic.graph import Graph
from xyro.opic.importance import normalise
from xyro.wire.errors import InputError

POINTS = (1, 2, 5, 10)
"""reads a page at which a run is measured"""


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """After `reads_per_page` N reads: mean relative errors in per cent, over all pages and the top decile."""

    reads_per_page: float
    error_all: float
    error_top10: float
    spearman: float
    cash_exact: bool
    """cash of all pages + virtual page = 65,536 N, to the unit"""
    select: str
    history: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def load(path: Path) -> tuple[Graph, Reals | None]:
    """The graph in an .npz of `indptr` and `indices`, and its `pagerank085` if that is there. InputError: no graph."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in ("indptr", "indices", "pagerank085") if name in data}
    except Exception as error:  # numpy, zipfile and zlib have a dozen kinds for what is damaged, encrypted, too large
        reason = f"{error}".partition("\n")[0] or type(error).__name__
        raise InputError(f"{path}: not an .npz file of arrays: {reason}") from error
    for name in ("indptr", "indices"):
        if name not in arrays:
            raise InputError(f"{path}: no array {name!r}; a graph has `indptr` (N + 1) and `indices` (links)")
        kind = getattr(arrays[name], "dtype", np.dtype(object))  # numpy gives bytes for what is no array
        if not np.issubdtype(kind, np.integer) or arrays[name].ndim != 1:
            raise InputError(f"{path}: {name}: expected a row of whole numbers")
    return _graph(path, arrays), _known_rank(path, arrays)


def _graph(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> Graph:
    try:
        graph = Graph(arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if graph.n == 0:
        raise InputError(f"{path}: a graph without pages")
    return graph


def _known_rank(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> Reals | None:
    rank = arrays.get("pagerank085")
    if rank is None:
        return None
    pages = (arrays["indptr"].size - 1,)
    if isinstance(rank, np.ndarray) and rank.shape == pages and rank.dtype.kind == "f" and (rank > 0).all():
        reference = rank.astype(np.float64)
        if float(reference.max()) * reference.size < math.inf:
            return reference
    raise InputError(f"{path}: pagerank085: expected a number above 0 for each page, of a sum that is finite")


def machine() -> Advance:
    """simulate.advance in machine code, or itself where numba is not installed."""
    try:
        from xyro.lab.opic.fast import advance
    except ImportError:
        return simulate.advance
    return advance


def measure(
    graph: Graph,
    truth: Reals | None = None,
    *,
    select: str = "sweep",
    history: str = "static",
    reads: float = 10,
    seed: int = 1,
    watch: Callable[[float], None] = lambda share: None,
) -> list[MeasureRow]:
    """Read the graph `reads` times over; a row at 1, 2, 5, 10 N reads and at the end. `watch` hears the share done.

    truth: importance of any scale (default: the offline reference). ValueError: no such selector or history.
    """
    world, n = SimulatedWorld(graph), graph.n
    chooser = names.selector(select, world.keys, np.random.default_rng(seed))
    policy = names.history(history, n)
    truth = reference(graph) if truth is None else normalise(truth)
    points = [point for point in POINTS if point < reads] + [reads]
    goals = sorted({max(1, round(share * n)) for share in (*points, *np.arange(0.5, reads, 0.5))})
    rows = []
    for done in simulate.states(world, chooser, [policy], goals, machine()):
        watch(done / goals[-1])
        if done in (marks := {max(1, round(point * n)): point for point in points}):
            estimate = policy.estimate(world.cash / UNIT, world.turnovers)
            scores = (*errors(estimate, truth), spearman(estimate, truth))
            rows.append(MeasureRow(marks[done], *scores, world.total == UNIT * n, select, history))
    return rows


def table(rows: Sequence[MeasureRow]) -> str:
    """The rows for people."""
    lines = [f"{'reads/page':>10} {'all %':>9} {'top 10 % %':>10} {'rank corr.':>10}  cash"]
    lines += [
        f"{row.reads_per_page:>10g} {row.error_all:>9.3f} {row.error_top10:>10.3f} {row.spearman:>10.5f}  "
        + ("exact" if row.cash_exact else "NOT CONSERVED")
        for row in rows
    ]
    return "\n".join(lines)
