"""The bus of a node in a cluster: topics of partitions here are local, messages to others leave in frames over NATS.

Nothing waits for the broker and nothing relies on it. What is posted leaves together, a frame for each node: cash and
Acks SPACING after the frame before at the soonest, what somebody waits for at once. A broker that is away, a frame that
is lost, repeated or late costs time, never an item: outboxes, command senders and couriers send again. What comes in is
checked: it decodes, it is for a partition that is open here, its sender is the process that runs as its node, and owned
its partition at no older epoch than the placement knows. What is not is counted and dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from xyro.service.cluster.address_turns import AddressTurns
from xyro.service.cluster.couriers import Courier
from xyro.service.node.crawl_file import with_agreed
from xyro.wire import topics
from xyro.wire.bus import Bus, LocalBus
from xyro.wire.clock import Clock
from xyro.wire.codec import decode, encode
from xyro.wire.commands import Command, CommandAnswer
from xyro.wire.errors import CodecError, MachineError
from xyro.wire.frames import FROM_NODE, Entry, FrameReader, frames
from xyro.wire.messages import Ack, CashTransfer, Message, Submit

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from xyro.configs.schema import Settings
    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.wire.placement import Placement

QUEUED_BYTES = 32 << 20
"""of messages that wait to be handed to the broker; what comes beyond that is dropped"""
FULL = topics.LEASED // 2
"""messages that may wait for one partition, of other nodes' too"""
SPACING = 0.25
"""seconds between two frames of cash and Acks to one node: a frame takes .25 ms of CPU in all, and what it brings waits
for others at its end, too (service/node/partition_loop.py: LONGEST_HOLD)"""
REPEATS = 0.5
"""seconds between two looks at what had no answer"""
TRAVELS = Command | Submit | CashTransfer | Ack
"""messages for partitions of other nodes"""
STILL = 3.0
"""seconds: a process that stood still for longer may have been taken for dead"""
_log = logging.getLogger("xyro")


