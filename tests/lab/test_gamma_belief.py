"""The rules of the Gamma estimator: acceptance numbers, bounds, the exact posterior, the vectorised twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.refresh.estimators import mle_last_modified
from xyro.lab.refresh.gamma_belief import (
    DEFAULT_PRIOR,
    Evidence,
    Prior,
    first_read,
    learn,
    rate,
    update,
    update_many,
)
from xyro.refresh.rate_sums import DAY

FOREVER = math.inf
beliefs = st.tuples(st.floats(1e-3, 1e6), st.floats(1e-6, 1e9))
exposures = st.floats(1e-4, 1e6)


@pytest.mark.parametrize(
    ("a", "b", "tau", "changed", "expected"),
    [  # computed apart
        (0.31, 1.2, 1.0, True, (1.2250015271, 1.4823684348)),
        (0.31, 1.2, 1.0, False, (0.31, 2.2)),
        (5.0, 10.0, 0.01, True, (5.9999965035, 10.0049883392)),
        (5.0, 10.0, 100.0, True, (5.0001539524, 10.0002514555)),
    ],
)
def test_acceptance_numbers(a, b, tau, changed, expected):
    assert update(a, b, tau, changed, None, Prior(), FOREVER) == pytest.approx(expected, rel=1e-9)


def test_the_default_prior_is_the_fit_to_its_population():
    fitted = Prior.fit(math.log(0.1), 1.8)
    assert (fitted.a, fitted.b) == pytest.approx((DEFAULT_PRIOR.a, DEFAULT_PRIOR.b), abs=1e-3)


@pytest.mark.parametrize("numbers", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_a_prior_is_positive_and_finite(numbers):
    with pytest.raises(ValueError, match="positive and finite"):
        Prior(*numbers)


def posterior_moments(a: float, b: float, tau: float) -> tuple[float, float]:
    """Mean and mean square of lambda^(a-1) exp(-b lambda) (1 - exp(-lambda tau)), integrated over ln lambda."""
    ln = np.linspace(-60.0, 25.0, 400_001)
    lam = np.exp(ln)
    log_density = a * ln - b * lam + np.log(-np.expm1(-lam * tau))
    density = np.exp(log_density - log_density.max())
    return float((density * lam).sum() / density.sum()), float((density * lam**2).sum() / density.sum())


@pytest.mark.parametrize("a", [0.1, 0.309, 2.0, 40.0])
@pytest.mark.parametrize("tau", [0.01, 0.3, 1.0, 10.0, 1000.0])
def test_a_change_keeps_the_first_two_moments_of_the_posterior(a, tau):
    b = 1.168
    new_a, new_b = update(a, b, tau, True, None, Prior(), FOREVER)
    mean, square = posterior_moments(a, b, tau)
    assert new_a / new_b == pytest.approx(mean, rel=1e-6)
    assert new_a * (new_a + 1) / new_b**2 == pytest.approx(square, rel=1e-6)


@given(beliefs, exposures)
def test_a_change_is_worth_at_most_one_event_and_never_lowers_the_rate(belief, tau):
    a, b = belief
    new_a, new_b = update(a, b, tau, True, None, Prior(), FOREVER)
    assert a * (1 - 1e-6) <= new_a <= (a + 1) * (1 + 1e-6)
    assert 0 < new_b < math.inf
    assert rate(new_a, new_b) >= rate(a, b) * (1 - 1e-6)


@given(beliefs, exposures)
def test_no_change_lowers_the_rate_by_exactly_its_exposure(belief, tau):
    a, b = belief
    assert update(a, b, tau, False, None, Prior(), FOREVER) == (pytest.approx(a), pytest.approx(b + max(tau, 1 / DAY)))


@given(beliefs, exposures, st.floats(0, 1))
def test_a_trusted_age_is_one_event_in_that_age(belief, tau, part):
    a, b = belief
    age = part * max(tau, 1 / DAY)
    assert update(a, b, tau, True, age, Prior(), FOREVER) == pytest.approx((a + 1, b + age), rel=1e-12)


@pytest.mark.parametrize("age", [-0.1, 1.1, math.nan])
def test_an_age_that_contradicts_the_visit_leaves_the_bit(age):
    assert update(1.0, 2.0, 1.0, True, age, Prior()) == update(1.0, 2.0, 1.0, True, None, Prior())


def test_an_age_says_nothing_about_a_visit_without_change():
    assert update(1.0, 2.0, 1.0, False, 0.5, Prior()) == update(1.0, 2.0, 1.0, False, None, Prior())


@pytest.mark.parametrize("tau", [0.0, -5.0, math.nan])
@pytest.mark.parametrize("changed", [True, False])
def test_a_clock_set_back_counts_as_one_second(tau, changed):
    assert update(1.0, 2.0, tau, changed, None, Prior()) == update(1.0, 2.0, 1 / DAY, changed, None, Prior())


def test_where_moments_have_no_digits_left_a_change_is_one_event_in_half_the_interval():
    assert update(1e13, 1e13, 1.0, True, None, Prior(), FOREVER) == (1e13 + 1, 1e13 + 0.5)


@given(beliefs, st.lists(st.tuples(exposures, st.booleans(), st.integers(1, 400)), min_size=1, max_size=4))
def test_forgetting_bounds_what_a_page_can_accumulate(belief, habits):
    prior, memory = Prior(), 50.0
    a, b = min(belief[0], memory), min(belief[1], 1.0)
    for tau, changed, visits in habits:
        for _ in range(visits):
            a, b = update(a, b, tau, changed, None, prior, memory)
            assert 0 < a < prior.a + memory + 1
            assert 0 < b < math.inf
    longest = max(tau for tau, _, _ in habits)
    if not any(changed for _, changed, _ in habits):
        assert b <= prior.b + memory * longest + 1.0


def test_forgetting_draws_towards_the_prior_by_one_part_in_memory():
    prior = Prior(1.0, 2.0)
    a, b = update(11.0, 22.0, 3.0, False, None, prior, memory=10.0)
    assert (a, b) == pytest.approx((10.0, 20.0 + 3.0))


def test_the_first_read_counts_only_with_a_trusted_age():
    prior = Prior()
    assert first_read(prior, None) == (prior.a, prior.b)
    assert first_read(prior, 12.5) == (prior.a + 1, prior.b + 12.5)


def test_the_first_age_of_a_poisson_page_is_a_whole_interval_on_average():
    """The backward recurrence time at a random moment is exponential: with it the first read is unbiased."""
    rng = np.random.default_rng(4)
    rates = np.full(20_000, 0.2)
    ages = np.array([t[-1] for t in np.split(rng.exponential(5.0, 20_000), 20_000)])
    assert mle_last_modified(np.zeros(20_000), np.ones(20_000, bool), ages) == pytest.approx(rates[0], rel=0.02)


def test_learn_folds_update_over_a_history():
    history = [Evidence(1.0, True), Evidence(2.0, False), Evidence(3.0, True, 0.5)]
    a, b = DEFAULT_PRIOR.a, DEFAULT_PRIOR.b
    for tau, changed, age in history:
        a, b = update(a, b, tau, changed, age, DEFAULT_PRIOR)
    assert learn(history) == (a, b)
    assert learn([]) == (DEFAULT_PRIOR.a, DEFAULT_PRIOR.b)


@given(
    st.lists(
        st.tuples(beliefs, st.floats(-1.0, 1e5), st.booleans(), st.one_of(st.just(math.nan), st.floats(-1.0, 1e5))),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([2.0, 50.0, math.inf]),
)
def test_the_vectorised_twin_agrees(rows, memory):
    a, b, tau, age = (
        np.array(column)
        for column in ([r[0][0] for r in rows], [r[0][1] for r in rows], [r[1] for r in rows], [r[3] for r in rows])
    )
    changed = np.array([r[2] for r in rows])
    new_a, new_b = update_many(a, b, tau, changed, age, DEFAULT_PRIOR, memory)
    one_by_one = [update(r[0][0], r[0][1], r[1], r[2], r[3], DEFAULT_PRIOR, memory) for r in rows]
    np.testing.assert_allclose(new_a, [pair[0] for pair in one_by_one], rtol=1e-6)
    np.testing.assert_allclose(new_b, [pair[1] for pair in one_by_one], rtol=1e-6)
