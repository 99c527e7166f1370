"""Ranks the sites of a crawl from Link-Data, beside what frontier/host_inflow.py measured while it ran.

One pass over the stored links of each partition, memory of the order of the sites and their linked pairs. A site is a
host, or a registrable domain. Nodes of a cluster send the sums of their partitions (SitePart) to the one that ranks.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.opic.sites import Edges, carried, site_rank
from xyro.service.views.views import NO_SITE, View, Views
from xyro.wire.errors import InputError
from xyro.wire.ids import LocalPage
from xyro.wire.urls import host_of, site_of

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]
ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class SitePart:
    """One partition's part of a ranking of sites, by numbers of its own."""

    names: list[str]
    pages: Reals
    importance: Reals
    """sums over pages of mean 1"""
    measured: Reals | None
    """the online measure of external inflow, where it is on"""
    sources: Ids
    targets: Ids
    links: Ids
    flow: Reals
    """linked pairs of sites; a site with itself: what stays within, of no links"""

    @classmethod
    def from_view(cls, view: View, level: str, mean: float) -> SitePart:
        """level: what a site is, host or domain. mean: importance of a mean page of all."""
        hosts, numbers, edges = view.partition.hosts.names[: view.hosts], dict[str, int](), Edges()
        sites = hosts if level == "host" else [site_of(host_of(f"http://{name}/")) for name in hosts]
        place = np.array([numbers.setdefault(name, len(numbers)) for name in sites], np.int64)
        for sources, targets, flow in _external(view, mean):
            edges.add(place[sources], place[targets], flow)
        count, site, every = len(numbers), place[view.host[view.own]], np.arange(len(numbers))
        graph, measured = edges.graph(count), None
        if view.inflow is not None:
            here = np.zeros(view.hosts, np.bool_)
            here[view.host[view.own]] = True  # hosts of other partitions are measured there
            measured = np.bincount(place[here], weights=view.inflow[here], minlength=count) / mean
        return cls(
            list(numbers),
            np.bincount(site, minlength=count).astype(np.float64),
            np.bincount(site, weights=view.importance[view.own], minlength=count) / mean,
            measured,
            np.concatenate((graph.sources, every)),
            np.concatenate((graph.targets, every)),
            np.concatenate((graph.links, np.zeros_like(every))),
            np.concatenate((graph.flow, graph.internal)),
        )

    def dump(self) -> dict[str, Any]:
        """The part as JSON: some 50 bytes a linked pair."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        packed = {name: None if each is None else b64encode(each.tobytes()).decode() for name, each in columns.items()}
        return {"names": self.names, **packed}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> SitePart:
        """Read what `dump` made."""
        packed = {name: dumped[name] for name in _COLUMNS}
        columns: dict[str, Any] = {
            name: None if each is None else np.frombuffer(b64decode(each), _COLUMNS[name])
            for name, each in packed.items()
        }
        return cls(dumped["names"], **columns)


_COLUMNS = dict.fromkeys(("pages", "importance", "measured", "flow"), "<f8") | dict.fromkeys(
    ("sources", "targets", "links"), "<i8"
)


class SiteRanking:
    """All sites of a crawl: names, and float64[sites] of pages, importance (sum over pages of mean 1), SiteRank (mean
    1), external inflow and what stays within (importance that links carry), and the online measure where it is on."""

    def __init__(self, parts: Sequence[SitePart]) -> None:
        self._numbers: dict[str, int] = {}
        numbers, edges = self._numbers, Edges()
        places = [np.array([numbers.setdefault(name, len(numbers)) for name in part.names], np.int64) for part in parts]
        self.names, count = list(numbers), len(numbers)
        self.pages, self.importance = np.zeros(count), np.zeros(count)
        self.measured: Reals | None = None
        for part, place in zip(parts, places, strict=True):
            edges.add(place[part.sources], place[part.targets], part.flow, part.links)
            self.pages[place] += part.pages
            self.importance[place] += part.importance
            if part.measured is not None:
                self.measured = np.zeros(count) if self.measured is None else self.measured
                self.measured[place] += part.measured
        self.graph = edges.graph(count)
        self.rank = site_rank(self.graph) * count
        self.inflow = self.graph.inflow

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
        """Return the row of a site by its name; one that is not ranked yet has none of the fields."""
        number = self._numbers.get(name)
        return dict(NO_SITE) if number is None else self.row(number)

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


def rank_sites(views: Views, level: str = "host") -> SiteRanking:
    """Rank the sites of all partitions here."""
    return SiteRanking([SitePart.from_view(view, level, views.mean) for view in views.views])


def top_sites(views: Views, count: int, level: str) -> list[dict[str, Any]]:
    """`xyro top --by site`. InputError: as `site_parts`."""
    return SiteRanking(site_parts(views, level)).top(count)


def ranked_sites(parts: Iterable[Mapping[str, Any]]) -> SiteRanking:
    """Rank the sites of a cluster, out of the dumped parts of all partitions."""
    return SiteRanking([SitePart.load(part) for part in parts])


def site_parts(views: Views, level: str) -> list[SitePart]:
    """The parts of all partitions here. InputError: no such level, or the crawl keeps no links."""
    if level not in ("host", "domain"):
        raise InputError("top: level is host or domain")
    if not views.settings.store.links:
        raise InputError("top --by site: this crawl keeps no links ([store] links = false)")
    return [SitePart.from_view(view, level, views.mean) for view in views.views]


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
