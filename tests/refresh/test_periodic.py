"""Changes by the clock: found from few visits, read just after; Poisson pages are left as they are."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.periodic import (
    EMPTY,
    MOST_BYTES,
    PERIODS,
    TICK,
    Diary,
    Habit,
    judged,
    pack,
    points_around,
    timed,
    unpack,
    visited,
)

DAY = 86_400.0
WEEK = 7 * DAY
START = 1_760_000_000.0
NEVER = 1e12
GOLDEN = 0.618033988749895


class Outcome(NamedTuple):
    fresh: float
    """share of time that the copy was up to date, after a third of the visits"""
    reads: int
    found: bool
    """a habit was ever believed in"""


def read_on(changes: np.ndarray, wait: float, count: int, dated: bool, habits: bool = True) -> Outcome:
    """Read a page every `wait` seconds, or by its habit once one is found, for count x wait seconds."""
    at, seen, reads = START, int(np.searchsorted(changes, START)), 0
    data, habit, found, fresh, total = b"", None, False, 0.0, 0.0
    while True:
        step = timed(habit, at, wait, reads * GOLDEN % 1.0) if habit and habits else wait
        now = at + step
        if now > START + count * wait:
            return Outcome(fresh / total, reads, found)
        by_now = int(np.searchsorted(changes, now))
        changed = by_now > seen
        if now > START + count * wait / 3:
            fresh += changes[seen] - at if changed else step
            total += step
        data, habit = visited(data, at, now, changed, float(changes[by_now - 1]) if changed and dated else None)
        assert len(data) <= MOST_BYTES
        found |= habit is not None
        at, seen, reads = now, by_now, reads + 1


def poisson(rng: np.random.Generator, rate: float, span: float) -> np.ndarray:
    return np.append(np.sort(START + rng.random(rng.poisson(rate * span)) * span), NEVER)


def regular(rng: np.random.Generator, period: float, span: float, jitter: float = 0.005) -> np.ndarray:
    count = int(span / period) + 2
    times = START + (rng.random() + np.arange(count)) * period + rng.normal(0.0, jitter * period, count)
    return np.append(np.sort(times), NEVER)


@pytest.mark.long
@pytest.mark.parametrize("dated", [False, True])
def test_poisson_pages_are_hardly_ever_taken_for_regular_and_lose_nothing(dated):
    rng = np.random.default_rng(21)
    wait, pages, visits, found = 1.7 * DAY, 60, 80, 0
    with_habits, without = [], []
    for changes_a_visit in (0.2, 0.6, 1.0, 2.0):
        for _ in range(pages):
            changes = poisson(rng, changes_a_visit / wait, visits * wait)
            ours = read_on(changes, wait, visits, dated)
            found += ours.found
            with_habits.append(ours.fresh)
            without.append(ours.fresh if not ours.found else read_on(changes, wait, visits, dated, habits=False).fresh)
    assert found / (4 * pages) < 0.01
    assert np.mean(with_habits) > np.mean(without) * 0.995


@pytest.mark.parametrize("period", [DAY / 4, DAY, WEEK])
@pytest.mark.parametrize(("part", "dated", "gain"), [(0.35, False, 0.06), (0.6, False, 0.12), (1.0, True, 0.25)])
def test_regular_pages_are_fresher_at_no_more_reads(period, part, dated, gain):
    rng = np.random.default_rng(22)
    ours, plain = [], []
    for _ in range(6):
        changes = regular(rng, period, 120 * part * period)
        ours.append(read_on(changes, part * period, 110, dated))
        plain.append(read_on(changes, part * period, 110, dated, habits=False))
    assert all(one.found for one in ours)
    assert np.mean([one.fresh for one in ours]) > np.mean([one.fresh for one in plain]) + gain
    assert sum(one.reads for one in ours) <= 1.01 * sum(one.reads for one in plain)


def test_every_monday_at_six_is_found_and_named():
    mondays = np.array(
        [datetime.datetime(2025, 1, 6, 6, tzinfo=datetime.UTC).timestamp() + k * WEEK for k in range(60)]
    )
    data, habit, at = b"", None, float(mondays[0]) - 1.3 * DAY
    while habit is None:
        changed = bool(((mondays > at) & (mondays <= at + 2.5 * DAY)).any())
        data, habit = visited(data, at, at + 2.5 * DAY, changed)
        at += 2.5 * DAY
    assert at < mondays[14]
    assert str(habit) == "every week"
    before, after = points_around(habit, at)
    assert after - before == WEEK
    assert 0 < (before - mondays[0]) % WEEK <= 1.3 * DAY


def test_the_first_of_the_month_is_found_by_dates_and_read_then():
    firsts = [datetime.datetime(2024 + m // 12, m % 12 + 1, 1, 9, tzinfo=datetime.UTC).timestamp() for m in range(12)]
    data, habit, at = b"", None, firsts[0] - DAY
    for first in firsts:
        data, habit = visited(data, at, first + 10 * DAY, True, first)
        at = first + 10 * DAY
    assert str(habit) == "every month"
    before, after = points_around(habit, datetime.datetime(2026, 2, 15, tzinfo=datetime.UTC).timestamp())
    for point, month in ((before, 2), (after, 3)):
        late = point - datetime.datetime(2026, month, 1, 9, tzinfo=datetime.UTC).timestamp()
        assert 0 < late < DAY


def test_a_habit_is_given_up_when_it_has_gone():
    changes = START + np.arange(40) * WEEK + 3600.0
    data, habit, at = b"", None, START
    for change in changes[:12]:
        data, habit = visited(data, at, float(change) + DAY, True, float(change))
        at = float(change) + DAY
    assert habit is not None
    reads = 0
    while habit is not None:
        data, habit = visited(data, at, at + WEEK, False)
        at, reads = at + WEEK, reads + 1
    assert reads <= 8
    assert unpack(data).habit is None


habits = st.builds(Habit, st.integers(0, len(PERIODS) - 1), st.integers(0, min(PERIODS) - 1))
steps = st.lists(st.integers(0, 20_000), min_size=2, max_size=40).map(lambda found: found[: len(found) // 2 * 2])


@given(st.none() | habits, steps)
def test_what_is_kept_of_a_page_is_small_and_comes_back(habit, gaps):
    edges = tuple(np.cumsum([2_900_000, *gaps[1:]]).tolist())
    data = pack(Diary(habit, edges))
    assert len(data) <= MOST_BYTES
    back = unpack(data)
    assert back.habit == habit
    assert back.edges == edges[len(edges) - len(back.edges) :]
    assert len(back.edges) % 2 == 0
    assert back.edges


@given(st.binary(max_size=60))
def test_any_bytes_are_a_diary_or_an_empty_one(data):
    diary = unpack(data)
    assert diary == EMPTY or len(diary.edges) % 2 == 0
    if diary.edges and diary.edges[-1] < 1 << 32:
        judged(diary, diary.edges[-1] + 5)


@given(habits, st.floats(1e9, 2e9), st.floats(3600.0, 400 * DAY), st.floats(0.0, 1.0))
def test_a_read_is_moved_between_half_and_twice_its_interval_to_a_point_of_the_habit(habit, read_at, wait, draw):
    moved = timed(habit, read_at, wait, draw)
    assert 0.5 * wait <= moved <= 2.0 * wait
    if moved != wait:
        before, after = points_around(habit, read_at + moved + 1.0)
        assert before == pytest.approx(read_at + moved, abs=2.0)
        assert before < after


@pytest.mark.parametrize("part", [1.1, 1.3, 2.4, 7.7])
def test_the_mean_interval_stays(part):
    habit, at = Habit(PERIODS.index(144), 30), START
    for reads in range(400):
        at += timed(habit, at, part * DAY, reads * GOLDEN % 1.0)
    assert (at - START) / 400 == pytest.approx(part * DAY, rel=0.02)


@given(habits, st.floats(1e9, 2e9))
def test_points_surround_the_moment_and_lie_a_period_apart(habit, when):
    before, after = points_around(habit, when)
    assert before <= when < after
    length = PERIODS[habit.period] * TICK
    assert after - before == pytest.approx(length, rel=0.09 if habit.period == len(PERIODS) - 1 else 1e-9)


@given(st.lists(st.tuples(st.floats(0.0, 40 * DAY), st.booleans(), st.floats(-1e9, 1e9)), max_size=40))
def test_no_history_of_visits_breaks_it(found):
    data, at = b"", START
    for step, changed, modified in found:
        data, habit = visited(data, at, at + step, changed, at + modified if changed else None)
        at += step
        assert len(data) <= MOST_BYTES
        assert habit == unpack(data).habit
