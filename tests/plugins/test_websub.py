"""WebSub over real HTTP: a feed names a hub, the hub is asked, verifies, sends; what is not signed right is ignored."""

import asyncio
import hashlib
import hmac

import pytest

from tests.service.neighbours import Neighbours, crawling
from xyro.configs.load import load
from xyro.plugins.publish.listener import PUBLISH_ENDPOINT
from xyro.plugins.publish.promises import promises_of
from xyro.plugins.publish.websub import MOST_OF_HOST, signed
from xyro.posts import Posted
from xyro.refresh.publications import MOST_WAITING
from xyro.wire.errors import InputError

FEED = """<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><updated>2024-01-01T00:00:00Z</updated>
<link rel="hub" href="{hub}"/><link rel="self" href="{self}"/><entry><title>e</title><id>i</id>
<link href="{entry}"/><updated>{date}</updated></entry></feed>"""


def with_feed(neighbours, date="2020-01-01T00:00:00Z", entry="/entry.html"):
    text = FEED.format(
        hub=neighbours.url("/hub"), self=neighbours.url("/feed.xml"), entry=neighbours.url(entry), date=date
    )
    neighbours.files["/feed.xml"] = (text, "application/atom+xml")
    return text.encode()


def path_of(asked):
    return "/websub/" + asked["hub.callback"].rpartition("/")[2]


def sign(secret, body, method="sha256"):
    return f"{method}=" + hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()


async def verified(running, neighbours, lease="3600"):
    """The hub was asked, and has verified; what it was asked."""
    await running.until(lambda: neighbours.asked)
    asked = neighbours.asked[0]
    query = {
        "hub.mode": "subscribe",
        "hub.topic": asked["hub.topic"],
        "hub.challenge": "ch&<1>",
        "hub.lease_seconds": lease,
    }
    assert await running.ask("GET", path_of(asked), params=query) == (200, "ch&<1>")
    return asked, query


