"""simulate.advance in machine code: some 5 million reads a second where that needs half a minute a million.

Numbers come out equal to the twin's, unit for unit and page for page; a selector that this module does not know goes
to the twin.
"""

from __future__ import annotations

import numpy as np

from xyro.lab.opic import simulate, spend_kernels
from xyro.lab.opic.buckets import Buckets
from xyro.lab.opic.selectors import Cycle, Greedy, Random, Selector, SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, SimulationLog
from xyro.opic.arrays import Pages, Units
from xyro.opic.cash import UNIT, VirtualPage

Columns = tuple[Pages, Pages, Units, Pages, Units, int]


def advance(world: SimulatedWorld, select: Selector, reads: int) -> SimulationLog:
    """Read `reads` pages one by one, as `select` picks them."""
    if (
        type(world) is not SimulatedWorld or not world.cash.any()
    ):  # it shares cash otherwise (focus_world.py); nobody holds any
        return simulate.advance(world, select, reads)
    books = np.array([world.virtual.scalar, world.virtual.pot, world.virtual.account, world.spent])
    weight = round((1 - world.damping) * (1 << 31))
    columns = world.graph.indptr, world.graph.indices, world.keys, world.visits, books, weight
    log = np.empty(reads, np.int64), np.empty(reads, np.int64), np.empty(reads, np.int64)
    if not _is_supported(select, columns, log):
        return simulate.advance(world, select, reads)
    scalar, pot, account, world.spent = (int(units) for units in books)
    world.virtual = VirtualPage(pot, account, scalar)
    pages, cash, before = log
    return SimulationLog(pages, cash / UNIT, before / (UNIT * world.graph.n))


def _is_supported(select: Selector, columns: Columns, log: tuple[Pages, Units, Units]) -> bool:
    """Fill the log by the selector's kernel, and leave the selector as its own `pick` would."""
    if isinstance(select, Cycle):
        _cycle(select, columns, log)
    elif isinstance(select, Random):
        log[0][:] = select.draw(columns[2].size, log[0].size)
        spend_kernels.in_order(*columns, *log)
    elif isinstance(select, SweepSelector):
        _sweep(select, columns, log)
    elif isinstance(select, Greedy):
        spend_kernels.by_greed(*columns, *log, tournament(columns[2]))
        select.renew(columns[2])
    elif isinstance(select, Buckets):
        _buckets(select, columns, log)
    else:
        return False
    return True


def _cycle(select: Cycle, columns: Columns, log: tuple[Pages, Units, Units]) -> None:
    n = columns[2].size
    log[0][:] = (select.pointer + np.arange(log[0].size)) % n
    select.pointer = (select.pointer + log[0].size) % n
    spend_kernels.in_order(*columns, *log)


def _sweep(select: SweepSelector, columns: Columns, log: tuple[Pages, Units, Units]) -> None:
    real = np.array([select.theta, select.target])
    whole = np.array([select.pointer, select.scanned, select.hits])
    spend_kernels.by_sweep(*columns, *log, real, whole)
    select.theta, select.pages = float(real[0]), columns[2].size
    select.pointer, select.scanned, select.hits = (int(number) for number in whole)


def _buckets(select: Buckets, columns: Columns, log: tuple[Pages, Units, Units]) -> None:
    """The stacks are rebuilt every n/2 reads, which happens here between two calls of the kernel."""
    done = 0
    while done < log[0].size:
        if select.left <= 0:
            select.rebuild(columns[2], int(columns[4][spend_kernels.SCALAR]))
        end = min(log[0].size, done + select.left)
        part = log[0][done:end], log[1][done:end], log[2][done:end]
        spend_kernels.by_buckets(*columns, *part, select.level, select.top, select.below, select.above)
        select.left -= end - done
        done = end


def tournament(keys: Units) -> Pages:
    """A pairwise tournament: int64[2 m], m the power of two >= n; node i holds the richer page of 2i and 2i+1."""
    size = 1 << max(keys.size - 1, 1).bit_length()
    tree = np.full(2 * size, -1, np.int64)
    tree[size : size + keys.size] = np.arange(keys.size)
    while size > 1:
        left, right = tree[size : 2 * size : 2], tree[size + 1 : 2 * size : 2]
        better = (right < 0) | (keys[left] >= keys[right])
        tree[size // 2 : size] = np.where(better, left, right)
        size //= 2
    return tree
