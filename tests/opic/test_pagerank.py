"""PageRank against tabled numbers, a dense eigenvector and a real crawl."""

from pathlib import Path

import numpy as np
import pytest

from xyro.opic.graph import Graph, complete, cycle, from_lists, standard, star, tiny
from xyro.opic.pagerank import fixpoint, pagerank, to_virtual, to_virtual_by_small_edges

CNR = Path(__file__).parents[3] / "shared" / "data" / "cnr-2000.npz"

GRAPHS = {
    "tiny": tiny(),
    "cycle": cycle(7),
    "star": star(5),
    "self links": from_lists([[0, 1], [1], [0, 2, 2]]),
    "repeated links": from_lists([[1, 1, 2], [0], [0, 0, 0, 1]]),
    "all dangling": from_lists([[], [], []]),
    "standard": standard(200, np.random.default_rng(3)),
}


def dense(graph, damping):
    """Left eigenvector of the Google matrix, by numpy's dense solver."""
    google = np.zeros((graph.n, graph.n))
    np.add.at(google, (graph.sources, graph.indices), 1.0)
    google[graph.dangling] = 1.0
    google = damping * google / google.sum(axis=1, keepdims=True) + (1 - damping) / graph.n
    values, vectors = np.linalg.eig(google.T)
    first = np.real(vectors[:, np.argmax(np.real(values))])
    return first / first.sum()


@pytest.mark.parametrize("name", GRAPHS)
def test_power_iteration_virtual_page_and_eigenvector_agree(name):
    graph = GRAPHS[name]
    reference = dense(graph, 0.85)
    opic = fixpoint(graph, to_virtual(graph))
    np.testing.assert_allclose(pagerank(graph).rank, reference, atol=1e-10)
    np.testing.assert_allclose(opic.rank / (1 - opic.virtual), reference, atol=1e-10)
    lost = 0.15 * (1 - reference[graph.dangling].sum()) + reference[graph.dangling].sum()
    assert opic.virtual == pytest.approx(lost / (1 + lost))


def test_the_tiny_graph_is_as_tabled():
    ranking = pagerank(tiny())
    np.testing.assert_allclose(ranking.rank, [0.35906203, 0.18874594, 0.37990288, 0.03614458, 0.03614458], atol=1e-8)
    assert fixpoint(tiny(), to_virtual(tiny())).virtual == pytest.approx(0.153061224, abs=1e-8)


def test_small_edges_of_weight_one_on_the_tiny_graph():
    ranking = fixpoint(tiny(), to_virtual_by_small_edges(tiny()))
    np.testing.assert_allclose(ranking.rank, [0.17910448, 0.12686567, 0.2238806, 0.06716418, 0.06716418], atol=1e-8)
    assert ranking.virtual == pytest.approx(0.335820896, abs=1e-8)


@pytest.mark.parametrize("graph", [cycle(11), complete(6)])
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85])
def test_symmetric_graphs_are_uniform(graph, damping):
    np.testing.assert_allclose(pagerank(graph, damping).rank, 1 / graph.n, atol=1e-12)


def test_the_hub_of_a_star():
    assert pagerank(star(9)).rank[0] == pytest.approx((0.85 + 0.15 / 10) / 1.85)


def test_personalization_sends_jumps_to_its_pages_only():
    ranking = pagerank(from_lists([[1], [2], [0], [0]]), personalization=np.array([0.0, 0.0, 2.0, 0.0]))
    assert ranking.rank[3] == 0 and ranking.rank[2] == ranking.rank.max() and ranking.rank.sum() == pytest.approx(1)


def test_the_residual_bounds_the_error():
    graph = GRAPHS["standard"]
    exact = pagerank(graph).rank
    for rounds in (1, 3, 10):
        rough = pagerank(graph, max_steps=rounds)
        assert rough.iterations == rounds
        assert np.abs(rough.rank - exact).sum() <= rough.residual * 0.85 / 0.15 + 1e-9


def test_a_start_near_the_answer_saves_iterations():
    graph = GRAPHS["standard"]
    cold = pagerank(graph)
    assert pagerank(graph, start=cold.rank).iterations < cold.iterations / 4


@pytest.mark.parametrize("weights", [np.ones(4), -np.ones(5), np.zeros(5), np.full(5, np.nan)])
def test_a_personalization_that_cannot_be_scaled_is_refused(weights):
    with pytest.raises(ValueError):
        pagerank(tiny(), personalization=weights)


def test_no_page_or_no_damping_is_refused():
    for graph, damping in ((from_lists([]), 0.85), (tiny(), 1.5)):
        with pytest.raises(ValueError):
            pagerank(graph, damping)


@pytest.mark.skipif(not CNR.exists(), reason=f"{CNR} is not there")
def test_a_real_crawl_is_ranked_as_published():
    data = np.load(CNR)
    graph = Graph(data["indptr"].astype(np.int64), data["indices"].astype(np.int64))
    ranking = pagerank(graph, tolerance=1e-5)
    error = np.abs(ranking.rank - data["pagerank085"]).sum()
    assert error <= ranking.residual * 0.85 / 0.15 + 1e-9 and error < 1e-4
