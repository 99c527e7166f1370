"""Bounds of [[sites]] on the time between two reads of a page: min_interval at least, max_interval at most.

The first table that fits a host holds for it, alone. Asked by bandwidth.py and revisit_dates.py, page by page; what
people, publishers and subscribers order comes at once, whatever stands here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from xyro.wire.urls import fits

if TYPE_CHECKING:
    from xyro.configs.schema import SiteTable
    from xyro.metadata.partition import Partition
    from xyro.wire.ids import LocalPage


class SiteBounds(NamedTuple):
    """Seconds."""

    floor: float = 0.0
    ceiling: float = math.inf

    def clamp(self, seconds: float) -> float:
        return min(max(seconds, self.floor), self.ceiling)


UNBOUNDED = SiteBounds()
ROUNDING = 1.0
"""seconds by which the stored time of a read, in whole seconds, may be too early"""


def _bounds(site: SiteTable) -> SiteBounds:
    floor = site.min_interval + ROUNDING if site.min_interval else 0.0
    return SiteBounds(floor, max(floor, site.max_interval or math.inf))


class SiteIntervals:
    """The bounds of one partition's pages. `on`: some site has some; else nothing here need be asked."""

    def __init__(self, partition: Partition, sites: Sequence[SiteTable]) -> None:
        self._partition = partition
        self.follow(sites)

    def follow(self, sites: Sequence[SiteTable]) -> None:
        """Other settings."""
        self._tables = [(site.host, _bounds(site)) for site in sites]
        self.on = any(bounds != UNBOUNDED for _, bounds in self._tables)
        self._by_host: dict[int, SiteBounds] = {}

    def __repr__(self) -> str:
        return repr(self._tables if self.on else [])

    def bounds(self, page: LocalPage) -> SiteBounds:
        """The bounds of a page's host."""
        if not self.on:
            return UNBOUNDED
        host = self._partition.hosts_of[page]
        found = self._by_host.get(host)
        if found is None:
            name = self._partition.hosts.names[host]
            found = next((bounds for pattern, bounds in self._tables if fits(name, pattern)), UNBOUNDED)
            self._by_host[host] = found
        return found
