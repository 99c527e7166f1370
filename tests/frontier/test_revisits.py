"""Pages that are due and cannot be read yet: none is lost, and none is passed by what is due later."""

from __future__ import annotations

import collections

import msgspec
import pytest

from tests.frontier.rig import Crawl, in_memory_partition, url
from tests.frontier.test_bandwidth import Web, assert_exact, reborn
from tests.frontier.test_deadlines import edit
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings, SiteTable, StoreSettings
from xyro.frontier.bandwidth import DAY, Interval
from xyro.frontier.due_queue import DEBT, LEAST_BURST, SLACK, Governor
from xyro.frontier.revisit_dates import time_unit
from xyro.metadata.states import HASTENED
from xyro.refresh.ahead import Ahead

SLOW = [url(0, page) for page in range(20)]
FAST = [url(host, 0) for host in range(1, 5)]


def crawl_of(places=1, **refresh):
    """All pages were read and are due again at one time: a slow host with many pages, fast ones with a page each."""
    options = {"audit": 0.0, "time_unit": 60, "min_interval": 3600.0, "max_interval": DAY} | refresh
    chosen = Settings(
        CrawlSettings(scope="any"), store=StoreSettings(leases_per_host=places), refresh=RefreshSettings(**options)
    )
    crawl = Crawl.in_memory(settings=chosen, refreshing=True)
    crawl.submit(*SLOW, *FAST)
    for order in crawl.turn():
        crawl.answer(order)
    crawl.turn()
    return crawl


def read_for(crawl, days):
    """Reads of each page; woken as a page loop is."""
    end, reads = crawl.now + days * DAY, collections.Counter()
    while crawl.now < end:
        for order in crawl.turn():
            crawl.answer(order)
            reads[order.url] += 1
        if not crawl.pending[0]:
            crawl.now = max(crawl.now + 0.01, min(crawl.frontier.scheduler.next_time(), end))
    return reads


def date_in_30_seconds(crawl, target, hastened):
    page = crawl.page(target)[1]
    edit(crawl, lambda frontier: frontier.scheduler.schedule.put_due(page, int(crawl.now) + 30, hastened))


def test_pages_in_a_line_are_read_before_what_is_due_later_takes_the_bandwidth():
    crawl = crawl_of(bandwidth=f"{2 * len(SLOW + FAST)}/day")
    reads = read_for(crawl, 8)
    assert min(reads[one] for one in SLOW + FAST) >= 4, reads


@pytest.mark.long
def test_a_bandwidth_that_is_set_is_spent_evenly_from_the_beginning():
    """Also where all pages are due within the unit of the folders."""
    crawl = crawl_of(places=64, bandwidth="2/s", min_interval=0.0, least_chance=0.0)
    read_for(crawl, 10.0 / DAY)  # the first seconds' credit is spent at once
    reads = [read_for(crawl, 10.0 / DAY).total() for _ in range(30)]
    assert max(abs(each - 20) for each in reads) <= 2, reads


def test_refresh_keeps_to_the_room_that_is_left():
    """Some pages are due, others would be next: together they are no more than may be ordered."""
    crawl = crawl_of(places=64, bandwidth="48/day", max_interval=100 * DAY)
    for page in SLOW[:5]:
        date_in_30_seconds(crawl, page, hastened=True)
    crawl.now += DAY / 3
    crawl.room = 7
    given = [len(crawl.turn()) for _ in range(5)]
    assert max(given) <= 7 < sum(given), "there were more"


def test_a_page_stays_in_its_line_when_the_clock_is_set_back():
    crawl = crawl_of(bandwidth="1000/s", min_interval=100 * DAY, max_interval=100 * DAY)
    for page in range(3):
        date_in_30_seconds(crawl, SLOW[page], hastened=True)
    crawl.now += 120.0
    (first,) = crawl.turn()
    assert crawl.frontier.scheduler.revisits.host_queues.pages() == 2
    crawl.now -= 3600.0
    found = [first]
    for _ in range(4):
        for order in list(crawl.orders.values()):
            crawl.answer(order)
        found += crawl.turn()
    assert sorted(order.url for order in found) == sorted(SLOW[:3])


def test_a_page_that_failed_keeps_the_time_of_its_retry_whatever_lies_in_a_folder():
    crawl = crawl_of(places=64, bandwidth="1000/s", max_interval=100 * DAY, min_interval=100 * DAY)
    frontier, page = crawl.page(SLOW[0])
    date_in_30_seconds(crawl, SLOW[0], hastened=False)
    crawl.submit(SLOW[0])
    (order,) = crawl.turn()
    crawl.fail(order, "timeout", retry_in=5.0)
    crawl.turn()
    frontier.hold(frontier.partition.hosts_of[page], "paused")
    crawl.now += 3600.0
    crawl.turn()
    frontier.hold(frontier.partition.hosts_of[page], "")
    assert [one.url for one in crawl.turn()] == [SLOW[0]]


