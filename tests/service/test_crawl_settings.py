"""Keys that only a whole crawl shows: each one, written in settings, changes what a running node does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time

import pytest
from aiohttp import web

from tests.frontier.rig import START, Crawl, report, signature, url
from tests.plugins.test_publish import BEARER, indexed
from tests.service.neighbours import KEY, Neighbours, crawling
from tests.service.test_partition_loop import Rig
from xyro.configs.load import load
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings, StoreSettings
from xyro.plugins import PLUGINS
from xyro.plugins.publish.promises import promises_of
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.clock import SystemClock
from xyro.wire.messages import Submit

ALL_OF_LOOPBACK = {"crawl.scope": "any", "politeness.delay": 0.0, "fetch.only_net": ("127.0.0.0/8",)}
DAY = 86_400.0


class Site:
    """A site of XML documents with a DTD on loopback; `reads`: the paths that were asked for, in their order."""

    def __init__(self):
        self.files = {"/x.dtd": b"<!ELEMENT r ANY>"}
        for name in ("/a.xml", "/b.xml"):
            self.files[name] = b"<!DOCTYPE r SYSTEM 'x.dtd'><r>text</r>"
        self.reads = []

    async def _answer(self, request):
        self.reads.append(request.path)
        body = self.files.get(request.path)
        kind = "application/xml-dtd" if request.path.endswith(".dtd") else "application/xml"
        return web.Response(status=404) if body is None else web.Response(body=body, content_type=kind)

    @contextlib.asynccontextmanager
    async def serving(self):
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


async def read(path, urls, **overrides):
    """A process that is ordered to read these URLs and ends: the documents' rows by the last 5 characters of a URL."""
    settings = load(overrides=ALL_OF_LOOPBACK | {name.replace("__", "."): value for name, value in overrides.items()})
    data = DataDir.open(path, make=not path.exists())
    node = Node(data, settings, guard_of(settings.fetch), Bounds(), plugins=PLUGINS)
    try:
        node.start()
        await node.submit(urls)
        async with asyncio.timeout(60):
            assert await node.finished() == "complete"
        found = {}
        with await node.views() as views:
            for page, _, row in views.views[0].documents():
                found[views.views[0].url(page)[-5:]] = row
        return found
    finally:
        await node.stop()
        data.close()


@pytest.mark.parametrize(("part_age", "reads"), [(DAY, 1), (0.0, 2)])
async def test_part_age_is_how_long_a_part_that_was_read_will_do(tmp_path, part_age, reads):
    async with Site().serving() as site:
        await read(tmp_path / "data", [f"{site.base}/a.xml"])
        await read(tmp_path / "data", [f"{site.base}/b.xml"], loader__part_age=part_age)
    assert site.reads.count("/b.xml") == 1 and site.reads.count("/x.dtd") == reads


@pytest.mark.parametrize("revalidate", [True, False])
async def test_revalidate_judges_a_document_again_whose_dtd_has_changed(tmp_path, revalidate):
    async with Site().serving() as site:
        before = await read(tmp_path / "data", [f"{site.base}/a.xml"])
        await asyncio.sleep(1.1)  # reads are dated to the second
        site.files["/x.dtd"] = b"<!ELEMENT r EMPTY>"
        await read(tmp_path / "data", [f"{site.base}/x.dtd"])
        after = await read(tmp_path / "data", [f"{site.base}/a.xml"], loader__revalidate=revalidate)
    assert site.reads.count("/a.xml") == 2
    assert (before["a.xml"].verdict != after["a.xml"].verdict) is revalidate


async def test_max_seconds_ends_a_crawl_that_would_go_on(tmp_path):
    config = tmp_path / "short.toml"
    config.write_text("[crawl]\nmax_seconds = 1.0\nrefresh = true\n")
    async with Site().serving() as site:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "xyro", "crawl", f"{site.base}/a.xml", "--data", str(tmp_path / "data"),
            "--config", str(config), "--only-net", "127.0.0.0/8", "--delay", "0", "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err
    assert 1.0 <= json.loads(out)["seconds"] < 20.0


# [store]: when a commit group is closed


async def reported(rig, count):
    """Reports of `count` pages are posted together: seconds until they are on disk."""
    rig.post(Submit(tuple(url(host) for host in range(count))))
    orders = []
    while len(orders) < count:
        orders += await rig.orders()
    began = time.monotonic()
    for order in orders:
        rig.post(report(order, START))
    await rig.all_synced(count)
    return time.monotonic() - began


@pytest.mark.parametrize(("commit_reports", "largest"), [(2, 2), (256, 6)])
async def test_commit_reports_bounds_a_commit_group(tmp_path, commit_reports, largest):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.0, commit_reports=commit_reports))
    groups, turn = [], rig.frontier.turn

    def watched(work, *rest):
        groups.append(len(work.visits))
        return turn(work, *rest)

    rig.frontier.turn = watched
    async with rig.running():
        await reported(rig, 6)
    assert max(groups) == largest and sum(groups) == 6


async def test_commit_seconds_keeps_a_group_open_for_more(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.4))
    rig.starving = False
    async with rig.running():
        assert await reported(rig, 1) >= 0.4


# [refresh]


def test_memory_is_the_number_of_reads_that_a_rate_rests_on():
    """Ten changes in ten days, then ten days without one: a short memory has forgotten the changes."""
    rates = []
    for memory in (2.0, 1e6):
        settings = Settings(crawl=CrawlSettings(scope="any"), refresh=RefreshSettings(memory=memory))
        crawl = Crawl.in_memory(settings=settings, refreshing=True)
        for day in range(20):
            crawl.submit(url(0))
            crawl.turn()
            crawl.answer(crawl.order(url(0)), signature=signature(min(day, 10)))
            crawl.turn()
            crawl.now += DAY
        rates.append(crawl.frontier.partition.row(0).rate)
    short, long = rates
    assert short < 0.5 * long


# [publish]


class Shifted(SystemClock):
    """The clock of this machine, `ahead` seconds later."""

    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


@pytest.mark.parametrize(("key_age", "reads"), [(DAY, 1), (60.0, 2)])
async def test_key_age_is_how_long_a_key_is_believed(tmp_path, key_age, reads):
    neighbours, clock = Neighbours(), Shifted()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, clock, publish__key_age=key_age) as running:
        for number, path in enumerate(("/p1.html", "/p2.html"), 1):
            assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, path)))[0] in (200, 202)
            await running.until(lambda number=number: running.published["in_time"] == number)
            clock.ahead += 100.0
        assert neighbours.reads[f"/{KEY}.txt"] == reads


async def test_urls_bounds_what_all_hosts_publish_in_an_hour(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, publish__urls=2) as running:
        three = indexed(neighbours, "/p1.html", "/p2.html", "/p3.html")
        assert (await running.ask("POST", "/indexnow", json=three))[0] == 429
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html")))[0] in (200, 202)


@pytest.mark.parametrize("deadline", [900.0, 7200.0])
async def test_deadline_is_promised_where_a_publisher_names_none(tmp_path, deadline):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, publish__deadline=deadline) as running:
        await running.single.hold(neighbours.host, "paused")
        body = {"urls": [neighbours.url("/p1.html")]}
        assert (await running.ask("POST", "/publish", json=body, headers=BEARER))[0] == 200
        publications = promises_of(running.single.frontiers[0]).publications.pages
        await running.until(lambda: len(publications) == 1)
        (publication,) = publications.values()
    assert publication.deadline - publication.time == pytest.approx(deadline)
