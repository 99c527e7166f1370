"""Founds a cluster or joins one: what a process does between its start and its first read, and until it stops.

    open      the placement is read or made; this directory's partitions that are this node's are opened
    connect   frames come and go; the broker's address is one that no crawl contacts
    serve     the node tells that it lives, follows the placement, and answers what is asked of the cluster
    leave, close

A node whose broker is away when it starts waits for it: without the bucket nobody knows which partitions are its own.
One that runs goes on without.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from xyro.configs.schema import Settings
from xyro.metadata.directories import create_directory
from xyro.metadata.partition import create, new_seed
from xyro.metadata.recovery import open_partition
from xyro.service.cluster.broker_link import PORT, BrokerLink
from xyro.service.cluster.bucket import Bucket, NodeFile, differences, epoch_of, epochs, set_epoch
from xyro.service.cluster.cluster_remote import lost_bucket, running_crawl
from xyro.service.cluster.gathering import listed
from xyro.service.cluster.mover import Stage
from xyro.service.cluster.node_answers import NodeAnswers
from xyro.service.cluster.node_watch import NodeWatch, changed_subject, is_alive
from xyro.service.cluster.transport import ClusterBus, Send, at_once
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import DataDir, folder_of
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError, XyroError
from xyro.wire.placement import Member, Owner, Placement

if TYPE_CHECKING:
    from xyro.guard import Guard
    from xyro.service.node.network import NodeNetwork
    from xyro.service.node.node import Node

STARTS = 12
"""times that a bucket which gives no answer within some seconds is asked for again"""
LAST_WORDS = 5.0
"""seconds that a process which fails may take to say of what"""
PARTITIONS = 16
"""of a crawl that is created in a cluster, where nobody says otherwise"""
_log = logging.getLogger("xyro")


class ClusterMembership:
    """One process's part in the cluster of a broker (`Membership` of service/node/cluster_seam.py)."""

    def __init__(
        self, url: str, ca: Path | None, clock: Clock, send: Send = at_once, stage: Stage = lambda name: None
    ) -> None:
        """send, stage: for tests (transport.py, mover.py)."""
        self.url = url
        self.ca = ca
        self.instance = secrets.token_hex(8)
        self.number = 0
        self._clock = clock
        self._send = send
        self._stage = stage
        self._placement: Placement | None = None
        self._link: BrokerLink | None = None
        self._bus: ClusterBus | None = None
        self._answers: NodeAnswers | None = None
        self._watch: NodeWatch | None = None
        self._running: list[asyncio.Task[None]] = []

    # -- before the loop -----------------------------------------------------------------------------------------

    def adapt(self, directory: Path, settings: Settings) -> Settings:
        """The settings with those of the cluster in place of defaults, for a directory that is new to it: what people
        have changed for all nodes (`xyro cluster set`) need not be told to each new one."""
        if NodeFile.read(directory) is not None or epochs(directory):
            return settings
        return asyncio.run(self._adapted(settings))

    async def _adapted(self, settings: Settings) -> Settings:
        link = await self._reach()
        try:
            placement = await (await self._open_bucket(link)).read()
        finally:
            await link.close()
        if placement is None:
            return settings
        ours, defaults = crawl_file.agreed(settings), crawl_file.agreed(Settings())
        unsaid = {key: value for key, value in placement.settings.items() if ours.get(key) == defaults.get(key)}
        return crawl_file.with_agreed(settings, unsaid)

    def open(self, directory: Path, settings: Settings, partitions: int | None) -> DataDir:
        """Found or join the cluster, and open the partitions that are this node's."""
        return asyncio.run(self._join(directory, settings, partitions))

    async def _join(self, directory: Path, settings: Settings, partitions: int | None) -> DataDir:
        link = await self._reach()
        try:
            bucket = await self._open_bucket(link)
            agreed = crawl_file.agreed(settings)
            own = NodeFile.read(directory)
            placement = await bucket.read()
            created = own is None and not epochs(directory)
            if placement is None:
                if own is None:
                    await _refuse_second_crawl(link, bucket)
                count = partitions or (settings.crawl.partitions if settings.crawl.partitions > 1 else None)
                placement = await self._found(bucket, directory, own, count, agreed)
            placement = await self._enter(link, bucket, directory, placement, agreed, partitions)
            self._placement = placement
            try:
                return DataDir.open_some(directory, self._ours(directory, placement), placement.partitions, created)
            except (XyroError, OSError) as error:
                await self._tell_failure(link, error)
                raise
        finally:
            await link.close()

    def _member(self, identity: str, directory: Path) -> Member:
        place = str(directory.absolute())
        return Member(identity, self.instance, platform.node(), pid=os.getpid(), directory=place)

    async def _reach(self) -> BrokerLink:
        """The broker, however long it is away."""
        try:
            return await self._dial("xyro node", wait=False)
        except MachineError as error:
            _log.warning("%s; waiting for it", error)
            return await self._dial("xyro node", wait=True)

    async def _dial(self, name: str, wait: bool) -> BrokerLink:
        return await BrokerLink.open(self.url, self.ca, name, wait=wait)

    async def _open_bucket(self, link: BrokerLink) -> Bucket:
        """The bucket, however long servers that were just started take to agree on who leads. MachineError: none."""
        for _ in range(STARTS):
            try:
                return await Bucket.open(link)
            except MachineError as error:
                if not isinstance(error.__cause__, TimeoutError):
                    raise
                _log.warning("%s; asking again", error)
        return await Bucket.open(link)

    async def _found(
        self, bucket: Bucket, directory: Path, own: NodeFile | None, count: int | None, agreed: dict[str, object]
    ) -> Placement:
        """Make this directory's crawl, or a new one, that of the empty cluster; that of another founder, if faster."""
        there = epochs(directory)
        if own is not None and any(there.values()):
            raise MachineError(
                f"{directory}: is a node of crawl {own.crawl}, of which the broker knows nothing: while other nodes "
                "of it run, `xyro cluster adopt` makes its bucket anew; then start this one"
            )
        if there:
            seed, count = _whole_crawl(directory, there, count)
        else:
            seed, count = new_seed(), count or PARTITIONS
        file = NodeFile(own.crawl if own else secrets.token_hex(4), seed, count, own.identity if own else _identity())
        member = self._member(file.identity, directory)
        owners = tuple(Owner(1, 1) for _ in range(count))
        fresh = Placement(file.crawl, seed, agreed, owners, {"1": member}, founding=True)
        if there or own:
            file.write(directory)
        else:
            create_directory(directory, file.write)
        if await bucket.create(fresh):
            return await bucket.change(lambda now: now)
        found = await bucket.read()
        if found is None:
            raise MachineError("the cluster's bucket was emptied while this node founded it: start again")
        if there:
            (directory / "node.json").unlink()
        else:
            NodeFile(found.crawl, found.seed, found.partitions, file.identity).write(directory)
        return found

    async def _enter(
        self,
        link: BrokerLink,
        bucket: Bucket,
        directory: Path,
        placement: Placement,
        agreed: dict[str, object],
        partitions: int | None,
    ) -> Placement:
        """Become a member, or the one that this directory was, as the process that runs as it from now on."""
        own = NodeFile.read(directory)
        if own is None and epochs(directory):
            raise InputError(
                f"{directory}: holds a crawl of its own, and {link.url} another one; name another directory with --data"
            )
        if own is not None and own.crawl != placement.crawl:
            raise InputError(f"{directory}: is a node of crawl {own.crawl}; {link.url} holds crawl {placement.crawl}")
        if different := list(differences(agreed, placement.settings)):
            raise InputError(
                f"{link.url}: this node's settings are not the cluster's: {'; '.join(different[:5])}. Start it with "
                "those there (options, files, XYRO_ variables), or change them for all nodes, also while none runs, by "
                f"`xyro cluster set {different[0].partition(' ')[0]}=VALUE`"
            )
        if partitions not in (None, placement.partitions):
            raise InputError(f"--partitions {partitions}: the crawl there has {placement.partitions}; leave it out")
        if own is None:
            own = NodeFile(placement.crawl, placement.seed, placement.partitions, _identity())
            create_directory(directory, own.write)
        number = placement.number_of(own.identity)
        if number is not None:
            await _refuse_twin(link, placement.crawl, number, directory)
        identity = own.identity

        def enter(now: Placement) -> Placement:
            mine = now.number_of(identity)
            chosen = mine if mine is not None else max(map(int, now.members), default=0) + 1
            return now.with_member(chosen, self._member(identity, directory))

        entered = await bucket.change(enter)
        self.number = entered.number_of(identity) or 0
        if entered.founding and self.number == entered.owners[0].node:
            _make_partitions(directory, entered)
            entered = await bucket.change(lambda now: now.founded())
        await link.publish(changed_subject(placement.crawl), b"")
        return entered

    def _ours(self, directory: Path, placement: Placement) -> list[int]:
        """The partitions that are this node's by the placement and by the directory."""
        there, found = epochs(directory), []
        for number, epoch in placement.owned(self.number).items():
            if there.get(number) == epoch:
                found.append(number)
            else:
                _log.warning(
                    "partition %d: the cluster has it here at epoch %d, the directory %s: it stays closed",
                    *(number, epoch, f"carries epoch {there[number]}" if number in there else "has none"),
                )
        return found

    # -- on the loop ---------------------------------------------------------------------------------------------

    async def connect(self, guard: Guard) -> NodeNetwork:
        """Take part from now on."""
        assert self._placement is not None, "opened"
        self._link = await self._dial(f"xyro node {self.number}", wait=True)
        self._link.log_losses(self._clock)
        servers = {*self.url.split(","), *(each.geturl() for each in self._link.client.servers)}
        for url in map(urlsplit, servers):
            for address in await _addresses(url.hostname or "", url.port or PORT):
                guard.deny(address, url.port or PORT)
        self._bus = ClusterBus(self._link, self._placement, self.number, self.instance, self._clock, self._send)
        self._running.append(asyncio.create_task(self._bus.run()))
        return self._bus

    async def serve(self, node: Node, address: tuple[str, int], token: str) -> None:
        """Tell that this node lives, follow the placement, answer what is asked."""
        assert self._link is not None and self._bus is not None and self._placement is not None, "connected"
        self._answers = NodeAnswers(self._link, self._placement.crawl, self.number, *address, token)
        await self._answers.start()
        own = sorted(self._bus.open)
        text = f"partitions {listed(own)} open" if own else "no partition yet: others give it its share"
        _log.info("node %d of the cluster at %s: %s", self.number, self._link.url, text)
        await self.follow(node)

    async def follow(self, node: Node) -> None:
        """Tell that this node lives, and follow the placement."""
        assert self._link is not None and self._bus is not None, "connected"
        self._watch = NodeWatch(self._link, self._bus, node, self.instance, self._clock, self._stage)
        await self._watch.start()
        node.watch(self._watch.run())

    async def leave(self) -> None:
        """Nothing is asked of the node, and nothing moves, any more."""
        if self._watch is not None:
            await self._watch.close()
        if self._answers is not None:
            await self._answers.close()

    async def close(self, failure: BaseException | None = None) -> None:
        """The node has stopped: let what it sent last go out."""
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._link is not None:
            if isinstance(failure, XyroError | OSError) and self._link.connected:
                await self._tell_failure(self._link, failure)
            await self._link.close()

    async def _tell_failure(self, link: BrokerLink, failure: Exception) -> None:
        """Let the others know what this process failed of, for as long as no other one runs as its node."""
        number = str(self.number)

        def end(now: Placement) -> Placement | None:
            member = now.members.get(number)
            if member is None or member.instance != self.instance:
                return None
            return now.with_member(self.number, msgspec.structs.replace(member, ended=str(failure)))

        try:
            async with asyncio.timeout(LAST_WORDS):
                await (await Bucket.open(link)).change(end)
        except (XyroError, TimeoutError) as error:
            _log.info("cluster: the others do not hear why this node ends: %s", error)


