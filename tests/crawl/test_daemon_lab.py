"""The daemon on a clock that jumps: days in seconds, over real HTTP."""

import pytest

from crawl.bench.daemon import Checks, run


@pytest.fixture(scope="module")
def report():
    return run(240, 6.0, 0.5, "obsolescence", 3)


def test_days_pass_in_seconds_and_everything_is_found(report):
    assert "found" not in report["broken"] and report["pages"] > 180
    assert report["jumps"] >= 72, "no jump takes longer than six hours, most end at what is due"


def test_what_is_read_is_what_the_bandwidth_allows(report):
    assert 0.9 < report["spending"] < 1.1


def test_freshness_is_near_the_prediction(report):
    """Of few pages over few days; the full run asks for 2 points."""
    assert abs(report["freshness"] - report["predicted"]) < 0.08 and 0.5 < report["freshness"] < 1.0


def test_the_meter_was_asked(report):
    assert 45 <= report["meter"]["checks"] <= 50 and abs(report["meter"]["model_error"]) < 0.2


class Steady:
    """A crawl that is fresh to .7 for ten hours, then to .9."""

    def fresh_now(self, now):
        return 0.7 if now < 36_000 else 0.9


@pytest.mark.parametrize(("low", "high", "over", "covered"), [
    (0.85, 0.95, 18_000, 1), (0.65, 0.75, 18_000, 0), (0.75, 0.85, 72_000, 1), (0.85, 0.95, 72_000, 0),
])  # fmt: skip
def test_the_interval_is_held_against_the_time_of_its_window(low, high, over, covered):
    checks = Checks(Steady(), 0.0, 72_000.0)
    for t in range(0, 72_000, 600):
        checks.seen(float(t))
    checks._check({"freshness": 0.8, "audit": {"audits": 9, "low": low, "high": high, "over_s": over}}, 72_000.0)
    assert (checks.made, checks.covered) == (1, covered) and checks.error == [pytest.approx(-0.1)]
