"""The inner loops of offline.py in machine code; each has a twin of the same name in rank_numpy.py.

A sweep computes, for every row i of the blocks bounds[b]:bounds[b+1] (one thread each),

    y[i] = damping * row[i] * sum over links k of row i of weights[k] * before[sources[k]]  +  lift * jump[i]
    after[i] = y[i] * share[i]

Jacobi: `before` and `after` are two vectors. In place (Gauss-Seidel): they are one, so a row sees what the rows above
it have just become, and with several blocks whatever the other threads have written so far (chaotic iterations, P1
5.4).
`row`, `weights` and `jump` may have one entry, which then stands for all. Sums are float64 whatever the vectors are:
sums[b] = (L1 norm of the step, sum of the new y, its part on pages without links), each [K] for K vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from xyro.opic.jit import compiled, in_parallel, prange

Array = npt.NDArray[Any]


@compiled
def _flow(first: int, last: int, sources: Array, weights: Array, before: Array) -> Any:
    """Sum what comes in over links first..last-1. Unsigned numbers: signed ones would each be asked if they count from
    the end, which takes a quarter of the time."""
    flow = 0.0
    if weights.size > 1:
        for k in range(np.uint64(first), np.uint64(last)):
            flow += weights[k] * before[np.uint64(sources[k])]
        return flow
    for k in range(np.uint64(first), np.uint64(last)):
        flow += before[np.uint64(sources[k])]
    return flow * weights[0]


@compiled
def _rows(
    low: int,
    high: int,
    indptr: Array,
    sources: Array,
    weights: Array,
    row: Array,
    share: Array,
    jump: Array,
    y: Array,
    before: Array,
    after: Array,
    damping: float,
    lift: float,
) -> tuple[float, float, float]:
    """The sweep of rows low..high-1, and its sums."""
    step, total, lost = 0.0, 0.0, 0.0
    many_rows, many_jumps = row.size > 1, jump.size > 1
    for i in range(np.uint64(low), np.uint64(high)):
        flow = _flow(indptr[i], indptr[i + np.uint64(1)], sources, weights, before)
        new = damping * (row[i] if many_rows else row[0]) * flow + lift * (jump[i] if many_jumps else jump[0])
        step += abs(new - y[i])
        total += new
        if share[i] == 0.0:
            lost += new
        y[i] = new
        after[i] = y[i] * share[i]
    return step, total, lost


@in_parallel
def sweep(
    indptr: Array,
    sources: Array,
    weights: Array,
    row: Array,
    share: Array,
    jump: Array,
    y: Array,
    before: Array,
    after: Array,
    damping: float,
    lift: Array,
    bounds: Array,
    sums: Array,
) -> None:
    """One vector: y, before, after and jump are [n], lift is [1]."""
    for b in prange(bounds.size - 1):
        sums[b, 0], sums[b, 1], sums[b, 2] = _rows(
            bounds[b], bounds[b + 1], indptr, sources, weights, row, share, jump, y, before, after, damping, lift[0]
        )


@compiled
def sweep_alone(
    indptr: Array,
    sources: Array,
    weights: Array,
    row: Array,
    share: Array,
    jump: Array,
    y: Array,
    z: Array,
    damping: float,
) -> tuple[float, float]:
    """All rows of one slice in place on the calling thread: (L1 norm of the step, sum). For workers that have a thread
    each: the loops of `sweep` may not be entered from two."""
    step, total, _ = _rows(0, y.size, indptr, sources, weights, row, share, jump, y, z, z, damping, 1.0)
    return step, total


@compiled
def sweep_both(
    indptr: Array,
    sources: Array,
    weights: Array,
    share: Array,
    jump: Array,
    y: Array,
    z: Array,
    upward: Array,
    flow: Array,
    damping: float,
    lift: Array,
) -> tuple[float, float, float]:
    """One pass over the links in both directions: y, z as of `sweep` in place, and flow[j] = sum over the pages i that
    j links to of weight x upward[i], float64[n]. -> the sums of y"""
    step, total, lost = 0.0, 0.0, 0.0
    flow[:] = 0.0
    for i in range(np.uint64(y.size)):
        inflow, outward = 0.0, np.float64(upward[i])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            source, weight = np.uint64(sources[k]), weights[k if weights.size > 1 else np.uint64(0)]
            inflow += weight * z[source]
            flow[source] += weight * outward
        new = damping * inflow + lift[0] * (jump[i] if jump.size > 1 else jump[0])
        step += abs(new - y[i])
        total += new
        if share[i] == 0.0:
            lost += new
        y[i] = new
        z[i] = y[i] * share[i]
    return step, total, lost


@in_parallel
def sweep_many(
    indptr: Array,
    sources: Array,
    weights: Array,
    row: Array,
    share: Array,
    jump: Array,
    y: Array,
    before: Array,
    after: Array,
    damping: float,
    lift: Array,
    bounds: Array,
    sums: Array,
) -> None:
    """K vectors in one pass over the links: y, before, after and jump are [n, K], lift is [K]."""
    width = y.shape[1]
    for block in prange(bounds.size - 1):
        flow = np.empty(width)
        sums[block] = 0.0
        for i in range(bounds[block], bounds[block + 1]):
            flow[:] = 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                source, weight = np.uint64(sources[k]), weights[k if weights.size > 1 else np.uint64(0)]
                for column in range(width):
                    flow[column] += weight * before[source, column]
            scale = damping * row[i if row.size > 1 else 0]
            for column in range(width):
                new = scale * flow[column] + lift[column] * jump[i, column]
                sums[block, 0, column] += abs(new - y[i, column])
                sums[block, 1, column] += new
                if share[i] == 0.0:
                    sums[block, 2, column] += new
                y[i, column] = new
                after[i, column] = y[i, column] * share[i]


@compiled
def place(rows: Array, columns: Array, weights: Array, cursor: Array, sources: Array, placed: Array) -> None:
    """Link k goes from page columns[k] to page rows[k]: enter it at the cursor of its row, which moves on."""
    for k in range(rows.size):
        slot = cursor[rows[k]]
        cursor[rows[k]] = slot + 1
        sources[slot] = columns[k]
        if placed.size > 1:
            placed[slot] = weights[k]
