"""One seed: a world, a disk, and a crawl that lives several times until nothing is left to do.

Every life builds the node as `xyro crawl` does, over the same disk. How it ends was drawn before it began; the last one
ends by itself, among peers that keep a truce. After each life the store is opened once more and the witness judges.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from xyro.configs.schema import Settings
from xyro.frontier import waiting_links
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.guard import Guard
from xyro.lab.simulate.disks import Disk, SimulatedStore, fast_folder
from xyro.lab.simulate.faults import CALLBACK, STEPS, Crash, End, Faults
from xyro.lab.simulate.mail import Mail
from xyro.lab.simulate.peers import LyingWeb, WorldShape
from xyro.lab.simulate.virtual_loop import VirtualLoop
from xyro.lab.simulate.wires import Wires
from xyro.lab.simulate.witness import CrawlWitness, PromisedGaps
from xyro.metadata.partition import Partition
from xyro.metadata.recovery import recover
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import DataDir
from xyro.service.node.node import Bounds, Node
from xyro.service.views.audit import audit
from xyro.wire.errors import MachineError

START = 1_700_000_000.0
"""wall clock of the first life"""
ONLY_NET = ("127.0.0.0/8",)
PATIENCE = 4_000.0
"""seconds (simulated) after which the last life hangs"""


class VirtualClock:
    """The clock of one life: wall time goes on, monotonic time begins anew, as after a reboot."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._began = loop.now

    def time(self) -> float:
        return START + self._loop.now

    def monotonic(self) -> float:
        return self._loop.now - self._began

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """The crawl that a seed stands for."""

    seed: int
    shape: WorldShape
    settings: Settings
    partitions: int
    bounds: Bounds
    jitter: float
    disk: float
    """most seconds that a write takes"""
    mail: float
    """most seconds that a transfer takes"""
    doubles: float
    ends: tuple[End, ...]
    """of all lives but the last"""
    submits: int
    per_order: int
    """unread pages that a host may have for each order that it got"""

    @classmethod
    def draw(cls, seed: int) -> SeedPlan:
        """Draw everything that stands before the first life."""
        draw = random.Random(f"plan {seed}")
        shape = WorldShape(
            sites=draw.randint(1, 6),
            pages=draw.choice((3, 10, 20)),
            lies=draw.choice((0.0, 0.2, 0.5)),
            private=draw.choice((0.0, 0.2)),
        )
        refresh = draw.random() < 0.2
        bounds = Bounds(seconds=draw.choice((8.0, 25.0)), refresh=True) if refresh else Bounds(seconds=PATIENCE)
        return cls(
            seed,
            shape,
            _settings(draw),
            partitions=draw.choice((1, 1, 2, 3)),
            bounds=bounds,
            jitter=draw.choice((0.0, 0.2, 1.0)),
            disk=draw.choice((0.0, 0.005, 0.05, 0.5)),
            mail=draw.choice((0.0, 0.1, 5.0)),
            doubles=draw.choice((0.0, 0.3)),
            ends=tuple(_end(draw) for _ in range(draw.choice((0, 1, 2, 2, 3)))),
            submits=draw.randint(0, 4),
            per_order=draw.choice((0, 0, 1, waiting_links.PER_ORDER)),
        )

    @property
    def promises(self) -> PromisedGaps:
        polite = self.settings.politeness
        fixed = polite.delay is not None
        least = polite.delay if polite.delay is not None else polite.min_delay
        return PromisedGaps(
            least_gap=least,
            factor=0.0 if fixed else polite.factor,
            factor_cap=0.0 if fixed else polite.factor_cap,
            address_gap=least if fixed else polite.ip_delay,
            grace=1.0 + self.settings.store.commit_seconds + 12 * self.disk,
        )


def _settings(draw: random.Random) -> Settings:
    settings = Settings()
    return msgspec.structs.replace(
        settings,
        crawl=msgspec.structs.replace(settings.crawl, scope=draw.choice(("any", "any", "host"))),
        politeness=msgspec.structs.replace(
            settings.politeness, delay=draw.choice((None, 0.0, 0.3, 1.0)), min_delay=1.0, ip_delay=0.25
        ),
        fetch=msgspec.structs.replace(
            settings.fetch,
            concurrency=draw.choice((1, 3, 16, 256)),
            only_net=ONLY_NET,
            connect_timeout=2.0,
            first_byte_timeout=2.5,
            header_timeout=4.0,
            total_timeout=8.0,
            max_body=60_000,
        ),
        store=msgspec.structs.replace(
            settings.store,
            commit_seconds=draw.choice((0.0, 0.05, 0.5, 0.5)),
            commit_reports=draw.choice((1, 4, 256, 256)),
            leases_per_host=draw.choice((1, 4, 64)),
            snapshot_bytes=draw.choice((1 << 16, 1 << 20)),
        ),
        loader=msgspec.structs.replace(settings.loader, validate=False),
        standing=msgspec.structs.replace(
            settings.standing, host_pages=draw.choice((1, 2, 6, 4096)), new_hosts=draw.choice((0, 1, 131_072))
        ),
    )