def test_what_could_be_read_early_keeps_its_date_while_its_host_is_full():
    crawl = crawl_of(places=1, bandwidth="48/day", max_interval=100 * DAY)
    crawl.submit(SLOW[0])
    crawl.turn()
    flags, due = crawl.frontier.columns["flags"], crawl.frontier.columns["due"]
    slow = [crawl.page(one)[1] for one in SLOW[1:]]
    before, filed = due[slow].copy(), len(crawl.frontier.scheduler.due_queue.folders)
    for _ in range(6):
        crawl.now += DAY / 12
        assert not [order for order in crawl.turn() if order.url in SLOW]
    assert (due[slow] >= before).all() and not (flags[slow] & HASTENED).any()
    assert len(crawl.frontier.scheduler.due_queue.folders) <= filed, "none is filed twice"


def test_ahead_of_time_no_page_of_a_full_host_is_lost():
    crawl = crawl_of(places=1)
    schedule = crawl.frontier.scheduler.schedule
    schedule.ahead = Ahead()
    for page in range(crawl.frontier.columns.n):
        schedule.ahead.put_after(page, 0)
    for _ in range(30):
        crawl.now += 1.0
        crawl.turn()
        assert len(schedule.ahead) + len(crawl.orders) == crawl.frontier.columns.n
        for order in list(crawl.orders.values()):
            crawl.answer(order)


@pytest.mark.parametrize(("early", "deferred"), [(-0.1, False), (0.0, False), (SLACK / 2, False), (0.05, True)])
def test_a_page_that_has_become_due_a_little_later_is_read_as_it_was_filed(early, deferred):
    """early: share of its interval, as that is by now, before which it comes."""
    crawl, told = crawl_of(bandwidth="100/day"), []
    frontier, page = crawl.page(FAST[0])
    row, seconds = frontier.partition.row(page), 10 * DAY
    frontier.scheduler.bandwidth.of_row = lambda page, row: Interval(seconds, "policy")
    now = row.last_read + seconds * (1.0 - early)
    edit(crawl, lambda frontier: told.append(frontier.scheduler.due_queue._deferred(page, row, now)))
    assert told == [deferred]
    assert (frontier.columns["due"][page] == row.last_read + seconds) == deferred


# Restarts and switches


def test_a_recount_that_a_crash_cut_short_begins_anew():
    web = Web(bandwidth="100/day")
    web.run(1)
    crawl = reborn(web, policy="mixed")
    assert crawl.frontier.scheduler.schedule.recount is not None
    crawl.frontier.scheduler.schedule.recount.step = lambda _: []  # not got far
    crawl.turn()
    crawl = reborn(web)
    assert crawl.frontier.scheduler.schedule.recount is not None
    crawl.turn()
    crawl.turn()  # two passes
    assert crawl.frontier.scheduler.schedule.recount is None and reborn(web).frontier.scheduler.schedule.recount is None
    assert_exact(crawl)


def test_what_promises_took_of_the_bandwidth_is_owed_over_a_restart():
    crawl = crawl_of(bandwidth="100/day")
    crawl.frontier.scheduler.due_queue.governor.credit = -40.0
    crawl.turn()
    settings, partition = crawl.settings, crawl.frontier.partition
    again = Crawl([in_memory_partition(partition.store, 0, 1)], settings, refreshing=True, now=crawl.now)
    assert again.frontier.scheduler.due_queue.governor.debt == 40.0
    again.turn()
    again.now += DAY / 4
    again.turn()
    assert again.frontier.scheduler.due_queue.governor.debt == pytest.approx(15.0, abs=0.5)


def test_a_lower_bandwidth_owes_no_more_than_a_day_of_its_own():
    crawl = crawl_of(bandwidth="100/s")
    crawl.frontier.scheduler.due_queue.governor.credit = -DEBT * 100.0
    lower = msgspec.structs.replace(crawl.settings.refresh, bandwidth="100/day")
    crawl.frontier.scheduler.reconfigure(msgspec.structs.replace(crawl.settings, refresh=lower))
    crawl.turn()
    assert crawl.frontier.scheduler.due_queue.governor.debt == 1.0 + max(LEAST_BURST, 100.0)


def test_a_governor_owes_only_below_nothing():
    governor = Governor()
    governor.credit = 3.0
    assert governor.debt == 0.0


def test_a_short_promise_is_kept_to_a_tenth_also_one_that_is_made_while_it_runs():
    often = {"bandwidth": "20/s", "min_interval": 0.0, "least_chance": 0.9}
    crawl = crawl_of(places=64, max_interval=3_000.0, **often)
    read_for(crawl, 100.0 / DAY)
    refresh = msgspec.structs.replace(crawl.settings.refresh, max_interval=30.0)
    crawl.frontier.scheduler.reconfigure(msgspec.structs.replace(crawl.settings, refresh=refresh))
    read_for(crawl, 60.0 / DAY)
    reads = read_for(crawl, 330.0 / DAY)
    assert set(reads) == {*SLOW, *FAST} and min(reads.values()) >= 9, "each page within 33 seconds"


def test_the_time_unit_is_a_tenth_of_the_least_promise():
    settings = Settings(refresh=RefreshSettings(time_unit=60))
    assert time_unit(settings) == 60
    for seconds, unit in ((30.0, 3), (2.0, 1), (6_000.0, 60)):
        sites = (SiteTable(host="a.test"), SiteTable(host="b.test", max_interval=seconds))
        assert time_unit(msgspec.structs.replace(settings, sites=sites)) == unit
    assert time_unit(Settings(refresh=RefreshSettings(max_interval=100.0))) == 10
