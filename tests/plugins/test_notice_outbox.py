"""Notices: one request a host at a time, Retry-After, hosts in turn; who unsubscribes at a bad moment."""

import asyncio
import json

from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.test_subscribed import EVERY, bring_forward
from tests.service.neighbours import Neighbours, crawling
from tests.xyro.test_resolver import own_name
from xyro.plugins.publish import notices
from xyro.plugins.publish.notice_outbox import NOBODY, NoticeOutbox
from xyro.posts import Posted
from xyro.wire.urls import authority


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c", NOBODY])), max_size=30), st.data())
def test_each_is_sent_once_and_one_a_host(puts, data):
    outbox, out, sent = NoticeOutbox(), [], []
    for number, host in puts:
        outbox.put(number, host)
    while len(sent) < len(puts):
        if out and data.draw(st.booleans()):
            outbox.done(out.pop(0))
        taken = outbox.take(0.0)
        if taken is None:
            assert out, "with nothing under way something can be sent"
            outbox.done(out.pop(0))
            continue
        number, host = taken
        assert host == NOBODY or host not in out
        out.append(host)
        sent.append((number, host))
    for host in {host for _, host in puts}:
        assert [one for one in sent if one[1] == host] == [one for one in puts if one[1] == host], "in their order"
    assert len(outbox) == 0


def test_a_host_that_asked_for_time_is_left_alone_and_delays_nobody_else():
    outbox = NoticeOutbox()
    for number, host in enumerate(("a", "a", "b")):
        outbox.put(number, host)
    assert outbox.take(0.0) == (0, "a") and outbox.take(0.0) == (2, "b") and outbox.take(0.0) is None
    outbox.done("a", until=30.0)
    assert outbox.take(29.0) is None
    assert outbox.take(30.0) == (1, "a")


class Slow:
    """A subscriber that notes how many requests it answers at once; `again`: its Retry-After, for the first one."""

    def __init__(self, again: str = "") -> None:
        self.again = again
        self.now = self.most = 0
        self.got: list[dict] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.now += 1
        self.most = max(self.most, self.now)
        notice = json.loads(await request.read())
        await asyncio.sleep(0.01)
        self.now -= 1
        if self.again:
            headers, self.again = {"Retry-After": self.again}, ""
            return web.Response(status=429, headers=headers)
        self.got.append(notice)
        return web.Response()


async def serve(slow, address="127.0.0.1"):
    app = web.Application()
    app.add_routes([web.post("/{any:.*}", slow.answer)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    return runner, f"http://{address}:{site._server.sockets[0].getsockname()[1]}"


async def test_one_post_a_host_and_others_are_told_meanwhile(tmp_path):
    neighbours, one, other = Neighbours(), Slow(), Slow()
    first, base = await serve(one)
    second, elsewhere = await serve(other)
    try:
        async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
            subscribe = running.subscribe
            made = [await subscribe(neighbours.url("/p1.html"), EVERY, f"{base}/{i}") for i in range(12)]
            made.append(await subscribe(neighbours.url("/p2.html"), EVERY, elsewhere))
            for number in made:
                bring_forward(running, number)
            await running.until(lambda: len(one.got) == 12 and len(other.got) == 1)
            assert one.most == 1 and {notice["subscription"] for notice in one.got} == set(made[:12])
    finally:
        await first.cleanup()
        await second.cleanup()


async def test_retry_after_of_a_subscriber_holds_for_its_host(tmp_path):
    neighbours, slow = Neighbours(), Slow(again="3600")
    runner, base = await serve(slow)
    try:
        async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
            subscribed = running.subscribed
            made = [await running.subscribe(neighbours.url("/p1.html"), EVERY, f"{base}/{i}") for i in range(2)]
            for number in made:
                bring_forward(running, number)
            await running.until(lambda: subscribed.rows[made[0]].error == "http-429" and len(subscribed._outbox) == 1)
            assert not slow.got, "the second one waits, too"
            assert not subscribed._outbox.is_free(base.partition("//")[2], running.single.clock.time() + 3_500.0)
            assert subscribed.in_line
    finally:
        await runner.cleanup()


async def test_a_subscriber_may_have_a_name_that_only_the_hosts_file_of_this_machine_has(tmp_path):
    """As a webhook of [[sinks]]; and a pause of the pages of its host is none of its notices."""
    (name, address), neighbours, hook = own_name(), Neighbours(), Slow()
    runner, base = await serve(hook, address)
    try:
        async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
            notify = base.replace(address, name)
            number = await running.subscribe(neighbours.url("/p1.html"), EVERY, notify)
            await running.single.hold(authority(notify + "/"), "paused")
            bring_forward(running, number)
            await running.until(lambda: hook.got or running.subscribed.rows[number].error)
            assert hook.got, running.subscribed.rows[number].error
    finally:
        await runner.cleanup()


async def test_what_is_taken_tells_when_its_host_may_be_contacted_again():
    class Client:
        async def post(self, url, body, headers):
            return Posted(202, 5.0)

    assert await notices.post(Client(), "http://a.example/", b"{}") == ("", 5.0)


async def test_who_ends_a_subscription_at_any_moment_stops_nothing_else(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed = running.subscribed
        target, notify = neighbours.url("/p1.html"), neighbours.url("/notice")
        making = asyncio.create_task(running.subscribing.subscribe(target, EVERY, notify))
        await running.until(lambda: subscribed.rows)  # it is not on disk yet
        assert await running.subscribing.unsubscribe(next(iter(subscribed.rows)))
        assert await making not in subscribed.rows and len(subscribed.subscriptions) == 0
        ended = await running.subscribe(target, EVERY, notify)
        subscribed._doing += 1
        assert await running.subscribing.unsubscribe(ended)
        subscribed._put(ended)  # it was due in this very moment
        assert not subscribed.unhandled() and not len(subscribed._outbox)
        number = await running.subscribe(target, EVERY, notify)
        bring_forward(running, number)
        await running.until(lambda: neighbours.notices)
