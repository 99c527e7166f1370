"""Requests that are no reads, to hubs: each waits in the line of its host, as pages do. Pure.

robots.txt speaks to crawlers that read, so it is not asked; its Crawl-delay holds all the same where it is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from xyro.answer import Answer
from xyro.wire.errors import TheirError
from xyro.wire.ids import PageId
from xyro.wire.messages import MAX_NUMBER, FetchOrder, Priority

PAGE = PageId(MAX_NUMBER - 1)
"""page id of an order that sends: it belongs to no page"""


class Posted(NamedTuple):
    """The answer to a POST."""

    status: int
    again: float = 0.0
    """seconds until its host may be contacted again"""


class Parcel(Struct, frozen=True):
    """The request of one order, and whoever waits for what comes of it."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    posted: asyncio.Future[Posted]

    def settle(self, answer: Answer, again: float) -> None:
        """It was sent; its host may be contacted again in `again` seconds."""
        if self.posted.done():
            return
        if answer.status:
            self.posted.set_result(Posted(answer.status, again))
        else:
            self.posted.set_exception(TheirError(answer.error, answer.detail))


class Posts:
    """Requests that wait for their turn."""

    def __init__(self) -> None:
        self._parcels: dict[int, Parcel] = {}
        """by epoch of the order"""
        self._epochs = 0

    def order(self, parcel: Parcel) -> FetchOrder:
        """Return the order that stands in the line of the host for the request."""
        self._epochs += 1
        self._parcels[self._epochs] = parcel
        return FetchOrder(PAGE, parcel.url, Priority.ORDERED, self._epochs)

    def take(self, order: FetchOrder) -> Parcel:
        """Return the request of an order, which has its turn now."""
        return self._parcels.pop(order.epoch)

    def waits(self, order: FetchOrder) -> bool:
        """Tell whether anybody still waits for what comes of it."""
        return not self._parcels[order.epoch].posted.done()

    def refuse(self, order: FetchOrder) -> None:
        """The order was taken back: its host was blocked."""
        posted = self.take(order).posted
        if not posted.done():
            posted.set_exception(TheirError("blocked", "its host was blocked"))
