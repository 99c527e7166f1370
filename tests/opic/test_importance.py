"""Interpolation by hand-computed cases, the clock's exactness, the rules for new pages and for a growing crawl."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import UNIT
from xyro.opic.importance import (
    TICKS,
    NewPages,
    OpicClock,
    Window,
    as_if_now,
    at_birth,
    backing,
    centred,
    elapsed,
    measure,
    never_measured,
    normalise,
    received,
)


def visit(flow, cash, last, now, window=4.0, birth=0.0, prior=1.0, prior_window=0.25):
    """One page; cash in pages' worth, times in turnovers."""
    ticks = [np.array([round(t * TICKS) % 2**32], np.uint32) for t in (last, birth)]
    held = np.array([round(cash * UNIT)])
    after = measure(np.array([flow], np.float32), held, *ticks, round(now * TICKS), window, prior, prior_window)
    return float(after[0])


def test_a_visit_within_the_window_is_the_papers_interpolation():
    """H = H (T-d)/T + C with X = H/T: T=4, d=1, X=2, C=3 -> (2 (3/4) + 3/4)."""
    assert visit(2.0, 3.0, last=99, now=100) == pytest.approx(2.25)


def test_a_visit_after_the_window_forgets_the_past():
    assert visit(2.0, 40.0, last=92, now=100) == pytest.approx(5.0)


def test_no_time_passed_still_counts_the_cash():
    """d = 0: two spendings within one tick must measure the same as one with the sum."""
    once = visit(2.0, 3.0, last=99, now=100)
    again = visit(once, 1.0, last=100, now=100)
    assert again == pytest.approx(visit(2.0, 4.0, last=99, now=100))


def test_a_steady_flow_is_a_fixpoint():
    for d in (0.01, 1, 3.9, 4, 50):
        assert visit(1.7, 1.7 * d, last=100 - d, now=100) == pytest.approx(1.7, rel=1e-3)


def test_a_young_page_uses_its_age():
    """Born at 9, last spent at 9.5, now 10: the window is 1 turnover and what backs the default history, not 4."""
    before, after = 0.25**2 / 0.75, 0.25**2 / 1.25
    cash = 1.5 * (0.5 + before) - 0.3 * before
    found = visit(1.5, 2.0, last=9.5, now=10, birth=9, prior=0.3, prior_window=0.25)
    assert found == pytest.approx((cash + 2 + 0.3 * after) / (1 + after))


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 200_000)), min_size=1, max_size=40), st.floats(0, 1))
def test_an_infinite_window_is_the_cumulative_mean_and_a_fading_default(reads, prior):
    """X (G - G_born + p) = H + C - C_0 + xi p exactly: static importance, (H + C - C_0) / (G - G_born) once p fades."""
    now, given_at_birth, received = 7 * TICKS, UNIT // 2, 0
    flow = at_birth(np.array([given_at_birth]))
    born = last = np.array([now], np.uint32)
    held = given_at_birth
    for wait, units in reads:
        now, received, held = now + wait, received + units, held + units
        columns = flow, np.array([held]), last, born, now, np.inf, prior
        age = elapsed(now, born)
        backed = backing(age)
        exact = (received / UNIT + prior * backed) / (age + backed)
        np.testing.assert_allclose(as_if_now(*columns), exact, rtol=1e-4, atol=1e-6)
        flow, last, held = measure(*columns), np.array([now], np.uint32), 0
    static = received / UNIT / np.maximum(age, 1 / TICKS)
    bare = (as_if_now(flow, np.array([0]), last, born, now, np.inf, prior) * (age + backed) - prior * backed) / (
        np.maximum(age, 1 / TICKS)
    )
    np.testing.assert_allclose(bare * age, static * age, rtol=1e-3, atol=1e-5)


