"""Deadlines pages: ahead of the plan, by their deadlines, paid for by the plan; and what a read of before is worth."""

import pytest

from tests.frontier.rig import Crawl, report, url
from xyro.configs.load import load
from xyro.configs.schema import ClusterTable, Settings
from xyro.frontier.due_queue import DEBT
from xyro.metadata import rows
from xyro.metadata.store import MemoryStore
from xyro.plugins import extensions
from xyro.plugins.clusters.page_clusters import PageClusters
from xyro.plugins.publish.notice_pages import NoticePages
from xyro.plugins.publish.promise_report import costs
from xyro.plugins.publish.promises import PublisherClaim, promises_of
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.refresh.publications import TRUSTED
from xyro.refresh.sharing import Bursts
from xyro.refresh.trust import Source
from xyro.service.node.crawl_file import remember
from xyro.service.node.stopped import open_stopped
from xyro.wire.messages import Priority

HOUR = 3_600.0


def crawl_of(pages=6, **settings):
    """A daemon that has read some pages of one host; nothing is out."""
    chosen = load(overrides={"refresh.min_interval": 1e6, "refresh.max_interval": 1e7, **settings})
    crawl = Crawl.in_memory(refreshing=True, settings=chosen)
    crawl.submit(*(url(0, page) for page in range(pages)))
    (read := crawl.turn()).sort(key=lambda order: order.page)
    for order in read:
        crawl.answer(order)
    crawl.turn()
    crawl.now += 10 * HOUR
    crawl.turn()
    assert not crawl.orders
    return crawl


def edit(crawl, change):
    """In a commit group of its own."""
    frontier = crawl.frontier
    frontier.partition.begin()
    change(frontier)
    commit = frontier.partition.seal({"node": frontier.dump()})
    frontier.partition.write(commit)
    frontier.partition.written(commit)


def publish(crawl, *pages, deadline=HOUR):
    said = PublisherClaim("changed", crawl.now, crawl.now + deadline, sure=True)

    def change(frontier):
        assert promises_of(frontier).publish([url(0, page) for page in pages], said) == []
        promises_of(frontier).settled((), crawl.now)

    edit(crawl, change)


def test_orders_carry_the_deadline_that_was_promised():
    crawl = crawl_of()
    publish(crawl, 1, deadline=500.0)
    crawl.submit(url(0, 2))
    promised, asked = sorted(crawl.turn(), key=lambda order: order.page)
    assert (promised.priority, promised.deadline) == (Priority.ORDERED, crawl.now + 500.0)
    usual = crawl.settings.publish.deadline
    assert (asked.priority, asked.deadline) == (Priority.ORDERED, crawl.now + usual), "people's have the usual one"


def test_a_page_that_is_out_as_due_goes_up_when_it_is_published():
    crawl = crawl_of()
    page = crawl.page(url(0, 1))[1]
    edit(crawl, lambda frontier: frontier.scheduler.schedule.put_due(page, int(crawl.now)))
    crawl.now += 120.0
    (due,) = crawl.turn()
    assert due.priority is Priority.REFRESH
    publish(crawl, 1, deadline=500.0)
    (raised,) = crawl.turn()
    assert raised.raised and raised.epoch == due.epoch and raised.priority is Priority.ORDERED
    assert raised.deadline == crawl.now + 500.0


def test_a_read_that_had_begun_before_does_not_answer_the_publication():
    crawl = crawl_of()
    crawl.submit(url(0, 1))
    (early,) = crawl.turn()
    read = crawl.now
    crawl.now += 5.0
    publish(crawl, 1)
    crawl.turn()
    crawl.give(report(early, read))
    (again,) = crawl.turn()
    assert again.page == early.page and again.epoch != early.epoch and not again.raised
    publications = promises_of(crawl.frontier).publications
    assert len(publications) == 1 and not publications.counts.false
    crawl.now += 1.0
    crawl.answer(again)
    assert crawl.turn() == [] and len(publications) == 0 and publications.counts.in_time == 1


def test_a_host_that_announces_itself_brings_in_no_others():
    """Whoever has a name and a key may announce pages (IndexNow): each name had been granted 131,072 new hosts."""
    crawl = crawl_of(**{"crawl.scope": "any"})
    said = PublisherClaim("changed", crawl.now, crawl.now + HOUR, sure=True)
    edit(crawl, lambda frontier: promises_of(frontier).publish([url(7)], said))
    (order,) = (order for order in crawl.turn() if order.url == url(7))
    crawl.answer(order, [url(host) for host in range(8, 40)])
    known = {order.url for _ in range(3) for order in crawl.turn()}
    assert not known and crawl.frontier.pages.waiting_links.links() == 32