async def test_discovery_verification_and_content(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            asked, query = await verified(running, neighbours)
            assert asked["hub.topic"] == neighbours.url("/feed.xml") and asked["hub.mode"] == "subscribe"
            assert len(asked["hub.secret"]) >= 40 and running.websub.counters()["active"] == 1
            assert (await running.ask("GET", path_of(asked), params=query))[0] == 404  # a challenge is answered once
            neighbours.pages["/fresh.html"] = "fresh"
            body = with_feed(neighbours, entry="/fresh.html")
            reads = neighbours.reads["/feed.xml"]
            headers = {"X-Hub-Signature": sign(asked["hub.secret"], body), "Content-Type": "application/atom+xml"}
            assert (await running.ask("POST", path_of(asked), data=body, headers=headers))[0] == 202
            await running.until(lambda: running.published["in_time"] == 2)
            assert neighbours.reads["/feed.xml"] == reads + 1 and neighbours.reads["/fresh.html"] == 1
            assert running.websub.counters() == {"topics": 1, "active": 1, "delivered": 1, "unsigned": 0}


async def test_a_page_names_its_hub_in_a_header(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        link = f'<{neighbours.url("/hub")}>; rel="hub", <{neighbours.url("/p3.html")}>; rel="self"'
        neighbours.headers["/p2.html"] = {"Link": link}
        neighbours.headers["/p4.html"] = {"Link": f"<{neighbours.url('/hub')}>; rel=preload"}
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            asked, _ = await verified(running, neighbours)
            assert asked["hub.topic"] == neighbours.url("/p3.html")
            assert running.websub.counters()["topics"] == 1
        async with crawling(tmp_path / "e", neighbours) as running:  # websub is off
            assert running.websub is None


async def test_a_page_names_its_hub_in_html_unless_a_header_names_one(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        said = f'<link rel="hub" href="{neighbours.url("/hub")}"><link rel="self" href="/p3.html">'
        neighbours.pages["/p2.html"] = neighbours.pages["/p4.html"] = f"<html><head>{said}</head>"
        header = f'<{neighbours.url("/hub")}>; rel="hub", <{neighbours.url("/p5.html")}>; rel="self"'
        neighbours.headers["/p4.html"] = {"Link": header}
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            await running.until(lambda: len(neighbours.asked) >= 2)
            assert {asked["hub.topic"] for asked in neighbours.asked} == {
                neighbours.url("/p3.html"), neighbours.url("/p5.html"),
            }  # fmt: skip


async def test_what_is_not_signed_right_is_ignored_but_acknowledged(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        body = with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            asked, _ = await verified(running, neighbours)
            right = sign(asked["hub.secret"], body)
            wrong = ["", "sha256=", right[:-1] + "0" * (right[-1] != "0") + "1" * (right[-1] == "0"), "md5=" + "0" * 32]
            wrong += [sign("another secret", body), right.replace("sha256", "sha512"), "sha256=\u00e9"]
            for header in wrong:
                headers = {"X-Hub-Signature": header, "Content-Type": "application/atom+xml"}
                assert (await running.ask("POST", path_of(asked), data=body, headers=headers))[0] == 202
            assert running.websub.counters()["unsigned"] == len(wrong)
            assert running.published["published"] == 0
            assert (await running.ask("POST", "/websub/nobody", data=body))[0] == 404


async def test_verification_is_for_what_we_asked_only(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            await running.until(lambda: neighbours.asked)
            asked = neighbours.asked[0]
            good = {"hub.mode": "subscribe", "hub.topic": asked["hub.topic"], "hub.challenge": "c"}
            path = path_of(asked)
            for change in (
                {"hub.topic": "http://127.0.0.1/other"},
                {"hub.mode": "unsubscribe"},
                {"hub.challenge": ""},
                {"hub.challenge": "x" * 2_000},
            ):
                assert (await running.ask("GET", path, params={**good, **change}))[0] == 404
            assert (await running.ask("GET", path + "x", params=good))[0] == 404
            assert (await running.ask("POST", path, data=b"early"))[0] == 404  # not verified yet
            assert running.websub.counters()["active"] == 0
            assert (await running.ask("GET", path, params={**good, "hub.mode": "denied"}))[0] == 200
            assert (await running.ask("GET", path, params=good))[0] == 404


async def test_a_lease_is_renewed_and_all_of_it_survives_a_restart(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            asked, _ = await verified(running, neighbours, lease="60")
        async with crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
            websub = running.websub
            assert websub.counters()["active"] == 1 and len(neighbours.asked) == 1
            number, row = next(iter(websub._rows.items()))
            assert row.secret == asked["hub.secret"] and row.until - row.begun == 60.0
            import msgspec

            websub._hold(number, msgspec.structs.replace(row, begun=row.begun - 50.0, until=row.until - 50.0))
            await running.until(lambda: len(neighbours.asked) == 2)  # 0.8 of the lease have passed
            again = neighbours.asked[1]
            assert again["hub.secret"] == asked["hub.secret"] and path_of(again) == path_of(asked)
            await asyncio.sleep(0)
            assert websub.is_ours(path_of(asked).rpartition("/")[2])  # meanwhile the old lease holds


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_of_all_methods(method):
    assert signed("s", b"body", sign("s", b"body", method))
    assert signed("s", b"body", sign("s", b"body", method).upper().replace(method.upper(), method))
    assert not signed("s", b"body!", sign("s", b"body", method))


def test_settings_that_cannot_work_are_refused_before_anything_starts():
    for overrides in ({"publish.websub": True}, {"publish.websub": True, "publish.callback": "https://c.example"}):
        with pytest.raises(InputError, match="websub needs"):
            PUBLISH_ENDPOINT.listen(load(overrides=overrides))


async def test_a_delivery_speaks_for_the_feeds_own_host_alone(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        with_feed(neighbours)
        async with crawling(tmp_path / "d", neighbours, publish__websub=True, crawl__scope="any") as running:
            asked, _ = await verified(running, neighbours)
            body = with_feed(neighbours).replace(neighbours.url("/entry.html").encode(), b"http://127.0.0.9/victim")
            headers = {"X-Hub-Signature": sign(asked["hub.secret"], body), "Content-Type": "application/atom+xml"}
            assert (await running.ask("POST", path_of(asked), data=body, headers=headers))[0] == 202
            await running.until(lambda: running.published["in_time"] == 1)
            assert running.published["published"] == 1, "the feed; nothing is said of another host's pages"
            assert promises_of(running.single.frontiers[0]).publications.room("127.0.0.9") == MOST_WAITING


async def test_a_page_names_no_topic_of_another_host(tmp_path):
    neighbours = Neighbours()
    options = {"publish__websub": True, "crawl__scope": "any"}
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, **options) as running:
        websub, hub = running.websub, neighbours.url("/hub")
        websub.discovered(neighbours.url("/p1.html"), [hub], "http://127.0.0.9/victim")
        websub.discovered(neighbours.url("/p2.html"), [hub], neighbours.url("/p3.html"))
        assert {row.topic for row in websub._rows.values()} == {neighbours.url("/p1.html"), neighbours.url("/p3.html")}


async def test_a_hub_is_asked_one_thing_at_a_time_and_left_alone_when_it_asks_for_that(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
        websub, asked = running.websub, []

        async def post(url, body, headers):
            asked.append(url)
            return Posted(429, 3_600.0) if "/busy" in url else Posted(202)

        websub.services.post = post
        hub, other = neighbours.url("/busy"), "http://127.0.0.8/hub"
        for i in range(3):
            websub.discovered(neighbours.url(f"/p{i}.html"), [hub], "")
        websub.discovered(neighbours.url("/p3.html"), [other], "")
        await running.until(lambda: other in asked and hub in asked)
        await asyncio.sleep(1.5)
        assert asked.count(hub) == 1 and asked.count(other) == 1
        silent = next(row for row in websub._rows.values() if row.hub == other)
        assert websub._when(silent) >= silent.asked + 600.0 and silent.failures > 0, "it said yes, and nothing more"


async def test_one_host_does_not_take_all_places(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours, publish__websub=True) as running:
        websub = running.websub
        for i in range(2 * MOST_OF_HOST):
            websub.discovered(neighbours.url(f"/many{i}"), [neighbours.url("/hub")], "")
        assert websub.counters()["topics"] == MOST_OF_HOST