def test_the_default_history_fades_faster_than_evidence_gathers():
    """It was 1 % of a page's importance after 24 turnovers; now a ten-thousandth."""
    steady = at_birth(np.array([0]))
    born = last = np.array([0], np.uint32)
    for turnover in range(1, 25):
        columns = steady, np.array([UNIT // 10]), last, born, turnover * TICKS, np.inf, 1.0
        steady, last = measure(*columns), np.array([turnover * TICKS], np.uint32)
    assert float(steady[0]) == pytest.approx(0.1, rel=2e-3)
    assert backing(np.array([0.0])).tolist() == [0.25]


def test_a_default_that_rises_leaves_no_importance_below_nothing():
    born = np.array([0], np.uint32)
    flow = measure(at_birth(np.array([0])), np.array([0]), born, born, TICKS // 100, np.inf, 0.0)
    later = measure(flow, np.array([0]), np.array([TICKS // 100], np.uint32), born, TICKS, np.inf, 1.0)
    assert later.tolist() == [0.0]


def test_the_first_measure_leaves_out_what_the_page_was_born_with():
    q = 0.5
    flow = float(at_birth(np.array([UNIT // 2]))[0])
    assert flow == -q
    assert visit(flow, q, last=6, birth=6, now=10, prior=0.0) == 0.0
    assert visit(flow, q + 8, last=6, birth=6, now=10) == pytest.approx(2.0)
    assert visit(flow, q + 1, last=10, birth=10, now=10, prior=0.3) == pytest.approx(0.3 + 1 / 0.25)


def test_a_page_born_with_nothing_is_still_never_measured():
    flow = at_birth(np.array([0, 1, UNIT]))
    assert never_measured(flow).all() and flow.tolist() == [0.0, -1 / UNIT, -1.0]


@given(st.floats(0, 1e4, width=32), st.integers(0, 2**40), st.integers(0, 2**32 - 1), st.integers(0, 2**20))
def test_a_measured_flow_is_never_taken_for_an_unmeasured_one(flow, cash, last, wait):
    column = np.array([flow, -flow], np.float32)
    times = np.array([last, last], np.uint32)
    after = measure(column, np.array([cash, cash]), times, times, last + wait, 4.0, 0.0)
    assert not never_measured(after).any() and np.isfinite(after).all()


def test_reading_is_measuring_without_a_visit():
    rng = np.random.default_rng(0)
    flow = rng.normal(size=100).astype(np.float32)
    times = np.sort(rng.integers(0, 2**20, (2, 100)), axis=0).astype(np.uint32)
    cash = rng.integers(0, 10 * UNIT, 100) + UNIT * 5
    arguments = (flow, cash, times[1], times[0], 2**20, 4.0, 0.3)
    np.testing.assert_allclose(as_if_now(*arguments), measure(*arguments), rtol=1e-6)


def test_the_middle_of_an_interval_lies_halfway_between_the_last_measure_and_one_of_now():
    """Weighed by what of the window has not passed since: T=4, d=1, X=2, C=3 -> 2.25, less half of 3/4 of .25."""
    last, birth = np.array([99, 98], np.uint32) * TICKS, np.zeros(2, np.uint32)
    flow, now = np.array([2.0, 2.0], np.float32), 100 * TICKS
    importance = as_if_now(flow, np.array([3, 3]) * UNIT, last, birth, now, 4.0)
    found = centred(importance, flow, last, birth, now, 4.0, 8.0)
    assert found == pytest.approx([2.25 - 0.5 * 0.75 * 0.25, importance[1] - 0.5 * 0.5 * (importance[1] - 2.0)])
    assert (centred(importance, at_birth(np.array([0, UNIT])), last, birth, now, 4.0, 8.0) == importance).all()
    assert (centred(importance, flow, last, birth, now + 4 * TICKS, 4.0, 8.0) == importance).all()
    assert (centred(importance, flow, last, birth, now, 4.0, 0.0) == importance).all(), (
        "while the crawl outgrows itself"
    )


def test_a_page_never_measured_starts_at_the_default_history():
    """Rule (4) with T_0 = T: X' = xi (1 - d/T) + (C - q)/T."""
    flow = at_birth(np.array([UNIT]))
    born = np.array([0], np.uint32)
    found = as_if_now(flow, np.array([3 * UNIT]), born, born, TICKS, 4.0, 0.4, prior_window=4.0)
    assert found[0] == pytest.approx(0.4 * 0.75 + 2 / 4)


def test_cash_below_what_a_page_was_born_with_is_no_negative_flow():
    assert received(np.array([-2.0], np.float32), np.array([UNIT])).tolist() == [0.0]


def test_windows_must_be_positive():
    none = np.zeros(0, np.uint32)
    with pytest.raises(ValueError):
        as_if_now(np.zeros(0, np.float32), np.zeros(0, np.int64), none, none, 0, 0.0)


def test_time_is_right_across_the_wrap_of_the_columns():
    assert elapsed(2**32 + TICKS, np.array([2**32 - TICKS], np.uint32)).tolist() == [2.0]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 10**12))
def test_many_small_steps_advance_the_clock_like_one(spent, total):
    small, large = OpicClock(), OpicClock()
    for units in spent:
        small.advance(units, total)
    large.advance(sum(spent), total)
    assert small == large and OpicClock.load(small.dump()) == small


def test_a_turnover_is_all_cash_spent_once():
    clock = OpicClock()
    for _ in range(7):
        clock.advance(UNIT * 1000, UNIT * 1000)
    assert clock.turnovers == 7.0
    with pytest.raises(ValueError):
        clock.advance(-1, 10)


def test_normalised_importance_has_mean_one():
    assert normalise(np.array([1.0, 3.0])).tolist() == [0.5, 1.5]
    assert normalise(np.zeros(3)).tolist() == [1.0] * 3 and normalise(np.zeros(0)).size == 0


def learn(rule, count, flow, wait, born_with=0):
    born = np.zeros(count, np.uint32)
    held = np.full(count, round(flow * wait * UNIT) + born_with)
    rule.learn(at_birth(np.full(count, born_with)), held, born, round(wait * TICKS))


def test_the_default_is_the_mean_until_a_hundred_first_measures():
    rule = NewPages()
    learn(rule, 99, flow=0.25, wait=2)
    assert rule.prior == 1.0
    learn(rule, 1, flow=0.25, wait=2)
    assert rule.prior == pytest.approx(0.25, rel=1e-3)


def test_the_default_follows_the_flow_of_first_measures_only():
    rule = NewPages()
    learn(rule, 1000, flow=0.8, wait=1, born_with=UNIT)
    assert rule.prior == pytest.approx(0.8, rel=1e-3)
    rule.learn(np.full(1000, 5, np.float32), np.full(1000, UNIT), np.zeros(1000, np.uint32), TICKS)
    assert rule.seen == 1000 and rule.prior == pytest.approx(0.8, rel=1e-3)
    for _ in range(10):
        learn(rule, 100, flow=0.2, wait=1)
    assert rule.prior == pytest.approx(0.2, rel=1e-2)
    assert NewPages.load(rule.dump()) == rule


def test_pages_measured_at_their_birth_do_not_break_the_default():
    rule = NewPages()
    learn(rule, 200, flow=1.0, wait=0)
    assert rule.prior == 1.0


def test_the_window_starts_afresh_with_growth_and_widens_when_settled():
    window = Window(least=4, longest=16)
    window.grew(1000, 10 * TICKS)
    assert window.since == 10 * TICKS and window.length_at(10 * TICKS) == 4
    window.grew(1100, 12 * TICKS)  # not yet outgrown
    assert window.length_at(20 * TICKS) == pytest.approx(8) and window.length_at(40 * TICKS) == 16
    window.grew(1101, 40 * TICKS)
    assert window.length_at(40 * TICKS) == 4 and Window.load(window.dump()) == window


def test_a_first_group_that_waited_no_time_does_not_make_every_new_page_important():
    """126 pages of a crawl's first group, found and spent at once: their ratio would be in the hundreds."""
    rule = NewPages()
    flow, cash = at_birth(np.zeros(126, np.int64)), np.full(126, UNIT)
    rule.learn(flow, cash, np.zeros(126, np.uint32), TICKS // 500)
    assert rule.seen == 126 and rule.received / rule.waited > 400 and rule.prior == 1.0
