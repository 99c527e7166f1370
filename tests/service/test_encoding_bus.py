"""The whole message traffic of a crawl as bytes: what works only because both sides share an object fails here."""

from __future__ import annotations

import asyncio

import pytest

from xyro.configs.load import load
from xyro.lab.child import running
from xyro.metadata.recovery import open_partition
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.views.audit import audit
from xyro.wire.bus import EncodingBus, LocalBus

PAGES, HOSTS = 250, 6
OPTIONS = {"crawl.scope": "any", "politeness.delay": 0.0, "fetch.only_net": ("127.0.0.0/8",)}


@pytest.fixture(scope="module")
def web():
    with running(pages=PAGES, hosts=HOSTS, seed=5) as found:
        yield found


async def crawl(path, web, bus, partitions):
    """Read the web to its end: its pages by URL, its links, and what the audit says."""
    settings = load(overrides=OPTIONS)
    data = DataDir.open(path, partitions=partitions, make=True)
    node = Node(data, settings, guard_of(settings.fetch), Bounds(), None, bus, plugins=PLUGINS)
    try:
        node.start()
        await node.sow([web.entry])
        async with asyncio.timeout(100):
            assert await node.finished() == "complete"
        async with node.boundary():
            with node.crawl_views.views(node.clock.time()) as views:
                pages = {row["url"]: (row["state"], row["kind"], row["signature"]) for row in views.pages()}
                links = {(row["source_url"], row["target_url"]) for row in views.links()}
                return pages, links, audit(views)
    finally:
        await node.stop()
        data.close()


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 4])
async def test_a_crawl_over_bytes_finds_what_one_over_objects_does(tmp_path, web, partitions):
    by_objects = await crawl(tmp_path / "objects", web, LocalBus(), partitions)
    by_bytes = await crawl(tmp_path / "bytes", web, EncodingBus(), partitions)
    assert by_bytes[:2] == by_objects[:2]
    assert by_bytes[2]["ok"] and by_objects[2]["ok"]
    assert by_bytes[2]["cash_total"] == by_objects[2]["cash_total"] == 65_536 * len(by_bytes[0])


async def test_a_partition_does_not_leave_during_a_look(tmp_path, web):
    """A look over several commit boundaries would tell it here and on the node that takes it, or on neither."""
    settings = load(overrides=OPTIONS)
    data = DataDir.open(tmp_path / "data", partitions=3, make=True)
    node = Node(data, settings, guard_of(settings.fetch), Bounds(), None, EncodingBus(), plugins=PLUGINS)
    try:
        node.start()
        async with node.boundary():
            leaving = asyncio.create_task(node.release(1, patience=0.0))
            for _ in range(20):
                await asyncio.sleep(0.01)
            with node.crawl_views.views(node.clock.time()) as views:
                assert sorted(view.partition.number for view in views.views) == [0, 1, 2]
            assert not leaving.done()
        partition = await asyncio.wait_for(leaving, 10)
        assert [frontier.partition.number for frontier in node.frontiers] == [0, 2]
        reopened = await asyncio.to_thread(open_partition, partition.directory)
        async with node.boundary():
            coming = asyncio.create_task(node.admit(reopened))
            await asyncio.sleep(0.05)
            assert not coming.done() and len(node.frontiers) == 2
        await asyncio.wait_for(coming, 10)
        assert [frontier.partition.number for frontier in node.frontiers] == [0, 2, 1]
    finally:
        await node.stop()
        data.close()
