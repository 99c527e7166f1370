"""The estimate of change rates, judged by events: the goals of its design, and P1's law served by it."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from xyro.lab.refresh.gamma_belief import DEFAULT_PRIOR, update_many
from xyro.lab.refresh.rate_trials import BEYOND, ROWS, Estimated, WorldRates, drawn, error, fixed, replayed, serve

FEW = 250


def by_gamma(true: float, tau: float, reads: int) -> np.ndarray:
    """The estimates of the Gamma belief that came before."""
    rng = np.random.default_rng((1, reads))
    a, b = np.full(FEW, DEFAULT_PRIOR.a), np.full(FEW, DEFAULT_PRIOR.b)
    for changed in (rng.poisson(true * tau, (FEW, reads)) > 0).T:
        a, b = update_many(a, b, np.full(FEW, tau), changed, np.full(FEW, np.nan), DEFAULT_PRIOR)
    return a / b


@pytest.mark.parametrize(("true", "tau"), ROWS[:5])
def test_pages_read_as_often_as_they_change_are_known_after_a_day_of_hours(true, tau):
    found = fixed(true, tau, 24, FEW)
    assert np.median(found) == pytest.approx(true, rel=0.25)
    assert error(found, true) <= 0.4


@pytest.mark.parametrize(("true", "tau"), [*ROWS[4:], (1 / 30, 1.0), (0.2, 3.0), (1 / 365, 30.0)])
def test_slow_pages_are_known_about_as_well_as_by_the_gamma_before(true, tau):
    assert error(fixed(true, tau, 24, FEW), true) <= error(by_gamma(true, tau, 24), true) + 0.06


@pytest.mark.parametrize("reads", [24, 98])
@pytest.mark.parametrize(("true", "tau"), BEYOND)
def test_pages_that_change_several_times_between_reads_are_not_believed_thrice_as_fast(true, tau, reads):
    assert 1.0 < np.median(fixed(true, tau, reads, FEW)) / true < 3.0


def test_the_gamma_before_was_bounded():
    assert np.median(by_gamma(720.0, 1 / 720, 24)) < 20.0 < 500.0 < np.median(fixed(720.0, 1 / 720, 24, FEW))


def test_the_law_served_by_estimates_misses_little_more_than_by_the_truth():
    world = drawn("news", 1, pages=500, days=45.0)
    known = serve(world, WorldRates(world), 0.2)
    estimated = serve(world, Estimated(500), 0.2)
    assert 0.0 < known.missed < estimated.missed < 2.5 * known.missed
    assert abs(known.bias) < 0.02
    assert abs(estimated.bias) < 0.03
    assert 0.5 < known.fresh < 1.0


def test_a_cap_reads_the_fastest_pages_less_and_keeps_more_fresh():
    world = drawn("news", 1, pages=500, days=45.0)
    whole, capped = (serve(world, Estimated(500, cap), 0.2) for cap in (0.0, 5.0))
    assert capped.fresh > whole.fresh


def test_histories_begin_at_their_births_and_may_run_faster(tmp_path):
    file = tmp_path / "some.jsonl.gz"
    pages = [{"path": str(k), "events": [[k * 86_400, "A"], [(k + 20) * 86_400, "M"]]} for k in range(20)]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, pages)).encode()))
    slow, fast = replayed([file]), replayed([file], 1000.0)
    assert slow.born.tolist() == list(range(20))
    assert [events.tolist() for events in slow.events] == [[20.0 + k] for k in range(20)]
    ours, theirs = serve(slow, Estimated(20), 1.0), serve(fast, WorldRates(fast), 1000.0)
    assert 0.5 < ours.fresh <= 1.0
    assert 0.5 < theirs.fresh <= 1.0
