"""The daemon on a clock that jumps: days in seconds, over real HTTP; and the judge of its meter."""

import math

import numpy as np
import pytest

from xyro.lab.crawls.daemon import Trial, measure, run
from xyro.lab.crawls.meter_checks import CHECKS, Checks, Mean

pytestmark = pytest.mark.long

DAY = 86_400.0


@pytest.fixture(scope="module")
def report():
    return run(240, 6.0, 0.5, "obsolescence", 3)


def test_days_pass_in_seconds_and_everything_is_found(report):
    assert "found" not in report["broken"] and report["pages"] > 180
    assert report["jumps"] >= 24, "no jump takes longer than six hours, most end at what is due"


def test_what_is_read_is_what_the_bandwidth_allows(report):
    assert 0.95 < report["spending"] < 1.05
    assert 0.0 < report["stale"]["changed"] < 1.0
    assert report["stale"]["mean"] == pytest.approx(report["stale"]["changed"], abs=0.1), "rows say what is true"


def test_freshness_is_near_the_prediction(report):
    """Of few pages over few days; the full run asks for 2 %."""
    assert abs(report["off"]) < 0.08 and 0.5 < report["freshness"] < 1.0
    assert report["off"] == pytest.approx(report["freshness"] / report["predicted"] - 1.0, abs=2e-4)


def test_the_meter_was_asked(report):
    assert report["meter"]["checks"] == CHECKS and abs(report["meter"]["model_error"]) < 0.2


def test_a_run_tells_how_far_it_is_and_leaves_nothing_behind(tmp_path):
    told = []
    report = measure(Trial(100, 1.0, 0.5, policy="freshness"), tmp_path, told.append)
    assert report["policy"] == "freshness" and "found" not in report["broken"]
    assert len(told) >= 20 and told[0].startswith("50 % a day: day 0.05 of 1") and "day 1 of 1" in told[-1]
    assert not list(tmp_path.iterdir())


# Means between looks


def test_a_mean_is_exact_between_looks_and_even_within():
    """Two pages: the first fresh all of the time, the second for half of the last ten seconds."""
    mean = Mean()
    for now, fresh in ((0.0, (0.0, 0.0)), (10.0, (10.0, 0.0)), (20.0, (20.0, 5.0))):
        mean.look(now, np.array(fresh), np.array([3.0, 1.0]))
    assert mean.since(10.0) == pytest.approx((3 * 10 + 5) / 40)
    assert mean.since(0.0) == mean.since(-5.0) == pytest.approx((3 * 20 + 5) / 80)
    assert mean.since(5.0) == pytest.approx((3 * 15 + 5) / 60)
    assert math.isnan(mean.since(20.0))


def test_weights_count_from_the_look_on_at_which_they_are_given():
    mean = Mean()
    mean.look(0.0, np.zeros(2), np.array([1.0, 1.0]))
    mean.look(10.0, np.array([10.0, 0.0]), np.array([1.0, 1.0]))
    mean.look(20.0, np.array([20.0, 0.0]), np.array([0.0, 1.0]))
    assert mean.since(0.0) == pytest.approx(0.25)
    assert mean.since(10.0) == 0.0


class Steady:
    """A crawl of one page that is fresh to .7 for ten hours, then to .9."""

    importance = np.ones(1)

    def fresh_seconds(self, now):
        return np.array([0.7 * min(now, 36_000.0) + 0.9 * max(now - 36_000.0, 0.0)])

    def fresh_now(self, now):
        return 0.7 if now < 36_000 else 0.9


def shown(freshness, audit, low=0.6, high=0.85):
    interval = {"freshness_low": low, "freshness_high": high}
    return {"freshness": freshness, **interval, "freshness_model": 0.75, "changes_over_believed": 1.2, "audit": audit}


def test_a_headline_outside_its_own_interval_is_found_out():
    checks = Checks(Steady(), 0.0, 5_000.0)
    checks._ask = lambda now: shown(0.9, {"audits": 4, "low": 0.65, "high": 0.75, "over_s": 60})
    for t in range(0, 5_001, 20):
        checks.seen(float(t))
    report = checks.report()
    assert report["covered"] == CHECKS and report["inside"] == 0 and not checks.hold
    assert report["error"] == 0.2 and report["model_error"] == 0.05 and report["changes_over_believed"] == 1.2


@pytest.mark.parametrize(("low", "high", "over", "covered"), [
    (0.85, 0.95, 18_000, 1), (0.65, 0.75, 18_000, 0), (0.75, 0.85, 72_000, 1), (0.85, 0.95, 72_000, 0),
])  # fmt: skip
def test_the_interval_is_held_against_the_time_of_its_window(low, high, over, covered):
    checks = Checks(Steady(), 72_000.0, 2 * 72_000.0)
    for t in range(0, 72_001, 600):
        checks.seen(float(t))
    checks.check(shown(0.8, {"audits": 9, "low": low, "high": high, "over_s": over}), 72_000.0)
    assert (checks.made, checks.covered, checks.covered_own) == (1, covered, covered)
    assert checks.error == [pytest.approx(-0.1)] and checks.width == [pytest.approx(high - low)]
    assert not checks.hold, "one check is not fifty"


def test_it_is_asked_fifty_times_evenly():
    checks = Checks(Steady(), 100.0, 5_100.0)
    asked = []
    answer = shown(0.7, {"audits": 4, "low": 0.65, "high": 0.75, "over_s": 60})
    checks._ask = lambda now: asked.append(now) or answer
    for t in range(0, 5_101, 20):
        checks.seen(float(t))
    assert asked == [200.0 + 100.0 * turn for turn in range(CHECKS)]
    assert checks.hold and checks.report()["covered"] == checks.report()["covered_by_own_importance"] == CHECKS


def test_a_meter_that_never_audited_covers_nothing():
    checks = Checks(Steady(), 0.0, 5_000.0)
    checks._ask = lambda now: shown(0.7, {"audits": 0, "low": None, "high": None, "over_s": None})
    for t in range(0, 5_001, 20):
        checks.seen(float(t))
    report = checks.report()
    assert (report["checks"], report["covered"], report["mean_width"]) == (CHECKS, 0, None) and not checks.hold
