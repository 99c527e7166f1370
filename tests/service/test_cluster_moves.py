"""What goes along with a partition that moves, and a disk that is full meanwhile."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from itertools import pairwise

import pytest
from aiohttp import web

from tests.plugins.serving import serving
from tests.plugins.test_full_disk import FULL, fill, small_disk
from tests.service.cluster_faults import MINTED
from tests.service.cluster_rig import alone, running_cluster
from tests.service.face import xyro
from xyro.lab.child import running
from xyro.wire.urls import host_of, partition_of

PARTITIONS = 16
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


def addresses(*partitions: int) -> list[str]:
    """An address of loopback for each of these partitions."""
    some = [f"127.1.{a}.{b}" for a in range(4) for b in range(1, 255)]
    return [next(each for each in some if partition_of(each, PARTITIONS) == q) for q in partitions]


@pytest.mark.long
def test_a_part_whose_partition_moves_is_waited_for(tmp_path):
    """Its order was taken back, and its documents were told that it could not be had: they lost the links in it."""
    document, part = addresses(3, 5)
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.Response:
        host, _, port = request.host.partition(":")
        asked[host + request.path] += 1
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if host == part:
            text = "".join(f'<see xlink:href="http://{document}:{port}/{name}.html"/>' for name in "abc")
            return web.Response(text=text, content_type="application/xml-external-parsed-entity")
        if request.path == "/d.xml":
            entity = f'<!DOCTYPE d [<!ENTITY e SYSTEM "http://{part}:{port}/e.ent">]>'
            return web.Response(text=f"{entity}<d {XLINK}>&e;</d>", content_type="text/xml")
        return web.Response(text="<p>a page", content_type="text/html")

    with serving(answer, [document, part]) as port, running_cluster(tmp_path, delay=3.0) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        url = f"http://{document}:{port}/d.xml"
        cluster.submit(url)
        cluster.until(lambda: asked[f"{part}/robots.txt"], "the part is next at its host")
        done = xyro("cluster", "move", "5", "2", "--join", cluster.broker.url)
        assert done.returncode == 0, done.stderr
        wanted = {(url, f"http://{document}:{port}/{name}.html") for name in "abc"}
        cluster.until(lambda: not (cluster.get("/status") or {"waiting_loads": 1})["waiting_loads"], "it is loaded")
        assert {link for link in cluster.links() if link[0] == url} >= wanted
        assert asked[f"{part}/e.ent"] == 1
        assert "moved to node 2" in cluster.log(1).read_text()
        assert "dropped a message" not in cluster.log(1).read_text() + cluster.log(2).read_text()


@pytest.mark.long
def test_the_rules_of_robots_txt_go_along_and_so_does_its_crawl_delay(tmp_path):
    """It was read again by each node that got the partition, and nobody knew the delay of the host until then."""
    (host,) = addresses(5)
    requests: list[tuple[float, str]] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append((time.monotonic(), request.path))
        if request.path == "/robots.txt":
            rules = "User-agent: *\nCrawl-delay: 2\nDisallow: /secret*.html$\nAllow: /secret-not.html\n"
            return web.Response(text=rules, content_type="text/plain")
        text = f"<title>{request.path}</title>" + f"<p>What is at {request.path} is of its own kind." * 20
        links = "".join(f"<a href=/{name}.html>x</a>" for name in ("secret", "secret-not", *"abcdefgh"))
        return web.Response(text=text + (links if request.path == "/" else ""), content_type="text/html")

    with serving(answer, [host]) as port, running_cluster(tmp_path, delay=0.1) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        cluster.submit(f"http://{host}:{port}/")
        for count, node in ((2, 2), (4, 1)):
            cluster.until(lambda count=count: len(requests) >= count, f"{count} requests")
            done = xyro("cluster", "move", "5", str(node), "--join", cluster.broker.url)
            assert done.returncode == 0, done.stderr
            log, line = cluster.log(3 - node), f"partition 5: moved to node {node}"
            cluster.until(lambda log=log, line=line: line in log.read_text(), "it moves")
        cluster.complete(11)
        states = {url.rpartition("/")[2]: state for url, (state, *_) in cluster.pages().items()}
        assert states.pop("secret.html") == "disallowed" and {*states.values()} == {"read"}
    paths = Counter(path for _, path in requests)
    assert paths.pop("/robots.txt") == 1 and {*paths.values()} == {1} and "/secret.html" not in paths
    assert min(b - a for (a, _), (b, _) in pairwise(requests)) >= 1.99


@pytest.mark.long
def test_a_crawl_delay_that_no_backup_knows_is_kept_after_a_restore(tmp_path):
    """The robots.txt that says it was asked for as soon as the partition was there."""
    (host,) = addresses(5)
    requests: list[float] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(time.monotonic())
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nCrawl-delay: 20\n", content_type="text/plain")
        return web.Response(text="<p>a page", content_type="text/html")

    with serving(answer, [host]) as port, running_cluster(tmp_path, delay=0.1) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        cluster.submit(f"http://{host}:{port}/")
        cluster.until(lambda: len(requests) >= 2, "robots.txt and a page")
        with cluster.remote() as remote:
            owner = remote.placement.owners[5].node
        cluster.kill(owner)
        done = xyro("cluster", "restore", "--empty", "--join", cluster.broker.url)
        assert done.returncode == 0, done.stderr
        cluster.submit(f"http://{host}:{port}/")
        cluster.until(lambda: len(requests) >= 3, "the node that lives asks for robots.txt")
    assert min(b - a for a, b in pairwise(requests)) >= 19.99


@pytest.mark.long
def test_a_partition_stays_where_it_is_until_the_other_disk_has_room_for_it(tmp_path):
    """A disk that is filled by a partition which comes ends the node with all that it has."""
    with small_disk(tmp_path / "disk", "12m") as disk, running_cluster(tmp_path) as cluster:
        cluster.places[2] = disk / "n2"
        cluster.start(1), cluster.start(2)
        refused = "stays here: node 2: its disk has no room for "
        cluster.until(lambda: refused in cluster.log(1).read_text(), "its node says why it stays")
        assert cluster.counts() == [0, 16] and not [*(disk / "n2").glob("*p0*")]
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        cluster.balanced(8, 8)


@pytest.mark.long
def test_a_disk_that_is_full_as_partitions_come_and_go_loses_nothing_and_says_so(tmp_path):
    with (
        small_disk(tmp_path / "disk", "64m") as disk,
        running(pages=240, hosts=8, seed=5, rate_median=0.0) as web,
        running_cluster(tmp_path, delay=0.5) as cluster,
    ):
        pages, links = alone(tmp_path, web.entry)
        cluster.places[2] = disk / "n2"
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        cluster.submit(web.entry)
        cluster.until(lambda: (cluster.get("/status") or {"reads": 0})["reads"] > 10, "both read")
        join = ("--join", cluster.broker.url)
        with cluster.remote() as remote:
            ours, theirs = (min(remote.placement.owned(node)) for node in (1, 2))
        for partition, node in ((ours, 2), (theirs, 1)):
            assert xyro("cluster", "move", str(partition), str(node), *join).returncode == 0
        filled = fill(disk)
        assert cluster.children.pop(2).wait(120), "it ends"

        def named():
            found = cluster.get("/status")
            return found and FULL in "".join(found.get("missing", ()))

        cluster.until(named, "the other says of what")
        assert FULL in xyro("cluster", "status", *join).stdout
        with cluster.remote() as remote:
            url = next(each for each in pages if remote.placement.owners[partition_of(host_of(each), 16)].node == 1)
        told = xyro("why", url, *join)
        assert told.returncode == 0 and FULL in told.stdout
        filled.unlink()
        cluster.start(2)
        audit = cluster.complete(len(pages))
        assert audit["ok"] and audit["cash_total"] == MINTED * len(pages)
        cluster.until(lambda: cluster.links() == links, "all links are known")
        assert cluster.pages() == pages
        nodes = json.loads(xyro("cluster", "status", "--json", *join).stdout)["nodes"]
        assert sorted(q for node in nodes for q in node["open"]) == [*range(16)]
        assert not any(node["ended"] for node in nodes)
        wrong = (row["text"] for row in cluster.get("/status")["limits"]["wrong"])
        assert any(text.startswith("Node 2: The disk is nearly full") for text in wrong)
