"""Follows the placement while a node runs, and tells the others that it lives.

A partition that the placement gives to somebody else, or has at another epoch, is closed at once; one that is this
node's and lies in its directory at that epoch is opened. A process that learns that another one runs as its node ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

import msgpack

from xyro.metadata.recovery import open_partition
from xyro.service.cluster.arrivals import Arrivals
from xyro.service.cluster.bucket import Bucket, encoded, epoch_of
from xyro.service.cluster.cluster_remote import CRAWLS
from xyro.service.cluster.mover import Mover, Stage
from xyro.service.node.data_dir import folder_of
from xyro.service.node.reload import follow
from xyro.wire.clock import Clock
from xyro.wire.errors import MachineError, XyroError
from xyro.wire.placement import Placement

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.service.cluster.transport import ClusterBus
    from xyro.service.node.node import Node

ALIVE_SECONDS = 1.0
"""for a process to say that it runs as a node"""
REST = 10.0
"""seconds after a move that failed"""
LOOK = 2.0
"""seconds between two looks at the bucket, unless somebody says that it changed"""
_log = logging.getLogger("xyro")


def alive_subject(crawl: str, node: int) -> str:
    """Subject on which the process that runs as a node answers that it does."""
    return f"xyro.{crawl}.alive.{node}"


def changed_subject(crawl: str) -> str:
    """Subject on which whoever changed the placement says so."""
    return f"xyro.{crawl}.changed"


def orphan_subject(crawl: str) -> str:
    """Subject on which the nodes of a crawl say what they know of it."""
    return f"xyro.{crawl}.orphan"


class NodeWatch:
    """The placement as one node follows it."""

    def __init__(
        self, link: BrokerLink, bus: ClusterBus, node: Node, instance: str, clock: Clock, stage: Stage
    ) -> None:
        self._link = link
        self._bus = bus
        self._node = node
        self._instance = instance
        self._clock = clock
        self._bucket: Bucket | None = None
        self._subscriptions: list[Subscription] = []
        self._closed = False
        self._arrivals = Arrivals(link, bus, node.data.path)
        self._mover = Mover(link, bus, node, stage)
        self._moving: asyncio.Task[None] | None = None
        self._leaving: int | None = None
        """the partition of the move under way"""
        self._written = bus.placement
        """as the last move from here left it: the bucket may be lost before anybody follows that"""
        self._followed = bus.placement.version
        """of the placement that is told: all that came in by those before it is applied"""
        self._rest_until = 0.0
        """monotonic: after a move that failed"""

    async def start(self) -> None:
        """Answer that the node lives, and take partitions."""
        await self._arrivals.start()
        crawl, number = self._bus.placement.crawl, self._bus.number
        self._subscriptions = [
            await self._link.subscribe(alive_subject(crawl, number), self._live),
            await self._link.subscribe(changed_subject(crawl), self._changed),
            await self._link.subscribe(CRAWLS, self._name_crawl),
        ]
        self._retell()

    def _retell(self) -> None:
        """Tell partitions that were restored which of their URLs are known here."""
        self._node.retell({int(partition): epoch for partition, epoch in self._bus.placement.restored.items()})

    async def _live(self, received: Msg) -> None:
        answer = self._instance, list(self._bus.open.items()), self._followed, list(self._bus.shut)
        await self._link.publish(received.reply, msgpack.packb(answer))

    async def _name_crawl(self, received: Msg) -> None:
        await self._link.publish(received.reply, self._bus.placement.crawl.encode())

    async def _changed(self, _: Msg) -> None:
        self._bus.outdated.set()

    async def run(self) -> None:
        """Follow the placement until closed. MachineError: another process runs as this node."""
        while not self._closed:
            began = self._clock.monotonic()
            try:
                placement = await self._read()
            except MachineError as error:  # local work goes on by the placement of before
                _log.debug("cluster: %s", error)
            else:
                if placement is not None:
                    await self._follow(placement)
                    await self._open_owned()
                    if self._bus.confirm(began):
                        self._node.pool.wake()
                    await self._plan()
            try:
                async with asyncio.timeout(LOOK):
                    await self._bus.outdated.wait()
            except TimeoutError:
                pass
            self._bus.outdated.clear()

    async def _read(self) -> Placement | None:
        if not self._link.connected:
            return None
        if self._bucket is None:
            self._bucket = await Bucket.open(self._link)
        placement = await self._bucket.read()
        if placement is None:
            await self._tell_orphaned()
        return placement

    async def _tell_orphaned(self) -> None:
        """The bucket is empty: say what is known here, for `xyro cluster adopt`."""
        _log.warning("the cluster's bucket is empty: `xyro cluster adopt` makes it anew")
        placement = max(self._bus.placement, self._written, key=lambda each: each.version)
        content = msgpack.packb((encoded(placement), self._bus.number, self._bus.open))
        await self._link.publish(orphan_subject(placement.crawl), content)

    async def _follow(self, placement: Placement) -> None:
        if placement.crawl != self._bus.placement.crawl or placement.version <= self._bus.placement.version:
            return
        number = self._bus.number
        member = placement.members.get(str(number))
        if member is not None and member.instance != self._instance:
            raise MachineError(f"another process runs as node {number} of the cluster now: this one ends")
        settings = self._bus.placement.settings
        self._bus.follow(placement)
        self._retell()  # before the first message of a partition that was restored is taken
        self._node.follow_network()
        if settings != placement.settings:
            await self._agree()
        await self._node.catch_up()  # of a partition's last owner nothing more may be applied once others rely on that
        self._followed = placement.version

    async def _open_owned(self) -> None:
        """Close the partitions that are somebody else's by the placement, and open those that are this node's: one that
        came while another was leaving, too."""
        owned = self._bus.placement.owned(self._bus.number)
        for partition in sorted(self._bus.open):
            if owned.get(partition) != self._bus.open[partition]:
                await self._drop(partition)
        self._bus.shut.intersection_update(owned)
        for partition, epoch in owned.items():
            if partition not in self._bus.open and partition != self._leaving:
                await self._take(partition, epoch)

    async def _agree(self) -> None:
        """The cluster's settings were changed (steering.py): what can changes at a commit boundary; the directory
        remembers all of it for the next start."""
        node = self._node
        wanted = self._bus.agreed(node.settings)
        async with node.boundary():
            follow(node, wanted)
            node.data.remember(wanted)

    async def _drop(self, partition: int) -> None:
        """Somebody else has it now: what is not committed here is read again there."""
        _log.warning("partition %d has another owner: it is closed here", partition)
        self._bus.closed(partition)
        await self._node.release(partition, patience=0.0)

    async def _take(self, partition: int, epoch: int) -> None:
        folder = folder_of(self._node.data.path, partition)
        if not folder.exists() or epoch_of(folder) != epoch:
            self._bus.shut.add(partition)
            return
        opened = await asyncio.to_thread(open_partition, folder)
        await self._node.admit(opened, self._bus.placement.restored.get(str(partition)) == epoch)
        self._retell()
        _log.info("partition %d: opened here, epoch %d", partition, epoch)

    # -- moves ---------------------------------------------------------------------------------------------------

    async def _plan(self) -> None:
        """Begin the next move of a partition of this node, planned by somebody or to even the counts."""
        if self._moving is not None or self._clock.monotonic() < self._rest_until or self._bucket is None:
            return
        placement, number = self._bus.placement, self._bus.number
        moves = {q: target for q, target in placement.moves_of(number).items() if q in self._bus.open}
        if not moves:
            if placement.next_move(number, list(map(int, placement.members))) is None:
                return
            alive = await self._alive()
            planned = await self._bucket.change(lambda now: _with_next_move(now, number, alive))
            await self._follow(planned)
            moves = {q: t for q, t in planned.moves_of(number).items() if q in self._bus.open}
        for partition, target in moves.items():
            if target in await self._alive():
                self._leaving = partition
                self._moving = asyncio.create_task(self._move(partition, target, self._bucket))
                return

    async def _alive(self) -> list[int]:
        """Numbers of the other members that answer now."""
        others = [int(n) for n in self._bus.placement.members if int(n) != self._bus.number]
        answers = await asyncio.gather(*(is_alive(self._link, self._bus.placement.crawl, n) for n in others))
        return [number for number, lives in zip(others, answers, strict=True) if lives]

    async def _move(self, partition: int, target: int, bucket: Bucket) -> None:
        epoch = self._bus.placement.owners[partition].epoch
        try:
            self._written = await self._mover.move(partition, target, bucket, lambda: self._take(partition, epoch))
            await self._link.publish(changed_subject(self._bus.placement.crawl), b"")
        except (XyroError, OSError) as error:
            _log.warning("partition %d stays here: %s", partition, error)
            self._rest_until = self._clock.monotonic() + REST
        finally:
            self._moving = self._leaving = None
            self._bus.outdated.set()

    async def close(self) -> None:
        """Follow no more. A move under way is given up, unless it stands before its end."""
        self._closed = True
        self._bus.outdated.set()
        if self._moving is not None:
            self._moving.cancel()
            await asyncio.gather(self._moving, return_exceptions=True)
        await self._arrivals.close()
        if self._link.connected:
            for subscription in self._subscriptions:
                await subscription.unsubscribe()


def _with_next_move(placement: Placement, node: int, alive: list[int]) -> Placement | None:
    found = placement.next_move(node, alive)
    return None if found is None else placement.planned(*found)


class LiveNode(NamedTuple):
    """A node that a process runs as, by its own word."""

    open: dict[int, int]
    """partitions, each with the epoch at which it is open there"""
    version: int
    """of the placement that it follows"""
    shut: frozenset[int]
    """partitions that are its, and that its directory does not have as the placement says"""


async def live_node(link: BrokerLink, crawl: str, node: int) -> LiveNode | None:
    """Ask the process that runs as a node; None: there is none."""
    from nats.errors import Error

    try:
        answer = await link.client.request(alive_subject(crawl, node), b"", timeout=ALIVE_SECONDS)
    except (OSError, Error):
        return None
    _, opened, version, shut = msgpack.unpackb(answer.data)
    return LiveNode(dict(opened), version, frozenset(shut))


async def is_alive(link: BrokerLink, crawl: str, node: int) -> bool:
    """Tell whether a process runs as a node now."""
    from nats.errors import Error

    try:
        await link.client.request(alive_subject(crawl, node), b"", timeout=ALIVE_SECONDS)
    except (OSError, Error):
        return False
    return True