@contextlib.contextmanager
def few_places(per_order: int) -> Iterator[None]:
    """Let a host have so many unread pages for each order that it got, while the block lasts: links have to wait,
    though sites are small."""
    usual, waiting_links.PER_ORDER = waiting_links.PER_ORDER, per_order
    try:
        yield
    finally:
        waiting_links.PER_ORDER = usual


def _end(draw: random.Random) -> End:
    kind = draw.choice(("crash", "crash", "crash", "crash", "full", "stop"))
    if kind == "stop":
        return End(kind, CALLBACK, int(10 ** draw.uniform(1.5, 3.8)))
    if kind == "full":
        return End(kind, draw.choice(("store.before", "store.before", "file.sync")), int(10 ** draw.uniform(0, 2)))
    if draw.random() < 0.4:
        return End(kind, CALLBACK, int(10 ** draw.uniform(1.5, 3.8)))
    return End(kind, draw.choice(STEPS), int(10 ** draw.uniform(0, 2)))


@dataclass(slots=True)
class SeedOutcome:
    """The result of a seed."""

    seed: int
    violations: list[str]
    digest: str
    lives: list[str] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    """steps, over all lives"""
    requests: int = 0
    pages: int = 0
    batches: int = 0
    turns: int = 0
    seconds: float = 0.0
    """simulated"""


def simulate(seed: int) -> SeedOutcome:
    """Run one seed from its first life to its last judgement."""
    return carry_out(SeedPlan.draw(seed))


