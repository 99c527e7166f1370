"""Two rankings in one scan are what two scans give, and what dense linear algebra says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.opic import rank_both
from xyro.opic.graph import from_links, standard
from xyro.opic.matrix import from_rows, mean_of_children, of_graph, reversed_graph
from xyro.opic.offline import Effort, interest
from xyro.opic.pagerank import pagerank
from xyro.opic.rank_both import both

links = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60)
ENGINES = ["numba", "numpy"]
INVERSE = {"reversed": reversed_graph, "mean": mean_of_children}


def solved(graph, targets, reading, damping=0.85, weights=None):
    """Interest by numpy's solver, from the definitions of P1 5.2."""
    out = np.zeros((graph.n, graph.n))
    np.add.at(out, (graph.sources, graph.indices), 1.0 if weights is None else weights)
    sums = out.sum(axis=0 if reading == "reversed" else 1, keepdims=True)
    matrix = np.divide(out, sums, out=np.zeros_like(out), where=sums > 0)
    found = np.linalg.solve(np.eye(graph.n) - damping * matrix, (1 - damping) * targets)
    return found / found.sum() if reading == "reversed" else found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reading", INVERSE)
@settings(max_examples=25, deadline=None)
@given(pairs=links, target=st.integers(0, 9))
def test_any_graph_against_dense_linear_algebra(engine, reading, pairs, target):
    graph, targets = from_links(10, *np.array(pairs, np.int64).reshape(-1, 2).T), np.eye(10)[target]
    found = both(of_graph(graph), targets, reading=reading, effort=Effort(1e-14, engine=engine))
    np.testing.assert_allclose(found.rank, pagerank(graph).rank, atol=1e-10)
    np.testing.assert_allclose(found.interest, solved(graph, targets, reading), atol=1e-10)
    alone, _ = interest(INVERSE[reading](graph), targets, effort=Effort(1e-14, engine=engine))
    np.testing.assert_allclose(found.interest, alone, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reading", INVERSE)
def test_weighted_links_in_small_slices(engine, reading, monkeypatch):
    monkeypatch.setattr("xyro.opic.rank_numpy.SLICE", 7)
    monkeypatch.setattr(rank_both, "CHUNK", 5)
    graph, targets = standard(60, np.random.default_rng(3)), np.arange(60.0) % 4
    weights = np.random.default_rng(4).integers(1, 5, graph.m).astype(float)
    rows = [(graph.sources, graph.indices, weights)]
    matrix = from_rows(60, lambda: rows, weighted=True, dtype=np.float64)
    found = both(matrix, targets, reading=reading, effort=Effort(1e-14, engine=engine))
    np.testing.assert_allclose(found.interest, solved(graph, targets, reading, weights=weights), atol=1e-9)


def test_a_cap_sends_vectors_to_files_and_steps_are_told(tmp_path):
    graph, told = standard(300, np.random.default_rng(5)), []

    def on_disk(name, shape, dtype):
        return np.memmap(tmp_path / name, dtype, "w+", shape=shape)

    matrix, targets = of_graph(graph, np.float32), np.ones(300)
    free = both(matrix, targets, effort=Effort(1e-6))
    capped = both(matrix, targets, effort=Effort(1e-6, memory=1500, spill=on_disk), watch=told.append)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aim", "flow", "handed", "part", "up", "y"]
    np.testing.assert_array_equal(free.rank, capped.rank)
    np.testing.assert_array_equal(free.interest, capped.interest)
    assert told == list(capped.steps) and told[-1].residual <= 1e-6 < told[-2].residual


def test_what_cannot_be_ranked_is_refused():
    graph = standard(20, np.random.default_rng(1))
    for matrix, targets in ((mean_of_children(graph), np.ones(20)), (of_graph(graph), np.zeros(20))):
        with pytest.raises(ValueError):
            both(matrix, targets)
