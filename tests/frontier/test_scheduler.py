"""The scheduler: who is read next, within the room of hosts and of --max-pages, at its time, and never while held."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import START, Crawl, in_memory_partition, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import PolitenessSettings, RefreshSettings, Settings, StoreSettings
from xyro.fetch_queue import FetchQueue
from xyro.frontier import discovery, leases
from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.refresh.ahead import Ahead
from xyro.refresh.rate_sums import DAY
from xyro.wire.messages import Priority


def crawl_of(refreshing=False, leases=64, unit=60, others=False, **refresh):
    chosen = Settings(
        crawl=CrawlSettings(scope="any"),
        store=StoreSettings(leases_per_host=leases),
        refresh=RefreshSettings(time_unit=unit, **refresh),
        politeness=PolitenessSettings(delay=0.0),
    )
    return Crawl.in_memory(settings=chosen, refreshing=refreshing, others=others)


def seeded(*links, **options):
    """A crawl whose first page showed these links; nothing is out but what its turn ordered."""
    crawl = crawl_of(**options)
    crawl.submit(url(0))
    crawl.turn()
    crawl.room = 0
    crawl.answer(crawl.order(url(0)), links)
    crawl.turn()
    crawl.room = 1 << 30
    return crawl


def told(orders):
    return [order.url for order in orders]


def give_cash(crawl, target, pages):
    """So many pages' worth more (the virtual page lends it)."""
    frontier, page = crawl.page(target)
    frontier.columns["cash"][page] += int(pages * 65_536)
    frontier.columns.touch("cash", page)


def leased(crawl):
    hosts = crawl.frontier.partition.hosts
    return {name: int(hosts.leased[number]) for name, number in hosts.numbers.items()}


def by_host(orders):
    return collections.Counter(order.url.split("/")[2] for order in orders)


# Discovery pages


def test_a_host_takes_its_room_and_no_more():
    crawl = seeded(*(url(host, page) for host in range(3) for page in range(1, 20)), leases=8)
    crawl.frontier.partition.standing.of_hosts(3)[:] = 1000
    assert by_host(crawl.turn()) == {f"h{host}.example": 8 for host in range(3)}
    assert crawl.turn() == []
    assert set(leased(crawl).values()) == {8}


@pytest.mark.parametrize(("orders", "ahead"), [(0, 4), (79, 4), (80, 5), (500, 31), (5000, 64)])
def test_little_read_hosts_are_looked_ahead_at_only_a_little(orders, ahead):
    crawl = seeded(*(url(0, page) for page in range(1, 200)))
    crawl.frontier.partition.standing.of_hosts(1)[:] = orders
    assert by_host(crawl.turn()) == {"h0.example": ahead}


def test_a_host_is_refilled_when_half_of_its_orders_are_answered():
    crawl = seeded(*(url(0, page) for page in range(1, 40)), leases=8)
    crawl.frontier.partition.standing.of_hosts(1)[:] = 1000
    crawl.turn()
    for count, refilled in ((3, 0), (1, 4 + 3 - 3)):
        for order in list(crawl.orders.values())[:count]:
            crawl.answer(order)
        given_out = crawl.turn()
        assert bool(given_out) == bool(refilled)
    assert leased(crawl) == {"h0.example": 8}


def test_the_richest_in_cash_of_links_come_first_from_the_first_read_on():
    crawl = seeded(*(url(0, page) for page in range(1, 30)), leases=4)
    for rank, page in enumerate((7, 21, 3)):
        give_cash(crawl, url(0, page), 3 - rank)
    orders = crawl.turn()
    assert told(orders) == [url(0, 7), url(0, 21), url(0, 3), url(0, 1)]
    assert {order.priority for order in orders} == {Priority.DISCOVER}


def test_hungry_hosts_share_what_is_left(monkeypatch):
    """--max-pages leaves room for a few: the most urgent of all hosts, not all of one."""
    crawl = seeded(*(url(host, page) for host in range(4) for page in range(1, 9)), leases=3)
    crawl.room = 6
    assert len(crawl.turn()) == 6


@pytest.mark.parametrize("chunk", [7, 64, 1 << 17])
def test_every_unread_page_is_found_however_small_the_scan(monkeypatch, chunk):
    monkeypatch.setattr(discovery, "SCAN", chunk)
    crawl = crawl_of(leases=3)
    crawl.submit(url(0))
    crawl.run(lambda order: report(order, START, [url(k % 6, k) for k in range(80)] if order.url == url(0) else ()))
    assert crawl.frontier.reads == 80 and crawl.frontier.scheduler.unread == 0


