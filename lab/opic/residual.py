"""The residual of an importance, and the limits of its meaning (P2 s.3).

The residual of x is L'x - x: what one more step of the power iteration would change. A page's own residual is no bound
of its own error; the sum of all residuals bounds the sum of all errors, since a step shrinks what it is given by c:
|x - truth| <= |residual| / (1-c), both L1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xyro.lab.opic import simulate
from xyro.lab.opic.histories import NO_PRIOR, History, Interpolation, Static
from xyro.lab.opic.measure import machine
from xyro.lab.opic.selectors import Greedy
from xyro.lab.opic.simulate import SimulatedWorld
from xyro.lab.reference_rank import reference
from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.graph import Graph, standard
from xyro.opic.importance import normalise
from xyro.opic.pagerank import push

Watch = Callable[[float], None]


def residual(graph: Graph, importance: Reals) -> Reals:
    """c (M x + dangling / N) + (1-c) - x for x of mean 1: float64[n]."""
    lost = float(importance[graph.dangling].sum()) / graph.n
    carried = push(graph, importance / np.maximum(graph.out_degree, 1))
    step: Reals = DAMPING * (carried + lost) + (1 - DAMPING) - importance
    return step


def residuals(n: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Greedy, 10 N reads, three estimators: the share of pages whose error is above their own residual, the L1 error
    over its bound, and L1 residual x G of H / G alone, which Lemma 2.3 holds below 2."""
    graph = standard(n, np.random.default_rng(seed))
    truth, world = reference(graph), SimulatedWorld(graph)
    paper = Static(n, paper=1 / (2 - DAMPING))
    histories: dict[str, History] = {
        "paper": paper,
        "endowment-free": Static(n),
        "interpolation": Interpolation(n, prior_window=NO_PRIOR),
    }
    for done in simulate.states(world, Greedy(world.keys), list(histories.values()), [10 * n], machine()):
        watch(done / (10 * n))
    found = {}
    for name, history in histories.items():
        estimate = normalise(history.estimate(world.cash / UNIT, world.turnovers))
        wrong, left = np.abs(estimate - truth), np.abs(residual(graph, estimate))
        found[name] = {
            "above": float((wrong > left).mean()),
            "of bound": float(wrong.sum() / (left.sum() / (1 - DAMPING))),
        }
    left = np.abs(residual(graph, paper.total / world.turnovers))
    return {"n": n, "estimators": found, "residual x G": float(left.mean() * world.turnovers)}
