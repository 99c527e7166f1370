"""The choice of the pages to read next: the papers' strategies, the sweep, the offline computation (P2 figures 2, 3;
table H)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xyro.lab.opic import simulate
from xyro.lab.opic.histories import Static
from xyro.lab.opic.measure import machine
from xyro.lab.opic.names import selector
from xyro.lab.opic.simulate import SimulatedWorld, SimulationLog, errors, spearman
from xyro.lab.reference_rank import reference
from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.graph import Graph, standard
from xyro.opic.importance import normalise
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks
from xyro.opic.pagerank import fixpoint, to_virtual

Watch = Callable[[float], None]
READS = (1, 2, 3, 5, 7, 9, 10)
STRATEGIES = ("random", "cycle", "greedy", "sweep")

ACCEPTANCE: Mapping[int, Mapping[str, float]] = {
    10_000: {
        "random 5 paper all": 43.7,
        "random 5 paper top": 15.2,
        "cycle 5 paper all": 24.2,
        "cycle 5 paper top": 8.4,
        "greedy 5 paper all": 17.6,
        "greedy 5 paper top": 5.0,
        "random 10 paper all": 24.1,
        "random 10 paper top": 8.6,
        "cycle 10 paper all": 12.4,
        "cycle 10 paper top": 4.3,
        "greedy 10 paper all": 8.9,
        "greedy 10 paper top": 2.54,
        "greedy 10 free all": 1.22,
        "greedy 10 free top": 0.39,
        "sweep 10 free all": 0.99,
        "sweep 10 free top": 0.50,
    },
    100_000: {
        "random 5 paper all": 55.7,
        "random 5 paper top": 17.0,
        "cycle 5 paper all": 31.2,
        "cycle 5 paper top": 9.4,
        "greedy 5 paper all": 23.6,
        "greedy 5 paper top": 4.4,
        "random 10 paper all": 30.0,
        "random 10 paper top": 9.2,
        "cycle 10 paper all": 16.0,
        "cycle 10 paper top": 4.8,
        "greedy 10 paper all": 11.9,
        "greedy 10 paper top": 2.23,
        "greedy 10 free all": 1.28,
        "greedy 10 free top": 0.40,
        "sweep 5 free all": 1.81,
        "sweep 5 free top": 1.26,
    },
}
"""the prototype's errors, by graph size: "strategy reads/N estimator pages" -> per cent"""
TOLERANCE = 0.1


def strategies(n: int, seeds: Sequence[int], watch: Watch) -> dict[str, Any]:
    """Errors of every strategy, both estimators, averaged over seeds of the standard graph; and what P2 claims."""
    runs = []
    for k, seed in enumerate(seeds):
        graph = standard(n, np.random.default_rng(seed))
        truth, paper = reference(graph), 1 - fixpoint(graph, to_virtual(graph), 1e-10).virtual
        parts = {}
        for j, name in enumerate(STRATEGIES):
            parts[name] = _run(graph, truth, paper, name, seed)
            watch((k + (j + 1) / len(STRATEGIES)) / len(seeds))
        runs.append({"online": parts, "offline": _offline(graph, truth)})
    return {"n": n, "seeds": list(seeds), "reads": list(READS), **_mean(runs)}


def _run(graph: Graph, truth: Reals, paper: float, name: str, seed: int) -> dict[str, Any]:
    world, n = SimulatedWorld(graph), graph.n
    select = selector(name, world.keys, np.random.default_rng(seed))
    histories = {"paper": Static(n, paper=paper), "free": Static(n)}
    found: dict[str, Any] = {f"{kind} {pages}": [] for kind in histories for pages in ("all", "top", "twice")}
    found |= {"spearman": [], "L1": [], "RMS": [], "turnovers": [], "crawled cash": []}
    last = 0.0
    for _ in simulate.states(world, select, list(histories.values()), [r * n for r in READS], machine()):
        for kind, history in histories.items():
            estimate = history.estimate(world.cash / UNIT, world.turnovers)
            every, top = errors(estimate, truth)
            found[f"{kind} twice"].append(float((np.abs(estimate / truth - 1) > 0.02 * every).mean()))
            found[f"{kind} all"].append(every)
            found[f"{kind} top"].append(top)
        wrong = np.abs(estimate - truth)
        found["spearman"].append(spearman(estimate, truth))
        found["L1"].append(float(wrong.mean()))
        found["RMS"].append(float(np.sqrt((wrong**2).mean())))
        found["crawled cash"].append(world.turnovers - last)
        found["turnovers"].append(world.turnovers)
        last = world.turnovers
    if world.total != UNIT * n:
        raise ArithmeticError(f"{name}: cash {world.total}, expected {UNIT * n}")
    return found


