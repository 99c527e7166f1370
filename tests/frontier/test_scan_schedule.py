"""Refreshing by scan: the greatest index first, the bandwidth to the read, and every rule that folders keep."""

from __future__ import annotations

import collections
import math

import msgspec
import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, copied, report, snapshot, url
from tests.frontier.test_bandwidth import DAY, Web, assert_exact, reborn
from xyro.configs.schema import Crawl as CrawlSettings
from xyro.configs.schema import Refresh, Settings, Store
from xyro.frontier.due_queue import DueQueue
from xyro.frontier.scan_schedule import Scanned
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, LAST_READ, RATE, State
from xyro.service.views.freshness_report import freshness_report
from xyro.service.views.views import Views
from xyro.service.views.why import why
from xyro.wire.messages import Priority


def scanning(seed=3, **refresh):
    return Web(seed, execution="scan", **refresh)


def rows_of(crawl):
    """{page: row} of the pages that a scan ranks, from the rows alone."""
    node = crawl.node
    states, flags = node.partition.states, node.partition.flags
    found = {page: node.partition.row(page) for page in range(node.columns.n) if states[page] == State.READ}
    return {page: row for page, row in found.items() if row.weight and not flags[page] & HASTENED}


def by_full_sort(crawl):
    """{page: index} by the policy's formula in double precision, from importance, row and clock."""
    held = rows_of(crawl)
    pages = list(held)
    importance = crawl.node.columns["flow"][pages].astype(float)
    rate = np.array([held[page].rate for page in pages])
    age = np.array([(crawl.now - held[page].last_read) / DAY for page in pages])
    index = crawl.node.scheduler.bandwidth.rules.policy.index(importance, rate, age)
    return dict(zip(pages, index.tolist(), strict=True))


def assert_ranked_as_rows_say(crawl):
    """Every page that its own rate dates is ranked with the numbers of its row, and no other is."""
    node, n = crawl.node, crawl.node.columns.n
    rate, read = node.columns[RATE][:n], node.columns[LAST_READ][:n]
    held = rows_of(crawl)
    ranked = np.flatnonzero(rate).tolist()
    out = set(crawl.orders) | {page for page in held if node.columns["due"][page] <= crawl.now}
    assert set(ranked) - out == set(held) - out and ranked
    for page in ranked:
        assert rate[page] == pytest.approx(held[page].rate) and read[page] == held[page].last_read


# What is chosen


@pytest.mark.parametrize(
    "policy",
    [
        {"policy": "obsolescence"},
        {"policy": "mixed", "alpha": 0.3},
        {"policy": "freshness", "max_interval": 50 * DAY},
        {"policy": "uniform"},
    ],
)
def test_the_bandwidth_is_spent_to_the_read_on_what_a_full_sort_puts_first(policy):
    web = scanning(bandwidth="150/day", regular=False, **policy)
    web.run(1)
    crawl, per_day, looked = web.crawl, [], 0
    for _ in range(2):
        end, reads = crawl.now + DAY / 2, 0
        while crawl.now < end:
            quiet = not crawl.pending[0]
            index = by_full_sort(crawl) if quiet and crawl.node.scheduler.due_queue._stale(crawl.now) else {}
            orders = crawl.turn()
            if index and orders:
                assert crawl.node.scheduler.due_queue._looked == crawl.now
                chosen = [order.page for order in orders]
                rest = max(found for page, found in index.items() if page not in chosen)
                assert min(index[page] for page in chosen) >= rest * (1 - 1e-5)
                looked += 1
            for order in orders:
                web.answer(order)
                reads += 1
            if not crawl.pending[0]:
                crawl.now = max(crawl.now + 0.01, min(crawl.node.scheduler.next_time(), end))
        per_day.append(reads)
    assert all(74 <= reads <= 76 for reads in per_day) and looked > 50
    assert_exact(crawl)
    assert crawl.audit()["violations"] == []


