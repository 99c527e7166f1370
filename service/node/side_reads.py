"""Side reads are reads that are no pages of the crawl, such as the key files of publishers.

They pass the same pool, so the same guard, robots.txt and politeness hold for them. They are never stored; a restart
forgets them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

from xyro.answer import Answer
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, PageReport, Priority

FIRST = 1 << 62
"""page ids from here on are of side reads: no partition has such a number"""
MOST_OUT = 256


class SideReads:
    """`submit`: the pool's. At most MOST_OUT at once."""

    def __init__(self, submit: Callable[[Iterable[FetchOrder]], None]) -> None:
        self._submit = submit
        self._numbers = itertools.count(FIRST)
        self._out: dict[int, asyncio.Future[Answer]] = {}

    @property
    def full(self) -> bool:
        return len(self._out) >= MOST_OUT

    async def read(self, url: str, patience: float = 600.0) -> Answer:
        """Read a URL, whatever the body's type; the body is in `Answer.body`. TimeoutError: not within `patience`
        seconds (a host with a long delay or back-off), or the order was taken back."""
        page = PageId(next(self._numbers))
        future = self._out[page] = asyncio.get_running_loop().create_future()
        try:
            self._submit([FetchOrder(page, url, Priority.BLOCKING, epoch=0)])
            async with asyncio.timeout(patience):
                answer: Answer = await future
                return answer
        finally:
            del self._out[page]

    def take(self, report: PageReport, answer: Answer) -> bool:
        """Was this report of a side read?"""
        if report.page < FIRST:
            return False
        future = self._out.get(report.page)
        if future is not None and not future.done():
            future.set_result(answer)
        return True

    def dropped(self, order: FetchOrder) -> bool:
        """Was this order, which was taken back, of a side read?"""
        if order.page < FIRST:
            return False
        future = self._out.get(order.page)
        if future is not None and not future.done():
            future.set_exception(TimeoutError("its host was blocked"))
        return True
