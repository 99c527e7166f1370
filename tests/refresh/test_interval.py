"""S to the last bit, K with and without bounds, freshness and obsolescence."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.policy import Spread, freshness, intervals, obsolescence, omega, water_filled, weight

weights = st.floats(0.0, 1e6)
FIVE = np.arange(1.0, 6.0)


def test_weight_is_the_root_of_importance_times_rate():
    assert weight(4.0, 9.0) == 6.0
    assert weight(0.0, 9.0) == weight(4.0, 0.0) == weight(-1.0, 1.0) == weight(math.nan, 1.0) == 0.0


@given(st.lists(st.tuples(st.integers(0, 9), weights), max_size=200))
def test_the_sum_after_any_updates_is_the_sum_over_what_is(updates):
    spread, present = Spread(), np.zeros(10)
    for page, new in updates:
        spread.replace(float(present[page]), new)
        present[page] = new
    assert spread.total == Spread.from_weights(present).total
    assert spread.total == pytest.approx(math.fsum(present), abs=10 * 2.0**-32)


def test_a_million_random_updates_leave_the_sum_of_what_is_to_the_last_bit():
    """S kept while pages come, change and go, against S summed anew over all of them (and over exact fractions)."""
    rng = np.random.default_rng(5)
    pages, updates = 1000, 1_000_000
    present = rng.lognormal(0.0, 3.0, pages).tolist()
    spread = Spread.from_weights(present)
    new = np.where(rng.random(updates) < 0.1, 0.0, rng.lognormal(0.0, 3.0, updates))  # one in ten leaves
    replace = spread.replace
    for page, weight_of in zip(rng.integers(0, pages, updates).tolist(), new.tolist(), strict=True):
        replace(present[page], weight_of)
        present[page] = weight_of
    again = Spread.from_weights(present)
    assert spread.dump() == again.dump()
    assert spread.total == again.total
    assert spread.dump() == str(sum(int(Fraction(value) * 2**32) for value in present))
    for value in present:
        replace(value, 0.0)
    assert spread.dump() == "0"


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.1, 2.0**30, 1e300, math.inf])
def test_one_and_many_are_counted_alike(value):
    spread = Spread()
    spread.replace(0.0, value)
    assert spread.total == Spread.from_weights([value]).total


@given(st.lists(st.floats(0.0, 2.0**30), max_size=20))
def test_a_dumped_sum_is_loaded_to_the_last_bit(values):
    spread = Spread.load(Spread.from_weights(values).dump())
    for value in values:
        spread.replace(value, 0.0)
    assert spread.dump() == "0"


def test_the_sum_of_many_heavy_weights_does_not_overflow():
    assert Spread.from_weights(np.full(100_000, 2.0**30)).total == 100_000 * 2.0**30


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_the_intervals_spend_the_bandwidth_exactly(pages, reads_per_second):
    spread = Spread.from_weights(pages)
    spent = math.fsum(1.0 / spread.interval(page, reads_per_second) for page in pages)
    assert spent == pytest.approx(reads_per_second, rel=1e-6)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50), st.floats(1e-2, 1e4))
def test_the_scale_of_importance_does_not_matter(pages, scale):
    here, there = Spread.from_weights(pages), Spread.from_weights(np.array(pages) * scale)
    for page in pages:
        assert there.interval(page * scale, 2.0) == pytest.approx(here.interval(page, 2.0), rel=1e-3)


def test_interval_keeps_its_bounds():
    spread = Spread.from_weights([1.0, 1.0, 2.0])
    assert spread.interval(2.0, 1.0) == 2.0
    assert spread.interval(2.0, 1.0, min_interval=3.0) == 3.0
    assert spread.interval(1e-9, 1.0, max_interval=100.0) == 100.0
    assert spread.interval(0.0, 1.0, max_interval=100.0) == 100.0
    assert spread.interval(1.0, 0.0, max_interval=100.0) == 100.0
    assert spread.interval(1.0, 0.0) == math.inf


def spent(k: float, pages: np.ndarray, low: float, high: float) -> float:
    return float((1.0 / intervals(pages, k, low, high)).sum())


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40),
    st.floats(0.01, 0.99),
    st.floats(1e-3, 10.0),
    st.sampled_from([20.0, 1e3, 1e6]),
)
def test_water_filling_spends_the_bandwidth_exactly_within_the_bounds(pages, part, low, high):
    array = np.array(pages)
    bandwidth = len(pages) * (1 / high + part * (1 / low - 1 / high))
    k = water_filled(array, bandwidth, low, high)
    assert spent(k, array, low, high) == pytest.approx(bandwidth, rel=1e-6)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40), st.floats(1e-3, 1e3))
def test_without_bounds_k_is_s_over_b(pages, bandwidth):
    assert water_filled(np.array(pages), bandwidth) == pytest.approx(math.fsum(pages) / bandwidth)


def test_water_filling_beyond_what_the_bounds_allow():
    pages = np.array([1.0, 2.0, 0.0])
    assert water_filled(pages, 100.0, min_interval=1.0) == 0.0
    assert water_filled(pages, 0.2, max_interval=10.0) == math.inf
    assert water_filled(np.zeros(3), 1.0) == math.inf
    assert water_filled(np.zeros(0), 1.0) == math.inf
    assert intervals(pages, 0.0, 1.0, 10.0).tolist() == [1.0, 1.0, 10.0]
    assert intervals(pages, math.inf, 1.0, 10.0).tolist() == [10.0, 10.0, 10.0]


def test_pages_without_weight_wait_for_the_ceiling_and_are_paid_for():
    k = water_filled(np.array([1.0, 1.0, 0.0, 0.0]), 1.0, max_interval=10.0)
    assert k == pytest.approx(2.0 / (1.0 - 0.2))


def test_a_floor_alone_leaves_bandwidth_unused_and_water_filling_spends_it():
    """P1 6.6: floor of a day, G = 20 % of the pages a day, lognormal rates."""
    rng = np.random.default_rng(6)
    pages = np.sqrt(rng.lognormal(math.log(1 / 30), 2.0, 100_000) * rng.pareto(1.3, 100_000))
    plain = pages.sum() / 20_000
    assert 0.7 < spent(plain, pages, 1.0, math.inf) / 20_000 < 0.97
    assert spent(water_filled(pages, 20_000, 1.0), pages, 1.0, math.inf) == pytest.approx(20_000)


def test_acceptance_numbers_of_section_h():
    rates = 5.0 * np.sqrt(FIVE) / np.sqrt(FIVE).sum()
    assert (1 / intervals(np.sqrt(FIVE), water_filled(np.sqrt(FIVE), 5.0))).tolist() == pytest.approx(rates.tolist())
    assert rates.tolist() == pytest.approx([0.596, 0.844, 1.033, 1.193, 1.334], abs=1e-3)
    assert freshness(FIVE, 1 / rates).mean() == pytest.approx(0.3482, abs=1e-4)
    assert obsolescence(FIVE, 1 / rates).mean() == pytest.approx(1.4053, abs=1e-4)
    assert omega(np.ones(5), FIVE, 5.0) / 5 == pytest.approx(1.4053, abs=1e-4)


def test_sum_of_rates_is_b_with_floors_on_the_pages_of_section_h():
    """lambda = 1..5, B = 5, no interval below .8: the rates at the bound are 1.25 and the others share what is left."""
    weights = np.sqrt(FIVE)
    found = 1.0 / intervals(weights, water_filled(weights, 5.0, 0.8), 0.8)
    assert found.sum() == pytest.approx(5.0, rel=1e-12)
    assert found[-1] == pytest.approx(1.25)
    assert found[:-1].tolist() == pytest.approx((weights[:-1] * 3.75 / weights[:-1].sum()).tolist(), rel=1e-12)


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.001, 10)), min_size=1, max_size=30), st.floats(0.1, 100))
def test_omega_is_what_the_intervals_give_and_nothing_gives_less(pages, reads):
    importance, rate = np.array(pages).T
    weight_of = np.sqrt(importance * rate)
    best = (importance * obsolescence(rate, intervals(weight_of, water_filled(weight_of, reads)))).sum()
    assert best == pytest.approx(omega(importance, rate, reads), rel=1e-9)
    for other in (np.ones_like(rate), rate, importance):
        assert (importance * obsolescence(rate, other.sum() / (reads * other))).sum() >= best * (1 - 1e-9)


def test_freshness_and_obsolescence_are_what_a_poisson_page_shows():
    """Copies read every t days, looked at uniformly in time: changes since the last read are Poisson(lambda age)."""
    rng = np.random.default_rng(7)
    for rate, interval in ((0.1, 3.0), (1.0, 1.0), (2.0, 2.5)):
        missed = rng.poisson(rate * rng.uniform(0.0, interval, 200_000))
        assert float(freshness(rate, interval)) == pytest.approx((missed == 0).mean(), abs=0.005)
        assert obsolescence(rate, interval) == pytest.approx(missed.mean(), rel=0.02)
    assert freshness(np.array([0.0, 1e-12, 1e9]), np.array([5.0, 1.0, 1.0])).tolist() == pytest.approx([1.0, 1.0, 1e-9])