def measured(web, days):
    """Freshness over so many days by the true rates, weighted by importance."""
    fresh, begin, answer = collections.Counter(), web.crawl.now, web.answer

    def lived(target):
        """Days that the copy was fresh, from its read, or the beginning, to now."""
        then, rate = web.seen[target][0], web.rate[target]
        before, after = max(begin - then, 0.0) / DAY, (web.crawl.now - then) / DAY
        fresh[target] += (math.exp(-rate * before) - math.exp(-rate * after)) / rate

    def told(order):
        if order.url in web.rate:
            lived(order.url)
        answer(order)

    web.answer = told
    web.run(days)
    for target in web.rate:
        lived(target)
    node = web.crawl.node
    importance = {target: float(node.columns["flow"][web.crawl.page(target)[1]]) for target in web.rate}
    return sum(importance[target] * fresh[target] for target in web.rate) / sum(importance.values()) / days


def test_both_executions_are_as_fresh():
    """With rates being learned; with known rates: tests/refresh/test_scan.py."""
    told = []
    for execution in ("folders", "scan"):
        web = Web(bandwidth="100/day", execution=execution)
        web.run(3)
        told.append(measured(web, 6))
    assert told[0] - 0.02 < told[1] < told[0] + 0.06 and told[0] > 0.5


def test_a_measured_bandwidth_reads_what_has_reached_the_multiplier():
    web = scanning(regular=False, time_unit=3600)
    crawl, scheduler = web.crawl, web.crawl.node.scheduler
    scheduler.bandwidth.capacity.rate = lambda: 100 / DAY
    web.run(3)
    reads = 0
    end = crawl.now + 4 * DAY
    while crawl.now < end:
        index = by_full_sort(crawl) if not crawl.pending[0] and scheduler.due_queue._stale(crawl.now) else {}
        for order in crawl.turn():
            if index:
                assert index[order.page] * scheduler.bandwidth.scale >= scheduler.bandwidth.multiplier * (1 - 1e-4)
            web.answer(order)
            reads += 1
        if not crawl.pending[0]:
            crawl.now = max(crawl.now + 0.01, min(scheduler.next_time(), end))
    assert reads == pytest.approx(400, rel=0.2)


# Who is not ranked


def read_once(**refresh):
    """Ten pages, each read once and spending over its links."""
    chosen = Settings(
        CrawlSettings(scope="any"),
        store=Store(leases_per_host=refresh.pop("leases", 64)),
        refresh=Refresh(**{"execution": "scan", "bandwidth": 1.0, "audit": 0.0, "time_unit": 60} | refresh),
    )
    crawl = Crawl.in_memory(settings=chosen, refreshing=True)
    targets = [url(page % 2, page) for page in range(10)]
    crawl.submit(targets[0])
    for _ in range(4):
        for order in crawl.turn():
            crawl.answer(order, [one for one in targets if one != order.url])
        crawl.now += 1.0
    crawl.turn()
    return crawl


def steps(crawl, seconds, step=30.0, **answer):
    """Orders of so many seconds, each answered at once."""
    seen = []
    end = crawl.now + seconds
    while crawl.now < end:
        crawl.now += step
        for order in crawl.turn():
            seen.append((order.url, crawl.now))
            crawl.answer(order, [url(k % 2, k) for k in range(10)], **answer)
    return seen


def gaps(seen):
    last, found = {}, []
    for target, at in seen:
        if target in last:
            found.append(at - last[target])
        last[target] = at
    return found


def test_no_page_is_read_before_its_floor_and_all_are_read_by_their_ceiling():
    crawl = read_once(min_interval=900.0, max_interval=1800.0, bandwidth=1 / 150)
    seen = steps(crawl, 20_000)
    assert min(gaps(seen)) >= 900.0
    crawl = read_once(max_interval=3000.0, bandwidth=1 / 200)  # 10 pages take 2000 seconds
    for page in range(9):
        crawl.node.columns["flow"][page] = 1e-6
    assert max(gaps(steps(crawl, 20_000))) <= 3400.0
    assert len({target for target, _ in seen}) == 10


def test_pages_of_a_held_host_are_left_alone_and_not_forgotten():
    crawl = read_once()
    hold = crawl.node.partition.hosts.numbers["h1.example"]
    crawl.node.hold(hold, "paused")
    seen = {target for target, _ in steps(crawl, 600)}
    assert seen == {url(0, page) for page in range(0, 10, 2)}
    crawl.node.hold(hold, "")
    assert {target for target, _ in steps(crawl, 600)} == {url(page % 2, page) for page in range(10)}


