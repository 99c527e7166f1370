"""Patterns whose importance is known: chain, ring, star, tree, bow tie, link farm (`xyro lab opic patterns`).

Each comes with a formula for some of its pages, derived here from x = c (M x + dangling / N) + (1-c) at mean 1; the
offline reference and OPIC are both held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyro.lab.opic import simulate
from xyro.lab.opic.histories import Static
from xyro.lab.opic.measure import machine
from xyro.lab.opic.selectors import SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, errors, spearman
from xyro.lab.reference_rank import reference
from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.graph import Graph, cycle, from_links, path, standard, star
from xyro.opic.importance import normalise
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks

Watch = Callable[[float], None]
PATTERNS = ("chain", "ring", "star", "tree", "bow tie", "link farm")
READS = 50
"""N reads after which OPIC is held against the formula: a chain is as deep as it is long"""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A graph, and the importance (mean 1) of some of its pages. What the farm's formula takes from the honest web
    that it hangs on (one page's importance, the dangling mass) it reads off the importance given."""

    graph: Graph
    formula: Callable[[Reals], Mapping[int, float]]


def pattern(name: str, n: int) -> Pattern:
    """The pattern of about n pages."""
    return {"chain": _chain, "ring": _ring, "star": _star, "tree": _tree, "bow tie": _bow_tie, "link farm": _farm}[
        name
    ](n)