def carry_out(plan: SeedPlan) -> SeedOutcome:
    """Run all lives of a plan."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    random.seed(plan.seed)
    with fast_folder() as folder:
        return _Simulation(plan, folder).run()


class _Simulation:
    """The state that outlives a life."""

    def __init__(self, plan: SeedPlan, folder: Path) -> None:
        self.plan = plan
        self.draw = random.Random(f"machine {plan.seed}")
        self.world = LyingWeb(plan.shape, random.Random(f"world {plan.seed}"), 0.0)
        self.witness = CrawlWitness(plan.promises, self.world.endpoints, str(folder))
        self.disk = Disk(folder, plan.partitions, self.draw, self.witness)
        self.outcome = SeedOutcome(plan.seed, self.witness.violations, "")
        self.now = 0.0
        self.full_at: float | None = None
        """since when nothing more reaches the disk in this life"""
        self.seeds = [f"{site.origin}/" for site in self.world.sites[: 1 + len(self.world.sites) // 2]]

    def run(self) -> SeedOutcome:
        """All lives."""
        try:
            with self.disk.in_place(), few_places(self.plan.per_order):
                for number, end in enumerate((*self.plan.ends, None), 1):
                    self.witness.begin_life(number)
                    if end is None:
                        self.world.truce = self.now
                    reason = self._live(end)
                    self.outcome.lives.append(reason)
                    self._judge(reason, is_last=end is None)
                    if self.witness.violations:
                        break
        except Exception as error:  # whatever it is, it is the seed's outcome
            self.witness.blame(f"{type(error).__name__}: {error}")
        outcome, witness = self.outcome, self.witness
        outcome.digest, outcome.batches = witness.digest, witness.batches
        outcome.requests, outcome.seconds = len(witness.visits), self.now
        return outcome

    # -- one life ------------------------------------------------------------------------------------------------

    def _live(self, end: End | None) -> str:
        """Return how it ended: 'complete', 'max-seconds', 'stopped', 'failed', 'crash ...'."""
        plan, draw = self.plan, self.draw
        faults = self.disk.faults = Faults(end)
        self.full_at = None
        began = self.now + draw.random() * 3
        loop = VirtualLoop(
            began, draw, plan.jitter, lambda: plan.disk * draw.random(), lambda now: self._turn(now, faults)
        )
        wires = Wires(loop, self.world, draw, faults, self.witness)
        loop.attach(wires)
        life, left = _Life(self, loop, faults), dict[Path, bytes]()
        try:
            reason = loop.run_until_complete(life.run())
            self.witness.end_life(orderly=reason != "failed", since=self.full_at)
        except Crash:
            reason = str(end)
            wires.break_all()
            self.witness.end_life(orderly=False)
            self.disk.cut_power()
            left = self.disk.loose_files()
        finally:
            faults.is_dead = True
            self.now = loop.now
            self.outcome.turns += loop.turns
            self.outcome.reached = dict(Counter(self.outcome.reached) + faults.reached)
            loop.abandon(life.close)
            self.disk.put_back(left)
        return reason

    def _turn(self, now: float, faults: Faults) -> None:
        """Before each callback."""
        self.witness.now = now
        if faults.is_due and self.full_at is None:
            self.full_at = now
        faults.reach(CALLBACK)

    # -- between lives -------------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """Open what is on the disk."""
        opened = []
        for number, folder in enumerate(self.disk.folders):
            store = SimulatedStore(self.disk, number)
            facts = {"number": number, "partitions": self.plan.partitions, "seed": 7}
            opened.append(Partition(folder, store, facts, recover(folder, store)))
        return opened

    def _judge(self, reason: str, is_last: bool) -> None:
        """Open the store once more, only to look."""
        self.disk.faults = Faults(None)
        guard = Guard(only_net=ONLY_NET)
        settings = self.plan.settings
        scope = Scope(settings.crawl, settings.rules, guard.host_allowed)
        frontiers = [Frontier(partition, scope, settings, False) for partition in self.partitions()]
        for frontier in frontiers:
            frontier.recover(START + self.now)
        with CrawlViews(frontiers).views() as views:
            rows, report = list(views.pages()), audit(views)
        whole = is_last and reason == "complete"
        may_know_all = self.plan.partitions == 1 and not any(frontier.pages.waiting_links for frontier in frontiers)
        self.witness.judge(rows, report, self.world.links if whole or may_know_all else {})
        self.witness.note("rows", *(sorted(row.items(), key=str) for row in rows))
        self.outcome.pages = len(rows)
        if whole:
            self.witness.check_orders()
            self._check_reads({row["url"]: row for row in rows})
        if is_last and reason == "max-seconds" and not self.plan.bounds.refresh:
            waiting = [row["url"] for row in rows if row["state"] in ("unread", "queued", "leased")]
            links = sum(frontier.pages.waiting_links.links() for frontier in frontiers)
            self.witness.blame(
                f"it does not end: {links} links and {len(waiting)} pages wait, {', '.join(waiting[:3])}"
            )

    def _check_reads(self, rows: dict[str, Any]) -> None:
        """Blame what was not read although it never lies."""
        for url in self.world.sound_pages:
            if url in rows and rows[url]["state"] not in ("read", "out-of-scope"):
                row = rows[url]
                self.witness.blame(f"{url} is not read at the end: {row['state']}, {row['error']}")


class _Life:
    """One process."""

    def __init__(self, simulation: _Simulation, loop: VirtualLoop, faults: Faults) -> None:
        self.simulation = simulation
        self.loop = loop
        self.faults = faults
        self.clock = VirtualClock(loop)
        self.node: Node | None = None

    async def run(self) -> str:
        """From start to stop."""
        simulation, plan = self.simulation, self.simulation.plan
        data = DataDir(simulation.disk.path, simulation.partitions(), created=simulation.witness.life == 1)
        mail = Mail(self.loop, simulation.draw, self.faults, simulation.witness, plan.mail, plan.doubles)
        node = Node(data, plan.settings, Guard(only_net=ONLY_NET), plan.bounds, self.clock, mail)
        self.node = node
        node.start()
        others = asyncio.create_task(self._submit(node))
        try:
            await node.sow(simulation.seeds)
            simulation.witness.note_accepted(simulation.seeds)
            reason = await self._finish(node)
            others.cancel()
            await node.stop()
        except MachineError:
            if not self._is_full:
                raise
            others.cancel()
            with contextlib.suppress(MachineError):
                await node.stop()
            return "failed"
        return self._verdict(node, reason)

    def _verdict(self, node: Node, reason: str) -> str:
        """How the life ended: a group of the very end may not have reached the disk, which the command tells, too."""
        try:
            node.check_writes()
        except MachineError:
            if not self._is_full:
                raise
            return "failed"
        return reason

    async def close(self) -> None:
        """Close what the machine would close with the process."""
        if self.node is not None:
            await self.node.fetch_loop.reader.close()

    @property
    def _is_full(self) -> bool:
        """Whether the disk is."""
        return self.faults.is_due and self.faults.end is not None and self.faults.end.kind == "full"

    async def _finish(self, node: Node) -> str:
        while True:
            if reason := node.ended():
                return reason
            node.check()
            if self.faults.is_due and self.faults.end is not None and self.faults.end.kind == "stop":
                return "stopped"
            await asyncio.sleep(0.3)

    async def _submit(self, node: Node) -> None:
        """People hand URLs over, now and then."""
        simulation = self.simulation
        for _ in range(simulation.plan.submits):
            await asyncio.sleep(simulation.draw.expovariate(1 / 10.0))
            site = simulation.draw.choice(simulation.world.sites)
            paths = [*site.pages, f"/nowhere/{simulation.draw.randrange(9)}"]
            urls = [f"{site.origin}{simulation.draw.choice(paths)}" for _ in range(simulation.draw.randint(1, 3))]
            try:
                await node.submit(urls)
            except MachineError:
                if not self._is_full:
                    raise
                return
            simulation.witness.note_accepted(urls)
