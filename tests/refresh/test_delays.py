"""Delays: quantiles of histograms that add up, and of changes whose time is not known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.delays import BINS, ENOUGH, WHOLE, Delays, Recent, missed_for, summary
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import INSTANT, RateSums

Seconds = st.floats(0, 1e12)


def made(values):
    delays = Delays()
    for value in values:
        delays.add(value)
    return delays


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_quantiles_are_right_to_a_bin(share):
    values = np.exp(np.random.default_rng(1).normal(10, 2, 20_000))
    assert made(values.tolist()).quantile(share) == pytest.approx(float(np.quantile(values, share)), rel=0.06)


def test_no_delay_has_no_quantile():
    assert Delays().quantile(0.5) is None
    assert summary(Delays()) == {"count": 0, "median_s": None, "p90_s": None}


@given(st.lists(Seconds, max_size=40), st.lists(Seconds, max_size=40))
def test_histograms_add_up_exactly(some, others):
    whole, part = made(some + others), made(some)
    part.merge(made(others))
    assert part.counts == whole.counts and part.total == WHOLE * len(some + others)


@given(st.lists(Seconds, min_size=1, max_size=40))
def test_whatever_comes_is_counted_in_a_bin_and_quantiles_rise(values):
    delays = made(values)
    assert all(0 <= place < BINS for place in delays.counts)
    assert delays.quantile(0.1) <= delays.quantile(0.5) <= delays.quantile(0.9) <= delays.quantile(1.0)


def known(rate: float) -> RateSums:
    """Visits enough to know that a page changes so many times a day."""
    return RateSums(4000.0 / rate, 4000.0, 4000.0 * INSTANT)


@pytest.mark.parametrize(
    "sums", [RateSums(), RateSums(3.0, 2.0, 1.0), RateSums(0.05, 9.0, 4.0), *(known(r) for r in (0.02, 0.3, 1.0, 5.0))]
)
def test_unknown_delays_are_those_of_pages_as_believed(sums):
    """Pages read every 1 to 5 days; those found changed had been out of date since their first change."""
    rng, delays, true = np.random.default_rng(2), Recent(), []
    belief = PageBelief(sums, START)
    taus = rng.uniform(86_400, 5 * 86_400, 4000).tolist()
    rates = 2.0 ** (rng.choice(51, 4000, p=belief.shares()) / 2 - 12)
    for tau, rate in zip(taus, rates.tolist(), strict=True):
        first = rng.exponential(86_400 / rate)
        if first < tau:
            true.append(tau - first)
            delays.between(tau, belief)
    for share in (0.2, 0.5, 0.9):
        assert delays.all.quantile(share) == pytest.approx(float(np.quantile(true, share)), rel=0.2)


@given(st.floats(0, 1e9), st.builds(RateSums, st.floats(0, 1e4), st.floats(1, 100), st.floats(1e-3, 1e3)))
def test_no_page_is_out_of_date_for_longer_than_since_its_last_read(tau, sums):
    delays = missed_for(tau, PageBelief(sums, START))
    assert len(delays) == WHOLE
    assert all(-1e-6 * tau <= delay <= tau for delay in delays)
    assert delays == sorted(delays, reverse=True)


def test_a_known_delay_weighs_as_much_as_one_that_is_spread():
    delays = Recent()
    delays.certain(100.0)
    delays.between(1000.0, PageBelief(RateSums(), START))
    assert delays.all.total == 2 * WHOLE and summary(delays.all)["count"] == 2


def test_old_delays_are_forgotten_and_the_state_stays_small():
    delays = Recent()
    for _ in range(ENOUGH + 10):
        delays.certain(1e6)
    for _ in range(2 * ENOUGH):
        delays.certain(10.0)
    said = summary(delays.all)
    assert ENOUGH <= said["count"] <= 2 * ENOUGH and said["p90_s"] < 20.0
    state = delays.dump()
    assert Recent.load(state).dump() == state and Recent.load(state).all.counts == delays.all.counts


@given(st.lists(Seconds, max_size=20))
def test_state_goes_on_where_it_was(values):
    delays = Recent()
    for value in values:
        delays.certain(value)
    assert Recent.load(delays.dump()).all.counts == made(values).counts
