"""The offline reference at scale: PageRank and its kin by sweeps over a matrix of links (P1 5).

Every ranking here is the solution of  y = c A y + jump,  A the matrix of matrix.py. PageRank with uniform jumps and the
mass of pages without links spread uniformly is that solution for jump = 1/n, scaled to sum 1: the dangling mass flows
like the jumps do, so dropping it changes nothing but the scale. (While it iterates, `solve` does lift the jumps by what
dangling pages lost, which keeps the sum of y where it is: that is the usual power iteration, and the sum, slowest of
all to settle, need not; at the end the lift is divided out. P1 eq. 6-8 drop it after each step *and* renormalise,
which raises the damping from c to r c, r > 1 what they renormalise by.) With a personalisation p the jumps flow
differently; the solutions u for 1/n and v for p then combine to  c D u + (1-c) v,  D = (1-c) d.v / (1 - c d.u)  the
dangling mass, d its pages.
Both come out of one pass, and so do the rankings for any number of p.

In RAM: 12 bytes a page for one ranking in float32 (Gauss-Seidel; 16 for Jacobi; + 4 with a personalisation), beside the
matrix, which may be mapped from files. With a cap on memory what is read in order goes to files too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from xyro.opic.arrays import Mask, Reals
from xyro.opic.cash import DAMPING
from xyro.opic.matrix import Allocate, Array, Matrix, in_ram, loops

Method = Literal["jacobi", "gauss-seidel"]
EPSILON = 1e-4
"""P1 eq. 4, over a vector of sum 1: below it float32 has little more to say (it levels out at 1e-5 to 4e-5)"""


@dataclass(frozen=True, slots=True)
class IterationStep:
    """The outcome of one sweep."""

    iteration: int
    residual: float
    """L1 norm of the step over that of the vector, the worst of all vectors; the error is at most residual c/(1-c), or
    twice that where the sum is set right at the end only (slices.py)"""
    left: int | None
    """how many more it will take at the pace of this one; None: it does not get nearer"""


@dataclass(frozen=True, slots=True)
class Solution:
    """`vectors` float[n, K] solve y = c A y + jump for K jumps; `steps` tells how."""

    vectors: Array
    steps: tuple[IterationStep, ...]

    @property
    def iterations(self) -> int:
        return len(self.steps)

    @property
    def residual(self) -> float:
        return self.steps[-1].residual if self.steps else math.inf


Watch = Callable[[IterationStep], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """Bounds of a computation: until a step is at most `epsilon`, `max_steps` steps at most.

    threads > 1 in place: rows see what the other threads have written so far, so the last digits differ from run to
    run. memory: bytes of private RAM at most; what does not fit is allocated by `spill`.
    """

    epsilon: float = EPSILON
    max_steps: int = 1000
    method: Method = "gauss-seidel"
    threads: int = 2
    engine: str = "auto"
    memory: int | None = None
    spill: Allocate | None = None

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and self.max_steps >= 0 and self.threads >= 1):
            raise ValueError("Effort: epsilon > 0, most >= 0, threads >= 1")
        if self.method not in ("jacobi", "gauss-seidel"):
            raise ValueError(f"Effort: method {self.method!r}: jacobi or gauss-seidel")


def solve(
    matrix: Matrix,
    jumps: Sequence[Array],
    damping: float = DAMPING,
    effort: Effort | None = None,
    watch: Watch | None = None,
    start: Array | None = None,
) -> Solution:
    """Solve y = damping A y + jump for each of `jumps` (float[n], or [1] for the same everywhere; >= 0) in one pass.

    start: float[n, K], where to begin (default: where nothing would be lost, jump / (1-c)). Stops as `effort` says;
    `watch` hears of every sweep.
    ValueError: no page, damping outside [0, 1), jumps of other lengths, too little memory and nowhere to spill to.
    """
    effort = effort or Effort()
    if matrix.n == 0 or not 0 <= damping < 1 or not jumps:
        raise ValueError("solve: at least one page and one jump, 0 <= damping < 1")
    room = plan(matrix, jumps, effort)
    shape = (matrix.n,) if len(jumps) == 1 else (matrix.n, len(jumps))
    dtype = matrix.share.dtype
    jump = _jumps(jumps, shape, dtype, room)
    y = room("y", shape, dtype)
    if start is None:
        np.multiply(jump, dtype.type(1 / (1 - damping)), out=y)
    else:
        y[...] = start.reshape(shape)
    share = matrix.share if len(shape) == 1 else matrix.share[:, None]
    before = room("z", shape, dtype)
    np.multiply(y, share, out=before, casting="same_kind")
    after = before if effort.method == "gauss-seidel" else room("z2", shape, dtype)
    steps: list[IterationStep] = []
    sweep, lift = _sweeper(matrix, jump, y, damping, effort), Lift(matrix, jump, y, damping)
    while len(steps) < effort.max_steps and (not steps or steps[-1].residual > effort.epsilon):
        norms = sweep(before, after, lift.now)
        steps.append(step_of(norms, steps, effort.epsilon))
        lift.after(norms[1], norms[2])
        before, after = after, before
        if watch:
            watch(steps[-1])
    y /= lift.used.astype(dtype)
    return Solution(y.reshape(matrix.n, len(jumps)), tuple(steps))


class Lift:
    """By how much the jumps are raised so that the sum S of y stays: ((1-c) S + c D) / sum(jump), D the part of S on
    pages without links; float64[K]. Always 1 where the matrix does not keep sums (mean_of_children)."""

    def __init__(self, matrix: Matrix, jump: Array, y: Array, damping: float) -> None:
        shape = y.shape[1:] or (1,)
        self.damping, self.keeps = damping, not matrix.averages
        self.jump = np.broadcast_to(jump.sum(axis=0, dtype=np.float64), shape)
        if jump.size == 1:
            self.jump = self.jump * matrix.n
        self.now = self.used = np.ones(shape)
        total = y.sum(axis=0, dtype=np.float64)
        without = (matrix.share == 0).reshape(-1, *(1 for _ in y.shape[1:]))
        self.after(total, y.sum(axis=0, dtype=np.float64, where=without))

    def after(self, total: Reals, lost: Reals) -> None:
        """A sweep (or the start) had these sums."""
        self.used = self.now
        if self.keeps:
            spread = (1 - self.damping) * total + self.damping * lost
            self.now = np.divide(spread, self.jump, out=np.ones_like(self.now), where=self.jump > 0)


def _jumps(jumps: Sequence[Array], shape: tuple[int, ...], dtype: Any, room: Allocate) -> Array:
    if any(jump.size not in (1, shape[0]) or not np.isfinite(jump).all() or (jump < 0).any() for jump in jumps):
        raise ValueError(f"solve: jumps are {shape[0]} finite numbers >= 0, or one for all")
    if len(shape) == 1 and jumps[0].size == 1:
        return jumps[0].astype(dtype)
    packed = room("jump", shape, dtype)
    for column, jump in enumerate(jumps):
        packed.reshape(shape[0], -1)[:, column] = jump
    return packed


def _sweeper(
    matrix: Matrix, jump: Array, y: Array, damping: float, effort: Effort
) -> Callable[[Array, Array, Reals], Reals]:
    """(before, after, lift) -> the sums of one sweep over all rows: [3] or [3, K], as rank_kernels tells."""
    module = loops(effort.engine)
    count = _threads(effort.threads) if module.__name__.endswith("kernels") else 1
    bounds = matrix.blocks(count)
    sums = np.zeros((count, 3, *y.shape[1:]))
    fixed = matrix.indptr, matrix.sources, matrix.weights, matrix.row, matrix.share, jump, y
    one_sweep = module.sweep if y.ndim == 1 else module.sweep_many

    def sweep(before: Array, after: Array, lift: Reals) -> Reals:
        one_sweep(*fixed, before, after, damping, lift, bounds, sums)
        total: Reals = sums.sum(axis=0)
        return total

    return sweep


def _threads(count: int) -> int:
    from xyro.opic.jit import threads

    return threads(count)


def step_of(norms: Reals, steps: Sequence[IterationStep], epsilon: float) -> IterationStep:
    with np.errstate(invalid="ignore"):
        residual = float(np.nan_to_num(norms[0] / norms[1]).max())  # 0/0: a vector of zeros stays one
    left: int | None = None
    if residual <= epsilon:
        left = 0
    elif steps and residual < steps[-1].residual:
        left = math.ceil(math.log(epsilon / residual) / math.log(residual / steps[-1].residual))
    return IterationStep(len(steps) + 1, residual, left)


def plan(matrix: Matrix, jumps: Sequence[Array], effort: Effort) -> Allocate:
    """Plan the place of each array of `solve`, as `place` says."""
    width = matrix.share.nbytes * len(jumps)
    jump = width if len(jumps) > 1 or jumps[0].size > 1 else 0
    return place({"z": width, "z2": width * (effort.method == "jacobi"), "y": width, "jump": jump}, effort)


def place(needs: dict[str, int], effort: Effort) -> Allocate:
    """Arrays go to RAM as long as the cap allows, else to `effort.spill`. needs: name -> bytes, by how much it hurts to
    have it on a file: what is read at random first.

    ValueError: the cap does not hold them and there is nowhere to spill to.
    """
    left = math.inf if effort.memory is None else effort.memory
    spilled = set()
    for name, size in needs.items():
        if size <= left:
            left -= size
        else:
            spilled.add(name)
    if spilled and effort.spill is None:
        raise ValueError(f"{effort.memory} bytes of memory: {sum(needs.values())} are needed")

    def allocate(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return effort.spill(name, shape, dtype) if name in spilled and effort.spill else in_ram(name, shape, dtype)

    return allocate


def pageranks(
    matrix: Matrix,
    personalizations: Sequence[Array | None] = (None,),
    damping: float = DAMPING,
    effort: Effort | None = None,
    watch: Watch | None = None,
) -> tuple[list[Array], tuple[IterationStep, ...]]:
    """PageRank (float[n], sum 1) for each personalisation (float[n] >= 0; None: uniform), all in one pass.

    The mass of pages without links is spread uniformly whatever the personalisation. ValueError: as of `solve`.
    """
    uniform = np.full(1, (1 - damping) / max(matrix.n, 1))
    asked, aside = (p for p in personalizations if p is not None), _aside(effort)
    personal = [scaled(p, matrix, 1 - damping, aside, f"jump-{k}") for k, p in enumerate(asked)]
    solution = solve(matrix, [uniform, *personal], damping, effort, watch)
    u, *others = solution.vectors.T
    without = matrix.share == 0
    mixed = iter([_with_dangling(u, v, without, damping) for v in others])
    ranks = [u if p is None else next(mixed) for p in personalizations]
    return [rank / rank.sum(dtype=np.float64).astype(rank.dtype) for rank in ranks], solution.steps


def _aside(effort: Effort | None) -> Allocate:
    """Return the place of arrays that `place` does not count: with a cap to files, as far as there are any."""
    return effort.spill if effort and effort.spill and effort.memory is not None else in_ram


def _with_dangling(u: Array, v: Array, without: Mask, damping: float) -> Array:
    """The ranking for jumps whose flow is v, where dangling mass flows like u; both are flows of jumps of 1-c."""
    stay = 1 - damping
    lost_u, lost_v = (float(flow.sum(dtype=np.float64, where=without)) / stay for flow in (u, v))
    dangling = stay * lost_v / (1 - damping * lost_u)
    mixed: Array = u * u.dtype.type(damping * dangling / stay)
    mixed += v
    return mixed


def interest(
    matrix: Matrix,
    targets: Array,
    damping: float = DAMPING,
    effort: Effort | None = None,
    watch: Watch | None = None,
) -> tuple[Array, tuple[IterationStep, ...]]:
    """Compute how surely pages lead to `targets` (float[n] >= 0: 1 for XML, or PR_XML, or any focus), float[n] (P1
    5.2).

    matrix: `reversed_graph` (reading a: scaled to sum 1) or `mean_of_children` (reading b: the discounted chance
    itself, between 0 and the greatest target). What leads to no target has interest 0: nothing is spread uniformly.
    """
    aim, chance = scaled(targets, matrix, 1 - damping, _aside(effort), "targets"), matrix.averages
    solution = solve(matrix, [aim], damping, effort, watch)
    found = solution.vectors[:, 0]
    scale = float(np.sum(targets, dtype=np.float64)) if chance else 1 / float(found.sum(dtype=np.float64))
    return found * found.dtype.type(scale), solution.steps


def scaled(weights: Array, matrix: Matrix, total: float, allocate: Allocate = in_ram, name: str = "") -> Array:
    """Weights of pages, as the matrix's rankings are typed and of sum `total`. ValueError: they cannot be."""
    values = np.asarray(weights, matrix.share.dtype)
    if values.shape != (matrix.n,) or not (values.size and values.min() >= 0 and 0 < values.max() < np.inf):
        raise ValueError(f"weights of pages: {matrix.n} finite numbers >= 0, not all 0")
    found = allocate(name, values.shape, values.dtype)
    np.multiply(values, values.dtype.type(total / float(values.sum(dtype=np.float64))), out=found)
    return found
