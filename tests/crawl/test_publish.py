"""Sites tell a running crawl what has changed, over real HTTP: IndexNow, tokens, hostile senders, liars, crashes."""

import asyncio
import io
import json

import pytest

from crawl.data_dir import DataDir
from crawl.publish import indexnow
from crawl.publish.listener import BODY, listen
from crawl.publish.promises import Said
from metadata import keys, rows
from metadata.rows import KeyedRow, PublishedRow
from tests.crawl.neighbours import KEY, TOKEN, Neighbours, crawling
from wire.errors import InputError

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
        neighbours.pages["/p2.html"] = "changed"
        query = {"url": neighbours.url("/p2.html"), "key": KEY}
        assert (await running.ask("GET", "/indexnow", params=query))[0] == 200
        await running.until(lambda: running.published["in_time"] == 2)
        assert neighbours.reads[f"/{KEY}.txt"] == 1  # believed for key_age
        assert running.published["true"] == 2 and running.published["late"] == 0
        assert running.published["median_delay_s"] is not None
        assert running.trust(neighbours.host) > 0.5


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
        await running.single.publishing.publish(said["urls"], running.single.publishing.said({}, sure=True))
        await running.until(lambda: neighbours.reads["/p1.html"] == reads + 1)  # the owner's word is one


async def test_a_claimed_rate_is_evidence_no_command(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        node = running.single.nodes[0]
        page = node.partition.urls.find_one(neighbours.url("/p1.html"))
        before = node.partition.row(page)
        body = {"urls": [neighbours.url("/p1.html")], "every": "1m"}
        await running.ask("POST", "/publish", json=body, headers=BEARER)
        await running.until(lambda: running.published["in_time"] == 1)
        after = node.partition.row(page)
        assert after.rate_a - before.rate_a < 1.0  # at most one change's worth
        assert after.rate < 1440.0 / 2


async def test_late_reads_are_counted_and_cost(tmp_path):
    neighbours, serving, crawl = await both(tmp_path)
    async with serving, crawl() as running:
        now = running.single.clock.time()
        said = Said("changed", now - 100.0, now - 40.0, sure=True)
        assert await running.single.publishing.publish([neighbours.url("/p1.html")], said) == []
        await running.until(lambda: running.published["late"] == 1)
        assert running.published["lateness"] >= 40.0 and running.published["in_time"] == 0


async def test_what_was_accepted_survives_the_death_of_the_process(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            url, now = neighbours.url("/p1.html"), running.single.clock.time()
            page = running.single.nodes[0].partition.urls.find_one(url)
        data = DataDir.open(tmp_path / "d")  # as a killed process leaves it: accepted, acknowledged, not yet read
        partition = data.partitions[0]
        partition.begin()
        row = PublishedRow(neighbours.host, "changed", now, now + 3_600.0)
        partition.put(keys.PUBLISHED.key(page), rows.pack(row))
        waits = KeyedRow(neighbours.host, KEY, neighbours.url(f"/{KEY}.txt"), (neighbours.url("/p2.html"),), now)
        partition.put(keys.KEYED.key(7), rows.pack(waits))
        partition.write(partition.seal({name: v for name, v in partition.scalars.items() if name != "commit"}))
        data.close()
        before = dict(neighbours.reads)
        async with crawling(tmp_path / "d", neighbours) as running:
            await running.until(lambda: running.published["in_time"] == 2)
            assert neighbours.reads["/p1.html"] == before["/p1.html"] + 1
            assert neighbours.reads["/p2.html"] == before["/p2.html"] + 1
        data = DataDir.open(tmp_path / "d")
        left = [*data.partitions[0].scan(keys.PUBLISHED.prefix), *data.partitions[0].scan(keys.KEYED.prefix)]
        data.close()
        assert left == []


@pytest.mark.parametrize("where", ["127.0.0.1:99999", "203.0.113.7:8090", "no host:80"])
def test_an_address_that_cannot_be_listened_on_is_one_line(where):
    with pytest.raises(InputError, match=r"\[publish\] listen"):
        listen(where)


def test_no_listener_unless_asked_for():
    assert listen("") is None
