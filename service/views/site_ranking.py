"""Ranks the sites of a crawl from Link-Data, beside what frontier/host_inflow.py measured while it ran.

One pass over the stored links of all partitions of a View, memory of the order of the sites and their linked pairs. A
site is a host, or a registrable domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.opic.sites import Edges, carried, site_rank
from xyro.service.views.views import View, Views
from xyro.wire.errors import InputError
from xyro.wire.ids import LocalPage
from xyro.wire.urls import host_of, site_of

Ids = NDArray[np.int64]
ROWS_AT_ONCE = 1 << 12


class SiteRanking:
    """All sites of a View: names, and float64[sites] of pages, importance (sum over pages of mean 1), SiteRank (mean
    1), external inflow and what stays within (importance that links carry), and the online measure where it is on."""

    def __init__(self, views: Views, level: str = "host") -> None:
        self._numbers: dict[str, int] = {}
        edges = Edges()
        places = [self._places(view, level) for view in views.views]
        for view, place in zip(views.views, places, strict=True):
            for sources, targets, flow in _external(view, views.mean):
                edges.add(place[sources], place[targets], flow)
        self.names, count = list(self._numbers), len(self._numbers)
        self.graph = edges.graph(count)
        self.pages, self.importance = np.zeros(count), np.zeros(count)
        self.measured: NDArray[np.float64] | None = None
        for view, place in zip(views.views, places, strict=True):
            self._add_up(view, place, views.mean)
        self.rank = site_rank(self.graph) * count
        self.inflow = self.graph.inflow

    def _places(self, view: View, level: str) -> Ids:
        """The site of each host of a partition: int64[hosts]."""
        names = view.partition.hosts.names[: view.hosts]
        sites = names if level == "host" else [site_of(host_of(f"http://{name}/")) for name in names]
        return np.array([self._numbers.setdefault(name, len(self._numbers)) for name in sites], np.int64)

    def _add_up(self, view: View, place: Ids, mean: float) -> None:
        count, own = len(self.names), view.own
        site = place[view.host[own]]
        self.pages += np.bincount(site, minlength=count)
        self.importance += np.bincount(site, weights=view.importance[own], minlength=count) / mean
        if view.inflow is not None:
            here = np.zeros(view.hosts, np.bool_)
            here[view.host[own]] = True  # hosts of other partitions are measured there
            found = np.bincount(place[here], weights=view.inflow[here], minlength=count) / mean
            self.measured = found if self.measured is None else self.measured + found

    def row(self, number: int) -> dict[str, Any]:
        """Return the fields of a site in `top --by site` and `export hosts`."""
        inflow, within = float(self.inflow[number]), float(self.graph.internal[number])
        return {
            "site_rank": round(float(self.rank[number]), 6),
            "external_inflow": round(inflow, 6),
            "measured_inflow": None if self.measured is None else round(float(self.measured[number]), 6),
            "internal_share": round(within / (within + inflow), 6) if within + inflow > 0 else None,
        }

    def row_by_name(self, name: str) -> dict[str, Any]:
        """Return the row of a site by its name."""
        return self.row(self._numbers[name])

    def top(self, count: int) -> list[dict[str, Any]]:
        """The first sites by SiteRank that have known pages."""
        order = np.argsort(-self.rank, kind="stable")
        order = order[self.pages[order] > 0][:count]
        return [
            {
                "site": self.names[number],
                "pages": int(self.pages[number]),
                "importance": round(float(self.importance[number]), 6),
                **self.row(number),
                "score": round(float(self.rank[number]), 6),
            }
            for number in order.tolist()
        ]


def top_sites(views: Views, count: int, level: str) -> list[dict[str, Any]]:
    """`xyro top --by site`. InputError: no such level, or the crawl keeps no links."""
    if level not in ("host", "domain"):
        raise InputError("top: level is host or domain")
    if not views.settings.store.links:
        raise InputError("top --by site: this crawl keeps no links ([store] links = false)")
    return SiteRanking(views, level).top(count)


def _external(view: View, mean: float) -> Iterator[tuple[Ids, Ids, NDArray[np.float64]]]:
    """(hosts of sources, hosts of targets, importance carried) of the stored links, some pages at a time.

    A page that is not READ spends nothing over the links it once had. Link weights below 1 are left aside."""
    edge = view.frontier.ledger.tolls.edge
    stored = view.store.scan(rows.LINK.prefix)
    found = ((page, value) for key, value in stored if (page := rows.LINK.split(key)) < view.n)
    while part := list(islice(found, ROWS_AT_ONCE)):
        read = [(page, rows.unpack_links(value)) for page, value in part if view.state[page] == State.READ]
        if read:
            yield _carry(view, [page for page, _ in read], [children for _, children in read], mean, edge)


def _carry(
    view: View, pages: Sequence[LocalPage], children: Sequence[NDArray[np.uint32]], mean: float, edge: float
) -> tuple[Ids, Ids, NDArray[np.float64]]:
    ids, degrees = np.array(pages, np.int64), np.array([len(row) for row in children], np.int64)
    tolls = np.full(len(ids), 1.0 - view.frontier.ledger.tolls.damping)
    toll = np.asarray(edge / (degrees + edge), np.float64) if edge else tolls
    each = carried(view.importance_of(ids) / mean, degrees, toll)
    targets = np.concatenate(children).astype(np.int64)
    sources, flow = np.repeat(view.host[ids].astype(np.int64), degrees), np.repeat(each, degrees)
    minted = targets < view.n
    return sources[minted], view.host[targets[minted]].astype(np.int64), flow[minted]
