"""The calibration of the model: kappa is what its reads say, forgets cold beginnings, and puts a wrong model right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.calibration import DOUBT, MEMORY, Calibration, corrected

chances = st.floats(1e-6, 1.0)
reads = st.lists(st.tuples(st.floats(1e-6, 1e6), chances, chances, chances), max_size=40)


def read(calibration, stake, believed, rated, seen):
    """In shares of the stake."""
    calibration.read(stake, stake * believed, stake * rated, stake * seen)


def after(found):
    calibration = Calibration()
    for shares in found:
        read(calibration, *shares)
    return calibration


@given(reads)
def test_it_says_nothing_of_nothing_and_stays_finite(found):
    assert Calibration().kappa == Calibration().by_rates == 1.0 and Calibration().fresh(0.7) == pytest.approx(0.7)
    calibration = after(found)
    assert 0.0 < calibration.kappa < math.inf and 0.0 < calibration.by_rates < math.inf
    calibration.read(0.0, 0.5, 0.5, 1.0)
    calibration.read(1.0, 0.0, 0.5, 1.0)
    assert calibration == after(found)


@given(st.floats(0.0, 1.0), st.floats(0.0, 5.0))
def test_corrected_is_a_share(model, kappa):
    assert 0.0 <= corrected(model, kappa) <= 1.0 and corrected(model, 1.0) == pytest.approx(model)


@given(reads, st.floats(1e-3, 1e3))
def test_the_scale_of_importance_and_of_time_does_not_matter(found, scale):
    """Days or minutes, importance of mean 1 or of any other: kappa is the same."""
    scaled = [(stake * scale, *rest) for stake, *rest in found]
    assert after(scaled).kappa == pytest.approx(after(found).kappa, rel=1e-6)


@pytest.mark.parametrize("factor", [0.4, 1.0, 1.7])
def test_kappa_is_the_factor_by_which_beliefs_are_off(factor):
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        calibration = Calibration()
        for chance in rng.uniform(0.05, 0.5, 4000).tolist():
            read(calibration, rng.exponential(), chance, 2.0 * chance, float(rng.random() < factor * chance))
        found.append((calibration.kappa, calibration.by_rates))
    kappas, by_rates = np.array(found).T
    assert np.mean(kappas) == pytest.approx(factor, rel=0.05) and np.std(kappas) < 2.0 * math.sqrt(factor / MEMORY)
    assert np.mean(by_rates) == pytest.approx(factor / 2, rel=0.05)


def test_a_cold_beginning_is_forgotten():
    calibration = Calibration()
    for _ in range(5000):  # the prior expects far too much of short intervals
        read(calibration, 0.1, 0.5, 0.5, 0.0)
    assert calibration.kappa < 0.02
    for turn in range(3000):
        read(calibration, 10.0, 0.25, 0.25, float(turn % 4 == 0))
    assert calibration.kappa == pytest.approx(1.0, abs=0.03)


def test_a_few_reads_are_not_believed_over_much():
    calibration = Calibration()
    read(calibration, 1.0, 0.01, 0.01, 1.0)
    assert calibration.kappa == pytest.approx((1.0 + DOUBT) / (0.01 + DOUBT))


def test_partitions_add_up_and_a_restart_changes_nothing():
    halves = [after([(1.0, 0.5, 0.4, float(turn % 3 == part)) for turn in range(9)]) for part in (0, 1)]
    whole = Calibration()
    for half in halves:
        whole.merge(half)
    both = after([(1.0, 0.5, 0.4, float(turn % 3 == part)) for part in (0, 1) for turn in range(9)])
    assert whole.kappa == pytest.approx(both.kappa, rel=0.02)
    assert Calibration.load(whole.dump()) == whole and Calibration.load(None) == Calibration()
