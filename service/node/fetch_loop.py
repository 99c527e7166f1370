"""The fetch loop takes orders from the bus into the reader's pool and delivers each report.

It loads nothing of the store or the schedule, so a process that only reads the web can run it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from xyro.answer import Answer
from xyro.reader import OnReport, Reader
from xyro.service.node.side_reads import SideReads
from xyro.wire import topics
from xyro.wire.bus import Bus
from xyro.wire.clock import Clock
from xyro.wire.messages import FetchOrder, HostChallenged, PageReport

ORDERS_AT_ONCE = 4096


class FetchLoop:
    """Runs one reader.

    `reader_of`: makes the reader with the `on_report` that it is given. `deliver`: takes each report of a page with the
    whole body (None unless it is XML or a DTD) on to its partition. `pause`: seconds before the first read; after a
    restart nobody knows when a host was read last.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        reader_of: Callable[[OnReport], Reader],
        deliver: Callable[[PageReport, bytes | None], None],
        pause: float = 0.0,
    ) -> None:
        self.bus = bus
        self.clock = clock
        self.pause = pause
        self.reader = reader_of(self._on_report)
        self.side_reads = SideReads(self.reader.pool.submit)
        self.answered: list[Callable[[PageReport, Answer], None]] = []
        """called with each report of a page and its answer before the report is delivered"""
        self._deliver = deliver

    async def run(self) -> None:
        """Read until the bus closes or it is cancelled. Raises the error that the pool fails of, not a group of it."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._feed())
                await self.clock.sleep(self.pause)
                group.create_task(self.reader.pool.run())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _feed(self) -> None:
        pool = self.reader.pool
        while messages := await self.bus.receive(topics.ORDERS, ORDERS_AT_ONCE):
            pool.submit(order for order in messages if isinstance(order, FetchOrder))
            for message in messages:
                if isinstance(message, HostChallenged):
                    pool.challenged(message)
        pool.stop()

    def _on_report(self, report: PageReport, answer: Answer) -> None:
        """One order was settled: of a page, or a read on the side. The pool calls it; it never waits."""
        if not self.side_reads.take(report, answer):
            for hear in self.answered:
                hear(report, answer)
            self._deliver(report, answer.body)
