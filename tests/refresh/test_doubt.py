"""The gain of a read where the rate is in doubt: against integration, against the known rate, and where it repairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.refresh.compared_policies import Compared
from xyro.refresh.doubt import expected_gain, wait
from xyro.refresh.inverse import lost_freshness
from xyro.refresh.policy import Policy, Rules
from xyro.refresh.rate_belief import RATES, START, PageBelief
from xyro.refresh.rate_sums import RateSums

SUMS = st.builds(RateSums, st.floats(1e-3, 1e3), st.floats(0.0, 100.0), st.floats(1e-3, 1e3))
beliefs = SUMS.map(lambda sums: PageBelief(sums, START))
rates = st.floats(1e-3, 50.0)
ages = st.floats(1e-3, 1e4)
IN_DOUBT = PageBelief(RateSums(0.01, 1.0, 0.1), START)
SURE = PageBelief(RateSums(10.0, 80.0, 10.0), START)
"""of pages that seem to change 5 and 15 times a day"""


def known(rate: float, age: float) -> float:
    """V(lambda t) / lambda"""
    return float(lost_freshness(np.array(rate * age))) / rate


def summed(belief: PageBelief, age: float) -> float:
    """Its mean over the belief, node by node."""
    shares = belief.shares().tolist()
    return sum(share * known(2.0 ** (-12 + half / 2), age) for half, share in enumerate(shares))


@given(beliefs, ages)
def test_it_is_the_mean_over_the_belief(belief, age):
    assert float(expected_gain(belief.shares(), age)) == pytest.approx(summed(belief, age), rel=1e-9, abs=1e-30)


@given(st.integers(0, 50), st.floats(0.01, 10.0))
def test_a_belief_that_is_sure_is_a_known_rate(node, part):
    sure, age = np.zeros(51), part / RATES[node]
    sure[node] = 1.0
    assert float(expected_gain(sure, age)) == pytest.approx(known(float(RATES[node]), float(age)), rel=1e-9)


@given(beliefs, ages, st.floats(1.0, 10.0))
def test_it_grows_with_age_up_to_its_bound(belief, age, more):
    shares = belief.shares()
    sooner, later = expected_gain(np.stack([shares, shares]), np.array([age, age * more])).tolist()
    assert 0.0 <= sooner <= later * (1.0 + 1e-9)
    assert sooner <= 0.5 * float(shares @ RATES) * age * age * (1.0 + 1e-9)
    assert later <= float(shares @ (1.0 / RATES)) * (1.0 + 1e-9)


@given(beliefs, st.floats(1e-3, 1e3))
def test_the_wait_is_where_the_gain_reaches_the_goal(belief, goal):
    shares = belief.shares()
    days = wait(shares, goal, 1e6)
    if days < math.inf:
        assert float(expected_gain(shares, days)) == pytest.approx(goal, rel=1e-4)
    else:
        assert float(expected_gain(shares, 1e6)) < goal * (1.0 + 1e-9)


def test_little_evidence_is_never_the_last_word_and_much_is():
    assert wait(IN_DOUBT.shares(), 1.0, 1e9) < math.inf
    assert wait(SURE.shares(), 1.0, 1e9) == math.inf


FRESH = Rules(Policy("freshness"), ceiling=3650.0)


def test_a_page_given_up_in_doubt_is_read_before_the_ceiling():
    assert FRESH.one_interval(1.0, 5.0, 1.0) == (3650.0, "ceiling")
    assert FRESH.one_interval(1.0, 5.0, 1.0, SURE) == (3650.0, "ceiling")
    days, term = FRESH.one_interval(1.0, 5.0, 1.0, IN_DOUBT)
    assert term == "policy"
    assert days < 500.0
    assert float(expected_gain(IN_DOUBT.shares(), days)) == pytest.approx(1.0, rel=1e-4)


def test_doubt_changes_nothing_where_the_policy_gives_nothing_up():
    for rules in (FRESH, Rules(), Rules(Policy("mixed", 0.3, 1.0)), Rules(Compared("azar"), ceiling=365.0)):
        for rate, mu in ((0.05, 1.0), (5.0, 1e-3)):
            assert rules.one_interval(1.0, rate, mu, IN_DOUBT) == rules.one_interval(1.0, rate, mu)
    assert FRESH.one_interval(0.0, 5.0, 1.0, IN_DOUBT) == (3650.0, "ceiling")
    assert FRESH.one_interval(1.0, 0.0, 1.0, IN_DOUBT) == (3650.0, "ceiling")


def test_a_page_that_always_changed_is_hopeless_only_if_the_slowest_rate_that_explains_it_is():
    """Ten of ten reads, an hour apart, showed a change: it may change 60 times a day, or 600."""
    rules = Rules(floor=1 / 24, hopeless=0.2, hopeless_days=30.0)
    always, quiet = RateSums(0.0, 10.0, 10 / 24), RateSums(1 / 24, 100.0, 100 / 24)
    assert always.hopeless_rate < rules.hopeless_rate < PageBelief(always, START).rate()
    assert rules.one_interval(1.0, PageBelief(always, START).rate(), 1e-6, PageBelief(always, START))[1] == "floor"
    rate = PageBelief(quiet, START).rate()
    expected = "hopeless" if rate >= rules.hopeless_rate else "floor"
    assert rules.one_interval(1.0, rate, 1e-6, PageBelief(quiet, START))[1] == expected
    often = PageBelief(RateSums(0.0, 99.0, 99 / 24), START)
    assert rules.one_interval(1.0, often.rate(), 1e-6, often) == (30.0, "hopeless")


@given(st.floats(0.01, 100.0), rates, ages, beliefs)
def test_the_index_in_doubt_is_importance_times_the_gain(importance, rate, age, belief):
    many = [np.array([value]) for value in (importance, rate, age)]
    shares = belief.shares()[None, :]
    found = Policy("freshness").index_in_doubt(*many, shares)
    assert found == pytest.approx(importance * expected_gain(shares, many[2]))
    assert Policy().index_in_doubt(*many, shares) == pytest.approx(Policy().index(*many))


def test_a_page_in_doubt_is_looked_at_again_without_a_ceiling_too():
    """One change in one read: the belief is still a guess."""
    unbounded = Rules(Policy("freshness"))
    days, term = unbounded.one_interval(1.0, 5.0, 1.0, IN_DOUBT)
    assert term == "policy"
    assert float(expected_gain(IN_DOUBT.shares(), days)) == pytest.approx(1.0, rel=1e-4)
    assert unbounded.one_interval(1.0, 5.0, 1.0) == (math.inf, "policy")  # of a known rate
    assert unbounded.one_interval(1.0, 5.0, 1.0, SURE) == (math.inf, "policy")  # and of one as good as known