def _chain(n: int) -> Pattern:
    """Relative to the first page's 1, page k has 1 + c + ... + c^k."""
    flow = (1 - DAMPING ** np.arange(1, n + 1)) / (1 - DAMPING)
    return Pattern(path(n), lambda truth: {k: float(flow[k] / flow.mean()) for k in (0, 1, n // 2, n - 1)})


def _ring(n: int) -> Pattern:
    return Pattern(cycle(n), lambda truth: {0: 1.0, n // 2: 1.0})


def _star(n: int) -> Pattern:
    hub = (DAMPING + (1 - DAMPING) / (n + 1)) / (1 + DAMPING) * (n + 1)
    return Pattern(star(n), lambda truth: {0: hub, 1: (n + 1 - hub) / n})


def _tree(n: int) -> Pattern:
    """All pages of a level are alike: one equation a level."""
    depth = max(2, int(np.log2(n + 1)) - 1)
    degree = np.array([2.0, *[3.0] * (depth - 1), 1.0])
    level = np.eye(depth + 1)
    for k in range(depth):
        level[k, k + 1] -= 2 * DAMPING / degree[k + 1]
        level[k + 1, k] -= DAMPING / degree[k]
    flow = np.linalg.solve(level, np.full(depth + 1, 1 - DAMPING))
    firsts = 2 ** np.arange(depth + 1) - 1
    return Pattern(tree(depth), lambda truth: dict(zip(firsts.tolist(), flow.tolist(), strict=True)))


def _bow_tie(n: int) -> Pattern:
    """In units of what every page is given: a page that leads in has 1, one of the core 1 + c + c core/2, one that is
    led to 1 + c core/2."""
    size = max(2, n // 3)
    core = (1 + DAMPING) / (1 - DAMPING / 2)
    flow = np.array([1.0, core, 1 + DAMPING * core / 2])
    return Pattern(bow_tie(size), lambda truth: {k * size: float(flow[k] / flow.mean()) for k in range(3)})


def _farm(n: int) -> Pattern:
    """Boss y and minion m of a farm of k minions solve y = b + w + c k m, m = b + c y/k: b is what every page is given
    and w what the one link from the honest web brings."""
    graph = link_farm(n, max(3, n // 10), np.random.default_rng(7))
    k, c = graph.n - n - 1, DAMPING

    def formula(truth: Reals) -> Mapping[int, float]:
        base = 1 - c + c * float(truth[graph.dangling].sum()) / graph.n
        brought = c * float(truth[0]) / int(graph.out_degree[0])
        boss = (base * (1 + c * k) + brought) / (1 - c * c)
        return {n: boss, n + 1: base + c * boss / k}

    return Pattern(graph, formula)


def tree(depth: int, width: int = 2) -> Graph:
    """A tree whose every page links to its children and to its parent."""
    n = (width ** (depth + 1) - 1) // (width - 1)
    child = np.arange(1, n)
    parent = (child - 1) // width
    return from_links(n, np.concatenate((parent, child)), np.concatenate((child, parent)))


def bow_tie(size: int) -> Graph:
    """Three times `size` pages: those that lead in, one to each page of the core; the core, a ring each page of which
    also links to one page that is led to; and those, without links."""
    within, core, out = (np.arange(size) + k * size for k in range(3))
    return from_links(3 * size, np.concatenate((within, core, core)), np.concatenate((core, np.roll(core, -1), out)))


def link_farm(n: int, spam: int, rng: np.random.Generator) -> Graph:
    """The standard graph of n pages beside `spam` pages that all link to the first of them, which links to all of
    them; one page of the graph links to the farm."""
    base, boss = standard(n, rng), n
    minions = np.arange(n + 1, n + spam)
    sources = np.concatenate((base.sources, minions, np.full(minions.size, boss), [0]))
    targets = np.concatenate((base.indices, np.full(minions.size, boss), minions, [boss]))
    return from_links(n + spam, sources, targets)


def patterns(n: int, watch: Watch) -> dict[str, Any]:
    """OPIC (sweep, 50 N reads) and the offline reference on each pattern, both against the formula (per cent)."""
    found = {}
    for k, name in enumerate(PATTERNS):
        shape = pattern(name, n)
        found[name] = _judge(shape, reference(shape.graph))
        watch((k + 0.5) / len(PATTERNS))
    found["link farm"]["farm"] = farm(n)
    return found


def _judge(shape: Pattern, truth: Reals) -> dict[str, Any]:
    estimate, _ = _opic(shape.graph, READS)
    formula = shape.formula(truth)
    every, top = errors(estimate, truth)
    return {
        "pages": shape.graph.n,
        "greatest": float(truth.max()),
        "least": float(truth.min()),
        "all": every,
        "top": top,
        "spearman": spearman(estimate, truth),
        "known": {str(page): value for page, value in formula.items()},
        "offline off": max(100 * abs(float(truth[page]) / value - 1) for page, value in formula.items()),
        "OPIC off": max(100 * abs(float(estimate[page]) / value - 1) for page, value in formula.items()),
        "curve": np.sort(truth)[::-1].tolist(),
    }


def _opic(graph: Graph, reads: int) -> tuple[Reals, SimulatedWorld]:
    """The endowment-free estimate after so many reads a page by the sweep, and the world then."""
    world, history = SimulatedWorld(graph), Static(graph.n)
    for _ in simulate.states(world, SweepSelector(), [history], [reads * graph.n], machine()):
        pass
    return history.estimate(world.cash / UNIT, world.turnovers), world


def farm(n: int) -> dict[str, float]:
    """Measure a link farm under OPIC: its shares of pages, reads and importance, the boss's importance and rank (1 =
    first), the same without the one link that leads into it, and the boss when only the honest pages are jumped to."""
    graph = link_farm(n, max(3, n // 10), np.random.default_rng(7))
    alone = _without_entry(graph, n)
    truth, isolated = reference(graph), reference(alone)
    estimate, world = _opic(graph, 10)
    honest = np.zeros(graph.n)
    honest[:n] = 1
    (trusted,), _ = pageranks(of_graph(graph), [honest], effort=Effort(1e-12, threads=1))
    return {
        "pages": 1 - n / graph.n,
        "importance": float(truth[n:].sum() / truth.sum()),
        "importance, no link leads in": float(isolated[n:].sum() / isolated.sum()),
        "reads": float(world.visits[n:].sum() / world.visits.sum()),
        "reads of the boss": float(world.visits[n] / world.visits.mean()),
        "boss": float(truth[n]),
        "boss by OPIC": float(estimate[n]),
        "boss, no link leads in": float(isolated[n]),
        "boss's rank": int((truth > truth[n]).sum()) + 1,
        "boss, honest jumps": float(normalise(trusted)[n]),
    }


def _without_entry(graph: Graph, n: int) -> Graph:
    stays = (graph.sources >= n) | (graph.indices < n)
    return from_links(graph.n, graph.sources[stays], graph.indices[stays])
