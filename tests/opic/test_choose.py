"""Selectors: each picks distinct pages of the right kind; the sweep's threshold finds its target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opic.cash import UNIT
from opic.choose import Buckets, Cycle, Greedy, Random, Sweep

cash_of = st.lists(st.integers(0, 2**40), min_size=1, max_size=80)


@given(cash_of, st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_greedy_picks_the_richest_after_any_changes(cash, scalar, changes):
    keys = np.array(cash) - scalar
    greedy = Greedy(keys)
    for page, amount in changes:
        page %= keys.size
        keys[page] = amount - scalar
        greedy.changed(keys, scalar, np.array([page, page]))
        assert keys[greedy.pick(keys, scalar, 1)[0]] == keys.max()


@given(cash_of, st.integers(1, 10))
def test_greedy_in_batches_picks_the_richest_few(cash, most):
    keys = np.array(cash)
    picked = Greedy(keys).pick(keys, 0, most)
    assert sorted(keys[picked]) == sorted(cash)[-most:] and len(set(picked.tolist())) == picked.size


@given(cash_of, st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_buckets_pick_within_a_factor_of_two_of_the_richest(cash, changes):
    keys = np.array(cash)
    buckets = Buckets(keys, 0)
    for page, amount in [(0, cash[0]), *changes]:
        keys[page % keys.size] = amount
        buckets.changed(keys, 0, np.array([page % keys.size]))
        picked = buckets.pick(keys, 0, 3)
        richest = np.sort(keys)[-min(3, keys.size) :]
        assert len(set(picked.tolist())) == min(3, keys.size)
        assert (np.sort(keys[picked]) * 2 >= richest).all()
        buckets.changed(keys, 0, picked)


def test_buckets_are_rebuilt_when_the_scalar_has_lifted_all():
    keys = np.array([-1000, 10, 0, 0])
    buckets = Buckets(keys, 1000)
    for _ in range(10):
        buckets.changed(keys, 1000, buckets.pick(keys, 1000, 1))
    assert buckets.level.tolist() == [0, 10, 10, 10]


def test_cycle_visits_all_in_turn():
    turn, keys = Cycle(), np.zeros(7, np.int64)
    assert np.concatenate([turn.pick(keys, 0, 3) for _ in range(5)]).tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5]


def test_random_draws_everybody_alike():
    draw, keys = Random(np.random.default_rng(0)), np.zeros(10, np.int64)
    counts = np.bincount(np.concatenate([draw.pick(keys, 0, 1) for _ in range(5000)]), minlength=10)
    assert abs(counts - 500).max() < 5 * 500**0.5


def test_a_sweep_walks_the_column_in_slices():
    sweep = Sweep()
    assert [sweep.chunk(10, 4) for _ in range(4)] == [(0, 4), (4, 8), (8, 10), (0, 4)]
    assert sweep.chunk(3, 4) == (0, 3)  # a shorter column than before
    assert sweep.chunk(0, 4) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_slices_of_a_growing_column_join_up(steps):
    sweep, n, expected = Sweep(), 1, 0
    for more, most in steps:
        n += more
        start, stop = sweep.chunk(n, most)
        assert start == expected and 0 <= stop - start <= most and stop <= n
        expected = stop % n


@pytest.mark.parametrize("target", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("theta", [1.0, 1e12])
def test_theta_finds_the_share_it_aims_at(target, theta):
    cash = np.random.default_rng(0).exponential(UNIT, 20_000).astype(np.int64)
    sweep, shares = Sweep(theta=theta, target=target), []
    for _ in range(4000):
        start, stop = sweep.chunk(cash.size, 100)
        sweep.adapt(stop - start, int((cash[start:stop] >= sweep.theta).sum()))
        shares.append(np.mean(cash >= sweep.theta))
    assert np.mean(shares[1000:]) == pytest.approx(target, rel=0.15)


def test_theta_waits_for_a_64th_of_the_column():
    sweep = Sweep(theta=100.0)
    sweep.chunk(6400, 99)
    sweep.adapt(99, 0)
    assert sweep.theta == 100
    sweep.adapt(1, 0)
    assert sweep.theta == 50 and sweep.scanned == 0


@given(cash_of, st.integers(1, 8), st.integers(0, 1000))
def test_a_sweep_picks_rich_pages_even_where_all_are_poor(cash, most, scalar):
    keys = np.array(cash) - scalar
    sweep = Sweep(theta=2.0**45)
    picked = sweep.pick(np.maximum(keys, 1 - scalar), scalar, most)
    assert 0 < picked.size <= most and len(set(picked.tolist())) == picked.size


def test_a_sweep_survives_a_dump():
    sweep = Sweep(theta=0.1 + 0.2, target=0.05)
    sweep.chunk(100, 30)
    sweep.adapt(1, 1)
    assert Sweep.load(sweep.dump()) == sweep
