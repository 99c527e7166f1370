"""A graph that changes while it is read, and the history policies that follow it (P2 figures 4 to 6).

A change of a page drops half of its in-links, rounded down but at least one (two in three changes), or doubles them
from random sources (one in three), which about keeps the number of links. Changes are spread evenly in time; `rate` is
the share of pages that change per N reads, none of them twice. Section B leaves both the rounding and the drawing open:
this reading is the nearest to its rows from 10 to 100 % (opic_policies.TRIED has the others).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from xyro.lab.opic import simulate
from xyro.lab.opic.histories import History
from xyro.lab.opic.measure import machine
from xyro.lab.opic.selectors import Selector
from xyro.lab.opic.simulate import SimulatedWorld, errors
from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import UNIT
from xyro.opic.graph import Graph, from_links
from xyro.opic.importance import normalise
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks

STEPS = 20
"""times per N reads that the graph takes in the changes due; 20 or 100 give the same errors"""
DEFINITION = 3
"""of what a change is: raised by hand, so that results kept on disk are computed anew"""
MEASURED = (8, 9, 10)
"""N reads at which errors are taken and then averaged"""


@dataclass(frozen=True, slots=True)
class Scores:
    """Mean relative errors in per cent against the importance of the graph of the moment, averaged over MEASURED."""

    all: float
    top: float


def change(graph: Graph, pages: Pages, rng: np.random.Generator) -> Graph:
    """The graph after one change of each of these pages (distinct)."""
    fate = np.zeros(graph.n, np.int8)
    fate[pages] = np.where(rng.random(pages.size) < 2 / 3, 1, 2)
    into = fate[graph.indices]
    survivors = np.ones(graph.m, np.bool_)
    halved = np.flatnonzero(into == 1)
    survivors[halved] = _halves(graph.indices[halved], rng)
    more = graph.indices[into == 2]
    sources = np.concatenate((graph.sources[survivors], rng.integers(graph.n, size=more.size)))
    return from_links(graph.n, sources, np.concatenate((graph.indices[survivors], more)))


def _halves(targets: Pages, rng: np.random.Generator) -> Mask:
    """Keep all but a random max(1, floor(d/2)) of the d links to each target: bool[links].

    A page that is halved often enough has no links left.
    """
    order = np.lexsort((rng.random(targets.size), targets))
    ordered = targets[order]
    rank = np.arange(ordered.size) - np.searchsorted(ordered, ordered)
    survivors = np.empty(ordered.size, np.bool_)
    survivors[order] = rank >= np.maximum(np.bincount(ordered)[ordered] // 2, 1)
    return survivors


def drawn(n: int, rate: float, rng: np.random.Generator) -> Iterator[Pages]:
    """The pages that change in each step, without end: STEPS steps share rate x n (at most n) pages without repeats."""
    ends = [round(step * rate * n / STEPS) for step in range(STEPS + 1)]
    while True:
        pages = rng.permutation(n)
        yield from (pages[low:high] for low, high in pairwise(ends))


def follow(
    graph: Graph,
    select: Selector,
    histories: Sequence[History],
    rate: float,
    rng: np.random.Generator,
    watch: Callable[[float], None] = lambda share: None,
) -> list[Scores]:
    """Read the graph 10 N times while it changes; how far off each policy is. rate: 0 to 1. ArithmeticError: cash was
    lost."""
    world, advance, n = SimulatedWorld(graph), machine(), graph.n
    changes = drawn(n, rate, rng)
    found: list[list[tuple[float, float]]] = [[] for _ in histories]
    for step in range(1, 10 * STEPS + 1):
        reads = step * n // STEPS - (step - 1) * n // STEPS
        simulate.remember(histories, advance(world, select, reads))
        pages = next(changes)
        if pages.size:
            world.graph = change(world.graph, pages, rng)
        if step % STEPS == 0 and step // STEPS in MEASURED:
            truth = _truth(world.graph)
            for line, history in zip(found, histories, strict=True):
                line.append(errors(history.estimate(world.cash / UNIT, world.turnovers), truth))
        watch(step / (10 * STEPS))
    if world.total != UNIT * n:
        raise ArithmeticError(f"cash {world.total}, expected {UNIT * n}")
    return [Scores(*(float(x) for x in np.mean(line, axis=0))) for line in found]


def _truth(graph: Graph) -> Reals:
    (rank,), _ = pageranks(of_graph(graph), effort=Effort(1e-7, threads=1))
    return normalise(rank)