def test_an_order_says_what_is_known():
    crawl = seeded(url(0, 1))
    (order,) = crawl.turn()
    assert (order.attempt, order.etag) == (0, "")
    assert order.page == crawl.frontier.partition.base + 1 and order.not_before == 0.0


# --max-pages


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2)), max_size=12))
def test_the_room_is_never_exceeded(turns):
    crawl = seeded(*(url(host, page) for host in range(3) for page in range(1, 9)), leases=4, refreshing=True)
    for room, page, what in turns:
        crawl.room = room
        if what == 0:
            crawl.submit(*(url(k, page) for k in range(4)), priority=(Priority.BLOCKING, Priority.ORDERED)[page % 2])
        for order in list(crawl.orders.values())[: page % 3]:
            if what == 1:
                crawl.fail(order, "timeout", retry_in=0.0)
            else:
                crawl.answer(order)
        crawl.now += 100.0 * what
        assert len(crawl.turn()) <= room
        assert len(crawl.frontier.scheduler.leases) == len(crawl.orders)


def test_orders_out_are_bounded(monkeypatch):
    monkeypatch.setattr(leases, "ORDERS_OUT", 10)
    crawl = seeded(*(url(host, page) for host in range(5) for page in range(1, 9)))
    assert len(crawl.turn()) == 10 and crawl.turn() == []


# Wanted


def test_what_is_wanted_goes_first_blocking_before_ordered_and_over_the_hosts_room():
    crawl = seeded(*(url(0, page) for page in range(1, 9)), leases=2)
    crawl.turn()
    crawl.submit(url(0, 7), url(0, 8))
    crawl.submit(url(0, 50), priority=Priority.BLOCKING)
    orders = crawl.turn()
    assert told(orders) == [url(0, 50), url(0, 7), url(0, 8)]
    assert [order.priority for order in orders] == [Priority.BLOCKING, Priority.ORDERED, Priority.ORDERED]
    assert leased(crawl) == {"h0.example": 5}


def test_a_wanted_page_that_is_out_is_not_ordered_twice():
    crawl = seeded(url(0, 1))
    crawl.turn()
    crawl.submit(url(0, 1))
    out = crawl.order(url(0, 1))
    (raised,) = crawl.turn()
    assert raised.raised and (raised.page, raised.epoch) == (out.page, out.epoch), "the same order, to go up"
    assert raised.priority is Priority.ORDERED and len(crawl.frontier.scheduler.leases) == 1
    crawl.answer(out)
    assert crawl.turn() == [], "the order that was out answered the wish, too"
    assert not crawl.frontier.scheduler.requests


def test_a_wanted_page_is_read_although_it_was_read():
    crawl = seeded()
    crawl.submit(url(0))
    (order,) = crawl.turn()
    assert order.url == url(0) and order.priority is Priority.ORDERED


# Retries


def test_what_was_wanted_is_not_read_when_a_restart_has_put_it_out_of_scope():
    crawl = crawl_of()
    crawl.room = 0
    crawl.submit(url(0, 1), url(0, 2))
    crawl.submit(url(0, 3), priority=Priority.BLOCKING)
    crawl.turn()
    crawl.submit(url(0, 3))
    crawl.turn()
    chosen = Settings(crawl=CrawlSettings(scope="any", exclude=("*/p1.html", "*/p3.html")))
    again = Crawl([in_memory_partition(crawl.frontier.partition.store, 0, 1)], chosen, now=crawl.now)
    assert sorted(told(again.turn())) == [url(0, 2)]
    again.answer(again.order(url(0, 2)))
    assert again.turn() == [] and not list(again.frontier.partition.scan(rows.WANTED.prefix))
    assert [again.state(url(0, page)) for page in (1, 2, 3)] == [State.OUT, State.READ, State.OUT]


def test_a_page_that_failed_is_tried_again_at_its_time():
    crawl = seeded(url(0, 1))
    (order,) = crawl.turn()
    crawl.fail(order, "timeout", retry_in=10.5)
    assert crawl.turn() == []
    assert crawl.frontier.scheduler.next_time() == START + 10.5
    crawl.now = START + 10.4
    assert crawl.turn() == []
    crawl.now = START + 10.5
    (again,) = crawl.turn()
    assert (again.url, again.attempt, again.priority) == (url(0, 1), 1, Priority.DISCOVER)
    assert again.epoch != order.epoch and crawl.frontier.scheduler.next_time() == float("inf")


