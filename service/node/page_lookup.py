"""Answers questions about single pages from the partition that owns each; only the reference wiring makes it.

The loader, the reader and the plug-ins are handed these methods, not the partitions: elsewhere a message may answer. A
page of a partition that this process does not have is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xyro.frontier.scope import Scope
from xyro.loader.library import StoredPart
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import NAMED, State
from xyro.metadata.url_index import ABSENT
from xyro.service.node.partition_parts import LOST, PartitionParts
from xyro.wire.clock import Clock
from xyro.wire.ids import PageId, local_page, owner_of, split
from xyro.wire.messages import PageReport, XmlPage
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PageLookup:
    """The pages of this process's partitions, by id or URL. Call on the event loop, where they change."""

    def __init__(self, frontiers: Sequence[Frontier], scope: Scope, clock: Clock, part_age: float) -> None:
        self._frontiers = {frontier.partition.number: frontier for frontier in frontiers}
        self._parts = {number: PartitionParts(each, clock, part_age) for number, each in self._frontiers.items()}
        self._partitions = frontiers[0].partitions
        self._scope = scope

    def _owner(self, url: str) -> int:
        return partition_of(host_of(url), self._partitions)

    def find(self, url: str) -> PageId | None:
        """Return the id of a canonical URL, None if it is unknown."""
        frontier = self._frontiers.get(self._owner(url))
        page = ABSENT if frontier is None else frontier.partition.url_index.find_one(url)
        return None if frontier is None or page < 0 else frontier.partition.id_of(page)

    def url(self, page: PageId) -> str:
        """Return the URL of a known page."""
        return self._frontiers[owner_of(page)].partition.url(local_page(page))

    def row(self, page: PageId) -> RefreshRow | None:
        """Return the Refresh-Data row of a known page, None if it was never read."""
        return self._frontiers[owner_of(page)].partition.row(local_page(page))

    def state(self, page: PageId) -> State:
        """Return the state of a known page."""
        return State(self._frontiers[owner_of(page)].partition.states[local_page(page)])

    def host(self, page: PageId) -> tuple[int, int]:
        """Return the host of a known page as (partition, number of the host there)."""
        number, page_there = split(page)
        return number, int(self._frontiers[number].partition.hosts_of[page_there])

    # -- for the loader ------------------------------------------------------------------------------------------

    def signature(self, page: PageId) -> bytes:
        """Return the signature that the page had when the order that is out was made, empty without one."""
        lease = self._frontiers[owner_of(page)].scheduler.leases.get(local_page(page))
        return lease.row.signature if lease and lease.row else b""

    def is_named(self, page: PageId) -> bool:
        """Tell whether a document names the page as its part."""
        return bool(self._frontiers[owner_of(page)].columns["flags"][local_page(page)] & NAMED)

    def part(self, url: str, unchanged: bool) -> StoredPart | None:
        """Return a DTD or entity that is stored, LOST where the scope refuses it (see PartitionParts.part)."""
        if self._scope.why_refused(url):
            return LOST
        parts = self._parts.get(self._owner(url))
        return None if parts is None else parts.part(url, unchanged)

    def body(self, page: PageId, epoch: int) -> bytes | None:
        """Return the body whose load waits, None if there is none of this epoch."""
        parts = self._parts.get(owner_of(page))
        return None if parts is None else parts.body(local_page(page), epoch)

    def again(self, report: PageReport) -> XmlPage | None:
        """Return the stored body of a report that found no change, to be validated again; None where that stands."""
        return self._parts[owner_of(report.page)].again(local_page(report.page), report, self._changed)

    def _changed(self, url: str, since: int) -> bool:
        parts = self._parts.get(self._owner(url))
        return parts is not None and parts.changed(url, since)
