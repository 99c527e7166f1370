"""A crawl that finds its graph: cash stays exact while pages are born, importance meets the requirement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.opic.growing_crawl import GrowingCrawl
from xyro.lab.opic.simulate import errors, spearman
from xyro.opic.cash import UNIT
from xyro.opic.graph import from_links, power_law
from xyro.opic.importance import Window, normalise
from xyro.opic.pagerank import pagerank


def web(n, seed):
    """Power-law in-degrees, out-degree about 10, 7 % dangling, 3 % self links; every page reachable from page 0."""
    rng = np.random.default_rng(seed)
    dangling = rng.random(n) < 0.07
    dangling[:50] = False
    sources = np.repeat(np.arange(n), np.where(dangling, 0, rng.poisson(9, n) + 1))
    pull = power_law(n, rng).astype(np.float64)
    targets = rng.choice(n, sources.size, p=pull / pull.sum())
    able, pages = np.flatnonzero(~dangling), np.arange(1, n)
    parents = able[(rng.random(n - 1) * np.searchsorted(able, pages)).astype(np.int64)]
    selves = able[rng.random(able.size) < 0.03]
    return from_links(n, np.concatenate((sources, parents, selves)), np.concatenate((targets, pages, selves)))


def crawl(graph, reads, window=None, group=10):
    """Read what is unread, richest first, then refresh what is due by age x sqrt(importance)."""
    state = GrowingCrawl(graph, window=window)
    found_by = np.zeros(graph.n, np.int64)
    while state.reads < reads:
        unread = state.unread(group)
        if not unread.size:
            age = np.mod(state.clock.ticks - state.last.astype(np.int64), 2**32)
            unread = np.argsort(-age * np.sqrt(state.importance))[:group]
        before = state.found.copy()
        state.fetch(unread)
        found_by[state.found & ~before] = state.reads
        assert state.total == UNIT * state.order.size
    return state, found_by


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_importance_after_five_reads_a_page_meets_the_requirement(seed):
    """Issue 2: pages known since the first quarter: <= 6 % on all, <= 3 % on the top decile, Spearman >= .99."""
    graph = web(2000, seed)
    state, found_by = crawl(graph, 10_000)
    truth, old = normalise(pagerank(graph).rank), found_by <= 2500
    everybody, top = errors(state.importance[old], truth[old])
    assert everybody < 3 and top < 2 and spearman(state.importance[old], truth[old]) > 0.995
    assert state.read.all() and state.free_spends == pytest.approx(20_000, rel=0.1)


@pytest.mark.long
def test_a_window_that_restarts_with_growth_beats_both_fixed_ones():
    graph = web(2000, 3)
    truth = normalise(pagerank(graph).rank)
    found = [errors(crawl(graph, 6000, w)[0].importance, truth)[0] for w in (None, Window(4, 4), Window(16, 16))]
    assert found[0] < 0.8 * min(found[1:])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40), st.integers(0, 9), st.integers(1, 4))
def test_cash_is_exact_on_any_graph_from_any_seed(pairs, seed, group):
    graph = from_links(10, *np.array(pairs, np.int64).reshape(-1, 2).T)
    state = GrowingCrawl(graph, seed)
    for _ in range(30):
        pages = state.unread(group)
        state.fetch(pages if pages.size else state.order[:group])
        assert state.total == UNIT * state.order.size
    importance = state.importance
    assert (importance[~state.found] == 0).all() and importance[state.found].mean() == pytest.approx(1)


def test_never_read_pages_do_not_spend_for_free():
    state = GrowingCrawl(web(500, 5))
    for _ in range(10):
        state.fetch(state.unread(5))
    assert (state.visits[~state.read] == 0).all() and state.free_spends > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 4])
def test_the_middles_of_intervals_are_nearer_to_the_truth_than_the_importances(seed):
    graph = web(1500, seed)
    truth = pagerank(graph).rank * graph.n
    state, _ = crawl(graph, 10 * graph.n)
    middles, importance = (np.abs(np.log(found / truth)) for found in (state.middles, state.importance))
    assert np.median(middles) < 0.9 * np.median(importance)
    assert np.quantile(middles, 0.95) < 0.9 * np.quantile(importance, 0.95)
