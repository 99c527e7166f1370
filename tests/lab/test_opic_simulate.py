"""OPIC on graphs: Lemma 2.3 in integers, the fixpoint reached, and the prototype's acceptance table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.opic.buckets import Buckets, Levels
from xyro.lab.opic.histories import Interpolation, Static
from xyro.lab.opic.selectors import Cycle, Greedy, Random, SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, errors, run, spearman
from xyro.opic.cash import DAMPING, UNIT
from xyro.opic.graph import complete, cycle, from_links, from_lists, standard, star, tiny
from xyro.opic.importance import normalise
from xyro.opic.pagerank import fixpoint, pagerank, to_virtual

links = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)
groups = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True), max_size=30)


@given(links, groups)
def test_cash_is_conserved_whatever_is_spent(pairs, spent):
    world = SimulatedWorld(from_links(8, *np.array(pairs, np.int64).reshape(-1, 2).T))
    for group in spent:
        world.spend(np.array(group))
        assert world.total == 8 * UNIT and world.cash.min() >= 0


@settings(max_examples=30)
@given(links, groups)
def test_lemma_2_3_holds_to_the_unit(pairs, spent):
    """H[j] + C[j] = C0[j] + what all pages sent to j; and each link carried its share of H[i] to a unit per visit."""
    graph = from_links(8, *np.array(pairs, np.int64).reshape(-1, 2).T)
    world, history, received = SimulatedWorld(graph), np.zeros(8, np.int64), np.zeros(8)
    for group in spent:
        pages = np.array(group)
        history[pages] += world.cash[pages]
        world.spend(pages)
    share = DAMPING * history / np.maximum(graph.out_degree, 1)
    np.add.at(received, graph.indices, share[graph.sources])
    owed = history + world.cash - UNIT - world.virtual.scalar
    visits_in = np.zeros(8)
    np.add.at(visits_in, graph.indices, world.visits[graph.sources] + 1e-9 * history[graph.sources])
    assert (np.abs(owed - received) <= visits_in + 1e-6).all()
    assert history.sum() == world.spent and world.total == 8 * UNIT


GRAPHS = {
    "tiny": tiny(),
    "cycle": cycle(9),
    "complete": complete(5),
    "star": star(6),
    "self links": from_lists([[0, 1], [1], [0, 2, 2], [3]]),
    "dangling": from_lists([[1, 2], [], [], [0]]),
    "standard": standard(150, np.random.default_rng(4)),
}


def selectors(n):
    keys = np.full(n, UNIT)
    return [Cycle(), Greedy(keys), Buckets(keys, 0), SweepSelector(), Random(1), Levels()]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_cycle_with_burn_in_reaches_pagerank(name):
    """Algorithms.md A: Gauss-Seidel, better than 0.05 % where integers round (u = 2^16)."""
    graph = GRAPHS[name]
    world, at_half = SimulatedWorld(graph), np.zeros(graph.n)
    total = np.zeros(graph.n)
    for turn in range(60):
        for page in range(graph.n):
            total[page] += world.cash[page]
            world.spend(np.array([page]))
        if turn == 29:
            at_half = total.copy()
    found = normalise(total - at_half)
    np.testing.assert_allclose(found, normalise(pagerank(graph).rank), rtol=5e-4)


@pytest.mark.parametrize("which", range(len(selectors(1))))
@pytest.mark.parametrize("name", ["tiny", "star", "standard"])
@pytest.mark.long
def test_every_selector_leads_to_the_same_importance(name, which):
    graph = GRAPHS[name]
    select, truth = selectors(graph.n)[which], pagerank(graph).rank
    [[early, late]] = run(graph, select, [Static(graph.n)], [10 * graph.n, 100 * graph.n], truth)
    assert late.all_error < min(1.5, early.all_error) and late.reads == 100 * graph.n


def test_importance_follows_a_page_that_loses_all_its_links():
    before, after = from_lists([[1], [2, 0], [0]]), from_lists([[1], [], [0]])
    world, history = SimulatedWorld(before), Interpolation(3, 64)
    for step in range(6000):
        world.graph = before if step < 3000 else after
        page = np.array([step % 3])
        history.measure(page, world.cash[page] / UNIT, world.turnovers)
        world.spend(page)
        if step in (2999, 5999):
            found = normalise(history.estimate(world.cash / UNIT, world.turnovers))
            np.testing.assert_allclose(found, normalise(pagerank(world.graph).rank), rtol=0.02)
    assert world.total == 3 * UNIT


@pytest.fixture(scope="module")
def standard_10k():
    graph = standard(10_000, np.random.default_rng(1))
    return graph, pagerank(graph).rank, fixpoint(graph, to_virtual(graph)).virtual


ACCEPTANCE = {  # the prototype's errors: (all 5N, top 5N, all 10N, top 10N) of the papers' estimator
    "random": (43.7, 15.2, 24.1, 8.6),
    "cycle": (24.2, 8.4, 12.4, 4.3),
    "greedy": (17.6, 5.0, 8.9, 2.54),
}


@pytest.fixture(scope="module")
def measured(standard_10k):
    """The papers' three strategies and the sweep, 10 N reads each; batches of 16 change the errors by < 1 %."""
    graph, truth, virtual = standard_10k
    keys = np.full(graph.n, UNIT)
    strategies = {
        "random": Random(2),
        "cycle": Cycle(),
        "greedy": Greedy(keys),
        "sweep": SweepSelector(),
    }
    histories = {name: [Static(graph.n, paper=1 - virtual), Static(graph.n)] for name in strategies}
    reads = [5 * graph.n, 9 * graph.n, 10 * graph.n]
    return {name: run(graph, s, histories[name], reads, truth, batch=16) for name, s in strategies.items()}


@pytest.mark.parametrize("name", ACCEPTANCE)
@pytest.mark.long
def test_acceptance_table(measured, name):
    five, _, ten = measured[name][0]
    found = (five.all_error, five.top_error, ten.all_error, ten.top_error)
    assert found == pytest.approx(ACCEPTANCE[name], rel=0.1)


@pytest.mark.long
def test_acceptance_of_the_endowment_free_estimator(measured):
    greedy, sweep = measured["greedy"][1][-1], measured["sweep"][1][-1]
    assert (greedy.all_error, greedy.top_error) == pytest.approx((1.22, 0.39), rel=0.1)
    assert (sweep.all_error, sweep.top_error) == pytest.approx((0.99, 0.50), rel=0.1)


@pytest.mark.long
def test_acceptance_of_the_order_of_strategies(measured):
    ten = [measured[name][0][-1] for name in ("random", "cycle", "greedy", "sweep")]
    assert [p.all_error for p in ten] == sorted((p.all_error for p in ten), reverse=True)
    assert ten[2].spearman > 0.998


@pytest.mark.long
def test_acceptance_of_the_cash_greedy_finds(measured):
    _, nine, ten = measured["greedy"][0]
    assert (ten.turnovers - nine.turnovers) == pytest.approx(2.25, rel=0.1)


def test_errors_and_rank_correlation_of_known_vectors():
    truth = np.arange(1.0, 11.0)
    assert errors(truth * 1.1, truth) == pytest.approx((10, 10))
    assert errors(np.append(truth[:-1], 20.0), truth) == pytest.approx((10, 100))
    assert spearman(truth**3, truth) == pytest.approx(1) and spearman(-truth, truth) == pytest.approx(-1)
    assert spearman(np.array([1.0, 1, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(0.9486832980505138)
