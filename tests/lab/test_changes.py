"""Change processes: pure, truly Poisson, and consistent with what pages show."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.web.changes import WEB_BEGAN, state_at
from xyro.lab.web.places import Doc
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web

rates = st.floats(1e-5, 200)
days = st.floats(0, 60)


@given(st.integers(0, 9), st.integers(0, 10**6), rates, days)
def test_a_state_holds_from_its_change_to_the_next(seed, page, rate, after):
    t = ORIGIN + after * DAY
    state = state_at(seed, page, rate, ORIGIN, t)
    assert state.modified <= t + 1e-3
    assert t - 1e-3 <= state.until
    assert (state.version == 0) == (state.since == -math.inf)
    assert WEB_BEGAN <= state.modified < state.until
    before = state_at(seed, page, rate, ORIGIN, state.modified - 1e-2)
    after_next = state_at(seed, page, rate, ORIGIN, state.until + 1e-2)
    assert before.version < state.version or state.version == 0
    assert after_next.version > state.version
    inside = state_at(seed, page, rate, ORIGIN, (max(state.since, ORIGIN) + state.until) / 2)
    assert inside == state


@given(st.integers(0, 10**6), rates, st.lists(days, min_size=2, max_size=8))
def test_versions_rise_with_time_whatever_the_order_of_questions(page, rate, afters):
    versions = {after: state_at(1, page, rate, ORIGIN, ORIGIN + after * DAY).version for after in afters}
    ordered = [versions[after] for after in sorted(versions)]
    assert ordered == sorted(ordered)


def test_the_number_of_changes_is_poisson():
    """Mean and variance of the count are both lambda t; a page asked for over many cells has no seams."""
    for rate, after in ((0.5, 4.0), (3.0, 20.0), (40.0, 5.0)):
        counts = [state_at(7, page, rate, ORIGIN, ORIGIN + after * DAY).version for page in range(1_500)]
        expected = rate * after
        assert np.mean(counts) == pytest.approx(expected, abs=5 * math.sqrt(expected / 1_500))
        assert np.var(counts) == pytest.approx(expected, rel=0.25)


def test_gaps_between_changes_are_exponential_across_cell_borders():
    gaps, t = [], ORIGIN
    for _ in range(3_000):
        state = state_at(3, 11, 24.0, ORIGIN, t)
        gaps.append((state.until - max(state.modified, ORIGIN)) / 3_600)
        t = state.until + 1e-6
    gaps = np.sort(gaps[1:])
    assert gaps.mean() == pytest.approx(1.0, abs=0.1)
    assert np.mean(gaps > 2.0) == pytest.approx(math.exp(-2), abs=0.03)


def test_ages_at_the_origin_are_exponential():
    ages = [(ORIGIN - state_at(1, page, 1.0, ORIGIN, ORIGIN).modified) / DAY for page in range(3_000)]
    assert np.mean(ages) == pytest.approx(1.0, abs=0.1)
    assert np.median(ages) == pytest.approx(math.log(2), abs=0.07)


def test_a_page_of_rate_zero_never_changes():
    assert state_at(1, 5, 0.0, ORIGIN, ORIGIN + 1e9).version == 0


def test_rates_are_lognormal_with_the_median_and_spread_asked_for():
    web = Web(pages=20_000, hosts=10, rate_median=0.1, rate_sigma=1.5, speed=10.0)
    logs = np.log(web.rates[web.places.of_kind(Doc.HTML)])
    assert np.median(logs) == pytest.approx(math.log(1.0), abs=0.06)
    assert logs.std() == pytest.approx(1.5, abs=0.05)
    static = web.places.of_kind(Doc.REDIRECT, Doc.DEAD, Doc.FILE, Doc.PRIVATE)
    assert not web.rates[static].any()


def test_lists_change_when_something_they_list_changes():
    web = Web(pages=600, hosts=3)
    for kind in (Doc.FEED, Doc.SITEMAP, Doc.INDEX):
        page = int(web.places.of_kind(kind)[0])
        for after in (0.0, 1.0, 30.0):
            t = ORIGIN + after * DAY
            listed = [web.state(item, t) for item in web.listed(page)]
            state = web.state(page, t)
            assert state.version == sum(item.version for item in listed)
            assert state.modified == max(item.modified for item in listed)
            assert state.until == min(item.until for item in listed)
        assert web.rates[page] == pytest.approx(web.rates[web.listed(page)].sum())


def test_asking_does_not_change_the_answer():
    """States are remembered between questions; what is remembered never shows."""
    web, other = Web(pages=300, hosts=3), Web(pages=300, hosts=3)
    times = [ORIGIN + after * DAY for after in (50.0, 0.0, 10.0, 50.0, 49.9)]
    asked = [[web.state(page, t) for page in range(300)] for t in times]
    assert asked == [[other.state(page, t) for page in range(300)] for t in reversed(times)][::-1]
