"""T chosen by a contest of windows, on the sample of a crawl."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import UNIT
from xyro.opic.contest import HORIZON, LADDER, LIMIT, Contest, Forecasts, SampledContest
from xyro.opic.importance import TICKS


def crawl_columns(n, rng):
    return rng.uniform(0.2, 3, n).astype(np.float32), np.zeros(n, np.uint32), np.zeros(n, np.uint32)


def spend_all(sampled, flow, last, birth, rates, turns, rng, start=0):
    """All pages are spent every turnover and receive what `rates` say, with noise."""
    n = flow.size
    for turn in range(start + 1, start + turns + 1):
        cash = np.rint(rates(turn) * rng.uniform(0.5, 1.5, n) * UNIT).astype(np.int64)
        sampled.measure(np.arange(n), flow, cash, last, birth, turn * TICKS, 64.0, 1.0)
        sampled.passed(n, n)
        last[:] = turn * TICKS


def test_a_sample_is_bounded_and_fair():
    rng = np.random.default_rng(0)
    sampled, n = SampledContest(), 20_000
    flow, last, birth = crawl_columns(n, rng)
    for pages in np.array_split(rng.permutation(n), 50):
        sampled.measure(pages, flow[pages], np.full(pages.size, UNIT), last[pages], birth[pages], TICKS, 64.0, 1.0)
    kept = np.array(list(sampled.places))
    assert LIMIT / 4 < kept.size <= LIMIT and sampled.flows.shape == (kept.size, len(LADDER))
    assert abs(kept.mean() / n - 0.5) < 0.05, "old and new pages alike"
    assert list(sampled.places.values()) == list(range(kept.size))


def test_noise_alone_asks_for_a_long_window_and_change_for_a_short_one():
    for rates, fits in (
        (lambda turn: 1.0, lambda window: window >= 16),
        (lambda turn: 2.0 + 1.9 * np.sin(turn / 3 + np.arange(300)), lambda window: window <= 4),
    ):
        rng, sampled = np.random.default_rng(2), SampledContest()
        spend_all(sampled, *crawl_columns(300, rng), rates, 80, rng)
        assert fits(sampled.window), sampled.window


def test_a_sample_that_was_stopped_chooses_as_one_that_was_not():
    rng = np.random.default_rng(3)
    sampled = SampledContest()
    columns = crawl_columns(2000, rng)
    spend_all(sampled, *columns, lambda turn: 1.0, 5, rng)
    again = SampledContest.load(sampled.dump())
    assert again.dump() == sampled.dump() and again.places == sampled.places
    for one in (sampled, again):
        spend_all(one, *(column.copy() for column in columns), lambda turn: turn % 3, 7, np.random.default_rng(4), 5)
    assert again.dump() == sampled.dump()


def test_a_sample_of_an_earlier_version_opens_with_its_window():
    old = {"contest": {"window": 8.0, "scores": [1.0] * 5, "weight": 2.0, "reads": 3}, "share": 99, "pages": b"",
           "flows": b""}  # fmt: skip
    found = SampledContest.load(old)
    assert found.window == 8.0 and len(found.contest.scores) == len(LADDER) and not found.places


@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=30))
def test_forecasts_are_held_against_all_that_came_within_the_horizon(gaps):
    """One page: every forecast is judged at the first spending HORIZON or later, and no cash is judged twice."""
    forecasts, place, now, begun, came = Forecasts(1), np.zeros(1, np.int64), 1.0, 1.0, 0.0
    forecasts.judge(place, np.ones(1), np.array([now]), np.full((1, len(LADDER)), now, np.float32))
    for turn, gap in enumerate(gaps, 1):
        now, came = now + gap, came + turn
        flows = np.full((1, len(LADDER)), now, np.float32)
        said, cash, spans = forecasts.judge(place, np.full(1, float(turn)), np.array([now]), flows)
        assert cash.size == (now - begun >= HORIZON)
        if cash.size:
            assert said[0] == pytest.approx(begun) and (cash[0], spans[0]) == pytest.approx((came, now - begun))
            begun, came = now, 0.0


def test_t_is_the_mean_of_the_windows_that_are_best_together():
    contest = Contest(10.0)
    contest.passed(100, 100)
    assert contest.window == 10.0, "nobody was scored"
    contest.scores, contest.weight = [6.0, 5.0, 4.0, 3.0, 2.5, 4.0], 9.0
    contest.passed(100, 100)
    assert contest.window == pytest.approx(16.0, rel=1e-6), "one is best by far"
    contest.scores = [6.0, 3.0, 3.0, 3.0, 5.0, 6.0]
    contest.passed(100, 100)
    assert contest.window == pytest.approx(4.0, rel=1e-6), "the middle of three that are equal"
    contest.scores = [6.0, 3.0, 3.0, 3.0005, 5.0, 6.0]
    contest.passed(100, 100)
    assert contest.window == pytest.approx(4.0, rel=1e-6), "hardly less: T stays"
    contest.scores = [6.0, 3.0, 3.0 * 1.05, 9.0, 9.0, 9.0]
    contest.passed(100, 100)
    assert contest.window == pytest.approx(2.0, rel=0.01), "5 % worse says next to nothing"
    contest.scores = [0.0] * len(LADDER)
    contest.passed(100, 100)
    assert 1.0 < contest.window < 32.0, "all foretold exactly"
