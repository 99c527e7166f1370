"""OrderQuota of orders: a backlog takes many, however long it is, and never all of them."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, in_memory_partition, report, url
from tests.frontier.test_scheduler import seeded
from xyro.frontier import leases
from xyro.frontier.leases import OrderQuota
from xyro.frontier.scheduler import Scheduler
from xyro.metadata import rows
from xyro.refresh.rate_sums import DAY
from xyro.wire.messages import Priority


class Out:
    """Leases and hosts of which only the numbers count."""

    def __init__(self, *by_host):
        self.leased = np.array(by_host, np.int32)
        self.exploring = np.zeros_like(self.leased)

    def __len__(self):
        return int(self.leased.sum())


def places_of(*by_host, most=8):
    out = Out(*by_host)
    return OrderQuota(out, out, most)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_a_host_gets_its_most_in_plenty_and_fewer_the_less_is_free(by_host):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "ORDERS_OUT", 200)
        found = places_of(*by_host)
        free = 200 - sum(by_host)
        assert found.free == free and found.scarce == (free < 100)
        assert found.per_host == (8 if free >= 100 else max(1, 8 * free // 100))
        assert [found.room(host) for host in range(len(by_host))] == [found.per_host - out for out in by_host]


def test_something_is_left_for_a_host_that_has_none():
    """100 hosts with endless backlogs: each ends up with its equal part, and there are places for one more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "ORDERS_OUT", 1000)
        found = places_of(*[0] * 101, most=64)
        for _ in range(3):
            for host in range(100):
                found._leases.leased[host] += max(found.room(host), 0)
            for host in range(100):
                found._leases.leased[host] = min(found._leases.leased[host], found.per_host + 1)
        assert found.room(100) >= 5 and found.free >= 2 * found.room(100)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.floats(0, 100))
def test_refresh_gets_its_part_by_gamma_to_within_one_place(rooms, gamma):
    found = places_of(0)
    parts = [found.part(room, gamma) for room in rooms]
    assert all(0 <= part <= room for part, room in zip(parts, rooms, strict=True))
    for run in range(1, len(rooms) + 1):
        assert abs(sum(parts[:run]) - (1 - gamma / 100) * sum(rooms[:run])) <= 1 + 1e-6


# In a crawl


def backlogs(hosts, due, new, unread, monkeypatch, gamma=50.0, out=200):
    """`hosts` with `due` pages each that are due now, `new` ones with `unread` pages that were just found."""
    shown = [url(host, page) for host in range(hosts) for page in range(1, due)]
    crawl = seeded(*shown, leases=8, refreshing=True, gamma=gamma, audit=0.0, min_interval=DAY,
                   max_interval=DAY)  # fmt: skip
    crawl.frontier.scheduler.schedule.doublings = None
    crawl.run(lambda order: report(order, crawl.now))
    crawl.now += 3 * DAY
    crawl.room = 0
    crawl.submit(url(0))
    crawl.turn()
    crawl.room = 1
    (order,) = crawl.turn()
    crawl.room = 0
    crawl.answer(order, [url(hosts + host, page) for host in range(new) for page in range(unread)], signature=b"n" * 16)
    crawl.turn()
    crawl.room = 1 << 30
    monkeypatch.setattr(leases, "ORDERS_OUT", out)
    return crawl


def read_politely(crawl, ticks):
    """Reads by host number: each host with an order out reads one a tick, a turn of the scheduler after every few."""
    reads = collections.Counter()
    for _ in range(ticks):
        crawl.now += 2.0
        firsts = {order.url.split("/")[2]: order for order in reversed(crawl.orders.values())}
        for count, (host, order) in enumerate(firsts.items()):
            crawl.answer(order)
            reads[int(host.split(".")[0][1:])] += 1
            if count % 8 == 7:
                crawl.turn()
        crawl.turn()
    return reads


def test_backlogs_of_many_hosts_leave_all_others_their_places(monkeypatch):
    crawl = backlogs(50, 12, new=12, unread=20, monkeypatch=monkeypatch, out=200)
    reads = read_politely(crawl, 10)
    assert min(reads[50 + host] for host in range(12)) >= 6, "no new host waits for the backlogs to end"
    assert min(reads[host] for host in range(50)) >= 5, "nor does any other"


