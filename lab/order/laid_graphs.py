"""Graphs with folders and hosts: computed ones, or a real one from a file; their true importance is known.

A graph's pages are numbers 0 .. n-1; a layout says in which folder and on which host each lies:

    blocks   folders of so many consecutive pages, hosts of so many folders: pages that were found together lie together
    random   the same with borders drawn at random
    flat     one host, no folders
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.wire.errors import InputError

LAYOUTS = ("blocks", "random", "flat")
DAMPING = 0.85
_ITERATIONS = 100
Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class LinkGraph(NamedTuple):
    """Links of page p: indices[indptr[p]:indptr[p+1]]. importance: PageRank, of sum 1."""

    indptr: Ints
    indices: Ints
    importance: Reals

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.indptr) - 1


class Layout(NamedTuple):
    """Folder and host of each page; `flat`: URLs show no folder."""

    folder: Ints
    host: Ints
    flat: bool


def loaded(path: Path) -> LinkGraph:
    """Read a graph of a file with indptr, indices and perhaps pagerank085. InputError: it is none."""
    try:
        with np.load(path) as data:
            indptr, indices = data["indptr"].astype(np.int64), data["indices"].astype(np.int64)
            rank = data["pagerank085"] if "pagerank085" in data else page_rank(indptr, indices)
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"lab order: {path}: no graph ({error}): arrays indptr and indices are wanted") from None
    return LinkGraph(indptr, indices, rank / rank.sum())


def computed(pages: int, seed: int, folder: int = 32) -> LinkGraph:
    """Return a graph in which folders are herds: an index page links to all pages of its folder, they to it and to
    pages anywhere, a few of which are popular; folders hang on each other as a tree."""
    rng = np.random.default_rng((seed, 11))
    popular = rng.permutation(pages)
    sources, targets = [], []
    for first in range(0, pages, folder):
        members = np.arange(first, min(first + folder, pages))
        below = folder * np.arange(4 * (first // folder) + 1, 4 * (first // folder) + 5)
        below = below[below < pages]
        sources += [np.full(len(members), first), members, np.full(len(below), first)]
        targets += [members, np.full(len(members), first), below]
        links = rng.integers(0, 6, len(members))
        sources.append(np.repeat(members, links))
        targets.append(popular[(pages * rng.random(links.sum()) ** 4).astype(np.int64)])
    source, target = np.concatenate(sources), np.concatenate(targets)
    chosen = np.unique((source * pages + target)[source != target])
    indptr = np.searchsorted(chosen // pages, np.arange(pages + 1))
    return LinkGraph(indptr, chosen % pages, page_rank(indptr, chosen % pages))


def page_rank(indptr: Ints, indices: Ints) -> Reals:
    """PageRank by power iteration, uniform teleport, mass of pages without links spread evenly; of sum 1."""
    n, degrees = len(indptr) - 1, np.diff(indptr)
    sources = np.repeat(np.arange(n), degrees)
    share = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros(n))
    rank = np.full(n, 1.0 / n)
    for _ in range(_ITERATIONS):
        lost = rank[degrees == 0].sum()
        new = DAMPING * (np.bincount(indices, (rank * share)[sources], n) + lost / n) + (1.0 - DAMPING) / n
        moved, rank = np.abs(new - rank).sum(), new
        if moved < 1e-7:
            break
    return rank


def laid_out(pages: int, layout: str, folder: int, host: int, seed: int) -> Layout:
    """Lay pages out in folders of `folder` pages and hosts of `host` pages."""
    numbers = np.arange(pages)
    if layout == "flat":
        return Layout(np.zeros(pages, np.int64), np.zeros(pages, np.int64), flat=True)
    if layout == "blocks":
        return Layout(numbers // folder, numbers // host, flat=False)
    rng = np.random.default_rng((seed, 12))
    borders = np.sort(rng.choice(pages, max(1, pages // folder), replace=False))
    folders = np.searchsorted(borders, numbers, "right")
    borders = np.sort(rng.choice(folders.max() + 1, max(1, pages // host), replace=False))
    return Layout(folders, np.searchsorted(borders, folders, "right"), flat=False)
