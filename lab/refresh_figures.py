"""`xyro lab refresh`: every policy on every world at several bandwidths, with known and with estimated rates.

Writes OUT/refresh.json (all numbers), OUT/verdict.txt (what was asked and what was found) and a plot for each world.

    known       the crawler knows each page's true mean rate
    estimated   it learns rates from its own reads (change bits, Gamma by moment matching, M = 50), from a prior that is
                fitted to the pages, as that of a crawler that runs for long is
    dated       the same, and every change comes with its true date (Last-Modified)
    cold        the same as estimated, from the default prior on: a new crawler
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab import opic_parts, refresh_claims, refresh_plots, refresh_text
from lab.opic_parts import Keyed, Watch
from lab.refresh_known import analytic
from lab.refresh_rates import Estimator, Known, Rates
from lab.refresh_replay import row_of, rows
from lab.refresh_rules import BLIND, NAMES, rule
from lab.refresh_sim import simulate
from lab.refresh_world import BURN, COMPUTED, DAYS, History, World, of_histories, zipf
from refresh.change import Prior

VERSION = 1
"""of what the runs mean; raised by hand when a change of the code makes results on disk wrong"""
REAL = ("real", "real, zipf")
REPLAYED = ("uniform", "proportional", "p1", "freshness", "mixed:0.3", "kolobov", "nutch", "stormcrawler")
ESTIMATORS = {
    "M=50": Estimator(),
    "M=10": Estimator(10.0),
    "M=3": Estimator(3.0),
    "never forget": Estimator(float("inf")),
    "M=50, dated": Estimator(last_modified=True),
    "M=10, dated": Estimator(10.0, True),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """pages: of the Poisson world; others: of the other computed ones."""

    pages: int = 100_000
    others: int = 20_000
    seed: int = 1
    bandwidths: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0)
    replayed: tuple[float, ...] = (0.01, 0.05, 0.2)

    def size(self, world: str) -> int:
        return self.pages if world == "poisson" else self.others


FULL = Scale()
QUICK = Scale(5_000, 2_000, replayed=(0.05,))


def rates_of(knowledge: str, world: World) -> Rates:
    """What the crawler knows: known, estimated, dated or cold."""
    if knowledge == "known":
        return Known(world)
    if knowledge == "cold":
        return Estimator().of(world)
    ln = np.log(world.rate)
    prior = Prior.fit(float(ln.mean()), float(ln.std()))
    return Estimator(last_modified=knowledge == "dated", prior=prior).of(world)


def runs(world: World, knowledge: str, bandwidth: float, seed: int, watch: Watch) -> dict[str, Any]:
    """{policy: score} at one bandwidth. Policies that use no rates are run once, with known ones."""
    names = [name for name in NAMES if knowledge == "known" or name not in BLIND]
    found = {}
    for turn, name in enumerate(names):
        score = simulate(world, rule(name, world.born, seed), rates_of(knowledge, world), bandwidth)
        found[name] = score.as_json()
        watch((turn + 1) / len(names))
    return found


def parts(scale: Scale, histories: Sequence[History]) -> dict[str, Keyed]:
    """Everything that is computed, by name."""
    found = {}
    for name in COMPUTED:
        for knowledge in ("known", "estimated", "dated", "cold"):
            if knowledge in ("known", "estimated") or name == "poisson":
                for bandwidth in scale.bandwidths:
                    part = _computed(name, scale.size(name), scale.seed, knowledge, bandwidth)
                    found[f"{name} {knowledge} {bandwidth:g}"] = part
    for bandwidth in scale.bandwidths:
        found[f"analytic {bandwidth:g}"] = _analytic(scale, bandwidth)
    for name in REAL if histories else ():
        for bandwidth in scale.replayed:
            found[f"{name} {bandwidth:g}"] = _replayed(name, histories, scale.seed, bandwidth)
    if histories:
        found["estimators"] = _estimators(histories, scale)
    return found


def _computed(name: str, n: int, seed: int, knowledge: str, bandwidth: float) -> Keyed:
    settings = {"world": name, "pages": n, "seed": seed, "knowledge": knowledge, "bandwidth": bandwidth, "of": VERSION}
    return Keyed(settings, lambda watch: runs(COMPUTED[name](n, seed), knowledge, bandwidth, seed, watch))


def _analytic(scale: Scale, bandwidth: float) -> Keyed:
    settings = {"pages": scale.pages, "seed": scale.seed, "bandwidth": bandwidth, "of": VERSION}
    return Keyed(settings, lambda watch: analytic(COMPUTED["poisson"](scale.pages, scale.seed), bandwidth))


def _key(histories: Sequence[History]) -> dict[str, Any]:
    events = [len(history.changes) for history in histories]
    return {"histories": len(events), "events": sum(events), "born": sum(history.born for history in histories)}


def _real(name: str, histories: Sequence[History], seed: int) -> World:
    n = len(histories)
    return of_histories(histories, zipf(n, seed) if name == "real, zipf" else np.ones(n))


def _replayed(name: str, histories: Sequence[History], seed: int, bandwidth: float) -> Keyed:
    def run(watch: Watch) -> list[dict[str, Any]]:
        world = _real(name, histories, seed)
        return [row.as_json() for row in rows(world, bandwidth, REPLAYED, seed=seed, watch=watch)]

    settings = {**_key(histories), "importance": name, "bandwidth": bandwidth, "seed": seed, "of": VERSION}
    return Keyed(settings, run)


def _estimators(histories: Sequence[History], scale: Scale) -> Keyed:
    """P1's law with several estimators, on the real histories at the least bandwidth."""
    bandwidth = scale.replayed[0]

    def run(watch: Watch) -> list[dict[str, Any]]:
        world, found = _real(REAL[0], histories, scale.seed), []
        best = simulate(world, rule("freshness", world.born, 1), Known(world), bandwidth).freshness
        for turn, (name, estimator) in enumerate(ESTIMATORS.items()):
            score = simulate(world, rule("p1", world.born, 1), estimator.of(world), bandwidth)
            found.append(row_of(name, score, best).as_json())
            watch((turn + 1) / len(ESTIMATORS))
        return found

    return Keyed({**_key(histories), "bandwidth": bandwidth, "of": VERSION}, run)


