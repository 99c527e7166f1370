"""`xyro lab refresh`: every policy on every world at several bandwidths, with known and with estimated rates.

Writes OUT/refresh.json (all numbers), OUT/verdict.txt (what was asked and what was found) and a plot for each world.

    known       the crawler knows each page's true mean rate
    estimated   it learns rates from its own reads (change bits, three sums a page, M = 50), from the prior that
                fits the pages and stays: what the prototype measured
    dated       the same, and every change comes with its true date (Last-Modified)
    cold        as a crawler that begins: from the default prior, fitted anew to the pages that were read, M = 100
    high, low   the same from a prior whose mean is ten times too high, or too low

The harder worlds (hard_worlds.py) are run with known and with cold rates, at 4 reads a page and day by the hour. A
score stands beside that of `freshness` with known rates in the same world at the same bandwidth: `share` of its
freshness, and `staleness` over its staleness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab import work_parts
from xyro.lab.refresh import jobs as refresh_jobs
from xyro.lab.refresh import quoted_claims, refresh_claims, refresh_plots, refresh_text, where
from xyro.lab.refresh.hard_worlds import HARD
from xyro.lab.refresh.known import analytic
from xyro.lab.refresh.page_arrays import TICK, Rule
from xyro.lab.refresh.rates import Estimator, Rates, TrueRates
from xyro.lab.refresh.replay import row_of, rows, staleness_ratio
from xyro.lab.refresh.rules import BLIND, NAMES, SIGNALLED, rule
from xyro.lab.refresh.sim import simulate
from xyro.lab.refresh.world import BURN, COMPUTED, DAYS, PageHistory, World, of_histories, zipf
from xyro.lab.work_parts import KeyedPart, Watch
from xyro.refresh.rate_belief import RatePrior

VERSION = 4
"""of what the runs mean; raised by hand when a change of the code makes results on disk wrong"""
REAL = ("real", "real, zipf")
REPLAYED = (
    "uniform", "proportional", "p1", "freshness", "freshness:mean", "mixed:0.3", "kolobov", "nutch", "stormcrawler",
    "mirror-sync", "learning-to-crawl",
)  # fmt: skip
TRIED = (
    "uniform", "p1", "mixed:0.3", "freshness", "freshness:mean", "kolobov", "azar-random", "lambdacrawl", "whittle",
    "nutch", "stormcrawler", "mirror-sync", "learning-to-crawl",
)  # fmt: skip
"""on the harder worlds; those with signals try SIGNALLED, too"""
HOURLY = 4.0
"""reads a page and day from which on the ticks are hours"""
DAILY = 86_400
"""seconds from one choice to the next on histories, which last for twenty years"""
HARD_KNOWLEDGE = ("known", "cold")
ESTIMATORS = {
    "M=100": Estimator(),
    "M=10": Estimator(10.0),
    "M=25": Estimator(25.0),
    "M=50": Estimator(50.0),
    "M=200": Estimator(200.0),
    "never forget": Estimator(float("inf")),
    "M=100, dated": Estimator(last_modified=True),
}
TABLED_MEMORY = 50.0
"""reads that count, in the prototype"""
EVERYWHERE = ("known", "estimated")
POISSON = ("known", "estimated", "dated", "cold", "high", "low")
"""what the crawler knows: on every world, and on the Poisson one"""
WRONG = {"high": 10.0, "low": 0.1}
"""the mean of the prior as a multiple of the right one"""
SMALLER = ("cold", *WRONG)
"""run on as few pages as the other worlds have"""


@dataclass(frozen=True, slots=True)
class RefreshScale:
    """The sizes of the runs. pages: of the Poisson and the correlated world; others: of the rest.

    tabled: pages of the runs that the prototype measured (refresh_claims.TABLE), which are made once more at its size;
    0: they are not. They take as long as all others together.
    """

    pages: int = 5_000
    others: int = 1_000
    seed: int = 1
    bandwidths: tuple[float, ...] = (0.05, 0.2, 1.0)
    replayed: tuple[float, ...] = (0.01, 0.05, 0.2)
    hard: int = 1_000
    """pages of the harder worlds"""
    hard_bandwidths: tuple[float, ...] = (0.01, 0.05, 0.2, 4.0)
    tabled: int = 0

    def size(self, world: str, knowledge: str) -> int:
        return self.pages if world in ("poisson", "correlated") and knowledge not in SMALLER else self.others


FULL = RefreshScale(tabled=refresh_claims.TABLED_PAGES)
QUICK = RefreshScale(3_000, 1_000, 1, (0.05, 0.2), (0.05,), 500, (0.01, 0.2))


def rates_of(knowledge: str, world: World) -> Rates:
    """Make the rates that a crawler of this knowledge, one of POISSON, has of a world."""
    if knowledge == "known":
        return TrueRates(world)
    if knowledge == "cold":
        return Estimator().rates_for(world)
    ln = np.log(world.rate)
    mean, sigma = float(ln.mean()), float(ln.std())
    if knowledge in WRONG:
        return Estimator(prior=RatePrior.fit(mean + math.log(WRONG[knowledge]), sigma)).rates_for(world)
    return Estimator(TABLED_MEMORY, knowledge == "dated", RatePrior.fit(mean, sigma), refits=False).rates_for(world)


def runs(
    world: World, knowledge: str, bandwidth: float, seed: int, watch: Watch, tried: Sequence[str] = NAMES
) -> dict[str, Any]:
    """{policy: score} at one bandwidth. Policies that use no rates are run once, with known ones."""
    names = [name for name in tried if knowledge == "known" or name not in BLIND]
    found, tick = {}, TICK if bandwidth < HOURLY else 3600
    for turn, name in enumerate(names):
        made = rule(name, world.born, seed, tick, world.days)
        score = simulate(world, made, rates_of(knowledge, world), bandwidth, tick=tick)
        found[name] = score.as_json()
        watch((turn + 1) / len(names))
    return found


def parts(scale: RefreshScale, histories: Sequence[PageHistory]) -> dict[str, KeyedPart]:
    """Return everything that is to be computed, by name."""
    found = {}
    for name in COMPUTED:
        for knowledge in POISSON if name == "poisson" else EVERYWHERE:
            for bandwidth in scale.bandwidths:
                part = _computed(name, scale.size(name, knowledge), scale.seed, knowledge, bandwidth)
                found[f"{name} {knowledge} {bandwidth:g}"] = part
    for name in HARD:
        for knowledge in HARD_KNOWLEDGE:
            for bandwidth in scale.hard_bandwidths:
                found[f"{name} {knowledge} {bandwidth:g}"] = _hard(name, scale, knowledge, bandwidth)
    for bandwidth in scale.bandwidths:
        found[f"analytic {bandwidth:g}"] = _analytic(scale, bandwidth)
    for run, policies in refresh_claims.tabled_runs().items() if scale.tabled else ():
        found[_tabled_name(run)] = _tabled(run, policies, scale)
    for name in REAL if histories else ():
        for bandwidth in scale.replayed:
            found[f"{name} {bandwidth:g}"] = _replayed(name, histories, scale.seed, bandwidth)
    if histories:
        found["estimators"] = _estimators(histories, scale)
    return found


def _computed(name: str, n: int, seed: int, knowledge: str, bandwidth: float) -> KeyedPart:
    settings = {"world": name, "pages": n, "seed": seed, "knowledge": knowledge, "bandwidth": bandwidth, "of": VERSION}
    return KeyedPart(settings, lambda watch: runs(COMPUTED[name](n, seed), knowledge, bandwidth, seed, watch))


def _tabled_name(run: refresh_claims.TabledRun) -> str:
    return f"tabled {run.world} {run.knowledge} {run.bandwidth}"


def _tabled(run: refresh_claims.TabledRun, policies: Sequence[str], scale: RefreshScale) -> KeyedPart:
    def compute(watch: Watch) -> dict[str, Any]:
        world, bandwidth = COMPUTED[run.world](scale.tabled, scale.seed), float(run.bandwidth)
        blind = runs(world, "known", bandwidth, scale.seed, watch, [name for name in policies if name in BLIND])
        return blind | runs(world, run.knowledge, bandwidth, scale.seed, watch, policies)

    settings = {"run": run, "policies": list(policies), "pages": scale.tabled, "seed": scale.seed, "of": VERSION}
    return KeyedPart(settings, compute)


def _hard(name: str, scale: RefreshScale, knowledge: str, bandwidth: float) -> KeyedPart:
    def run(watch: Watch) -> dict[str, Any]:
        world = HARD[name](scale.hard, scale.seed)
        tried = TRIED if world.signals is None else (*TRIED, *SIGNALLED)
        return runs(world, knowledge, bandwidth, scale.seed, watch, tried)

    settings = {"world": name, "pages": scale.hard, "seed": scale.seed, "knowledge": knowledge}
    return KeyedPart({**settings, "bandwidth": bandwidth, "of": VERSION}, run)


def _analytic(scale: RefreshScale, bandwidth: float) -> KeyedPart:
    pages = scale.tabled or scale.pages
    settings = {"pages": pages, "seed": scale.seed, "bandwidth": bandwidth, "of": VERSION}
    return KeyedPart(settings, lambda watch: analytic(COMPUTED["poisson"](pages, scale.seed), bandwidth))


def _key(histories: Sequence[PageHistory]) -> dict[str, Any]:
    """Return the settings that identify histories: their counts, and a digest of every birth and change.

    The digest depends on the order of the pages, because the order deals out importance.
    """
    events, digest = [len(history.changes) for history in histories], sha256()
    for history in histories:
        digest.update(np.array((len(history.changes), history.born, *history.changes), "<f8").tobytes())
    return {"histories": len(events), "events": sum(events), "times": digest.hexdigest()}


def _real(name: str, histories: Sequence[PageHistory], seed: int) -> World:
    n = len(histories)
    return of_histories(histories, zipf(n, seed) if name == "real, zipf" else np.ones(n))


def _replayed(name: str, histories: Sequence[PageHistory], seed: int, bandwidth: float) -> KeyedPart:
    def run(watch: Watch) -> list[dict[str, Any]]:
        world = _real(name, histories, seed)
        return [row.as_json() for row in rows(world, bandwidth, REPLAYED, seed=seed, watch=watch, tick=DAILY)]

    settings = {**_key(histories), "importance": name, "bandwidth": bandwidth, "seed": seed, "of": VERSION}
    return KeyedPart(settings, run)


def _replayed_rule(name: str, world: World) -> Rule:
    return rule(name, world.born, 1, DAILY, world.days)


def _estimators(histories: Sequence[PageHistory], scale: RefreshScale) -> KeyedPart:
    """P1's law with several estimators, on the real histories at the least bandwidth."""
    bandwidth = scale.replayed[0]

    def run(watch: Watch) -> list[dict[str, Any]]:
        world, found = _real(REAL[0], histories, scale.seed), []
        best = simulate(world, _replayed_rule("freshness", world), TrueRates(world), bandwidth, tick=DAILY).freshness
        for turn, (name, estimator) in enumerate(ESTIMATORS.items()):
            rates = estimator.rates_for(world)
            score = simulate(world, _replayed_rule("p1", world), rates, bandwidth, tick=DAILY)
            found.append(row_of(name, score, best).as_json())
            watch((turn + 1) / len(ESTIMATORS))
        return found

    return KeyedPart({**_key(histories), "bandwidth": bandwidth, "of": VERSION}, run)


