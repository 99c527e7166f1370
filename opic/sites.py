"""Importance of sites: over links between hosts or registrable domains, internal links apart (P2, improvements).

Two measures, both blind to what a site says of itself:

    external inflow   the importance that reaches a site's pages over links from other sites: the sum over external
                      links i -> j of x_i (1 - f_i) / d_i, x the pages' importance, f_i the virtual page's share
    SiteRank          PageRank of the graph whose nodes are sites and whose edges weigh as much as the links between
                      two sites (their number, or the importance they carry); links within a site are left out

`Edges` gathers the site graph batch by batch, in memory of the order of the linked pairs of sites; nothing else here
grows with the number of pages. `Inflow` measures the external inflow while the crawl runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xyro.opic.arrays import Mask, Pages, Reals, Ticks, Units
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.importance import TICKS, elapsed

MOST_SITES = 1 << 31
"""a pair of sites is one int64"""
GATHERED = 1 << 20
"""links gathered before they are added up: 24 MB"""


class SiteGraph(NamedTuple):
    """Links between sites: `sources`, `targets` int64[e] (never alike, each pair once), `links` how many, `flow` what
    they carry, float64[e]; `internal` float64[sites]: what stays within a site."""

    sources: Pages
    targets: Pages
    links: Units
    flow: Reals
    internal: Reals

    @property
    def n(self) -> int:
        return self.internal.size

    @property
    def inflow(self) -> Reals:
        """Flow that arrives from other sites: float64[sites]."""
        return np.bincount(self.targets, weights=self.flow, minlength=self.n).astype(np.float64, copy=False)


class Edges:
    """Adds links up by pairs of sites."""

    def __init__(self) -> None:
        self._pairs = np.empty(0, np.int64)
        self._links = np.empty(0, np.int64)
        self._flow = np.empty(0, np.float64)
        self._waiting: list[tuple[Pages, Units, Reals]] = []
        self._count = 0

    def add(self, sources: Pages, targets: Pages, flow: Reals, links: Units | None = None) -> None:
        """Links between sites sources[k] -> targets[k] (0 .. 2^31-1) that carry flow[k]: one each, or links[k]."""
        self._waiting.append(
            ((sources << 32) | targets, np.ones(sources.size, np.int64) if links is None else links, flow)
        )
        self._count += sources.size
        if self._count >= GATHERED:
            self._sum_up()

    def _sum_up(self) -> None:
        columns = zip((self._pairs, self._links, self._flow), *self._waiting, strict=True)
        pairs, links, flow = (np.concatenate(column) for column in columns)
        self._pairs, place = np.unique(pairs, return_inverse=True)
        self._links = np.bincount(place, weights=links, minlength=self._pairs.size).astype(np.int64)
        self._flow = np.bincount(place, weights=flow, minlength=self._pairs.size).astype(np.float64, copy=False)
        self._waiting, self._count = [], 0

    def graph(self, sites: int) -> SiteGraph:
        """The graph of so many sites. ValueError: a link names another one."""
        self._sum_up()
        sources, targets = self._pairs >> 32, self._pairs & (MOST_SITES * 2 - 1)
        if self._pairs.size and max(int(sources.max()), int(targets.max())) >= sites:
            raise ValueError(f"Edges: {sites} sites, and a link beyond them")
        within: Mask = sources == targets
        internal = np.bincount(sources[within], weights=self._flow[within], minlength=sites).astype(np.float64)
        apart = ~within
        return SiteGraph(sources[apart], targets[apart], self._links[apart], self._flow[apart], internal)


def carried(rank: Reals, degrees: Pages, toll: Reals | float = 1.0 - DAMPING) -> Reals:
    """The importance that each link of a page carries: x_i (1 - f_i) / d_i, float64[n]; 0 where there is no link."""
    return np.where(degrees > 0, rank * (1.0 - toll) / np.maximum(degrees, 1), 0.0)


def site_rank(graph: SiteGraph, by: str = "links", damping: float = DAMPING, tolerance: float = 1e-12) -> Reals:
    """PageRank of the sites, float64[sites] of sum 1: a site shares its rank over its edges in proportion to their
    weight (`by` "links" or "flow"); sites without a link to another pay all alike. ValueError: no such weight."""
    if by not in ("links", "flow") or not 0 <= damping < 1:
        raise ValueError(f'site_rank: by {by!r}: "links" or "flow"; damping {damping}: 0 or more, below 1')
    n = graph.n
    weights = (graph.links if by == "links" else graph.flow).astype(np.float64)
    out = np.bincount(graph.sources, weights=weights, minlength=n)
    closed = out <= 0
    share = damping * weights / np.where(closed, 1.0, out)[graph.sources]
    rank, step = np.full(n, 1.0 / max(n, 1)), np.inf
    while step >= tolerance:
        even = (1.0 - damping + damping * float(rank[closed].sum())) / max(n, 1)
        after = np.bincount(graph.targets, weights=share * rank[graph.sources], minlength=n) + even
        step = float(np.abs(after - rank).sum())
        rank = after / after.sum() if n else after
    return rank


class Inflow:
    """Online: units that arrive at each host over links from other hosts, as a windowed flow (page-units a turnover).

    All hosts are measured at the same moments, so one clock serves them; the formula is that of pages
    (importance.as_if_now) without a prior: X' = X (1 - a) + C / max(d, T_i), a = min(1, d / T_i), T_i = min(T, age).
    What gathers between two measures is not stored: a crash forgets it together with its time, which costs evidence
    and favours nobody.
    """

    EVERY = 0.25
    """turnovers between two measures"""

    def __init__(self) -> None:
        self.cash = np.zeros(64, np.int64)
        self.flow = np.zeros(64, np.float32)
        self.birth: Ticks = np.zeros(64, np.uint32)
        self.n = 0
        self.last = 0

    def add(self, hosts: Pages, amounts: Units) -> None:
        """Units that reached hosts from elsewhere; hosts are known (`grow`)."""
        np.add.at(self.cash, hosts, amounts)

    def grow(self, hosts: int) -> None:
        """There are so many hosts; the new ones' time begins with the running measure."""
        while hosts > self.cash.size:
            for name in ("cash", "flow", "birth"):
                column = getattr(self, name)
                setattr(self, name, np.concatenate((column, np.zeros_like(column))))
        self.birth[self.n : max(hosts, self.n)] = self.last & 0xFFFF_FFFF
        self.n = max(hosts, self.n)

    def due(self, now: int) -> bool:
        return now - self.last >= self.EVERY * TICKS

    def measure(self, now: int, window: float) -> None:
        """Take what gathered until `now` (ticks) into the flow; `window`: T in turnovers."""
        if now > self.last:
            n = self.n
            self.flow[:n] = self.estimate(now, window)
            self.cash[:n] = 0
            self.last = now

    def estimate(self, now: int, window: float) -> Reals:
        """External inflow as if measured now: float64[hosts], page-units a turnover."""
        n, span = self.n, (now - self.last) / TICKS
        if span <= 0:
            return self.flow[:n].astype(np.float64)
        windows = np.minimum(window, np.maximum(elapsed(now, self.birth[:n]), span))
        fading = 1.0 - np.minimum(1.0, span / windows)
        found: Reals = self.flow[:n] * fading + self.cash[:n] / UNIT / np.maximum(span, windows)
        return found

    def dump(self) -> bytes:
        """8 bytes a host, without what gathered since the last measure."""
        return self.flow[: self.n].tobytes() + self.birth[: self.n].tobytes()

    @classmethod
    def load(cls, stored: bytes, now: int) -> Inflow:
        """Begin again at `now` with the flows stored. ValueError: no such bytes."""
        if len(stored) % 8:
            raise ValueError("Inflow.load: 8 bytes a host")
        inflow, n = cls(), len(stored) // 8
        inflow.last = now
        inflow.grow(n)
        inflow.flow[:n] = np.frombuffer(stored, np.float32, n)
        inflow.birth[:n] = np.frombuffer(stored, np.uint32, n, 4 * n)
        return inflow
