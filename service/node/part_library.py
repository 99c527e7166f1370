"""Gives the loader what the partitions have, instead of the web: parts that were read before, bodies that wait.

    part(url)           a DTD or entity that was read less than `[loader] part_age` ago: its stored body; one that
                        redirects: its target; one that is never contacted, disallowed or dead: not to be had
    body(page, epoch)   of Status-Data, once the partition has put it there (on disk or in the group under way)
    again(report)       a document that was read and is as it was, but one of its DTDs, entities or schemas has changed
                        since: its stored body, to be validated again

Pages are looked at in the partition that owns them; in a process that does not have it, nothing is known.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from xyro.frontier.scope import Scope
from xyro.loader.library import StoredPart
from xyro.metadata.states import State
from xyro.wire.clock import Clock
from xyro.wire.ids import PageId, local_page, owner_of
from xyro.wire.messages import Kind, PageReport, XmlPage
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

LOST = StoredPart()
_NEVER = frozenset(map(int, (State.BLOCKED, State.DISALLOWED, State.DEAD)))
_P = ParamSpec("_P")
_R = TypeVar("_R")


class PartLibrary:
    """loader.library.Library over the partitions. They change on the event loop only, so it is asked there: `part` and
    `body` may be called from another thread too, which then waits for the loop.
    """

    def __init__(self, frontiers: Sequence[Frontier], scope: Scope, clock: Clock, part_age: float) -> None:
        self._nodes = {frontier.partition.number: frontier for frontier in frontiers}
        self._partitions = frontiers[0].partitions
        self._scope = scope
        self._clock = clock
        self._age = part_age
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def bind(self) -> None:
        """Call on the running loop, before the loader works in a thread."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        return self._on_loop(self._part, url, unchanged)

    def body(self, page: PageId, epoch: int) -> bytes | None:
        return self._on_loop(self._body, page, epoch)

    def again(self, report: PageReport) -> XmlPage | None:
        """To be asked on the loop, of a report whose body is the one read before; None where that stands."""
        frontier, page = self._nodes[owner_of(report.page)], local_page(report.page)
        lease = frontier.scheduler.leases.get(page)
        if lease is None or lease.row is None or lease.row.kind not in (Kind.XML, Kind.DTD):
            return None
        stored = frontier.loads.documents.latest(page) if page not in frontier.loads.loading else None
        if stored is None:
            return None
        if not any(self._changed(url, lease.row.last_read) for url in (*stored.grammars, *stored.parts)):
            return None
        body = frontier.loads.documents.body(page) or b""
        kind = stored.kind if stored.kind is Kind.DTD else Kind.XML
        return XmlPage(report.page, report.url, report.epoch, report.ended, kind, stored.mime, stored.charset, body)

    def _changed(self, url: str, since: int) -> bool:
        """Was another version of this page read since (to the second)?"""
        frontier = self._nodes.get(partition_of(host_of(url), self._partitions))
        page = -1 if frontier is None else frontier.partition.url_index.find_one(url)
        stored = frontier.loads.documents.latest(page) if frontier is not None and page >= 0 else None
        return stored is not None and stored.read_at >= since

    def _on_loop(self, ask: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._loop is None or threading.get_ident() == self._thread:
            return ask(*args, **kwargs)
        answered: Future[_R] = Future()

        def answer() -> None:
            try:
                answered.set_result(ask(*args, **kwargs))
            except BaseException as error:  # it belongs to who asked
                answered.set_exception(error)

        self._loop.call_soon_threadsafe(answer)
        return answered.result()

    def _body(self, page: PageId, epoch: int) -> bytes | None:
        frontier = self._nodes.get(owner_of(page))
        return None if frontier is None else frontier.loads.body(local_page(page), epoch)

    def _part(self, url: str, unchanged: bool) -> StoredPart | None:
        if self._scope.why_refused(url):
            return LOST
        frontier = self._nodes.get(partition_of(host_of(url), self._partitions))
        page = -1 if frontier is None else frontier.partition.url_index.find_one(url)
        if frontier is None or page < 0:
            return None
        partition = frontier.partition
        clock = partition.hosts.clocks.get(partition.hosts_of[page])
        state = partition.states[page]
        if state in _NEVER or (clock is not None and clock.held == "blocked"):
            return LOST
        return self._read(frontier, page, unchanged) if state == State.READ else None

    def _read(self, frontier: Frontier, page: int, unchanged: bool) -> StoredPart | None:
        """A page that was read well last time."""
        row = frontier.partition.row(page)
        if row is None or row.error or not (unchanged or row.last_read > self._clock.time() - self._age):
            return None
        if row.location:
            return StoredPart(moved=row.location)
        if page in frontier.loads.loading:
            return None
        document = frontier.loads.documents.latest(page)
        if document is None:
            return None
        return StoredPart(frontier.loads.documents.body(page), document.charset)
