"""gamma over the life of a crawl, and the bandwidth of the last ten minutes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.sharing import BandwidthMeter, Bursts, Capacity, Controller, GammaSchedule


def test_a_steady_rate_is_measured_from_the_start_on():
    meter = BandwidthMeter()
    assert meter.rate(0.0) == 0.0
    for tick in range(20_000):
        meter.count(1000.0 + tick / 20)
        if tick > 400:
            assert meter.rate(1000.0 + tick / 20) == pytest.approx(20.0, rel=0.01)


def test_what_is_older_than_ten_minutes_is_forgotten():
    meter = BandwidthMeter()
    meter.count(0.0, 6000)
    assert meter.rate(0.0) == 600.0  # over one bucket at least
    assert meter.rate(300.0) == 20.0
    assert meter.rate(600.0) == 10.0
    assert meter.rate(620.0) == 0.0
    meter.count(650.0, 60)
    assert meter.rate(650.0) == pytest.approx(0.1)


def test_a_changed_rate_is_followed_within_ten_minutes():
    meter = BandwidthMeter()
    for second in range(2000):
        meter.count(float(second), 10 if second < 1000 else 2)
    assert meter.rate(1999.0) == pytest.approx(2.0, rel=0.01)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 100)), max_size=100))
def test_reads_are_neither_lost_nor_counted_twice_whatever_the_clock_does(events):
    meter = BandwidthMeter()
    time, last, kept = 0.0, None, []
    for now, reads in events:
        time = now if last is None else time + max(now - last, 0.0)
        last = now
        meter.count(now, reads)
        kept.append((time // 10, reads))
    expected = sum(reads for bucket, reads in kept if bucket >= (time - 600) // 10)
    span = max(time - max(kept[0][0] * 10, (time - 600) // 10 * 10), 10.0) if kept else 1.0
    assert meter.rate(0.0) >= expected / (span + 10.0) * (1 - 1e-9)
    assert meter.rate(0.0) <= expected / max(span - 10.0, 10.0) * (1 + 1e-9)


BACK = (0.0, 3600.0, 86_400.0, 10 * 365 * 86_400.0)


@pytest.mark.parametrize("back", BACK)
def test_a_clock_that_is_set_back_changes_no_measure(back):
    """Ten reads a second, all the time."""
    meter, bursts, capacity = BandwidthMeter(), Bursts(), {busy: Capacity() for busy in (False, True)}
    for second in range(7200):
        now = 1e9 + second - (back if second >= 1000 else 0.0)
        meter.count(now, 10)
        bursts.count(now, 10)
        for busy, one in capacity.items():
            one.count(now, 10, busy)
    assert meter.rate(now) == pytest.approx(10.0, rel=0.02)
    assert [one.rate() for one in capacity.values()] == pytest.approx([10.0, 10.0], rel=0.12)
    assert bursts.rate(now) == pytest.approx(10.0 * 7200 / Bursts.MEMORY, rel=0.02)
    for _ in range(7 * 24):
        now += 3600.0
        bursts.count(now, 0)
    assert bursts.rate(now) < 0.1 * 10.0 * 7200 / Bursts.MEMORY, "it forgets, whatever time it is"


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 100)), min_size=1, max_size=6, unique_by=lambda p: p[0]))
def test_a_schedule_meets_its_points_and_stays_between_them(points):
    points = sorted(points)
    schedule = GammaSchedule(points)
    assert [schedule.gamma_at(page) for page, _ in points] == pytest.approx([gamma for _, gamma in points])
    for (first, low), (last, high) in pairwise(points):
        assert min(low, high) - 1e-9 <= schedule.gamma_at(0.5 * (first + last)) <= max(low, high) + 1e-9
    assert schedule.gamma_at(-1) == points[0][1] and schedule.gamma_at(10**10) == points[-1][1]


def test_a_schedule_falls_evenly():
    schedule = GammaSchedule([(1000, 90.0), (3000, 10.0)])
    assert [schedule.gamma_at(pages) for pages in (0, 1000, 1500, 2000, 3000, 9000)] == [90, 90, 70, 50, 10, 10]


@pytest.mark.parametrize("points", [[], [(2, 1.0), (1, 1.0)], [(1, 1.0), (1, 2.0)], [(1, 101.0)]])
def test_a_schedule_that_is_none(points):
    with pytest.raises(ValueError, match="GammaSchedule"):
        GammaSchedule(points)


@pytest.mark.parametrize("target", [0.5, 0.7, 0.9])
def test_the_controller_finds_the_gamma_that_reaches_the_target(target):
    """Freshness as a function of what refresh gets: it settles where that is the target, from either side."""
    for start in (0.0, 100.0):
        controller = Controller(target, start)
        freshness = 0.5
        for _ in range(400):
            wanted = 1 - 0.6 * (controller.gamma / 100) ** 2
            freshness += 0.2 * (wanted - freshness)  # it follows slowly
            controller.hear(freshness, gain=0.2)
        assert freshness == pytest.approx(target, abs=0.01)


def test_a_target_out_of_reach_winds_nothing_up():
    controller = Controller(0.99, 50.0, least=5.0)
    for _ in range(1000):
        controller.hear(0.3)
    assert controller.gamma == 5.0
    assert controller.hear(1.0, gain=10.0) > 5.0  # the first good news counts at once
    with pytest.raises(ValueError, match="target"):
        Controller(1.0)