@pytest.mark.long
@pytest.mark.parametrize(("gamma", "least", "most"), [(20, 0.1, 0.35), (50, 0.4, 0.6), (80, 0.65, 0.9)])
def test_with_fewer_places_than_hosts_gamma_decides_who_gets_them(monkeypatch, gamma, least, most):
    crawl = backlogs(150, 12, new=12, unread=40, monkeypatch=monkeypatch, gamma=float(gamma), out=40)
    read_politely(crawl, 8)
    reads = read_politely(crawl, 8)
    new = sum(reads[150 + host] for host in range(12))
    assert least <= new / reads.total() <= most
    assert reads.total() >= 8 * 6


def test_discovery_takes_all_where_gamma_says_so_and_refresh_the_half_that_is_in_plenty(monkeypatch):
    crawl = backlogs(50, 6, new=12, unread=20, monkeypatch=monkeypatch, gamma=100.0, out=60)
    reads = read_politely(crawl, 10)
    assert sum(reads[50 + host] for host in range(12)) >= 90
    assert sum(reads[host] for host in range(50)) > 0, "unread pages of slow hosts do not stop refresh everywhere"


def test_pages_that_people_want_of_one_host_do_not_take_all_places(monkeypatch):
    monkeypatch.setattr(leases, "WANTED", 30)
    crawl = seeded(*(url(1, page) for page in range(5)), leases=8)
    crawl.turn()
    many, other = [url(2, page) for page in range(200)], url(3)
    crawl.submit(*many)
    crawl.submit(other)
    first = [order.url for order in crawl.turn()]
    assert first == [*many[:30], other], "the other host's page does not wait for all of these"
    assert not crawl.frontier.scheduler.requests, "nothing is to be done before an answer comes"
    seen = []
    crawl.room = 2
    for order in [order for order in crawl.orders.values() if order.url in many][:5]:
        seen.append(order.url)
        crawl.answer(order)
    assert [order.url for order in crawl.turn()] == many[30:32], "within the room of --max-pages, too"
    crawl.room = 1 << 30
    while orders := [order for order in crawl.orders.values() if order.url in many]:
        assert len(orders) <= 30
        seen.append(orders[0].url)
        crawl.answer(orders[0])
        crawl.turn()
    assert seen == many, "each in its turn, none twice"
    crawl.answer(crawl.order(other))
    crawl.turn()
    assert not crawl.frontier.scheduler.overflow and not list(crawl.frontier.partition.scan(rows.WANTED.prefix))


def test_pages_that_wait_before_a_crowded_host_are_found_after_a_restart(monkeypatch):
    monkeypatch.setattr(leases, "WANTED", 3)
    crawl = seeded(leases=2)
    many = [url(2, page) for page in range(9)]
    crawl.submit(*many)
    assert [order.url for order in crawl.turn()] == many[:3]
    again = Crawl([in_memory_partition(crawl.frontier.partition.store, 0, 1)], crawl.settings, now=crawl.now)
    seen = set()
    while orders := [*again.turn(), *again.orders.values()]:
        seen.update(order.url for order in orders)
        again.answer(orders[0])
    assert seen >= set(many)


def test_what_a_load_waits_for_and_what_was_promised_goes_to_a_crowded_host_all_the_same(monkeypatch):
    monkeypatch.setattr(leases, "WANTED", 3)
    crawl = seeded(leases=2)
    scheduler: Scheduler = crawl.frontier.scheduler
    crawl.submit(*(url(2, page) for page in range(6)))
    crawl.turn()
    crawl.submit(url(2, 50), priority=Priority.BLOCKING)
    crawl.submit(url(2, 60))
    crawl.room = 0
    crawl.turn()
    crawl.room = 1 << 30
    promised = crawl.page(url(2, 60))[1]
    scheduler.deadlines.deadline_of = lambda page: crawl.now + 60.0 if page == promised else 0.0
    assert [order.url for order in crawl.turn()] == [url(2, 50), url(2, 60)]
    crawl.submit(url(2, 0))
    (raised,) = crawl.turn()
    assert raised.url == url(2, 0) and raised.raised, "what is out already takes no place"