def test_the_plan_pays_and_beyond_its_debt_the_earliest_deadlines_are_read():
    bandwidth = 20 / 86_400
    crawl = crawl_of(60, **{"refresh.bandwidth": bandwidth, "refresh.audit": 0.0})
    governor, scheduler = crawl.frontier.scheduler.due_queue.governor, crawl.frontier.scheduler
    debt = max(16.0, DEBT * scheduler.bandwidth.reads_per_second)
    before = governor.credit
    publish(crawl, *range(30), deadline=2 * HOUR)
    publish(crawl, *range(30, 60), deadline=HOUR)
    out = crawl.turn()
    assert len(out) == pytest.approx(before + debt, abs=2) and governor.credit == pytest.approx(-debt, abs=2)
    waiting = 60 - len(out)
    assert len(scheduler.deadlines) == waiting > 0 and crawl.turn() == []
    assert scheduler.next_time() == pytest.approx(crawl.now + 1 / bandwidth, rel=1.0)
    for order in out:
        crawl.answer(order)
    crawl.turn()
    left = {crawl.page(url(0, page))[1]: HOUR if page >= 30 else 2 * HOUR for page in range(60)}
    for order in out:
        left.pop(order.page)
    soonest = min(left.values())
    crawl.now += 1.5 / bandwidth
    crawl.turn()  # the credit of this turn serves the next one
    (order,) = crawl.turn()
    assert left[order.page] == soonest
    assert order.deadline < crawl.now, "what is late is first"


def test_without_a_bandwidth_that_is_set_nothing_waits():
    crawl = crawl_of(60)
    publish(crawl, *range(60))
    assert len(crawl.turn()) == 60 and len(crawl.frontier.scheduler.deadlines) == 0


def test_a_promised_page_that_failed_is_tried_again_ahead_of_the_plan():
    crawl = crawl_of(3, **{"store.leases_per_host": 1})
    publish(crawl, 1, deadline=HOUR)
    (order,) = crawl.turn()
    crawl.fail(order, "timeout", retry_in=30.0)
    crawl.turn()
    crawl.now += 60.0
    (again,) = crawl.turn()
    assert (again.priority, again.deadline, again.attempt) == (Priority.ORDERED, order.deadline, 1)


def test_lateness_is_in_the_cost_and_told_of_a_stopped_crawl_too():
    crawl = crawl_of(4)
    publish(crawl, 1, deadline=HOUR)
    before = costs(crawl.crawl_views.statuses(crawl.now), crawl.now)
    assert before["late_publications"] == before["late_subscriptions"] == 0.0
    assert before["total"] == before["missed_changes"] > 0.0
    now = crawl.now + 5 * HOUR
    late = costs(crawl.crawl_views.statuses(now), now)
    pages = crawl.frontier.scheduler.bandwidth.population.pages
    assert late["late_publications"] == pytest.approx(4.0 / pages, abs=1e-3)
    assert late["total"] == pytest.approx(late["missed_changes"] + late["late_publications"], abs=1e-3)
    said = crawl.crawl_views.stopped_status(VIEW_EXTENSIONS, now)
    assert said["published"]["overdue"] == 1 and said["subscribed"]["subscriptions"] == 0
    assert said["cost"] == late and "clusters" not in said and "websub" not in said
    crawl.frontier.hooks.extension(NoticePages).awaited.overdue[2] = crawl.now
    two = costs(crawl.crawl_views.statuses(crawl.now + 2 * HOUR), crawl.now + 2 * HOUR)
    assert two["late_subscriptions"] == pytest.approx(2.0 / pages, abs=1e-3)


def test_clusters_of_a_stopped_crawl_are_told(tmp_path):
    """By what is stored with it: `xyro status` is given no settings, and a crawl remembers none of its clusters."""
    settings = Settings(clusters=(ClusterTable("front", (url(0, 1), url(0, 2))),))
    made = []
    plugins = [lambda frontier: made.append(PageClusters(frontier, settings.clusters))]
    crawl = Crawl.on_disk(tmp_path / "d", refreshing=True, settings=settings, plugins=plugins)
    (clustered,) = made
    crawl.submit(url(0, 1), url(0, 2))
    for order in crawl.turn():
        crawl.answer(order)
        crawl.turn()
        crawl.now += 5.0
    crawl.close()
    remember(tmp_path / "d", settings, MemoryStore())
    with open_stopped(tmp_path / "d", extensions) as stopped:
        (front,) = stopped.stopped_status(VIEW_EXTENSIONS, crawl.now)["clusters"]
    told = clustered.clusters[0].report()
    assert front == {name: told[name] for name in front}
    assert (front["name"], front["due"], front["spread_s"]) == ("front", clustered.clusters[0].due, 5.0)


