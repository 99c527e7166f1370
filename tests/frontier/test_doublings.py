"""Folders follow importance and priors while these settle: all pages dated anew each time that one has doubled."""

from __future__ import annotations

import msgspec
import pytest

from tests.frontier.rig import Crawl
from tests.frontier.test_bandwidth import PAGES, Web, assert_exact, reborn
from xyro.configs.schema import ClusterTable
from xyro.frontier import redating
from xyro.frontier.redating import CLOSE, FIRST, Doublings
from xyro.metadata.states import State
from xyro.opic.importance import TICKS
from xyro.refresh.policy import weight
from xyro.refresh.rate_belief import PageBelief, RatePrior
from xyro.refresh.rate_sums import RateSums

START = int(FIRST * TICKS)


@pytest.fixture
def schedule():
    return Crawl.in_memory(refreshing=True).frontier.scheduler.schedule


@pytest.fixture
def ledger(schedule):
    return schedule.doublings._ledger


def heard(ledger, doublings, upto, step=TICKS // 8):
    """Turnovers at which it says that the clock has doubled."""
    found = []
    while ledger.clock.ticks < upto * TICKS:
        ledger.clock.ticks += step
        if doublings.passed():
            found.append((ledger.clock.ticks - ledger.window.since) / TICKS)
    return found


def test_it_is_heard_at_each_doubling_of_the_settled_clock(ledger, schedule):
    assert heard(ledger, schedule.doublings, 70) == [FIRST * 2**turn for turn in range(6)]


def test_a_crawl_that_outgrows_itself_begins_anew_and_one_that_grows_on_is_never_gone_through(ledger, schedule):
    doublings = schedule.doublings
    assert heard(ledger, doublings, FIRST * 5) == [FIRST, 2 * FIRST, 4 * FIRST]
    ledger.window.since = ledger.clock.ticks
    assert heard(ledger, doublings, FIRST * 8) == [FIRST, 2 * FIRST]
    for _ in range(100):
        ledger.window.since = ledger.clock.ticks
        ledger.clock.ticks += START - 1
        assert not doublings.passed()


def test_it_is_heard_once_whatever_the_restarts(ledger, schedule):
    doublings = schedule.doublings
    heard(ledger, doublings, FIRST * 3)
    again = Doublings(ledger, schedule.change_model)
    again.load(doublings.dump())
    assert not again.passed() and heard(ledger, again, FIRST * 5) == [4 * FIRST]


# A crawl


def agenda_of(crawl):
    return crawl.frontier.scheduler.schedule


def until_doubled(web):
    """Live on until a recount has begun of its own accord; its first slice is done."""
    web.run(1)
    crawl = web.crawl
    while agenda_of(crawl).recount is not None:
        crawl.turn()
    crawl.frontier.ledger.clock.ticks = max(crawl.frontier.ledger.clock.ticks, agenda_of(crawl).doublings.next)
    crawl.turn()
    return crawl


def test_it_is_heard_when_the_prior_has_doubled_or_halved_and_once_whatever_the_restarts(schedule):
    doublings, model = schedule.doublings, schedule.change_model
    before = model.prior_rate
    for rate, factor in ((8.0, 2.0), (1e-3, 0.5)):
        (estimate,) = model.rates([PageBelief(RateSums().after(1.0 / rate, rate > 1.0, None), RatePrior())])
        told = []
        for _ in range(500):
            model.kinds.recount("HTML", 0, estimate.code)
            if doublings.passed():
                told.append(model.prior_rate)
                assert (told[-1] / before - factor) * (factor - 1.0) >= 0.0
                before = told[-1]
                again = Doublings(schedule.doublings._ledger, model)
                again.load(doublings.dump())
                assert not again.passed()
        assert 1 <= len(told) < 20


def off(crawl):
    """Of each page that is read: how far its weight is from that of the importance of now, in parts."""
    frontier = crawl.frontier
    found = {}
    for one in PAGES:
        page = crawl.page(one)[1]
        row = frontier.partition.row(page)
        if row is not None and row.weight and frontier.partition.states[page] == State.READ:
            found[page] = abs(weight(float(frontier.ledger.importance([page])[0]), row.rate) / row.weight - 1.0)
    return found


def test_all_pages_are_dated_by_the_importance_of_now_in_slices(monkeypatch):
    monkeypatch.setattr(redating, "ROWS", 37)
    crawl, turns = until_doubled(Web(bandwidth="100/day")), 0
    assert agenda_of(crawl).recount is not None and crawl.frontier.scheduler.next_time() == 0.0
    assert max(off(crawl).values()) > 2 * CLOSE, "the first reads knew less"
    while agenda_of(crawl).recount is not None:
        crawl.turn()
        assert_exact(crawl)
        turns += 1
    assert turns >= 2 * len(PAGES) // 37 - 1
    bandwidth, partition = crawl.frontier.scheduler.bandwidth, crawl.frontier.partition
    assert len(off(crawl)) > 100 and max(off(crawl).values()) <= CLOSE + 1e-6
    for page in off(crawl):
        row = partition.row(page)
        wait = bandwidth.of_row(page, row).seconds
        assert int(crawl.frontier.columns["due"][page]) - row.last_read == pytest.approx(wait, rel=0.06, abs=2.0)


def test_pages_read_once_are_believed_and_dated_by_what_the_others_showed_since():
    web = Web(bandwidth="60/day")
    web.rate = dict.fromkeys(PAGES, 10.0)
    web.run(4)
    crawl, rates = web.crawl, []
    while agenda_of(crawl).recount is not None:
        crawl.turn()
    partition, now = crawl.frontier.partition, agenda_of(crawl).change_model.prior_rate
    for page in (crawl.page(one)[1] for one in PAGES):
        row = partition.row(page)
        if not any(row.belief.sums):
            rates.append(row.rate)
            wait = int(crawl.frontier.columns["due"][page]) - row.last_read
            assert wait == pytest.approx(crawl.frontier.scheduler.bandwidth.of_row(page, row).seconds, rel=0.3)
    assert len(rates) > 20, "some wait for their second read"
    assert now > 5.0 and min(rates) > 0.49 * now, "the others showed what these are like"
    assert_exact(crawl)


def test_few_reads_among_pages_that_change_all_the_time_show_what_all_are_like():
    web = Web(bandwidth="200/day")
    web.rate = dict.fromkeys(PAGES, 2_000.0)
    web.run(3)
    assert min(web.reads[one] for one in PAGES) >= 2, "those read again first are not all that is read"


def test_what_a_kill_cut_short_begins_anew_and_what_ended_does_not(monkeypatch):
    monkeypatch.setattr(redating, "ROWS", 37)
    web = Web(bandwidth="100/day")
    until_doubled(web)
    crawl = reborn(web)
    assert agenda_of(crawl).recount is not None
    while agenda_of(crawl).recount is not None:
        crawl.turn()
        assert_exact(crawl)
    assert max(off(crawl).values()) <= CLOSE + 1e-6
    assert agenda_of(reborn(web)).recount is None


def test_reads_are_what_the_bandwidth_allows_all_the_same():
    web = Web(bandwidth="100/day")
    until_doubled(web)
    assert all(98 <= reads <= 102 for reads in web.run(3)[1:])


def test_who_dates_by_something_else_is_left_alone():
    settings = Web().crawl.settings
    chosen = msgspec.structs.replace(settings, refresh=msgspec.structs.replace(settings.refresh, guide="interest"))
    assert agenda_of(Crawl.in_memory(settings=chosen, refreshing=True)).doublings is None


def test_bounded_crawls_and_clusters_are_left_alone():
    settings = Web().crawl.settings
    ahead = msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, refresh=True))
    clustered = msgspec.structs.replace(settings, clusters=(ClusterTable("news", urls=(PAGES[0],)),))
    for chosen, refreshing in ((settings, False), (ahead, True), (clustered, True)):
        assert agenda_of(Crawl.in_memory(settings=chosen, refreshing=refreshing)).doublings is None


def test_counting_again_files_no_page_whose_date_stays():
    """Each page dated anew lies in two folders until its old date has passed: that must not add up."""
    web = Web(bandwidth="100/day")
    web.run(3)
    schedule, entries = agenda_of(web.crawl), []
    for _ in range(6):
        schedule._count_anew()
        while schedule.recount is not None:
            web.crawl.turn()
        entries.append(len(schedule.due_queue.folders))
    assert entries[5] == entries[3] <= entries[0] + 2 * web.crawl.frontier.columns.n, "priors come to rest, too"
