"""Claims as weighted evidence, and the batch estimators over a page's kept history."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.change import DEFAULT_PRIOR, mle, mle_last_modified, update
from xyro.refresh.evidence import (
    VISITS,
    by_bits,
    by_dates,
    claimed_outcome,
    estimate,
    heard,
    outcome,
    quiet,
    remember,
    sooner,
    weigh_age,
    weigh_rate,
)

visits = st.lists(st.tuples(st.floats(0.01, 100.0), st.booleans(), st.floats(0.0, 1.0)), min_size=2, max_size=64)


def history(found, ages: bool) -> bytes:
    kept = b""
    for tau, changed, part in found:
        kept = remember(kept, tau, changed, part * tau if changed else None, ages)
    return kept


def test_probabilities_of_an_outcome_are_the_mixture_over_the_belief():
    lam = np.random.default_rng(2).gamma(0.7, 1 / 3.0, 400_000)
    assert quiet(0.7, 3.0, 2.0) == pytest.approx(float(np.exp(-lam * 2.0).mean()), abs=2e-3)
    assert outcome(0.7, 3.0, 2.0, True) + outcome(0.7, 3.0, 2.0, False) == pytest.approx(1.0)
    assert claimed_outcome(1.0, 1.0, True) == pytest.approx(0.5)


@given(st.floats(0.01, 10.0), st.floats(0.01, 100.0), st.floats(1e-6, 1e9), st.floats(0.0, 1.0))
def test_a_claimed_rate_draws_the_rate_towards_it_and_never_past_it(a, b, said, trust):
    before = a / b
    new_a, new_b = weigh_rate(a, b, said, trust)
    low, high = sorted((before, heard(said)))
    assert low * (1 - 1e-9) <= new_a / new_b <= high * (1 + 1e-9)
    assert new_a == a + trust


def test_a_claim_without_trust_says_nothing_and_with_trust_counts_as_an_event():
    assert weigh_rate(1.0, 2.0, 5.0, 0.0) == weigh_age(1.0, 2.0, 5.0, 0.0) == (1.0, 2.0)
    assert weigh_age(1.0, 2.0, 5.0, 1.0) == (2.0, 7.0)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1))
def test_a_claim_draws_a_read_nearer_but_never_into_the_past_nor_away(due, now, trust):
    moved = sooner(due, now, trust)
    assert moved <= due
    assert moved >= min(due, now) - 1e-6


@given(visits)
def test_kept_histories_give_the_batch_estimates(found):
    tau = np.array([one[0] for one in found], np.float32).astype(np.float64)
    changed = np.array([one[1] for one in found])
    a, b = by_bits(history(found, False), False)
    assert a == max(changed.sum(), 0.5)
    if changed.any() and not changed.all():
        assert a / b == pytest.approx(float(mle(tau, changed)), rel=1e-5)
        ages = np.array([one[2] * one[0] for one in found], np.float32).astype(np.float64)
        dated = by_dates(history(found, True))
        assert dated[0] / dated[1] == pytest.approx(float(mle_last_modified(tau, changed, ages)), rel=1e-3)
    else:
        assert 0.0 < a / b < math.inf


def test_acceptance_numbers_of_both_estimators():
    """algorithms.md H."""
    found = [(1.0, True, 0.0), (0.5, True, 0.0), (1.0, True, 0.0), (2.0, False, 0.0), (4.0, False, 0.0)]
    a, b = by_bits(history(found, False), False)
    assert a / b == pytest.approx(0.41830641, abs=1e-7)
    a, b = by_dates(history([(1.0, True, 0.2), (1.0, True, 0.1), (1.0, True, 0.6), (6.0, False, 0.0)], True))
    assert a / b == pytest.approx(3 / 6.9, rel=1e-6)


def test_where_the_likelihood_has_no_maximum_half_a_visit_decides():
    a, b = by_bits(history([(2.0, False, 0.0)] * 5, False), False)
    assert a / b == pytest.approx(0.05)
    a, b = by_bits(history([(2.0, True, 0.0)] * 5, False), False)
    assert a / b == pytest.approx(math.log(11) / 2.0, rel=1e-6)  # (5 x 2) / expm1(2 x) = 1


def test_changes_without_an_age_count_at_their_expected_moment():
    """Dates of which none is trusted say no more than the bits: the estimate hardly differs from theirs."""
    rng = np.random.default_rng(3)
    kept_bits, kept_dates = b"", b""
    for tau in rng.exponential(2.0, 64):
        changed = bool(rng.random() < -math.expm1(-0.4 * tau))
        kept_bits = remember(kept_bits, tau, changed, None, False)
        kept_dates = remember(kept_dates, tau, changed, None, True)
    bits, dates = by_bits(kept_bits, False), by_dates(kept_dates)
    assert dates[0] / dates[1] == pytest.approx(bits[0] / bits[1], rel=1e-3)


@given(visits, st.booleans())
def test_a_history_is_bounded_and_keeps_the_last_visits(found, ages):
    kept = history(found * 3, ages)
    size = 8 if ages else 4
    assert len(kept) == size * min(VISITS, 3 * len(found))
    assert kept == history((found * 3)[-VISITS:], ages)


@pytest.mark.parametrize("kind", ["gamma", "mle", "last-modified"])
def test_the_estimator_is_chosen_by_name(kind):
    found = [(1.0, True, 0.5), (2.0, False, 0.0), (3.0, False, 0.0)]
    belief = update(DEFAULT_PRIOR.a, DEFAULT_PRIOR.b, 1.0, True, None, DEFAULT_PRIOR)
    kept = history(found, kind == "last-modified")
    wanted = {"gamma": belief, "mle": by_bits(history(found, False), False), "last-modified": (1.0, 5.5)}[kind]
    assert estimate(kind, kept, belief, DEFAULT_PRIOR) == pytest.approx(wanted)
    assert estimate(kind, b"", belief, DEFAULT_PRIOR) == belief
    assert estimate(kind, b"", (0.0, 0.0), DEFAULT_PRIOR) == (DEFAULT_PRIOR.a, DEFAULT_PRIOR.b)
