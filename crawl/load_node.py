"""The load node: bodies to the loader, its reports to the page nodes, and word of parts that cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crawl.page_loop import inbox
from loader.intake import Intake
from wire.bus import Bus
from wire.clock import Clock
from wire.messages import LoadReport, LoadState, PageReport, XmlPage


class LoadNode:
    """Synchronous: a body is parsed when it arrives (at most 8 MiB, some tens of milliseconds)."""

    def __init__(self, bus: Bus, clock: Clock, intake: Intake, signature_of: Callable[[int], bytes]) -> None:
        self.bus = bus
        self.clock = clock
        self.intake = intake
        self.named: set[str] = set()
        """sitemaps that a robots.txt named: they may list URLs outside their folder"""
        self._signature_of = signature_of

    def is_known(self, report: PageReport) -> bool:
        """The very body was loaded before and nobody waits for it: the stored links stand."""
        return (
            bool(report.signature)
            and report.signature == self._signature_of(report.page)
            and not self.intake.wants(report.url)
        )

    def take(self, page: XmlPage) -> None:
        """Load one body. The body goes along where its load has to wait, for Status-Data."""
        reports = self.intake.take(page, self.clock.time(), named=page.url in self.named)
        if any(report.page == page.page and report.state is LoadState.WAITING for report in reports):
            self.bus.post(inbox(page.page >> 32), page)
        self._tell(reports)

    def settled(self, report: PageReport) -> None:
        """An order ended without a body for the loader: perhaps a document waited for it."""
        if not self.intake.wants(report.url) or (report.error and not report.final):
            return
        if report.location:
            self._tell(self.intake.moved(report.url, report.location, self.clock.time()))
        else:
            self._tell(self.intake.missing(report.url, self.clock.time()))

    def expire(self) -> None:
        """Nothing waits for ever."""
        if self.intake.waiting:
            self._tell(self.intake.expire(self.clock.time()))

    def _tell(self, reports: Iterable[LoadReport]) -> None:
        for report in reports:
            self.bus.post(inbox(report.page >> 32), report)
