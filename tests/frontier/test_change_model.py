"""What sites tell of their own pages, turn by turn: one store of trust, rates that are told, priors that stay exact."""

from __future__ import annotations

import itertools

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, report, signature, snapshot, url
from xyro.configs.schema import RefreshSettings, Settings
from xyro.frontier.batch import MessageBatch
from xyro.metadata import rows
from xyro.plugins.publish.promises import promises_of
from xyro.plugins.publish.publish_messages import Publish
from xyro.refresh.publications import TRUSTED
from xyro.refresh.rate_belief import PriorLearner, RatePopulation
from xyro.refresh.trust import Source, Trust
from xyro.wire.messages import Kind, Priority

DAY = 86_400.0
HOSTS = ("h0.example", "h1.example")
REQUESTS = itertools.count(1)
"""a request that is repeated is answered without being applied again"""
PAGES = [url(host, page) for host in range(2) for page in range(3)]


def crawl_of(path=None):
    options = {
        "settings": Settings(refresh=RefreshSettings(min_interval=2 * DAY, max_interval=2 * DAY)),
        "refreshing": True,
    }
    return Crawl.in_memory(**options) if path is None else Crawl.on_disk(path, **options)


def begun(crawl, *targets):
    crawl.submit(*targets)
    crawl.turn()
    for target in targets:
        visit(crawl, target, 1)
    return crawl


def visit(crawl, target, content, kind=Kind.HTML):
    """The next order for the page, answered with this content."""
    frontier, page = crawl.page(target)
    while not any(order.url == target for order in crawl.orders.values()):
        crawl.now = max(crawl.now + 60.0, float(frontier.columns["due"][page]), frontier.scheduler.next_time())
        crawl.turn()
    crawl.give(report(crawl.order(target), crawl.now, signature=signature(content), kind=kind))
    crawl.turn()


def publish(crawl, target, every=0.0, sure=False):
    """The page's site (sure: the owner of the crawl) says that it changed, and changes each `every` days."""
    rate = 1.0 / every if every else 0.0
    request = next(REQUESTS)
    command = Publish(request, (target,), "changed", crawl.now, crawl.now + 600.0, rate, sure)
    turn = crawl.frontier.turn(MessageBatch(commands=[command]), crawl.now, 1000)
    assert [answer.request for answer in turn.answers] == [request]
    crawl.write(turn)


def trust(crawl, host=HOSTS[0]):
    return promises_of(crawl.frontier).trust_of(host).weight(Source.PUBLISHED)


def row_of(crawl, target):
    frontier, page = crawl.page(target)
    return frontier.partition.row(page)


def ordered(crawl, target):
    return any(order.url == target and order.priority is Priority.ORDERED for order in crawl.orders.values())


# --- trust ----------------------------------------------------------------------------------------------------------


def test_a_lying_publisher_loses_its_weight_and_its_neighbour_keeps_it():
    liar, honest = url(0), url(1)
    crawl, content = begun(crawl_of(), liar, honest), 1
    for _ in range(6):
        crawl.now += 0.2 * DAY
        publish(crawl, liar)
        publish(crawl, honest)
        content += 1
        visit(crawl, liar, 1)
        visit(crawl, honest, content)
    crawl.now += 0.2 * DAY
    publish(crawl, liar)
    publish(crawl, honest)
    assert trust(crawl, HOSTS[0]) < 0.2 < TRUSTED < 0.6 < trust(crawl, HOSTS[1])
    assert ordered(crawl, honest) and not ordered(crawl, liar)
    with crawl.views() as views:
        told = {host["host"]: host["trust"] for host in views.hosts()}
    assert "published 0.1" in told[HOSTS[0]] and "published 0." in told[HOSTS[1]]
    publish(crawl, liar, sure=True)
    assert ordered(crawl, liar)


def test_a_told_rate_is_tested_by_reads_and_the_owners_is_not():
    crawl = begun(crawl_of(), url(0), url(1))
    for target, sure in ((url(0), False), (url(1), True)):
        publish(crawl, target, every=0.01, sure=sure)
        visit(crawl, target, 1)
    before = trust(crawl, HOSTS[0])
    for _ in range(8):
        visit(crawl, url(0), 1)
        visit(crawl, url(1), 1)
    assert trust(crawl, HOSTS[0]) < min(before, 0.2)
    assert trust(crawl, HOSTS[1]) == Trust().weight(Source.PUBLISHED)


