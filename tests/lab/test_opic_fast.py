"""The machine code of the simulation: the same log, columns and selector as its twin, unit for unit."""

import numpy as np
import pytest

from xyro.lab.opic import fast, simulate
from xyro.lab.opic.buckets import Buckets
from xyro.lab.opic.histories import FixedWindow, Interpolation, Static, VariableWindow
from xyro.lab.opic.selectors import Cycle, Greedy, Random, SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, in_rounds, run
from xyro.opic.cash import UNIT
from xyro.opic.graph import cycle, from_lists, standard, star, tiny
from xyro.opic.pagerank import pagerank

GRAPHS = {
    "standard": standard(300, np.random.default_rng(1)),
    "tiny": tiny(),
    "star": star(6),
    "cycle": cycle(9),
    "dangling": from_lists([[], [], []]),
    "self and repeated links": from_lists([[0, 1, 1], [1], [0, 2, 2], [3]]),
}
SELECTORS = {
    "cycle": lambda keys: Cycle(),
    "random": lambda keys: Random(2),
    "sweep": lambda keys: SweepSelector(),
    "wide sweep": lambda keys: SweepSelector(theta=1.0, target=0.5),
    "greedy": Greedy,
    "buckets": lambda keys: Buckets(keys, 0),
}


@pytest.mark.long
@pytest.mark.parametrize("damping", [0.85, 0.5])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("select", SELECTORS.values(), ids=SELECTORS)
def test_machine_code_reads_and_spends_as_its_twin(graph, select, damping):
    worlds = SimulatedWorld(graph, damping), SimulatedWorld(graph, damping)
    chosen = [select(world.keys) for world in worlds]
    for reads in (7, 400, 1, 150):
        logs = simulate.advance(worlds[0], chosen[0], reads), fast.advance(worlds[1], chosen[1], reads)
        for name in ("pages", "cash", "when"):
            np.testing.assert_array_equal(getattr(logs[1], name), getattr(logs[0], name))
        assert logs[0].pages.size == reads
        for name in ("keys", "visits"):
            np.testing.assert_array_equal(getattr(worlds[1], name), getattr(worlds[0], name))
        assert worlds[1].virtual.dump() == worlds[0].virtual.dump() and worlds[1].spent == worlds[0].spent
        assert worlds[1].total == UNIT * graph.n


def test_the_sweep_is_left_as_its_own_pick_would_leave_it():
    worlds = SimulatedWorld(GRAPHS["standard"]), SimulatedWorld(GRAPHS["standard"])
    sweeps = SweepSelector(), SweepSelector()
    simulate.advance(worlds[0], sweeps[0], 333)
    fast.advance(worlds[1], sweeps[1], 333)
    assert sweeps[1] == sweeps[0]


def test_a_selector_of_ones_own_goes_to_the_twin():
    class First:
        def pick(self, held, most):
            return np.array([0])

        def changed(self, held, pages):
            """Always the first page."""

    world = SimulatedWorld(tiny())
    assert fast.advance(world, First(), 5).pages.tolist() == [0] * 5 and world.total == 5 * UNIT


def test_a_tournament_knows_the_richest_of_any_number():
    for n in (1, 2, 3, 7, 8, 100):
        keys = np.random.default_rng(n).integers(0, 10, n)
        assert fast.tournament(keys)[1] == keys.argmax()


def test_rounds_hold_each_page_once_and_keep_its_order():
    pages = np.array([3, 1, 3, 3, 2, 1])
    rounds = [part.tolist() for part in in_rounds(pages)]
    assert [sorted(part) for part in rounds] == [[0, 1, 4], [2, 5], [3]]
    assert list(in_rounds(np.empty(0, np.int64))) == []


@pytest.mark.parametrize(
    "policy",
    [
        Static,
        lambda n: VariableWindow(n, 3),
        lambda n: FixedWindow(n, 4.0, edge=True, least=2),
        lambda n: Interpolation(n, 4.0),
    ],
)
def test_a_history_told_in_rounds_is_a_history_told_read_by_read(policy):
    graph = GRAPHS["standard"]
    at_once, one_by_one = policy(graph.n), policy(graph.n)
    world = SimulatedWorld(graph)
    log = simulate.advance(world, Random(3), 2000)
    simulate.remember([at_once], log)
    for page, cash, when in zip(*log, strict=True):
        one_by_one.measure(np.array([page]), np.array([cash]), float(when))
    found = [history.estimate(world.cash / UNIT, world.turnovers) for history in (at_once, one_by_one)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_run_gives_the_same_points_either_way():
    graph = GRAPHS["standard"]
    truth = pagerank(graph).rank
    runs = [
        run(graph, SweepSelector(), [Static(graph.n)], [300, 3000], truth, advance=advance)
        for advance in (None, fast.advance)
    ]
    for a, b in zip(runs[0][0], runs[1][0], strict=True):
        assert (a.reads, a.all_error, a.spearman) == pytest.approx((b.reads, b.all_error, b.spearman))
