"""The inner loops of offline.py in numpy: the twin of rank_kernels.py, and its stand-in where numba is not installed.

Jacobi gives the same vectors (to rounding). In place, a row here sees the rows above its slice of SLICE rows, not those
within it: P1's Gauss-Seidel over slices of the matrix, on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SLICE = 1 << 16


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
    """One vector, or [n, K] of them: see rank_kernels.sweep and sweep_many."""
    sums[...] = 0.0
    tail = y.shape[1:]
    for low in range(0, y.shape[0], SLICE):
        rows = slice(low, min(low + SLICE, y.shape[0]))
        ends = indptr[low : rows.stop + 1].astype(np.int64)
        links = slice(int(ends[0]), int(ends[-1]))
        carried = before[sources[links]].astype(np.float64)
        carried *= _beside(weights[links] if weights.size > 1 else weights, tail)
        totals = np.concatenate((np.zeros((1, *tail)), np.cumsum(carried, axis=0)))
        flow = totals[ends[1:] - ends[0]] - totals[ends[:-1] - ends[0]]
        scale = damping * (row[rows] if row.size > 1 else row).astype(np.float64)
        new = _beside(scale, tail) * flow + lift * (jump[rows] if jump.size > 1 else jump)
        sums[0, 0] += np.abs(new - y[rows]).sum(axis=0)
        sums[0, 1] += new.sum(axis=0)
        sums[0, 2] += new[share[rows] == 0].sum(axis=0)
        y[rows] = new
        after[rows] = y[rows] * _beside(share[rows], tail)


sweep_many = sweep


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
    """See rank_kernels.sweep_alone."""
    sums, bounds = np.zeros((1, 3)), np.array([0, y.size])
    sweep(indptr, sources, weights, row, share, jump, y, z, z, damping, np.ones(1), bounds, sums)
    return float(sums[0, 0]), float(sums[0, 1])


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
    """See rank_kernels.sweep_both."""
    flow[:] = 0.0
    for low in range(0, y.size, SLICE):
        high = min(low + SLICE, y.size)
        links = slice(int(indptr[low]), int(indptr[high]))
        carried = np.repeat(upward[low:high].astype(np.float64), np.diff(indptr[low : high + 1]))
        np.add.at(flow, sources[links], carried * (weights[links] if weights.size > 1 else weights))
    sums, bounds = np.zeros((1, 3)), np.array([0, y.size])
    sweep(indptr, sources, weights, np.ones(1, y.dtype), share, jump, y, z, z, damping, lift, bounds, sums)
    return float(sums[0, 0]), float(sums[0, 1]), float(sums[0, 2])


def _beside(factors: Array, tail: tuple[int, ...]) -> Array:
    """Factors of rows, shaped to multiply rows of any width."""
    return factors.reshape(factors.shape + (1,) * len(tail))


def place(rows: Array, columns: Array, weights: Array, cursor: Array, sources: Array, placed: Array) -> None:
    """See rank_kernels.place."""
    order = np.argsort(rows, kind="stable")
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    counts = np.diff(np.append(starts, rows.size))
    nth = np.arange(rows.size) - np.repeat(starts, counts)
    slots = cursor[rows[order]].astype(np.int64) + nth
    sources[slots] = columns[order]
    if placed.size > 1:
        placed[slots] = weights[order]
    cursor[rows[order][starts]] += counts.astype(cursor.dtype)
