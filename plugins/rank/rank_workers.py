"""Runs the distributed form of P1 5.4 on the bus: workers own slices of the rows and send each other values.

    topic       posted by            received by    what
    rank.N      the other workers    worker N       values of pages that N asked for, as bytes (opic.slices.pack)

Each worker is a task; its sweeps run in a thread. Together: in each round all sweep, tell, and hear everyone they asked
before the next. Asynchronously (chaotic): each sweeps on what it has heard so far, at most AHEAD sweeps before the
slowest: more would only burn its iterations, and the CPU of the slow one, on values that nobody renews. It is over when
all have been calm on values that were told while all were calm: no news is on its way that could wake anyone. The last
steps of chaotic workers were of different moments and say little of the error; so they end by rounds together, whose
residual does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from xyro.opic.cash import DAMPING
from xyro.opic.matrix import Matrix
from xyro.opic.offline import IterationStep, step_of
from xyro.opic.slices import SliceOutcome, Worker, pack, rank_of, residual, unpack, workers
from xyro.wire.bus import Bus, LocalBus
from xyro.wire.messages import Message

AT_ONCE = 1024
CALM = 3
"""sweeps in a row that all must have been calm for"""
AHEAD = 16
"""sweeps that a chaotic worker does more than the slowest has done; as many of its messages wait for another at most"""


class ValuePost:
    """The bus, for bytes: what a bus between machines carries. `bytes`: all that was posted."""

    def __init__(self, bus: Bus) -> None:
        self.bus, self.bytes, self.messages = bus, 0, 0

    def tell(self, worker: Worker) -> None:
        """Hand out the worker's values of now."""
        for values in worker.tell():
            data = pack(values)
            self.bytes += len(data)
            self.messages += 1
            self.bus.post(f"rank.{values.receiver}", cast(Message, data))

    async def hear(self, worker: Worker) -> None:
        """Wait for values, take in what lies there."""
        for data in await self.bus.receive(f"rank.{worker.number}", AT_ONCE):
            worker.hear(unpack(cast(bytes, data)))

    def waiting(self, worker: Worker) -> bool:
        return self.bus.waiting(f"rank.{worker.number}") > 0


def distributed(
    matrix: Matrix,
    count: int,
    *,
    damping: float = DAMPING,
    epsilon: float = 1e-8,
    limit: int = 1000,
    chaotic: bool = False,
    watch: Callable[[IterationStep], None] | None = None,
) -> tuple[SliceOutcome, tuple[IterationStep, ...]]:
    """PageRank by `count` workers; rounds (sweeps a worker) and the bytes exchanged are in the Outcome."""
    team = workers(matrix, min(count, max(1, matrix.n)), damping)
    run = _Run(team, epsilon, limit, watch)
    asyncio.run(run.apart() if chaotic else run.together())
    rounds = float(np.mean([worker.sweeps for worker in team]))
    return SliceOutcome(rank_of(team), rounds, run.post.bytes, residual(team)), tuple(run.steps)


class _Run:
    def __init__(
        self, team: Sequence[Worker], epsilon: float, limit: int, watch: Callable[[IterationStep], None] | None
    ) -> None:
        self.team, self.epsilon, self.limit, self.watch = team, epsilon, limit, watch
        self.post = ValuePost(LocalBus())
        self.steps: list[IterationStep] = []
        self.calm_since: list[int] | None = None
        """every worker's number of sweeps when all became calm; None: they are not"""
        self._swept = asyncio.Event()
        """the next sweep of any worker"""

    async def together(self) -> None:
        """All sweep, all tell, all hear."""
        while self._slowest() < self.limit and (not self.steps or self.steps[-1].residual > self.epsilon):
            await self._round()

    async def _round(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(worker.sweep) for worker in self.team))
        for worker in self.team:
            self.post.tell(worker)
        await self._hear_all()
        self._note()

    async def _hear_all(self) -> None:
        """Everyone hears the newest from all it asked."""
        sweeps = np.array([worker.sweeps for worker in self.team])
        for worker in self.team:
            asked = np.unique(worker.owner)
            while (worker.received[asked] < sweeps[asked]).any():
                await self.post.hear(worker)

    async def apart(self) -> None:
        """Each at its own pace, then together until a round is calm; a round of that is always left."""
        await asyncio.gather(*(self._alone(worker) for worker in self.team))
        await self._hear_all()
        await self._round()
        await self.together()

    async def _alone(self, worker: Worker) -> None:
        while not self._over() and worker.sweeps < self.limit - 1:
            if worker.sweeps >= self._slowest() + AHEAD:
                await self._swept.wait()
                continue
            while self.post.waiting(worker):
                await self.post.hear(worker)
            await asyncio.to_thread(worker.sweep)
            self.post.tell(worker)
            self._judge()
            if worker is self.team[0] and all(member.sweeps for member in self.team):
                self._note()
            self._swept.set()
            self._swept = asyncio.Event()

    def _slowest(self) -> int:
        return min(worker.sweeps for worker in self.team)

    def _judge(self) -> None:
        """After a sweep: are all calm, and since when?"""
        if not all(worker.sweeps for worker in self.team) or residual(self.team) > self.epsilon:
            self.calm_since = None
        elif self.calm_since is None:
            self.calm_since = [worker.sweeps for worker in self.team]

    def _over(self) -> bool:
        """Every worker has swept CALM times since, and has heard values of as late from all it asked."""
        since = self.calm_since
        return since is not None and all(
            worker.sweeps >= since[worker.number] + CALM
            and all(worker.received[other] > since[other] for other in np.unique(worker.owner).tolist())
            for worker in self.team
        )

    def _note(self) -> None:
        norms = np.sum([worker.norms for worker in self.team], axis=0)
        self.steps.append(step_of(norms, self.steps, self.epsilon))
        if self.watch:
            self.watch(self.steps[-1])
