"""The fetch node: orders from the bus into the pool, one report for each back to the page node of its partition.

XML and DTD bodies pass the load node on the way: its LoadReports are posted before the PageReport, so a page and its
links are applied in one commit group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from xyro.answer import Answer
from xyro.pool import Pool
from xyro.service.node.load_loop import LoadNode
from xyro.service.node.partition_loop import inbox
from xyro.wire.bus import Bus
from xyro.wire.messages import FetchOrder, Kind, PageReport, XmlPage


class FetchNode:
    """Owns the pool's feed. `pool` is set right after construction: the pool's on_report is this node's."""

    pool: Pool

    def __init__(self, bus: Bus, loads: LoadNode, posted: Callable[[PageReport], None]) -> None:
        """`posted`: told of each report after it was posted."""
        self.pause = 0.0
        """seconds before the first read: after a restart nobody knows when a host was read last"""
        self.bus = bus
        self.loads = loads
        self.posted = posted

    async def run(self) -> None:
        """Until the bus closes, the pool fails, or it is cancelled. Raises what the pool failed of, not a group."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._feed())
                await self.loads.clock.sleep(self.pause)
                group.create_task(self.pool.run())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _feed(self) -> None:
        while messages := await self.bus.receive("orders", 4096):
            self.pool.submit(order for order in messages if isinstance(order, FetchOrder))
        self.pool.stop()

    def on_report(self, report: PageReport, answer: Answer) -> None:
        """One order was settled. Called by the pool; never waits."""

        def post() -> None:
            self.bus.post(inbox(report.page >> 32), report)
            self.posted(report)

        if report.loading and answer.body is not None and not self.loads.is_known(report):
            self.loads.take(_xml_page(report, answer.body), post)
        elif (stored := self.loads.again(report)) is not None:
            self.loads.take(stored, post)
        else:
            self.loads.settled(report, post)


def _xml_page(report: PageReport, body: bytes) -> XmlPage:
    return XmlPage(
        page=report.page,
        url=report.url,
        epoch=report.epoch,
        read_at=report.ended,
        kind=report.kind if report.kind is Kind.DTD else Kind.XML,
        mime=report.mime,
        charset=report.charset,
        body=body,
    )
