"""Other orders of discovery, by short simulations that use nothing of the crawler: one page at a time, no politeness.

oracle         the most important page of the frontier: importance is known
breadth-first  pages as they were found
cho            PageRank of the known graph, recomputed at every hundredth of the pages (Cho, Garcia-Molina, Page 1998)
opic           plain OPIC: the richest page first, no virtual page (P2)
backlinks      the page that most read pages link to
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xyro.lab.order.laid_graphs import Ints, LinkGraph, Reals, page_rank

Simulation = Callable[[LinkGraph, Sequence[int], int, NDArray[np.bool_]], list[int]]


def _best_first(
    graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_], gain: Callable[[int, int], float]
) -> list[int]:
    """Read the page of the greatest sum of gains: gain(page, child) as each read page shows its children."""
    worth = dict.fromkeys(seeds, 0.0)
    heap = [(0.0, page) for page in seeds]
    read: list[int] = []
    done: set[int] = set()
    while heap and len(read) < limit:
        _, page = heapq.heappop(heap)
        if page in done:
            continue
        done.add(page)
        read.append(page)
        if failing[page]:
            continue
        for child in graph.indices[graph.indptr[page] : graph.indptr[page + 1]].tolist():
            worth[child] = worth.get(child, 0.0) + gain(page, child)
            if child not in done:
                heapq.heappush(heap, (-worth[child], child))
    return read


def oracle(graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_]) -> list[int]:
    """The most important page of the frontier first."""
    importance = graph.importance.tolist()
    found: set[int] = set(seeds)

    def gain(page: int, child: int) -> float:
        new = child not in found
        found.add(child)
        return float(importance[child]) if new else 0.0

    return _best_first(graph, seeds, limit, failing, gain)


def breadth_first(graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_]) -> list[int]:
    """Pages in the order in which they were found."""
    found = dict.fromkeys(seeds, 0)

    def gain(page: int, child: int) -> float:
        if child in found:
            return 0.0
        found[child] = len(found)
        return -float(found[child])

    return _best_first(graph, seeds, limit, failing, gain)


def backlinks(graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_]) -> list[int]:
    """The page that most read pages link to first."""
    return _best_first(graph, seeds, limit, failing, lambda page, child: 1.0)


def opic(graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_]) -> list[int]:
    """The richest page first; a page pays all it has to its children, in equal parts."""
    cash = np.zeros(graph.pages)
    cash[list(seeds)] = 1.0
    degrees = np.diff(graph.indptr)
    paying, paid = -1, 0.0

    def gain(page: int, child: int) -> float:
        nonlocal paying, paid
        if page != paying:
            paying, paid, cash[page] = page, cash[page] / degrees[page], 0.0
        cash[child] += paid
        return float(paid)

    return _best_first(graph, seeds, limit, failing, gain)


def cho(graph: LinkGraph, seeds: Sequence[int], limit: int, failing: NDArray[np.bool_]) -> list[int]:
    """The unread page of the greatest PageRank of the graph that is known; newly found ones wait for the next count."""
    n, step = graph.pages, max(1, graph.pages // 100)
    met, done, read = np.zeros(n, np.bool_), np.zeros(n, np.bool_), list[int]()
    met[list(seeds)] = True
    while len(read) < limit and (unread := np.flatnonzero(met & ~done)).size:
        rank = _known_rank(graph, met, done & ~failing)
        chosen = unread[np.argsort(-rank[unread], kind="stable")][: min(step, limit - len(read))]
        read += chosen.tolist()
        done[chosen] = True
        for page in chosen[~failing[chosen]].tolist():
            met[graph.indices[graph.indptr[page] : graph.indptr[page + 1]]] = True
    return read


def _known_rank(graph: LinkGraph, met: NDArray[np.bool_], shown: NDArray[np.bool_]) -> Reals:
    """PageRank over the known pages, of which only those `shown` have links; 0 for the others."""
    pages = np.flatnonzero(met)
    number: Ints = np.full(graph.pages, -1)
    number[pages] = np.arange(len(pages))
    degrees = np.where(shown, np.diff(graph.indptr), 0)
    links = graph.indices[np.repeat(shown, np.diff(graph.indptr))]
    rank = np.zeros(graph.pages)
    rank[pages] = page_rank(np.concatenate([[0], np.cumsum(degrees[pages])]), number[links])
    return rank


ORDERS: dict[str, Simulation] = {
    "oracle": oracle,
    "breadth-first": breadth_first,
    "cho": cho,
    "opic": opic,
    "backlinks": backlinks,
}
