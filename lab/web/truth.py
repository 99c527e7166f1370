"""The knowledge that a perfect crawler would have of the computed web at time t.

Known are all URLs, read or not: dead targets, disallowed pages, files, redirects, DTDs, sitemaps. The graph is the one
over which cash is spent: distinct links of a page in the order shown, without nofollow links and hints; a redirect is
one link; what is dead, disallowed or not worth reading has none. A DOCTYPE's DTD is a need, not a link.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web.places import Doc
from xyro.lab.web.web import Web
from xyro.lab.web.web_graph import NOFOLLOW
from xyro.opic.graph import Graph, from_links
from xyro.opic.pagerank import pagerank
from xyro.wire.errors import InputError

UNREAD = (Doc.FILE, Doc.PRIVATE, Doc.OUTSIDE)
"""kinds that a polite crawler never asks for"""


@dataclass(frozen=True, slots=True)
class Truth:
    """Arrays have one entry per known URL, and so has the graph."""

    t: float
    urls: tuple[str, ...]
    kinds: NDArray[np.uint8]
    """values of Doc"""
    statuses: NDArray[np.int64]
    """HTTP status of an unconditional GET; 0 outside"""
    graph: Graph
    importance: NDArray[np.float64]
    """PageRank, damping .85, teleport and dangling mass uniform, mean 1"""
    rates: NDArray[np.float64]
    """changes per day"""
    versions: NDArray[np.int64]
    modified: NDArray[np.float64]
    """time of the last change; for pages that never change, long ago"""

    def links(self, page: int) -> tuple[str, ...]:
        """URLs that a page links to, distinct, in order."""
        return tuple(self.urls[target] for target in self.graph.children(page))

    def readable(self) -> NDArray[np.bool_]:
        """Mark the URLs from which a polite crawler gets an answer (any status)."""
        return ~np.isin(self.kinds, UNREAD)

    def numbers(self) -> dict[str, int]:
        """URL -> row."""
        return {url: page for page, url in enumerate(self.urls)}

    def save(self, path: Path) -> None:
        """Write all of it as .npz or .json. Raises InputError for another suffix."""
        match path.suffix:
            case ".npz":
                np.savez_compressed(path, t=self.t, urls=np.array(self.urls), **self._columns())  # type: ignore[arg-type]
            case ".json":
                columns = {name: column.tolist() for name, column in self._columns().items()}
                path.write_text(json.dumps({"t": self.t, "urls": self.urls, **columns}))
            case _:
                raise InputError(f"{path}: a truth file ends in .npz or .json")

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        names = ("kinds", "statuses", "importance", "rates", "versions", "modified")
        columns = {name: getattr(self, name) for name in names}
        return {"indptr": self.graph.indptr, "targets": self.graph.indices, **columns}


def truth(web: Web, t: float) -> Truth:
    """The truth about the web at time t (seconds since 1970)."""
    states = [web.state(page, t) for page in range(web.shape.pages)]
    versions = np.array([state.version for state in states] + [0] * web.slots.outside)
    modified = np.array([state.modified for state in states] + [0.0] * web.slots.outside)
    links = links_at(web, versions, t)
    return Truth(
        t=t,
        urls=tuple(map(web.url, range(web.size))),
        kinds=np.concatenate((web.places.kinds, np.full(web.slots.outside, Doc.OUTSIDE, np.uint8))),
        statuses=np.array([web.status(page, t) if page < web.shape.pages else 0 for page in range(web.size)]),
        graph=links,
        importance=pagerank(links).rank * web.size,
        rates=web.rates,
        versions=versions,
        modified=modified,
    )


def links_at(web: Web, versions: NDArray[np.int64], t: float = math.inf) -> Graph:
    """The graph when page p is in version versions[p], at time t as far as documents were born."""
    targets, flags = web.slots.targets, web.slots.flags
    if web.shape.drift:
        shown = [link.target for page in range(web.shape.pages) for link in web.links(page, int(versions[page]))]
        targets = np.array(shown, np.int64)
    sources = np.repeat(np.arange(web.shape.pages), np.diff(web.slots.indptr))
    born = np.concatenate((web.places.born, np.full(web.slots.outside, -math.inf)))
    follow = (flags & NOFOLLOW == 0) & (born[targets] <= t)
    return distinct(sources[follow], targets[follow], web.size)


def distinct(sources: NDArray[np.int64], targets: NDArray[np.int64], size: int) -> Graph:
    """Graph of the distinct pairs of links sorted by source; the first appearance of a pair gives its place."""
    _, first = np.unique(sources * size + targets, return_index=True)
    first.sort()
    return from_links(size, sources[first], targets[first])
