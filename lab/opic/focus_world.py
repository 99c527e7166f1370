"""OPIC on a graph in memory under other terms: small edges, classes at the virtual page, weighted links.

A World (simulate.py) that shares cash as `Terms` say; selectors see cash itself, since keys of different classes
do not compare.
"""

from __future__ import annotations

import numpy as np

from xyro.lab.opic.simulate import SimulatedWorld
from xyro.opic.arrays import Mask, Pages, Reals, Units
from xyro.opic.cash import DAMPING, UNIT, Tolls, credit, seeds_of, shares
from xyro.opic.focus import FocusedPage, Terms
from xyro.opic.graph import Graph


class FocusWorld(SimulatedWorld):
    """classes and voices: int64[n] of the pages; weights: int64[m] of the links; None for all alike.

    Holds: sum of effective cash + virtual page = `total` = what there was in the beginning.
    """

    virtual: FocusedPage

    def __init__(
        self,
        graph: Graph,
        terms: Terms,
        classes: Pages | None = None,
        weights: Units | None = None,
        voices: Units | None = None,
        *,
        damping: float = DAMPING,
        cash: int = UNIT,
    ) -> None:
        """cash: what each page begins with. More of it makes the fixpoint finer than 1/65,536 of a page's worth."""
        super().__init__(graph, damping)
        self.tolls, self.weights, self.voices = Tolls(damping, terms.edge), weights, voices
        self.classes = np.zeros(graph.n, np.int64) if classes is None else classes
        self.virtual = FocusedPage(terms.weights)
        self.virtual.recount(self.classes)
        self.keys[:] = cash

    @property
    def total(self) -> int:
        return int(self.cash.sum()) + self.virtual.balance

    @property
    def cash(self) -> Units:
        effective: Units = self.keys + self.virtual.scalars[self.classes]
        return effective

    def spend(self, pages: Pages) -> Pages:
        """As World.spend, under the terms."""
        cash = self.keys[pages] + self.virtual.scalars[self.classes[pages]]
        indptr, targets = self.graph.links_of(pages)
        weights = None if self.weights is None else self.weights[_places(self.graph, pages)]
        voices = None if self.voices is None else self.voices[pages]
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.visits[pages]), self.tolls, weights, voices)
        self.keys[pages] -= cash
        self.visits[pages] += 1
        credit(self.keys, targets, amounts)
        self.spent += int(cash.sum())
        self.virtual.receive(int(virtual.sum()))
        self.virtual.pay(self.graph.n)
        return np.concatenate((pages, targets))


def flows(world: SimulatedWorld, batches: list[Pages], warm: int, rounds: int) -> Reals:
    """Flow through each page, of sum 1: all pages `rounds` times in these batches, after `warm` times that do not
    count (Cycle with a burn-in, which converges geometrically, as Gauss-Seidel does)."""
    passed = np.zeros(world.graph.n)
    for turn in range(warm + rounds):
        for batch in batches:
            if turn >= warm:
                passed[batch] += world.cash[batch]
            world.spend(batch)
    flow: Reals = passed / passed.sum()
    return flow


def internal_links(graph: Graph, hosts: Pages) -> Mask:
    """Mark the links that stay within their host: bool[m]. hosts: the host of each page, int64[n]."""
    same: Mask = hosts[graph.sources] == hosts[graph.indices]
    return same


def _places(graph: Graph, pages: Pages) -> Pages:
    """Return the places in graph.indices of the links of some pages, in the order of `Graph.links_of`."""
    degree = graph.out_degree[pages]
    starts = np.cumsum(degree) - degree
    places: Pages = np.arange(degree.sum()) + np.repeat(graph.indptr[pages] - starts, degree)
    return places