def test_a_full_host_keeps_nobody_else_waiting():
    crawl = read_once(leases=2)
    for order in crawl.turn():
        crawl.answer(order)
    crawl.now += 100.0
    while len(crawl.orders) < 4 and crawl.now < START + 10_000:
        crawl.turn()
        crawl.now += 30.0
    stuck = [order for order in crawl.orders.values() if "h0" in order.url]
    free = []
    for _ in range(40):
        for order in [order for order in crawl.orders.values() if "h1" in order.url]:
            crawl.answer(order)
        free += [order.url for order in crawl.turn()]
        crawl.now += 30.0
    assert len(stuck) == 2 and len(free) >= 20 and all("h1" in target for target in free)
    assert crawl.node.scheduler.revisits.host_queues.pages() <= 5


def test_pages_below_the_least_importance_and_hopeless_ones_are_not_ranked():
    crawl = read_once(min_importance=50.0, max_interval=3600.0)
    assert not crawl.node.columns[RATE].any() and steps(crawl, 3000) == []
    crawl = read_once(min_interval=86_400.0, hopeless=0.99, hopeless_interval=600.0)
    assert not crawl.node.columns[RATE].any()
    found = gaps(steps(crawl, 6000))
    assert found and min(found) >= 600.0 and max(found) <= 720.0


def test_a_page_that_failed_or_left_the_scope_is_ranked_no_more():
    crawl = read_once()
    failed, gone = crawl.page(url(0, 2))[1], crawl.page(url(1, 3))[1]
    for page, error in ((failed, "timeout"), (gone, "http-404")):
        crawl.submit(crawl.node.partition.url(page))
        (order,) = [order for order in crawl.turn() if order.page == page]
        assert crawl.node.columns[RATE][page] > 0.0, "ordered by a person, it is ranked until it is answered"
        crawl.fail(order, error, **({"status": 404} if error == "http-404" else {"retry_in": 5000.0}))
        crawl.turn()
        assert crawl.node.columns[RATE][page] == 0.0
    seen = {target for target, _ in steps(crawl, 900)}
    assert url(0, 2) not in seen and url(1, 3) not in seen and len(seen) == 8
    assert url(0, 2) in {target for target, _ in steps(crawl, 6000)}


def test_a_hastened_page_goes_by_its_date_once_and_is_ranked_again():
    crawl = read_once(bandwidth=1e-3)
    steps(crawl, 3000)
    node, page = crawl.page(url(0, 4))
    node.partition.begin()
    node.scheduler.schedule.put_due(page, int(crawl.now + 500))
    crawl.write(type("Sealed", (), {"commit": node.partition.seal({"node": node.dump()}), "orders": [],
                                    "transfers": [], "acks": [], "submits": []}))  # fmt: skip
    assert node.columns[RATE][page] == 0.0
    at = dict(steps(crawl, 3000))
    assert url(0, 4) in at
    assert node.columns[RATE][page] > 0.0 and not node.partition.flags[page] & HASTENED


def test_a_rate_that_is_learned_without_a_read_counts_at_once():
    crawl = read_once()
    node, page = crawl.page(url(0, 4))
    row = node.partition.row(page)
    node.partition.begin()
    node.scheduler.schedule.rewrite(page, row, msgspec.structs.replace(row, rate_a=row.rate_a * 10))
    assert node.columns[RATE][page] == pytest.approx(10 * row.rate)
    assert node.columns[LAST_READ][page] == row.last_read


# Restarts and switches


@pytest.mark.parametrize("snapshot_after", [0, 40])
def test_a_crash_changes_nothing_of_what_is_read_next(tmp_path, snapshot_after):
    chosen = Settings(
        CrawlSettings(scope="any"), refresh=Refresh(execution="scan", bandwidth="2000/day", audit=0.0, time_unit=60)
    )
    crawl = Crawl.on_disk(tmp_path / "a", settings=chosen, refreshing=True)
    crawl.submit(url(0))
    links = [url(page % 3, page) for page in range(30)]
    for turn in range(120):
        for order in crawl.turn():
            crawl.answer(order, links, signature=(turn % 7 * order.page + 1).to_bytes(16, "big"))
        crawl.now += 61.0
        if turn == snapshot_after:
            snapshot(crawl.node)
    crawl.turn()
    again = Crawl.on_disk(copied(tmp_path / "a", tmp_path / "b"), settings=chosen, refreshing=True)
    assert again.node.scheduler.schedule.recount is None
    for name in (RATE, LAST_READ, "due"):
        n = crawl.node.columns.n
        assert again.node.columns[name][:n].tolist() == crawl.node.columns[name][:n].tolist(), name
    out = sorted(crawl.orders)  # the crash loses these; the directory knows that they are due
    assert set(again.node.scheduler.due_queue.folders.pop(int(crawl.now) + 60).tolist()) >= set(out) - {0}
    crawl.close()
    again.close()


