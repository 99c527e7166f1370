"""Other graphs, to see whether the graph matters: sizes, laws of the in-degree, local links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xyro.lab.opic.measure import measure
from xyro.lab.opic.simulate import errors
from xyro.lab.reference_rank import reference
from xyro.opic.graph import Graph, from_links, power_law, standard
from xyro.opic.importance import normalise
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks

Watch = Callable[[float], None]


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
        (ten,), _ = pageranks(of_graph(graph), effort=Effort(1e-15, max_steps=10, method="jacobi"))
        found[name] = {
            "all": row.error_all,
            "top": row.error_top10,
            "spearman": row.spearman,
            "iterations to 1e-4": len(steps),
            "error after 10 iterations": errors(normalise(ten), truth)[0],
        }
        watch((k + 1) / len(graphs))
    return found