def test_retries_wait_for_their_hosts_room_without_holding_up_other_hosts():
    crawl = seeded(*(url(0, page) for page in range(1, 9)), url(1, 1), leases=4)
    first = set(told(crawl.turn()))
    for order in list(crawl.orders.values()):
        crawl.fail(order, "timeout", retry_in=5.0)
    crawl.turn()
    assert leased(crawl) == {"h0.example": 4, "h1.example": 0}, "four more of host 0 are out"
    crawl.now += 6
    assert told(crawl.turn()) == [url(1, 1)]
    assert crawl.frontier.scheduler.next_time() == crawl.now + 1.0
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    crawl.turn()
    crawl.now += 1.5
    assert set(told(crawl.turn())) == first - {url(1, 1)}


def test_a_retry_that_a_person_was_quicker_than_is_forgotten():
    crawl = seeded(url(0, 1))
    (order,) = crawl.turn()
    crawl.fail(order, "timeout", retry_in=10.0)
    crawl.turn()
    crawl.submit(url(0, 1))
    (order,) = crawl.turn()
    crawl.fail(order, "timeout", retry_in=100.0)
    crawl.turn()
    crawl.now = START + 11
    assert crawl.turn() == []
    crawl.now = START + 101
    assert told(crawl.turn()) == [url(0, 1)] and crawl.turn() == []


def test_retries_are_found_again_after_a_restart():
    crawl = seeded(url(0, 1), url(0, 2))
    for order in crawl.turn():
        crawl.fail(order, "timeout", retry_in=30.25)
    crawl.turn()
    again = _reborn(crawl)
    assert again.turn() == []
    again.now = START + 31
    assert sorted(told(again.turn())) == [url(0, 1), url(0, 2)]


# Refreshing


def refreshed(unit=60, **options):
    """One page, read once; its next read."""
    crawl = seeded(refreshing=True, unit=unit, **options)
    return crawl, int(crawl.frontier.columns["due"][0])


def test_a_page_is_read_again_when_it_is_due_and_not_before():
    crawl, due = refreshed(min_interval=1000.0)
    assert due >= START + 1000
    crawl.now = due - 0.5
    assert crawl.turn() == []
    crawl.now = due + 60.0
    (order,) = crawl.turn()
    assert (order.url, order.priority) == (url(0), Priority.REFRESH)
    crawl.answer(order, status=304, signature=b"")
    assert crawl.turn() == []
    assert crawl.frontier.columns["due"][0] >= crawl.now + 1000