def test_a_directory_goes_from_folders_to_a_scan_and_back():
    web = Web(bandwidth="100/day", regular=False)
    web.run(2)
    assert RATE not in web.crawl.node.columns
    crawl = reborn(web, execution="scan")
    scheduler = crawl.node.scheduler
    assert isinstance(scheduler.due_queue, Scanned) and scheduler.schedule.recount is not None
    crawl = reborn(web, execution="scan")  # killed before the pages were ranked: they are, this time
    assert crawl.node.scheduler.schedule.recount is not None
    while crawl.node.scheduler.schedule.recount is not None:
        for order in crawl.turn():
            web.answer(order)
    crawl.turn()
    assert_ranked_as_rows_say(crawl)
    assert all(99 <= reads <= 101 for reads in web.run(2)[1:])
    assert_ranked_as_rows_say(crawl)
    crawl = reborn(web, execution="scan")
    assert crawl.node.scheduler.schedule.recount is None
    assert_ranked_as_rows_say(crawl)
    crawl = reborn(web, execution="folders")
    assert not isinstance(crawl.node.scheduler.due_queue, Scanned) and RATE not in crawl.node.columns
    assert all(99 <= reads <= 101 for reads in web.run(2)[1:])
    assert_exact(crawl)
    assert crawl.audit()["violations"] == []


def switched(web, **refresh):
    """The same crawl goes on with other settings, as on SIGHUP; driven until all pages are dated by them."""
    crawl = web.crawl
    chosen = msgspec.structs.replace(crawl.settings.refresh, **refresh)
    crawl.settings = msgspec.structs.replace(crawl.settings, refresh=chosen)
    crawl.node.follow(crawl.settings)
    assert crawl.node.scheduler.next_time() <= crawl.now, "it is not waited for the next date"
    for order in crawl.turn():
        web.answer(order)
    while crawl.node.scheduler.schedule.recount is not None:
        for order in crawl.turn():
            web.answer(order)
    for order in crawl.turn():
        web.answer(order)
    return crawl.node.scheduler


def test_the_execution_changes_while_it_runs_and_a_crash_finds_it_changed():
    web = Web(bandwidth="100/day", regular=False)
    web.run(2)
    scheduler = switched(web, execution="scan")
    assert isinstance(scheduler.due_queue, Scanned) and isinstance(scheduler.deadlines._due, Scanned)
    assert_ranked_as_rows_say(web.crawl)
    assert all(99 <= reads <= 101 for reads in web.run(2)[1:])
    assert_ranked_as_rows_say(web.crawl)
    reborn(web, execution="scan")
    assert_ranked_as_rows_say(web.crawl)
    scheduler = switched(web, execution="folders", time_unit=60)
    assert type(scheduler.due_queue) is DueQueue and RATE not in web.crawl.node.columns
    assert scheduler.due_queue.folders.unit_seconds == 60
    assert all(99 <= reads <= 101 for reads in web.run(2)[1:])
    read = np.flatnonzero(web.crawl.node.columns["state"][: web.crawl.node.columns.n] == State.READ)
    assert (web.crawl.node.columns["due"][read] > 0).all(), "every page has a date"
    scheduler = switched(web, time_unit=3600)
    assert scheduler.due_queue.folders.unit_seconds == 3600 and len(scheduler.due_queue.folders) >= len(read) - len(
        web.crawl.orders
    )
    assert all(98 <= reads <= 102 for reads in web.run(2)[1:])
    assert_exact(web.crawl)
    assert web.crawl.audit()["violations"] == []