@dataclass(slots=True)
class TrafficCounts:
    """Counts messages that passed the broker, and those that were dropped, by reason."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    unsent: int = 0
    """the broker was away, or too much waited"""
    homeless: int = 0
    """for or of a partition that is just moving, or for a node that is none"""
    astray: int = 0
    """for a partition that is not open here"""
    stale: int = 0
    """of a partition that had another owner by then, or of a process that is its node no more"""
    undecodable: int = 0

    def fields(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True)
class _Outgoing:
    """The messages that wait to leave for a node."""

    due_at: float
    """monotonic"""
    entries: list[Entry] = field(default_factory=list)


Send = Callable[[Callable[[], None]], None]
"""calls what sends a message, once; for tests of a bad network as often, and as late, as they like"""


def at_once(send: Callable[[], None]) -> None:
    """Send it."""
    send()


def node_subject(crawl: str, node: int) -> str:
    """Subject of the frames to a node."""
    return f"xyro.{crawl}.node.{node}"


class ClusterBus:
    """The bus of one node; `sender` gives the one by which a partition posts.

    Invariant: a topic of a partition in `open` is read here; messages for it never pass the broker.
    """

    def __init__(
        self,
        link: BrokerLink,
        placement: Placement,
        node: int,
        instance: str,
        clock: Clock,
        send: Send = at_once,
    ) -> None:
        self.placement = placement
        self.number = node
        self.instance = instance
        self.open: dict[int, int] = {}
        """partitions that are open here, each with the epoch at which it was opened"""
        self.shut: set[int] = set()
        """partitions that are this node's, and that its directory does not have as the placement says"""
        self.counts = TrafficCounts()
        self._refused: set[str] = set()
        """senders of messages that could not be decoded"""
        self.courier = Courier(node, clock.time())
        self.turns = AddressTurns(link, placement, node, clock)
        self.commanded: list[Callable[[int], None]] = []
        """told of each partition here for which a command or URLs came from another node"""
        self.outdated = asyncio.Event()
        """set when a message shows that the placement is no longer that of `placement`"""
        self.link = link
        self._clock = clock
        self._local = LocalBus()
        self._pass_on = send
        self._outgoing: dict[int, _Outgoing] = {}
        self._written_at: dict[int, float] = {}
        """by node, when the last frame was handed to the broker (monotonic)"""
        self._queued = 0
        self._numbers = itertools.count(int(clock.time() * 1e6))
        self._wake = asyncio.Event()
        self._frames = FrameReader()
        self._closed = False
        self._seen_at = (clock.monotonic(), clock.time())
        self._woke_at: float | None = None
        """when this process was found to have stood still, until it has heard that it is its node yet (monotonic)"""

    # -- the bus -------------------------------------------------------------------------------------------------

    def post(self, topic: str, message: Message) -> None:
        self.post_from(FROM_NODE, topic, message)

    async def receive(self, topic: str, limit: int) -> list[Message]:
        return await self._local.receive(topic, limit)

    def waiting(self, topic: str) -> int:
        return self._local.waiting(topic)

    async def close(self) -> None:
        self._closed = True
        self._wake.set()
        await self._local.close()

    @property
    def nodes(self) -> int:
        """Number of nodes that have partitions, or are to get some."""
        return len({owner.node for owner in self.placement.owners} | {self.number} | {*self.placement.moves.values()})

    def stood_still(self) -> bool:
        """Tell whether this process stood still, and has not heard from the placement since (`confirm`)."""
        before, self._seen_at = self._seen_at, (self._clock.monotonic(), self._clock.time())
        if max(now - then for now, then in zip(self._seen_at, before, strict=True)) > STILL:
            _log.warning("this process stood still: it asks whether it is node %d yet", self.number)
            self._woke_at = self._seen_at[0]
            self.outdated.set()
        return self._woke_at is not None

    def confirm(self, asked_at: float) -> bool:
        """The placement of that moment says that this process is its node. True: it stood still before, and goes on."""
        if self._woke_at is None or self._woke_at > asked_at:
            return False
        self._woke_at = None
        return True

    def agreed(self, settings: Settings) -> Settings:
        return with_agreed(settings, self.placement.settings)

    @property
    def bus(self) -> Bus:
        """The bus of the node itself."""
        return self

    def sender(self, partition: int) -> Bus:
        """The bus by which a partition posts."""
        return PartitionSender(self, partition)

    def follow(self, placement: Placement) -> None:
        """Send by this placement from now on."""
        self.placement = placement
        self.turns.follow(placement)

    def opened(self, partition: int) -> None:
        """A partition takes messages here from now on."""
        self.open[partition] = self.placement.owners[partition].epoch
        self.shut.discard(partition)
        self.turns.opened(partition)

    def closed(self, partition: int) -> None:
        """It takes none any more; what was posted here since its last commit group goes to where it is opened next."""
        self.open.pop(partition, None)
        self.turns.closed(partition)
        topic = topics.pages(partition)
        for message in self._local.clear(topic):
            if isinstance(message, Command | Submit):  # cash is sent again from its outbox
                self.post(topic, message)

    def post_from(self, partition: int, topic: str, message: Message) -> None:
        """Post a message of a partition, or of the node itself (FROM_NODE)."""
        name, _, number = topic.partition(".")
        if name == topics.PAGES:
            target = int(number)
            if target in self.open:
                self._local.post(topic, message)
                return
            if not isinstance(message, TRAVELS):  # of a read or load that ended when its partition had left
                self.counts.homeless += 1
                return
            message = self.courier.take(topic, message, self._clock.monotonic())
            sender = FROM_NODE if isinstance(message, Command | Submit) else partition
            self._send(self.placement.owners[target].node, sender, topic, message)
        elif name == topics.ANSWERS and int(number) != self.number:
            self._send(int(number), partition, topic, message)
        elif name == topics.ANSWERS and isinstance(message, CommandAnswer) and self.courier.settle(message):
            return
        else:
            self._local.post(topic, message)

    # -- out -----------------------------------------------------------------------------------------------------

    def _send(self, node: int, partition: int, topic: str, message: Message) -> None:
        epoch = 0 if partition == FROM_NODE else self.open.get(partition)
        if epoch is None or node == self.number or str(node) not in self.placement.members:
            self.counts.homeless += 1
            return
        entry = Entry(topic, partition, epoch, encode(message))
        self._pass_on(lambda: self._enqueue(node, entry, not isinstance(message, CashTransfer | Ack)))

    def _enqueue(self, node: int, entry: Entry, urgent: bool) -> None:
        size = len(entry.message)
        if self._closed or self._queued + size > QUEUED_BYTES or not self.link.connected:
            self.counts.unsent += 1
            return
        self._queued += size
        if (waiting := self._outgoing.get(node)) is None:
            waiting = self._outgoing[node] = _Outgoing(self._written_at.get(node, -math.inf) + SPACING)
            self._wake.set()
        waiting.entries.append(entry)
        if urgent:  # somebody waits for it; all that was posted before leaves with it, in order
            waiting.due_at = -math.inf
            self._wake.set()

    async def run(self) -> None:
        """Take frames from the broker and hand ours to it, until closed."""
        subscription = await self.link.subscribe(node_subject(self.placement.crawl, self.number), self._take)
        await self.turns.start()
        repeating = asyncio.create_task(self._repeat())
        try:
            while not self._closed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._rest()):
                        await self._wake.wait()
                self._wake.clear()
                now = self._clock.monotonic()
                for node in [node for node, waiting in self._outgoing.items() if self._closed or waiting.due_at <= now]:
                    entries = self._outgoing.pop(node).entries
                    self._queued -= sum(len(entry.message) for entry in entries)
                    self._written_at[node] = now
                    await self._write(node, entries)
        finally:
            repeating.cancel()
            await asyncio.gather(repeating, return_exceptions=True)
            await self.turns.close()
            if not self.link.client.is_closed:
                await subscription.unsubscribe()

    def _rest(self) -> float | None:
        """Seconds until the next frame is due; None: nothing waits."""
        due = min((waiting.due_at for waiting in self._outgoing.values()), default=None)
        return None if due is None else max(due - self._clock.monotonic(), 0.0)

    async def _write(self, node: int, entries: Sequence[Entry]) -> None:
        subject = node_subject(self.placement.crawl, node)
        for frame in frames(self.number, self.instance, entries, self._numbers):
            self.counts.sent += 1
            self.counts.sent_bytes += len(frame)
            await self.link.publish(subject, frame)

    async def _repeat(self) -> None:
        while True:
            await self._clock.sleep(REPEATS)
            self.stood_still()
            for topic, message in list(self.courier.due(self._clock.monotonic())):
                self.post(topic, message)

    # -- in ------------------------------------------------------------------------------------------------------

    async def _take(self, received: Msg) -> None:
        self.counts.received += 1
        self.counts.received_bytes += len(received.data)
        try:
            frame = self._frames.read(received.data)
        except CodecError as error:
            self._refuse("an unknown sender", error)
            return
        if frame is None or self._closed:
            return
        member = self.placement.members.get(str(frame.node))
        if member is None or member.instance != frame.instance:  # of a process of before, or of one not known yet
            self.counts.stale += len(frame.entries)
            self.outdated.set()
            return
        for entry in frame.entries:
            self._admit(frame.node, entry)

    def _admit(self, node: int, entry: Entry) -> None:
        """Hand a message on, or drop it and count why."""
        if not self._is_fresh(node, entry):
            self.counts.stale += 1
            return
        try:
            message = decode(entry.message)
            target = self._target(entry, message)
        except CodecError as error:
            self._refuse(f"node {node}", error)
            return
        if not target or self._local.waiting(entry.topic) >= FULL:
            self.counts.astray += 1
            return
        if isinstance(message, CommandAnswer) and self.courier.settle(message):
            return
        try:
            self._local.post(entry.topic, message)
        except MachineError:  # closed meanwhile
            self.counts.astray += 1
        if isinstance(message, Command | Submit):
            for tell in self.commanded:
                tell(int(entry.topic.partition(".")[2]))

    def _refuse(self, sender: str, error: CodecError) -> None:
        """Count what cannot be decoded; the log has the first of each sender, or a broken one would fill it."""
        self.counts.undecodable += 1
        level = logging.DEBUG if sender in self._refused else logging.WARNING
        self._refused.add(sender)
        _log.log(level, "cluster: dropped a message of %s: %s; more of its kind are only counted", sender, error)

    def _is_fresh(self, node: int, entry: Entry) -> bool:
        """Tell whether the sender owns the partition that it speaks for, as far as is known here."""
        if entry.partition == FROM_NODE:
            return True
        if not 0 <= entry.partition < self.placement.partitions:
            return False
        owner = self.placement.owners[entry.partition]
        if entry.epoch > owner.epoch:  # perhaps it is newer than we know: it is sent again until we do
            self.outdated.set()
        return entry.epoch == owner.epoch and owner.node == node

    def _target(self, entry: Entry, message: Message) -> bool:
        """Tell whether the topic is one that is read here. CodecError: the message is none that travels there."""
        name, _, number = entry.topic.partition(".")
        if name == topics.ANSWERS and isinstance(message, CommandAnswer):
            return number == str(self.number)
        if name != topics.PAGES or not number.isdecimal() or not isinstance(message, TRAVELS):
            raise CodecError(f"frame: a {type(message).__name__} for {entry.topic[:40]!r}")
        if isinstance(message, CashTransfer | Ack) and message.source != entry.partition:
            raise CodecError(f"frame: a {type(message).__name__} that is not its sender's")
        return int(number) in self.open


class PartitionSender:
    """The bus as one partition sees it: what it posts carries its number and epoch."""

    __slots__ = ("_bus", "_partition")

    def __init__(self, bus: ClusterBus, partition: int) -> None:
        self._bus = bus
        self._partition = partition

    def post(self, topic: str, message: Message) -> None:
        self._bus.post_from(self._partition, topic, message)

    async def receive(self, topic: str, limit: int) -> list[Message]:
        return await self._bus.receive(topic, limit)

    def waiting(self, topic: str) -> int:
        return self._bus.waiting(topic)

    async def close(self) -> None:
        await self._bus.close()