def figures(out: Path, scale: Scale, histories: Sequence[History] = (), show: bool = True) -> dict[str, Any]:
    """Compute what is not there yet, and write numbers, text and plots. Returns the numbers."""
    results = gather(opic_parts.compute(parts(scale, histories), {}, out, show), scale, histories)
    results["claims"] = [asdict(claim) for claim in refresh_claims.claims(results)]
    results["table F"] = [asdict(cell) for cell in refresh_claims.table(results)]
    opic_parts.write(out / "refresh.json", results)
    (out / "verdict.txt").write_text(refresh_text.page(results), encoding="utf-8")
    refresh_plots.draw(results, out)
    return results


def gather(found: Mapping[str, Any], scale: Scale, histories: Sequence[History]) -> dict[str, Any]:
    """The runs put in order: worlds[world][knowledge][bandwidth][policy] = score with its share of the optimum."""
    worlds: dict[str, Any] = {name: {} for name in COMPUTED}
    for name in COMPUTED:
        for bandwidth in scale.bandwidths:
            known = found[f"{name} known {bandwidth:g}"]
            best = known["freshness"]["freshness"]
            blind = {policy: known[policy] for policy in BLIND}
            for knowledge in ("known", "estimated", "dated", "cold"):
                scores = found.get(f"{name} {knowledge} {bandwidth:g}")
                if scores is not None:
                    shared = {
                        policy: {**score, "share": score["freshness"] / best}
                        for policy, score in {**blind, **scores}.items()
                    }
                    worlds[name].setdefault(knowledge, {})[f"{bandwidth:g}"] = shared
    real = {name: {f"{b:g}": found[f"{name} {b:g}"] for b in scale.replayed} for name in REAL if histories}
    return {
        "scale": asdict(scale),
        "days": DAYS,
        "burn_in_days": BURN,
        "worlds": worlds,
        "analytic": {f"{b:g}": found[f"analytic {b:g}"] for b in scale.bandwidths},
        "real": real,
        "estimators": found.get("estimators", []),
        **({"histories": _key(histories)} if histories else {}),
    }
