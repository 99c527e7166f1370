"""The whole message traffic of a crawl as bytes: what works only because both sides share an object fails here."""

from __future__ import annotations

import asyncio

import pytest

from xyro.configs.load import load
from xyro.lab.child import running
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


@pytest.mark.parametrize("partitions", [1, 4])
async def test_a_crawl_over_bytes_finds_what_one_over_objects_does(tmp_path, web, partitions):
    by_objects = await crawl(tmp_path / "objects", web, LocalBus(), partitions)
    by_bytes = await crawl(tmp_path / "bytes", web, EncodingBus(), partitions)
    assert by_bytes[:2] == by_objects[:2]
    assert by_bytes[2]["ok"] and by_objects[2]["ok"]
    assert by_bytes[2]["cash_total"] == by_objects[2]["cash_total"] == 65_536 * len(by_bytes[0])
