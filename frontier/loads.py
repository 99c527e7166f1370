"""Loads of one partition: what the loader said of a body meets the PageReport of its read, in whatever order they come.

A LoadReport may come in the turn of its PageReport, before it (`early`), or turns later (`loading`); one that belongs
to no read that still loads changes nothing. While a load waits for parts, its body is in Status-Data (`waits`). What
the warehouse keeps of a body (Document) comes ahead of the final LoadReport and is stored in the same commit group.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from xyro.frontier.leases import Leases
from xyro.frontier.ledger import Spending, followed
from xyro.frontier.pages import Pages
from xyro.frontier.requests import Requests
from xyro.loader.library import LOST, Resumed, StoredPart
from xyro.metadata import rows
from xyro.metadata.documents import Documents
from xyro.metadata.partition import Partition
from xyro.metadata.rows import WaitRow
from xyro.metadata.states import NAMED, State
from xyro.metadata.visits import with_fault
from xyro.wire.ids import LocalPage, PageId, local_page, local_pages
from xyro.wire.messages import Document, LoadReport, LoadState, Priority, XmlPage

_M = TypeVar("_M", XmlPage, Document)
_NEVER = frozenset(map(int, (State.BLOCKED, State.DISALLOWED, State.DEAD)))


class Load(NamedTuple):
    """The loader's report of one body, with the body if its load has to wait, and the document if it is stored."""

    report: LoadReport
    body: XmlPage | None = None
    document: Document | None = None


