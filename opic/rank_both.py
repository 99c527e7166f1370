"""PageRank and interest together, in one scan over the links (P1 5.3: the direct and the inverse computation).

Row i of PageRank's matrix lists the pages that link to i. Read forwards it says what i receives; read backwards, what i
hands to each page that links to it, which is what interest asks. PageRank goes in place (Gauss-Seidel), interest, whose
rows are complete only at the end of the scan, by Jacobi. Worth it where the matrix comes from disk at each scan: in RAM
two scans take as long as one of twice the work (2.7 s each, 5.5 s both, 200 M links), and this one keeps to one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING
from xyro.opic.matrix import Array, Matrix, loops
from xyro.opic.offline import Effort, IterationStep, Lift, Watch, place, scaled, step_of

CHUNK = 1 << 18
"""pages at a time of what is done to vectors alone"""


class Both(NamedTuple):
    """`rank` float[n] of sum 1; `interest` float[n] as `offline.interest` gives it."""

    rank: Array
    interest: Array
    steps: tuple[IterationStep, ...]


def both(
    matrix: Matrix,
    targets: Array,
    damping: float = DAMPING,
    reading: Literal["reversed", "mean"] = "reversed",
    effort: Effort | None = None,
    watch: Watch | None = None,
) -> Both:
    """PageRank and the interest towards `targets` (float[n] >= 0) of one matrix of PageRank.

    A step's residual is the greater one of the two. effort.method and effort.threads do not count.
    ValueError: as of `pageranks` and `interest`; a matrix of another reading.
    """
    effort = effort or Effort()
    if matrix.n == 0 or matrix.averages or matrix.row.size > 1 or not 0 <= damping < 1:
        raise ValueError("both: PageRank's matrix of at least one page, 0 <= damping < 1")
    state = _State(matrix, targets, damping, reading, effort)
    steps: list[IterationStep] = []
    while len(steps) < effort.max_steps and (not steps or steps[-1].residual > effort.epsilon):
        steps.append(step_of(state.sweep(), steps, effort.epsilon))
        if watch:
            watch(steps[-1])
    return Both(state.rank(), state.interest(), tuple(steps))


class _State:
    """y, z: PageRank's vector, and what of it each link of weight 1 carries; up: interest's, handed: what of it goes to
    each parent. float[n] all, and flow float64[n]."""

    def __init__(self, matrix: Matrix, targets: Array, damping: float, reading: str, effort: Effort) -> None:
        n, dtype = matrix.n, matrix.share.dtype
        self.matrix, self.damping, self.mean = matrix, damping, reading == "mean"
        self.sum_of_targets = float(np.sum(targets, dtype=np.float64))
        width = n * dtype.itemsize
        needs = {"z": width, "flow": n * 8, "y": width, "up": width, "handed": width, "part": width, "aim": width}
        room = place(needs, effort)
        self.y, self.z, self.up, self.handed, self.part, self.aim = (
            room(name, (n,), dtype) for name in ("y", "z", "up", "handed", "part", "aim")
        )
        self.flow = room("flow", (n,), np.float64)
        self.jump = np.full(1, (1 - damping) / n, dtype)
        scaled(targets, matrix, 1 - damping, lambda *_: self.aim)
        self.y[:] = 1 / n
        np.multiply(self.y, matrix.share, out=self.z)
        np.divide(self.aim, dtype.type(1 - damping), out=self.up)
        self.part[:] = 1
        for pages in () if self.mean else chunks(n):
            self.part[pages] = _inverse_of_rows(matrix, pages)
        np.multiply(self.up, self.part, out=self.handed)
        self.lift = Lift(matrix, self.jump, self.y, damping)
        self.loops = loops(effort.engine)

    def sweep(self) -> Reals:
        """One scan; (steps, sums) of both vectors: float64[2, 2]."""
        matrix, lift = self.matrix, self.lift.now
        fixed = matrix.indptr, matrix.sources, matrix.weights, matrix.share, self.jump, self.y, self.z
        step, total, lost = self.loops.sweep_both(*fixed, self.handed, self.flow, self.damping, lift)
        self.lift.after(np.array([total]), np.array([lost]))
        moved, settled = np.sum([self._settle(pages) for pages in chunks(matrix.n)], axis=0)
        return np.array([[step, moved], [total, settled]])

    def _settle(self, pages: slice) -> tuple[float, float]:
        """Interest of these pages from what flowed to them: (step, sum)."""
        new = self.damping * self.flow[pages] + self.aim[pages]
        if self.mean:
            new = self.damping * self.matrix.share[pages] * self.flow[pages] + self.aim[pages]
        moved = float(np.abs(new - self.up[pages]).sum())
        self.up[pages] = new
        self.handed[pages] = new * self.part[pages]
        return moved, float(new.sum())

    def rank(self) -> Array:
        rank: Array = self.y / self.y.dtype.type(self.y.sum(dtype=np.float64))
        return rank

    def interest(self) -> Array:
        scale = self.sum_of_targets if self.mean else 1 / float(self.up.sum(dtype=np.float64))
        found: Array = self.up * self.up.dtype.type(scale)
        return found


def chunks(n: int) -> Iterator[slice]:
    """All pages, CHUNK at a time."""
    return (slice(low, min(low + CHUNK, n)) for low in range(0, n, CHUNK))


def _inverse_of_rows(matrix: Matrix, pages: slice) -> Array:
    """1 / the weight of the links into each of these pages, 0 where there are none."""
    ends = matrix.indptr[pages.start : pages.stop + 1].astype(np.int64)
    if matrix.weights.size > 1:
        weights = matrix.weights[ends[0] : ends[-1]]
        totals = np.concatenate((np.zeros(1), np.cumsum(weights, dtype=np.float64)))
        sums = totals[ends[1:] - ends[0]] - totals[ends[:-1] - ends[0]]
    else:
        sums = np.diff(ends) * float(matrix.weights[0])
    inverse: Array = np.divide(1.0, sums, out=np.zeros(sums.size), where=np.diff(ends) > 0)
    return inverse.astype(matrix.share.dtype)
