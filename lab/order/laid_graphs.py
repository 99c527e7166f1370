"""Graphs with folders and hosts: computed ones, or a real one from a file; their true importance is known.

A graph's pages are numbers 0 .. n-1; a layout says in which folder and on which host each lies:

    blocks   folders of so many consecutive pages, hosts of so many folders: pages that were found together lie together
    random   the same with borders drawn at random
    queries  as blocks, but what is a folder there is one path with a query
    flat     one host, no folders
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from xyro.wire.errors import InputError

LAYOUTS = ("blocks", "random", "queries", "flat")
DAMPING = 0.85
_FILES = "f{0}/p{1}.html"
_ITERATIONS = 100
_HREF = re.compile(r"""<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
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
    """Folder and host of each page."""

    folder: Ints
    host: Ints
    form: str
    """of the path of a page's URL, from the numbers of its folder and of itself"""


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


def breadth_first_part(graph: LinkGraph, start: int, limit: int) -> LinkGraph:
    """The first `limit` pages that one meets from `start`, breadth first, in that order, and the links among them."""
    order, number = [start], {start: 0}
    for page in order:
        for child in graph.indices[graph.indptr[page] : graph.indptr[page + 1]].tolist():
            if child not in number and len(order) < limit:
                number[child] = len(order)
                order.append(child)
    return _linked([graph.indices[graph.indptr[page] : graph.indptr[page + 1]].tolist() for page in order], number)


def linked_files(entry: Path, limit: int) -> LinkGraph:
    """Files of HTML as a graph: the entry, and what its links lead to in its folder and below, breadth first, at most
    `limit` (0: all). InputError: it is no file, or has no links."""
    if not entry.is_file():
        raise InputError(f"lab order: {entry}: no file; name the HTML file to begin with (--files DIR/index.html)")
    folder, order, shown = entry.resolve().parent, [entry.resolve()], []
    number = {order[0]: 0}
    for path in order:
        links = [link for link in _file_links(path) if link in number or (folder in link.parents and link.is_file())]
        shown.append(links)
        for link in links:
            if link not in number and not (limit and len(order) >= limit):
                number[link] = len(order)
                order.append(link)
    if len(order) < 2:
        raise InputError(f"lab order: {entry}: no link leads to another file of its folder")
    return _linked(shown, number)


def _file_links(path: Path) -> Iterator[Path]:
    """The files of HTML that a file links to."""
    for reference in dict.fromkeys(_HREF.findall(path.read_text(encoding="utf-8", errors="replace"))):
        name = unquote(reference.partition("#")[0].partition("?")[0])
        if name.endswith((".html", ".htm")) and ":" not in name and not name.startswith("/"):
            yield Path(os.path.normpath(path.parent / name))


def _linked(links: Sequence[Sequence[Hashable]], number: Mapping[Any, int]) -> LinkGraph:
    """The graph of pages with these links, of which those without a number are left out, and repeated ones."""
    targets = [list(dict.fromkeys(number[link] for link in page if link in number)) for page in links]
    indptr = np.cumsum([0, *map(len, targets)])
    indices = np.fromiter((child for page in targets for child in page), np.int64, int(indptr[-1]))
    return LinkGraph(indptr, indices, page_rank(indptr, indices))


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
        return Layout(np.zeros(pages, np.int64), np.zeros(pages, np.int64), "p{1}.html")
    if layout in ("blocks", "queries"):
        return Layout(numbers // folder, numbers // host, "f{0}/list?p={1}" if layout == "queries" else _FILES)
    rng = np.random.default_rng((seed, 12))
    borders = np.sort(rng.choice(pages, max(1, pages // folder), replace=False))
    folders = np.searchsorted(borders, numbers, "right")
    borders = np.sort(rng.choice(folders.max() + 1, max(1, pages // host), replace=False))
    return Layout(folders, np.searchsorted(borders, folders, "right"), _FILES)
