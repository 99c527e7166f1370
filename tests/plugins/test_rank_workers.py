"""The distributed form over the bus: in step, out of step and alone, one vector."""

import time

import numpy as np
import pytest

from xyro.opic.graph import cycle, from_links, from_lists, standard, star, tiny
from xyro.opic.matrix import from_rows, of_graph
from xyro.opic.offline import Effort, pageranks
from xyro.opic.pagerank import pagerank
from xyro.opic.slices import Worker
from xyro.plugins.rank.rank_workers import AHEAD, distributed

GRAPHS = {
    "standard": standard(600, np.random.default_rng(1)),
    "tiny": tiny(),
    "star": star(9),
    "cycle": cycle(8),
    "dangling": from_lists([[], [0], [0, 1]]),
    "apart": from_lists([[1], [0], [3], [2], [5], [4]]),
}


@pytest.mark.long
@pytest.mark.parametrize("chaotic", [False, True], ids=["synchronous", "chaotic"])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_all_ways_lead_to_the_same_vector(graph, count, chaotic):
    """Issue 3: Jacobi = Gauss-Seidel = chaotic = distributed to 1e-6."""
    matrix, told = of_graph(graph), []
    found, steps = distributed(matrix, count, epsilon=1e-9, chaotic=chaotic, watch=told.append)
    for method in ("jacobi", "gauss-seidel"):
        (rank,), _ = pageranks(matrix, effort=Effort(1e-12, method=method))
        assert np.abs(found.rank - rank).sum() < 1e-6
    assert np.abs(found.rank - pagerank(graph).rank).sum() < 1e-7
    assert found.residual <= 1e-9 and told == list(steps) and found.rounds >= 1
    assert found.bytes == 0 if count == 1 else found.bytes > 0 or graph.n < 9


def test_links_have_weights_and_numbers_of_half_the_size():
    graph = standard(200, np.random.default_rng(2))
    weights = np.random.default_rng(3).integers(1, 4, graph.m).astype(float)
    rows = [(graph.sources, graph.indices, weights)]
    matrix = from_rows(200, lambda: rows, weighted=True, dtype=np.float32)
    found, _ = distributed(matrix, 3, epsilon=1e-6)
    (rank,), _ = pageranks(matrix, effort=Effort(1e-6))
    np.testing.assert_allclose(found.rank, rank, atol=1e-6)


def test_bytes_are_those_that_the_bus_carried():
    """A ring of 8 in two: a value from each half to the other in a round, in a message of some twenty bytes."""
    found, steps = distributed(of_graph(cycle(8)), 2, epsilon=1e-9)
    assert found.rounds == len(steps) and 2 * 8 * found.rounds < found.bytes < 2 * 30 * found.rounds


@pytest.mark.parametrize("chaotic", [False, True])
def test_rounds_are_bounded(chaotic):
    found, _ = distributed(of_graph(GRAPHS["standard"]), 3, epsilon=1e-15, limit=4, chaotic=chaotic)
    assert found.rounds == 4 and found.residual > 1e-15


@pytest.mark.parametrize("who", [0, 3])
@pytest.mark.parametrize("most", [1, 20, 60])
def test_a_slow_worker_neither_burns_the_iterations_of_others_nor_hides_an_error(monkeypatch, who, most):
    """The others used up their sweeps on old values, and stopped; the residual then was 6,000 times too small."""
    sweep, worst = Worker.sweep, [0]
    team: dict[int, Worker] = {}

    def slowly(worker: Worker) -> None:
        team[worker.number] = worker
        sweeps = [one.sweeps for one in team.values()]
        worst[0] = max(worst[0], max(sweeps) - min(sweeps) if len(team) == 4 else max(sweeps))
        time.sleep(0.01 * (worker.number == who))
        sweep(worker)

    monkeypatch.setattr(Worker, "sweep", slowly)
    rng = np.random.default_rng(3)
    sources = np.repeat(np.arange(2000), 4)
    graph = from_links(2000, sources, (sources + rng.integers(-60, 61, sources.size)) % 2000)
    (rank,), _ = pageranks(of_graph(graph), effort=Effort(1e-13))
    found, steps = distributed(of_graph(graph), 4, epsilon=1e-7, limit=most, chaotic=True)
    assert worst[0] <= AHEAD
    assert steps[-1].residual == found.residual and (found.residual <= 1e-7) == (most == 60)
    assert np.abs(found.rank - rank).sum() <= 2 * found.residual * 0.85 / 0.15
