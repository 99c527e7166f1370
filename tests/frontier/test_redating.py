"""Settles, recounts and switches in any mix: S and the population are always those of the stored rows."""

from __future__ import annotations

import functools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import START, Crawl, failed, in_memory_partition, report, url
from tests.frontier.test_bandwidth import Web, assert_exact
from xyro.frontier import due_queue, redating
from xyro.frontier.bandwidth import DAY
from xyro.metadata import rows
from xyro.metadata.states import LEASED, State
from xyro.metadata.store import MemoryStore

READ = int(State.READ)
SWITCHES = (
    {"policy": "freshness"},
    {"policy": "mixed"},
    {"policy": "obsolescence"},
    {"min_importance": 0.6},
    {"min_importance": 0.0},
    {"bandwidth": "150/day"},
    {"max_interval": 3 * DAY},
)
ANSWERS = st.sampled_from(["changed", "same", "304", "timeout", "http-5xx", "http-404", "robots-disallowed"])
DEEDS = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 40), ANSWERS),
    st.tuples(st.just("switch"), st.sampled_from(SWITCHES), st.none()),
    st.tuples(st.just("evidence"), st.integers(0, 60), st.floats(0.1, 50.0)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 600.0, DAY, 9 * DAY]), st.none()),
)


@functools.cache
def prepared():
    """What the store of a crawl holds after a day, in which every page was read."""
    web = Web(bandwidth="100/day")
    web.run(1)
    return web.crawl, dict(web.crawl.frontier.partition.store.scan(b""))


def one_day_old():
    """A crawl of its own, opened from there."""
    made, rows_of_it = prepared()
    store = MemoryStore()
    batch = store.batch()
    for key, value in rows_of_it.items():
        batch.put(key, value)
    store.write(batch)
    return Crawl([in_memory_partition(store, 0, 1)], made.settings, refreshing=True, now=made.now)


def answered(crawl, order, how):
    match how:
        case "changed":
            return report(order, crawl.now, signature=int(crawl.now * 1000).to_bytes(16, "big"))
        case "same":
            return report(order, crawl.now, signature=b"s" * 16)
        case "304":
            return report(order, crawl.now, status=304, signature=b"")
        case "timeout":
            return failed(order, crawl.now, how, retry_in=300.0)
        case "http-5xx":
            return failed(order, crawl.now, how, status=503, retry_in=600.0)
        case "http-404":
            return failed(order, crawl.now, how, status=404)
    return failed(order, crawl.now, how)


def in_group(crawl, change):
    """A commit group between two turns, in which only this happens."""
    partition, scheduler = crawl.frontier.partition, crawl.frontier.scheduler
    partition.begin()
    change(partition, scheduler)
    scheduler.bandwidth.store(partition)
    commit = partition.seal({"node": crawl.frontier.dump()})
    partition.write(commit)
    partition.written(commit)


def switch(crawl, **refresh):
    scheduler = crawl.frontier.scheduler
    chosen = msgspec.structs.replace(scheduler.settings.refresh, **refresh)
    scheduler.reconfigure(msgspec.structs.replace(scheduler.settings, refresh=chosen))


def evidence(crawl, page, times):
    """The page's change rate is found to be another, whatever is out."""
    row = crawl.frontier.partition.row(page)
    if row is not None and row.rate:
        new = msgspec.structs.replace(row, rate=row.rate * times)
        in_group(crawl, lambda partition, scheduler: scheduler.schedule.rewrite(page, row, new))


@pytest.mark.parametrize("follows", [False, True])
def test_all_pages_are_dated_anew_by_what_stands_for_importance(follows):
    """Out of the plan and back (follows: the importance of now for all): what an extension makes of it is asked."""
    crawl = one_day_old()
    frontier, schedule = crawl.frontier, crawl.frontier.scheduler.schedule
    switch(crawl, min_importance=0.0 if follows else 1e9)
    while schedule.recount is not None:
        crawl.turn()
    if follows:
        schedule.doublings.next = 0
    frontier.hooks.importance.append(lambda pages, importance, now: [5.0] * len(importance))
    if not follows:
        switch(crawl, min_importance=0.0)
    crawl.turn()
    while schedule.recount is not None:
        crawl.turn()
    found = [row for page in range(frontier.columns.n) if (row := frontier.partition.row(page)) and row.weight]
    importances = [row.weight * row.weight / row.pace for row in found]
    assert len(found) > 50 and all(abs(importance - 5.0) < 0.3 for importance in importances)


