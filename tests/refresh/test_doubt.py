"""The gain of a read where the rate is in doubt: against integration, against the known rate, and where it repairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.refresh.compared_policies import Compared
from xyro.refresh.doubt import SURE, expected_gain, wait
from xyro.refresh.inverse import lost_freshness
from xyro.refresh.policy import Policy, Rules

shapes = st.floats(0.05, 200.0)
rates = st.floats(1e-4, 50.0)
ages = st.floats(1e-3, 1e4)


def integrated(shape: float, rate: float, age: float) -> float:
    """Mean of V(lambda t) / lambda over the belief, by the trapezoid rule in ln lambda."""
    scale = shape / rate
    ln = np.linspace(math.log(rate) - 60.0 / min(shape, 1.0) ** 0.5, math.log(rate) + 8.0, 400_001)
    lam = np.exp(ln)
    density = shape * ln - scale * lam
    weight = np.exp(density - density.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(lam > 0.0, lost_freshness(lam * age) / lam, 0.0)
    return float((weight * gain).sum() / weight.sum())


@pytest.mark.parametrize("shape", [0.3, 1.0, 1.5, 4.0, 60.0])
@pytest.mark.parametrize("age", [0.01, 1.0, 30.0, 3000.0])
def test_it_is_the_mean_over_the_belief(shape, age):
    for rate in (0.01, 2.0):
        found = float(expected_gain(np.array(shape), np.array(rate), np.array(age)))
        assert found == pytest.approx(integrated(shape, rate, age), rel=1e-4)


@given(rates, ages)
def test_a_belief_that_is_sure_is_a_known_rate(rate, age):
    known = float(lost_freshness(np.array(rate * age))) / rate
    sure = float(expected_gain(np.array(1e8), np.array(rate), np.array(age)))
    assert sure == pytest.approx(known, rel=1e-4)


@given(shapes, rates, ages, st.floats(1.0, 10.0))
def test_it_grows_with_age_up_to_its_bound(shape, rate, age, more):
    sooner, later = expected_gain(np.full(2, shape), np.full(2, rate), np.array([age, age * more]))
    assert 0.0 <= sooner <= later * (1.0 + 1e-9)
    assert sooner <= 0.5 * rate * age * age * (1.0 + 1e-9)
    if shape > 1.0:
        assert later <= shape / rate / (shape - 1.0) * (1.0 + 1e-6)


@given(shapes, rates)
def test_the_series_meets_the_closed_form(shape, rate):
    edge = 1e-3 / (shape + 2.0) * shape / rate
    before, after = expected_gain(np.full(2, shape), np.full(2, rate), edge * np.array([1 - 1e-6, 1 + 1e-6]))
    assert before == pytest.approx(after, rel=1e-5)


@given(shapes, rates, st.floats(1e-3, 1e3))
def test_the_wait_is_where_the_gain_reaches_the_goal(shape, rate, goal):
    days = wait(shape, rate, goal, 1e6)
    if days < math.inf:
        assert float(expected_gain(np.array(shape), np.array(rate), np.array(days))) == pytest.approx(goal, rel=1e-4)
    else:
        assert float(expected_gain(np.array(shape), np.array(rate), np.array(1e6))) < goal * (1.0 + 1e-9)


def test_little_evidence_is_never_the_last_word_and_much_is():
    assert wait(0.9, 10.0, 5.0, 1e9) < math.inf
    assert wait(1.0, 10.0, 2.0, 1e9) < math.inf
    assert wait(40.0, 10.0, 5.0, 1e9) == math.inf
    assert wait(SURE, 0.01, 1.0, 1e9) == math.inf  # known: the policy itself says when


FRESH = Rules(Policy("freshness"), ceiling=365.0)


def test_a_page_given_up_in_doubt_is_read_before_the_ceiling():
    assert FRESH.one_interval(1.0, 5.0, 1.0) == (365.0, "ceiling")
    assert FRESH.one_interval(1.0, 5.0, 1.0, shape=50.0) == (365.0, "ceiling")
    days, term = FRESH.one_interval(1.0, 5.0, 1.0, shape=0.7)
    assert term == "policy"
    assert days < 60.0
    assert float(expected_gain(np.array(0.7), np.array(5.0), np.array(days))) == pytest.approx(1.0, rel=1e-4)


def test_doubt_changes_nothing_where_the_policy_gives_nothing_up():
    for rules in (FRESH, Rules(), Rules(Policy("mixed", 0.3, 1.0)), Rules(Compared("azar"), ceiling=365.0)):
        for rate, mu in ((0.05, 1.0), (5.0, 1e-3)):
            assert rules.one_interval(1.0, rate, mu, shape=0.7) == rules.one_interval(1.0, rate, mu)
    assert FRESH.one_interval(0.0, 5.0, 1.0, shape=0.7) == (365.0, "ceiling")
    assert FRESH.one_interval(1.0, 0.0, 1.0, shape=0.7) == (365.0, "ceiling")


@given(st.floats(0.01, 100.0), rates, ages, shapes)
def test_the_index_in_doubt_is_importance_times_the_gain(importance, rate, age, shape):
    many = [np.array([value]) for value in (importance, rate, age, shape)]
    found = Policy("freshness").index_in_doubt(*many)
    assert found == pytest.approx(importance * expected_gain(many[3], many[1], many[2]))
    assert Policy().index_in_doubt(*many) == pytest.approx(Policy().index(*many[:3]))
    assert Policy("freshness").index_in_doubt(many[0], np.zeros(1), many[2], many[3]) == 0.0


def test_a_page_in_doubt_is_looked_at_again_without_a_ceiling_too():
    """Three changes in three reads of a day each, then nothing was asked any more: the belief is still a guess."""
    unbounded = Rules(Policy("freshness"))
    days, term = unbounded.one_interval(1.0, 5.0, 1.0, shape=0.7)
    assert term == "policy"
    assert expected_gain(np.array(0.7), np.array(5.0), np.array(days)) == pytest.approx(1.0, rel=1e-4)
    assert unbounded.one_interval(1.0, 5.0, 1.0) == (math.inf, "policy")  # of a known rate
    assert unbounded.one_interval(1.0, 5.0, 1.0, shape=50.0) == (math.inf, "policy")  # and of one as good as known
