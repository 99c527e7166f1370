"""Loads of one partition: what the loader said of a body meets the PageReport of its read, in whatever order they come.

A LoadReport may come in the turn of its PageReport, before it (`early`), or turns later (`loading`); one that belongs
to no read that still loads changes nothing. While a load waits for parts, its body is in Status-Data (`waits`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from crawl.planner import Lease
from crawl.purse import Ids
from crawl.spending import Spending, followed
from metadata import keys, rows
from metadata.manager import Partition
from metadata.rows import WaitRow
from wire.messages import LoadReport, LoadState, Priority, XmlPage


class Load(NamedTuple):
    """What the loader said of one body, and the body if its load has to wait."""

    report: LoadReport
    body: XmlPage | None


class Pages(Protocol):
    """What loads ask of their page node."""

    def resolve(self, urls: Sequence[str], depths: Sequence[int] | Ids, exempt: bool = False) -> Ids:
        """Pages of URLs, minted where unknown."""
        ...

    def want(self, pages: Sequence[int], priority: Priority) -> None:
        """Order pages ahead of the plan."""
        ...

    def release(self, page: int) -> None:
        """The order that a person or a loader wanted is settled."""
        ...


class Loads:
    """Applied within a turn: `gather` what came, `apply` one, then `late` those of earlier turns."""

    def __init__(self, partition: Partition, leases: Mapping[int, Lease], pages: Pages) -> None:
        self.partition = partition
        self._leases = leases
        self._pages = pages
        self.waits: dict[int, tuple[int, ...]] = {}
        """Status-Data: pages whose load waits -> what it needs, as far as the loader has said it to this process"""
        self.loading: dict[int, int] = {}
        """pages whose last load has not ended -> epoch of the read that brought the body"""
        self.early: dict[int, Load] = {}
        """by page id: loads that came before the PageReport of their read"""
        self.bodies: dict[int, XmlPage] = {}
        """by page id: bodies that came before the LoadReport that says that they have to wait"""

    def recovered(self, page: int, stored: bytes) -> XmlPage:
        """A body whose load waited. The loader will say again what it needs."""
        wait = rows.unpack_wait(stored)
        self.waits[page], self.loading[page] = (), wait.epoch
        body = zlib.decompress(wait.body)
        page += self.partition.base
        return XmlPage(page, wait.url, wait.epoch, wait.read_at, wait.kind, wait.mime, wait.charset, body)

    def take_early(self, number: int, epoch: int) -> Load | None:
        """What the loader has said already of the very read that is being applied."""
        load = self.early.get(number)
        if load is None or load.report.epoch != epoch:
            return None
        del self.early[number]
        self.loading[number - self.partition.base] = epoch
        return load

    def gather(self, reports: Iterable[LoadReport], bodies: Mapping[int, XmlPage]) -> None:
        """LoadReports of this turn, beside those that still wait for the PageReport of their read."""
        self.bodies.update(bodies)
        for report in reports:
            before = self.early.get(report.page)
            body = before.body if before is not None else None
            if report.page in self.bodies and self.bodies[report.page].epoch <= report.epoch:
                body = self.bodies.pop(report.page)
            self.early[report.page] = Load(report, body if body is not None and body.epoch == report.epoch else None)

    def late(self, spending: Spending) -> None:
        """Loads of pages read in an earlier turn. What belongs to no read that still loads changes nothing."""
        spending.loads = True
        early: dict[int, Load] = {}
        for number, load in self.early.items():
            page = number - self.partition.base
            lease = self._leases.get(page)
            if lease is not None and lease.epoch == load.report.epoch:
                early[number] = load
            elif self.loading.get(page) == load.report.epoch:
                error, row = self.apply(page, load, spending), self.partition.row(page)
                if error and row is not None:
                    self.partition.put(keys.REFRESH.key(page), rows.pack(msgspec.structs.replace(row, error=error)))
        self.early = early

    def apply(self, page: int, load: Load, spending: Spending) -> str:
        """Apply a LoadReport: a WAITING one goes to Status-Data, a final one spends the page's cash. -> error class"""
        report = load.report
        if report.state is LoadState.WAITING:
            self._wait(page, load)
            return ""
        self._pages.release(page)
        self.forget(page)
        spending.over_urls(page, followed(report.links.urls, report.links.flags))
        spending.modified.extend(report.modified)
        return report.error

    def forget(self, page: int) -> None:
        """The page's load has ended, or another read has replaced it."""
        self.loading.pop(page, None)
        if self.waits.pop(page, None) is not None:
            self.partition.delete(keys.STATUS.key(page))

    def _wait(self, page: int, load: Load) -> None:
        """Status-Data of a load that waits: with its body when it begins, with other needs when one of them moved."""
        wanted, body = load.report.needs, load.body
        depth = int(self.partition.columns["depth"][page]) + 1
        needs = tuple(self._pages.resolve(list(wanted), [depth] * len(wanted), exempt=True).tolist())
        if needs == self.waits.get(page):
            return
        if body is not None:
            row = WaitRow(
                epoch=body.epoch, needs=(), body=zlib.compress(body.body, 1), url=body.url, kind=body.kind,
                mime=body.mime, charset=body.charset, read_at=body.read_at, since=body.read_at,
            )  # fmt: skip
        elif stored := self.partition.get(keys.STATUS.key(page)):
            row = rows.unpack_wait(stored)
        else:
            return
        self._pages.release(page)
        self.waits[page] = needs
        self.partition.put(keys.STATUS.key(page), rows.pack(msgspec.structs.replace(row, needs=needs)))
        self._pages.want(needs, Priority.BLOCKING)
