"""Selection of the pages to read out of a number each, the least first, within what each host allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xyro.lab.refresh.world import Ids, Reals


class HostCap(NamedTuple):
    """Hosts of pages, and how many reads each host allows at a tick."""

    host_of: Ids
    """host of each page that is there, from 0"""
    limit: int

    def admitted(self, pages: Ids) -> Ids:
        """Return those of `pages`, in their order, that come among the first `limit` of their host."""
        hosts = self.host_of[pages]
        order = np.argsort(hosts, kind="stable")
        ordered = hosts[order]
        first = np.searchsorted(ordered, ordered, side="left")
        place = np.empty(len(pages), np.int64)
        place[order] = np.arange(len(pages)) - first
        return pages[place < self.limit]


def least(values: Reals, count: int, hosts: HostCap | None = None) -> Ids:
    """Return the places of the `count` least values, each host's least within its limit; in any order without hosts.

    Exact: with hosts the least go first, and a host that is at its limit is passed over.
    """
    if hosts is not None:
        return hosts.admitted(np.argsort(values, kind="stable"))[:count]
    if count >= len(values):
        return np.arange(len(values))
    found: Ids = np.argpartition(values, count - 1)[:count] if count else np.empty(0, np.int64)
    return found


def due(dates: Reals, now: float, count: int, hosts: HostCap | None = None) -> Ids:
    """Return at most `count` places whose date is not after `now`, the earliest first."""
    found = np.flatnonzero(dates <= now)
    found = found[np.argsort(dates[found], kind="stable")]
    return (hosts.admitted(found) if hosts is not None else found)[:count]
