"""Clusters in a crawl: one due date, all read in one round, over partitions and restarts."""

import pytest

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import ClusterTable, RefreshSettings, Settings
from xyro.configs.schema import CrawlSettings as Scope
from xyro.frontier.targets import scan
from xyro.plugins.clusters.page_clusters import PageClusters
from xyro.wire.errors import InputError
from xyro.wire.messages import Priority

DAY = 86_400.0
SETTINGS = Settings(
    crawl=Scope(scope="any"),
    refresh=RefreshSettings(bandwidth=0.001, min_interval=1.0, max_interval=300 * DAY),
    clusters=(ClusterTable("pair", (url(0, 1), url(1, 2)), (), 600.0),),
)


def made(partitions=1):
    found = []
    plugins = [lambda frontier: found.append(PageClusters(frontier, SETTINGS.clusters))]
    return Crawl.in_memory(partitions, settings=SETTINGS, refreshing=True, plugins=plugins), found[0]


def crawl_of(partitions=1):
    crawl, clustered = made(partitions)
    return crawl, clustered.clusters[0]


def due(crawl, target):
    frontier, page = crawl.page(target)
    return int(frontier.columns["due"][page])


@pytest.mark.parametrize("partitions", [1, 4])
def test_members_share_their_date_and_a_round_calls_all(partitions):
    crawl, cluster = crawl_of(partitions)
    members = [url(0, 1), url(1, 2)]
    crawl.submit(*members)
    crawl.turn()
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    crawl.turn()
    crawl.deliver_all()
    crawl.now += 60.0
    crawl.submit(url(2, 3))
    for _ in range(4):  # the round has called who was not read yet: it may be read once more
        crawl.turn()
        crawl.deliver_all()
        for order in list(crawl.orders.values()):
            crawl.answer(order)
    crawl.turn()
    crawl.deliver_all()
    crawl.turn()
    assert cluster.whole and len(cluster.members) == 2
    assert due(crawl, members[0]) == due(crawl, members[1]) == cluster.due
    assert due(crawl, url(2, 3)) != cluster.due or partitions > 1
    crawl.now = float(cluster.due) + 1.0
    before = cluster.round
    crawl.submit(members[0])
    crawl.turn()
    first = crawl.order(members[0])
    for order in list(crawl.orders.values()):
        if order.url == members[1]:  # it came due by itself, too
            crawl.orders.pop(order.page)
    crawl.answer(first)
    crawl.turn()
    crawl.deliver_all()
    crawl.turn()
    assert cluster.round == before + 1


def test_the_first_read_of_a_round_orders_the_other_members():
    crawl, cluster = crawl_of()
    crawl.submit(url(0, 1))
    crawl.turn()
    crawl.answer(crawl.order(url(0, 1)))
    crawl.turn()
    crawl.submit(url(1, 2))
    crawl.turn()
    crawl.now += 30.0
    crawl.answer(crawl.order(url(1, 2)))
    crawl.turn()
    assert cluster.spread == 30.0 and cluster.whole
    crawl.now = float(cluster.due)
    crawl.submit(url(0, 1))
    crawl.turn()
    order = crawl.order(url(0, 1))
    crawl.issued.clear()
    crawl.answer(order)
    crawl.turn()
    called = [one for one in (*crawl.issued, *crawl.orders.values()) if one.url == url(1, 2)]
    assert called and called[0].priority in (Priority.ORDERED, Priority.REFRESH)


def test_two_of_a_name_are_refused():
    tables = (ClusterTable("a", (url(0),)), ClusterTable("a", (url(1),)))
    with pytest.raises(InputError, match="same name"):
        PageClusters(Crawl.in_memory().frontier, tables)


def test_what_another_partition_links_to_is_one_member():
    """Its entry there (FOREIGN) is no page: no round would ever be whole; a start finds the same members again."""
    crawl, clustered = made(4)
    (cluster,) = clustered.clusters
    members = [url(0, 1), url(1, 2)]
    start = next(url(host) for host in range(2, 99) if crawl.owner(url(host)) not in map(crawl.owner, members))
    crawl.submit(start)
    for links in (members, (), (), ()):
        crawl.turn()
        crawl.deliver_all()
        for order in list(crawl.orders.values()):
            crawl.answer(order, links if order.url == start else ())
        crawl.turn()
        crawl.deliver_all()
    assert len(cluster.members) == 2 and cluster.whole
    assert {crawl.frontiers[page >> 32].partition.url(page & 0xFFFF_FFFF) for page in cluster.members} == set(members)
    found = [
        frontier.partition.id_of(page)
        for frontier in crawl.frontiers
        for _, page in scan(frontier.partition, clustered.targets)
    ]
    assert sorted(found) == sorted(cluster.members)