def figures(
    out: Path, scale: RefreshScale, histories: Sequence[PageHistory] = (), show: bool = True, jobs: int = 1
) -> dict[str, Any]:
    """Compute what is not there yet, in so many processes, and write numbers, text and plots. Returns the numbers."""
    every = parts(scale, histories)
    if jobs > 1:
        refresh_jobs.ahead(out, partial(parts, scale, histories), every, jobs, show)
    results = gather(work_parts.compute(every, {}, out, show), scale, histories)
    results["claims"] = [asdict(claim) for claim in refresh_claims.claims(results)]
    results["papers"] = [asdict(claim) for claim in quoted_claims.quoted_claims(results)]
    results["where"] = [asdict(statement) for statement in where.statements(results)]
    results["table F"] = [asdict(cell) for cell in refresh_claims.table(results)]
    work_parts.write(out / "refresh.json", results)
    (out / "verdict.txt").write_text(refresh_text.page(results), encoding="utf-8")
    refresh_plots.draw(results, out)
    return results


def gather(found: Mapping[str, Any], scale: RefreshScale, histories: Sequence[PageHistory]) -> dict[str, Any]:
    """The runs put in order: worlds[world][knowledge][bandwidth][policy] = score beside the optimum; so `hard`."""
    real = {name: {f"{b:g}": found[f"{name} {b:g}"] for b in scale.replayed} for name in REAL if histories}
    return {
        "scale": asdict(scale),
        "days": DAYS,
        "burn_in_days": BURN,
        "worlds": {name: _knowledge(found, name, POISSON, scale.bandwidths) for name in COMPUTED},
        "hard": {name: _knowledge(found, name, HARD_KNOWLEDGE, scale.hard_bandwidths) for name in HARD},
        "tabled": [
            {"world": run.world, "knowledge": run.knowledge, "bandwidth": run.bandwidth, "scores": found[name]}
            for run in refresh_claims.tabled_runs()
            if (name := _tabled_name(run)) in found
        ],
        "analytic": {f"{b:g}": found[f"analytic {b:g}"] for b in scale.bandwidths},
        "real": real,
        "estimators": found.get("estimators", []),
        **({"histories": _key(histories)} if histories else {}),
    }


def _knowledge(
    found: Mapping[str, Any], world: str, knowledge: Sequence[str], bandwidths: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """The scores of one world, by what the crawler knew and the bandwidth, each beside the optimum."""
    scores: dict[str, dict[str, Any]] = {}
    for bandwidth in bandwidths:
        optimum = found[f"{world} known {bandwidth:g}"]
        best = optimum["freshness"]["freshness"]
        blind = {policy: score for policy, score in optimum.items() if policy in BLIND}
        for rates in knowledge:
            own = found.get(f"{world} {rates} {bandwidth:g}")
            if own is not None:
                scores.setdefault(rates, {})[f"{bandwidth:g}"] = {
                    policy: {
                        **score,
                        "share": score["freshness"] / best,
                        "staleness": staleness_ratio(score["freshness"], best),
                    }
                    for policy, score in {**blind, **own}.items()
                }
    return scores
