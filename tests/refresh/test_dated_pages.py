"""Totals of all pages are exact; the sample of them is in proportion to importance, and as good as all of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.dated_pages import LEAST_SIZE, SIZE, DatedPage, PageSample, PageTotals, draw
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import DAY, RateSums

NOW = 1.7e9
UNREAD = PageBelief(RateSums(), START)


def page(importance, rate=0.1, read=NOW):
    return DatedPage(math.sqrt(importance * rate), rate, UNREAD, read)


def made(rng, count):
    return [page(r, rate, float(int(NOW - age))) for r, rate, age in zip(
        (rng.pareto(1.2, count) + 0.1).tolist(), rng.lognormal(-2.3, 1.5, count).tolist(),
        (rng.uniform(0, 30, count) * DAY).tolist(), strict=True)]  # fmt: skip


def totals_of(pages):
    found = PageTotals()
    found.replace((), pages)
    return found


def test_thirty_thousand_replacements_leave_the_totals_of_the_pages_as_they_are():
    rng = np.random.default_rng(2)
    pages = made(rng, 500)
    totals = totals_of(pages)
    for _ in range(300):
        which = rng.choice(len(pages), 100, replace=False).tolist()
        new = made(rng, len(which))
        totals.replace([pages[i] for i in which], new)
        for i, each in zip(which, new, strict=True):
            pages[i] = each
    again = totals_of(pages)
    assert totals.dump()[:3] == again.dump()[:3] and PageTotals.load(again.dump()).dump() == again.dump()
    whole = sum(each.importance for each in pages)
    missed = sum(each.weight**2 * (NOW - each.read) / DAY for each in pages)
    assert again.importance == pytest.approx(whole) and again.obsolescence(NOW) == pytest.approx(missed / whole)
    late = NOW - 9 * DAY  # a clock that was set back waits for the latest read
    assert again.obsolescence(late) == again.obsolescence(max(each.read for each in pages)) < again.obsolescence(NOW)
    totals.replace(pages, ())
    assert totals.importance == 0.0 and totals.obsolescence(NOW) is None


def test_partitions_together_are_the_whole_and_pages_without_weight_do_not_count():
    pages = made(np.random.default_rng(3), 50)
    one = totals_of(pages[:20])
    one.merge(totals_of([*pages[20:], DatedPage(0.0, 1.0, UNREAD, NOW), DatedPage(1.0, 0.0, UNREAD, NOW)]))
    assert one.dump() == totals_of(pages).dump()


@given(st.integers(0, 2**40), st.integers(0, 2**63))
def test_a_page_has_one_number_for_ever(number, seed):
    assert 0.0 <= draw(number, seed) < 1.0 and draw(number + 1, seed) != draw(number, seed) != draw(number, seed + 1)


def test_numbers_are_even_and_each_seed_has_its_own():
    found = np.array([draw(number, 7) for number in range(20_000)])
    assert np.histogram(found, 10, (0, 1))[0] == pytest.approx(np.full(10, 2000), abs=200)
    assert abs(np.corrcoef(found, [draw(number, 8) for number in range(20_000)])[0, 1]) < 0.03


def test_a_small_crawl_is_its_own_sample():
    pages, sample = made(np.random.default_rng(4), 2 * SIZE), PageSample(1)
    for number, each in enumerate(pages):
        sample.put(number, each, 3)
    assert len(sample.pages) == 2 * SIZE and sample.threshold == 0.0
    assert sample.stands_for(sample.pages.values()).sum() == pytest.approx(sum(each.importance for each in pages))
    sample.put(5, None, 3)
    sample.put(6, DatedPage(0.0, 1.0, UNREAD, NOW), 3)
    assert 5 not in sample.pages and 6 not in sample.pages


def test_sums_over_the_sample_are_those_over_all_pages():
    """Of 40 samples of 60,000 pages: the mean is right to its standard error, and one sample to a few hundredths. Pages
    come, leave and are dated anew, so this holds of what membership by itself makes of them."""
    rng = np.random.default_rng(5)
    pages = made(rng, 60_000)
    told = [rng.random() for _ in pages]
    truth = sum(each.importance * x for each, x in zip(pages, told, strict=True))
    whole = sum(each.importance for each in pages)
    found, shares = [], []
    for seed in range(40):
        sample = PageSample(seed)
        for number in rng.permutation(len(pages)).tolist():
            sample.put(number, page(50.0), 0)
            sample.put(number, pages[number], 0)
        stands = sample.stands_for(sample.pages.values())
        assert 0.8 * SIZE <= len(sample.pages) <= 2 * SIZE
        estimate = float((stands * [told[number] for number in sample.pages]).sum())
        found.append(estimate / truth)
        shares.append(estimate / stands.sum() - truth / whole)
    assert np.mean(found) == pytest.approx(1.0, abs=4 * np.std(found) / math.sqrt(40)) and np.std(found) < 0.05
    assert np.std(shares) < 0.01


def test_heavy_pages_are_always_in_it_and_it_is_divided_among_partitions():
    sample = PageSample(1, partitions=16)
    for number in range(20_000):
        sample.put(number, page(1000.0 if number % 500 == 0 else 1.0), 0)
    assert sample.size == LEAST_SIZE and len(sample.pages) <= 2 * LEAST_SIZE
    assert all(number in sample.pages for number in range(0, 20_000, 500))


def test_it_tells_who_came_and_who_left():
    sample, inside = PageSample(1), set()
    for number, each in enumerate(made(np.random.default_rng(6), 3 * SIZE)):
        sample.put(number, each, 0)
        if number % 7 == 0:
            sample.put(number // 2, None, 0)
        inside = {page for page in inside | sample.moved if page in sample.pages}
        sample.moved.clear()
    assert inside == set(sample.pages) and sample.threshold > 0.0
