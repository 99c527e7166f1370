"""A robots.txt that redirects: the next hop is an order of its own, in the line of the host that it leads to. Pure.

Else a thousand hosts whose robots.txt redirects to one victim would make us read that a thousand times at once: no host
is read but in its turn. The orders of the redirecting host wait meanwhile, and ask now and then; a hop within that host
is the next that is read of it.
"""

from __future__ import annotations

from msgspec import Struct

from xyro.answer import Answer
from xyro.wire.ids import PageId
from xyro.wire.messages import MAX_NUMBER, FetchOrder, Priority
from xyro.wire.urls import authority

HOP_LIMIT = 5
"""hops that are followed (RFC 9309 2.3.1.2)"""
PAGE = PageId(MAX_NUMBER)
"""page id of an order for a hop: it belongs to no page"""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""seconds until the redirecting host asks whether its robots.txt has come; doubles"""


class Chain(Struct):
    """The redirects of one origin's robots.txt so far."""

    origin: str
    hops: int = 0
    wait: float = FIRST_WAIT / 2


class Hops:
    """Redirects of robots.txt under way. An origin has at most one hop out."""

    def __init__(self) -> None:
        self._chains: dict[str, Chain] = {}
        self._out: dict[int, Chain] = {}
        """by epoch of the order"""
        self._epochs = 0

    def waits(self, origin: str) -> float:
        """Seconds until the orders of `origin` should ask again, longer each time; 0: it has no hop out."""
        chain = self._chains.get(origin)
        if chain is None:
            return 0.0
        chain.wait = min(2.0 * chain.wait, LONGEST_WAIT)
        return chain.wait

    def follow(self, answer: Answer, origin: str) -> FetchOrder | None:
        """The order for the next hop, if `answer` redirects the robots.txt of `origin`."""
        if answer.error or not answer.location:
            return None
        chain = self._chains.setdefault(origin, Chain(origin))
        chain.hops += 1
        if chain.hops > HOP_LIMIT:
            answer.error, answer.detail = "redirect-loop", "more redirects of robots.txt than we follow"
            return None
        self._epochs += 1
        self._out[self._epochs] = chain
        own = authority(answer.location) == authority(origin + "/")
        return FetchOrder(PAGE, answer.location, Priority.BLOCKING if own else Priority.REFRESH, self._epochs)

    def origin_of(self, order: FetchOrder) -> str:
        """Return the origin whose robots.txt an order for a hop reads, and forget the order."""
        return self._out.pop(order.epoch).origin

    def end(self, origin: str) -> None:
        """The robots.txt of `origin` is known, or cannot be had."""
        self._chains.pop(origin, None)