class Loads:
    """Applied within a turn: `gather` what came, `apply` one, then `late` those of earlier turns."""

    def __init__(
        self, partition: Partition, leases: Leases, pages: Pages, wanted: Requests, documents: Documents
    ) -> None:
        self.partition = partition
        self.documents = documents
        self._leases = leases
        self._pages = pages
        self._wanted = wanted
        self.needed: Counter[LocalPage] = Counter()
        """pages that loads wait for -> how many loads"""
        self.waits: dict[LocalPage, tuple[LocalPage, ...]] = {}
        """Status-Data: pages whose load waits -> what it needs, as far as the loader has said it to this process"""
        self.loading: dict[LocalPage, int] = {}
        """pages whose last load has not ended -> epoch of the read that brought the body"""
        self.early: dict[PageId, Load] = {}
        """by page id: loads that came before the PageReport of their read"""
        self.bodies: dict[PageId, XmlPage] = {}
        """by page id: bodies that came before the LoadReport that says that they have to wait"""
        self._resumed: set[LocalPage] = set()
        """pages whose load waited before a restart, as long as the loader has not asked for their parts again"""
        self.documents_due: dict[PageId, Document] = {}
        """by page id: documents that came before their final LoadReport"""

    def recover(self) -> list[Resumed]:
        """The loads that waited, for the loader; it will say which of their parts have to be ordered again."""
        partition = self.partition
        urls: dict[LocalPage, str] = {}
        found = []
        for key, stored in partition.scan(rows.STATUS.prefix):
            page, wait = rows.STATUS.split(key), rows.unpack_wait(stored)
            self.loading[page] = wait.epoch
            for need in wait.needs:
                if need not in urls:
                    urls[need] = partition.url(need)
            number = partition.id_of(page)
            stub = XmlPage(number, wait.url, wait.epoch, wait.read_at, wait.kind, wait.mime, wait.charset, b"")
            named = bool(partition.flags[page] & NAMED)
            found.append(Resumed(stub, tuple(urls[need] for need in wait.needs), wait.since, named))
            self._note(page, wait.needs)
        self._resumed = set(self.waits)
        return found

    def body(self, page: LocalPage, epoch: int) -> bytes | None:
        """The packed body of a load that waits since this read; None: it is not in Status-Data."""
        stored = self.partition.get(rows.STATUS.key(page))
        if stored is None:
            return None
        wait = rows.unpack_wait(stored)
        if wait.epoch != epoch:
            return None
        return wait.body or self.partition.get(rows.WAITING.key(page))

    def part(self, page: LocalPage, since: float) -> StoredPart | None:
        """The page as a part of documents: as it was last read, if that was well, ended, and not before `since`; LOST
        if it is never to be had; None if it has to be read."""
        partition = self.partition
        clock, state = partition.hosts.clocks.get(partition.hosts_of[page]), partition.states[page]
        if state in _NEVER or (clock is not None and clock.hold == "blocked"):
            return LOST
        row = partition.row(page) if state == State.READ else None
        if row is None or row.error or row.last_read <= since:
            return None
        if row.location:
            return StoredPart(moved=row.location)
        document = self.documents.latest(page) if page not in self.loading else None
        return None if document is None else StoredPart(self.documents.body(page), document.charset)

    def order_parts(self, pages: Sequence[LocalPage], since: float) -> None:
        """Want parts read for documents of other partitions, unless they are here: whoever waits asks for them."""
        self._wanted.order(
            [page for page in pages if page not in self.loading and self.part(page, since) is None], Priority.BLOCKING
        )

    def take_early(self, number: PageId, epoch: int) -> Load | None:
        """Take the loader's report of the very read that is being applied, if it came before it."""
        load = self.early.get(number)
        if load is None or load.report.epoch != epoch:
            return None
        del self.early[number]
        self.loading[local_page(number)] = epoch
        return load

    def gather(
        self, reports: Iterable[LoadReport], bodies: Mapping[PageId, XmlPage], documents: Mapping[PageId, Document]
    ) -> None:
        """LoadReports of this turn, beside those that still wait for the PageReport of their read."""
        self.bodies.update(bodies)
        self.documents_due.update(documents)
        for report in reports:
            before = self.early.get(report.page)
            body = _belonging(self.bodies, report, before.body if before else None)
            final = report.state is not LoadState.WAITING
            self.early[report.page] = Load(report, body, _belonging(self.documents_due, report) if final else None)

    def late(self, spending: Spending) -> None:
        """Loads of pages read in an earlier turn. What belongs to no read that still loads changes nothing."""
        spending.loads = True
        early: dict[PageId, Load] = {}
        for number, load in self.early.items():
            page = local_page(number)
            if self._leases.is_out(page, load.report.epoch):
                early[number] = load
            elif self.loading.get(page) == load.report.epoch:
                fault, row = self.apply(page, load, spending), self.partition.row(page)
                if fault is not None and row is not None and fault != row.fault:
                    self.partition.put(rows.REFRESH.key(page), rows.pack(with_fault(row, fault)))
        self.early = early

    def apply(self, page: LocalPage, load: Load, spending: Spending) -> str | None:
        """Apply a LoadReport: a WAITING one goes to Status-Data, a final one spends the page's cash.

        Returns what it says against the body, empty where nothing is wrong; None: the load goes on.
        """
        report = load.report
        if report.state is LoadState.WAITING:
            self._wait(page, load)
            return None
        self._wanted.release(page)
        self.forget(page)
        if load.document is not None:
            self.documents.store(page, load.document)
        spending.over_urls(page, followed(report.links.urls, report.links.flags))
        spending.loaded.append((page, report))
        return report.error

    def forget(self, page: LocalPage) -> None:
        """The page's load has ended, or another read has replaced it."""
        self.loading.pop(page, None)
        if page in self.waits:
            self._resumed.discard(page)
            self._note(page, ())
            self.partition.delete(rows.STATUS.key(page))
            self.partition.delete(rows.WAITING.key(page))

    def _note(self, page: LocalPage, needs: tuple[LocalPage, ...]) -> None:
        """The load of this page waits for these from now on; for none: it waits no more."""
        for need in self.waits.pop(page, ()):
            self.needed[need] -= 1
            if not self.needed[need]:
                del self.needed[need]
        if needs:
            self.waits[page] = needs
            self.needed.update(needs)

    def _wait(self, page: LocalPage, load: Load) -> None:
        """Status-Data of a load that waits: with its body when it begins, with other needs when one of them moved."""
        partition, key = self.partition, rows.STATUS.key(page)
        wanted, body = load.report.needs, load.body
        depth = int(self.partition.columns["depth"][page]) + 1
        needs = tuple(local_pages(self._pages.resolve(list(wanted), [depth] * len(wanted), exempt=True)))
        stored = partition.get(key)
        old = rows.unpack_wait(stored) if stored is not None else None
        if needs == self.waits.get(page) and (body is None or old is None or old.epoch == body.epoch):
            if page in self._resumed:
                self._resumed.discard(page)
                self._wanted.order(needs, Priority.BLOCKING)
            return
        if body is not None:
            row = WaitRow(
                epoch=body.epoch, needs=needs, body=b"", url=body.url, kind=body.kind, mime=body.mime,
                charset=body.charset, read_at=body.read_at, since=body.read_at,
            )  # fmt: skip
            partition.put(rows.WAITING.key(page), zlib.compress(body.body, 1))
        elif old is not None:
            row = msgspec.structs.replace(old, needs=needs, readings=old.readings + 1)
        else:
            return
        self._wanted.release(page)
        self._note(page, needs)
        partition.put(key, rows.pack(row))
        self._wanted.order(needs, Priority.BLOCKING)


def _belonging(found: dict[PageId, _M], report: LoadReport, before: _M | None = None) -> _M | None:
    """Return the loads of the same read as the report; older ones are dropped, later ones stay."""
    there = found.get(report.page)
    if there is not None and there.epoch <= report.epoch:
        before = found.pop(report.page)
    return before if before is not None and before.epoch == report.epoch else None
