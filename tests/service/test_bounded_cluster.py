"""Bounded crawls over the nodes of a cluster: never more reads than the bound by the site's log, all pages without."""

import asyncio
import json
import subprocess
import time

import pytest
from aiohttp import web as http

from tests.plugins.serving import serving
from tests.service.cluster_rig import ROOT, XYRO, ServerLog, running_cluster
from tests.service.face import ENVIRONMENT, process, xyro
from tests.service.test_cluster_moves import XLINK, addresses
from xyro.lab.child import running

HOSTS = 12
WRITTEN = 1.2
"""seconds within which the site's log is on disk"""


@pytest.fixture(scope="module")
def log_path(tmp_path_factory):
    return tmp_path_factory.mktemp("web") / "log"


@pytest.fixture(scope="module")
def web(log_path):
    with running(pages=300, hosts=HOSTS, seed=5, rate_median=0.0, log=log_path) as found:
        yield found


def begin(cluster, *words):
    command = [*XYRO, "crawl", *words, "--join", cluster.broker.url, "--json"]
    return subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def crawled(cluster, *words):
    done = process("crawl", *words, "--join", cluster.broker.url, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shown(cluster):
    """The first lines of `xyro status`, with one space between words."""
    done = xyro("status", "--join", cluster.broker.url)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.partition("\n\n")[0].split())


def requests(log):
    """Requests for pages so far, and the moment of the last one (wall clock)."""
    time.sleep(WRITTEN)
    return sum(log.reads().values()), max(moment for moment, *_ in log.requests())


@pytest.mark.long
def test_three_nodes_read_as_much_as_the_bound_says_and_then_the_rest(tmp_path, web, log_path):
    with running_cluster(tmp_path, 0.15) as cluster:  # 80 reads a second: the rest takes longer than the bound
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        log = ServerLog(log_path)
        first = crawled(cluster, web.entry, "--max-pages", "100")
        assert (first["ended"], first["pages_read"], requests(log)[0]) == ("max-pages", 100, 100)
        assert first["unread"] and first["cut_short"] == {} and first["textless"] == 0
        bound = (
            "A bound of the last `xyro crawl --join` is reached (its 100 reads): nothing more is read until the next"
        )
        cluster.until(lambda: bound in shown(cluster), "status names the bound")
        assert "or until `xyro cluster unbound`" in shown(cluster)

        timed = crawled(cluster, "--max-seconds", "1.5")
        read, _ = requests(log)
        assert timed["ended"] == "max-seconds" and read == 100 + timed["pages_read"]

        rest = crawled(cluster)
        ended = time.time()
        read, latest = requests(log)
        assert rest["ended"] == "complete" and read == rest["reads_total"]
        assert shown(cluster).startswith("The last `xyro crawl --join` is complete: nothing more is read until")
        told = process("crawl", "--join", cluster.broker.url)
        assert told.returncode == 0 and "0 pages read, " in told.stdout + told.stderr, told.stderr
        done = xyro("cluster", "unbound", "--join", cluster.broker.url)
        assert done.returncode == 0 and "xyro crawl --join" not in shown(cluster), done.stderr
        assert timed["pages_read"] and rest["pages_read"]
        assert ended - latest < 40.0  # 2 s are usual; who waits for a node that does not answer takes longer
        status = cluster.get("/status")
        assert status["states"]["unread"] == 0 and rest["pages_known"] == status["known"]
        assert cluster.get("/audit")["ok"]
        for number in (1, 2, 3):
            cluster.stop(number)


@pytest.mark.long
def test_a_bound_holds_where_the_nodes_were_reading_before(tmp_path, web, log_path):
    """Forty orders and more were out: all of them were read, with any bound, and so were counted reads of before."""
    pages = 20
    with running_cluster(tmp_path, 0.5) as cluster:
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        log = ServerLog(log_path)
        cluster.submit(web.entry)
        cluster.until(lambda: sum(log.reads().values()) >= 60, "60 reads")
        assert cluster.get("/status")["leased"] > pages
        report = crawled(cluster, "--max-pages", str(pages))
        assert (report["ended"], report["pages_read"]) == ("max-pages", pages)
        assert requests(log)[0] == report["reads_total"]
        assert crawled(cluster, "--max-pages", "7")["pages_read"] == 7
        assert cluster.get("/audit")["ok"]


@pytest.mark.long
def test_a_crawl_is_complete_when_documents_have_the_parts_that_another_node_reads(tmp_path):
    async def answer(request: http.Request) -> http.Response:
        host, _, port = request.host.partition(":")
        if request.path == "/robots.txt":
            return http.Response(status=404)
        if host == part:
            await asyncio.sleep(2.0)
            link = f'<see xlink:href="http://{document}:{port}/a.html"/>'
            return http.Response(text=link, content_type="application/xml-external-parsed-entity")
        if request.path == "/d.xml":
            entity = f'<!DOCTYPE d [<!ENTITY e SYSTEM "http://{part}:{port}/e.ent">]>'
            return http.Response(text=f"{entity}<d {XLINK}>&e;</d>", content_type="text/xml")
        return http.Response(text="<p>a page", content_type="text/html")

    with running_cluster(tmp_path, 0.05) as cluster:
        cluster.start(1), cluster.start(2)
        cluster.balanced(8, 8)
        with cluster.remote() as remote:
            document, part = addresses(*(min(remote.placement.owned(node)) for node in (1, 2)))
        with serving(answer, [document, part]) as port:
            url = f"http://{document}:{port}/d.xml"
            report = crawled(cluster, url)
            assert (report["ended"], report["pages_read"]) == ("complete", 3), (
                "the document, its part, what that links to"
            )
            assert (url, f"http://{document}:{port}/a.html") in cluster.links()


@pytest.mark.long
@pytest.mark.parametrize("moment", [3, pytest.param(40, marks=pytest.mark.long), 80])
def test_a_killed_node_makes_no_read_beyond_the_bound(tmp_path, web, log_path, moment):
    pages = 120
    with running_cluster(tmp_path, 0.05) as cluster:
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        log = ServerLog(log_path)
        crawl = begin(cluster, web.entry, "--max-pages", str(pages))
        cluster.until(lambda: sum(log.reads().values()) >= moment, f"{moment} reads")
        victim = 1 + moment % 3
        cluster.kill(victim)
        time.sleep(2.0)
        cluster.start(victim)
        out, told = crawl.communicate(timeout=120)
        assert crawl.returncode == 0, told
        report, (read, _) = json.loads(out), requests(log)
        assert report["ended"] == "max-pages"
        assert report["pages_read"] <= read <= pages
        assert read >= pages / 2, "what was out when it died is charged, and no more"
        for number in (1, 2, 3):
            cluster.stop(number)
