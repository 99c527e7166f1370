"""Sites tell a running crawl what has changed, over real HTTP: IndexNow, tokens, hostile senders, liars, crashes."""

import asyncio
import io
import json
import tracemalloc
from collections import Counter
from types import SimpleNamespace

import pytest
from aiohttp import web

from tests.service.neighbours import KEY, TOKEN, Neighbours, crawling
from xyro.answer import Answer
from xyro.frontier.waiting_links import RELIEF
from xyro.metadata import rows
from xyro.plugins.publish import indexnow, publishing
from xyro.plugins.publish.indexnow import IndexNow
from xyro.plugins.publish.listener import BODY, _belongs, listen
from xyro.plugins.publish.promises import PublisherClaim
from xyro.plugins.publish.stored_rows import KeyedRow, PublishedRow
from xyro.refresh.allowance import Allowance
from xyro.service.node import http_json
from xyro.service.node.admission import sender_of
from xyro.service.node.data_dir import DataDir
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError

BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def both(tmp_path, **options):
    neighbours = Neighbours()
    return neighbours, neighbours.serving(), lambda: crawling(tmp_path / "d", neighbours, **options)


def indexed(neighbours, *paths, key=KEY, **more):
    return {"host": neighbours.host, "key": key, "urlList": [neighbours.url(path) for path in paths], **more}


