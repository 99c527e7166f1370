"""`xyro lab opic`: the figures of P2, computed again, and the claims of the papers held against them.

Writes OUT/figures.json (all numbers), OUT/claims.txt (which claims hold) and OUT/figure2.png .. figure6.png.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab import opic_graphs, opic_parts, opic_plots, opic_strategies, opic_text
from lab.opic_changes import follow
from opic import names
from opic.cash import UNIT
from opic.graph import standard

TURN = {"greedy": 2.4, "sweep": 4.0}
"""turnovers that N reads of the selector spend: the papers' windows count in N reads ("crawls")"""
POLICIES = {
    "static": "static",
    "window 4": "window:4",
    "window 8": "window:8",
    "window 16": "window:16",
    "fixed 8, naive": "fixed:8",
    "fixed 8, edge": "edge:8",
    "improved fixed 4": "improved:4",
    "interpolation 1": "interpolation:1",
    "interpolation 2": "interpolation:2",
    "interpolation 4": "interpolation:4",
    "interpolation 8": "interpolation:8",
    "interpolation 16": "interpolation:16",
    "adaptive T": "adaptive",
}
"""name in the figures -> name of the policy, T in N reads"""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the experiments are. pages: of the standard graph; change_pages: of the changing one."""

    pages: int = 100_000
    seeds: tuple[int, ...] = (1, 2, 3)
    change_pages: int = 100_000
    side_pages: int = 30_000
    rates: tuple[float, ...] = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)


FULL = Scale()
QUICK = Scale(10_000, (1, 2), 5_000, 5_000, (0.0, 0.01, 0.1, 1.0))


def changing(n: int, rate: float, select: str, seed: int, watch: opic_parts.Watch) -> dict[str, list[float]]:
    """{policy: [error on all pages, on the top decile]} on a graph of which `rate` N pages change per N reads."""
    graph = standard(n, np.random.default_rng(seed))
    policies = [names.history(_in_turnovers(name, TURN[select]), n) for name in POLICIES.values()]
    chooser = names.selector(select, np.full(n, UNIT), np.random.default_rng(seed))
    scores = follow(graph, chooser, policies, rate, np.random.default_rng(seed + 1), watch)
    return {name: [score.all, score.top] for name, score in zip(POLICIES, scores, strict=True)}


def _in_turnovers(name: str, turn: float) -> str:
    kind, colon, number = name.partition(":")
    return name if not colon or kind == "window" else f"{kind}:{float(number) * turn}"


def parts(scale: Scale) -> dict[str, opic_parts.Part]:
    """Everything that is computed, by name."""
    n = scale.side_pages
    found: dict[str, opic_parts.Part] = {
        "strategies": lambda watch: opic_strategies.strategies(scale.pages, scale.seeds, watch),
        "never read": lambda watch: opic_strategies.unread(n, 1, watch),
        "first cash": lambda watch: opic_strategies.endowments(n, 1, watch),
        "cash gathers": lambda watch: opic_strategies.linear(n, 1, watch),
        "other graphs": lambda watch: opic_graphs.other_graphs(n, 1, watch),
    }
    for select in TURN:
        for rate in scale.rates:
            found[f"{select} at {rate:g}"] = _changing(scale, rate, select)
    return found


def _changing(scale: Scale, rate: float, select: str) -> opic_parts.Part:
    return lambda watch: changing(scale.change_pages, rate, select, 1, watch)


def figures(out: Path, scale: Scale = FULL, show: bool = True) -> dict[str, Any]:
    """Compute what is not there yet, and write numbers, text and plots. Returns the numbers."""
    results = opic_parts.compute(parts(scale), asdict(scale), out, show)
    results["acceptance"] = opic_strategies.acceptance(results["strategies"])
    results["claims"] = [asdict(claim) for claim in opic_text.claims(results, scale.rates)]
    opic_parts.write(out / "figures.json", results)
    (out / "claims.txt").write_text(opic_text.page(results), encoding="utf-8")
    opic_plots.draw(results, scale.rates, out)
    return results


def pattern_files(out: Path, pages: int, show: bool = True) -> Mapping[str, Any]:
    """`xyro lab opic patterns`: OUT/patterns.json, patterns.txt and patterns.png."""
    work: dict[str, opic_parts.Part] = {"patterns": lambda watch: opic_graphs.patterns(pages, watch)}
    results: dict[str, Any] = opic_parts.compute(work, {"pages": pages}, out, show)["patterns"]
    opic_parts.write(out / "patterns.json", results)
    (out / "patterns.txt").write_text(opic_text.patterns(results), encoding="utf-8")
    opic_plots.draw_patterns(results, out / "patterns.png")
    return results