def test_another_time_unit_files_the_pages_anew_in_slices():
    """A few a turn, each once; a page that is dated meanwhile is filed when its turn comes, by its new date."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due_queue, "FILED_AT_ONCE", 7)
        crawl = one_day_old()
        schedule, columns = crawl.frontier.scheduler.schedule, crawl.frontier.columns
        queue = schedule.due_queue
        dated = [
            page for page in range(columns.n) if columns["due"][page] > crawl.now and columns["state"][page] == READ
        ]
        assert len(dated) > 50
        switch(crawl, time_unit=60)
        last, moved = dated[-1], int(crawl.now + 33 * DAY)
        in_group(crawl, lambda *_: schedule.put_due(last, moved))
        turns, entries = 0, len(queue.folders)
        while queue.filing:
            assert crawl.frontier.scheduler.next_time() == 0.0, "nobody would wake it"
            crawl.turn()
            turns += 1
            assert len(queue.folders) - entries <= 7
            entries = len(queue.folders)
        assert turns == -(-columns.n // 7)
        found = queue.folders.pop(int(moved + 60)).tolist()
        assert found.count(last) == 1 and len(found) == len(set(found))
        due_still = {page for page in dated if columns["due"][page] > crawl.now and not columns["flags"][page] & LEASED}
        assert due_still <= set(found) | {page for page in dated if columns["due"][page] > moved}


@settings(max_examples=15, deadline=None)
@given(st.lists(DEEDS, min_size=5, max_size=40))
def test_counts_are_those_of_the_rows_after_any_mix(deeds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redating, "ROWS", 17)
        crawl = one_day_old()
        for deed, which, how in deeds:
            match deed:
                case "answer" if crawl.orders:
                    order = list(crawl.orders.values())[which % len(crawl.orders)]
                    crawl.give(answered(crawl, order, how))
                case "switch":
                    switch(crawl, **which)
                case "evidence":
                    evidence(crawl, which % crawl.frontier.columns.n, how)
                case "wait":
                    crawl.now += which
            crawl.turn()
            assert_exact(crawl)
        while crawl.frontier.scheduler.schedule.recount is not None:
            crawl.turn()
            assert_exact(crawl)
        assert_exact(crawl)
        assert crawl.audit()["violations"] == []


@pytest.mark.parametrize("how", ["changed", "304", "http-5xx", "http-404"])
def test_whoever_writes_a_row_while_its_order_is_out_a_report_is_laid_over_what_is_stored(how):
    """Even if the scheduler was not told of it."""
    crawl = one_day_old()
    while not crawl.orders:
        crawl.now += 600
        crawl.turn()
    page, order = next(iter(crawl.orders.items()))

    def stored(partition, scheduler):
        row = partition.row(page)
        new = msgspec.structs.replace(row, rate=row.rate * 9.0, weight=row.weight * 3.0)
        scheduler.bandwidth.replace(page, row, new.weight, new.rate)
        partition.put(rows.REFRESH.key(page), rows.pack(new))

    in_group(crawl, stored)
    assert_exact(crawl)
    crawl.give(answered(crawl, order, how))
    crawl.turn()
    assert page not in crawl.frontier.scheduler.leases
    assert_exact(crawl)


def test_a_first_read_asks_for_no_row():
    """Most pages of a young crawl have none: looking for it would be a search in the store for each."""
    web = Web()
    crawl = web.crawl
    (order,) = crawl.turn()
    asked = []
    crawl.frontier.partition.row = lambda page: asked.append(page)
    crawl.give(report(order, START, [url(1, 1)]))
    crawl.turn()
    assert asked == [] and crawl.frontier.reads == 1
