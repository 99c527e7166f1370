"""Copies as the server sees them, against sums over small steps of time and against the simulator."""

import numpy as np
import pytest

from xyro.lab.refresh.copies import Copies
from xyro.lab.refresh.live import Live
from xyro.lab.web.answers import Request
from xyro.lab.web.places import Doc
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web
from xyro.refresh.trust import Source


@pytest.fixture(scope="module")
def web():
    return Web(seed=5, pages=120, hosts=4, rate_median=0.2)


def visits(web, live, days, seed=0):
    """Random reads of every page, in order of time: (page, t)."""
    rng = np.random.default_rng(seed)
    return [(int(rng.choice(live.pages)), ORIGIN + t) for t in np.sort(rng.random(400) * days * DAY)]


def read(web, live, page, t):
    live.served(web.host(page), Request("GET", web.places.path(page), {}), t)


def test_only_pages_that_are_refreshed_count(web):
    live = Live(web)
    kinds = {Doc(kind) for kind in web.places.kinds[live.pages]}
    assert not kinds & {Doc.FILE, Doc.PRIVATE, Doc.DEAD, Doc.OUTSIDE} and Doc.HTML in kinds
    assert np.isclose(live.importance.mean(), 1.0)
    for path in ("/robots.txt", "/nothing.html", web.places.path(int(web.places.of_kind(Doc.DEAD)[0]))):
        live.served(0, Request("GET", path, {}), ORIGIN)
    assert live.reads == live.read_pages == 0


def test_freshness_is_the_share_of_time_that_versions_agree(web):
    live, have = Live(web), {}
    live.begin(ORIGIN)
    pending = visits(web, live, 10)
    fresh = []
    for t in np.arange(ORIGIN, ORIGIN + 10 * DAY, 1800.0).tolist():
        while pending and pending[0][1] <= t:
            page, at = pending.pop(0)
            read(web, live, page, at)
            have[page] = web.version(page, at)
        agree = np.array([have.get(page) == web.version(page, t) for page in live.pages.tolist()])
        fresh.append((agree * live.importance).sum() / live.importance.sum())
        assert live.fresh_now(t) == pytest.approx(fresh[-1])
        assert live.fresh_now(t, np.ones(len(agree))) == pytest.approx(agree.mean())
    for page, at in pending:
        read(web, live, page, at)
    assert live.freshness(ORIGIN + 10 * DAY) == pytest.approx(np.mean(fresh), abs=0.003)
    assert live.reads == 400 and live.read_pages == len({page for page, _ in visits(web, live, 10)})


def test_the_simulator_sees_the_same_changes(web):
    """Its integrals over the world it is given are those of the server over the same reads."""
    live = Live(web)
    world = live.world(10.0, 2.0)
    copies = Copies(world)
    place = {page: np.array([number]) for number, page in enumerate(live.pages.tolist())}
    for page in live.pages.tolist():
        read(web, live, page, ORIGIN)
    begun = False
    for page, t in visits(web, live, 10, seed=1):
        if not begun and t >= ORIGIN + 2 * DAY:
            live.begin(ORIGIN + 2 * DAY)
            copies.begin(2.0)
            begun = True
        read(web, live, page, t)
        copies.read(place[page], (t - ORIGIN) / DAY)
    copies.end(10.0)
    stale = (world.importance * copies.stale).sum() / (world.importance.sum() * 8.0)
    assert live.freshness(ORIGIN + 10 * DAY) == pytest.approx(1 - stale, abs=1e-6)


def test_seconds_of_freshness_go_on_through_the_burn_in(web):
    """Of a page read at once and never again: until its first change, whenever one begins to measure."""
    live = Live(web)
    for page in live.pages.tolist():
        read(web, live, page, ORIGIN)
    until = np.array([web.state(page, ORIGIN).until for page in live.pages.tolist()])
    live.begin(ORIGIN + DAY)
    for days in (1.0, 2.0, 5.0):
        end = ORIGIN + days * DAY
        assert np.allclose(live.fresh_seconds(end), np.minimum(until, end) - ORIGIN)
    left = np.clip(np.minimum(until, ORIGIN + 5 * DAY) - (ORIGIN + DAY), 0.0, None) @ live.importance
    assert live.freshness(ORIGIN + 5 * DAY) == pytest.approx(left / (live.importance.sum() * 4 * DAY))


def test_the_simulator_is_told_what_the_web_dates(web):
    live = Live(web)
    history = live.history(4.0, 1.0)
    for place, page in enumerate(live.pages.tolist()):
        if web.status(page) == 200:
            assert history.ages[place] * DAY == pytest.approx(ORIGIN - web.state(page, ORIGIN).modified)
        else:
            assert np.isnan(history.ages[place]), "a redirect has no date"
    assert (history.world.days, history.world.burn, history.world.n) == (4.0, 1.0, len(live.pages))


def test_feeds_and_sitemaps_date_what_they_list(web):
    live = Live(web)
    lists = {one.page: one for one in live.history(1.0, 0.0).listings}
    kinds = [web.kind(page) for page in live.pages.tolist()]
    assert set(lists) == {place for place, kind in enumerate(kinds) if kind in (Doc.FEED, Doc.SITEMAP, Doc.INDEX)}
    for place, one in lists.items():
        page = int(live.pages[place])
        items = live.pages[one.items].tolist()
        assert one.host == web.host(page)
        if kinds[place] is Doc.FEED:
            assert one.source is Source.FEED and web.listed(page)[0] not in items, "the home page has no date in it"
        else:
            assert one.source is Source.SITEMAP
        assert set(items) <= set(web.listed(page)) and len(items) >= 1
