"""A bandwidth that is set is spent from the first day on, whatever else lies at the head of the folders."""

import pytest

from tests.frontier.rig import START, Crawl, signature, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings, StoreSettings
from xyro.frontier.due_queue import EARLY_AT_ONCE
from xyro.metadata.states import HASTENED
from xyro.refresh.rate_sums import DAY
from xyro.wire.commands import HoldHost

GONE = [url(1, page) for page in range(1, 3 * EARLY_AT_ONCE)]
LIVE = [url(2, page) for page in range(1, 101)]
UNIT = 600


def settings(per_day):
    return Settings(
        CrawlSettings(scope="any"),
        store=StoreSettings(leases_per_host=1000),
        refresh=RefreshSettings(bandwidth=f"{per_day}/day", audit=0.0, time_unit=UNIT),
    )


def begun(per_day):
    """All pages were read at once: many are gone, to be confirmed in a day; the live ones are due much later."""
    crawl = Crawl.in_memory(settings=settings(per_day), refreshing=True)
    crawl.submit(url(0))
    answer_all(crawl)
    return crawl


def answer_all(crawl):
    """Take turns until nothing is ordered; the URLs read."""
    read = []
    while orders := crawl.turn():
        for order in orders:
            read.append(order.url)
            if order.url in GONE:
                crawl.fail(order, "http-404", status=404)
            else:
                crawl.answer(order, [*GONE, *LIVE] if order.url == url(0) else [], signature=signature(order.page))
    return read


def reads_until(crawl, end):
    read = []
    while crawl.now < end:
        crawl.now = min(crawl.now + UNIT, end)
        read += answer_all(crawl)
    return read


@pytest.mark.long
def test_pages_with_a_time_of_their_own_do_not_hold_up_those_behind_them():
    crawl = begun(per_day=24)
    read = reads_until(crawl, START + DAY / 2)
    assert not set(read) & set(GONE), "these keep their time"
    assert 10 <= len(read) <= 13
    assert len(crawl.frontier.scheduler.due_queue.folders) >= len(GONE), "each is filed again"
    assert set(reads_until(crawl, START + 40 * DAY)) >= set(GONE), "and comes in its time"


def test_a_bandwidth_that_is_set_is_spent_when_the_clock_was_set_back():
    crawl = begun(per_day=24)
    reads_until(crawl, START + DAY / 2)
    crawl.frontier.scheduler.due_queue._rest = crawl.now + UNIT  # as of a moment at which nothing could be read early
    crawl.now -= 10 * DAY
    assert 22 <= len(reads_until(crawl, crawl.now + DAY)) <= 26


def test_hastened_pages_keep_their_time_too():
    crawl = begun(per_day=24)
    frontier, soon = crawl.frontier, round(START + DAY / 4)
    for page in (crawl.page(target)[1] for target in LIVE[:60]):
        frontier.columns["due"][page] = soon
        frontier.columns["flags"][page] |= HASTENED
        frontier.scheduler.due_queue.file(page, soon)
    assert not set(reads_until(crawl, START + DAY / 8)) & set(LIVE[:60])
    assert set(reads_until(crawl, START + DAY / 2)) & set(LIVE[:60])


def test_what_is_left_of_a_bandwidth_is_not_spent_on_the_page_that_is_due_first_again_and_again():
    crawl = Crawl.in_memory(settings=settings(per_day=20), refreshing=True)
    crawl.submit(*LIVE)
    answer_all(crawl)
    fast, reads = set(LIVE[:10]), dict.fromkeys(LIVE, 0)
    while crawl.now < START + 4 * DAY:
        crawl.now += UNIT
        for order in crawl.turn():
            reads[order.url] += 1
            new = (1000 * order.page + reads[order.url]) if order.url in fast else order.page
            crawl.answer(order, [], signature=signature(new))
    assert 75 <= sum(reads.values()) <= 85, "four days of twenty"
    assert sum(map(bool, reads.values())) >= 40 and max(reads.values()) <= 12, "the oldest copies come early, too"


@pytest.mark.parametrize("held", [1, 9])
def test_pages_of_a_host_that_a_person_holds_keep_nobody_else_from_what_is_left(held):
    """They grow oldest and are never read: at the head of every draw they left 199 of 2,000 reads to the others, where
    half of the pages were held, were put aside at each draw anew, and a turn came every quarter of a second."""
    there = [url(3, page) for page in range(held * len(LIVE))]
    crawl = Crawl.in_memory(settings=settings(per_day=20), refreshing=True)
    crawl.submit(*LIVE, *there)
    answer_all(crawl)
    host = crawl.frontier.partition.hosts.names[crawl.frontier.partition.hosts_of[crawl.page(there[0])[1]]]
    crawl.pending[0].append(HoldHost(0, host, "paused"))
    read = reads_until(crawl, START + 4 * DAY)
    assert 75 <= len(read) <= 85 and not set(read) & set(there)
    scheduler = crawl.frontier.scheduler
    assert scheduler.parking.pages() <= len(there)
    assert len(scheduler.due_queue.folders) <= 2 * (len(LIVE) + len(there))


def test_where_nothing_can_be_read_before_its_time_it_is_looked_for_ever_more_seldom():
    crawl = Crawl.in_memory(settings=settings(per_day=20), refreshing=True)
    crawl.submit(*LIVE)
    answer_all(crawl)
    crawl.pending[0].append(HoldHost(0, crawl.frontier.partition.hosts.names[0], "paused"))
    crawl.now += DAY / 4  # the credit of five reads
    looks = 0
    end = crawl.now + UNIT
    while crawl.now < end:
        assert not crawl.turn()
        looks += 1
        crawl.now = max(crawl.now + 0.25, min(crawl.frontier.scheduler.next_time(), end))
    assert looks <= 20
