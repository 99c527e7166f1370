"""Parts and bodies of one partition, as the loader asks for them; part_library.py says which questions there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xyro.loader.library import StoredPart
from xyro.metadata.states import State
from xyro.wire.clock import Clock
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind, PageReport, XmlPage

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

LOST = StoredPart()
_NEVER = frozenset(map(int, (State.BLOCKED, State.DISALLOWED, State.DEAD)))


class PartitionParts:
    """The stored parts of one partition. Pages are local numbers; call on the event loop, where they change."""

    def __init__(self, frontier: Frontier, clock: Clock, part_age: float) -> None:
        self._frontier = frontier
        self._clock = clock
        self._age = part_age

    def part(self, url: str, unchanged: bool) -> StoredPart | None:
        """Return the stored part at a URL, LOST if it is never to be had, None if it has to be read.

        unchanged: it was just read and is as before, so its age does not matter.
        """
        partition = self._frontier.partition
        page = partition.url_index.find_one(url)
        if page < 0:
            return None
        clock = partition.hosts.clocks.get(partition.hosts_of[page])
        state = partition.states[page]
        if state in _NEVER or (clock is not None and clock.hold == "blocked"):
            return LOST
        return self._read(page, unchanged) if state == State.READ else None

    def _read(self, page: LocalPage, unchanged: bool) -> StoredPart | None:
        """Return a page that was read well last time."""
        row, loads = self._frontier.partition.row(page), self._frontier.loads
        if row is None or row.error or not (unchanged or row.last_read > self._clock.time() - self._age):
            return None
        if row.location:
            return StoredPart(moved=row.location)
        document = loads.documents.latest(page) if page not in loads.loading else None
        return None if document is None else StoredPart(loads.documents.body(page), document.charset)

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
