"""Other graphs: sizes, laws of the in-degree, local links (does the graph matter?), and the patterns whose importance
is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lab.opic_measure import measure, reference
from opic.cash import DAMPING
from opic.graph import Graph, cycle, from_links, path, power_law, standard, star
from opic.importance import normalise
from opic.matrix import of_graph
from opic.offline import Effort, pageranks
from opic.simulate import errors

Watch = Callable[[float], None]
BUCKETS = 10


def laws(n: int, seed: int) -> dict[str, Graph]:
    """Graphs of about as many links under several laws, and smaller ones."""
    rng = np.random.default_rng(seed)
    steep = np.repeat(np.arange(n), power_law(n, rng, least=5, exponent=2.7))
    near = np.repeat(np.arange(n), power_law(n, rng))
    away = np.where(
        rng.random(near.size) < 0.95, near + rng.integers(-50, 51, near.size), rng.integers(n, size=near.size)
    )
    return {
        "standard": standard(n, rng),
        "standard, N/3": standard(n // 3, rng),
        "standard, N/10": standard(n // 10, rng),
        "k^-2.7 on [5, N/10]": from_links(n, rng.integers(n, size=steep.size), steep),
        "Poisson(10)": from_links(n, rng.integers(n, size=10 * n), rng.integers(n, size=10 * n)),
        "local (95 % within 50 pages)": from_links(n, away % n, near),
    }


def other_graphs(n: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Sweep and endowment-free estimator after 10 N reads, and ten iterations of the offline computation, on each."""
    found = {}
    graphs = laws(n, seed)
    for k, (name, graph) in enumerate(graphs.items()):
        truth = reference(graph)
        row = measure(graph, truth)[-1]
        _, steps = pageranks(of_graph(graph), effort=Effort(1e-4, method="jacobi"))
        (ten,), _ = pageranks(of_graph(graph), effort=Effort(1e-15, most=10, method="jacobi"))
        found[name] = {
            "all": row.error_all,
            "top": row.error_top10,
            "spearman": row.spearman,
            "iterations to 1e-4": len(steps),
            "error after 10 iterations": errors(normalise(ten), truth)[0],
        }
        watch((k + 1) / len(graphs))
    return found


def tree(depth: int, width: int = 2) -> Graph:
    """A tree whose every page links to its children and to its parent."""
    n = (width ** (depth + 1) - 1) // (width - 1)
    child = np.arange(1, n)
    parent = (child - 1) // width
    return from_links(n, np.concatenate((parent, child)), np.concatenate((child, parent)))


def bow_tie(size: int, rng: np.random.Generator) -> Graph:
    """A third of the pages leads in (0 .. size-1), a third is strongly connected, a third is led to, without links."""
    within, core, out = (np.arange(size) + k * size for k in range(3))
    sources = [within, core, np.repeat(core, 3), core]
    targets = [rng.choice(core, size), np.roll(core, 1), rng.choice(core, 3 * size), rng.choice(out, size)]
    return from_links(3 * size, np.concatenate(sources), np.concatenate(targets))


def link_farm(n: int, spam: int, rng: np.random.Generator) -> Graph:
    """The standard graph of n pages beside `spam` pages that all link to the first of them, which links to all of
    them; one page of the graph links to the farm."""
    base, boss = standard(n, rng), n
    minions = np.arange(n + 1, n + spam)
    sources = np.concatenate((base.sources, minions, np.full(minions.size, boss), [0]))
    targets = np.concatenate((base.indices, np.full(minions.size, boss), minions, [boss]))
    return from_links(n + spam, sources, targets)


def known(name: str, n: int) -> tuple[Graph, Mapping[int, float]]:
    """A pattern of about n pages, and the importance (mean 1) of some of its pages where it has a closed form."""
    c = DAMPING
    if name == "ring":
        return cycle(n), {0: 1.0, n // 2: 1.0}
    if name == "chain":
        # relative to the first page's 1, page k has 1 + c + ... + c^k
        flow = (1 - c ** np.arange(1, n + 1)) / (1 - c)
        return path(n), {k: float(flow[k] / flow.mean()) for k in (0, 1, n - 1)}
    if name == "star":
        hub = (c + (1 - c) / (n + 1)) / (1 + c) * (n + 1)
        return star(n), {0: hub, 1: (n + 1 - hub) / n}
    rng = np.random.default_rng(7)
    if name == "tree":
        return tree(max(2, int(np.log2(n + 1)) - 1)), {}
    return (bow_tie(max(2, n // 3), rng), {}) if name == "bow tie" else (link_farm(n, max(3, n // 10), rng), {})


PATTERNS = ("chain", "ring", "star", "tree", "bow tie", "link farm")


def patterns(n: int, watch: Watch) -> dict[str, Any]:
    """OPIC (sweep, 50 N reads) and the offline reference on each pattern, and both against the closed form."""
    found = {}
    for k, name in enumerate(PATTERNS):
        graph, formula = known(name, n)
        truth = reference(graph)
        row = measure(graph, truth, reads=50)[-1]
        wrong = max((abs(truth[page] / value - 1) for page, value in formula.items()), default=0.0)
        found[name] = {
            "pages": graph.n,
            "greatest": float(truth.max()),
            "least": float(truth.min()),
            "all": row.error_all,
            "top": row.error_top10,
            "spearman": row.spearman,
            "closed form": bool(formula),
            "off closed form": 100 * wrong,
            "curve": np.sort(truth)[::-1].tolist(),
        }
        watch((k + 1) / len(PATTERNS))
    return found
