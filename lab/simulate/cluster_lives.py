"""Hours of a cluster on a seeded machine: nodes that join, move partitions, stand still, die and come back.

Nodes are whole: membership, placement, moves, transport, turns at shared addresses, frontier, pool, client; their
stores are LevelDB in a directory in memory. The broker is one in memory (brokers.py), the web as in lives.py. Each hour
one fault is drawn, which is over before the hour is; then all partitions are open once each, their audit is exact, and
what was submitted is known. The witness judges requests as it does for one process, whichever node makes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from xyro.configs.schema import Settings
from xyro.lab.simulate.brokers import SimulatedBroker, SimulatedLink
from xyro.lab.simulate.cluster_faults import FAULTS
from xyro.lab.simulate.cluster_loop import LIFE, ClusterLoop
from xyro.lab.simulate.disks import fast_folder
from xyro.lab.simulate.lives import ONLY_NET, few_places
from xyro.lab.simulate.machines import NODES, PARTITIONS, Machine
from xyro.lab.simulate.peers import LyingWeb, WorldShape
from xyro.lab.simulate.wires import Wires
from xyro.lab.simulate.witness import CrawlWitness, PromisedGaps
from xyro.metadata.store import Batch, Store
from xyro.service.cluster.steering import plan_move
from xyro.service.node.node import Node
from xyro.service.views.audit import PartitionAudit, audit_part, combined_audit
from xyro.wire.errors import MachineError, XyroError

HOUR = 3600.0
HEALED = 300.0
"""seconds in which a cluster whose fault is over is whole again"""
CALLBACKS = 20_000_000
"""an hour: more than any sound hour of three nodes takes"""
SHAPE = WorldShape(sites=6, pages=12, lies=0.15, private=0.1)
DELAY = 1.0


@dataclass(slots=True)
class ClusterOutcome:
    """The result of a seed."""

    seed: int
    violations: list[str]
    digest: str = ""
    faults: list[str] = field(default_factory=list)
    moves: int = 0
    requests: int = 0
    pages: int = 0
    messages: int = 0
    accepted: int = 0
    callbacks: int = 0
    hours: float = 0.0


def simulate_cluster(seed: int, hours: int) -> ClusterOutcome:
    """Run a cluster for so many hours."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    logging.getLogger("xyro").setLevel(logging.CRITICAL)
    random.seed(seed)
    with fast_folder() as folder:
        return SimulatedCluster(seed, hours, folder).run()


