"""The referee of scripted sites by answers by hand; and a short version of `xyro lab news`, over real HTTP."""

from __future__ import annotations

import numpy as np
import pytest

from xyro.lab.crawls.news import GRAIN, NewsTrial, measure
from xyro.lab.crawls.script_referee import ScriptReferee, best_intervals, planned_reads
from xyro.lab.web.news_site import FRONT, HOUR, NewsShape, kind_of, news_site, weights
from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN


def judged(changes, reads, weights=None, end=100.0):
    """Reads as pairs (page, time)."""
    site = {f"/{page}": ScriptedPage(changes=times) for page, times in enumerate(changes)}
    referee = ScriptReferee(site, np.array(weights or [1.0] * len(changes)))
    pages, times = zip(*reads, strict=True)
    return referee.judge(np.array(pages), np.array(times, float), end)


def test_a_copy_is_fresh_from_its_read_to_the_next_change():
    verdict = judged([[40.0, 60.0]], [(0, 10.0), (0, 50.0), (0, 70.0)])
    assert verdict.freshness(0.0, 100.0) == pytest.approx((30 + 10 + 30) / 100)
    assert verdict.freshness(20.0, 60.0) == pytest.approx((20 + 10) / 40)


def test_a_change_is_missed_until_the_next_read_and_each_counts():
    verdict = judged([[20.0, 30.0, 90.0]], [(0, 50.0), (0, 0.0)])
    assert verdict.changes_missed(0.0, 100.0) == pytest.approx((30 + 20 + 10) / 100)
    assert verdict.changes_missed(40.0, 60.0) == pytest.approx(2 * 10 / 20)


def test_a_page_is_not_fresh_before_its_first_read_and_misses_nothing():
    verdict = judged([[20.0], []], [(0, 60.0)], weights=[3.0, 1.0])
    assert verdict.freshness(0.0, 100.0) == pytest.approx(0.75 * 40 / 100)
    assert verdict.changes_missed(0.0, 100.0) == 0.0


def test_a_read_at_the_moment_of_a_change_sees_it():
    verdict = judged([[20.0]], [(0, 0.0), (0, 20.0)])
    assert verdict.freshness(0.0, 100.0) == 1.0 and verdict.changes_missed(0.0, 100.0) == 0.0


def test_the_plan_with_known_rates_takes_the_budget_and_keeps_the_floor():
    importance, rates = np.array([100.0, 1.0, 1.0]), np.array([100.0, 1.0, 4.0])
    spans = best_intervals(importance, rates, 20.0, 0.1)
    assert (1.0 / spans).sum() == pytest.approx(20.0) and spans[0] == pytest.approx(0.1)
    assert spans[1] / spans[2] == pytest.approx(2.0), "by 1 / sqrt(r lambda)"
    pages, times = planned_reads(spans, 0.0, 30.0)
    assert len(pages) == pytest.approx(20 * 30 + 3, abs=3)
    assert np.diff(np.sort(times[pages == 1])[1:]) == pytest.approx(spans[1] * DAY)


def test_the_site_is_what_its_docstring_says():
    shape = NewsShape(14.0)
    site = news_site(shape)
    assert len(site) == shape.pages == 5301 and {kind_of(path) for path in site} == {"front", "article", "archive"}
    assert all(link in site for page in site.values() for link in page.links)
    assert all(len(page.changes) == 2 for path, page in site.items() if kind_of(path) == "article")
    gaps = np.diff(site[FRONT].changes)
    hours = (np.array(site[FRONT].changes[:-1]) - ORIGIN) % DAY / HOUR
    by_day = (hours >= 7) & (hours < 23)
    assert gaps[by_day].min() >= 300 and gaps[by_day].max() <= 1200 and (gaps[~by_day] == HOUR).all()
    changed = sum(len(page.changes) for path, page in site.items() if kind_of(path) == "archive")
    assert changed == pytest.approx(5000 * 14 / 365, rel=0.25)
    assert weights(site).argmax() == 0, "the front page matters most"


@pytest.mark.long
def test_a_short_fortnight_is_judged_whole():
    report = measure(NewsTrial(NewsShape(4.0, 20, 200), 0.5))
    per_day = 0.5 * 221
    assert [day["reads"] for day in report["days"][1:]] == pytest.approx([per_day] * 3, rel=0.05)
    assert "followed" not in report["broken"] and "headline inside" not in report["broken"], report
    whole = report["whole"]
    assert whole["xyro"]["missed"] < 0.1 * whole["uniform"]["missed"], "the front page is found to be fast"
    uniform, best = whole["uniform"]["freshness"], whole["known_rates"]["freshness"]
    assert uniform + 0.25 * (best - uniform) < whole["xyro"]["freshness"] <= best  # four days are few to learn rates in
    assert report["front_lag_hours"] * HOUR >= GRAIN / 2
