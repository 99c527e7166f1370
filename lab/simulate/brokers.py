"""A broker in memory: subjects whose messages come late, are lost or come twice, and the bucket of the placement.

What nodes use of NATS, and nothing more: publish, subscribe (one message after the other), request, and one key of a
bucket that is changed by compare-and-set. A link that is cut, or a broker that is away, answers nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from xyro.lab.simulate.cluster_loop import LIFE, ClusterLoop
from xyro.service.cluster.broker_link import BrokerLink, Receive

LATENCY, LATE = 0.02, 5.0
"""seconds that a message takes at most, and one that is late"""
PATIENCE = 5.0
"""seconds that a bucket is waited for"""
URL = "nats://127.0.0.250:4222"


class Delivered(NamedTuple):
    """A message as a subscriber gets it."""

    subject: str
    data: bytes
    reply: str


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """The value of the bucket's key, and its revision."""

    value: bytes
    revision: int


class SimulatedBroker:
    """`loss`: share of the messages that are lost, doubled and late, each."""

    def __init__(self, loop: ClusterLoop, draw: random.Random) -> None:
        self.loop = loop
        self.draw = draw
        self.loss = 0.0
        self.away = False
        self.cut: set[int] = set()
        """nodes whose link is"""
        self.messages = 0
        self.entry: BucketEntry | None = None
        self._subscriptions: dict[str, list[SimulatedSubscription]] = {}
        self._inboxes = 0

    def inbox(self) -> str:
        """A subject that nobody else has."""
        self._inboxes += 1
        return f"_INBOX.{self._inboxes}"

    def subscribe(self, subscription: SimulatedSubscription) -> None:
        self._subscriptions.setdefault(subscription.subject, []).append(subscription)

    def unsubscribe(self, subscription: SimulatedSubscription) -> None:
        subscriptions = self._subscriptions.get(subscription.subject, [])
        if subscription in subscriptions:
            subscriptions.remove(subscription)
        if not subscriptions:
            self._subscriptions.pop(subscription.subject, None)

    def publish(self, message: Delivered) -> None:
        """Take a message: what becomes of it is drawn."""
        self.messages += 1
        fate, delay = self.draw.random(), LATENCY * self.draw.random() ** 3
        if fate < self.loss:
            return
        if fate < 2 * self.loss:
            self.loop.call_later(delay + LATE * self.draw.random(), self._deliver, message)
        elif fate < 3 * self.loss:
            delay = LATE * self.draw.random()
        self.loop.call_later(delay, self._deliver, message)

    def _deliver(self, message: Delivered) -> None:
        for subscription in list(self._subscriptions.get(message.subject, ())):
            if subscription.link.connected:
                subscription.put(message)

    async def ask_bucket(self, link: SimulatedLink) -> None:
        """One way to the bucket, or back. TimeoutError of the client: it is away."""
        from nats.errors import TimeoutError as NoAnswer

        await asyncio.sleep(LATENCY * self.draw.random())
        if not link.connected:
            await asyncio.sleep(PATIENCE)
            raise NoAnswer


class SimulatedSubscription:
    """A subscriber: messages are handed over one after the other, in its own life."""

    def __init__(self, link: SimulatedLink, subject: str, receive: Receive) -> None:
        self.link = link
        self.subject = subject
        self._receive = receive
        self._context: Context = copy_context()
        self._queue: deque[Delivered] = deque()
        self._working = False

    def put(self, message: Delivered) -> None:
        self._queue.append(message)
        if not self._working:
            self._working = True
            self.link.broker.loop.create_task(self._work(), context=self._context)

    async def _work(self) -> None:
        while self._queue:
            await self._receive(cast(Any, self._queue.popleft()))
        self._working = False

    async def unsubscribe(self) -> None:
        self._queue.clear()
        self.link.broker.unsubscribe(self)


class SimulatedLink(BrokerLink):
    """The connection of one node."""

    def __init__(self, broker: SimulatedBroker, node: int) -> None:
        super().__init__(cast(Any, SimulatedClient(self)), URL)
        self.broker = broker
        self.node = node
        self.closed = False
        self._life = LIFE.get()

    @property
    def connected(self) -> bool:
        broker = self.broker
        gone = self.closed or self._life in broker.loop.gone
        return not gone and not broker.away and self.node not in broker.cut

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        if not self.connected:
            self.dropped += 1
            return
        self.broker.publish(Delivered(subject, bytes(data), reply))

    async def subscribe(self, subject: str, receive: Receive, queue: str = "") -> Any:
        subscription = SimulatedSubscription(self, subject, receive)
        self.broker.subscribe(subscription)
        return subscription

    def jetstream(self, patience: float = PATIENCE) -> Any:
        return SimulatedBuckets(self)

    async def close(self) -> None:
        self.closed = True


class SimulatedClient:
    """The client of a link, as far as nodes ask it themselves."""

    servers = ()

    def __init__(self, link: SimulatedLink) -> None:
        self._link = link

    @property
    def is_connected(self) -> bool:
        return self._link.connected

    @property
    def is_closed(self) -> bool:
        return self._link.closed

    async def request(self, subject: str, data: bytes, timeout: float = 1.0) -> Delivered:  # noqa: ASYNC109
        """The first answer. TimeoutError of the client: none came."""
        from nats.errors import TimeoutError as NoAnswer

        link, answer = self._link, asyncio.get_running_loop().create_future()

        async def take(received: Any) -> None:
            if not answer.done():
                answer.set_result(received)

        subscription = await link.subscribe(link.broker.inbox(), take)
        try:
            await link.publish(subject, data, subscription.subject)
            async with asyncio.timeout(timeout):
                return cast(Delivered, await answer)
        except TimeoutError:
            raise NoAnswer from None
        finally:
            await subscription.unsubscribe()


class SimulatedBuckets:
    """JetStream, as far as it keeps the placement."""

    def __init__(self, link: SimulatedLink) -> None:
        self._link = link

    async def key_value(self, bucket: str) -> SimulatedBuckets:
        await self._link.broker.ask_bucket(self._link)
        return self

    async def get(self, key: str) -> BucketEntry:
        from nats.js.errors import KeyNotFoundError

        broker = self._link.broker
        await broker.ask_bucket(self._link)
        entry = broker.entry
        await broker.ask_bucket(self._link)
        if entry is None:
            raise KeyNotFoundError
        return entry

    async def create(self, key: str, value: bytes) -> int:
        return await self._put(value, 0)

    async def update(self, key: str, value: bytes, last: int) -> int:
        return await self._put(value, last)

    async def _put(self, value: bytes, last: int) -> int:
        """Where the answer is lost, the change is made all the same, and nobody knows."""
        from nats.js.errors import KeyWrongLastSequenceError

        broker = self._link.broker
        await broker.ask_bucket(self._link)
        revision = 0 if broker.entry is None else broker.entry.revision
        if revision == last:
            broker.entry = BucketEntry(value, revision + 1)
        await broker.ask_bucket(self._link)
        if revision != last:
            raise KeyWrongLastSequenceError
        return revision + 1
