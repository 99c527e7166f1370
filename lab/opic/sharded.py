"""`xyro lab opic sharded`: OPIC over four partitions and a post that loses, delays, repeats and reorders.

The cash is added up at every moment and at consistent cuts through different moments of the shards; the importance is
compared with the same graph in one partition and with the offline reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xyro.lab import work_parts
from xyro.lab.opic.histories import Static
from xyro.lab.opic.shards import Letter, Shard
from xyro.lab.opic.simulate import errors, spearman
from xyro.lab.reference_rank import reference
from xyro.lab.work_parts import KeyedPart
from xyro.opic.arrays import Pages, Reals
from xyro.opic.cash import UNIT, seeds_of
from xyro.opic.graph import Graph, standard
from xyro.opic.importance import normalise

Watch = Callable[[float], None]
PATIENCE = 100
"""turns after which a shard sends again what is not acknowledged"""
SHARDS = 4
CUTS = 200
"""consistent cuts through different moments that are drawn from a run"""


@dataclass(frozen=True, slots=True)
class Temper:
    """Faults of the post: how likely a letter is lost, and delivered twice; `late`: most turns until it arrives (drawn
    evenly, so that letters overtake each other)."""

    lost: float = 0.0
    twice: float = 0.0
    late: int = 0


TEMPERS = {
    "prompt": Temper(),
    "late, out of order": Temper(late=40),
    "late, out of order, twice": Temper(late=40, twice=0.25),
    "late, out of order, twice, lost": Temper(late=40, twice=0.25, lost=0.1),
}


class Network:
    """Letters and acknowledgements on their way. Filled by the shards' turns, emptied by `deliver`."""

    def __init__(self, temper: Temper, rng: np.random.Generator) -> None:
        self.temper, self.rng = temper, rng
        self.waiting: list[tuple[int, Letter | tuple[int, int, int]]] = []
        """(turn of arrival, letter, or acknowledgement (from, to, number))"""
        self.counts = {"letters": 0, "lost": 0, "repeated": 0, "early": 0}
        self.asked: dict[tuple[int, int, int], int] = {}
        """(source, target, number) -> when a letter was last sent"""

    def again(self, now: int, shards: Sequence[Shard]) -> None:
        """Send once more what was sent PATIENCE turns ago and is not acknowledged."""
        self.asked = {pair: when for pair, when in self.asked.items() if pair[1:] in shards[pair[0]].outbox}
        for (source, *pair), when in list(self.asked.items()):
            if now - when >= PATIENCE:
                self.send(now, shards[source].outbox[pair[0], pair[1]])

    def send(self, now: int, item: Letter | tuple[int, int, int]) -> None:
        if isinstance(item, Letter):
            self.counts["letters"] += 1
            self.asked[item.source, item.target, item.seq] = now
        if self.rng.random() < self.temper.lost:
            self.counts["lost"] += 1
            return
        twice = self.rng.random() < self.temper.twice
        for _ in range(1 + twice):
            self.waiting.append((now + int(self.rng.integers(self.temper.late + 1)), item))

    def deliver(self, now: int, shards: Sequence[Shard]) -> None:
        """Hand over what is due, in any order; each letter is answered."""
        due = [item for when, item in self.waiting if when <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for k in self.rng.permutation(len(due)).tolist():
            item = due[k]
            if isinstance(item, Letter):
                before = shards[item.target].applied[item.source]
                seq = shards[item.target].take(item)
                self.counts["repeated"] += item.seq <= before
                self.counts["early"] += item.seq > before + 1
                self.send(now, (item.target, item.source, seq))
            else:
                answering, sender, seq = item
                shards[sender].acknowledged(answering, seq)


class ShardMoment(NamedTuple):
    """A shard after one of its turns or deliveries: what it held, sent to and applied from each shard (numbers)."""

    cash: int
    sent: tuple[int, ...]
    applied: tuple[int, ...]


class MomentLog:
    """All moments of all shards, and what every letter carried: enough to add up the cash of any cut."""

    def __init__(self, count: int) -> None:
        self.moments: list[list[ShardMoment]] = [[] for _ in range(count)]
        self.carried = {(p, q): [0] for p in range(count) for q in range(count)}
        """units of the first k letters from p to q"""

    def post(self, letter: Letter) -> None:
        """A letter is sent for the first time."""
        line = self.carried[letter.source, letter.target]
        line.append(line[-1] + letter.units)

    def note(self, shard: Shard) -> None:
        every, line = range(len(self.moments)), self.moments[shard.number]
        sent, applied = tuple(shard.sent[q] for q in every), tuple(shard.applied[q] for q in every)
        moment = ShardMoment(shard.cash_total, sent, applied)
        if not line or line[-1] != moment:
            line.append(moment)

    def consistent(self, cut: Sequence[int]) -> list[int]:
        """The earliest consistent cut after these moments: nobody has applied what its sender has not sent."""
        cut, moved = list(cut), True
        while moved:
            moved = False
            for p, line in enumerate(self.moments):
                needed = [self.moments[q][cut[q]].applied[p] for q in range(len(cut))]
                while any(sent < need for sent, need in zip(line[cut[p]].sent, needed, strict=True)):
                    cut[p], moved = cut[p] + 1, True
        return cut

    def total(self, cut: Sequence[int]) -> int:
        """Units held by the shards and on their way at these moments."""
        now = [line[k] for line, k in zip(self.moments, cut, strict=True)]
        flying = sum(line[now[p].sent[q]] - line[now[q].applied[p]] for (p, q), line in self.carried.items())
        return flying + sum(moment.cash for moment in now)


@dataclass(frozen=True, slots=True)
class ShardedOutcome:
    """A run: errors in per cent against the offline reference, what the ledger says, what the post did."""

    all: float
    top: float
    spearman: float
    cuts: int
    exact: bool
    letters: int
    lost: int
    repeated: int
    early: int
    estimate: Reals


def owners(graph: Graph, count: int) -> Pages:
    """Return the shard of each page, int64[n]: pseudo-random, as hosts are hashed."""
    return (seeds_of(np.arange(graph.n), 0) % np.uint64(count)).astype(np.int64)


def run(
    graph: Graph,
    truth: Reals,
    count: int,
    temper: Temper,
    seed: int,
    reads: float = 10,
    watch: Watch = lambda share: None,
) -> ShardedOutcome:
    """Read `reads` N pages in shards that take turns at random, wait for the last letters, and judge."""
    rng, owner = np.random.default_rng(seed), owners(graph, count)
    shards = [Shard(graph, owner, q, Static(int((owner == q).sum()))) for q in range(count)]
    network, log = Network(temper, rng), MomentLog(count)
    goal, group, now, moments, exact = int(reads * graph.n), max(1, graph.n // 400), 0, 0, True
    while (left := goal - sum(int(shard.visits.sum()) for shard in shards)) > 0 or any(s.outbox for s in shards):
        network.deliver(now, shards)
        if left > 0:
            for letter in shards[int(rng.integers(count))].turn(min(group, left)):
                log.post(letter)
                network.send(now, letter)
        if now % 10 == 0:
            network.again(now, shards)
        for shard in shards:
            log.note(shard)
        exact &= log.total([len(line) - 1 for line in log.moments]) == UNIT * graph.n
        now, moments = now + 1, moments + 1
        watch(1 - max(left, 0) / goal)
    for cut in (log.consistent([int(rng.integers(len(line))) for line in log.moments]) for _ in range(CUTS)):
        exact &= log.total(cut) == UNIT * graph.n
    return _judge(graph, truth, shards, moments + CUTS, exact, network.counts)


def _judge(
    graph: Graph, truth: Reals, shards: Sequence[Shard], cuts: int, exact: bool, counts: dict[str, int]
) -> ShardedOutcome:
    estimate = np.empty(graph.n)
    for shard in shards:
        estimate[shard.pages] = shard.importance
    estimate = normalise(estimate)
    scores = (*errors(estimate, truth), spearman(estimate, truth))
    return ShardedOutcome(*scores, cuts, exact, **counts, estimate=estimate)


def sharded(n: int, count: int, seed: int, watch: Watch) -> dict[str, Any]:
    """One partition, then `count` with each kind of post, on the standard graph of n pages."""
    graph = standard(n, np.random.default_rng(seed))
    truth = reference(graph)
    runs = {"one partition": (1, Temper()), **{f"{count}, {name}": (count, temper) for name, temper in TEMPERS.items()}}
    found: dict[str, Any] = {}
    alone = np.ones(0)
    for k, (name, (shards, temper)) in enumerate(runs.items()):
        outcome = run(graph, truth, shards, temper, seed, watch=_part(watch, k, len(runs)))
        alone = alone if alone.size else outcome.estimate
        row = {key: value for key, value in asdict(outcome).items() if key != "estimate"}
        found[name] = {**row, "from one partition": float(100 * np.abs(outcome.estimate / alone - 1).mean())}
    return {"n": n, "runs": found}


def _part(watch: Watch, done: int, total: int) -> Watch:
    return lambda share: watch((done + share) / total)


def sharded_files(out: Path, pages: int, show: bool = True) -> dict[str, Any]:
    """`xyro lab opic sharded`: OUT/sharded.json and sharded.txt."""
    work = {"sharded": KeyedPart({"pages": pages}, lambda watch: sharded(pages, SHARDS, 1, watch))}
    results: dict[str, Any] = work_parts.compute(work, {}, out, show)["sharded"]
    work_parts.write(out / "sharded.json", results)
    (out / "sharded.txt").write_text(page(results), encoding="utf-8")
    return results


def page(results: dict[str, Any]) -> str:
    """The runs as a table."""
    lines = [
        f"Standard graph of {results['n']:,} pages, 10 N reads by the sweep, endowment-free; errors in per cent",
        "",
        f"{'':36} {'all':>6} {'top':>6} {'rank corr':>9} {'from one':>8}  {'cash at cuts':>14}  letters: sent, lost, "
        "repeated, too early",
    ]
    for name, row in results["runs"].items():
        cash = f"{'exact' if row['exact'] else 'NOT EXACT'} at {row['cuts']:,}"
        post = f"{row['letters']:,}, {row['lost']:,}, {row['repeated']:,}, {row['early']:,}"
        lines.append(
            f"{name:36} {row['all']:>6.3f} {row['top']:>6.3f} {row['spearman']:>9.5f} "
            f"{row['from one partition']:>8.3f}  {cash:>14}  {post}"
        )
    return "\n".join(lines) + "\n"
