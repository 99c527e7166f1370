"""What counts as bandwidth: the machine's, not that of one slow host."""

import heapq
from collections import Counter

import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings, StoreSettings
from xyro.frontier.scheduler import LOOK, Bottleneck
from xyro.metadata.states import State

SLOW, FAST = 400, 50
HOSTS = 8
LINKS = [url(0, page) for page in range(1, SLOW)] + [
    url(host, page) for host in range(1, HOSTS + 1) for page in range(1, FAST + 1)
]
SECONDS = {True: 20.0, False: 1.0}
"""between two reads of the slow host, and of the others"""


@pytest.mark.long
def test_one_slow_host_does_not_slow_the_others():
    """Its 400 pages take 2.2 hours to read; all others would be read as rarely, if that were the bandwidth of all."""
    settings = Settings(
        CrawlSettings(scope="any"),
        store=StoreSettings(leases_per_host=16),
        refresh=RefreshSettings(time_unit=60, audit=0.0, max_interval=1e7, min_interval=1.0),
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
            version = (order.page << 64 | int(crawl.now // 3600)).to_bytes(
                16, "big"
            )  # pages that always changed would take all reads
            crawl.answer(order, LINKS if order.url == url(0) else (), signature=version)
    assert reads[True] == pytest.approx(1.5 * 3600 / SECONDS[True], rel=0.02), "the slow host is read all the time"
    assert reads[False] > 1.5 * reads[True], "and holds up nobody"


class Hosts:
    """Four hosts; pages of the first two were read. Numbers that a partition, its columns and limits would tell."""

    def __init__(self):
        self.open, self.waiting = np.ones(4, np.bool_), np.zeros(4, np.int64)
        self.shut, self.until = np.zeros(4, np.bool_), {}
        self.columns, self.hosts, self.n = self, self, 2
        self.of = {"host": np.array([0, 1], np.uint32), "state": np.full(2, State.READ, np.uint8)}

    def __len__(self):
        return 4

    def __getitem__(self, name):
        return self.of[name]


def test_half_of_the_hosts_that_have_pages_must_wait():
    hosts = Hosts()
    crowd = Bottleneck(hosts, hosts)
    assert not crowd.waits([], START)
    hosts.waiting[2] = 9
    assert not crowd.waits([], START), "one of three"
    assert crowd.waits([0], START), "two of three: a host with a line waits, too"
    hosts.waiting[3] = 9
    assert crowd.waits([], START), "two of four"


@pytest.mark.parametrize("why", ["held", "shut"])
def test_hosts_that_nobody_may_read_do_not_wait(why):
    hosts = Hosts()
    crowd = Bottleneck(hosts, hosts)
    hosts.waiting[:] = (0, 0, 9, 9)
    if why == "held":
        hosts.open[2:] = False
    else:
        hosts.shut[2:], hosts.until = True, {2: (START, "blackout"), 3: (START, "blackout")}
    assert not crowd.waits([], START)
    assert not crowd.waits([2, 3], START), "whatever lies in their lines"


@pytest.mark.parametrize(("later", "looks"), [(1.0, False), (LOOK, True), (-86_400.0, True)])
def test_which_hosts_are_refreshed_is_looked_at_now_and_then_whatever_the_clock_does(later, looks):
    hosts = Hosts()
    crowd = Bottleneck(hosts, hosts)
    hosts.waiting[2] = 9
    assert not crowd.waits([], START)
    hosts.of["state"][1] = State.ERROR
    assert crowd.waits([], START + later) == looks, "one of two"
