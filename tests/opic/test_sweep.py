"""The sweep: slices join up, the threshold finds its target, no allowance is overdrawn, none is passed over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import UNIT
from xyro.opic.sweep import Sweep, afford


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


def test_a_sweep_survives_a_dump():
    sweep = Sweep(theta=0.1 + 0.2, target=0.05)
    sweep.chunk(100, 30)
    sweep.adapt(1, 1)
    assert Sweep.load(sweep.dump()) == sweep


def costs_of(pages):
    """Every third page costs nothing, every fourth may not spend."""
    return np.where(pages % 4 == 3, -1, np.where(pages % 3 == 0, 0, 1)).astype(np.int8)


def picked_of(sweep, cash, most):
    start, stop = sweep.chunk(cash.size, 40)
    rich = np.flatnonzero(cash[start:stop] >= sweep.theta) + start
    return sweep.take(start, stop, rich, costs_of(rich), most)


@given(st.lists(st.integers(0, 2**40), max_size=80), st.integers(0, 9))
def test_what_is_taken_stays_within_the_allowance(cash, most):
    cash, sweep = np.array(cash, np.int64), Sweep()
    for _ in range(4):
        picked = picked_of(sweep, cash, most)
        costs = costs_of(picked)
        assert len(set(picked.tolist())) == picked.size and (costs >= 0).all() and costs.sum() <= most


def test_every_page_with_cash_that_may_spend_is_taken_in_the_end():
    cash = np.random.default_rng(4).integers(1, 50 * UNIT, 300)
    sweep, seen = Sweep(), set()
    for turn in range(4000):
        picked = picked_of(sweep, cash, 1 + turn % 3)
        assert not seen.intersection(picked.tolist()), "it holds nothing any more"
        seen.update(picked.tolist())
        cash[picked] = 0
    assert seen == {page for page in range(300) if page % 4 != 3}


def test_a_sweep_that_was_stopped_goes_on_as_if_it_had_not():
    cash = np.random.default_rng(8).integers(0, 9 * UNIT, 500)
    sweep = Sweep()
    for turn in range(120):
        again = Sweep.load(sweep.dump())
        picked = picked_of(sweep, cash, turn % 5)
        assert picked_of(again, cash, turn % 5).tolist() == picked.tolist()
        assert again == sweep
        cash[picked] = 0
        cash += 1000


def test_affording():
    pages, costs = np.array([9, 8, 7, 6, 5, 4]), np.array([1, 0, -1, 1, 0, 1], np.int8)
    assert [found.tolist() for found in afford(pages, costs, 0)[:1]] == [[8, 5]]
    for most, kept, left in ((1, [9, 8], 6), (2, [9, 8, 6, 5], 4), (3, [9, 8, 6, 5, 4], -1)):
        found = afford(pages, costs, most)
        assert (found[0].tolist(), found[1]) == (kept, left)
