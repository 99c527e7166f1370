"""The offline reference: PageRank by power iteration, and the fixpoint of OPIC with its virtual page.

P1 eq. (6)-(8) lose the mass of pages without links and renormalise, which raises the damping; here it is spread
uniformly. Then OPIC's flow over the real pages IS PageRank with the same damping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING
from xyro.opic.graph import Graph


@dataclass(frozen=True, slots=True)
class PageRankResult:
    """`rank` float64[n] of sum 1; `virtual` is the share of the virtual page beside it (0 in plain PageRank)."""

    rank: Reals
    iterations: int
    residual: float
    """L1 norm of the last step; the L1 error is at most residual x c / (1-c), since a step contracts by c"""
    virtual: float = 0.0


def push(graph: Graph, weight: Reals) -> Reals:
    """Each page gives weight[i] over each of its links: float64[n], what the pages receive."""
    carried = np.repeat(weight, graph.out_degree)
    return np.bincount(graph.indices, weights=carried, minlength=graph.n).astype(np.float64, copy=False)


def pagerank(
    graph: Graph,
    damping: float = DAMPING,
    personalization: Reals | None = None,
    tolerance: float = 1e-12,
    max_steps: int = 1000,
    start: Reals | None = None,
    dangling: Reals | None = None,
) -> PageRankResult:
    """PR = c (M PR + dangling mass x q) + (1-c) p, by power iteration until a step's L1 norm is below `tolerance`.

    personalization p and dangling q (float64[n], >= 0, uniform by default) are scaled to sum 1. With q = p this is the
    flow of an OPIC whose virtual page pays in proportion to p: pages without links pay it, too.
    ValueError: an empty graph, damping outside 0..1, vectors that cannot be scaled.
    """
    if graph.n == 0 or not 0 <= damping <= 1:
        raise ValueError("pagerank: at least one page, damping between 0 and 1")
    even = np.ones(graph.n)
    jump = _scaled(even if personalization is None else personalization, graph.n)
    refuge = _scaled(even if dangling is None else dangling, graph.n)
    share = damping / np.maximum(graph.out_degree, 1)
    rank, step, iteration = _scaled(jump if start is None else start, graph.n), np.inf, 0
    while step >= tolerance and iteration < max_steps:
        iteration += 1
        lost = damping * float(rank[graph.dangling].sum())
        after = push(graph, rank * share) + lost * refuge + (1 - damping) * jump
        step = float(np.abs(after - rank).sum())
        rank = after
    return PageRankResult(rank, iteration, step)


def _scaled(weights: Reals, n: int) -> Reals:
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(f"weights of pages: {n} finite numbers >= 0, not all 0")
    scaled: Reals = weights / weights.sum()
    return scaled


def to_virtual(graph: Graph, damping: float = DAMPING) -> Reals:
    """f_i with constant damping: 1-c of a page's cash goes to the virtual page, everything where it has no links."""
    return np.where(graph.dangling, 1.0, 1.0 - damping)


def to_virtual_by_small_edges(graph: Graph, weight: float = 1.0) -> Reals:
    """f_i = w / (d_i + w): one extra edge of weight w beside links of weight 1, a damping of its own for every page."""
    degree = graph.out_degree.astype(np.float64)
    fractions: Reals = weight / (degree + weight)
    return fractions


def fixpoint(
    graph: Graph,
    virtual: Reals,
    tolerance: float = 1e-14,
    max_steps: int = 10_000,
    personalization: Reals | None = None,
) -> PageRankResult:
    """OPIC's fixpoint over the n pages and the virtual page, where page i sends the fraction virtual[i] to the latter:

    x_j = sum over i -> j of (1-f_i) x_i / d_i + p_j x_v,  x_v = sum of f_i x_i,  everything of sum 1; p is the
    personalization scaled to sum 1, 1/N each by default.
    `rank` is x over the real pages (sum 1 - x_v): divide by 1 - x_v to compare it with PageRank.
    """
    paid = _scaled(np.ones(graph.n) if personalization is None else personalization, graph.n)
    share = (1.0 - virtual) / np.maximum(graph.out_degree, 1)
    rank = np.full(graph.n, 1.0 / (graph.n + 1))
    pot, step, iteration = 1.0 / (graph.n + 1), np.inf, 0
    while step >= tolerance and iteration < max_steps:
        iteration += 1
        # half a step at a time: page -> virtual page -> page is a loop of length 2, and alone it would swing for ever
        after = 0.5 * (rank + push(graph, rank * share) + pot * paid)
        income = 0.5 * (pot + float(virtual @ rank))
        step = float(np.abs(after - rank).sum()) + abs(income - pot)
        rank, pot = after, income
    return PageRankResult(rank, iteration, step, virtual=pot)
