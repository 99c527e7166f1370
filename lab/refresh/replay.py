"""Real change histories replayed: `xyro lab refresh --changes FILE...`.

What comes in: histories and a bandwidth; what goes out: a row per policy. Rates are learned online, from the default
prior on, as a new crawler would learn them. Two rows are always there: `uniform`, and `optimum-known`, the freshness
optimum of a crawler that knows each page's mean rate over the whole file from the start. That is the best any policy
can do on Poisson pages. On real ones it is not a bound: changes come in bursts, and a crawler that notices which pages
are busy now can do better than one that knows how busy they are on average. `staleness` is a policy's staleness over
the optimum's; below 1 means that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xyro.lab.refresh.page_arrays import TICK
from xyro.lab.refresh.rates import Estimator, TrueRates
from xyro.lab.refresh.rules import rule
from xyro.lab.refresh.sim import Score, Watch, simulate
from xyro.lab.refresh.world import World

OPTIMUM = "optimum-known"
ALWAYS = (OPTIMUM, "uniform")


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """The score of a policy after the burn-in."""

    policy: str
    freshness: float
    obsolescence: float
    share: float | None
    """freshness / freshness of optimum-known; None where that is 0"""
    reads: int
    allowed: int
    """reads that the bandwidth allowed"""
    staleness: float | None
    """(1 - freshness) / (1 - freshness of optimum-known); None where that is fresh always"""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def rows(
    world: World,
    bandwidth: float,
    policies: Sequence[str],
    estimator: Estimator | None = None,
    seed: int = 1,
    watch: Watch = lambda share: None,
    tick: int = TICK,
) -> Iterator[ReplayRow]:
    """A row per policy, the two of ALWAYS first. bandwidth: reads a day a page; tick: seconds. ValueError: no such
    policy."""
    wanted = [*ALWAYS, *(name for name in dict.fromkeys(policies) if name not in ALWAYS)]
    best = 0.0
    for turn, name in enumerate(wanted):
        is_optimum = name == OPTIMUM
        rates = TrueRates(world) if is_optimum else (estimator or Estimator()).rates_for(world)
        score = simulate(
            world, rule("freshness" if is_optimum else name, world.born, seed, tick, world.days), rates, bandwidth
        )
        best = score.freshness if is_optimum else best
        watch((turn + 1) / len(wanted))
        yield row_of(name, score, best)


def row_of(name: str, score: Score, best: float) -> ReplayRow:
    """Make the row of a policy. best: the freshness that counts as a share of 1."""
    share = score.freshness / best if best > 0.0 else None
    ratio = staleness_ratio(score.freshness, best)
    return ReplayRow(name, score.freshness, score.obsolescence, share, score.reads, score.allowed, ratio)


def staleness_ratio(freshness: float, best: float) -> float | None:
    """Staleness over that of the optimum, whose freshness is `best`; None where the optimum is never stale."""
    return (1.0 - freshness) / (1.0 - best) if best < 1.0 else None


HEAD = f"{'policy':17} {'freshness':>9} {'obsolescence':>12} {'staleness':>10} {'reads':>11} {'spent':>6}"


def line(row: ReplayRow) -> str:
    """The row as text, below HEAD."""
    stale = f"{row.staleness:10.3f}" if row.staleness is not None else f"{'-':>10}"
    spent = f"{100 * row.reads / row.allowed:5.1f}%" if row.allowed else f"{'-':>6}"
    return f"{row.policy:17} {row.freshness:9.4f} {row.obsolescence:12.4f} {stale} {row.reads:11,} {spent}"
