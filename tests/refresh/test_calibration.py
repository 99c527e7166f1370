"""The calibration of the model: kappa is what its reads say, forgets cold beginnings, and puts a wrong model right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.calibration import DOUBT, MEMORY, Calibration, Headline, corrected

chances = st.floats(1e-6, 1.0)
reads = st.lists(st.tuples(st.floats(1e-6, 1e6), chances, chances), max_size=40)


def read(calibration, stake, believed, seen):
    """In shares of the stake."""
    calibration.read(stake, stake * believed, stake * seen, 1.0)


def after(found):
    calibration = Calibration()
    for shares in found:
        read(calibration, *shares)
    return calibration


@given(reads)
def test_it_says_nothing_of_nothing_and_stays_finite(found):
    assert Calibration().kappa == 1.0 and Calibration().fresh(0.7) == pytest.approx(0.7)
    calibration = after(found)
    assert 0.0 < calibration.kappa < math.inf
    calibration.read(0.0, 0.5, 1.0, 1.0)
    calibration.read(1.0, 0.0, 1.0, 1.0)
    assert calibration == after(found)


@given(st.floats(0.0, 1.0), st.floats(0.0, 5.0))
def test_corrected_is_a_share(model, kappa):
    assert 0.0 <= corrected(model, kappa) <= 1.0 and corrected(model, 1.0) == pytest.approx(model)


@given(reads, st.floats(1e-3, 1e3))
def test_the_scale_of_importance_and_of_time_does_not_matter(found, scale):
    """Days or minutes, importance of mean 1 or of any other: kappa is the same."""
    scaled = [(stake * scale, *rest) for stake, *rest in found]
    assert after(scaled).kappa == pytest.approx(after(found).kappa, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("factor", [0.4, 1.0, 1.7])
def test_kappa_is_the_factor_by_which_beliefs_are_off(factor):
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        calibration = Calibration()
        for chance in rng.uniform(0.05, 0.5, 4000).tolist():
            read(calibration, rng.exponential(), chance, float(rng.random() < factor * chance))
        found.append(calibration.kappa)
    assert np.mean(found) == pytest.approx((MEMORY * factor + DOUBT) / (MEMORY + DOUBT), rel=0.05)
    assert np.std(found) < 1.5 * math.sqrt(factor / MEMORY)


def test_a_cold_beginning_is_forgotten():
    calibration = Calibration()
    for _ in range(5000):  # the prior expects far too much of short intervals
        read(calibration, 0.1, 0.5, 0.0)
    assert calibration.kappa < 1.1 * DOUBT / (DOUBT + MEMORY)
    for turn in range(3000):
        read(calibration, 10.0, 0.25, float(turn % 4 == 0))
    assert calibration.kappa == pytest.approx(1.0, abs=0.05)


def test_a_few_reads_are_not_believed_over_much():
    calibration = Calibration()
    read(calibration, 1.0, 0.01, 1.0)
    assert calibration.kappa == pytest.approx((1.0 + DOUBT) / (0.01 + DOUBT))


def test_partitions_add_up_and_a_restart_changes_nothing():
    halves = [after([(1.0, 0.5, float(turn % 3 == part)) for turn in range(9)]) for part in (0, 1)]
    whole = Calibration()
    for half in halves:
        whole.merge(half)
    both = after([(1.0, 0.5, float(turn % 3 == part)) for part in (0, 1) for turn in range(9)])
    assert whole.kappa == pytest.approx(both.kappa, rel=0.07)
    assert Calibration.load(whole.dump()) == whole and Calibration.load(None) == Calibration()
    octaves = [[3, 1.0, 1.0, 1.0, 1.0]]  # of the version that had a kappa for each octave of rates
    assert Calibration.load({**whole.dump(), "octaves": octaves}) == Calibration.load({"seen": 3.0}) == Calibration()


# -- the interval of the freshness of a moment ----------------------------------------------------------------------


def test_without_reads_nothing_is_known_and_with_them_the_headline_is_inside():
    assert Calibration().headline(30.0, 100.0) == Headline(pytest.approx(0.7), 0.0, 1.0)
    quiet = after([(1.0, 0.01, 0.0)] * 50).headline(1.0, 100.0)
    assert 0.9 < quiet.low <= quiet.freshness <= quiet.high <= 1.0


@given(reads, st.floats(0.0, 1.0), st.floats(1e-3, 1e9))
def test_the_headline_lies_in_its_interval(found, model, importance):
    fresh, low, high = after(found).headline((1.0 - model) * importance, importance)
    assert 0.0 <= low <= fresh <= high <= 1.0


@pytest.mark.long
@pytest.mark.parametrize(("alone", "waves"), [(0.002, 0.0), (0.0005, 0.004), (0.0, 0.002)])
@pytest.mark.parametrize("pages", [40, 300])
def test_it_holds_the_true_freshness_of_95_of_100_moments(pages, alone, waves):
    """Pages are read in turn, one a step; of all each changes by itself, or with a third of the others in a wave."""
    rng, calibration, held = np.random.default_rng(8), Calibration(), []
    alone, waves, since = alone * 40 / pages, waves * 40 / pages, np.full(pages, np.inf)
    chance = 1.0 - (1.0 - alone) ** np.arange(1, pages + 1) * (1.0 - waves / 3.0) ** np.arange(1, pages + 1)
    believed, fresh = float(chance.sum()), 1.0 - float(chance.mean())
    for step in range(60_000):
        changed = rng.random(pages) < (alone if rng.random() >= waves else 1.0 / 3.0)
        since[changed] = np.minimum(since[changed], step)
        if step % 50 == 0 and step > 20_000:
            found = calibration.headline((1.0 - fresh) * pages, float(pages))
            held.append(found.low <= 1.0 - np.isfinite(since).mean() <= found.high)
        page = step % pages
        seen = max(step - since[page], 0.0) if np.isfinite(since[page]) else 0.0
        calibration.read(float(pages), believed, seen, 1.0)
        since[page] = np.inf
    assert 0.9 <= np.mean(held) <= 1.0


def test_more_waves_make_it_wider_and_more_pages_narrower():
    rng, widths = np.random.default_rng(8), {}
    for name, day, pages in (("calm", 1, 1000.0), ("calm, few", 1, 50.0), ("waves", 40, 1000.0)):
        calibration = Calibration()
        for _ in range(6000 // day):
            factor = 1.0 if day == 1 else rng.gamma(0.5, 2.0)
            for _ in range(day):
                calibration.read(1.0, 0.1, float(rng.random() < 0.1 * factor), 1.0)
        _, low, high = calibration.headline(0.1 * pages, pages)
        widths[name] = high - low
    assert widths["calm"] < widths["calm, few"] and 2.0 * widths["calm"] < widths["waves"]