def _offline(graph: Graph, truth: Reals) -> dict[str, list[float]]:
    """Power iteration: an iteration is N reads."""
    found: dict[str, list[float]] = {"all": [], "top": []}
    for reads in READS:
        (rank,), _ = pageranks(of_graph(graph), effort=Effort(1e-15, max_steps=reads, method="jacobi"))
        every, top = errors(normalise(rank), truth)
        found["all"].append(every)
        found["top"].append(top)
    return found


def _mean(runs: Sequence[Any]) -> Any:
    """The mean of equally shaped trees of numbers."""
    if isinstance(runs[0], dict):
        return {key: _mean([run[key] for run in runs]) for key in runs[0]}
    return np.mean(np.array(runs, np.float64), axis=0).tolist()


def acceptance(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Table H beside what was found: {what, wanted, found, better, met}; better: by more than TOLERANCE. Empty for
    sizes that H does not have."""
    rows = []
    for measure, wanted in ACCEPTANCE.get(result["n"], {}).items():
        strategy, reads, estimator, pages = measure.split()
        mark = result["reads"].index(int(reads))
        found = result["online"][strategy][f"{estimator} {pages}"][mark]
        better, met = found < (1 - TOLERANCE) * wanted, found <= (1 + TOLERANCE) * wanted
        rows.append({"what": measure, "wanted": wanted, "found": found, "better": better, "met": met})
    return rows


def unread(n: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Greedy, 1.5 N reads: how well pages that were never read are ranked among themselves."""
    graph = standard(n, np.random.default_rng(seed))
    world, history = SimulatedWorld(graph), Static(n)
    for done in simulate.states(world, selector("greedy", world.keys, _rng(seed)), [history], [3 * n // 2], machine()):
        watch(done / (1.5 * n))
    never, truth = world.visits == 0, reference(graph)
    estimate = history.estimate(world.cash / UNIT, world.turnovers)
    return {"share": float(never.mean()), "spearman": spearman(estimate[never], truth[never])}


def endowments(n: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Greedy from different first distributions of the cash (even, uneven, all of it on one page): the mean error over
    all pages after 10 N and 20 N reads, of P2's estimator and of the endowment-free one."""
    graph = standard(n, np.random.default_rng(seed))
    truth, found = reference(graph), {}
    for k, name in enumerate(("even", "uneven", "one page")):
        world = SimulatedWorld(graph)
        world.keys[:] = _first_cash(n, name, _rng(seed))
        histories = {"paper": Static(n, paper=1 / (2 - DAMPING)), "free": Static(n, endowment=world.keys / UNIT)}
        select = selector("greedy", world.keys, _rng(seed))
        row: dict[str, list[float]] = {kind: [] for kind in histories}
        for _ in simulate.states(world, select, list(histories.values()), [10 * n, 20 * n], machine()):
            for kind, history in histories.items():
                row[kind].append(errors(history.estimate(world.cash / UNIT, world.turnovers), truth)[0])
        found[name] = row
        watch((k + 1) / 3)
    return found


def _first_cash(n: int, name: str, rng: np.random.Generator) -> Any:
    if name == "even":
        return np.full(n, UNIT)
    cash = np.zeros(n, np.int64)
    if name == "uneven":
        cash[:] = np.minimum(rng.pareto(1.2, n) + 0.01, n) * UNIT * 0.1
        cash[cash > 0] = cash[cash > 0] * (UNIT * n / cash.sum())
    cash[0] += UNIT * n - cash.sum()
    return cash


def linear(n: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Measure whether cash gathers linearly, over the last 5 of 10 N random reads.

    The slope of log C on log (turnovers waited), for waits of the top decile that brought 20 pages' worth or more, or
    half a turnover; 1 is linear.
    """
    graph = standard(n, np.random.default_rng(seed))
    world, select = SimulatedWorld(graph), selector("random", np.zeros(n, np.int64), _rng(seed))
    advance = machine()
    advance(world, select, 5 * n)
    log = advance(world, select, 5 * n)
    watch(1.0)
    truth = reference(graph)
    page, cash, waited = _waits(log)
    top = truth[page] >= np.quantile(truth, 0.9)
    enough = top & (waited > 0.5) & (cash > 0)
    expected = truth[page[enough]] * waited[enough]
    slope, _ = np.polyfit(np.log(expected), np.log(cash[enough]), 1)
    return {"slope": float(slope), "spearman": spearman(expected, cash[enough]), "reads": int(enough.sum())}


def _waits(log: SimulationLog) -> tuple[Any, Reals, Reals]:
    """(page, cash, turnovers since its read before) of all reads but each page's first."""
    order = np.argsort(log.pages, kind="stable")
    page, when, cash = log.pages[order], log.when[order], log.cash[order]
    again = np.flatnonzero(page[1:] == page[:-1]) + 1
    return page[again], cash[again], when[again] - when[again - 1]


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed + 1000)
