"""Claims as weighted evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.evidence import bounded, claimed_outcome, outcome, quiet, sooner, weigh_age, weigh_rate


def test_probabilities_of_an_outcome_are_the_mixture_over_the_belief():
    lam = np.random.default_rng(2).gamma(0.7, 1 / 3.0, 400_000)
    assert quiet(0.7, 3.0, 2.0) == pytest.approx(float(np.exp(-lam * 2.0).mean()), abs=2e-3)
    assert outcome(0.7, 3.0, 2.0, True) + outcome(0.7, 3.0, 2.0, False) == pytest.approx(1.0)
    assert claimed_outcome(1.0, 1.0, True) == pytest.approx(0.5)


@given(st.floats(0.01, 10.0), st.floats(0.01, 100.0), st.floats(1e-6, 1e9), st.floats(0.0, 1.0))
def test_a_claimed_rate_draws_the_rate_towards_it_and_never_past_it(a, b, said, trust):
    before = a / b
    new_a, new_b = weigh_rate(a, b, said, trust)
    low, high = sorted((before, bounded(said)))
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
