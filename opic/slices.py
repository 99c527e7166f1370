"""The distributed form of the offline reference (P1 5.4): workers that own slices of the rows and tell values.

A worker holds the links into its pages and a copy of the values it needs of others' pages. It sweeps its rows in place,
then tells each other worker the values that one asked for at the start. Nothing else is exchanged: the dangling mass
drops out of the system (offline.py), so there is no global sum but the norm that says when to stop.

Synchronous: all sweep, then all tell. Chaotic (asynchronous): each sweeps when it likes, on values of any age; since
the matrix shrinks what it is given (damping < 1), any such order leads to the same vector (Chazan and Miranker 1969).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from xyro.opic.cash import DAMPING
from xyro.opic.matrix import Array, Matrix, loops


class Values(NamedTuple):
    """A message from worker `sender` to worker `receiver`: values of the pages agreed on, of its sweep `sweep`."""

    sender: int
    receiver: int
    sweep: int
    values: Array


_HEAD = struct.Struct("<IIQI")
"""sender, receiver, sweep, bytes of a value (4 or 8)"""


def pack(message: Values) -> bytes:
    """The message as it goes over a bus: 20 bytes, then the values, all little-endian."""
    width = message.values.dtype.itemsize
    return _HEAD.pack(*message[:3], width) + message.values.astype(f"<f{width}", copy=False).tobytes()


def unpack(data: bytes) -> Values:
    """Read what `pack` made. ValueError: it is none of that."""
    try:
        sender, receiver, sweep, width = _HEAD.unpack_from(data)
        if width not in (4, 8):
            raise ValueError(f"values of {width} bytes")
        return Values(sender, receiver, sweep, np.frombuffer(data, f"<f{width}", offset=_HEAD.size))
    except (ValueError, struct.error) as error:
        raise ValueError(f"{len(data)} bytes are no values of a worker: {error}") from None


class Worker:
    """Slice `number` of `bounds`: pages bounds[number] .. bounds[number+1]-1. Its vector y solves y = c A y + 1."""

    def __init__(
        self, matrix: Matrix, bounds: Array, number: int, damping: float = DAMPING, engine: str = "auto"
    ) -> None:
        self.number, self.damping = number, damping
        low, high = int(bounds[number]), int(bounds[number + 1])
        ends = matrix.indptr[low : high + 1].astype(np.int64)
        links = slice(int(ends[0]), int(ends[-1]))
        sources = matrix.sources[links]
        outside = (sources < low) | (sources >= high)
        self.wanted = np.unique(sources[outside])
        own = sources - low
        own[outside] = high - low + np.searchsorted(self.wanted, sources[outside])
        self.indptr, self.sources = (ends - ends[0]).astype(matrix.indptr.dtype), own
        self.weights = matrix.weights[links] if matrix.weights.size > 1 else matrix.weights
        self.row = matrix.row[low:high] if matrix.row.size > 1 else matrix.row
        self.share = matrix.share[low:high].copy()
        self.y = np.full(high - low, 1 / (1 - damping), self.share.dtype)
        self.z = np.concatenate((self.y * self.share, matrix.share[self.wanted] * self.y.dtype.type(1 / (1 - damping))))
        self.owner = np.searchsorted(bounds, self.wanted, side="right") - 1
        self.asked: dict[int, Array] = {}
        self.received = np.zeros(bounds.size - 1, np.int64)
        self.sweeps, self.norms = 0, np.zeros(2)
        self._loops = loops(engine)

    def ask(self, other: int) -> Array:
        """The pages of worker `other` whose values this one needs."""
        pages: Array = self.wanted[self.owner == other]
        return pages

    def asked_by(self, other: int, pages: Array, low: int) -> None:
        """Worker `other` needs these pages of ours, which begin with page `low`."""
        if pages.size:
            self.asked[other] = pages - low

    def sweep(self) -> None:
        """All rows once, in place; `norms` = (L1 norm of the step, of the vector)."""
        unit = np.ones(1, self.y.dtype)
        fixed = self.indptr, self.sources, self.weights, self.row, self.share, unit, self.y
        self.norms = np.array(self._loops.sweep_alone(*fixed, self.z, self.damping))
        self.sweeps += 1

    def tell(self) -> Iterator[Values]:
        """The values of now for everyone who asked."""
        for other, places in self.asked.items():
            yield Values(self.number, other, self.sweeps, self.z[places])

    def hear(self, message: Values) -> None:
        """Take values in; what is older than what is known already (late, twice) changes nothing."""
        if message.sweep > self.received[message.sender]:
            self.received[message.sender] = message.sweep
            self.z[self.y.size :][self.owner == message.sender] = message.values


def workers(matrix: Matrix, count: int, damping: float = DAMPING, engine: str = "auto") -> list[Worker]:
    """`count` workers with about as many links each, who have asked each other for what they need."""
    bounds = matrix.blocks(count)
    team = [Worker(matrix, bounds, number, damping, engine) for number in range(count)]
    for worker in team:
        for other in team:
            if other is not worker:
                other.asked_by(worker.number, worker.ask(other.number), int(bounds[other.number]))
    return team


@dataclass(frozen=True, slots=True)
class SliceOutcome:
    """PageRank float[n] of sum 1; rounds = sweeps per worker; bytes that were told in all."""

    rank: Array
    rounds: float
    bytes: int
    residual: float


def synchronous(team: Sequence[Worker], epsilon: float, max_steps: int = 1000) -> SliceOutcome:
    """All sweep, all tell, until a round moved the vector by at most `epsilon` of its norm."""
    sent, rounds = 0, 0
    while rounds < max_steps and (not rounds or residual(team) > epsilon):
        for worker in team:
            worker.sweep()
        for message in [message for worker in team for message in worker.tell()]:
            sent += message.values.nbytes
            team[message.receiver].hear(message)
        rounds += 1
    return SliceOutcome(rank_of(team), rounds, sent, residual(team))


def chaotic(
    team: Sequence[Worker], epsilon: float, rng: np.random.Generator, delay: int = 8, max_steps: int = 1000
) -> SliceOutcome:
    """A worker drawn at random sweeps and tells; each message arrives up to `delay` sweeps of others later, in any
    order, one in eight twice. Stops when all values told have arrived and the last steps of all sum to `epsilon`."""
    sent, ticks = 0, 0
    post: list[tuple[int, Values]] = []
    calm = 0
    while ticks < max_steps * len(team) and calm <= delay + 8 * len(team):
        worker = team[int(rng.integers(len(team)))]
        worker.sweep()
        ticks += 1
        for message in worker.tell():
            sent += message.values.nbytes
            copies = 2 if rng.random() < 0.125 else 1
            post += [(ticks + int(rng.integers(delay + 1)), message) for _ in range(copies)]
        for _, message in (entry for entry in post if entry[0] <= ticks):
            team[message.receiver].hear(message)
        post = [entry for entry in post if entry[0] > ticks]
        calm = calm + 1 if all(w.sweeps for w in team) and residual(team) <= epsilon else 0
    return SliceOutcome(rank_of(team), ticks / len(team), sent, residual(team))


def residual(team: Sequence[Worker]) -> float:
    """L1 norm of everyone's last step over that of the vector."""
    step, total = np.sum([worker.norms for worker in team], axis=0)
    return float(step / total)


def rank_of(team: Sequence[Worker]) -> Array:
    """The slices put together, scaled to sum 1."""
    y = np.concatenate([worker.y for worker in team])
    rank: Array = y / y.sum(dtype=np.float64)
    return rank
