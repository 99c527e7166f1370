"""A machine of a simulated cluster: its directory, and the process that runs on it, if one does."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from xyro.configs.schema import Settings
from xyro.guard import Guard
from xyro.lab.simulate.brokers import URL, SimulatedBroker, SimulatedLink
from xyro.lab.simulate.cluster_loop import ClusterLoop
from xyro.lab.simulate.faults import Faults
from xyro.lab.simulate.lives import ONLY_NET, VirtualClock
from xyro.lab.simulate.peers import LyingWeb
from xyro.lab.simulate.wires import Wires
from xyro.lab.simulate.witness import CrawlWitness
from xyro.plugins import PLUGINS
from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.membership import ClusterMembership
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import DataDir
from xyro.service.node.node import Bounds, Node
from xyro.wire.errors import MachineError

NODES, PARTITIONS = 3, 6
PATIENCE = 300.0
"""seconds (simulated) that an orderly end may take"""


class Surroundings(Protocol):
    """The parts of a simulated cluster that its machines and faults meet (cluster_lives.py has them)."""

    folder: Path
    loop: ClusterLoop
    draw: random.Random
    world: LyingWeb
    witness: CrawlWitness
    settings: Settings
    broker: SimulatedBroker
    machines: list[Machine]
    wires: dict[int, Wires]
    """life -> its connections"""
    full: set[int]
    """lives whose disk takes nothing more"""

    def next_life(self) -> int: ...

    def note(self, event: str, *more: object) -> None: ...

    def kill_soon(self, machine: Machine) -> None: ...

    async def plan_move(self, partition: int, target: Machine) -> None: ...


class SimulatedMembership(ClusterMembership):
    """A node's part in the cluster, over the broker in memory."""

    def __init__(self, machine: Machine, stage: Callable[[str], None]) -> None:
        super().__init__(URL, None, VirtualClock(machine.loop), stage=stage)
        self._machine = machine

    async def _dial(self, name: str, wait: bool) -> BrokerLink:
        while not (link := self._machine.link()).connected:
            if not wait:
                raise MachineError("no broker answers there")
            await asyncio.sleep(0.5)
        return link

    @property
    def arrivals(self) -> list[Any]:
        """Copies that are arriving, whose stores are open."""
        return [] if self._watch is None else list(self._watch._arrivals._arriving.values())


class Machine:
    """One node: its directory, and the process that runs on it, if one does."""

    def __init__(self, cluster: Surroundings, number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.loop = cluster.loop
        self.path = cluster.folder / f"n{number}"
        self.life = 0
        self.node: Node | None = None
        self.at_step: tuple[str, Callable[[], None]] | None = None
        """step of a move from here, and what happens as it begins"""
        self._process: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._membership: SimulatedMembership | None = None
        self._data: DataDir | None = None
        self._wires: Wires | None = None

    def link(self) -> SimulatedLink:
        return SimulatedLink(self.cluster.broker, self.number)

    # -- lives ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a process."""
        cluster = self.cluster
        self.life = cluster.next_life()
        self._stopping = asyncio.Event()
        self._wires = Wires(self.loop, cluster.world, cluster.draw, Faults(None), cluster.witness)
        cluster.wires[self.life] = self._wires
        self._process = self.loop.begin(self.life, self._run())

    async def _run(self) -> None:
        settings = self.cluster.settings
        membership = self._membership = SimulatedMembership(self, self._staged)
        data = self._data = await membership._join(self.path, settings, PARTITIONS)
        crawl_file.remember(self.path, settings, *(partition.store for partition in data.partitions))
        guard = Guard(only_net=ONLY_NET)
        network = await membership.connect(guard)
        clock = VirtualClock(self.loop)
        node = Node(data, settings, guard, Bounds(forever=True), clock, plugins=PLUGINS, network=network)
        try:
            node.start()
            await membership.follow(node)
            self.node = node
            while not self._stopping.is_set():
                node.check()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._stopping.wait()
        finally:
            self.node = None
            await membership.leave()
            try:
                await node.stop()
            finally:
                await membership.close(sys.exc_info()[1])
                data.close()

    def _staged(self, step: str) -> None:
        if self.at_step is not None and step == self.at_step[0]:
            (_, happens), self.at_step = self.at_step, None
            happens()

    async def stop(self) -> None:
        """End the process in order."""
        self._stopping.set()
        if self._process is not None:
            await asyncio.wait([self._process], timeout=PATIENCE)
            assert self._process.done(), f"node {self.number} does not stop"
            if (error := self._process.exception()) and not isinstance(error, MachineError):
                raise error
        await self.kill()

    async def kill(self) -> None:
        """End the process as SIGKILL does: what it does on its way out reaches nobody and nothing."""
        if not self.life or self.life in self.loop.gone:
            return
        files = {file: file.read_bytes() for file in sorted(self.path.iterdir()) if file.is_file()}
        node, life = self.node, self.life
        frontiers = list(node.frontiers) if node is not None else []
        self.node = None
        self.loop.gone.add(life)
        if self._wires is not None:
            self._wires.faults.is_dead = True
            self._wires.break_all()
        self.cluster.witness.note_crash()
        await self.loop.end(life)
        stores = [frontier.partition.store for frontier in frontiers]
        stores += [partition.store for partition in (self._data.partitions if self._data is not None else ())]
        stores += [arrival.store for arrival in (self._membership.arrivals if self._membership is not None else ())]
        for store in stores:
            store.close()
        for file, content in files.items():
            file.write_bytes(content)
        if node is not None:
            await node.fetch_loop.reader.close()

    @property
    def lives(self) -> bool:
        return self.node is not None and self.life not in self.loop.frozen
