"""Graphs by construction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.graph import Graph, complete, cycle, from_links, from_lists, path, power_law, standard, star, tiny

links = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)


@given(links)
def test_transposing_twice_gives_the_same_links(pairs):
    sources, targets = np.array([[a, b] for a, b in pairs], np.int64).reshape(-1, 2).T
    graph = from_links(10, sources, targets)
    turned = graph.transpose()
    assert sorted(zip(graph.sources, graph.indices, strict=True)) == sorted(pairs)
    assert sorted(zip(turned.indices, turned.sources, strict=True)) == sorted(pairs)
    assert turned.out_degree.tolist() == graph.in_degree.tolist()


@given(links, st.lists(st.integers(0, 9), unique=True, max_size=10))
def test_links_of_some_pages_come_in_order(pairs, chosen):
    graph = from_links(10, *np.array([[a, b] for a, b in pairs], np.int64).reshape(-1, 2).T)
    indptr, targets = graph.links_of(np.array(chosen, np.int64))
    for k, page in enumerate(chosen):
        assert targets[indptr[k] : indptr[k + 1]].tolist() == graph.children(page).tolist()


def test_named_graphs():
    assert [tiny().children(i).tolist() for i in range(5)] == [[1, 2], [2], [0], [2], []]
    assert cycle(3).indices.tolist() == [1, 2, 0] and path(3).dangling.tolist() == [False, False, True]
    assert star(3).in_degree.tolist() == [3, 1, 1, 1] and complete(4).m == 12
    assert from_lists([]).n == 0


def test_the_standard_graph_has_the_papers_in_degrees():
    graph = standard(20_000, np.random.default_rng(1))
    degrees = graph.in_degree
    assert degrees.min() == 2 and degrees.max() <= 2000
    assert np.mean(degrees == 2) == pytest.approx(2**-2.1 / (np.arange(2, 2001) ** -2.1).sum(), rel=0.03)


def test_the_power_law_stays_in_its_bounds():
    draws = power_law(5000, np.random.default_rng(2), least=3, limit=5)
    assert set(draws.tolist()) == {3, 4, 5}


@pytest.mark.parametrize(
    ("indptr", "indices"), [([0, 2], [0]), ([0, 1], [1]), ([0, 1], [-1]), ([1, 1], []), ([0, 1, 0], [])]
)
def test_what_is_no_graph_is_refused(indptr, indices):
    with pytest.raises(ValueError):
        Graph(np.array(indptr), np.array(indices, np.int64))