class SimulatedCluster:
    """The machines, the broker, the web and the witness of one seed."""

    def __init__(self, seed: int, hours: int, folder: Path) -> None:
        self.seed = seed
        self.hours = hours
        self.folder = folder
        self.draw = random.Random(f"cluster {seed}")
        self.world = LyingWeb(SHAPE, random.Random(f"world {seed}"), 0.0)
        self.world.truce = HOUR * max(hours - 2, 0)
        promises = PromisedGaps(least_gap=DELAY, factor=0.0, factor_cap=0.0, address_gap=0.0, grace=HOUR)
        self.witness = CrawlWitness(promises, self.world.endpoints, str(folder))
        self.witness.life = 1
        self.settings = _settings(random.Random(f"settings {seed}"))
        self.loop = ClusterLoop(self.draw, self._turn, CALLBACKS * hours)
        self.broker = SimulatedBroker(self.loop, self.draw)
        self.wires: dict[int, Wires] = {}
        self.outcome = ClusterOutcome(seed, self.witness.violations)
        self.full: set[int] = set()
        """lives whose disk takes nothing more"""
        self.machines = [Machine(self, number) for number in range(1, NODES + 1)]
        self._lives = 0
        self._dying: list[Machine] = []
        self._kills = asyncio.Event()
        self.seeds = [f"{site.origin}/" for site in self.world.sites]

    def run(self) -> ClusterOutcome:
        """All hours."""
        outcome = self.outcome
        self.loop.attach(self)
        try:
            with self._machine_of_the_seed(), few_places(0):
                self.loop.run_until_complete(self._live())
        except Exception as error:  # whatever it is, it is the seed's outcome
            self.witness.blame(f"{type(error).__name__}: {error}")
        finally:
            self.loop.abandon()
            for machine in self.machines:
                for partition in machine._data.partitions if machine._data is not None else ():
                    partition.store.close()
        outcome.digest, outcome.requests = self.witness.digest, len(self.witness.visits)
        outcome.messages, outcome.callbacks = self.broker.messages, self.loop.turns
        outcome.accepted, outcome.hours = len(self.witness.accepted), self.loop.now / HOUR
        return outcome

    @contextlib.contextmanager
    def _machine_of_the_seed(self) -> Iterator[None]:
        """Names are drawn from the seed; stores of processes that are gone, or whose disk is full, take nothing."""
        module, store_class, system = cast(Any, secrets), cast(Any, Store), cast(Any, os)
        hexes, bits, fsync = module.token_hex, module.randbits, system.fsync
        begin, write = store_class.open, store_class.write
        loop, full = self.loop, self.full

        def drawn(size: int | None = None) -> str:
            return self.draw.randbytes(size or 16).hex()

        def check() -> None:
            if LIFE.get() in full or LIFE.get() in loop.gone:
                raise MachineError("the store failed (No space left on device)")

        def opened(path: Path, *, create: bool = False) -> Any:
            check()
            return begin(path, create=create)

        def checked(store: Store, batch: Batch) -> None:
            check()
            write(store, batch)

        def synced(handle: int) -> None:
            if LIFE.get() in full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        module.token_hex, module.randbits, system.fsync = drawn, self.draw.getrandbits, synced
        store_class.open, store_class.write = opened, checked
        try:
            yield
        finally:
            module.token_hex, module.randbits, system.fsync = hexes, bits, fsync
            store_class.open, store_class.write = begin, write

    def _turn(self, now: float) -> None:
        self.witness.now = now

    def note(self, event: str, *more: object) -> None:
        self.witness.note(event, *more)
        self.outcome.faults.append(f"{self.loop.now / HOUR:.2f} h: {event} {' '.join(map(str, more))}")

    def next_life(self) -> int:
        self._lives += 1
        return self._lives

    # -- sockets (of virtual_loop.SocketNetwork): each life has its own ------------------------------------------

    async def connect(self, sock: Any, address: tuple[str, int]) -> None:
        await self.wires[LIFE.get()].connect(sock, address)

    def open(self, sock: Any, protocol: asyncio.Protocol) -> asyncio.Transport:
        return self.wires[LIFE.get()].open(sock, protocol)

    # -- the hours -----------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        killer = asyncio.create_task(self._kill_those())
        people = asyncio.create_task(self._submit())
        for machine in self.machines:
            machine.start()
            await asyncio.sleep(self.draw.uniform(1.0, 20.0))
        for hour in range(self.hours):
            end = HOUR * (hour + 1)
            await asyncio.sleep(self.draw.uniform(10.0, 1200.0))
            if hour < self.hours - 1:
                await self._fault()
            await self._mend()
            await self._whole()
            await asyncio.sleep(max(end - self.loop.now, 0.0))
            if self.witness.violations or killer.done() or people.done():
                break
        for task in (people, killer):
            if task.done() and (error := task.exception()):
                raise error
            task.cancel()
        await self._judge()
        for machine in self.machines:
            await machine.stop()

    async def _fault(self) -> None:
        """One fault, for some minutes; half of them while a partition moves."""
        name = self.draw.choice(tuple(FAULTS))
        machine = self.draw.choice(self.machines)
        if self.draw.random() < 0.5:
            await self.plan_move(self.draw.randrange(PARTITIONS), self.draw.choice(self.machines))
        self.note(name, machine.number)
        await FAULTS[name](self, machine)

    async def plan_move(self, partition: int, target: Machine) -> None:
        """Somebody plans a move."""
        self.outcome.moves += 1
        with contextlib.suppress(XyroError):
            await plan_move(SimulatedLink(self.broker, 0), partition, target.number)
        await asyncio.sleep(self.draw.random())

    async def _mend(self) -> None:
        """End the fault, and start the nodes that are not there."""
        self.broker.away, self.broker.loss = False, 0.0
        self.broker.cut.clear()
        self.full.clear()
        for machine in self.machines:
            machine.at_step = None
            if machine.life in self.loop.frozen and machine not in self._dying:
                self.loop.thaw(machine.life)
        await asyncio.sleep(HEALED / 10)
        for machine in self.machines:
            if machine.node is None:
                await machine.kill()
                machine.start()

    async def _whole(self) -> None:
        """All partitions are open, once each, and the audit is exact."""
        end = self.loop.now + HEALED
        while self.loop.now < end:
            parts = await self._parts()
            if sorted(number for part in parts for number in part.partitions) == [*range(PARTITIONS)]:
                report = combined_audit(parts)
                for violation in report["violations"]:
                    self.witness.blame(f"audit: {violation}")
                self.witness.note("audit", report["pages"], report["cash_total"])
                return
            await asyncio.sleep(5.0)
        opened = {machine.number: sorted(machine.node.bus.open) if machine.node else None for machine in self.machines}  # type: ignore[attr-defined]
        self.witness.blame(f"not whole {HEALED:.0f} s after a fault: open are {opened}")

    @contextlib.asynccontextmanager
    async def _standing(self) -> AsyncIterator[list[Node]]:
        """All nodes, at one commit boundary."""
        async with contextlib.AsyncExitStack() as stack:
            nodes = [machine.node for machine in self.machines if machine.node is not None and machine.lives]
            for node in nodes:
                await stack.enter_async_context(node.boundary())
            yield nodes

    async def _parts(self) -> list[PartitionAudit]:
        async with self._standing() as nodes:
            parts = []
            for node in nodes:
                with node.crawl_views.views(node.clock.time()) as views:
                    parts.append(audit_part(views.views))
            return parts

    async def _judge(self) -> None:
        """Hold what is stored against what was seen."""
        async with self._standing() as nodes:
            rows: list[Any] = []
            parts = []
            for node in nodes:
                with node.crawl_views.views(node.clock.time()) as views:
                    rows += views.pages()
                    parts.append(audit_part(views.views))
        self.outcome.pages = len(rows)
        for url, count in Counter(row["url"] for row in rows).items():
            if count > 1:
                self.witness.blame(f"{url} is known {count} times")
        self.witness.judge(rows, combined_audit(parts), self.world.links)
        by_url = {row["url"]: row for row in rows}
        reads: Counter[str] = Counter()
        for visit in self.witness.visits:
            if visit.began > HOUR * (self.hours - 1):
                reads[visit.url] += 1
        for url in self.world.sound_pages:
            again = url in by_url and by_url[url]["state"] == "leased" and by_url[url]["reads"] > 0
            if url in by_url and not again and by_url[url]["state"] not in ("read", "out-of-scope"):
                self.witness.blame(f"{url} is not read at the end: {by_url[url]['state']}, {by_url[url]['error']}")
        if not reads:
            self.witness.blame("nothing was read in the last hour")

    # -- beside them ---------------------------------------------------------------------------------------------

    def kill_soon(self, machine: Machine) -> None:
        """A process ends at this very step: by somebody who is not of it."""
        self._dying.append(machine)
        self._kills.set()

    async def _kill_those(self) -> None:
        while True:
            await self._kills.wait()
            self._kills.clear()
            for machine in list(self._dying):
                await machine.kill()
                self._dying.remove(machine)

    async def _submit(self) -> None:
        """People hand URLs over to any node."""
        await asyncio.sleep(60.0)
        todo = [[url] for url in self.seeds]
        while True:
            urls = todo.pop(0) if todo else self._some_urls()
            living = [machine for machine in self.machines if machine.lives]
            if not living:
                await asyncio.sleep(5.0)
                todo.insert(0, urls)
                continue
            machine = self.draw.choice(living)
            node = machine.node
            assert node is not None
            asked = self.loop.begin(machine.life, node.submit(urls))
            await asyncio.wait([asked], timeout=HOUR)
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                self.witness.note_accepted(urls)
            elif urls[0] in self.seeds:
                todo.insert(0, urls)
            await asyncio.sleep(self.draw.expovariate(1 / 300.0) if not todo else 1.0)

    def _some_urls(self) -> list[str]:
        site = self.draw.choice(self.world.sites)
        paths = [*site.pages, f"/nowhere/{self.draw.randrange(99)}"]
        return [f"{site.origin}{self.draw.choice(paths)}" for _ in range(self.draw.randint(1, 3))]


def _settings(draw: random.Random) -> Settings:
    settings = Settings()
    replace = msgspec.structs.replace
    return replace(
        settings,
        crawl=replace(settings.crawl, scope="any", partitions=PARTITIONS),
        politeness=replace(settings.politeness, delay=DELAY),
        refresh=replace(settings.refresh, bandwidth=0.05),
        fetch=replace(
            settings.fetch,
            concurrency=16,
            only_net=ONLY_NET,
            connect_timeout=2.0,
            first_byte_timeout=2.5,
            header_timeout=4.0,
            total_timeout=8.0,
            max_body=60_000,
        ),
        store=replace(settings.store, snapshot_bytes=1 << 18),
        loader=replace(settings.loader, validate=False),
        standing=replace(settings.standing, host_pages=draw.choice((1, 3, 4096)), new_hosts=draw.choice((1, 131_072))),
    )