async def test_indexnow_first_202_then_200_and_the_pages_are_read_again(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        neighbours.pages["/p1.html"] = "changed"
        before = neighbours.reads["/p1.html"]
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html")))[0] == 202
        await running.until(lambda: running.published["in_time"] == 1)
        assert neighbours.reads["/p1.html"] == before + 1 and neighbours.reads[f"/{KEY}.txt"] == 1
        assert neighbours.reads["/robots.txt"] >= 1
        neighbours.pages["/p2.html"] = "changed, too"  # two pages that become one thing are looked at again, later
        query = {"url": neighbours.url("/p2.html"), "key": KEY}
        assert (await running.ask("GET", "/indexnow", params=query))[0] == 200
        await running.until(lambda: running.published["in_time"] == 2)
        assert neighbours.reads[f"/{KEY}.txt"] == 1  # believed for key_age
        assert running.published["true"] == 2 and running.published["late"] == 0
        assert running.published["median_delay_s"] is not None
        assert running.trust(neighbours.host) > 0.5


async def test_a_key_file_sent_as_html_is_believed(tmp_path):
    """Many servers call any file text/html."""
    neighbours, serving, crawl = await both(tmp_path)
    neighbours.files[f"/{KEY}.txt"] = (KEY, "text/html")
    async with serving, crawl() as running:
        neighbours.pages["/p1.html"] = "changed"
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html")))[0] == 202
        await running.until(lambda: running.published["in_time"] == 1)
        assert neighbours.reads[f"/{KEY}.txt"] == 1


async def test_a_wrong_key_is_refused_and_nothing_is_read(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    neighbours.files["/ffffffffffff.txt"] = ("something else", "text/plain")
    async with serving, crawl() as running:
        for wrong in ("ffffffffffff", "eeeeeeeeeeee"):  # the file says another key; there is no file
            body = indexed(neighbours, "/p1.html", key=wrong)
            assert (await running.ask("POST", "/indexnow", json=body))[0] == 202
            await running.until(lambda: not running.listener.indexnow._waiting)
            assert (await running.ask("POST", "/indexnow", json=body))[0] == 403
        assert running.published["published"] == 0 and neighbours.reads["/p1.html"] == 1


@pytest.mark.parametrize(
    ("status", "error", "body", "right"),
    [
        (200, "", KEY, True),
        (200, "", f"\ufeff {KEY}\r\n", True),
        (200, "truncated", KEY, False),  # who knows what follows
        (404, "http-404", KEY, False),
        (203, "", KEY, False),
        (200, "", f"{KEY}x", False),
        (200, "", KEY + " " * 2_000, False),
        (200, "", f"{KEY}\n{KEY}", False),
        (200, "too-large", None, False),
    ],
)
async def test_what_a_key_file_says(status, error, body, right):
    async def read(url):
        return Answer(0.0, 0.0, status=status, error=error, body=None if body is None else body.encode())

    services = SimpleNamespace(side_reads=SimpleNamespace(read=read))
    row = KeyedRow("h.example", KEY, f"http://h.example/{KEY}.txt", ("http://h.example/",), 0.0)
    assert await IndexNow._read(SimpleNamespace(services=services), row) is right


async def test_a_stranger_that_announces_itself_brings_in_no_hosts(tmp_path):
    """Only what a person names may introduce hosts; what counts is who was contacted, by the servers' log."""
    contacted = Counter()

    async def farm(request):
        contacted[request.host.rpartition(":")[0]] += 1
        port = request.host.rpartition(":")[2]
        if request.path == f"/{KEY}.txt":
            return web.Response(text=KEY)
        if request.path != "/farm.html":
            return web.Response(status=404)
        links = "".join(f'<a href="http://127.9.1.{host}:{port}/">x</a>' for host in range(1, 101))
        return web.Response(text=links, content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", farm)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", 0).start()
    stranger = f"127.9.0.1:{runner.addresses[0][1]}"
    _, serving, crawl = await both(tmp_path, **{"crawl.scope": "any"})
    try:
        async with serving, crawl() as running:
            body = {"host": stranger, "key": KEY, "urlList": [f"http://{stranger}/farm.html"]}
            assert (await running.ask("POST", "/indexnow", json=body))[0] == 202
            began = running.single.clock.monotonic()
            await running.until(lambda: running.status["waiting_links"] > 90)
            await asyncio.sleep(2.0)
            let_in = (running.single.clock.monotonic() - began) / RELIEF + 1.0
            assert len(contacted) <= 1 + let_in < 10, "one a second, while there is nothing to read"
            await running.single.sow([f"http://{stranger}/"])
            await running.until(lambda: len(contacted) == 101, 10 * RELIEF)
    finally:
        await runner.cleanup()


async def test_a_key_that_robots_txt_forbids_is_not_read(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    neighbours.files["/robots.txt"] = (f"User-agent: *\nDisallow: /{KEY}.txt\n", "text/plain")
    async with serving, crawl() as running:
        await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html"))
        await running.until(lambda: not running.listener.indexnow._waiting)
        assert neighbours.reads[f"/{KEY}.txt"] == 0 and running.published["published"] == 0


async def test_what_indexnow_refuses(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:

        async def status(**change):
            return (await running.ask("POST", "/indexnow", json={**indexed(neighbours, "/p1.html"), **change}))[0]

        assert await status(host="127.0.0.1:1") == 422
        assert await status(urlList=[neighbours.url("/p1.html"), "http://127.0.0.2/"]) == 422
        assert await status(keyLocation="http://127.0.0.2/key.txt") == 422
        assert await status(keyLocation=neighbours.url("/below/key.txt")) == 422
        assert await status(key="short") == 422 and await status(key="bad key with blanks") == 422
        assert await status(urlList=[]) == 400 and await status(urlList=["no url"]) == 400
        assert await status(urlList="http://x/") == 400 and await status(key=7) == 400
        assert await status(urlList=[neighbours.url(f"/{i}") for i in range(10_001)]) == 400
        elsewhere = {"host": "127.0.0.9", "key": KEY, "urlList": ["http://127.0.0.9/"]}
        assert (await running.ask("POST", "/indexnow", json=elsewhere))[0] == 422  # not a host of this crawl
        assert (await running.ask("POST", "/indexnow", data=b"{not json"))[0] == 400
        assert (await running.ask("POST", "/indexnow", data=b"[" * 100_000))[0] == 400
        assert (await running.ask("POST", "/indexnow", data=io.BytesIO(b"x" * (BODY + 1))))[0] == 413
        assert (await running.ask("GET", "/indexnow"))[0] == 400
        assert (await running.ask("GET", "/status"))[0] == 404  # nothing about the crawl
        assert running.published["published"] == 0 and not running.listener.indexnow._waiting


@pytest.mark.parametrize(
    "body",
    [
        b'{"host": [' + b"[]," * 1_000_000 + b"[]]}",
        b'{"urlList": [' + b"{}," * 1_000_000 + b"{}]}",
        b'{"unknown": [' + b"[]," * 1_000_000 + b"[]]}",
        b"{" + b",".join(b'"k%d":[]' % number for number in range(250_000)) + b"}",
        ('{"host": [' + "[]," * 600_000 + "[]]}").encode("utf-16"),
    ],
)
async def test_nothing_is_built_of_a_body_that_is_not_of_the_form(tmp_path, body):
    """A million lists in 4 MB of JSON cost a second of the event loop: whoever sends it, none is made."""
    _, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        for path, headers in (("/indexnow", {}), ("/publish", BEARER)):
            tracemalloc.start()
            try:
                assert (await running.ask("POST", path, data=io.BytesIO(body), headers=headers))[0] == 400
                assert tracemalloc.get_traced_memory()[1] < 32 << 20
            finally:
                tracemalloc.stop()


async def test_what_is_refused_anyway_is_refused_before_all_urls_are_looked_at(tmp_path, monkeypatch):
    """Ten thousand URLs with an unknown key take half a second of CPU, and anybody may send them."""
    monkeypatch.setattr(indexnow, "SENDER_CHECKS", 1)
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        looked, sift = [], running.publishing.sift
        monkeypatch.setattr(running.publishing, "sift", lambda urls: looked.append(len(urls)) or sift(urls))
        listener, urls = running.listener.indexnow, [neighbours.url(f"/p1.html?{i}") for i in range(10_000)]
        judged = [await listener.publish(neighbours.host, f"unknown-{i}", None, urls, "192.0.2.1") for i in range(5)]
        assert [one.status for one in judged] == [202, 429, 429, 429, 429] and looked == [10_000]
        elsewhere = [f"http://127.0.0.9/{i}" for i in range(10_000)]
        judged = [await listener.publish("127.0.0.9", f"unknown-{i}", None, elsewhere, "192.0.2.2") for i in range(30)]
        assert {one.status for one in judged} == {422}, "what is not read here uses nothing up"
        assert len(listener._unknown) == 1 and looked == [10_000]


async def test_a_host_may_be_written_as_people_write_it(tmp_path):
    """Names are looked up at a name server that is not there: keys come to nothing, and nothing leaves loopback."""
    _, serving, crawl = await both(tmp_path, fetch__name_servers=("127.0.0.1:9",), crawl__scope="any")
    async with serving, crawl() as running:
        judge = running.listener.indexnow.publish
        for host, url in (
            ("EXAMPLE.org:443", "https://example.org:443/x"),
            ("b\u00fccher.example", "http://b\u00fccher.example/x"),
        ):
            assert (await judge(host, KEY, None, [url])).status == 202
        assert (await judge("example.net/x", KEY, None, ["https://example.net/y"])).status == 202
        assert (await judge("", KEY, None, ["https://example.org/y"])).status == 400
        assert (await judge("other.example", KEY, None, ["https://example.org/y"])).status == 422


async def test_what_waits_for_its_key_is_bounded_in_all(tmp_path, monkeypatch):
    monkeypatch.setattr(indexnow, "MOST_TEXT", 60)
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        paths = [f"/{'x' * 40}{i}" for i in range(3)]
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, *paths)))[0] == 429
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html")))[0] == 202
        await running.until(lambda: not running.listener.indexnow._waiting)
        assert running.listener.indexnow._text == 0


async def test_unknown_keys_of_a_host_are_few_an_hour(tmp_path, monkeypatch):
    monkeypatch.setattr(indexnow, "CHECKS", 3)
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        answers = []
        for number in range(4):
            body = indexed(neighbours, "/p1.html", key=f"unknown-key-{number}")
            answers.append((await running.ask("POST", "/indexnow", json=body))[0])
            await running.until(lambda: not running.listener.indexnow._waiting)
        assert answers == [202, 202, 202, 429]


async def test_nobody_uses_up_the_keys_of_a_host_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(indexnow, "SENDER_CHECKS", 2)
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        listener, urls = running.listener.indexnow, [neighbours.url("/p1.html")]

        async def answers(sender, *keys):
            found = []
            for key in keys:
                found.append((await listener.publish(neighbours.host, key, None, urls, sender)).status)
                await running.until(lambda: not listener._waiting)
            return found

        assert await answers("192.0.2.1", "unknown-1", "unknown-2", "unknown-3", "unknown-4") == [202, 202, 429, 429]
        assert await answers("192.0.2.2", KEY) == [202], "others have a share of their own"
        name = (neighbours.host, KEY, neighbours.url(f"/{KEY}.txt"))
        listener._verdicts[name] = (True, 0.0)  # long ago
        assert await answers("192.0.2.1", KEY) == [202] and neighbours.reads[f"/{KEY}.txt"] == 2


async def test_behind_a_proxy_that_the_settings_name_each_sender_has_its_own_share(tmp_path):
    """25 keys that are wrong, all from one sender, and the site itself is still heard."""
    neighbours, serving, crawl = await both(tmp_path, publish__proxies=["127.0.0.0/8"])
    async with serving, crawl() as running:

        async def said(sender, key):
            headers = {"X-Forwarded-For": f"203.0.113.9, {sender}"}  # who sent it may have written the first
            body = indexed(neighbours, "/p1.html", key=key)
            status = (await running.ask("POST", "/indexnow", json=body, headers=headers))[0]
            await running.until(lambda: not running.listener.indexnow._waiting)
            return status

        junk = [await said("192.0.2.1", f"wrong-key-{number}") for number in range(25)]
        assert junk == [202] * 5 + [429] * 20
        assert await said("192.0.2.2", KEY) == 202
        assert await said("no address", "wrong-key-x") in (202, 429)


async def test_the_header_of_nobody_else_is_believed(tmp_path):
    neighbours, serving, crawl = await both(tmp_path, publish__proxies=["10.0.0.0/8"])
    async with serving, crawl() as running:
        answers = []
        for number in range(21):
            body, headers = (
                indexed(neighbours, "/p1.html", key=f"wrong-key-{number}"),
                {"X-Forwarded-For": f"192.0.2.{number}"},
            )
            answers.append((await running.ask("POST", "/indexnow", json=body, headers=headers))[0])
            await running.until(lambda: not running.listener.indexnow._waiting)
        assert answers == [202] * 20 + [429]


@pytest.mark.parametrize(("again", "told"), [(0.2, "1"), (1.0, "1"), (59.01, "60"), (0.0, None)])
def test_who_comes_again_after_what_he_was_told_is_not_too_early(again, told):
    assert http_json.error(429, "busy", again).headers.get("Retry-After") == told


def test_of_ipv6_everybody_has_a_network():
    assert sender_of("2001:db8::1") == sender_of("2001:db8::ffff:1") == "2001:db8::/64" != sender_of("2001:db8:0:1::1")
    assert sender_of("::ffff:192.0.2.1") == sender_of("192.0.2.1") == "192.0.2.1"
    assert sender_of("fe80::1%eth0") == "fe80::/64"


class Hasty(SystemClock):
    """Nobody sleeps long."""

    async def sleep(self, seconds):
        await super().sleep(min(seconds, 0.02))


async def test_what_was_accepted_waits_until_its_host_may_publish_again(tmp_path):
    neighbours, serving, crawl = await both(tmp_path, publish__host_urls=2, clock=Hasty())
    async with serving, crawl() as running:
        listener, publishing = running.listener.indexnow, running.publishing
        partition = running.single.frontiers[0].partition
        assert not publishing.allowance.take(neighbours.host, 2, running.single.clock.monotonic())
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html")))[0] == 202
        await running.until(lambda: neighbours.reads[f"/{KEY}.txt"] == 1 and not listener._checking)
        await asyncio.sleep(0.1)
        assert len(listener._waiting) == len(list(partition.scan(rows.KEYED.prefix))) == 1
        publishing.allowance = Allowance(2, 2)  # the hour is over
        await running.until(lambda: running.published["in_time"] == 1 and not listener._waiting)
        assert not list(partition.scan(rows.KEYED.prefix)) and not listener._text
        assert neighbours.reads[f"/{KEY}.txt"] == 1
        more = indexed(neighbours, "/p1.html", "/p2.html", "/p3.html", key="unknown-key")
        assert (await running.ask("POST", "/indexnow", json=more))[0] == 429, "more than it may ever publish at once"


async def test_who_goes_away_while_it_is_written_takes_no_place(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        listener = running.listener.indexnow
        asking = asyncio.create_task(listener.publish(neighbours.host, KEY, None, [neighbours.url("/p1.html")]))
        for _ in range(100):
            if not listener._waiting:
                await asyncio.sleep(0)
        assert listener._waiting
        asking.cancel()
        await running.until(lambda: not listener._waiting and running.published["published"] == 1)
        assert asking.cancelled() and not listener._text


async def test_slashes_stay_as_they_are_where_the_crawl_keeps_them(tmp_path):
    neighbours, serving, crawl = await both(tmp_path, crawl__fold_slashes=False)
    neighbours.pages["/a//b.html"] = "text"
    async with serving, crawl() as running:
        assert neighbours.reads["/a//b.html"] == 1
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/a//b.html")))[0] == 202
        await running.until(lambda: running.published["in_time"] == 1)
        assert neighbours.reads["/a//b.html"] == 2 and not neighbours.reads["/a/b.html"]


async def test_urls_of_a_host_are_so_many_an_hour(tmp_path):
    neighbours, serving, crawl = await both(tmp_path, publish__host_urls=2)
    async with serving, crawl() as running:
        await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html"))
        await running.until(lambda: running.published["in_time"] == 1)
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p1.html", "/p2.html")))[0] == 429
        assert (await running.ask("POST", "/indexnow", json=indexed(neighbours, "/p2.html")))[0] == 200


async def test_a_site_publishes_with_its_token_its_own_urls_only(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        neighbours.pages["/new.html"] = "new"
        body = {"urls": [neighbours.url("/new.html"), "http://other.example/"], "claim": "new", "deadline": "5m"}
        for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {TOKEN}x"}):
            assert (await running.ask("POST", "/publish", json=body, headers=wrong))[0] == 401
        status, text = await running.ask("POST", "/publish", json=body, headers=BEARER)
        assert status == 200 and json.loads(text)["accepted"] == 1 and len(json.loads(text)["refused"]) == 1
        await running.until(lambda: running.published["in_time"] == 1)
        assert neighbours.reads["/new.html"] == 1
        for wrong in ({"claim": "x"}, {"every": -1}, {"deadline": "soon"}, {"urls": 7}, {"urls": [7]}):
            assert (await running.ask("POST", "/publish", json={**body, **wrong}, headers=BEARER))[0] == 400


async def test_many_urls_are_taken_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "AT_ONCE", 2)
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        before = running.single.partition_loops[0].turns
        own = [neighbours.url(f"/p{page}.html") for page in (0, 1, 2, 3, 4, 1)]
        found, refused = await running.publishing.sift([*own, "no url", "http://10.0.0.1/", "http://other.example/"])
        assert found == own[:5] and [url for url, _ in refused] == [
            "no url",
            "http://10.0.0.1/",
            "http://other.example/",
        ]
        assert await running.publishing.publish(found, running.publishing.claim_of({}, sure=True)) == []
        assert running.published["published"] == 5 and running.single.partition_loops[0].turns >= before + 3
        await running.until(lambda: running.published["in_time"] == 5)
        assert all(neighbours.reads[f"/p{page}.html"] == 2 for page in range(5))


async def test_a_token_is_worth_nothing_for_another_site_of_the_crawl(tmp_path):
    neighbours, serving, crawl = await both(tmp_path, crawl__scope="any")
    async with serving, crawl() as running:
        other = neighbours.url("/p1.html").replace("127.0.0.1", "127.0.0.2")
        body = {"urls": [neighbours.url("/p1.html"), other]}
        status, text = await running.ask("POST", "/publish", json=body, headers=BEARER)
        (refused,) = json.loads(text)["refused"]
        assert status == 200 and refused["url"] == other and "which the token is for" in refused["why"]
        assert running.published["published"] == 1


@pytest.mark.parametrize(
    ("host", "site", "own"),
    [
        ("example.org", "example.org", True),
        ("www.example.org", "example.org", True),
        ("example.org", "example.org:8080", True),
        ("notexample.org", "example.org", False),
        ("example.org", "www.example.org", False),
        ("org", "example.org", False),
        ("[::1]", "[::1]", True),
        ("[::2]", "[::1]", False),
        ("example.org.evil.example", "example.org", False),
    ],
)
def test_which_hosts_belong_to_a_site(host, site, own):
    assert _belongs(host, site) is own


async def test_a_lying_publisher_loses_its_orders_and_an_honest_one_keeps_them(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        said = {"urls": [neighbours.url("/p1.html")]}
        for _ in range(10):  # nothing changes
            await running.ask("POST", "/publish", json=said, headers=BEARER)
            if running.published["hastened"]:
                break
            count = running.published["false"]
            await running.until(
                lambda count=count: running.published["false"] > count or not running.published["waiting"]
            )
        told = running.published
        assert told["hastened"] == 1 and told["false"] >= 1 and running.trust(neighbours.host) < 0.5
        reads = neighbours.reads["/p1.html"]
        await running.ask("POST", "/publish", json=said, headers=BEARER)
        await asyncio.sleep(0.2)
        assert neighbours.reads["/p1.html"] == reads  # a claim of it is no order any more
        await running.publishing.publish(said["urls"], running.publishing.claim_of({}, sure=True))
        await running.until(lambda: neighbours.reads["/p1.html"] == reads + 1)  # the owner's word is one


async def test_a_claimed_rate_is_evidence_no_command(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        frontier = running.single.frontiers[0]
        page = frontier.partition.url_index.find_one(neighbours.url("/p1.html"))
        before = frontier.partition.row(page)
        body = {"urls": [neighbours.url("/p1.html")], "every": "1m"}
        await running.ask("POST", "/publish", json=body, headers=BEARER)
        await running.until(lambda: running.published["in_time"] == 1)
        after = frontier.partition.row(page)
        assert after.change_sum - before.change_sum < 1.0  # at most one change's worth
        assert after.rate < 1440.0 / 2


async def test_late_reads_are_counted_and_cost(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        now = running.single.clock.time()
        said = PublisherClaim("changed", now - 100.0, now - 40.0, sure=True)
        assert await running.publishing.publish([neighbours.url("/p1.html")], said) == []
        await running.until(lambda: running.published["late"] == 1)
        assert running.published["lateness"] >= 40.0 and running.published["in_time"] == 0


async def test_what_was_accepted_survives_the_death_of_the_process(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            url, now = neighbours.url("/p1.html"), running.single.clock.time()
            page = running.single.frontiers[0].partition.url_index.find_one(url)
        data = DataDir.open(tmp_path / "d")  # as a killed process leaves it: accepted, acknowledged, not yet read
        partition = data.partitions[0]
        partition.begin()
        row = PublishedRow(neighbours.host, "changed", now, now + 3_600.0)
        partition.put(rows.PUBLISHED.key(page), rows.pack(row))
        waits = KeyedRow(neighbours.host, KEY, neighbours.url(f"/{KEY}.txt"), (neighbours.url("/p2.html"),), now)
        partition.put(rows.KEYED.key(7), rows.pack(waits))
        partition.write(partition.seal({name: v for name, v in partition.scalars.items() if name != "commit"}))
        data.close()
        before = dict(neighbours.reads)
        async with crawling(tmp_path / "d", neighbours) as running:
            await running.until(lambda: running.published["in_time"] == 2)
            assert neighbours.reads["/p1.html"] == before["/p1.html"] + 1
            assert neighbours.reads["/p2.html"] == before["/p2.html"] + 1
        data = DataDir.open(tmp_path / "d")
        left = [*data.partitions[0].scan(rows.PUBLISHED.prefix), *data.partitions[0].scan(rows.KEYED.prefix)]
        data.close()
        assert left == []


@pytest.mark.parametrize("where", ["127.0.0.1:99999", "203.0.113.7:8090", "no host:80"])
def test_an_address_that_cannot_be_listened_on_is_one_line(where):
    with pytest.raises(InputError, match=r"\[publish\] listen"):
        listen(where)


def test_no_listener_unless_asked_for():
    assert listen("") is None
