"""What counts as bandwidth: the machine's, not that of one slow host."""

import heapq
from collections import Counter

import pytest

from configs.schema import Crawl as CrawlSettings
from configs.schema import Refresh, Settings, Store
from tests.crawl.rig import START, Crawl, url

SLOW, FAST = 400, 50
HOSTS = 8
LINKS = [url(0, page) for page in range(1, SLOW)] + [
    url(host, page) for host in range(1, HOSTS + 1) for page in range(1, FAST + 1)
]
SECONDS = {True: 20.0, False: 1.0}
"""between two reads of the slow host, and of the others"""


def test_one_slow_host_does_not_slow_the_others():
    """Its 400 pages take 2.2 hours to read; all others would be read as rarely, if that were the bandwidth of all."""
    settings = Settings(
        CrawlSettings(scope="any"),
        store=Store(leases_per_host=16),
        refresh=Refresh(time_unit=60, audit=0.0, max_interval=1e7, min_interval=1.0),
    )
    crawl = Crawl.in_memory(settings=settings, refreshing=True)
    crawl.submit(url(0))
    free, under_way, reads = Counter(), [], Counter()
    while crawl.now < START + 3 * 3600:
        for order in crawl.turn():
            host = order.url.split("/")[2]
            free[host] = max(free[host], crawl.now) + SECONDS[host == "h0.example"]
            heapq.heappush(under_way, (free[host], order.page, order))
        soon = min(under_way[0][0] if under_way else START + 1e9, crawl.now + 60.0)
        crawl.now = max(crawl.now + 0.01, soon)
        while under_way and under_way[0][0] <= crawl.now:
            order = heapq.heappop(under_way)[2]
            if crawl.now >= START + 1.5 * 3600:
                reads[order.url.split("/")[2] == "h0.example"] += 1
            version = sum(reads.values()).to_bytes(16, "big")
            crawl.answer(order, LINKS if order.url == url(0) else LINKS[:3], signature=version)
    assert reads[True] == pytest.approx(1.5 * 3600 / SECONDS[True], rel=0.02), "the slow host is read all the time"
    assert reads[False] > 2 * reads[True], "and holds up nobody"
