"""The bus carries messages between partitions and loops: a sender posts to a topic, a receiver takes from it.

topics.py lists the topics with their senders, receivers and bounds.

So a poster never has to wait: the rules of the loop keep every topic small, and a topic over its bound means that one
of them is broken. That is a MachineError, loud and at once, rather than a queue that eats the memory.

The three forms differ in where the queues live, never for the caller:

- LocalBus, here: one process, one event loop; messages pass as objects, nothing is encoded. (EncodingBus encodes and
  decodes each: the tests run the loop over it.)
- Worker processes: `post` puts the codec's bytes into a frame for a Unix socket, written together at the end of the
  event loop's turn; acknowledgements come back in batches; `receive` reads the queue that the socket's protocol fills.
- NATS JetStream: a topic is a subject and `receive` a pull of up to `limit` messages. It delivers at least once, as
  transport only; outbox and inbox in LevelDB and the lease epoch in each report make a second delivery harmless.

A message that was posted but not received when a process dies is lost with it. Nothing else is: an order that
is lost is given out again after a restart, cash stays in the sender's outbox until it is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from xyro.wire import topics
from xyro.wire.codec import decode, encode
from xyro.wire.errors import MachineError
from xyro.wire.messages import Message


class Bus(Protocol):
    """Topics of messages, first in, first out, each message to one receiver."""

    def post(self, topic: str, message: Message) -> None:
        """Put `message` at the end of `topic`; never waits. MachineError: the topic is over its bound, or closed."""
        ...

    async def receive(self, topic: str, limit: int) -> list[Message]:
        """The oldest messages of `topic`, at least one and at most `limit` (>= 1), waiting for the first.

        An empty list says that the bus is closed. A cancelled receive takes nothing.
        """
        ...

    def waiting(self, topic: str) -> int:
        """Return the number of messages of `topic` that were posted here and not received yet."""
        ...

    async def close(self) -> None:
        """Give out nothing more: every receiver, waiting or to come, gets an empty list. Twice is once."""
        ...


class _Topic:
    """One queue. A receiver sleeps only where no message lies, and each message wakes one: none lies there unseen."""

    __slots__ = ("bound", "messages", "sleepers")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.messages: deque[Message] = deque()
        self.sleepers: deque[asyncio.Future[None]] = deque()

    def wake(self) -> None:
        """Wake the receiver that has slept longest."""
        while self.sleepers:
            sleeper = self.sleepers.popleft()
            if not sleeper.done():
                sleeper.set_result(None)
                return

    async def wait(self) -> None:
        """Sleep until woken. Cancelled after being woken, hand the wake-up on: its message still lies here."""
        sleeper = asyncio.get_running_loop().create_future()
        self.sleepers.append(sleeper)
        try:
            await sleeper
        except asyncio.CancelledError:
            if not sleeper.cancelled():
                self.wake()
            with suppress(ValueError):
                self.sleepers.remove(sleeper)
            raise

    def take(self, limit: int) -> list[Message]:
        if len(self.messages) <= limit:
            messages = list(self.messages)
            self.messages.clear()
            return messages
        return [self.messages.popleft() for _ in range(limit)]


class LocalBus:
    """The bus of one process and one event loop (not for several threads): a deque for each topic.

    `bounds`: topic -> most messages waiting, instead of the bound of topics.py; "pages" stands for every "pages.N" that
    has none itself.
    """

    def __init__(self, bounds: Mapping[str, int] | None = None) -> None:
        self._bounds = dict(bounds or {})
        self._topics: dict[str, _Topic] = {}
        self._closed = False

    def post(self, topic: str, message: Message) -> None:
        queue = self._topics.get(topic) or self._open(topic)
        if self._closed:
            raise MachineError(f"bus: {topic!r} got a message after the bus was closed")
        if len(queue.messages) >= queue.bound:
            raise MachineError(f"bus: topic {topic!r} is over its bound of {queue.bound} messages; nobody empties it")
        queue.messages.append(message)
        if queue.sleepers:
            queue.wake()

    async def receive(self, topic: str, limit: int) -> list[Message]:
        if limit < 1:
            raise ValueError(f"receive at least one message, not {limit}")
        queue = self._topics.get(topic) or self._open(topic)
        while not (queue.messages or self._closed):
            await queue.wait()
        if self._closed:
            return []
        return queue.take(limit)

    def waiting(self, topic: str) -> int:
        queue = self._topics.get(topic)
        return len(queue.messages) if queue else 0

    def clear(self, topic: str) -> list[Message]:
        """Take all messages of `topic` at once; nobody is to receive them here any more."""
        queue = self._topics.get(topic)
        return queue.take(len(queue.messages)) if queue else []

    async def close(self) -> None:
        self._closed = True
        for queue in self._topics.values():
            while queue.sleepers:
                queue.wake()

    def _open(self, topic: str) -> _Topic:
        bounds = self._bounds
        bound = bounds.get(topic, bounds.get(topic.partition(".")[0], topics.bound(topic)))
        return self._topics.setdefault(topic, _Topic(bound))


class EncodingBus(LocalBus):
    """A local bus that carries every message as bytes, as a bus between processes does.

    A receiver gets an equal message, never the sender's object: what works because both sides share one fails here.
    """

    def post(self, topic: str, message: Message) -> None:
        super().post(topic, decode(encode(message)))
