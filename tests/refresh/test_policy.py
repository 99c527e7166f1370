"""Policies: numbers computed apart from them, and what must hold of any of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.refresh.compared_policies import NAMES, Compared, policy_of
from xyro.refresh.inverse import lost_freshness
from xyro.refresh.policy import Policy, Rules, freshness, multiplier, omega, spent, water_level

FIVE = np.arange(1.0, 6.0)
MIXES = [(0.3, 1.0), (0.01, 1.0), (1.0, 0.5), (1e-4, 1.0)]
POLICIES = [policy_of(name) for name in NAMES if name != "mixed"] + [Policy("mixed", *parts) for parts in MIXES]


@pytest.mark.parametrize(
    ("policy", "rates", "fresh", "missed"),
    [
        (Policy("freshness"), (1.15, 1.358, 1.354, 1.138, 0.0), 0.3739, math.inf),
        (Policy(), (0.596, 0.844, 1.033, 1.193, 1.334), 0.3482, 1.4053),
        (Compared("azar"), (1.386, 1.374, 1.133, 0.772, 0.335), None, None),
        (Compared("kolobov"), (0.783, 0.947, 1.037, 1.096, 1.137), None, None),
        (Policy("mixed", 0.3, 1.0), (0.723, 0.906, 1.027, 1.127, 1.217), 0.3563, 1.4169),
    ],
)
def test_acceptance_numbers_of_section_h(policy, rates, fresh, missed):
    one = np.ones(5)
    intervals = policy.interval(one, FIVE, multiplier(one, FIVE, 5.0, Rules(policy)))
    assert 1 / intervals == pytest.approx(rates, abs=1e-3)
    if fresh is not None:
        read = np.isfinite(intervals)
        assert freshness(FIVE[read], intervals[read]).sum() / 5 == pytest.approx(fresh, abs=1e-4)
        assert (0.5 * FIVE * intervals).mean() == pytest.approx(missed, abs=1e-3)


@given(st.floats(1e-12, 700.0))
def test_v_to_its_last_digits(x):
    terms = [(-1) ** k * (k - 1) * math.exp(k * math.log(x) - math.lgamma(k + 1)) for k in range(2, 40)]
    exact = math.fsum(terms) if x < 3 else 1 - (1 + x) * math.exp(-x)
    assert float(lost_freshness(np.array(x))) == pytest.approx(exact, rel=1e-10)
    assert float(lost_freshness(np.array(x, np.float32))) == pytest.approx(exact, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_at_its_interval_every_page_has_the_index_of_the_multiplier(policy):
    rng = np.random.default_rng(1)
    r, lam = rng.lognormal(0, 2, 4000), rng.lognormal(-3, 3, 4000)
    for mu in (1e-9, 1e-3, 0.2, 3.0, 1e6):
        t = policy.interval(r, lam, mu)
        read = np.isfinite(t)
        assert policy.index(r[read], lam[read], t[read]) == pytest.approx(np.full(read.sum(), mu), rel=1e-8)
        if (~read).any():  # given up: however long it waits, its index stays below
            assert (policy.index(r[~read], lam[~read], np.full((~read).sum(), 1e9)) <= mu).all()


@settings(deadline=None)
@given(
    st.sampled_from(POLICIES),
    st.just(0.0) | st.floats(1e-9, 1e4),
    st.just(0.0) | st.floats(1e-9, 1e5),
    st.floats(1e-9, 1e9),
)
def test_one_page_and_many_agree(policy, r, lam, mu):
    (many,) = policy.interval(np.array([r]), np.array([lam]), mu)
    one = policy.one_interval(r, lam, mu)
    assert one == many or one == pytest.approx(many, rel=1e-9)


@pytest.mark.parametrize(
    "policy",
    [pytest.param(each, marks=pytest.mark.long) if "whittle" in str(each) else each for each in POLICIES],  # 12 s each
    ids=str,
)
@pytest.mark.parametrize(
    "bounds", [{}, {"floor": 0.5}, {"floor": 1.0, "ceiling": 200.0, "hopeless": 0.2}, {"floor": 0.1, "least": 0.5}]
)
def test_water_filling_spends_the_bandwidth_exactly(policy, bounds):
    rng = np.random.default_rng(2)
    pages = 500 if "whittle" in str(policy) else 3000
    r, lam = rng.pareto(1.2, pages) + 0.1, rng.lognormal(math.log(1 / 30), 2, pages)
    rules = Rules(policy, **bounds)
    for reads in (0.05 * pages, 0.2 * pages, 0.5 * pages):
        mu = multiplier(r, lam, reads, rules)
        if 0.0 < mu < math.inf:
            assert spent(rules.intervals(r, lam, mu)) == pytest.approx(reads, rel=1e-9)
        else:  # the bounds leave no choice
            total = spent(rules.intervals(r, lam, mu))
            assert total <= reads * (1 + 1e-9) if mu == 0.0 else total >= reads * (1 - 1e-9)


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.001, 10)), min_size=1, max_size=20), st.floats(0.1, 100))
def test_p1_gives_omega_exactly(pages, reads):
    r, lam = np.array(pages).T
    t = Policy().interval(r, lam, multiplier(r, lam, reads, Rules()))
    assert (0.5 * r * lam * t).sum() == pytest.approx(omega(r, lam, reads), rel=1e-9)


@pytest.mark.parametrize(
    ("share", "best", "lost"),
    [
        (0.05, 0.8135, {"uniform": 21.9, "proportional": 74.1, "obsolescence": 6.7, "azar": 0.5, "kolobov": 1.9}),
        (0.20, 0.9183, {"uniform": 11.2, "proportional": 35.9, "obsolescence": 1.0, "azar": 0.2, "kolobov": 0.3}),
        (0.50, 0.9598, {"uniform": 6.8, "proportional": 16.9, "obsolescence": 0.2, "azar": 0.1, "kolobov": 0.0}),
    ],
)
def test_shares_of_the_optimum_as_design_asks_and_near_section_f(share, best, lost):
    """Section F's population but for its importance, which is that of a graph: here Pareto of about the same spread."""
    rng = np.random.default_rng(3)
    n = 20_000
    lam = rng.lognormal(math.log(1 / 30), 2, n)
    r = np.repeat(1.0, n)
    r[:] = (np.arange(1, n + 1) ** -0.9)[rng.permutation(n)]
    r /= r.mean()

    def reached(policy):
        t = policy.interval(r, lam, multiplier(r, lam, share * n, Rules(policy)))
        read = np.isfinite(t)
        return float((r[read] * freshness(lam[read], t[read])).sum() / r.sum())

    optimum = reached(Policy("freshness"))
    assert optimum == pytest.approx(best, abs=0.08)
    for name, percent in lost.items():
        assert 100 * (1 - reached(policy_of(name)) / optimum) == pytest.approx(percent, abs=0.35 * percent + 1.2)
    floor = 0.97 if share >= 0.2 else 0.93
    assert reached(Policy()) >= floor * optimum
    assert reached(Policy("mixed", 0.3, 1.0)) >= (0.97 if share >= 0.2 else 0.96) * optimum
    assert reached(Policy("mixed", 0.1, 1.0)) >= 0.97 * optimum


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_is_not_worth_it_or_never_changes_is_never_due(policy):
    t = policy.interval(np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), 1.0)
    if policy.name == "uniform":
        assert (t == 1.0).all()
    else:
        assert np.isinf(t[1:]).all() and (np.isinf(t[0]) or policy.name == "proportional")