def test_a_page_due_within_the_time_unit_is_not_read_at_once():
    crawl, due = refreshed(unit=3600, min_interval=36_000.0, max_interval=36_000.0)
    crawl.now, reads = due - 1.0, 0
    while not reads:
        crawl.now += 1.0
        reads = len(crawl.turn())
    assert crawl.now == -(-due // 3600) * 3600, "when the next time unit begins"


def test_nothing_is_refreshed_in_a_crawl_that_does_not_refresh():
    crawl = seeded()
    crawl.now += 10 * 365 * 86_400
    assert crawl.turn() == [] and crawl.frontier.scheduler.next_time() == float("inf")


def test_due_pages_are_found_again_after_a_restart():
    crawl, due = refreshed(min_interval=1000.0)
    again = _reborn(crawl, refreshing=True)
    assert again.turn() == []
    again.now = due + 60.0
    assert told(again.turn()) == [url(0)]


def test_the_first_404_is_looked_at_again_after_the_time_of_the_settings():
    crawl = seeded(url(0, 1), refreshing=True)
    order = next(order for order in crawl.turn() if order.url == url(0, 1))
    crawl.fail(order, "http-404", status=404)
    crawl.turn()
    due = int(crawl.frontier.columns["due"][1])
    assert START + 86_400 <= due <= START + 86_401
    crawl.now = due + 60.0
    order = next(order for order in crawl.turn() if order.url == url(0, 1))
    crawl.fail(order, "http-404", status=404)
    crawl.turn()
    assert crawl.state(url(0, 1)) is State.DEAD and crawl.frontier.columns["due"][1] == 0


def test_due_pages_share_their_hosts_room():
    crawl = seeded(*(url(0, page) for page in range(1, 9)), leases=3, refreshing=True, min_interval=100.0,
                   max_interval=100.0)  # fmt: skip
    crawl.run(lambda order: report(order, START))
    crawl.now += 300
    seen = []
    while orders := crawl.turn():
        assert len(orders) <= 3 and crawl.turn() == [], "they wait for their host, no longer"
        seen += told(orders)
        for order in orders:
            crawl.answer(order)
    assert sorted(seen) == [url(0), *(url(0, page) for page in range(1, 9))]
    assert not crawl.frontier.scheduler.revisits.host_queues


def both_sides(leases, gamma, due=150, new=200, hosts=1):
    """A crawl whose hosts have `due` pages to be refreshed, all but one at once, and `new` ones never read."""
    crawl = seeded(*(url(host, page) for host in range(hosts) for page in range(1, due)), leases=leases,
                   refreshing=True, gamma=gamma, audit=0.0, min_interval=DAY, max_interval=DAY)  # fmt: skip
    crawl.frontier.scheduler.schedule.doublings = (
        None  # a recount would date the one by its read, three days before its turn
    )
    crawl.run(lambda order: report(order, crawl.now))
    shown = [url(host, page) for host in range(hosts) for page in range(due, due + new)]
    crawl.room = 0
    crawl.submit(url(0, 1))
    crawl.turn()
    crawl.room = 1
    (order,) = crawl.turn()
    crawl.room = 0
    crawl.answer(order, shown, signature=b"n" * 16)
    crawl.now += 3 * 86_400
    crawl.turn()
    crawl.room = 1 << 30
    return crawl


def sides(orders):
    return ["refresh" if order.priority is Priority.REFRESH else "discovery" for order in orders]


@pytest.mark.long
@pytest.mark.parametrize("leases", [1, 4, 64])
@pytest.mark.parametrize("gamma", [0.0, 10.0, 50.0, 80.0, 100.0])
def test_due_and_unread_pages_of_a_host_are_read_by_gamma(leases, gamma):
    """However few of its orders may be out, both kinds are when the host is read, and the queue takes them by gamma."""
    crawl, queue, read = both_sides(leases, gamma), FetchQueue(gamma), []
    for order in crawl.orders.values():
        queue.put(order, "h0")
    while len(read) < 100:
        for order in crawl.turn():
            queue.put(order, "h0")
        assert len(crawl.orders) <= 2 * leases
        host, order = queue.pop(0.0)
        crawl.answer(order)
        queue.release(host, 0.0)
        read.append(order)
    got = sides(read)
    for start in range(0, 100, 10):
        for end in range(start + 10, 101, 10):
            found = got[start:end].count("discovery")
            assert abs(found - gamma / 100 * (end - start)) <= 1.0, (start, end)


def test_every_page_gets_its_turn_on_every_host():
    crawl = both_sides(4, 50.0, due=40, new=40, hosts=3)
    crawl.issued.clear()
    for _ in range(60):
        crawl.turn()
        for order in list(crawl.orders.values()):
            crawl.answer(order)
    pages = {url(host, page) for host in range(3) for page in range(1, 80)} | {url(0)}
    read = told(crawl.issued)
    assert len(read) == len(set(read)) and pages - {url(0, 1)} <= set(read) <= pages, "each once; p1 was ordered before"
    assert sides(crawl.issued).count("refresh") in (3 * 39, 3 * 39 + 1)


def test_where_nothing_else_waits_one_side_takes_all():
    crawl = both_sides(4, 50.0, due=30, new=5)
    crawl.issued.clear()
    for _ in range(40):
        crawl.turn()
        for order in list(crawl.orders.values()):
            crawl.answer(order)
    assert sides(crawl.issued).count("refresh") == 29 and sides(crawl.issued).count("discovery") == 5
    assert "discovery" not in sides(crawl.issued)[13:], "both, then what remains"


def test_due_pages_before_a_full_host_are_found_again_after_a_restart():
    crawl = both_sides(4, 50.0, due=30, new=5)
    crawl.turn()
    assert crawl.frontier.scheduler.revisits.host_queues.pages() > 20
    again = _reborn(crawl, refreshing=True)
    again.frontier.scheduler.schedule.doublings = None
    seen = set()
    for _ in range(40):
        seen |= {order.url for order in again.turn() if order.priority is Priority.REFRESH}
        for order in list(again.orders.values()):
            again.answer(order)
    assert seen == {url(0, page) for page in range(30) if page != 1}


def test_intervals_follow_importance_and_change_rate():
    crawl = seeded(*(url(0, page) for page in range(1, 6)), refreshing=True, bandwidth=0.01)
    for order in crawl.turn():
        crawl.answer(order)
    crawl.turn()
    bandwidth = crawl.frontier.scheduler.bandwidth
    seconds = {(r, rate): bandwidth.interval(r, rate).seconds for r in (0.4, 0.1) for rate in (2.0, 0.02)}
    weighted = [t * (r * rate) ** 0.5 for (r, rate), t in seconds.items()]
    assert weighted == pytest.approx([weighted[0]] * 4)
    assert bandwidth.interval(0.0, 1.0) == (crawl.settings.refresh.max_interval, "ceiling")


def test_a_bounded_crawl_reads_ahead_of_time_rather_than_nothing():
    crawl, _ = refreshed(min_interval=1000.0)
    assert crawl.turn() == []
    crawl.frontier.scheduler.schedule.ahead = Ahead()
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order)
    assert [(order.url, order.priority) for order in crawl.turn()] == [(url(0), Priority.REFRESH)]


