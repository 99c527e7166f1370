"""The link matrix of the offline reference: who links to a page, in CSR form, in RAM or on memory-mapped files (P1
5.4).

A matrix is built from links given row by row, in two scans (count, then place), so it may be larger than memory. Page
ids are int32 and row pointers uint32 while they fit: 4 bytes a link, 4 a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from xyro.opic import rank_numpy
from xyro.opic.graph import Graph

Array = npt.NDArray[Any]
Row = tuple[int | Array, Array, Array | None]
"""(page, the pages it links to, the links' weights or None for 1 each); or many links: a page for each, not one"""
Real = type[np.float32] | type[np.float64]
Reading = Literal["pagerank", "reversed", "mean"]
Scan = Callable[[], Iterable[Row]]
"""all rows that have links, in any order; called twice, the same rows both times"""
Allocate = Callable[[str, tuple[int, ...], npt.DTypeLike], Array]
"""(name, shape, dtype) -> a zeroed array: in RAM, or mapped from a file of that name"""

BATCH = 1 << 20
"""links that are placed at a time"""


def in_ram(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array of zeros in memory."""
    return np.zeros(shape, dtype)


@dataclass(frozen=True)
class Matrix:
    """y[i] gets row[i] x sum of weights[k] x share[sources[k]] x y[sources[k]] over k = indptr[i]..indptr[i+1]-1.

    share[j]: what a unit on page j brings each link of weight 1; 0 where j has no links. Its type, float32 or float64,
    is that of all rankings made of the matrix (float64: exact to 1e-15, twice the RAM). row has the same type, weights
    are float32[m]; both may have one entry that stands for all.
    """

    indptr: Array
    sources: Array
    share: Array
    weights: Array
    row: Array
    averages: bool = False
    """rows are means over the page's own links: they do not hand a fixed sum on, as PageRank does"""

    def __post_init__(self) -> None:
        if self.indptr.size != self.n + 1 or int(self.indptr[-1]) != self.m or int(self.indptr[0]) != 0:
            raise ValueError(f"Matrix: {self.indptr.size} row pointers, {self.n} pages, {self.m} links do not fit")
        if self.weights.size not in (1, self.m) or self.row.size not in (1, self.n):
            raise ValueError("Matrix: a weight for each link and a factor for each row, or one for all")

    @property
    def n(self) -> int:
        return self.share.size

    @property
    def m(self) -> int:
        return self.sources.size

    def blocks(self, count: int) -> Array:
        """Row numbers that cut the matrix into `count` blocks of about as many links: int64[count + 1]."""
        cuts = [int(np.searchsorted(self.indptr, self.m * k // count)) for k in range(1, count)]
        return np.maximum.accumulate(np.array([0, *(min(cut, self.n) for cut in cuts), self.n]))


def loops(engine: str = "auto") -> ModuleType:
    """The module of inner loops: "numba", "numpy", or what is installed. ImportError: numba is not."""
    if engine == "numpy":
        return rank_numpy
    try:
        from xyro.opic import rank_kernels
    except ImportError:
        if engine == "numba":
            raise
        return rank_numpy
    return rank_kernels


def of_graph(graph: Graph, dtype: Real = np.float64) -> Matrix:
    """PageRank's matrix of a graph: a page gives each of its links an equal share of its rank."""
    return _by_links(graph.transpose(), graph.out_degree, dtype)


def reversed_graph(graph: Graph, dtype: Real = np.float64) -> Matrix:
    """Build the matrix of the graph with every link turned round: true PageRank there, share 1/in-degree. Interest,
    reading (a)
    of P1 5.2."""
    return _by_links(graph, graph.in_degree, dtype)


def mean_of_children(graph: Graph, dtype: Real = np.float64) -> Matrix:
    """A page gets the mean over the pages it links to: interest, reading (b) of P1 5.2, whose matrix is M^t (row sums
    1). With a target set as jump: the discounted chance that a random surfer who starts at the page meets a target."""
    links = _by_links(graph, np.ones(graph.n), dtype)
    return replace(links, row=_inverse(graph.out_degree, dtype), averages=True)


def _by_links(graph: Graph, degree: Array, dtype: Real) -> Matrix:
    indptr, sources = graph.indptr.astype(id_type(graph.m)), graph.indices.astype(id_type(graph.n))
    return Matrix(indptr, sources, _inverse(degree, dtype), np.ones(1, np.float32), np.ones(1, dtype))


def id_type(largest: int) -> npt.DTypeLike:
    """The narrowest type for numbers of 0..largest that the kernels are compiled for."""
    return np.int32 if largest < 2**31 else np.int64


def _inverse(sums: Array, dtype: Real) -> Array:
    """1/x, and 0 for 0."""
    return np.divide(1.0, sums, out=np.zeros(sums.size), where=sums > 0).astype(dtype)


def _invert(sums: Array, out: Array) -> None:
    """Invert into `out`, in little memory."""
    for low in range(0, sums.size, BATCH):
        out[low : low + BATCH] = _inverse(sums[low : low + BATCH], np.float64)


def from_rows(
    n: int,
    scan: Scan,
    *,
    reading: Reading = "pagerank",
    both: bool = False,
    weighted: bool = False,
    allocate: Allocate = in_ram,
    dtype: Real = np.float32,
    engine: str = "auto",
) -> Matrix:
    """The matrix of n pages from rows of links, by two scans; `allocate` may put it on files.

    reading: as `of_graph`, `reversed_graph` or `mean_of_children` do. weighted: a page shares its rank in proportion to
    the weights (> 0) that its row gives ("mean": is a mean so weighted). both: each link counts in both directions
    (P2 s.1). ValueError: a page outside 0..n-1, a weight that is not finite and > 0, scans that differ.
    """
    degree, cursor = allocate("degree", (n + 1,), np.int64), allocate("cursor", (n,), np.int64)
    sums = allocate("sums", (n,), np.float64)
    for origins, targets, weights in _batches(scan, both, reading):
        _check(n, origins, targets, weights)
        np.add.at(degree, targets + 1, 1)
        np.add.at(sums, targets if reading == "mean" else origins, weights if weighted else 1.0)
    np.cumsum(degree, out=degree)
    cursor[:] = degree[:-1]
    m = int(degree[-1])
    if m == 1:
        np.sign(sums, out=sums)  # an only link takes all, whatever its weight
    sources = allocate("sources", (m,), id_type(n))
    placed = allocate("weights", (m,), np.float32) if weighted and m > 1 else np.ones(1, np.float32)
    for origins, targets, weights in _batches(scan, both, reading):
        loops(engine).place(targets, origins, weights, cursor, sources, placed)
    if (cursor != degree[1:]).any():
        raise ValueError("from_rows: the second scan gave other links than the first")
    indptr, share = allocate("indptr", (n + 1,), id_type(m)), allocate("share", (n,), dtype)
    indptr[:] = degree
    if reading != "mean":
        _invert(sums, share)
        return Matrix(indptr, sources, share, placed, np.ones(1, dtype))
    row = allocate("row", (n,), dtype)
    share[:] = 1
    _invert(sums, row)
    return Matrix(indptr, sources, share, placed, row, averages=True)


def _batches(scan: Scan, both: bool, reading: Reading) -> Iterator[tuple[Array, Array, Array]]:
    """(origins, targets, weights) of about BATCH links at a time, turned round where the reading asks for it."""
    for origins, targets, weights in _forward(scan, both):
        yield (origins, targets, weights) if reading == "pagerank" else (targets, origins, weights)


def _forward(scan: Scan, both: bool) -> Iterator[tuple[Array, Array, Array]]:
    rows: list[Row] = []
    links = 0
    for row in scan():
        rows.append(row)
        links += row[1].size
        if links >= BATCH:
            yield _joined(rows, both)
            rows, links = [], 0
    yield _joined(rows, both)


def _joined(rows: Sequence[Row], both: bool) -> tuple[Array, Array, Array]:
    origins = np.concatenate([np.empty(0, np.int64), *(np.broadcast_to(row[0], row[1].shape) for row in rows)])
    origins = origins.astype(np.int64, copy=False)
    targets = np.concatenate([np.empty(0, np.int64), *(row[1] for row in rows)]).astype(np.int64, copy=False)
    weights = np.concatenate([np.empty(0), *(np.ones(row[1].size) if row[2] is None else row[2] for row in rows)])
    if both:
        return np.concatenate((origins, targets)), np.concatenate((targets, origins)), np.tile(weights, 2)
    return origins, targets, weights


def _check(n: int, origins: Array, targets: Array, weights: Array) -> None:
    for pages in (origins, targets):
        if pages.size and not (pages.min() >= 0 and pages.max() < n):
            raise ValueError(f"from_rows: pages are 0..{n - 1}")
    if weights.size != targets.size or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("from_rows: a weight > 0 for each link")