def test_hopeless_pages_are_read_at_their_own_slow_rate_and_said_to_be():
    rules = Rules(Policy(), floor=0.01, hopeless=0.1, hopeless_days=7.0)
    limit = rules.hopeless_rate
    assert float(freshness(np.array(limit), np.array(0.01))) == pytest.approx(0.1, rel=1e-9)
    assert rules.one_interval(1.0, limit * 1.01, 1e-9) == (7.0, "hopeless")
    assert rules.one_interval(1.0, limit * 0.99, 1e-9) == (0.01, "floor")
    many = rules.intervals(np.ones(2), np.array([limit * 1.01, limit * 0.99]), 1e-9)
    assert many.tolist() == [7.0, 0.01]


def test_which_term_set_the_interval():
    rules = Rules(Policy(), floor=1.0, ceiling=10.0, least=0.5)
    assert rules.one_interval(0.4, 1.0, 1.0) == (math.inf, "importance")
    assert rules.one_interval(1.0, 100.0, 1.0) == (1.0, "floor")
    assert rules.one_interval(1.0, 1e-6, 1.0) == (10.0, "ceiling")
    days, term = rules.one_interval(1.0, 0.5, 1.0)
    assert term == "policy" and days == pytest.approx(2.0)


def test_levels_that_the_bounds_do_not_allow():
    assert water_level(1.0, lambda mu: 2.0) == math.inf
    assert water_level(3.0, lambda mu: 2.0 if mu < 1 else 1.0) == 0.0


@pytest.mark.parametrize("bad", [{"name": "fresh"}, {"alpha": -1.0}, {"alpha": 0.0, "beta": 0.0}, {"beta": math.inf}])
def test_a_policy_that_is_none(bad):
    with pytest.raises(ValueError, match="policy"):
        Policy(**bad)


def test_bounds_that_are_none():
    with pytest.raises(ValueError, match="Rules"):
        Rules(floor=2.0, ceiling=1.0)
