"""`xyro lab opic`: the figures of P2, computed again, and the claims of the papers held against them.

Writes OUT/figures.json (all numbers), OUT/claims.txt (which claims hold) and OUT/figure2.png .. figure6.png.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab import work_parts
from xyro.lab.opic import graphs, names, opic_plots, opic_text, patterns, residual, strategies
from xyro.lab.opic.changing_graphs import DEFINITION, follow
from xyro.lab.opic.history_policies import POLICIES, RATES, TABLED, TURN, compare
from xyro.lab.opic.paper_claims import claims
from xyro.lab.work_parts import KeyedPart
from xyro.opic.cash import UNIT
from xyro.opic.graph import standard


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of the experiments. pages: of the standard graph; change_pages: of the changing one, which is run with
    each of change_seeds for Greedy and with the first for the sweep."""

    pages: int = 100_000
    seeds: tuple[int, ...] = (1, 2, 3)
    change_pages: int = TABLED
    change_seeds: tuple[int, ...] = (1, 2, 3)
    side_pages: int = 30_000
    rates: tuple[float, ...] = RATES


FULL = Scale()
QUICK = Scale(10_000, (1, 2), 5_000, (1,), 5_000, RATES)


def changing(n: int, rate: float, select: str, seed: int, watch: work_parts.Watch) -> dict[str, list[float]]:
    """{policy: [error on all pages, on the top decile]} on a graph of which `rate` N pages change per N reads."""
    graph = standard(n, np.random.default_rng(seed))
    policies = [policy(n, TURN[select]) for policy in POLICIES.values()]
    chooser = names.selector(select, np.full(n, UNIT), np.random.default_rng(seed))
    scores = follow(graph, chooser, policies, rate, np.random.default_rng(seed + 1), watch)
    return {name: [score.all, score.top] for name, score in zip(POLICIES, scores, strict=True)}


def parts(scale: Scale) -> dict[str, KeyedPart]:
    """Everything that is computed, by name."""
    n, size = scale.side_pages, {"pages": scale.side_pages}
    all_seeds = {"pages": scale.pages, "seeds": scale.seeds}
    found = {
        "strategies": KeyedPart(all_seeds, lambda watch: strategies.strategies(scale.pages, scale.seeds, watch)),
        "never read": KeyedPart(size, lambda watch: strategies.unread(n, 1, watch)),
        "first cash": KeyedPart(size, lambda watch: strategies.endowments(n, 1, watch)),
        "cash gathers": KeyedPart(size, lambda watch: strategies.linear(n, 1, watch)),
        "other graphs": KeyedPart(size, lambda watch: graphs.other_graphs(n, 1, watch)),
        "residual": KeyedPart({}, lambda watch: residual.residuals(2000, 1, watch)),
    }
    for select, rate, seed in _changes(scale):
        found[_name(select, rate, seed)] = _changing(scale.change_pages, rate, select, seed)
    return found


def _changes(scale: Scale) -> list[tuple[str, float, int]]:
    """(selector, rate, seed) of every run on a changing graph."""
    seeds = {select: scale.change_seeds[: None if select == "greedy" else 1] for select in TURN}
    return [(select, rate, seed) for select in TURN for seed in seeds[select] for rate in scale.rates]


def _name(select: str, rate: float, seed: int) -> str:
    return f"{select} at {rate:g}, seed {seed}"


def _changing(n: int, rate: float, select: str, seed: int) -> KeyedPart:
    graph = {"pages": n, "change": DEFINITION, "rate": rate, "seed": seed}
    settings = {**graph, "select": select, "policies": list(POLICIES)}
    return KeyedPart(settings, lambda watch: changing(n, rate, select, seed, watch))


def figures(out: Path, scale: Scale = FULL, show: bool = True) -> dict[str, Any]:
    """Compute what is not there yet, and write numbers, text and plots. Returns the numbers."""
    results = _gather(work_parts.compute(parts(scale), {}, out, show), scale)
    results["acceptance"] = strategies.acceptance(results["strategies"])
    tabled = compare(results["changes"]["greedy"]) if scale.change_pages == TABLED else []
    results["table B"] = [cell.row() for cell in tabled]
    results["claims"] = [{**asdict(claim), "quote": claim.quote} for claim in claims(results)]
    work_parts.write(out / "figures.json", results)
    (out / "claims.txt").write_text(opic_text.page(results), encoding="utf-8")
    opic_plots.draw(results, out)
    return results


def _gather(found: Mapping[str, Any], scale: Scale) -> dict[str, Any]:
    """The runs on changing graphs put together: changes[select][rate][policy] = {"all": [...], "top": [...]}, a value a
    seed; the other parts as they are."""
    runs = {_name(*change) for change in _changes(scale)}
    changes: dict[str, Any] = {select: {f"{rate:g}": {} for rate in scale.rates} for select in TURN}
    for select, rate, seed in _changes(scale):
        for policy, (every, top) in found[_name(select, rate, seed)].items():
            row = changes[select][f"{rate:g}"].setdefault(policy, {"all": [], "top": []})
            row["all"].append(every)
            row["top"].append(top)
    return {**{name: part for name, part in found.items() if name not in runs}, "changes": changes}


def pattern_files(out: Path, pages: int, show: bool = True) -> Mapping[str, Any]:
    """`xyro lab opic patterns`: OUT/patterns.json, patterns.txt and patterns.png."""
    work = {"patterns": KeyedPart({"pages": pages}, lambda watch: patterns.patterns(pages, watch))}
    results: dict[str, Any] = work_parts.compute(work, {}, out, show)["patterns"]
    work_parts.write(out / "patterns.json", results)
    (out / "patterns.txt").write_text(opic_text.patterns(results), encoding="utf-8")
    opic_plots.draw_patterns(results, out / "patterns.png")
    return results
