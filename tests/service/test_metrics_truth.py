"""Metrics whose values need a truth from outside: of servers, subscribers, and what was fresh."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter, defaultdict
from functools import partial

import pytest
from aiohttp import web

from tests.plugins.changing_site import LETTERS
from tests.plugins.serving import serving
from tests.plugins.test_subscribed import bring_forward
from tests.service.face import LOOPBACK, rows, said, started, until
from tests.service.neighbours import Neighbours, crawling
from tests.service.test_metrics import free_port, get, total, values
from xyro.lab.zoo.interstitials import INTERSTITIALS
from xyro.plugins.metrics.metric_families import CrawlMetrics
from xyro.plugins.publish.promises import PublisherClaim
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.status import running as status_of

SHOWN = {row.name: row for row in INTERSTITIALS}
PAGES = 30


def settings_of(folder, port, more=""):
    (path := folder / "s.toml").write_text(f'[metrics]\nserve = true\nlisten = "127.0.0.1:{port}"\n{more}')
    return path


def scraped(port):
    status, text, _ = get(port, "/metrics")
    assert status == 200, text
    return values(text)


class Walls:
    """A home page, and two hosts of 30 pages that it links to: both stand behind a challenge, each of its vendor."""

    def __init__(self):
        self.kinds = {"127.0.0.2": SHOWN["cloudflare-403"], "127.0.0.3": SHOWN["datadome-403"]}
        self.port, self.answered = 0, defaultdict(list)

    async def answer(self, request):
        if request.path == "/robots.txt":
            return web.Response(status=404)
        kind = self.kinds.get(request.host.partition(":")[0])
        if kind is None:
            links = (f"http://{host}:{self.port}/p{page}" for host in self.kinds for page in range(PAGES))
            return web.Response(text="".join(f"<a href={url}>a</a>" for url in links), content_type="text/html")
        self.answered[kind.vendor].append(request.path)
        status, headers = int(kind.status.split()[0]), dict(line.split(": ", 1) for line in kind.headers)
        body = kind.body.replace("{path}", request.path).replace("{token}", f"t{time.time_ns()}")
        headers = {name: value.replace("{token}", "4711") for name, value in headers.items()}
        return web.Response(text=body, status=status, content_type="text/html", headers=headers)


def test_challenges_are_those_that_the_server_answered_with_and_the_orders_that_they_spared(tmp_path):
    """An order that is spared has a line in the crawl's log, and none in the server's."""
    site, port = Walls(), free_port()
    settings = settings_of(tmp_path, port)
    with serving(site.answer, ["127.0.0.1", *site.kinds]) as site.port, (tmp_path / "log").open("w") as log:
        seed = f"http://127.0.0.1:{site.port}/"
        options, environment = (*LOOPBACK, "-v", "--config", settings), {"XYRO_LOG__FORMAT": "json"}
        with started("serve", seed, *options, data=tmp_path / "d", stderr=log, environment=environment):
            for kind in site.kinds.values():
                until(lambda vendor=kind.vendor: scraped(port).get(f'xyro_challenged_hosts{{vendor="{vendor}"}}'))
            until(lambda: scraped(port)['xyro_orders{priority="all",state="reading"}'] == 0.0)
            found = scraped(port)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    refused = [line for line in lines if line["event"] == "read" and line["class"] == "challenge"]
    for host, kind in site.kinds.items():
        urls = [line["url"].removeprefix(f"http://{host}:{site.port}") for line in refused if line["host"][:9] == host]
        spared = set(urls) - set(site.answered[kind.vendor])
        assert found[f'xyro_challenges_total{{kind="answered",vendor="{kind.vendor}"}}'] == 1.0
        assert len(site.answered[kind.vendor]) == 1, "left alone after the first"
        assert found[f'xyro_challenges_total{{kind="spared",vendor="{kind.vendor}"}}'] == len(spared) > 0
        assert found[f'xyro_challenged_hosts{{vendor="{kind.vendor}"}}'] == 1.0
    reads = [found[f'xyro_reads_total{{purpose="discovery",result="{result}"}}'] for result in ("ok", "challenge")]
    assert reads == [1.0, 2.0] and total(found, "xyro_reads_total") == 3.0, "each answer for a page, and nothing else"
    assert found['xyro_read_seconds_count{phase="read"}'] == total(found, "xyro_order_wait_seconds_count") == 3.0
    assert found['xyro_hosts{state="challenged"}'] == found['xyro_errors_total{class="challenge"}'] == 2.0


class Turning:
    """40 pages; page n is at another version each 2 seconds where n is odd, and never otherwise. `log`: its answers."""

    period = 2.0

    def __init__(self):
        self.port, self.lock, self.log = 0, threading.Lock(), defaultdict(list)

    def version(self, path, moment):
        number = path.removeprefix("/p")
        odd = number.isdigit() and int(number) % 2
        return int(moment / self.period + int(number) / 40) if odd else 0

    async def answer(self, request):
        if request.path == "/robots.txt":
            return web.Response(status=404)
        now = time.time()
        with self.lock:
            self.log[request.path].append(now)
        own = hashlib.sha256(request.path.encode()).hexdigest()  # pages that are all alike look like a challenge
        names = [own[at : at + 5].translate(LETTERS) for at in range(0, 60, 5)]
        links = "".join(f"<p>{name}</p><a href=/p{number}>{name}</a>" for number, name in enumerate((names * 4)[:40]))
        words = f"<h1>{names[0]}</h1><p>is at version {self.version(request.path, now)}</p>"
        return web.Response(text=words + links, content_type="text/html")

    def fresh(self, path, moment):
        """Whether what was read last before a moment is what is there."""
        before = [read for read in self.log[path] if read <= moment]
        return bool(before) and self.version(path, max(before)) == self.version(path, moment)


@pytest.mark.long
def test_measured_freshness_is_that_of_the_server(tmp_path):
    """Half of all reads are audits. The truth is the server's: the share of importance whose last answer was the one
    that it would have given, as a mean over the time for which the audits stand."""
    site, port = Turning(), free_port()
    refresh = '[refresh]\nbandwidth = "40/s"\nmin_interval = 0.5\naudit = 50.0\n'
    options = (*LOOPBACK, "--refresh", "--config", settings_of(tmp_path, port, refresh))
    with serving(site.answer, ["127.0.0.1"]) as site.port:
        seed = f"http://127.0.0.1:{site.port}/"
        with started("crawl", seed, *options, data=tmp_path / "d", stderr=None):
            until(lambda: (said("status", "--data", tmp_path / "d")["audit"]["audits"] or 0) >= 200)
            found, audit = scraped(port), said("status", "--data", tmp_path / "d")["audit"]
            end = time.time()
            weights = {row["url"].removeprefix(seed[:-1]): row["importance"] for row in rows("pages", tmp_path / "d")}
    assert len(weights) == 41
    moments = [end - audit["over_s"] * (step + 0.5) / 200 for step in range(200)]
    shares = [sum(weight * site.fresh(path, moment) for path, weight in weights.items()) for moment in moments]
    truth = sum(shares) / len(shares) / sum(weights.values())
    measured = found['xyro_freshness_ratio{kind="measured"}']
    assert measured == pytest.approx(audit["freshness"], abs=0.05)
    assert 0.55 < truth < 0.97 and audit["low"] - 0.03 <= truth <= audit["high"] + 0.03, (truth, audit)


class Slow(Neighbours):
    """Holds its answer for `/p4.html` back while it is told to."""

    def __init__(self):
        super().__init__()
        self.answers = asyncio.Event()
        self.answers.set()

    async def _get(self, request):
        if request.path == "/p4.html":
            await self.answers.wait()
        return await super()._get(request)


@pytest.mark.long
async def test_promises_are_those_that_the_site_and_the_subscriber_saw(tmp_path):
    """Publications: in time where the server's answer came before the deadline. Notices: as each says of itself."""
    neighbours = Slow()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, metrics__serve=True) as running:
        metrics = CrawlMetrics(running.single, partial(status_of, running.single, VIEW_EXTENSIONS), lambda: 0.0)

        def promises():
            found = values(metrics.text().decode())
            return {
                (kind, result): found[f'xyro_promises_total{{kind="{kind}",result="{result}"}}']
                for kind in ("publication", "subscription")
                for result in ("in_time", "late")
            }

        assert set(promises().values()) == {0.0}
        now, reads = running.single.clock.time(), Counter(neighbours.reads)
        for path, deadline in (("/p0.html", now + 60.0), ("/p1.html", now + 60.0), ("/p2.html", now - 40.0)):
            claim = PublisherClaim("changed", now - 100.0, deadline, sure=True)
            assert await running.publishing.publish([neighbours.url(path)], claim) == []
        await running.until(lambda: sum(promises().values()) == 3)
        assert [neighbours.reads[path] - reads[path] for path in ("/p0.html", "/p1.html", "/p2.html")] == [1, 1, 1]
        assert (promises()["publication", "in_time"], promises()["publication", "late"]) == (2, 1)

        good = await running.subscribe(neighbours.url("/p3.html"), 60.0, neighbours.url("/notice"))
        bad = await running.subscribe(neighbours.url("/p4.html"), 60.0, neighbours.url("/notice"))
        for times in (1, 2):
            await asyncio.sleep(1.1)  # reads have whole seconds: one in that of the plan counts as made for it
            neighbours.answers.clear()
            for number in (good, bad):
                bring_forward(running, number, 1.5)
            await running.until(lambda times=times: len(neighbours.notices) == 2 * times)
            neighbours.answers.set()
            kept = running.subscribed.rows
            await running.until(lambda kept=kept, times=times: kept[good].sequence == kept[bad].sequence == times)
        truth = Counter(notice["in_time"] for notice in neighbours.notices)
        assert truth == {True: 2, False: 2}, json.dumps(neighbours.notices)
        assert promises()["subscription", "in_time"] == truth[True]
        assert promises()["subscription", "late"] == truth[False]
