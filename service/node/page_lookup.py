"""Answers the loader's questions about single pages from the partitions of this process, which own what it reads.

`PartitionParts` knows one partition; `PageLookup` asks the one that a page or URL belongs to. The loader and the seeds
are handed these methods, not the partitions; part_library.py says which questions there are. A page of a partition that
this process does not have is unknown; plug-ins ask for those by messages (page_questions.py), and so does the node for
the parts that its documents wait for (part_requests.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from xyro.frontier.scope import Scope
from xyro.loader.library import LOST, StoredPart
from xyro.metadata.states import NAMED, State
from xyro.wire.clock import Clock
from xyro.wire.ids import LocalPage, PageId, local_page, owner_of
from xyro.wire.messages import Kind, PageReport, XmlPage
from xyro.wire.questions import FindPart
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PartitionParts:
    """The stored parts of one partition. Pages are local numbers; call on the event loop, where they change."""

    def __init__(self, frontier: Frontier, clock: Clock, part_age: float) -> None:
        self.number = frontier.partition.number
        self._frontier = frontier
        self._clock = clock
        self._age = part_age

    def state(self, url: str) -> State | None:
        """Return the state of a canonical URL, None if it is unknown."""
        page = self._frontier.partition.url_index.find_one(url)
        return None if page < 0 else State(self._frontier.partition.states[page])

    def signature(self, page: LocalPage) -> bytes:
        """Return the signature that the page had when the order that is out was made, empty without one."""
        lease = self._frontier.scheduler.leases.get(page)
        return lease.row.signature if lease and lease.row else b""

    def is_named(self, page: LocalPage) -> bool:
        """Tell whether a document names the page as its part."""
        return bool(self._frontier.columns["flags"][page] & NAMED)

    def part(self, url: str, unchanged: bool) -> StoredPart | None:
        """Return the stored part at a URL, LOST if it is never to be had, None if it has to be read.

        unchanged: it was just read and is as before, so its age does not matter.
        """
        page = self._frontier.partition.url_index.find_one(url)
        since = -math.inf if unchanged else self._clock.time() - self._age
        return None if page < 0 else self._frontier.loads.part(page, since)

    def answer(self, question: FindPart) -> tuple[bytes | None, str, str] | None:
        """Return the stored part that another node's documents wait for."""
        part = self.part(question.url, False)
        return None if part is None else (part.body, part.charset, part.moved)

    def body(self, page: LocalPage, epoch: int) -> bytes | None:
        """Return the body whose load waits, None if there is none of this epoch."""
        return self._frontier.loads.body(page, epoch)

    def changed(self, url: str, since: int) -> bool:
        """Tell whether another version of this page was read at `since` (seconds since 1970) or later."""
        page = self._frontier.partition.url_index.find_one(url)
        stored = self._frontier.loads.documents.latest(page) if page >= 0 else None
        return stored is not None and stored.read_at >= since

    def again(self, page: LocalPage, report: PageReport, changed: Callable[[str, int], bool]) -> XmlPage | None:
        """Return the stored body of an unchanged document for another validation, None where the last one stands.

        changed: tells of a URL, in whichever partition, whether it was read in another version since.
        """
        loads, lease = self._frontier.loads, self._frontier.scheduler.leases.get(page)
        if lease is None or lease.row is None or lease.row.kind not in (Kind.XML, Kind.DTD):
            return None
        stored = loads.documents.latest(page) if page not in loads.loading else None
        if stored is None or not any(changed(url, lease.row.last_read) for url in (*stored.grammars, *stored.parts)):
            return None
        body = loads.documents.body(page) or b""
        kind = stored.kind if stored.kind is Kind.DTD else Kind.XML
        return XmlPage(report.page, report.url, report.epoch, report.ended, kind, stored.mime, stored.charset, body)


class PageLookup:
    """The pages of this process's partitions, by id or URL. Call on the event loop, where they change."""

    def __init__(self, parts: Iterable[PartitionParts], partitions: int, scope: Scope) -> None:
        """parts: of each partition of this process; partitions: the number of those of the whole crawl."""
        self._parts = {each.number: each for each in parts}
        self._partitions = partitions
        self._scope = scope

    def add(self, parts: PartitionParts) -> None:
        """A partition is here from now on."""
        self._parts[parts.number] = parts

    def remove(self, number: int) -> None:
        """A partition is here no more."""
        del self._parts[number]

    def _owner(self, url: str) -> PartitionParts | None:
        return self._parts.get(partition_of(host_of(url), self._partitions))

    def is_here(self, url: str) -> bool:
        """Tell whether this process has the partition of a URL."""
        return self._owner(url) is not None

    def state(self, url: str) -> State | None:
        """Return the state of a canonical URL, None if it is unknown."""
        parts = self._owner(url)
        return None if parts is None else parts.state(url)

    def signature(self, page: PageId) -> bytes:
        """Return the signature that the page had when the order that is out was made, empty without one."""
        parts = self._parts.get(owner_of(page))
        return b"" if parts is None else parts.signature(local_page(page))

    def is_named(self, page: PageId) -> bool:
        """Tell whether a document names the page as its part."""
        parts = self._parts.get(owner_of(page))
        return parts is not None and parts.is_named(local_page(page))

    def part(self, url: str, unchanged: bool) -> StoredPart | None:
        """Return a DTD or entity that is stored, LOST where the scope refuses it (see PartitionParts.part)."""
        if self._scope.why_refused(url):
            return LOST
        parts = self._owner(url)
        return None if parts is None else parts.part(url, unchanged)

    def body(self, page: PageId, epoch: int) -> bytes | None:
        """Return the body whose load waits, None if there is none of this epoch."""
        parts = self._parts.get(owner_of(page))
        return None if parts is None else parts.body(local_page(page), epoch)

    def again(self, report: PageReport) -> XmlPage | None:
        """Return the stored body of a report that found no change, to be validated again; None where that stands."""
        parts = self._parts.get(owner_of(report.page))
        return None if parts is None else parts.again(local_page(report.page), report, self._changed)

    def _changed(self, url: str, since: int) -> bool:
        parts = self._owner(url)
        return parts is not None and parts.changed(url, since)
