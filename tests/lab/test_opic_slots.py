"""Slots: cash and time are conserved, grouped histories agree with the whole ones, T is always covered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.opic import fast, slots
from xyro.lab.opic.histories import FixedWindow, Slotted, VariableWindow
from xyro.lab.opic.selectors import SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, errors, states
from xyro.lab.opic.slots import POLICIES, SlotPolicy, counted, estimate, push
from xyro.opic.graph import standard
from xyro.opic.importance import TICKS, WINDOW, normalise
from xyro.opic.pagerank import pagerank

measures = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 2**18)), max_size=40)
"""(units received, ticks waited)"""


def pushed(history, m, grain=0.0, kind=np.float64):
    rows = np.zeros((1, 2, m), kind)
    for units, ticks in history:
        push(rows, np.array([units / TICKS]), np.array([ticks / TICKS]), grain)
    return rows


@given(measures, st.integers(2, 8), st.floats(0, 3))
def test_with_room_cash_and_time_are_conserved_exactly(history, m, grain):
    rows = pushed(history, 50, grain)
    assert rows[0].sum(axis=1).tolist() == [sum(u for u, _ in history) / TICKS, sum(t for _, t in history) / TICKS]
    few = pushed(history, m, grain)
    assert (few[0, :, : m - 1] == rows[0, :, : m - 1]).all(), "the newest slots do not depend on how many there are"


@given(measures, st.integers(2, 8), st.floats(0.5, 8))
def test_slots_of_a_window_reach_back_over_all_of_it(history, m, window):
    """However often a page is spent: either nothing was forgotten, or what is left covers T."""
    rows = pushed(history, m, SlotPolicy(windowed=True).grain(window, m))
    lived = sum(t for _, t in history) / TICKS
    assert rows[0, 1].sum() >= min(lived, window) - 1e-9


@given(measures, st.integers(1, 6))
def test_without_a_window_slots_are_the_last_measures(history, m):
    whole = []
    for units, ticks in history:  # what was measured within one tick is one measure
        if whole and whole[-1][1] == 0:
            whole[-1] = [whole[-1][0] + units, ticks]
        else:
            whole.append([units, ticks])
    last = whole[::-1][:m]
    expected = np.zeros((2, m))
    expected[:, : len(last)] = np.array(last, np.float64).reshape(-1, 2).T / TICKS
    assert (pushed(history, m)[0] == expected).all()


def waits(rng, n, turns):
    """Spendings at moments of a tick, every page at its own pace: (pages, cash, when)."""
    when, pace = np.zeros(n), rng.uniform(0.3, 3.0, n)
    for step in range(1, turns):
        now = step / 8
        pages = np.flatnonzero(now - when >= pace)
        when[pages] = now
        if pages.size:
            yield pages, rng.integers(0, 8 * TICKS, pages.size) / TICKS, now


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        ("variable", lambda n: VariableWindow(n, 8, current=True)),
        ("edge", lambda n: FixedWindow(n, 3.0, edge=True)),
        ("fixed", lambda n: FixedWindow(n, 3.0)),
        ("improved", lambda n: FixedWindow(n, 3.0, edge=True, least=3)),
    ],
)
def test_where_nothing_is_grouped_slots_say_what_whole_histories_say(kind, whole):
    """Measures are 0.3 turnovers apart at least, so 16 slots of 3/15 hold one each."""
    rng, n = np.random.default_rng(5), 50
    many = 8 if kind == "variable" else 16
    ours, theirs, now = Slotted(n, kind, many, 3.0, current=kind == "variable"), whole(n), 0.0
    for pages, cash, now in waits(rng, n, 300):
        for policy in (ours, theirs):
            policy.measure(pages, cash, now)
    held = rng.uniform(0, 3, n)
    np.testing.assert_allclose(ours.estimate(held, now + 0.5), theirs.estimate(held, now + 0.5), rtol=1e-5)


def test_a_hub_spent_a_thousand_times_a_turnover_keeps_its_window():
    rows = np.zeros((1, 2, 8), np.float32)
    for k in range(20_000):
        push(rows, np.array([0.003 if k < 10_000 else 0.005]), np.array([0.001]), POLICIES["edge"].grain(4.0, 8))
    cash, spans = counted(rows, np.array([0.0]), POLICIES["edge"], 4.0)
    assert 3.9 < spans[0] < 4.7 and cash[0] / spans[0] == pytest.approx(5.0, rel=1e-3)


def test_grouping_costs_next_to_nothing():
    """8 slots against all measures, on the same reads; the cash of now makes each better than P2's own."""
    graph = standard(5000, np.random.default_rng(3))
    n = graph.n
    whole = [FixedWindow(n, 10, edge=True, least=3), VariableWindow(n, 8, current=True), FixedWindow(n, 10, edge=True)]
    ours = [Slotted(n, "improved", 8, 10.0), Slotted(n, "variable", 8), Slotted(n, "edge", 8, 10.0)]
    world, truth = SimulatedWorld(graph), normalise(pagerank(graph).rank)
    for _ in states(world, SweepSelector(), [*whole, *ours], [10 * graph.n], fast.advance):
        found = [errors(p.estimate(world.cash / TICKS, world.turnovers), truth)[0] for p in (*whole, *ours)]
    assert found[3] < found[0] and found[4] == pytest.approx(found[1], rel=0.01) and found[5] < found[2]


def test_flow_stands_in_until_there_are_measures():
    rows = np.zeros((3, 2, 4), np.float32)
    push(rows[1:2], np.array([0.1]), np.array([0.01]))
    push(rows[2:], np.array([6.0]), np.array([2.0]))
    since, held, flow = np.array([5.0, 0.1, 1.0]), np.array([9.0, 3.0, 3.0]), np.array([0.7, 0.8, 0.9])
    for policy in POLICIES.values():
        assert estimate(rows, since, held, flow, policy, WINDOW).tolist() == [0.7, 0.8, 3.0]


def test_a_page_not_spent_within_the_window_is_measured_by_its_cash():
    rows = np.zeros((1, 2, 4), np.float32)
    push(rows, np.array([50.0]), np.array([1.0]))
    arguments = rows, np.array([20.0]), np.array([30.0]), np.array([9.0])
    assert estimate(*arguments, POLICIES["edge"], 10.0).tolist() == [1.5]
    assert estimate(*arguments, POLICIES["fixed"], 10.0).tolist() == [3.0], "as printed: all of it over T"
    assert estimate(*arguments, POLICIES["improved"], 10.0)[0] == pytest.approx(80 / 21)


def test_one_slot_is_the_last_measure():
    assert slots.POLICIES["edge"].grain(5.0, 1) == 0.0
