"""Copies as the server sees them, against sums over small steps of time and against the simulator."""

import numpy as np
import pytest

from lab.answers import Request
from lab.live import Live
from lab.places import Doc
from lab.refresh_copies import Copies
from lab.shape import DAY, ORIGIN
from lab.web import Web


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
