"""A link graph in CSR form, and graphs whose importance is known by construction or by the papers' figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from xyro.opic.arrays import Mask, Pages


@dataclass(frozen=True)
class Graph:
    """n pages; page i links to indices[indptr[i]:indptr[i+1]] (int64). Self links and repeated links are kept as
    given."""

    indptr: Pages
    indices: Pages

    def __post_init__(self) -> None:
        rows_fit = self.indptr.size > 0 and self.indptr[0] == 0 and self.indptr[-1] == self.indices.size
        if not rows_fit or (np.diff(self.indptr) < 0).any():
            raise ValueError("Graph.indptr: n + 1 rising offsets from 0 to the number of links")
        if self.indices.size and not (self.indices.min() >= 0 and self.indices.max() < self.n):
            raise ValueError("Graph.indices: pages 0..n-1")

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    @property
    def m(self) -> int:
        return self.indices.size

    @cached_property
    def out_degree(self) -> Pages:
        return np.diff(self.indptr)

    @cached_property
    def in_degree(self) -> Pages:
        return np.bincount(self.indices, minlength=self.n)

    @cached_property
    def dangling(self) -> Mask:
        """Pages without links."""
        without: Mask = self.out_degree == 0
        return without

    @cached_property
    def sources(self) -> Pages:
        """The source of every link, beside `indices`."""
        return np.repeat(np.arange(self.n), self.out_degree)

    def children(self, page: int) -> Pages:
        return self.indices[self.indptr[page] : self.indptr[page + 1]]

    def links_of(self, pages: Pages) -> tuple[Pages, Pages]:
        """The links of some pages in CSR form: (indptr int64[k+1], targets int64[m])."""
        degree = self.out_degree[pages]
        indptr = np.concatenate(([0], np.cumsum(degree)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[pages] - indptr[:-1], degree)
        return indptr, self.indices[places]

    def transpose(self) -> Graph:
        """Every link turned round."""
        return from_links(self.n, self.indices, self.sources)


def from_links(n: int, sources: Pages, targets: Pages) -> Graph:
    """The graph of n pages with links sources[k] -> targets[k], each page's links in the order given."""
    order = np.argsort(sources, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=n))))
    return Graph(indptr, np.asarray(targets, np.int64)[order])


def from_lists(children: list[list[int]]) -> Graph:
    """The graph where page i links to children[i]."""
    indptr = np.cumsum([0] + [len(row) for row in children])
    return Graph(indptr, np.array([child for row in children for child in row], np.int64))


def tiny() -> Graph:
    """Five pages whose importance the tests tell: 0 -> 1, 2; 1 -> 2; 2 -> 0; 3 -> 2; 4 without links."""
    return from_lists([[1, 2], [2], [0], [2], []])


def cycle(n: int) -> Graph:
    """0 -> 1 -> ... -> n-1 -> 0: importance 1/n everywhere."""
    return Graph(np.arange(n + 1), (np.arange(n) + 1) % n)


def complete(n: int) -> Graph:
    """Every page links to every other: importance 1/n everywhere."""
    return from_lists([[j for j in range(n) if j != i] for i in range(n)])


def star(leaves: int) -> Graph:
    """Page 0 links to all leaves 1..n, each of which links back. Hub: (c + (1-c)/(n+1)) / (1+c)."""
    return from_lists([list(range(1, leaves + 1))] + [[0]] * leaves)


def path(n: int) -> Graph:
    """0 -> 1 -> ... -> n-1, which has no links."""
    return from_lists([[i + 1] for i in range(n - 1)] + [[]])


def power_law(n: int, rng: np.random.Generator, least: int = 2, limit: int = 0, exponent: float = 2.1) -> Pages:
    """n draws of k with P(k) ~ k^-exponent on [least, most or n/10]: int64[n]."""
    values = np.arange(least, (limit or max(n // 10, least)) + 1)
    steps = np.cumsum(values.astype(np.float64) ** -exponent)
    return values[np.searchsorted(steps / steps[-1], rng.random(n), side="right")]


def standard(n: int, rng: np.random.Generator) -> Graph:
    """The papers' graph: in-degree ~ k^-2.1 on [2, n/10], sources uniform."""
    targets = np.repeat(np.arange(n), power_law(n, rng))
    return from_links(n, rng.integers(n, size=targets.size), targets)
