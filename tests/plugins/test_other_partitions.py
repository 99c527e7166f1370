"""Plug-ins of a crawl whose pages live in another partition than what the crawl has once: all of it goes by messages.

The bus encodes every message, as one between processes does.
"""

import pytest

from tests.plugins.test_subscribed import EVERY, bring_forward
from tests.plugins.test_websub import path_of, sign, verified, with_feed
from tests.service.neighbours import Neighbours, crawling
from xyro.configs.schema import ClusterTable
from xyro.plugins.publish.notice_pages import NoticePages
from xyro.wire.ids import HOME
from xyro.wire.urls import partition_of

FIVE = 5
THERE = partition_of("127.0.0.1", FIVE)


def test_the_pages_are_elsewhere():
    assert THERE != HOME


async def test_a_notice_tells_of_pages_known_and_new(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, partitions=FIVE) as running:
        number = await running.subscribe(neighbours.url("/p*.html"), EVERY, neighbours.url("/notice"))
        assert (await running.subscribing.listed())[0]["pages"] == 5
        neighbours.pages["/p1.html"] = "changed"
        neighbours.pages["/p9.html"] = "new"
        await running.single.submit([neighbours.url("/p9.html")], seed=False)
        await running.until(lambda: running.subscribed.pages.count(neighbours.url("/p*.html")) == 6)
        bring_forward(running, number, 3.0)
        await running.until(lambda: neighbours.notices)
        told = {page["url"]: page for page in neighbours.notices[0]["pages"]}
        assert len(told) == 6 and all(page["refreshed"] for page in told.values())
        assert told[neighbours.url("/p1.html")]["changed"] and told[neighbours.url("/p9.html")]["new"]
        assert neighbours.notices[0]["changed"] == 2 and neighbours.notices[0]["in_time"]


async def test_what_is_missed_is_counted_where_the_page_is_and_is_late_until_it_is_read(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours, partitions=FIVE) as running:
            elsewhere = neighbours.url("/notice").replace("127.0.0.1", "localhost")  # a paused host gets no notice
            number = await running.subscribe(neighbours.url("/p1.html"), EVERY, elsewhere)
            await running.single.hold(neighbours.host, "paused")
            there = running.single.frontiers[THERE].partition
            read = there.row(there.url_index.find_one(neighbours.url("/p1.html"))).last_read
            await running.until(lambda: running.single.clock.time() >= read + 1)  # reads are told apart by the second
            bring_forward(running, number)
            await running.until(lambda: neighbours.notices and running.overdue() == 1)
            pages = [frontier.hooks.extension(NoticePages) for frontier in running.single.frontiers]
            assert [len(each.awaited.overdue) for each in pages] == [int(q == THERE) for q in range(FIVE)]
            assert not neighbours.notices[0]["in_time"] and running.status["subscribed"]["missed"] == 1
            assert running.status["cost"]["late_subscriptions"] >= 0.0
            await running.single.hold(neighbours.host, "")
            await running.until(lambda: not running.overdue())
            late = running.status["subscribed"]["lateness"]
        async with crawling(tmp_path / "d", neighbours) as running:
            assert running.status["subscribed"]["lateness"] == late and (await running.subscribing.listed())
            assert await running.subscribing.unsubscribe(number)
            pages = [frontier.hooks.extension(NoticePages) for frontier in running.single.frontiers]
            await running.until(lambda: not any(each.targets for each in pages))


async def test_publications_and_hubs(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, partitions=FIVE, publish__websub=True) as running:
            asked, _ = await verified(running, neighbours)
            neighbours.pages["/fresh.html"] = "fresh"
            body = with_feed(neighbours, entry="/fresh.html")
            headers = {"X-Hub-Signature": sign(asked["hub.secret"], body), "Content-Type": "application/atom+xml"}
            assert (await running.ask("POST", path_of(asked), data=body, headers=headers))[0] == 202
            await running.until(lambda: running.published["in_time"] == 2)
            assert neighbours.reads["/fresh.html"] == 1
            assert running.status["websub"] == {"topics": 1, "active": 1, "delivered": 1, "unsigned": 0}


@pytest.mark.parametrize("partitions", [1, FIVE])
async def test_a_cluster_is_read_together(tmp_path, partitions):
    neighbours = Neighbours()
    async with neighbours.serving():
        table = ClusterTable("pair", (neighbours.url("/p1.html"), neighbours.url("/p2.html")), (), 600.0)
        options = {"clusters": (table,), "partitions": partitions}
        async with crawling(tmp_path / "d", neighbours, **options) as running:
            await running.until(lambda: running.status["clusters"][0]["whole"])
            before, reads = running.status["clusters"][0], dict(neighbours.reads)
            assert before["pages"] == 2
            await running.single.submit([neighbours.url("/p1.html")], seed=False)
            await running.until(lambda: neighbours.reads["/p1.html"] > reads["/p1.html"])
            assert running.status["clusters"][0]["due"] == before["due"], "it is read in between"
            places = [running.single.frontiers[partition_of("127.0.0.1", partitions)]]
            found = [places[0].partition.url_index.find_one(url) for url in table.urls]
            await running.until(
                lambda: {int(places[0].columns["due"][page]) for page in found} == {before["due"]}, 20.0
            )
