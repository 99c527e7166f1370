"""The distributed computation: whatever the order, age and repetition of what workers tell, the same vector."""

import struct

import numpy as np
import pytest

from xyro.opic.graph import cycle, from_lists, path, standard, star, tiny
from xyro.opic.matrix import of_graph
from xyro.opic.offline import Effort, pageranks
from xyro.opic.pagerank import pagerank
from xyro.opic.slices import Values, chaotic, pack, synchronous, unpack, workers

GRAPHS = {
    "standard": standard(400, np.random.default_rng(1)),
    "tiny": tiny(),
    "star": star(9),
    "cycle": cycle(8),
    "dangling": from_lists([[], [0], [0, 1]]),
}


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_synchronous_and_chaotic_workers_reach_the_one_vector(graph, count):
    """Issue 3: the same vector to 1e-6."""
    truth = pagerank(graph).rank
    matrix = of_graph(graph)
    together = synchronous(workers(matrix, count), 1e-9)
    apart = chaotic(workers(matrix, count), 1e-9, np.random.default_rng(2))
    for outcome in (together, apart):
        assert np.abs(outcome.rank - truth).sum() < 1e-7
        assert outcome.residual <= 1e-9 and outcome.rounds > 0
    assert (together.bytes > 0) == (count > 1 and graph.m > 2)


def test_one_worker_is_gauss_seidel():
    matrix = of_graph(GRAPHS["standard"])
    alone = synchronous(workers(matrix, 1), 1e-9)
    (rank,), _ = pageranks(matrix, effort=Effort(1e-12, threads=1))
    np.testing.assert_allclose(alone.rank, rank, atol=1e-9)


def test_numba_and_numpy_workers_agree():
    matrix = of_graph(GRAPHS["standard"])
    ranks = [synchronous(workers(matrix, 3, engine=engine), 1e-10).rank for engine in ("numba", "numpy")]
    np.testing.assert_allclose(ranks[0], ranks[1], atol=1e-9)


def test_bytes_are_those_of_the_values_asked_for():
    """Two workers on a chain of 8: the second needs one value of the first, of 8 bytes, once a round."""
    outcome = synchronous(workers(of_graph(path(8)), 2), 1e-9)
    assert outcome.rounds > 1 and outcome.bytes == outcome.rounds * 8


def test_old_news_changes_nothing():
    team = workers(of_graph(cycle(8)), 2)
    new, old = Values(1, 0, 2, np.array([7.0])), Values(1, 0, 1, np.array([5.0]))
    team[0].hear(new)
    after = team[0].z.copy()
    for message in (old, new):
        team[0].hear(message)
    assert team[0].z.tolist() == after.tolist() and 7.0 in after


def test_a_chaotic_run_can_be_repeated():
    runs = [chaotic(workers(of_graph(GRAPHS["standard"]), 3), 1e-6, np.random.default_rng(5)) for _ in range(2)]
    assert runs[0].rounds == runs[1].rounds and runs[0].rank.tolist() == runs[1].rank.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_messages_survive_the_bus(dtype):
    told = Values(3, 1, 70_000, np.array([0.5, 1e-30, 3.0], dtype))
    heard = unpack(pack(told))
    assert heard[:3] == told[:3] and heard.values.dtype == dtype
    np.testing.assert_array_equal(heard.values, told.values)


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 19, pack(Values(0, 1, 1, np.ones(2)))[:-3], pack(Values(0, 1, 1, np.ones(2))) + b"x",
     struct.pack("<IIQI", 0, 1, 1, 2) + b"12", b"\xff" * 40],
)  # fmt: skip
def test_what_is_no_message_is_refused(data):
    with pytest.raises(ValueError, match="no values of a worker"):
        unpack(data)
