"""Bounds hold on any graph; intervals cover what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.opic import interval_coverage as lab
from xyro.lab.opic import simulate
from xyro.lab.opic.histories import Interpolation, Static
from xyro.lab.opic.interval_coverage import residual
from xyro.lab.opic.selectors import Random
from xyro.lab.opic.simulate import SimulatedWorld
from xyro.opic.cash import UNIT
from xyro.opic.confidence import FARTHEST, NEVER, Law, condition, convergence, error_bound, interval, trend
from xyro.opic.graph import cycle, from_links, standard, star
from xyro.opic.importance import normalise
from xyro.opic.pagerank import fixpoint, pagerank, push, to_virtual_by_small_edges


def a_graph(seed: int, n: int = 30):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(0, 5 * n))
    return from_links(n, rng.integers(n, size=m), rng.integers(n, size=m)), rng


@given(st.integers(0, 10_000), st.floats(0.05, 0.99))
def test_no_vector_is_farther_from_pagerank_than_the_bound(seed, damping):
    graph, rng = a_graph(seed)
    guess = rng.random(graph.n) ** 3 + 1e-9
    guess /= guess.sum()
    paid = rng.random(graph.n) + 1e-3
    paid /= paid.sum()
    truth = pagerank(graph, damping, paid, tolerance=1e-13, max_steps=20_000, dangling=paid).rank
    off = np.abs(guess - truth).sum()
    assert off <= residual(graph, guess, damping, paid) * condition(damping) + 1e-9
    assert off <= error_bound(residual(graph, guess, damping, paid), condition(damping)) + 1e-9


@given(st.integers(0, 10_000), st.floats(0.1, 5))
def test_the_bound_over_pages_and_virtual_page_with_small_edges(seed, edge):
    """The derivation's first step: eliminating the virtual page does not lengthen the residual."""
    graph, rng = a_graph(seed)
    toll = to_virtual_by_small_edges(graph, edge)
    both = rng.random(graph.n + 1)
    both /= both.sum()
    x, v = both[:-1], both[-1]
    pages = push(graph, x * (1 - toll) / np.maximum(graph.out_degree, 1)) + v / graph.n - x
    whole = np.abs(pages).sum() + abs(toll @ x - v)
    found = fixpoint(graph, toll)
    truth = found.rank * x.sum() / (1 - found.virtual)
    factor = condition(edge=edge, links=int(graph.out_degree.max()))
    assert np.abs(x - truth).sum() <= whole * factor + 1e-9


def test_the_exact_solution_has_no_residual_and_a_swapped_one_has_it_by_hand():
    assert residual(cycle(5), np.full(5, 0.2)) == pytest.approx(0)
    point = np.array([1.0, 0, 0, 0, 0])  # 0.85 goes to page 1, 0.15 to all: |.03-1| + |.88| + 3 x .03
    assert residual(cycle(5), point) == pytest.approx(0.97 + 0.88 + 0.09)
    assert residual(cycle(5), 7 * point) == pytest.approx(1.94), "of the sum, whatever it is"


def test_the_laws_of_a_crawl_are_those_of_the_laboratory():
    assert lab.LAWS["never"] == NEVER


def test_condition():
    assert condition(0.85) == pytest.approx(20 / 3)
    assert condition(1.0) == np.inf
    assert condition(edge=2.0, links=10) == pytest.approx(6)
    with pytest.raises(ValueError, match="damping"):
        condition(1.5)
    assert convergence(0) == convergence(0.5) == FARTHEST
    assert convergence(16) == 0.125


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_convergence_bounds_the_residual_of_flow_measured_over_one_span(seed):
    """P2's identity: static from the beginning, a window common to all pages, interpolation."""
    graph, _ = a_graph(seed, 300)
    world, policies = SimulatedWorld(graph), [Static(graph.n), Interpolation(graph.n, 4.0, prior_window=1e-4)]
    spans = [np.inf, 4.0]
    before, clock = world.cash, 0.0
    for _ in simulate.states(world, Random(seed), policies, [300, 900, 3000, 6000]):
        for policy, most in zip(policies, spans, strict=True):
            rank = policy.estimate(world.cash / UNIT, world.turnovers)
            said = convergence(min(most, world.turnovers))
            assert residual(graph, np.maximum(rank, 0)) <= said
            off = np.abs(normalise(rank) - normalise(pagerank(graph).rank)).mean()
            assert off <= error_bound(said, condition())
        moved = np.abs(world.cash - before).sum() / UNIT / graph.n
        assert moved / max(world.turnovers - clock, 1e-9) <= 2 / (world.turnovers - clock)
        before, clock = world.cash, world.turnovers


# -- intervals --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_laws_in_use_cover_graphs_they_were_not_fitted_to():
    for name, graph in {**lab.graphs(1500, 77), "star": star(1500)}.items():
        for policy, said in lab.check(lab.LAWS, graph).items():
            assert said["coverage"] >= (0.87 if policy == "crawl" else 0.95), (name, policy, said)
            assert said["residual_over_convergence"] <= 1, (name, policy, said)
            assert said["error_over_bound"] <= 1, (name, policy, said)


def test_intervals_are_not_wide_for_nothing():
    """Of a settled crawl they are narrow, and a law half as wide would not cover."""
    graph = lab.graphs(3000, 78)["local (95 % within 50 pages)"]
    sample = lab.gather(lab.known_graph(graph, None))["static"][-1]
    assert np.median(lab.LAWS["static"].width(sample.turnovers, sample.importance)) < 0.15
    assert lab.coverage(lab.LAWS["static"]._replace(scale=lab.LAWS["static"].scale / 5), sample) < 0.95


def test_a_fit_finds_the_law_that_made_the_errors():
    rng = np.random.default_rng(4)
    made = Law(0.8, 1.0, 0.2, 9.0, 0.0)
    samples = []
    for turnovers in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
        rank = np.exp(rng.normal(0, 1, 4000)).clip(0.2, 50)
        backed = np.full(4000, turnovers)
        error = made.width(backed, rank) * rng.random(4000) / 0.96
        samples.append(lab.Sample(backed, rank, error, 0.0, 0.0))
    found = lab.fit(samples)
    assert found.fade == pytest.approx(1.0, abs=0.05)
    assert found.calm == pytest.approx(0.2, abs=0.05)
    assert found.scale == pytest.approx(0.8 * lab.MARGIN, rel=0.15)


def test_interval_holds_the_estimate_and_no_less_than_every_page_has():
    rank, width = np.array([0.0, 0.1, 1.0, 5.0]), np.full(4, np.log(2))
    low, high = interval(rank, width)
    np.testing.assert_allclose(low, [0, 0.075, 0.5, 2.5])
    np.testing.assert_allclose(high, [0.3, 0.3, 2, 10])
    assert (interval(rank, width, least=0.0)[1][1:] == 2 * rank[1:]).all()


def test_trend():
    grew = trend(np.array([2.0, 1.1]), np.full(2, 0.1), np.ones(2), np.full(2, 0.1), np.array([4.0, 4.0]))
    np.testing.assert_allclose(grew.growth, [np.log(2) / 4, np.log(1.1) / 4])
    assert grew.low[0] > 0 > grew.low[1]
    np.testing.assert_allclose(grew.high - grew.low, 0.4 / 4)


def test_the_standard_graph_by_the_laboratorys_own_sampling():
    graph = standard(1000, np.random.default_rng(1))
    for name, samples in lab.all_of(graph).items():
        assert all(sample.error.size == sample.importance.size for sample in samples), name
        assert all(np.isfinite(sample.error).all() for sample in samples), name