def test_saying_it_again_and_again_hastens_an_untrusted_page_no_further():
    crawl = crawl_of()
    page = crawl.page(url(0, 1))[1]
    host = int(crawl.frontier.partition.hosts_of[page])
    edit(crawl, lambda frontier: [frontier.dating.change_model.published(host, False, 0.5) for _ in range(3)])
    said = PublisherClaim("changed", crawl.now, crawl.now + HOUR)

    def claim(frontier):
        assert promises_of(frontier).publish([url(0, 1)], said) == []

    before = int(crawl.frontier.columns["due"][page])
    edit(crawl, claim)
    once = int(crawl.frontier.columns["due"][page])
    assert crawl.now < once < before
    for _ in range(100):
        edit(crawl, claim)
    assert int(crawl.frontier.columns["due"][page]) == once and len(promises_of(crawl.frontier).publications) == 1


def test_who_claims_without_an_end_is_found_out_all_the_same():
    """A liar says it again during each read: none of them answers the last claim, but each answers one before."""
    crawl = crawl_of()
    page = crawl.page(url(0, 1))[1]

    def claim(frontier):
        promises_of(frontier).publish([url(0, 1)], PublisherClaim("changed", crawl.now, crawl.now + HOUR))
        promises_of(frontier).settled((), crawl.now)

    edit(crawl, claim)
    (order,) = crawl.turn()
    publications, host = promises_of(crawl.frontier).publications, crawl.frontier.partition.hosts.names[0]
    for _ in range(20):
        crawl.now += 10.0
        began = crawl.now
        crawl.now += 5.0
        edit(crawl, claim)
        crawl.give(report(order, began))
        out = crawl.turn()
        assert len(publications) == 1, "what was said last is yet to be read"
        assert crawl.frontier.partition.get(rows.PUBLISHED.key(page)) is not None, "after a crash, too"
        if not out:
            break
        (order,) = out
    assert (
        publications.counts.false >= 1 and promises_of(crawl.frontier).trust_of(host).weight(Source.PUBLISHED) < TRUSTED
    )


@pytest.mark.long
def test_the_multiplier_spends_what_promises_leave():
    """Twenty days of 400 reads a day, 96 of which are promised."""
    settings = load(overrides={"refresh.bandwidth": 400 / 86_400, "refresh.audit": 0.0, "refresh.min_interval": 60.0})
    crawl = Crawl.in_memory(refreshing=True, settings=settings)
    crawl.submit(*(url(0, page) for page in range(60)))
    for order in crawl.turn():
        crawl.answer(order)
    crawl.turn()
    bandwidth = crawl.frontier.scheduler.bandwidth
    whole = bandwidth.reads_per_second
    assert bandwidth.free(crawl.now) == whole
    for _ in range(20 * 24):
        publish(crawl, 0, 1, 2, 3)
        for _ in range(3):
            for order in crawl.turn():
                crawl.answer(order)
        crawl.now += HOUR
    promised = 96 / 86_400
    assert bandwidth.free(crawl.now) == pytest.approx(whole - promised, rel=0.02)
    assert bandwidth.spends_at(bandwidth.multiplier) == pytest.approx(whole - promised, rel=0.07), (
        "found anew at a drift of 5 %"
    )
    told = bandwidth.dump()["promised"]
    assert Bursts(*told).rate(crawl.now) == pytest.approx(promised, rel=0.1), "and after a restart"
    bandwidth.deadline_reads.count(crawl.now, 1_000_000)
    assert bandwidth.free(crawl.now) == pytest.approx(0.1 * whole)


def test_what_cannot_be_paid_for_is_kept_once_however_often_it_is_ordered():
    crawl = crawl_of(60, **{"refresh.bandwidth": 20 / 86_400, "refresh.audit": 0.0})
    frontier = crawl.frontier
    publish(crawl, *range(60))
    crawl.turn()
    scheduler, waiting = frontier.scheduler, len(frontier.scheduler.deadlines)
    pages = [page for page in range(60) if page not in scheduler.leases]
    assert len(pages) == waiting > 0
    for _ in range(50):
        edit(crawl, lambda frontier: frontier.requests.order(pages, Priority.ORDERED))
        assert crawl.turn() == []
    assert len(scheduler.deadlines) == waiting == len(scheduler.deadlines._heap)


def test_a_page_that_waits_to_be_paid_for_is_named_once_by_its_earliest_deadline():
    crawl = crawl_of(3, **{"refresh.bandwidth": "10/day"})
    promised, governor = crawl.frontier.scheduler.deadlines, crawl.frontier.scheduler.due_queue.governor
    deadlines = {0: 300.0, 1: 200.0}
    promised.deadline_of = deadlines.__getitem__
    governor.credit = -1e9
    assert not promised.pay(0) and not promised.pay(1)
    deadlines[0] = 100.0
    assert not promised.pay(0) and not promised.pay(0)
    assert len(promised) == 2 and promised.pop() is None
    governor.credit = 0.0
    assert [promised.pop() for _ in range(3)] == [0, 1, None]
    assert len(promised) == 0