# Hosts that a person holds


def hold(crawl, host, held):
    crawl.frontier.hold(crawl.frontier.partition.hosts.numbers[f"h{host}.example"], held)


@pytest.mark.parametrize("held", ["paused", "blocked"])
def test_no_page_of_a_held_host_is_ordered_and_none_is_forgotten(held):
    """Discovery, wanted, to be retried, due: one each of a held host and of another."""
    crawl = seeded(*(url(host, page) for host in (1, 2) for page in (1, 2, 3)), refreshing=True, min_interval=500.0)
    for order in crawl.turn():
        match order.url[-6]:
            case "1":
                crawl.answer(order)
            case "2":
                crawl.fail(order, "timeout", retry_in=50.0)
            case "3":
                crawl.answer(order, [order.url.replace("p3", "p4")])
    hold(crawl, 1, held)
    seen = told(crawl.turn())
    crawl.submit(url(1, 9), url(2, 9))
    seen += told(crawl.turn())
    crawl.now += 10_000_000
    seen += [one for _ in range(4) for one in told(crawl.turn())]
    assert set(seen) >= {url(2, page) for page in (1, 2, 3, 4, 9)}
    assert not [one for one in seen if "h1.example" in one]
    assert crawl.frontier.scheduler.next_time() > crawl.now and not crawl.frontier.scheduler.requests
    hold(crawl, 1, "")
    crawl.turn()
    crawl.now += 120
    crawl.turn()
    assert {url(1, page) for page in (1, 2, 3, 4, 9)} <= {order.url for order in crawl.orders.values()}


def test_held_pages_are_still_held_after_a_restart():
    crawl = seeded(url(1, 1), url(2, 1))
    hold(crawl, 1, "paused")
    crawl.submit(url(1, 2))
    crawl.turn()
    again = _reborn(crawl)
    assert told(again.turn()) == [url(2, 1)] and again.frontier.scheduler.unread == 0
    hold(again, 1, "")
    assert sorted(told(again.turn())) == [url(1, 1), url(1, 2)]


def test_an_order_taken_back_is_given_out_again():
    crawl = seeded(url(0, 1), refreshing=True, min_interval=100.0)
    crawl.submit(url(0))
    for order in crawl.turn():
        crawl.frontier.scheduler.drop(order.page, order.epoch + 1)
        assert order.page in crawl.frontier.scheduler.leases, "of another order"
        crawl.frontier.scheduler.drop(order.page, order.epoch)
    assert leased(crawl) == {"h0.example": 0} and crawl.audit()["violations"] == []
    crawl.orders.clear()
    assert sorted(told(crawl.turn())) == [url(0), url(0, 1)]


def test_what_a_blocked_host_gave_back_waits_until_it_is_resumed():
    crawl = seeded(url(1, 1))
    crawl.submit(url(1, 2))
    orders = crawl.turn()
    hold(crawl, 1, "blocked")
    for order in orders:
        crawl.frontier.scheduler.drop(order.page, order.epoch)
    crawl.orders.clear()
    assert crawl.turn() == [] == crawl.turn()
    hold(crawl, 1, "")
    assert sorted(told(crawl.turn())) == [url(1, 1), url(1, 2)]


# Memory


def test_nothing_is_kept_of_orders_that_were_answered():
    crawl = crawl_of(refreshing=True)
    crawl.submit(url(0))
    crawl.run(lambda order: report(order, crawl.now, [url(k % 9, k) for k in range(60)]))
    scheduler, frontier = crawl.frontier.scheduler, crawl.frontier
    assert not scheduler.leases and not scheduler.parking and scheduler.schedule.retries == []
    assert frontier.loads.loading == {} and frontier.loads.early == {} and frontier.loads.waits == {}
    assert not scheduler.requests and len(scheduler.due_queue.folders) <= frontier.reads, "one entry a read"
    assert not np.any(frontier.partition.hosts.leased) and not np.any(frontier.partition.hosts.waiting)
    assert [key for key, _ in frontier.partition.store.scan(rows.WANTED.prefix)] == []


def _reborn(crawl, refreshing=False):
    store = crawl.frontier.partition.store
    return Crawl([in_memory_partition(store, 0, 1)], crawl.settings, refreshing=refreshing, now=crawl.now)
