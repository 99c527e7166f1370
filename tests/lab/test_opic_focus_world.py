"""OPIC under other terms reaches the fixpoints computed offline: small edges, personalisation, weighted links."""

import numpy as np
import pytest

from xyro.lab.opic import fast, simulate
from xyro.lab.opic.focus_world import FocusWorld, flows, internal_links
from xyro.lab.opic.selectors import SweepSelector
from xyro.opic.cash import LINK, UNIT, Tolls
from xyro.opic.focus import EQUAL, Terms, weights_of
from xyro.opic.graph import Graph, from_lists, standard, tiny
from xyro.opic.pagerank import fixpoint, pagerank, to_virtual, to_virtual_by_small_edges

FINE = UNIT << 24
"""cash of a page where 1e-8 is asked for"""
FOCUS = Terms(weights=weights_of([0.0, 1.0], 1.0))
GRAPHS = {
    "tiny": tiny(),
    "self and repeated links": from_lists([[0, 1, 1], [2], [0, 2, 3], [1]]),
    "standard": standard(120, np.random.default_rng(5)),
}


def settled(world, rounds=60):
    """All pages in turn, a few at a time."""
    return flows(world, np.array_split(np.arange(world.graph.n), min(20, world.graph.n)), rounds, rounds)


def test_small_edges_reach_the_tabled_importance():
    """Computed by a dense solver, w = 1."""
    world = FocusWorld(tiny(), Terms(edge=1.0), cash=FINE)
    expected = np.array([0.17910448, 0.12686567, 0.2238806, 0.06716418, 0.06716418])
    np.testing.assert_allclose(settled(world) * (1 - 0.335820896), expected, atol=1e-8)
    assert world.total == 5 * FINE


def test_constant_damping_reaches_the_tabled_importance():
    world = FocusWorld(tiny(), Terms(), cash=FINE)
    expected = np.array([0.35906203, 0.18874594, 0.37990288, 0.03614458, 0.03614458])
    np.testing.assert_allclose(settled(world), expected, atol=1e-8)


@pytest.mark.parametrize("edge", [0.05, 1.0, 20.0])
def test_small_edges_are_the_offline_fixpoint(edge):
    graph = GRAPHS["standard"]
    rank = fixpoint(graph, to_virtual_by_small_edges(graph, edge) + graph.dangling * 0.0)
    world = FocusWorld(graph, Terms(edge=edge), cash=FINE)
    np.testing.assert_allclose(settled(world), rank.rank / (1 - rank.virtual), atol=1e-7)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_virtual_page_that_pays_a_few_is_personalised_pagerank(name, share):
    graph = GRAPHS[name]
    chosen = np.arange(graph.n) < max(1, share * graph.n)
    world = FocusWorld(graph, FOCUS, classes=chosen * 2, cash=FINE)
    p = chosen.astype(np.float64)
    reference = pagerank(graph, personalization=p, dangling=p).rank
    np.testing.assert_allclose(settled(world), reference, atol=2e-8)
    offline = fixpoint(graph, to_virtual(graph), personalization=p)
    np.testing.assert_allclose(offline.rank / (1 - offline.virtual), reference, atol=1e-10)
    assert world.total == graph.n * FINE


def test_personalised_pagerank_is_a_dense_eigenvector():
    graph, p = GRAPHS["standard"], np.random.default_rng(2).random(120)
    p /= p.sum()
    google = np.zeros((120, 120))
    np.add.at(google, (graph.sources, graph.indices), 1.0)
    google[graph.dangling] = p * 1.0
    google = 0.85 * google / google.sum(axis=1, keepdims=True) + 0.15 * p
    values, vectors = np.linalg.eig(google.T)
    first = np.real(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(pagerank(graph, personalization=p, dangling=p).rank, first / first.sum(), atol=1e-10)


def test_a_focus_gets_its_share_of_the_virtual_page():
    """Weights 1 and 9: teleport in these proportions."""
    graph = GRAPHS["standard"]
    chosen = np.arange(graph.n) % 10 == 0
    world = FocusWorld(graph, Terms(weights=weights_of([1.0, 9.0], 1.0)), classes=chosen * 2, cash=FINE)
    p = np.where(chosen, 9.0, 1.0)
    np.testing.assert_allclose(settled(world), pagerank(graph, personalization=p, dangling=p).rank, atol=2e-8)


def test_weighted_links_are_the_walk_that_prefers_them():
    """Link weights 1/2 inside: the same as a graph where every other link stands twice."""
    graph = GRAPHS["standard"]
    hosts = np.arange(120) // 12
    inside = internal_links(graph, hosts)
    world = FocusWorld(graph, Terms(), weights=np.where(inside, LINK // 2, LINK), cash=FINE)
    repeats = np.where(inside, 1, 2)
    indptr = np.concatenate(([0], np.cumsum(repeats)))[graph.indptr]
    twice = Graph(indptr, np.repeat(graph.indices, repeats))
    np.testing.assert_allclose(settled(world), pagerank(twice).rank, atol=2e-8)
    assert world.total == 120 * FINE


def test_links_without_weight_are_no_links():
    graph = from_lists([[1], [0, 2], [0]])
    world = FocusWorld(graph, Terms(), weights=np.array([0, 0, LINK, LINK]), cash=FINE)
    np.testing.assert_allclose(settled(world), pagerank(from_lists([[], [2], [0]])).rank, atol=1e-8)


def test_with_equal_terms_it_is_the_world_of_the_figures():
    graph = GRAPHS["standard"]
    plain, other = simulate.SimulatedWorld(graph), FocusWorld(graph, Terms(weights=EQUAL))
    for world in (plain, other):
        simulate.advance(world, SweepSelector(), 900, batch=7)
    assert other.cash.tolist() == plain.cash.tolist() and other.virtual.dump() == plain.virtual.dump()


def test_machine_code_leaves_other_terms_to_their_own_world():
    graph = GRAPHS["standard"]
    worlds = [FocusWorld(graph, Terms(edge=1.0)) for _ in range(2)]
    logs = [
        how(world, SweepSelector(), 500) for how, world in zip((fast.advance, simulate.advance), worlds, strict=True)
    ]
    assert logs[0].pages.tolist() == logs[1].pages.tolist() and worlds[0].cash.tolist() == worlds[1].cash.tolist()
    assert worlds[0].tolls == Tolls(edge=1.0) and worlds[0].total == 120 * UNIT