def test_trust_in_publishers_of_an_older_version_is_taken_over_once(tmp_path):
    crawl = begun(crawl_of(tmp_path / "a"), url(0), url(1))
    old = Trust()
    for _ in range(9):
        old.changed(Source.PUBLISHED, False, 0.1)
    partition = crawl.frontier.partition
    kept = {rows.META.key(f"publisher {host}"): msgpack.packb(old.dump()) for host in (HOSTS[0], "never.example")}
    partition.begin()
    for key, value in kept.items():
        partition.put(key, value)
    group = partition.seal({"node": crawl.frontier.dump()})
    partition.write(group)
    partition.written(group)
    for _ in range(2):
        crawl.close()
        crawl = crawl_of(tmp_path / "a")
        assert trust(crawl, HOSTS[0]) == pytest.approx(old.weight(Source.PUBLISHED), rel=1e-6) and trust(crawl) < 0.2
        assert trust(crawl, HOSTS[1]) == Trust().weight(Source.PUBLISHED)
        crawl.turn()
        assert not any(crawl.frontier.partition.get(key) for key in kept)
        stored = crawl.frontier.partition.hosts.trust[crawl.frontier.partition.hosts.numbers[HOSTS[0]]]
        assert Trust.load(stored).claims == 9
    crawl.close()


# --- told rates -----------------------------------------------------------------------------------------------------


def test_a_told_rate_moves_the_rate_and_leaves_the_importance():
    crawl = begun(crawl_of(), url(0))
    before = row_of(crawl, url(0))
    expected = crawl.frontier.freshness.totals.importance
    publish(crawl, url(0), every=0.5)
    after = row_of(crawl, url(0))
    assert before.rate < after.rate < 2.0
    assert after.weight**2 / after.rate == pytest.approx(before.weight**2 / before.rate)
    assert crawl.frontier.freshness.totals.importance == pytest.approx(expected)


def test_a_rate_that_is_told_of_a_page_never_read_shapes_its_first_belief():
    crawl = begun(crawl_of(), url(0))
    publish(crawl, url(0, 1), every=0.1)
    publish(crawl, url(0, 2))
    for target in (url(0, 1), url(0, 2)):
        visit(crawl, target, 1)
    told, plain = row_of(crawl, url(0, 1)), row_of(crawl, url(0, 2))
    assert plain.rate < told.rate < 10.0 and told.change_sum - plain.change_sum == pytest.approx(0.5, abs=0.2)


# --- priors ---------------------------------------------------------------------------------------------------------


def by_hand(crawl):
    """The populations that priors are learned from, of the rows as they are stored."""
    kinds, hosts = PriorLearner(enough=50), {}
    frontier = crawl.frontier
    for page in range(frontier.columns.n):
        row = frontier.partition.row(page)
        if row is not None and row.counted:
            kinds.recount(row.kind.name, 0, row.counted)
            if row.quiet_days or row.change_sum:
                hosts.setdefault(frontier.partition.hosts_of[page], RatePopulation()).shift(0, row.counted)
    return kinds.dump(), {host: population.numbers() for host, population in hosts.items()}


def kept(crawl):
    learned = crawl.frontier.dating.change_model.kinds.dump()
    held = {key: numbers for key, numbers in learned["keys"].items() if any(numbers)}
    rates = crawl.frontier.partition.hosts.rates.items()
    return {**learned, "keys": held}, {host: RatePopulation.unpack(packed).numbers() for host, packed in rates}


EVENTS = st.one_of(
    st.tuples(st.just("read"), st.sampled_from(PAGES), st.integers(1, 3), st.sampled_from([Kind.HTML, Kind.XML])),
    st.tuples(st.just("told"), st.sampled_from(PAGES), st.sampled_from([0.0, 0.01, 3.0]), st.booleans()),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(EVENTS, max_size=30))
def test_every_page_counts_in_the_priors_once_with_its_present_code(events):
    """Whatever is read, told by sites or by the owner, of whatever kind: populations are those of the rows."""
    crawl = crawl_of()
    for page in PAGES:
        begun(crawl, page)
    for _ in range(5):
        visit(crawl, PAGES[0], 1)
    for what, page, *fields in events:
        if what == "read":
            visit(crawl, page, *fields)
        else:
            publish(crawl, page, *fields)
        assert kept(crawl) == by_hand(crawl)


def test_a_settled_page_whose_rate_is_told_counts_with_it_at_once_and_after_a_restart(tmp_path):
    crawl = begun(crawl_of(tmp_path / "a"), url(0))
    for _ in range(5):
        visit(crawl, url(0), 1)
    before = kept(crawl)
    publish(crawl, url(0), every=0.01, sure=True)
    assert kept(crawl) == by_hand(crawl) != before
    told = kept(crawl)
    snapshot(crawl.frontier)
    crawl.close()
    again = crawl_of(tmp_path / "a")
    assert kept(again) == told == by_hand(again)
    again.close()


def test_rows_of_this_version_hold_what_is_told(tmp_path):
    crawl = begun(crawl_of(), url(0))
    publish(crawl, url(0), every=2.0)
    row = row_of(crawl, url(0))
    assert [(claim.source, claim.rate) for claim in row.claims] == [(Source.PUBLISHED, 0.5)]
    assert rows.unpack_refresh(rows.pack(row)) == row
