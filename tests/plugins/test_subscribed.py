"""Subscriptions of a running crawl: pages are refreshed first, the notice says what changed, nothing is forgotten."""

import asyncio
import json
import shlex
import sys
import time
from pathlib import Path

import pytest
import uvloop
from aiohttp import web

from tests.frontier.rig import Crawl, url
from tests.service.neighbours import Neighbours, crawling
from xyro.frontier.watch import Watch, is_pattern, scan
from xyro.metadata.states import State
from xyro.plugins.publish import notices
from xyro.plugins.publish.compose import compose
from xyro.plugins.publish.demand import AGAIN, TYPICAL, Demand
from xyro.plugins.publish.publication_rows import made
from xyro.refresh.subscriptions import lead
from xyro.service.cli.publish_commands import _subscribe_stopped
from xyro.service.node.page_lookup import PageLookup
from xyro.service.node.slicing import AT_A_TIME
from xyro.wire.clock import ManualClock
from xyro.wire.errors import InputError

EVERY = 60.0


def bring_forward(running, number, seconds=1.0):
    """The notice is due in so many seconds: as if the rest of the period had passed.

    Only between notices: the answer to one that is out sets the next date (so wait for `sequence`, not for the notice).
    """
    subscribed = running.subscribed
    due = running.single.clock.time() + seconds
    subscribed.rows[number] = row = _replace(subscribed.rows[number], due=due)
    subscribed.subscriptions.add(number, row.every, due, 60.0, row.attempts)


def _replace(row, **change):
    import msgspec

    return msgspec.structs.replace(row, **change)


