"""LookAhead: what a host has out is divided by gamma, so one that uses up all between two turns keeps it."""

from __future__ import annotations

import pytest

from tests.frontier.rig import url
from tests.frontier.test_scheduler import both_sides, crawl_of, sides
from xyro.configs.load import load
from xyro.frontier.look_ahead import STRETCHED
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.messages import FetchOrder, Priority

MENU = 900
"""pages of each kind"""


@pytest.mark.long
@pytest.mark.parametrize("gamma", [5.0, 25.0, 50.0, 75.0, 95.0])
def test_a_host_that_uses_up_all_its_orders_before_each_turn_keeps_gamma(gamma):
    crawl = both_sides(64, gamma, due=MENU, new=MENU)
    for turn in range(10):
        for order in list(crawl.orders.values()):
            crawl.answer(order)
        crawl.issued.clear()
        crawl.turn()
        if turn >= 5:  # at first it looks a few pages ahead
            read = sides(crawl.issued)
            assert len(read) >= 64 and 100 * read.count("discovery") / len(read) == pytest.approx(gamma, abs=2.0)


def test_where_few_unread_pages_are_known_the_host_is_not_held_up_for_them():
    """With gamma 95 a host has 3 known pages out beside 64 unread ones; beside 2 unread ones all that it may have."""
    crawl = both_sides(64, 95.0, due=MENU, new=2)
    for turn in range(6):
        shown = [url(0, 2 * MENU + 2 * turn + number) for number in range(2)]
        for number, order in enumerate(list(crawl.orders.values())):
            crawl.answer(order, *([shown] if number == 0 else ()), signature=bytes([turn, number]) * 8)
        crawl.issued.clear()
        crawl.turn()
    read = sides(crawl.issued)
    assert read.count("discovery") == 2 and read.count("refresh") == 64


def test_discovery_takes_the_part_of_known_pages_where_these_are_too_few():
    crawl = both_sides(64, 5.0, due=2, new=200)
    for _ in range(3):
        for order in list(crawl.orders.values()):
            crawl.answer(order)
        crawl.issued.clear()
        crawl.turn()
    assert sides(crawl.issued).count("discovery") >= 4 and url(0) not in {order.url for order in crawl.issued}


def fast_host(busy: bool, elsewhere: bool = False) -> list[int]:
    """The orders that a host has in each turn if none of those before is left. busy: another host's never end;
    elsewhere: that is one of another partition."""
    crawl = crawl_of(others=elsewhere)
    crawl.submit(url(0), url(1))
    crawl.turn()
    for host, pages in enumerate((MENU, 3)):
        crawl.answer(crawl.order(url(host)), [url(host, page) for page in range(1, pages)])
    counts = []
    for _ in range(6):
        crawl.turn()
        own = [order for order in crawl.orders.values() if order.url.startswith(url(0).rsplit("/", 1)[0])]
        counts.append(len(own))
        for order in own if busy else list(crawl.orders.values()):
            crawl.answer(order)
    return counts


def test_a_host_that_has_nothing_left_while_others_are_read_gets_twice_as_many_orders():
    assert fast_host(busy=True) == [4, 8, 16, 32, 64, 64]
    assert fast_host(busy=False, elsewhere=True) == [8, 16, 32, 64, 64, 64]


def test_of_hosts_for_which_the_turn_comes_at_once_a_few_pages_are_ordered():
    assert max(fast_host(busy=False)) <= 5


def test_a_host_is_not_looked_far_ahead_of_for_ever():
    crawl = crawl_of(others=True)
    crawl.submit(url(0))
    crawl.turn()
    crawl.answer(crawl.order(url(0)), [url(0, page) for page in range(1, MENU)])

    def after(seconds: float, answered: int) -> int:
        """Orders that are out after a turn so many seconds later, once so many were answered."""
        crawl.now += seconds
        for order in list(crawl.orders.values())[:answered]:
            crawl.answer(order)
        crawl.turn()
        return len(crawl.orders)

    assert [after(0.05, MENU) for _ in range(4)] == [8, 16, 32, 64]
    later = [after(STRETCHED + 1.0, 4) for _ in range(30)]
    assert max(later[-9:]) <= 16, "about a 16th of the orders that it got"


async def test_all_partitions_of_a_process_look_further_ahead_while_one_is_read(tmp_path):
    settings = load()
    data = DataDir.open(tmp_path / "data", partitions=4, make=True)
    node = Node(data, settings, guard_of(settings.fetch), Bounds())
    looks = [loop._is_reading for loop in node.partition_loops]
    assert [look() for look in looks] == [False] * 4
    node.queue.put(FetchOrder(1, "http://h/1", Priority.DISCOVER, epoch=1), "h")
    assert [look() for look in looks] == [True] * 4
    data.close()
