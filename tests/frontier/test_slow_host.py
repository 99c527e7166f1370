"""A host that can be read less often than its pages are due: its reads go where P1's law sends them, not in a row."""

from __future__ import annotations

import collections
import math

import pytest

from tests.frontier.rig import Crawl, signature, url
from xyro.configs.schema import CrawlSettings, RefreshSettings, Settings
from xyro.frontier.bandwidth import DAY

GAP = 300.0
"""seconds for which the host is left alone after a read"""
NEWS = url(0, 0)
PAGES = [url(0, page) for page in range(200)]
CHANGES = {NEWS: DAY / 72} | dict.fromkeys(PAGES[1:], 10 * DAY)
"""seconds between the changes of a page"""


def slow_crawl(bandwidth):
    settings = Settings(
        CrawlSettings(scope="any"),
        refresh=RefreshSettings(bandwidth=bandwidth, audit=0.0, least_chance=0.0, min_interval=0.0),
    )
    crawl = Crawl.in_memory(settings=settings, refreshing=True)
    crawl.submit(*PAGES)
    return crawl


def read_for(crawl, days):
    """Reads of each page by a fetcher that keeps the gap, and takes the orders as they came; the most that were out."""
    reads, out = collections.Counter(), 0
    end, free_at = crawl.now + days * DAY, crawl.now
    while crawl.now < end:
        crawl.turn()
        out = max(out, len(crawl.orders))
        if crawl.orders and crawl.now >= free_at:
            order, free_at = next(iter(crawl.orders.values())), crawl.now + GAP
            version = 1_000 * PAGES.index(order.url) + int(crawl.now / CHANGES[order.url])
            crawl.answer(order, signature=signature(version), host_next=free_at)
            reads[order.url] += 1
        elif not crawl.pending[0]:
            wake = min(free_at if crawl.orders else math.inf, crawl.frontier.scheduler.next_time())
            crawl.now = max(crawl.now + 0.01, min(wake, crawl.now + 60.0, end))
    return reads, out


@pytest.mark.long
@pytest.mark.parametrize("bandwidth", ["20000/day", 0.0], ids=["more than the host allows", "what is free"])
def test_a_host_that_cannot_be_read_as_often_as_its_pages_are_due_keeps_their_proportions(bandwidth):
    crawl = slow_crawl(bandwidth)
    read_for(crawl, 6)
    reads, out = read_for(crawl, 5)
    paces = {page: math.sqrt(DAY / seconds) for page, seconds in CHANGES.items()}
    part = paces[NEWS] / sum(paces.values())
    assert sum(reads.values()) >= 0.95 * 5 * DAY / GAP, "the host is used"
    assert part / 1.5 < reads[NEWS] / sum(reads.values()) < 1.5 * part
    assert len(reads) == len(PAGES)
    assert out <= 4, "what waits is not chosen yet"
    assert crawl.frontier.scheduler.most_reads == pytest.approx(DAY / GAP)
    assert crawl.frontier.scheduler.revisits.host_queues.pages() <= 2 * len(PAGES)