def test_what_promises_took_is_owed_over_a_switch():
    web = Web(bandwidth="100/day", regular=False)
    web.run(1)
    web.crawl.node.scheduler.due_queue.governor.credit = -40.0
    scheduler = switched(web, execution="scan")
    assert scheduler.due_queue.governor.debt == pytest.approx(40.0, abs=1.0)


def test_a_switch_of_policy_counts_at_the_next_turn():
    web = scanning(bandwidth="100/day", regular=False)
    web.run(2)
    crawl, scheduler = web.crawl, web.crawl.node.scheduler
    chosen = msgspec.structs.replace(crawl.settings.refresh, policy="uniform", bandwidth="86400/day")
    scheduler.reconfigure(msgspec.structs.replace(crawl.settings, refresh=chosen))
    crawl.now += 2.0
    crawl.turn()
    crawl.now += 2.0
    crawl.turn()
    assert scheduler.due_queue.scan.policy.name == "uniform"
    while scheduler.schedule.recount is not None:
        crawl.turn()
    assert_exact(crawl)


def test_pages_whose_importance_a_guide_says_go_by_their_dates(tmp_path):
    web = scanning(bandwidth="100/day")
    web.run(1)
    scheduler = web.crawl.node.scheduler
    page = next(iter(rows_of(web.crawl)))
    scheduler.partition.begin()
    scheduler.due_queue.dated(page, int(web.crawl.now) + 5, 0.0, web.crawl.now)
    assert web.crawl.node.columns[RATE][page] == 0.0
    apart = Scanned(
        scheduler.partition, scheduler.bandwidth, scheduler.schedule.ledger, 60, scheduler._shut_hosts, ranks=False
    )
    apart.dated(page, int(web.crawl.now) + 5, 1.0, web.crawl.now)
    assert web.crawl.node.columns[RATE][page] == 0.0 and len(apart.folders) == 1


def test_a_crawl_that_reads_ahead_or_does_not_refresh_scans_nothing():
    for options, refreshing in (({"refresh": True}, True), ({}, False)):
        chosen = Settings(CrawlSettings(scope="any", **options), refresh=Refresh(execution="scan"))
        crawl = Crawl.in_memory(settings=chosen, refreshing=refreshing)
        assert type(crawl.node.scheduler.due_queue) is DueQueue and RATE not in crawl.node.columns


# Looks


def test_why_and_status_say_how_far_a_page_is_from_the_threshold():
    web = scanning(bandwidth="100/day", regular=False)
    web.run(3)
    crawl, scheduler = web.crawl, web.crawl.node.scheduler
    told = freshness_report(crawl.nodes, crawl.now)["execution"]
    assert told["by"] == "scan" and told["ranked"] > 150 and told["threshold"] > 0.0
    held = by_full_sort(crawl)
    page = min(held, key=held.get)
    with Views(crawl.nodes) as views:
        said = " ".join(why(views, crawl.node.partition.url(page), crawl.now)["because"])
    assert "By scan: its index is " in said and "of the threshold" in said
    standing = scheduler.due_queue.standing(page, crawl.now)
    assert standing.worth == pytest.approx(held[page] * scheduler.bandwidth.scale, rel=1e-4)
    assert standing.worth < standing.threshold and standing.at > crawl.now
    row: RefreshRow = crawl.node.partition.row(page)
    rules, flow = scheduler.bandwidth.rules, float(crawl.node.columns["flow"][page]) * scheduler.bandwidth.scale
    age = np.array([(standing.at - row.last_read) / DAY])
    there = rules.policy.index(np.array([flow]), np.array([row.rate]), age)
    assert there[0] == pytest.approx(standing.threshold, rel=1e-3)
    folders = Web(bandwidth="100/day")
    folders.run(1)
    assert freshness_report(folders.crawl.nodes, folders.crawl.now)["execution"]["by"] == "folders"


def test_orders_of_people_and_the_first_read_are_as_ever():
    crawl = read_once()
    crawl.submit(url(0, 4))
    (order,) = [order for order in crawl.turn() if order.priority is Priority.ORDERED]
    crawl.give(report(order, crawl.now, [url(0, 99)], signature=bytes(16)))
    crawl.turn()
    assert url(0, 99) in {order.url for order in crawl.orders.values()}
    assert crawl.audit()["violations"] == []
