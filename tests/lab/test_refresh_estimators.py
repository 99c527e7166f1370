"""Batch estimators over a page's whole history, which the crawler does without."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.refresh.estimators import VISITS, by_bits, by_dates, estimate, mle, mle_last_modified, remember
from xyro.lab.refresh.gamma_belief import DEFAULT_PRIOR, update

visits = st.lists(st.tuples(st.floats(0.01, 100.0), st.booleans(), st.floats(0.0, 1.0)), min_size=2, max_size=64)


def history(found, ages: bool) -> bytes:
    kept = b""
    for tau, changed, part in found:
        kept = remember(kept, tau, changed, part * tau if changed else None, ages)
    return kept


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
    """Numbers of the prototype."""
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


def test_batch_estimators_acceptance_numbers():
    tau = np.array([1.0, 0.5, 1.0, 2.0, 4.0])
    assert mle(tau, np.array([True, True, True, False, False])) == pytest.approx(0.41830641, abs=1e-8)
    changed = np.array([True, True, True, False])
    assert mle_last_modified(np.array([1.0, 1, 1, 6]), changed, np.array([0.2, 0.1, 0.6, 0])) == pytest.approx(3 / 6.9)


def test_batch_estimators_at_the_edges():
    tau = np.ones((4, 3))
    changed = np.array([[False] * 3, [True] * 3, [True, False, False], [True, True, False]])
    assert mle(tau, changed).tolist() == pytest.approx([0.0, math.inf, math.log(3 / 2), math.log(3)])
    assert math.isnan(mle(np.zeros(0), np.zeros(0, bool)))


@given(st.lists(st.tuples(st.floats(0.01, 100), st.booleans()), min_size=2, max_size=30))
def test_mle_solves_its_score_equation_and_scales_with_the_unit_of_time(visits):
    tau, changed = np.array([v[0] for v in visits]), np.array([v[1] for v in visits])
    found = float(mle(tau, changed))
    if changed.any() and not changed.all():
        c, quiet = tau[changed], tau[~changed].sum()
        with np.errstate(over="ignore"):
            assert (c / np.expm1(found * c)).sum() == pytest.approx(quiet, rel=1e-6)
        assert float(mle(tau * 24.0, changed)) == pytest.approx(found / 24.0, rel=1e-9)
    else:
        assert found == (math.inf if changed.all() else 0.0)
