"""Claims as weighted evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.evidence import SLOWEST, bounded, claimed_outcome, outcome, sooner, weigh_age, weigh_rate
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums


def test_probabilities_of_an_outcome_are_the_mixture_over_the_belief():
    belief = PageBelief(RateSums(3.0, 2.0, 1.0), START)
    expected = sum(
        share * math.exp(-(2.0 ** (-12 + half / 2)) * 2.0) for half, share in enumerate(belief.shares().tolist())
    )
    assert outcome(belief, 2.0, False) == pytest.approx(expected)
    assert outcome(belief, 2.0, True) + outcome(belief, 2.0, False) == pytest.approx(1.0)
    drawn = np.random.default_rng(2).exponential(3.0, 400_000)
    assert claimed_outcome(3.0, 0.5, False) == pytest.approx(float(np.exp(-drawn * 0.5).mean()), abs=2e-3)
    assert claimed_outcome(1.0, 1.0, True) == pytest.approx(0.5)


@given(st.builds(RateSums, st.floats(0.5, 100.0), st.floats(0.5, 10.0), st.floats(0.01, 10.0)), st.floats(0.1, 1.0))
def test_a_claimed_rate_draws_the_rate_towards_it(sums, trust):
    before = PageBelief(sums, START).rate()
    assert PageBelief(weigh_rate(sums, 1e9, trust), START).rate() > before
    assert weigh_rate(sums, 1.0, trust).changes == sums.changes + trust
    quiet = RateSums(0.0, sums.changes, sums.change_days)
    assert PageBelief(weigh_rate(quiet, SLOWEST, trust), START).rate() < PageBelief(quiet, START).rate()


def test_a_claim_without_trust_says_nothing_and_with_trust_counts_as_an_event():
    sums = RateSums(1.0, 2.0, 3.0)
    assert weigh_rate(sums, 5.0, 0.0) == weigh_age(sums, 5.0, 0.0) == sums
    assert weigh_age(sums, 5.0, 1.0) == (6.0, 3.0, 3.000001)
    assert weigh_rate(sums, 0.2, 1.0) == weigh_age(sums, 5.0, 1.0)
    assert weigh_rate(sums, 1e9, 1.0).quiet_days == 1.0 + 1 / bounded(1e9)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1))
def test_a_claim_draws_a_read_nearer_but_never_into_the_past_nor_away(due, now, trust):
    moved = sooner(due, now, trust)
    assert moved <= due
    assert moved >= min(due, now) - 1e-6