async def test_a_page_is_refreshed_then_told_with_what_changed(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed = running.subscribed
        number = await subscribed.subscribe(neighbours.url("/p1.html"), EVERY, neighbours.url("/notice"))
        neighbours.pages["/p1.html"] = "changed"
        bring_forward(running, number)
        await running.until(lambda: neighbours.notices)
        notice = neighbours.notices[0]
        (page,) = notice["pages"]
        assert (notice["subscription"], notice["notice"], notice["in_time"], notice["changed"]) == (number, 1, True, 1)
        assert page["url"] == neighbours.url("/p1.html") and page["changed"] and page["refreshed"]
        assert page["signature_old"] != page["signature_new"] and not page["new"] and not page["gone"]
        assert neighbours.reads["/p1.html"] == 2
        await running.until(lambda: subscribed.rows[number].sequence == 1)
        bring_forward(running, number)
        await running.until(lambda: len(neighbours.notices) == 2)
        assert neighbours.notices[1]["changed"] == 0 and neighbours.notices[1]["notice"] == 2
        await running.until(lambda: subscribed.counters()["notices"] == 2)
        told = subscribed.counters()
        assert (told["notices"], told["missed"], told["lateness"]) == (2, 0, 0.0)


async def test_a_pattern_tells_new_and_gone_pages(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        number = await running.subscribed.subscribe(neighbours.url("/p*.html"), EVERY, neighbours.url("/notice"))
        neighbours.pages["/p9.html"] = "new"
        await running.single.submit([neighbours.url("/p9.html")], seed=False)
        neighbours.gone.add("/p2.html")
        bring_forward(running, number)
        await running.until(lambda: neighbours.notices)
        said = {page["url"]: page for page in neighbours.notices[0]["pages"]}
        assert set(said) == {neighbours.url(f"/p{i}.html") for i in (0, 1, 2, 3, 4, 9)}
        assert said[neighbours.url("/p9.html")]["new"] and said[neighbours.url("/p2.html")]["gone"]
        assert neighbours.notices[0]["changed"] == 2


async def test_a_notice_that_fails_is_told_later_with_nothing_lost(tmp_path):
    neighbours = Neighbours()
    neighbours.refuse = 1
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed = running.subscribed
        number = await subscribed.subscribe(neighbours.url("/p1.html"), EVERY * 60, neighbours.url("/notice"))
        neighbours.pages["/p1.html"] = "changed"
        bring_forward(running, number)
        await running.until(lambda: subscribed.rows[number].error == "http-503")
        assert subscribed.rows[number].attempts == 1 and not neighbours.notices
        bring_forward(running, number)
        await running.until(lambda: neighbours.notices)
        assert neighbours.notices[0]["changed"] == 1 and subscribed.rows[number].sequence == 1


class Forgetful(Neighbours):
    """A subscriber that takes each notice, and whose answer is lost so many times; or who never answers."""

    lost = 0
    hangs = False

    async def _notice(self, request):
        self.notices.append(json.loads(await request.read()))
        if self.hangs:
            await asyncio.Event().wait()
        if self.lost:
            self.lost -= 1
            return web.Response(status=503)
        return web.Response()


async def test_who_skips_a_notice_that_he_has_misses_no_change(tmp_path):
    """Its answer was lost, the page changed again: the next one says more, so it has another number."""
    neighbours = Forgetful()
    neighbours.lost = 3
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed, page = running.subscribed, neighbours.url("/p1.html")
        number = await subscribed.subscribe(page, EVERY * 60, neighbours.url("/notice"))
        for attempt, text in enumerate(("first", "first", "second"), 1):
            neighbours.pages["/p1.html"] = text
            bring_forward(running, number)
            await running.until(lambda attempt=attempt: subscribed.rows[number].attempts == attempt)
        bring_forward(running, number)
        await running.until(lambda: subscribed.rows[number].sequence == 1)
        told = [(one["notice"], one["pages"][0]["signature_new"]) for one in neighbours.notices]
        first, second = told[0][1], told[2][1]
        assert told == [(1, first), (1, first), (2, second), (2, second)] and first != second
        neighbours.pages["/p1.html"] = "third"
        bring_forward(running, number)
        await running.until(lambda: subscribed.rows[number].sequence == 2)
        assert neighbours.notices[-1]["notice"] == 3 and neighbours.notices[-1]["pages"][0]["signature_old"] == second


@pytest.mark.parametrize("changes", [False, True])
async def test_a_notice_that_the_process_died_over_keeps_its_number_if_it_says_the_same(tmp_path, changes):
    neighbours = Forgetful()
    neighbours.hangs = True
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            page = neighbours.url("/p1.html")
            number = await running.subscribed.subscribe(page, EVERY * 60, neighbours.url("/notice"))
            neighbours.pages["/p1.html"] = "changed"
            bring_forward(running, number)
            await running.until(lambda: neighbours.notices)
        neighbours.hangs = False
        neighbours.pages["/p1.html"] = "changed again" if changes else "changed"
        async with crawling(tmp_path / "d", neighbours) as running:
            bring_forward(running, number)
            await running.until(lambda: running.subscribed.rows[number].sequence == 1)
        before, after = neighbours.notices
        assert (before["notice"], after["notice"]) == (1, 2 if changes else 1) and after["changed"] == 1


@pytest.mark.parametrize("stopped", [False, True])
async def test_what_is_new_before_the_first_notice_is_told_whatever_starts_anew(tmp_path, stopped):
    """Nothing of it was known when it was made (while the crawl ran, or while it did not): that is its base."""
    neighbours = Neighbours()
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            if not stopped:
                await running.subscribed.subscribe(neighbours.url("/new*"), EVERY * 60, neighbours.url("/notice"))
        if stopped:
            assert (
                _subscribe_stopped(tmp_path / "d", neighbours.url("/new*"), EVERY * 60, neighbours.url("/notice")) == 1
            )
        async with crawling(tmp_path / "d", neighbours) as running:
            neighbours.pages["/new.html"] = "new"
            await running.single.submit([neighbours.url("/new.html")], seed=False)
            await running.until(lambda: neighbours.reads["/new.html"] == 1 and running.single._settled())
        async with crawling(tmp_path / "d", neighbours) as running:
            bring_forward(running, 1)
            await running.until(lambda: neighbours.notices)
            (page,) = neighbours.notices[0]["pages"]
            assert page["new"] and page["changed"] and neighbours.notices[0]["changed"] == 1


async def test_they_survive_the_process_and_end_when_told(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            number = await running.subscribed.subscribe(neighbours.url("/p1.html"), EVERY, neighbours.url("/notice"))
            before = list(running.subscribed.listed())
        neighbours.pages["/p1.html"] = "changed while nobody looked"
        async with crawling(tmp_path / "d", neighbours) as running:
            assert list(running.subscribed.listed()) == before
            bring_forward(running, number)
            await running.until(lambda: neighbours.notices)
            assert neighbours.notices[0]["changed"] == 1
            assert await running.subscribed.unsubscribe(number)
            assert not await running.subscribed.unsubscribe(number)
            assert not running.subscribed.watch.on
        async with crawling(tmp_path / "d", neighbours) as running:
            assert list(running.subscribed.listed()) == []


@pytest.mark.long
async def test_a_thousand_subscriptions_take_one_heap_and_miss_nothing(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed = running.subscribed
        tasks = len(asyncio.all_tasks())
        made = [
            subscribed.subscribe(neighbours.url(f"/p{i % 5}.html"), 86_400.0, neighbours.url("/notice"))
            for i in range(1_000)
        ]
        numbers = await asyncio.gather(*made)
        assert len(set(numbers)) == 1_000 and len(asyncio.all_tasks()) <= tasks + 10
        for number in numbers:
            bring_forward(running, number, 2.0)
        await running.until(lambda: len(neighbours.notices) == 1_000)
        assert sorted(notice["subscription"] for notice in neighbours.notices) == sorted(numbers)
        assert subscribed.counters()["missed"] == 0 and max(neighbours.reads[f"/p{i}.html"] for i in range(5)) <= 20


async def test_what_cannot_be_subscribed_to(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribe = running.subscribed.subscribe
        for target, every, notify, why in (
            ("http://other.example/", 3_600.0, neighbours.url("/notice"), "only-net"),
            ("http://127.0.0.5/", 3_600.0, neighbours.url("/notice"), "out-of-scope"),
            (neighbours.url("/"), 1.0, neighbours.url("/notice"), "--every"),
            (neighbours.url("/"), 3_600.0, "http://10.0.0.1/hook", "only-net"),
            (neighbours.url("/"), 3_600.0, "", "--notify"),
            (neighbours.url("/"), 3_600.0, "mail 'unclosed", "--notify"),
            ("no url", 3_600.0, neighbours.url("/notice"), "no url"),
            ("p*", 3_600.0, neighbours.url("/notice"), "pattern"),
            (neighbours.url("/\udcff*"), 3_600.0, neighbours.url("/notice"), "not text"),
            (neighbours.url("/"), 3_600.0, "cat \udcff", "not text"),
        ):
            with pytest.raises(InputError, match=why):
                await subscribe(target, every, notify)
        assert await subscribe(neighbours.url("/"), 3_600.0, "cat") and list(running.subscribed.listed())
        assert await running.subscribed.unsubscribe(next(iter(running.subscribed.rows)))
        assert list(running.subscribed.listed()) == []


async def test_a_command_gets_json_and_nothing_of_it_is_left(tmp_path):
    out = tmp_path / "got"
    script = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(sys.stdin.read())"
    assert await notices.run([sys.executable, "-c", script], '{"a": "é; rm -rf"}'.encode()) == ""
    assert json.loads(out.read_text()) == {"a": "é; rm -rf"}
    assert await notices.run([sys.executable, "-c", "raise SystemExit(3)"], b"") == "exit code 3"
    assert "cannot be run" in await notices.run([str(tmp_path / "nothing")], b"")
    assert await notices.run([sys.executable, "-c", "import time; time.sleep(60)"], b"", seconds=0.5) == "timeout"


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
def test_a_command_that_does_not_read_its_input_harms_nobody(tmp_path, loop):
    """`true` ends before anything is written to it. The daemon's loop is uvloop, where that once ended the daemon."""
    out = tmp_path / "got"

    async def tell():
        for size in (2, 3_000_000):
            found = await asyncio.gather(*(notices.run(("true",), b"x" * size) for _ in range(8)))
            assert found == [""] * 8
        assert await notices.run(("false",), b"x" * 3_000_000) == "exit code 1"
        assert await notices.run(("sh", "-c", f"cat > {shlex.quote(str(out))}"), b"x" * 3_000_000) == ""
        assert "cannot be run" in await notices.run([str(tmp_path / "nothing")], b"x")
        assert await notices.run(("sleep", "60"), b"x" * 3_000_000, seconds=0.3) == "timeout"

    loop(tell())
    assert out.stat().st_size == 3_000_000


def is_running(process: str) -> bool:
    """A zombie that nobody waits for does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_children_of_a_command_end_with_it(tmp_path):
    child = tmp_path / "child"
    command = ["sh", "-c", f"sleep 60 & echo $! > {shlex.quote(str(child))}"]
    assert asyncio.run(notices.run(command, b"{}")) == ""
    tries = 0
    while is_running(child.read_text().strip()):
        time.sleep(0.01)
        assert (tries := tries + 1) < 2_000


async def test_a_command_is_told(tmp_path):
    neighbours = Neighbours()
    out = tmp_path / "got"
    script = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(sys.stdin.read())"
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        command = shlex.join([sys.executable, "-c", script])
        number = await running.subscribed.subscribe(neighbours.url("/p1.html"), EVERY, command)
        bring_forward(running, number)
        await running.until(lambda: running.subscribed.rows[number].sequence == 1)
        assert json.loads(out.read_text())["target"] == neighbours.url("/p1.html")


async def test_notices_of_a_paused_host_pile_up_nothing(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed, scheduler = running.subscribed, running.single.frontiers[0].scheduler
        number = await subscribed.subscribe(neighbours.url("/p*.html"), EVERY, neighbours.url("/notice"))
        await running.single.hold(neighbours.host, "paused")
        for told in range(1, 4):
            bring_forward(running, number)
            await running.until(lambda told=told: subscribed.rows[number].sequence == told)
        assert len(neighbours.notices) == 3
        await running.until(lambda: subscribed.quiet)
        assert scheduler.parking.pages() == 5, "each page once"
        await running.single.hold(neighbours.host, "")
        await running.until(lambda: not running.subscribed.subscriptions.overdue)


async def test_a_notice_of_many_pages_leaves_others_their_turn():
    crawl = Crawl.in_memory(refreshing=True)
    pages = [url(0, page) for page in range(3 * AT_A_TIME)]
    crawl.submit(*pages)
    while orders := crawl.turn() or list(crawl.orders.values()):
        for order in orders:
            crawl.answer(order)
    crawl.watch = Watch()
    crawl.watch.add("http://h0.example/*")
    for target, page in scan(crawl.frontier.partition, crawl.watch.targets):
        crawl.watch.take(target, page)
    crawl.clock = ManualClock(crawl.now)
    crawl.lookup = PageLookup(crawl.frontiers, crawl.scope, crawl.clock, 0.0)
    hidden, was_there = crawl.page(pages[-1])[1], crawl.page(pages[-2])[1]
    for page in (hidden, was_there):
        crawl.frontier.partition.states[page] = State.DISALLOWED
    pages.pop()
    row = made("http://h0.example/*", EVERY, "http://h1.example/", crawl.now, True)
    row = _replace(row, seen=dict.fromkeys((*range(10), was_there), b"old"))
    turns = []

    async def others():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    notice = await compose(crawl, crawl.watch, 7, row, crawl.now + 5.0, crawl.now)
    task.cancel()
    assert len(turns) >= 3
    said = json.loads(notice.body)
    assert [page["url"] for page in said["pages"]] == pages and said["subscription"] == 7 and said["in_time"]
    assert said["changed"] == len(pages) == len(notice.seen) and not notice.missed
    assert [page["new"] for page in said["pages"]] == [False] * 10 + [True] * (len(pages) - 11) + [False]


async def test_a_notice_is_begun_early_enough_for_all_that_is_promised_of_its_hosts():
    crawl = Crawl.in_memory(refreshing=True)
    crawl.submit(*(url(0, page) for page in range(40)), url(1))
    crawl.turn()
    crawl.watch, crawl.clock = Watch(), ManualClock(crawl.now)
    crawl.lookup = PageLookup(crawl.frontiers, crawl.scope, crawl.clock, 0.0)
    targets = [url(0, page) for page in range(30)] + [url(1)]
    for target in targets:
        crawl.watch.add(target)
        _, page = crawl.page(target)
        crawl.watch.take(target, page)
    demand, delay = Demand(crawl, crawl.watch), crawl.settings.politeness.min_delay + TYPICAL
    assert demand.lead(targets[0]) == lead([(1, delay)]), "nobody has counted yet"
    assert await demand.count(targets) and not await demand.count(targets)
    assert demand.lead(targets[0]) == lead([(30, delay)]) and demand.lead(targets[-1]) == lead([(1, delay)])
    crawl.clock.advance(AGAIN)
    assert not await demand.count(targets), "no host has more than before"


def test_the_watch_finds_the_targets_of_a_url_by_its_origin():
    watch = Watch()
    for target in ("http://a.example/x/*", "http://b.example/*", "*/common/*", "http://a.example/q?a=1"):
        assert watch.add(target) and not watch.add(target)
    assert set(watch.targets("http://a.example/x/common/1")) == {"http://a.example/x/*", "*/common/*"}
    assert set(watch.targets("http://a.example/q?a=1")) == {"http://a.example/q?a=1"}
    assert not list(watch.targets("http://a.example/qxa=1")) and not is_pattern("http://a.example/q?a=1")
    for page, new in enumerate(("http://b.example/1", "http://c.example/"), 5):
        watch.born(page, new)
    assert watch.pages("http://b.example/*") == [5] and watch.count("http://b.example/*") == 1
    for target in ("http://a.example/x/*", "http://b.example/*", "*/common/*", "http://a.example/q?a=1") * 2:
        watch.drop(target)
    assert not watch.on and not watch.patterns and not list(watch.targets("http://b.example/1"))
