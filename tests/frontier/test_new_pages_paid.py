"""A bandwidth that covers new pages: so many reads in all, divided by gamma; what one kind leaves the other gets."""

from __future__ import annotations

import pytest

from tests.frontier.rig import START, Crawl, url
from xyro.configs.schema import CrawlSettings, RefreshSettings, Settings

PER_HOUR = 120
NEW = [url(host, page) for host in range(4) for page in range(1, 2000)]


def reads_by_hour(hours, refreshing=True, shown=NEW, **refresh):
    """(first reads, later reads) of each hour; a home page of four hosts shows all others."""
    options = {"audit": 0.0, "bandwidth": f"{PER_HOUR}/h", "bandwidth_covers": "all"} | refresh
    settings = Settings(CrawlSettings(scope="any"), refresh=RefreshSettings(**options))
    crawl = Crawl.in_memory(settings=settings, refreshing=refreshing)
    crawl.submit(*(url(host) for host in range(4)))
    read: set[str] = set()
    found = [[0, 0] for _ in range(hours)]
    end = START + hours * 3600.0
    while crawl.now < end:
        for order in crawl.turn():
            found[int((crawl.now - START) // 3600)][order.url in read] += 1
            read.add(order.url)
            crawl.answer(order, shown if order.url == url(0) else ())
        if not crawl.pending[0]:
            crawl.now = max(crawl.now + 1.0, min(crawl.frontier.scheduler.next_time(), crawl.now + 600.0))
    return found


@pytest.mark.long
@pytest.mark.parametrize("gamma", [10.0, 50.0, 90.0])
def test_gamma_divides_what_was_set(gamma):
    for new, known in reads_by_hour(12, gamma=gamma)[2:]:
        assert new + known == pytest.approx(PER_HOUR, abs=4)
        assert new == pytest.approx(PER_HOUR * gamma / 100.0, abs=4)


@pytest.mark.long
def test_new_pages_get_what_refresh_has_no_page_for():
    found = reads_by_hour(10, least_chance=0.5, gamma=10.0)
    for new, known in found[2:]:
        assert known <= 4 and new == pytest.approx(PER_HOUR, abs=4), found


@pytest.mark.long
def test_known_pages_get_all_where_no_new_one_waits():
    for new, known in reads_by_hour(8, shown=NEW[:20])[3:]:
        assert new == 0 and known == pytest.approx(PER_HOUR, abs=4)


@pytest.mark.long
def test_a_crawl_that_never_refreshes_keeps_to_it_too():
    found = reads_by_hour(6, refreshing=False)
    assert all(known == 0 and new == pytest.approx(PER_HOUR, abs=4) for new, known in found[1:])


@pytest.mark.long
def test_by_default_a_bandwidth_is_refreshs_own():
    found = reads_by_hour(2, bandwidth_covers="refresh")
    assert found[0][0] == len(NEW) + 4, "all that was found is read at once"
    assert found[1][1] == pytest.approx(PER_HOUR, abs=4)
