"""What the model expects: against the sum over all pages, and against a world that changes as it says."""

import math

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.dated_pages import DatedPage
from xyro.refresh.expected import DAY, Expected, fading
from xyro.refresh.rate_belief import NODES, OCTAVES, START, PageBelief, shares_of_pages, unread
from xyro.refresh.rate_sums import RateSums

NOW = 1.7e9


def faded(page, age):
    """Probability that a page is as it was `age` days ago, node by node."""
    shares = page.belief.shares().tolist()
    return sum(share * math.exp(-(2.0 ** (-12 + half / 2)) * age) for half, share in enumerate(shares))


def believed(changes, rate):
    """About a page that showed so many changes, about so often."""
    return PageBelief(RateSums(changes / rate, changes, 1e-6 * changes), START)


def exactly(pages, now):
    """Freshness, page by page."""
    whole = sum(page.importance for page in pages)
    return sum(page.importance * faded(page, (now - page.read) / DAY) for page in pages) / whole


def whole_of(pages, now):
    """Pages that stand for themselves, and are believed by their own priors."""
    shares = shares_of_pages([page.belief for page in pages]) if pages else np.zeros((0, NODES))
    return Expected.from_pages(pages, now, shares, np.array([page.importance for page in pages]))


def made(rng, count, now=NOW, most=30.0):
    """Pages as a crawl has them: importance of a heavy tail, rates over four decades, many read once."""
    found = []
    for _ in range(count):
        changes = float(rng.choice([0.0, 1.0, 4.0, 20.0, 45.0, 100.0]))
        rate = math.exp(rng.normal(math.log(0.1), 1.5))
        importance = rng.pareto(1.2) + 0.1
        age = rng.uniform(0, min(most, 5 / rate)) * DAY
        found.append(DatedPage(math.sqrt(importance * rate), rate, believed(changes, rate), float(int(now - age))))
    return found


@pytest.mark.parametrize("seen", [0.0, 1.0, 5.0, 30.0, 100.0])
@pytest.mark.parametrize("rate", [0.003, 0.1, 3.0, 50.0, 700.0])
def test_one_page_fades_as_its_belief_says(seen, rate):
    for changes in (0.0, 0.05, 0.3, 1.0, 2.0, 4.0):
        age = min(changes / rate, 400.0)
        page = DatedPage(1.0, rate, believed(seen, rate), NOW)
        found = whole_of([page], NOW).freshness(NOW + age * DAY)
        assert found == pytest.approx(faded(page, age), abs=1e-6)
        fresh, stale = fading(page.belief.shares(), age)
        assert fresh == pytest.approx(faded(page, age), rel=1e-9, abs=1e-12)
        grid = np.linspace(0.0, age, 2001)
        by_hand = np.trapezoid([1.0 - faded(page, each) for each in grid], grid)
        assert stale == pytest.approx(by_hand, rel=1e-3, abs=1e-9)


def test_all_pages_as_page_by_page():
    pages = made(np.random.default_rng(1), 3000)
    seen = whole_of(pages, NOW)
    for later in (0.0, 0.1, 1.0, 10.0):
        now = NOW + later * DAY
        assert seen.freshness(now) == pytest.approx(exactly(pages, now), abs=1e-6)


def test_pages_of_a_sample_stand_for_others_and_are_believed_as_others_say():
    pages = made(np.random.default_rng(9), 200)
    shares, stands = np.stack([unread(START)] * 200), np.full(200, 3.0)
    seen = Expected.from_pages(pages, NOW, shares, stands)
    alike = [page._replace(belief=PageBelief(RateSums(), START)) for page in pages]
    ages = [(NOW - page.read) / DAY for page in pages]
    assert seen.freshness(NOW) == pytest.approx(np.mean([faded(*each) for each in zip(alike, ages, strict=True)]))
    assert seen.importance == pytest.approx(600.0)
    before = seen.freshness(NOW + DAY)
    seen.scale(50.0)
    assert seen.importance == pytest.approx(50.0) and seen.freshness(NOW + DAY) == pytest.approx(before)


@given(st.integers(0, 2**32), st.integers(1, 20), st.floats(0, 100))
def test_partitions_together_are_the_whole(seed, count, later):
    pages = made(np.random.default_rng(seed), count)
    half = count // 2
    one, other = whole_of(pages[:half], NOW), whole_of(pages[half:], NOW + later)
    one.merge(other)
    whole, now = whole_of(pages, NOW), NOW + later + 3 * DAY
    assert one.freshness(now) == pytest.approx(whole.freshness(now), abs=1e-4)


@given(st.integers(0, 2**32), st.integers(0, 5))
def test_state_goes_on_where_it_was(seed, count):
    pages = made(np.random.default_rng(seed), count)
    seen = whole_of(pages, NOW)
    again = Expected.load(seen.dump())
    assert again.dump() == seen.dump()
    for later in (0.0, 0.01, 1.0, 100.0):
        now = NOW + later * DAY
        assert again.freshness(now) == (pytest.approx(seen.freshness(now), abs=1e-6) if pages else None)
        assert again.stale(now) == pytest.approx(seen.stale(now), abs=1e-6 * max(seen.importance, 1.0))


def test_a_dump_is_some_3_kb_whatever_many_pages_there_are():
    seen = whole_of(made(np.random.default_rng(7), 3000), NOW)
    assert len(seen.dump()["sums"]) == OCTAVES and len(msgpack.packb(seen.dump())) < 3_600


def test_a_clock_that_is_set_back_waits():
    seen = whole_of([DatedPage(1.0, 1.0, believed(1.0, 1.0), NOW)], NOW)
    assert seen.freshness(NOW - DAY) == seen.freshness(NOW) == pytest.approx(1.0)


def test_nothing_is_known_without_pages():
    assert whole_of([], NOW).freshness(NOW) is None


def test_expectation_is_what_happens_where_rates_are_as_believed():
    """Rates drawn from the belief: the share of pages that are as they were is the expected one, whatever their age."""
    rng = np.random.default_rng(4)
    count, belief = 40_000, believed(2.0, 0.3)
    rates, ages = 2.0 ** (-12 + rng.choice(51, count, p=belief.shares()) / 2), rng.uniform(0, 20, count)
    pages = [DatedPage(1.0, belief.rate(), belief, float(int(NOW - age * DAY))) for age in ages.tolist()]
    fresh = rng.random(count) < np.exp(-rates * ages)
    assert whole_of(pages, NOW).freshness(NOW) == pytest.approx(fresh.mean(), abs=4 * 0.5 / math.sqrt(count))
