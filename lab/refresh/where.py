"""The worlds and bandwidths in which the statements of P1 and the prototype on policies hold, and the policy to use.

Statements are not asked for (claims.py has what is): they are the papers' findings on Poisson pages, looked at
again where pages change by the clock, in bursts, or more often where they matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]
Scores = Mapping[str, Mapping[str, float]]
OURS = ("uniform", "proportional", "p1", "freshness", "freshness:mean", "mixed:0.1", "mixed:0.3", "mixed:1", "kolobov",
        "azar")  # fmt: skip
USUAL = ("p1", "mixed:0.3", "freshness", "freshness:mean", "kolobov")
"""policies that the verdict weighs against each other"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the papers. where: world -> {bandwidth: whether it holds}, with estimated rates."""

    says: str
    where: Mapping[str, Mapping[str, bool]]


def _fresh(scores: Scores, name: str) -> float:
    return scores[name]["freshness"]


def _missed(scores: Scores, name: str) -> float:
    return scores[name]["obsolescence"]


SAYS: Mapping[str, Callable[[Scores], bool]] = {
    "P1 6: K / sqrt(r lambda) misses the fewest changes of all policies (within 3 %)": lambda s: (
        _missed(s, "p1") <= 1.03 * min(_missed(s, name) for name in OURS)
    ),
    "P1 6: it is fresher than reading all pages equally often": lambda s: _fresh(s, "p1") > _fresh(s, "uniform"),
    "F: the freshness index is the freshest of the laws (within .2 %)": lambda s: (
        _fresh(s, "freshness") >= 0.998 * max(_fresh(s, name) for name in OURS)
    ),
    "F: mixed .3 is fresher than P1's law and misses at most 1.2 times as much": lambda s: (
        _fresh(s, "mixed:0.3") >= _fresh(s, "p1") and _missed(s, "mixed:0.3") <= 1.2 * _missed(s, "p1")
    ),
    "F: reading in proportion to the change rate is worse than uniformly": lambda s: (
        _fresh(s, "proportional") < _fresh(s, "uniform")
    ),
    "F: Nutch's schedule is less fresh than uniform": lambda s: _fresh(s, "nutch") < _fresh(s, "uniform"),
    "F: random reads at Azar's rates cost 2 % of freshness or more": lambda s: (
        _fresh(s, "azar-random") <= 0.98 * _fresh(s, "azar")
    ),
    "P1 6.6: filed by dates the law is as fresh as by scan (within 1 %)": lambda s: (
        _fresh(s, "p1:filed") >= 0.99 * _fresh(s, "p1")
    ),
    "where rates are in doubt, the mean over the belief is as fresh as the mean rate (within .5 %)": lambda s: (
        _fresh(s, "freshness") >= 0.995 * _fresh(s, "freshness:mean")
    ),
}


def statements(results: Results) -> list[Statement]:
    """Each of SAYS on every world, with estimated rates; the Poisson one from wrong priors, too."""
    return [
        Statement(says, {world: {b: holds(scores) for b, scores in rows.items()} for world, rows in _runs(results)})
        for says, holds in SAYS.items()
    ]


def _runs(results: Results) -> Iterator[tuple[str, Mapping[str, Scores]]]:
    for world, knowledge in results["worlds"].items():
        yield world, knowledge["estimated"]
        for name in ("cold", "high", "low"):
            if name in knowledge:
                yield f"{world}, {name}", knowledge[name]


def page(results: Results) -> Iterator[str]:
    """Lines: where each statement holds; then what each policy loses at most, a bandwidth."""
    yield from ("", "What the papers say of policies, and where it holds (estimated rates; B in % of the pages a day)")
    for statement in results["where"]:
        yield f"  {statement['says']}"
        for world, found in statement["where"].items():
            bandwidths = [f"{100 * float(b):g}" for b, holds in found.items() if holds]
            lost = [f"{100 * float(b):g}" for b, holds in found.items() if not holds]
            extent = "everywhere" if not lost else f"at {', '.join(bandwidths)}" if bandwidths else "nowhere"
            yield f"    {world:16} {extent}"
    yield from (
        "",
        "Which to use: most freshness lost to the freshest of ours on any world or prior (and changes missed,",
    )
    yield "as a multiple of the fewest)"
    for bandwidth in next(iter(_runs(results)))[1]:
        yield f"  B = {100 * float(bandwidth):g} %"
        yield from _regrets(results, bandwidth)


def _regrets(results: Results, bandwidth: str) -> Iterator[str]:
    """A line a policy of USUAL, the safest first, by freshness lost at most."""
    losses: dict[str, tuple[float, float, str]] = {}
    for name in USUAL:
        found = []
        for world, rows in _runs(results):
            scores = rows[bandwidth]
            best = max(_fresh(scores, other) for other in OURS)
            least = max(min(_missed(scores, other) for other in OURS), 1e-12)
            found.append((1.0 - _fresh(scores, name) / best, _missed(scores, name) / least, world))
        worst = max(found)
        losses[name] = worst[0], max(missed for _, missed, _ in found), worst[2]
    for name, (lost, missed, world) in sorted(losses.items(), key=lambda pair: pair[1][0]):
        yield f"    {name:16} {100 * lost:5.2f} % at most ({world}); misses up to {missed:.2f} times the fewest"
