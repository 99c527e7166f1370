"""Selectors: each picks distinct pages of the right kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.opic import fast, names
from xyro.lab.opic.buckets import Buckets, Levels
from xyro.lab.opic.selectors import Cash, Cycle, Greedy, Random, SweepSelector
from xyro.lab.opic.simulate import SimulatedWorld, advance
from xyro.opic.cash import UNIT
from xyro.opic.graph import standard

cash_of = st.lists(st.integers(0, 2**40), min_size=1, max_size=80)


@given(cash_of, st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_greedy_picks_the_richest_after_any_changes(cash, scalar, changes):
    keys = np.array(cash) - scalar
    greedy = Greedy(keys)
    for page, amount in changes:
        page %= keys.size
        keys[page] = amount - scalar
        greedy.changed(Cash(keys, scalar), np.array([page, page]))
        assert keys[greedy.pick(Cash(keys, scalar), 1)[0]] == keys.max()


@given(cash_of, st.integers(1, 10))
def test_greedy_in_batches_picks_the_richest_few(cash, most):
    keys = np.array(cash)
    picked = Greedy(keys).pick(Cash(keys, 0), most)
    assert sorted(keys[picked]) == sorted(cash)[-most:] and len(set(picked.tolist())) == picked.size


@given(cash_of, st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_buckets_pick_within_a_factor_of_two_of_the_richest(cash, changes):
    keys = np.array(cash)
    buckets = Buckets(keys, 0)
    for page, amount in [(0, cash[0]), *changes]:
        keys[page % keys.size] = amount
        buckets.changed(Cash(keys, 0), np.array([page % keys.size]))
        picked = buckets.pick(Cash(keys, 0), 3)
        richest = np.sort(keys)[-min(3, keys.size) :]
        assert len(set(picked.tolist())) == min(3, keys.size)
        assert (np.sort(keys[picked]) * 2 >= richest).all()
        buckets.changed(Cash(keys, 0), picked)


def test_buckets_are_rebuilt_when_the_scalar_has_lifted_all():
    keys = np.array([-1000, 10, 0, 0])
    buckets = Buckets(keys, 1000)
    for _ in range(10):
        buckets.changed(Cash(keys, 1000), buckets.pick(Cash(keys, 1000), 1))
    assert buckets.level.tolist() == [0, 10, 10, 10]


def test_cycle_visits_all_in_turn():
    turn, keys = Cycle(), np.zeros(7, np.int64)
    picked = np.concatenate([turn.pick(Cash(keys, 0), 3) for _ in range(5)])
    assert picked.tolist() == [*range(7), *range(6)]


def test_random_draws_everybody_alike():
    draw, keys = Random(7), np.zeros(10, np.int64)
    counts = np.bincount(np.concatenate([draw.pick(Cash(keys, 0), 1) for _ in range(5000)]), minlength=10)
    assert abs(counts - 500).max() < 5 * 500**0.5


@given(cash_of, st.integers(1, 8), st.integers(0, 1000))
def test_a_sweep_picks_rich_pages_even_where_all_are_poor(cash, most, scalar):
    keys = np.array(cash) - scalar
    sweep = SweepSelector(theta=2.0**45)
    picked = sweep.pick(Cash(np.maximum(keys, 1 - scalar), scalar), most)
    assert 0 < picked.size <= most and len(set(picked.tolist())) == picked.size


@given(cash_of, st.integers(1, 3))
def test_levels_pick_within_a_factor_of_two_of_the_richest(cash, most):
    keys, levels = np.maximum(np.array(cash), 1), Levels()
    for _ in range(6):
        held = Cash(keys, 0)
        picked = levels.pick(held, most)
        assert (keys[picked] * 2 >= np.sort(keys)[-min(most, keys.size) :].min()).all() and 0 < picked.size <= most
        keys[picked] = 1
        levels.changed(held, picked)


def test_levels_hear_of_what_the_virtual_page_paid_all():
    keys, levels = np.full(100, -1000), Levels()
    assert levels.pick(Cash(keys, 1000), 5).size == 0, "nobody holds anything"
    assert levels.pick(Cash(keys, 1500), 5).size == 5


@pytest.mark.parametrize("name", names.SELECTORS)
@pytest.mark.parametrize("pages", [0, 1, 70])
def test_a_pick_ends_where_nobody_holds_cash(name, pages):
    """Before, a sweep looked for ever; the others give pages without cash, or none."""
    held = Cash(np.full(pages, -5), 5)
    for most in (1, 3):
        picked = names.selector(name, held.keys, np.random.default_rng(1)).pick(held, most)
        assert picked.size <= min(most, pages) and np.isin(picked, np.arange(pages)).all()
        assert name != "sweep" or not picked.size


@given(cash_of, st.floats(1, 2**50), st.integers(0, 90), st.integers(1, 5))
def test_a_sweep_finds_the_last_unit(cash, theta, pointer, most):
    cash = np.array(cash) // 2**39  # mostly 0 and 1
    picked = SweepSelector(theta=theta, pointer=pointer).pick(Cash(cash - 7, 7), most)
    assert (cash[picked] > 0).all() and (picked.size > 0) == cash.any() and picked.size <= most


@pytest.mark.parametrize("read", [advance, fast.advance])
def test_a_world_without_cash_is_not_read(read):
    world = SimulatedWorld(standard(50, np.random.default_rng(2)))
    world.keys[:] = 0
    assert read(world, SweepSelector(), 10).pages.size == 0


def test_a_world_is_spent_by_levels_as_well_as_by_stacks():
    world = SimulatedWorld(standard(300, np.random.default_rng(2)))
    log = advance(world, Levels(), 900)
    assert world.total == UNIT * 300 and log.pages.size == 900 and (world.visits > 0).mean() > 0.5
