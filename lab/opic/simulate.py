"""OPIC on a graph held in memory: reads against error (P2 figures 2-6). Used by the tests and by `xyro lab opic`.

Cash is the product's integer cash; every page starts with one page's worth. A read spends a page's cash over its
links. With `batch` > 1 the pages of a batch spend at the same time (Jacobi), as a commit group does; 1 is the
papers' algorithm, which `fast.advance` does in machine code, unit for unit as `advance` here.

A run is a log: which pages were read, what each held, and what the clock said. Selectors and cash make the log,
history policies only read it, so any number of them is compared on the very same reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from xyro.lab.opic.histories import History
from xyro.lab.opic.selectors import Cash, Selector
from xyro.opic.arrays import Pages, Reals, Units
from xyro.opic.cash import DAMPING, UNIT, VirtualPage, credit, seeds_of, shares
from xyro.opic.graph import Graph
from xyro.opic.importance import normalise


@dataclass(frozen=True, slots=True)
class Point:
    """The errors of the estimate against the true importance after `reads` reads."""

    reads: int
    turnovers: float
    all_error: float
    """mean relative error over all pages, per cent"""
    top_error: float
    """the same over the most important tenth"""
    spearman: float


class SimulatedWorld:
    """The cash of a graph while its pages are spent. Holds: sum of cash + virtual page = UNIT x n (`total`)."""

    def __init__(self, graph: Graph, damping: float = DAMPING) -> None:
        self.graph, self.damping = graph, damping
        self.keys: Units = np.full(graph.n, UNIT, np.int64)
        self.virtual = VirtualPage()
        self.visits = np.zeros(graph.n, np.int64)
        self.spent = 0

    @property
    def total(self) -> int:
        return int(self.keys.sum()) + self.virtual.scalar * self.graph.n + self.virtual.balance

    @property
    def cash(self) -> Units:
        """Effective cash of every page, units."""
        return self.keys + self.virtual.scalar

    @property
    def turnovers(self) -> float:
        return self.spent / (UNIT * self.graph.n)

    def cash_in_hand(self) -> Cash:
        """The cash as selectors see it."""
        return Cash(self.keys, self.virtual.scalar) if type(self) is SimulatedWorld else Cash(self.cash, 0)

    def spend(self, pages: Pages) -> Pages:
        """Spend these pages (distinct) at the same time; returns the pages whose key changed, with repeats."""
        cash = self.keys[pages] + self.virtual.scalar
        indptr, targets = self.graph.links_of(pages)
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.visits[pages]), self.damping)
        self.keys[pages] = -self.virtual.scalar
        self.visits[pages] += 1
        credit(self.keys, targets, amounts)
        self.spent += int(cash.sum())
        self.virtual.receive(int(virtual.sum()))
        self.virtual.pay(self.graph.n)
        return np.concatenate((pages, targets))


class SimulationLog(NamedTuple):
    """Reads in their order: page int64[k], the cash it held (page-units), the clock before it was spent (turnovers)."""

    pages: Pages
    cash: Reals
    when: Reals


Advance = Callable[[SimulatedWorld, Selector, int], SimulationLog]
"""Read so many pages, as the selector picks them, and say what was read."""


def advance(world: SimulatedWorld, select: Selector, reads: int, batch: int = 1) -> SimulationLog:
    """Read `reads` pages, `batch` at the same time; fewer where nobody holds cash any more."""
    pages, cash, when = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    while reads > 0:
        cash_in_hand = world.cash_in_hand()
        picked = select.pick(cash_in_hand, min(batch, reads))
        if not picked.size:  # nobody holds cash
            break
        pages.append(picked)
        cash.append(cash_in_hand.of_pages(picked) / UNIT)
        when.append(np.full(picked.size, world.turnovers))
        touched = world.spend(picked)
        select.changed(world.cash_in_hand(), touched)
        reads -= picked.size
    return SimulationLog(np.concatenate(pages), np.concatenate(cash), np.concatenate(when))


def remember(histories: Sequence[History], log: SimulationLog) -> None:
    """Tell the policies what was read: the n-th reads of all pages at once, for each n, since pages are independent."""
    for part in in_rounds(log.pages):
        for history in histories:
            history.measure(log.pages[part], log.cash[part], log.when[part])


def in_rounds(pages: Pages) -> Iterator[Pages]:
    """Yield the offsets in `pages` of first occurrences, then of second ones, and so on."""
    order = np.argsort(pages, kind="stable")
    starts = np.flatnonzero(np.diff(pages[order], prepend=-1))
    counts = np.diff(np.append(starts, pages.size))
    turn = np.arange(pages.size) - np.repeat(starts, counts)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))[:-1]
    yield from np.split(order[by_turn], ends) if pages.size else []


def run(
    graph: Graph,
    select: Selector,
    histories: Sequence[History],
    reads: Sequence[int],
    truth: Reals,
    *,
    batch: int = 1,
    damping: float = DAMPING,
    advance: Advance | None = None,
) -> list[list[Point]]:
    """Read until each of `reads` (rising counts); returns one list of points per history, all from the same run.

    `truth` is the importance float64[n], of any scale (compared at mean 1). `advance` replaces the function of that
    name, and `batch` with it. ArithmeticError: cash was not conserved.
    """
    world = SimulatedWorld(graph, damping)
    points: list[list[Point]] = [[] for _ in histories]
    truth = normalise(truth)
    for done in states(world, select, histories, reads, advance or in_batches(batch)):
        for history, line in zip(histories, points, strict=True):
            estimate = history.estimate(world.cash / UNIT, world.turnovers)
            line.append(Point(done, world.turnovers, *errors(estimate, truth), spearman(estimate, truth)))
    if world.total != UNIT * graph.n:
        raise ArithmeticError(f"cash {world.total}, expected {UNIT * graph.n}")
    return points


def in_batches(batch: int) -> Advance:
    """`advance` with so many pages at the same time."""
    return lambda world, select, reads: advance(world, select, reads, batch)


LOGGED = 20
"""times per N reads that policies hear of the log: what is told in rounds is out of order between pages by no more"""


def states(
    world: SimulatedWorld,
    select: Selector,
    histories: Sequence[History],
    reads: Sequence[int],
    advance: Advance = advance,
) -> Iterator[int]:
    """Read on, stopping at each count of `reads`."""
    done = 0
    for goal in reads:
        while done < goal:
            log = advance(world, select, min(max(1, world.graph.n // LOGGED), goal - done))
            if not log.pages.size:
                return
            remember(histories, log)
            done += log.pages.size
        yield done


def errors(estimate: Reals, truth: Reals, top: float = 0.1) -> tuple[float, float]:
    """Mean relative error in per cent over all pages and over the `top` share of them."""
    wrong = 100 * np.abs(estimate / truth - 1)
    best = np.argsort(truth)[-max(1, round(top * truth.size)) :]
    return float(wrong.mean()), float(wrong[best].mean())


def spearman(a: Reals, b: Reals) -> float:
    """Rank correlation, ties at their mean rank; 1.0 where one of them is constant."""
    x, y = (_ranks(values) - (values.size - 1) / 2 for values in (a, b))
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm > 0 else 1.0


def _ranks(values: Reals) -> Reals:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count + 1) / 2)[place]
