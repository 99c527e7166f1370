"""Turns at addresses that hosts of several nodes share: one node at a time reads there, at the pace of one.

An address (of IPv6 its /64) belongs to a partition by its hash, like a host; the node that has that partition lends it.
Who wants to read there asks, and is granted it for some reads; its floor holds within them (xyro/server_floors.py).
When the time is over, and its last read has ended, it gives the address back and says how long the floor still runs.

    ask     borrower -> lender    (address, moment of the asker, floor)    again each second
    wait    lender -> borrower    (address): somebody else has it, you are in line
    grant   lender -> borrower    (address, moment of the last ask, seconds)
    keep    borrower -> lender    (address): the time is over, and a read still goes on; again each second
    free    borrower -> lender    (address, seconds until it may be read again)

Messages may be lost: an ask is repeated, a grant of which nothing is heard is over after GRACE. Where nobody answers,
the broker or the lender is away: each node then waits as many times its floor as there are nodes, until it hears from
the lender.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from xyro.wire.clock import Clock
from xyro.wire.urls import partition_of

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.wire.placement import Placement

READS = 8
"""floors that a grant lasts, where others wait"""
SHORTEST, LONGEST = 1.0, 4.0
"""seconds of a grant; one that nobody waits for lasts LONGEST, and a longer floor one read"""
AGAIN, GONE, GRACE, POLL, IDLE = 1.0, 3.0, 5.0, 0.05, 60.0
"""seconds until an ask, or that an address is kept, is repeated; without an answer, until the lender is taken for away;
beyond its end until the holder of a grant, of whom nothing is heard, is taken for dead; until a host whose address is
not granted is looked at again; until an address that nobody wants is forgotten"""
_SWEEP_FROM = 1_024


@dataclass(slots=True)
class _Lease:
    """An address as a borrower sees it."""

    until: float = -math.inf
    first: float = math.inf
    asked: float = -math.inf
    wanted: float = -math.inf
    ended: float = -math.inf
    busy: bool = False
    apart: bool = False
    """the lender is away: read at the pace of one of many"""
    floor: float = 0.0


@dataclass(slots=True)
class _Loan:
    """An address as its lender sees it."""

    free_at: float
    holder: int | None = None
    until: float = -math.inf
    asked: float = -math.inf
    line: dict[int, tuple[float, float]] = field(default_factory=dict)
    """node -> (moment of its last ask, by its clock; floor), who came first first"""
    timer: asyncio.TimerHandle | None = None


def turns_subject(crawl: str, node: int) -> str:
    """Subject of the messages about addresses to a node."""
    return f"xyro.{crawl}.turns.{node}"


class AddressTurns:
    """The turns of one node: those that it borrows, and those that it lends. `xyro.server_floors.AddressClaims`."""

    def __init__(self, link: BrokerLink, placement: Placement, node: int, clock: Clock) -> None:
        self._link = link
        self._placement = placement
        self._node = node
        self._clock = clock
        self._leases: dict[str, _Lease] = {}
        self._loans: dict[str, _Loan] = {}
        self._limit = _SWEEP_FROM
        self._opened: dict[int, float] = {}
        """partitions that are open here, and since when"""
        self._shared_since = -math.inf
        """when another node joined the only one"""
        self._silent: set[int] = set()
        """lenders that are away"""
        self._outgoing: dict[int, list[tuple[Any, ...]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        subject = turns_subject(self._placement.crawl, self._node)
        self._subscription = await self._link.subscribe(subject, self._take)

    async def close(self) -> None:
        for loan in self._loans.values():
            if loan.timer is not None:
                loan.timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._subscription is not None and not self._link.client.is_closed:
            await self._subscription.unsubscribe()

    def follow(self, placement: Placement) -> None:
        if len(placement.members) > 1 >= len(self._placement.members):
            self._shared_since = self._clock.monotonic()
        self._placement = placement

    def opened(self, partition: int) -> None:
        """A partition is open here: its addresses are lent from here, when what its last owner lent is over."""
        self._opened[partition] = self._clock.monotonic()

    def closed(self, partition: int) -> None:
        self._opened.pop(partition, None)

    # -- borrowing -----------------------------------------------------------------------------------------------

    def claim(self, address: str, now: float, floor: float) -> float:
        """`now` if this node may read there, else when to ask again."""
        if len(self._placement.members) <= 1:
            return now
        lender = self._placement.owners[self._partition(address)].node
        lease = self._leases.get(address)
        if lease is None:
            self._sweep(now)
            lease = self._leases[address] = _Lease(apart=lender in self._silent)
        lease.wanted, lease.floor = now, floor
        if now < lease.until:
            return now
        if lease.busy:
            return now + POLL
        if now - lease.asked >= AGAIN:
            lease.asked, lease.first = now, min(lease.first, now)
            self._send(lender, "ask", address, now, floor)
        if not lease.apart and now - lease.first > GONE:
            lease.apart = True
            self._silent.add(lender)
        return now if lease.apart else now + POLL

    def has_apart(self, address: str) -> bool:
        """Tell whether the address is read beside other nodes, each at its own pace."""
        lease = self._leases.get(address)
        return lease is not None and lease.apart

    def begin(self, address: str) -> None:
        if (lease := self._leases.get(address)) is not None:
            lease.busy = True

    def leave(self, address: str, ended: float) -> None:
        """It has ended; -inf: nobody was contacted."""
        if (lease := self._leases.get(address)) is not None:
            lease.busy, lease.ended = False, max(lease.ended, ended)
            self._give_back(address)

    def _granted(self, address: str, asked: float, seconds: float) -> None:
        lease, now = self._leases.get(address), self._clock.monotonic()
        if lease is None or now - asked > GRACE:  # nobody here wants it any more, or it is an old one
            return
        lease.until, lease.asked, lease.first, lease.apart = now + seconds, -math.inf, math.inf, False
        asyncio.get_running_loop().call_later(seconds, self._give_back, address)

    def _give_back(self, address: str) -> None:
        """The address goes back to its lender, when the time is over and no read goes on."""
        lease, now = self._leases.get(address), self._clock.monotonic()
        if lease is None or not -math.inf < lease.until <= now + 0.001:
            return
        lender = self._placement.owners[self._partition(address)].node
        if lease.busy:
            self._send(lender, "keep", address)
            asyncio.get_running_loop().call_later(AGAIN, self._give_back, address)
            return
        lease.until = -math.inf
        self._send(lender, "free", address, max(lease.ended + lease.floor - now, 0.0))

    def _sweep(self, now: float) -> None:
        """Forget addresses that nobody wants; amortised O(1)."""
        if len(self._leases) + len(self._loans) < self._limit:
            return
        self._leases = {
            address: lease
            for address, lease in self._leases.items()
            if lease.busy or max(lease.until, lease.wanted + IDLE) > now
        }
        self._loans = {
            address: loan
            for address, loan in self._loans.items()
            if max(loan.free_at, loan.until + GRACE, loan.asked + IDLE) > now
        }
        self._limit = max(_SWEEP_FROM, 2 * (len(self._leases) + len(self._loans)))

    # -- lending -------------------------------------------------------------------------------------------------

    def _asked(self, node: int, address: str, moment: float, floor: float) -> None:
        if (opened := self._opened.get(self._partition(address))) is None:
            return  # whoever asks will see that it waits for nobody
        now = self._clock.monotonic()
        loan = self._loans.get(address)
        if loan is None:
            self._sweep(now)
            loan = self._loans[address] = _Loan(max(now, max(opened, self._shared_since) + LONGEST))
        loan.asked = now
        if loan.holder == node and now < loan.until:  # it asked before the grant was there, or that was lost
            self._send(node, "grant", address, moment, loan.until - now)
            return
        loan.line[node] = moment, floor
        if loan.holder is not None and now > loan.until + GRACE:  # it died, or its word was lost
            loan.holder = None
        self._lend(address)
        if loan.holder != node:
            self._send(node, "wait", address)

    def _prolong(self, node: int, address: str) -> None:
        if (loan := self._loans.get(address)) is not None and loan.holder == node:
            loan.until = max(loan.until, self._clock.monotonic())

    def _freed(self, node: int, address: str, seconds: float) -> None:
        loan = self._loans.get(address)
        if loan is not None and loan.holder == node:
            loan.holder, loan.free_at = None, self._clock.monotonic() + min(max(seconds, 0.0), IDLE)
            self._lend(address)

    def _lend(self, address: str) -> None:
        loan, now = self._loans.get(address), self._clock.monotonic()
        if loan is None or loan.holder is not None or not loan.line:
            return
        if loan.timer is not None:
            loan.timer.cancel()
            loan.timer = None
        if now < loan.free_at:
            loan.timer = asyncio.get_running_loop().call_later(loan.free_at - now, self._lend, address)
            return
        loan.holder = node = next(iter(loan.line))
        moment, floor = loan.line.pop(node)
        seconds = max(SHORTEST, min(READS * floor, LONGEST), floor) if loan.line else max(LONGEST, floor)
        loan.until = now + seconds
        self._send(node, "grant", address, moment, seconds)

    # -- messages ------------------------------------------------------------------------------------------------

    def _partition(self, address: str) -> int:
        return partition_of(address, self._placement.partitions)

    def _send(self, node: int, kind: str, address: str, *values: float) -> None:
        """Send a message, together with all others of this turn of the loop."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.setdefault(node, []).append((kind, address, *values))

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        for node, messages in outgoing.items():
            if node == self._node:
                self._apply(node, messages)
                continue
            data = msgpack.packb((self._node, messages))
            task = asyncio.create_task(self._link.publish(turns_subject(self._placement.crawl, node), data))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _take(self, received: Msg) -> None:
        try:
            node, messages = msgpack.unpackb(received.data)
            if str(node) in self._placement.members:
                self._apply(node, messages)
        except (ValueError, TypeError, msgpack.UnpackException):
            return  # whoever means us asks again

    def _apply(self, node: int, messages: list[Any]) -> None:
        self._silent.discard(node)
        for kind, address, *values in messages:
            if kind == "ask":
                self._asked(node, str(address), *map(float, values))
            elif kind == "keep":
                self._prolong(node, str(address))
            elif kind == "free":
                self._freed(node, str(address), *map(float, values))
            elif kind == "grant":
                self._granted(str(address), *map(float, values))
            elif kind == "wait" and (lease := self._leases.get(address)) is not None:
                lease.first, lease.apart = math.inf, False