async def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a broker; "", which is any private one, where its name is not found now."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return [""]
    return [str(address[0]).partition("%")[0] for *_, address in found]


def _identity() -> str:
    return secrets.token_hex(8)


def _whole_crawl(directory: Path, there: dict[int, int], count: int | None) -> tuple[int, int]:
    """Seed and number of partitions of a crawl of one process. InputError: some of it is missing."""
    partition = open_partition(folder_of(directory, min(there)), look=True)
    facts = partition.facts
    partition.close()
    if len(there) != facts["partitions"]:
        raise InputError(
            f"{directory}: {len(there)} of {facts['partitions']} partitions are there: it cannot found a cluster"
        )
    if count not in (None, facts["partitions"]):
        raise InputError(f"{directory}: has {facts['partitions']} partitions, not {count}: leave --partitions out")
    return facts["seed"], facts["partitions"]


def _make_partitions(directory: Path, placement: Placement) -> None:
    """The partitions of a crawl that is being founded, as far as they are missing."""
    for number, owner in enumerate(placement.owners):
        folder = folder_of(directory, number)
        if not folder.exists():
            create(folder, number, placement.partitions, placement.seed, {})
        if epoch_of(folder) == 0:
            set_epoch(folder, owner.epoch)


async def _refuse_second_crawl(link: BrokerLink, bucket: Bucket) -> None:
    """MachineError: the bucket is empty because the broker lost it, so no crawl may be founded there."""
    crawl = await running_crawl(link)
    if crawl and await bucket.read() is None:
        raise MachineError(lost_bucket(link, crawl))


async def _refuse_twin(link: BrokerLink, crawl: str, number: int, directory: Path) -> None:
    """InputError: a living process runs as this node, from this directory or one that was copied."""
    if await is_alive(link, crawl, number):
        raise InputError(f"{directory}: a process runs as node {number} of the cluster already; stop that one first")
