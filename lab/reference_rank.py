"""PageRank of a graph that fits in memory, as exact as the laboratory's measurements need it."""

from __future__ import annotations

from xyro.opic.arrays import Reals
from xyro.opic.graph import Graph
from xyro.opic.importance import normalise
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks

EXACT = 1e-12
"""epsilon: the change of an iteration at which it ends"""


def reference(graph: Graph) -> Reals:
    """PageRank by the offline reference, float64[n] of mean 1."""
    effort = Effort(EXACT, max_steps=2000, threads=1)  # one thread: the same to the last digit
    (rank,), _ = pageranks(of_graph(graph), effort=effort)
    return normalise(rank)
