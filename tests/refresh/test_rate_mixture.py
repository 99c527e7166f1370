"""What is believed of the rates of all pages together: beside the beliefs themselves, and beside what then happens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.dated_pages import DatedPage
from xyro.refresh.expected import DAY, Expected, RateMixture, fading
from xyro.refresh.policy import Policy, Rules
from xyro.refresh.population import Population
from xyro.refresh.rate_belief import RATES, START, PageBelief, RatePrior, octave, shares_of_pages, unread
from xyro.refresh.rate_sums import RateSums

NOW = 1.7e9
NOTHING_SHOWN = PageBelief(RateSums(), START)
beliefs = st.builds(
    lambda quiet, changes, days: PageBelief(RateSums(quiet, changes, changes * days), RatePrior()),
    st.floats(0.0, 300.0),
    st.floats(0.0, 20.0),
    st.floats(1e-3, 10.0),
)


def dated(belief: PageBelief, importance: float = 1.0) -> DatedPage:
    rate = belief.rate()
    return DatedPage(math.sqrt(importance * rate), rate, belief, NOW)


def whole_of(pages: list[DatedPage], now: float) -> Expected:
    """Pages that stand for themselves, and are believed by their own priors."""
    importance = np.array([page.importance for page in pages])
    return Expected.from_pages(pages, now, shares_of_pages([page.belief for page in pages]), importance)


def believed(pages: list[DatedPage]) -> RateMixture:
    return whole_of(pages, NOW).believed


@given(beliefs, st.floats(1e-3, 100.0))
def test_a_page_read_every_so_often_is_as_fresh_as_its_belief_says(belief, days):
    page = dated(belief)
    found = believed([page]).fresh(np.array([page.pace]), np.array([days]))
    assert found.tolist() == pytest.approx([1.0 - fading(belief.shares(), days)[1] / days], abs=1e-6)


def test_a_page_of_which_nothing_was_shown_lasts_far_longer_than_one_that_is_known_to_change_so_often():
    page = dated(NOTHING_SHOWN)
    assert NOTHING_SHOWN.quiet(10.0) == pytest.approx(0.41, abs=0.01) and math.exp(-10.0 * page.pace) < 0.06
    (fresh,) = believed([page]).fresh(np.array([page.pace]), np.array([20.0]))
    (by_rate,) = RateMixture().fresh(np.array([page.pace]), np.array([20.0]))
    assert by_rate == pytest.approx((1.0 - math.exp(-20.0 * page.pace)) / (20.0 * page.pace)) and by_rate < 0.18
    assert fresh == pytest.approx(float(unread(START) @ (-np.expm1(-20.0 * RATES) / (20.0 * RATES)))) and fresh > 0.45


def test_pages_of_an_octave_count_by_their_importance_and_those_of_others_do_not():
    slow = dated(PageBelief(RateSums(400.0, 1.0, 1.0), START))
    wide, narrow = dated(NOTHING_SHOWN, 3.0), dated(PageBelief(RateSums(70.0, 21.0, 21.0), START))
    assert octave(wide.pace) == octave(narrow.pace) != octave(slow.pace)
    rates, days = np.array([wide.pace, slow.pace]), np.array([8.0, 8.0])
    mixed, alone = believed([wide, narrow, slow]).fresh(rates, days)
    each = [1.0 - fading(page.belief.shares(), 8.0)[1] / 8.0 for page in (wide, narrow, slow)]
    assert (mixed, alone) == pytest.approx((0.75 * each[0] + 0.25 * each[1], each[2]), abs=1e-6)


def test_a_plan_of_pages_in_doubt_foretells_what_happens_and_one_by_rates_does_not():
    """Pages whose rates are drawn from the prior, which is all that is known of them, each read every 20 days."""
    rng, count = np.random.default_rng(1), 4_000
    rates = RATES[rng.choice(len(RATES), count, p=unread(START))]
    came = float(np.mean(-np.expm1(-20.0 * rates) / (20.0 * rates)))
    page = dated(NOTHING_SHOWN)
    pages = Population.from_pages(np.full(count, page.weight), np.full(count, page.pace))
    rules, reads = Rules(Policy()), count / 20.0
    assert pages.outlook(reads, rules, believed([page])).freshness == pytest.approx(came, abs=0.02)
    assert pages.outlook(reads, rules).freshness < came - 0.2
    for target in (0.3, 0.9):
        needed = pages.needed(target, rules, believed([page]))
        assert pages.outlook(needed, rules, believed([page])).freshness == pytest.approx(target, abs=1e-3)


def copies(count: int, days: float, rng: np.random.Generator, synchronous: bool) -> tuple[Population, Expected]:
    """Pages of which only the prior is known, read every so many days in turn; or all at once, just now."""
    page = dated(NOTHING_SHOWN)
    ages = np.zeros(count) if synchronous else days * rng.random(count)
    pages = [page._replace(read=NOW - age * DAY) for age in ages.tolist()]
    sketch = Population.from_pages(np.full(count, page.weight), np.full(count, page.pace))
    return sketch, whole_of(pages, NOW)


def coming(pages: tuple[Population, Expected], every: float, days: float) -> float:
    sketch, expected = pages
    stale = expected.coming(sketch.long_run(sketch.pages / every, Rules(Policy())), NOW, days)
    return 1.0 - stale / expected.importance


@pytest.mark.parametrize("every", [0.5, 5.0, 40.0])
def test_what_is_kept_is_kept_for_days_and_weeks(every):
    pages = copies(2_000, every, np.random.default_rng(3), synchronous=False)
    fresh = 1.0 - fading(NOTHING_SHOWN.shares(), every)[1] / every
    assert [coming(pages, every, days) for days in (1e-3, 1.0, 7.0, 1e4)] == pytest.approx([fresh] * 4, abs=0.01)


@pytest.mark.parametrize(("days", "most"), [(1.0, 0.007), (7.0, 0.02)])
@pytest.mark.parametrize("every", [2.0, 10.0, 40.0])
def test_after_all_was_read_at_once_copies_age_as_evenly_spread_reads_let_them(every, days, most):
    """Each page is read next after `every` x an even draw, and then every so often."""
    ages = [np.where(t < phases, t, (t - phases) % every) for phases in [every * (np.arange(200) + 0.5) / 200]
            for t in days * (np.arange(100) + 0.5) / 100]  # fmt: skip
    came = float(np.mean([NOTHING_SHOWN.quiet(age) for age in np.concatenate(ages).round(2).tolist()]))
    pages = copies(200, every, np.random.default_rng(3), synchronous=True)
    long_run = 1.0 - fading(NOTHING_SHOWN.shares(), every)[1] / every
    assert coming(pages, every, days) == pytest.approx(came, abs=most) and came > long_run


def test_what_is_never_read_only_fades():
    (_, expected) = copies(100, 1.0, np.random.default_rng(3), synchronous=True)
    stale = expected.coming(np.zeros_like(expected.believed.sums), NOW, 10.0) / expected.importance
    assert stale == pytest.approx(fading(NOTHING_SHOWN.shares(), 10.0)[1] / 10.0, abs=1e-3)


def test_a_restart_keeps_it_and_parts_add_up():
    rng = np.random.default_rng(2)
    sums = [RateSums(float(quiet), 2.0, 1.0) for quiet in np.exp(rng.uniform(-3.0, 5.0, 200))]
    pages = [dated(PageBelief(each, START), float(rng.pareto(1.2))) for each in sums]
    whole = whole_of(pages, NOW)
    again = Expected.load(whole.dump())
    largest = whole.believed.sums.max(axis=1, keepdims=True)
    assert np.abs(again.believed.sums - whole.believed.sums).max() < 5e-4 * largest.max()
    assert (np.abs(again.believed.sums - whole.believed.sums) <= 6e-4 * largest).all() and largest.max() > 1.0
    assert again.dump()["believed"] == whole.dump()["believed"]
    one, other = whole_of(pages[:90], NOW), whole_of(pages[90:], NOW + DAY)
    one.merge(other)
    assert one.believed.sums == pytest.approx(whole.believed.sums)
    assert RateMixture.load(RateMixture().dump([])).sums.any() == np.False_
