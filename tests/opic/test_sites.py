"""Site graphs by hand, SiteRank against a dense solution, online inflow against exact importance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.opic.simulate import SimulatedWorld
from xyro.opic.cash import UNIT, seeds_of, shares
from xyro.opic.graph import standard
from xyro.opic.importance import TICKS
from xyro.opic.pagerank import pagerank
from xyro.opic.sites import Edges, Inflow, carried, site_rank


def ints(*numbers):
    return np.array(numbers, np.int64)


def random_edges(seed, sites=12, links=80):
    rng = np.random.default_rng(seed)
    edges = Edges()
    sources, targets = rng.integers(sites, size=links), rng.integers(sites, size=links)
    flow = rng.random(links)
    edges.add(sources, targets, flow)
    return edges.graph(sites), sources, targets, flow


def test_links_are_added_up_by_pairs_and_internal_ones_kept_apart():
    edges = Edges()
    edges.add(ints(0, 0, 1, 2), ints(1, 1, 0, 2), np.array([1.0, 2.0, 4.0, 8.0]))
    edges.add(ints(0), ints(1), np.array([16.0]))
    graph = edges.graph(3)
    assert graph.sources.tolist() == [0, 1]
    assert graph.targets.tolist() == [1, 0]
    assert graph.links.tolist() == [3, 1]
    assert graph.flow.tolist() == [19.0, 4.0]
    assert graph.internal.tolist() == [0, 0, 8.0]
    assert graph.inflow.tolist() == [4.0, 19.0, 0]
    with pytest.raises(ValueError, match="beyond"):
        edges.graph(2)


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_gathering_in_parts_changes_nothing(seed, parts):
    whole, sources, targets, flow = random_edges(seed)
    edges = Edges()
    for part in np.array_split(np.arange(sources.size), parts):
        edges.add(sources[part], targets[part], flow[part])
        edges._sum_up()
    for one, other in zip(edges.graph(12), whole, strict=True):
        np.testing.assert_allclose(one, other)
    assert whole.links.sum() == (sources != targets).sum()
    assert whole.flow.sum() + whole.internal.sum() == pytest.approx(flow.sum())


@given(st.integers(0, 10_000), st.sampled_from(["links", "flow"]), st.floats(0, 0.95))
def test_site_rank_is_the_dense_solution(seed, by, damping):
    graph, *_ = random_edges(seed, links=int(seed % 60) + 1)
    n = graph.n
    matrix = np.zeros((n, n))
    matrix[graph.targets, graph.sources] = getattr(graph, by)
    sums = matrix.sum(axis=0)
    matrix[:, sums > 0] /= sums[sums > 0]
    matrix[:, sums == 0] = 1 / n
    exact = np.linalg.solve(np.eye(n) - damping * matrix, np.full(n, (1 - damping) / n))
    np.testing.assert_allclose(site_rank(graph, by, damping), exact, rtol=1e-9)


def test_site_rank_refuses_other_weights_and_knows_no_site():
    graph, *_ = random_edges(1)
    with pytest.raises(ValueError, match="links"):
        site_rank(graph, "anchors")
    assert site_rank(Edges().graph(0)).size == 0
    np.testing.assert_allclose(site_rank(Edges().graph(4)), 0.25)


def test_a_site_does_not_gain_by_links_within_itself():
    edges = Edges()
    edges.add(ints(0, 1, 2), ints(1, 2, 0), np.ones(3))
    edges.add(np.zeros(1000, np.int64), np.zeros(1000, np.int64), np.ones(1000))
    np.testing.assert_allclose(site_rank(edges.graph(3)), 1 / 3)


def test_what_a_link_carries():
    np.testing.assert_allclose(carried(np.array([2.0, 3.0]), ints(4, 0)), [2 * 0.85 / 4, 0])


@pytest.mark.parametrize("window", [4.0, 16.0])
def test_online_inflow_is_that_of_exact_importance(window):
    """Hosts of 40 pages on the standard graph: within a few per cent of the sum over external links."""
    rng = np.random.default_rng(5)
    graph = standard(2000, rng)
    host = np.repeat(np.arange(50), 40)
    world, inflow = SimulatedWorld(graph), Inflow()
    inflow.grow(50)
    order = rng.permutation(graph.n)
    for turn in range(600):
        pages = order[(turn * 100 + np.arange(100)) % graph.n]
        indptr, targets = graph.links_of(pages)
        _, amounts = shares(world.cash[pages], indptr, seeds_of(pages, world.visits[pages]))
        apart = np.repeat(host[pages], np.diff(indptr)) != host[targets]
        inflow.add(host[targets][apart], amounts[apart])
        world.spend(pages)
        now = int(world.turnovers * TICKS)
        if inflow.due(now):
            inflow.measure(now, window)
    rank = pagerank(graph, tolerance=1e-13).rank * graph.n
    each = carried(rank, graph.out_degree)[graph.sources]
    apart = host[graph.sources] != host[graph.indices]
    exact = np.bincount(host[graph.indices][apart], weights=each[apart], minlength=50)
    # over all nodes, the virtual page's spending does not turn the clock: flow is page-units a turnover of real pages
    found = inflow.estimate(int(world.turnovers * TICKS), window)
    assert np.abs(found / exact - 1).max() < 0.2 / np.sqrt(window)
    assert abs(found.sum() / exact.sum() - 1) < 0.02


def test_a_host_born_late_has_a_window_of_its_own():
    inflow = Inflow()
    inflow.grow(1)
    for quarter in range(1, 41):
        now = quarter * TICKS // 4
        if quarter == 20:
            inflow.grow(100)
        inflow.add(ints(0), ints(UNIT // 4))
        if quarter > 20:
            inflow.add(ints(99), ints(UNIT // 2))
        inflow.measure(now, 16.0)
    assert inflow.flow[0] == pytest.approx(1, rel=1e-5)
    assert inflow.flow[99] == pytest.approx(2, rel=0.06)
    assert not inflow.flow[1:99].any()


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_what_is_stored_comes_back_and_a_gap_favours_nobody(amounts):
    inflow = Inflow()
    inflow.grow(len(amounts))
    inflow.add(np.arange(len(amounts)), np.array(amounts))
    inflow.measure(TICKS, 4.0)
    later = 10 * TICKS
    again = Inflow.load(inflow.dump(), later)
    np.testing.assert_array_equal(again.estimate(later, 4.0), inflow.flow[: len(amounts)])
    again.add(np.arange(len(amounts)), np.array(amounts) // 4)
    again.measure(later + TICKS // 4, 4.0)
    np.testing.assert_allclose(again.flow[: len(amounts)], inflow.flow[: len(amounts)], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="8 bytes"):
        Inflow.load(b"1234", 0)
