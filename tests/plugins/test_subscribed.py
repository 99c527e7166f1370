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
from xyro.frontier.targets import Targets, is_pattern, scan
from xyro.metadata.states import State
from xyro.plugins.publish.compose import compose
from xyro.plugins.publish.demand import AGAIN, TYPICAL, Demand
from xyro.plugins.publish.notice_pages import NoticePages
from xyro.plugins.publish.publication_rows import made
from xyro.plugins.publish.target_pages import TargetPages
from xyro.refresh.subscriptions import lead
from xyro.service.cli.publish_commands import _subscribe_stopped
from xyro.service.node.command_feed import feed
from xyro.service.node.page_questions import AT_ONCE, PageQuestions
from xyro.wire.clock import ManualClock
from xyro.wire.codec import decode, encode
from xyro.wire.errors import InputError

EVERY = 60.0


class Asked:
    """The services of a crawl without loops: its partitions answer at once."""

    def __init__(self, crawl):
        self.crawl, self.clock, self.settings = crawl, ManualClock(crawl.now), crawl.settings
        self.partitions, self.pages = len(crawl.frontiers), PageQuestions(self)

    async def send(self, partition, command):
        await asyncio.sleep(0)
        (found,) = self.crawl.frontiers[partition].commands.apply([decode(encode(command(1)))])
        return found.result()


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
        number = await running.subscribe(neighbours.url("/p1.html"), EVERY, neighbours.url("/notice"))
        neighbours.pages["/p1.html"] = "changed"
        bring_forward(running, number)
        await running.until(lambda: neighbours.notices)
        notice = neighbours.notices[0]
        (page,) = notice["pages"]
        assert (notice["subscription"], notice["notice"], notice["in_time"], notice["changed"]) == (number, 1, True, 1)
        assert page["url"] == neighbours.url("/p1.html") and page["changed"] and page["refreshed"]
        assert 0.0 <= page["stale"] < 0.5
        assert page["signature_old"] != page["signature_new"] and not page["new"] and not page["gone"]
        assert neighbours.reads["/p1.html"] == 2
        await running.until(lambda: subscribed.rows[number].sequence == 1)
        bring_forward(running, number)
        await running.until(lambda: len(neighbours.notices) == 2)
        assert neighbours.notices[1]["changed"] == 0 and neighbours.notices[1]["notice"] == 2
        await running.until(lambda: running.status["subscribed"]["notices"] == 2)
        told = running.status["subscribed"]
        assert (told["notices"], told["missed"], told["lateness"]) == (2, 0, 0.0)


async def test_a_pattern_tells_new_and_gone_pages(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        number = await running.subscribe(neighbours.url("/p*.html"), EVERY, neighbours.url("/notice"))
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
        number = await running.subscribe(neighbours.url("/p1.html"), EVERY * 60, neighbours.url("/notice"))
        neighbours.pages["/p1.html"] = "changed"
        bring_forward(running, number)
        await running.until(lambda: subscribed.rows[number].error == "http-503")
        assert subscribed.rows[number].attempts == 1 and not neighbours.notices
        bring_forward(running, number)
        await running.until(lambda: subscribed.rows[number].sequence == 1)
        assert neighbours.notices[0]["changed"] == 1


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


@pytest.mark.long
async def test_who_skips_a_notice_that_he_has_misses_no_change(tmp_path):
    """Its answer was lost, the page changed again: the next one says more, so it has another number."""
    neighbours = Forgetful()
    neighbours.lost = 3
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed, page = running.subscribed, neighbours.url("/p1.html")
        number = await running.subscribe(page, EVERY * 60, neighbours.url("/notice"))
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


@pytest.mark.long
@pytest.mark.parametrize("changes", [False, True])
async def test_a_notice_that_the_process_died_over_keeps_its_number_if_it_says_the_same(tmp_path, changes):
    neighbours = Forgetful()
    neighbours.hangs = True
    async with neighbours.serving():
        async with crawling(tmp_path / "d", neighbours) as running:
            page = neighbours.url("/p1.html")
            number = await running.subscribe(page, EVERY * 60, neighbours.url("/notice"))
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
                await running.subscribe(neighbours.url("/new*"), EVERY * 60, neighbours.url("/notice"))
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
            number = await running.subscribe(neighbours.url("/p1.html"), EVERY, neighbours.url("/notice"))
            before = await running.subscribing.listed()
        neighbours.pages["/p1.html"] = "changed while nobody looked"
        async with crawling(tmp_path / "d", neighbours) as running:
            assert await running.subscribing.listed() == before
            bring_forward(running, number)
            await running.until(lambda: neighbours.notices)
            assert neighbours.notices[0]["changed"] == 1
            assert await running.subscribing.unsubscribe(number)
            assert not await running.subscribing.unsubscribe(number)
            assert not running.subscribed.pages
            pages = running.single.frontiers[0].hooks.extension(NoticePages)
            await running.until(lambda: not pages.targets)
        async with crawling(tmp_path / "d", neighbours) as running:
            assert await running.subscribing.listed() == []


@pytest.mark.long
async def test_a_thousand_subscriptions_take_one_heap_and_miss_nothing(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        tasks = len(asyncio.all_tasks())
        made = [
            running.subscribe(neighbours.url(f"/p{i % 5}.html"), 86_400.0, neighbours.url("/notice"))
            for i in range(1_000)
        ]
        numbers = await asyncio.gather(*made)
        assert len(set(numbers)) == 1_000 and len(asyncio.all_tasks()) <= tasks + 10
        for number in numbers:
            bring_forward(running, number, 2.0)
        await running.until(lambda: len(neighbours.notices) == 1_000)
        assert sorted(notice["subscription"] for notice in neighbours.notices) == sorted(numbers)
        assert (
            running.status["subscribed"]["missed"] == 0 and max(neighbours.reads[f"/p{i}.html"] for i in range(5)) <= 20
        )


async def test_what_cannot_be_subscribed_to(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribe = running.subscribe
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
        assert await subscribe(neighbours.url("/"), 3_600.0, "cat") and await running.subscribing.listed()
        assert await running.subscribing.unsubscribe(next(iter(running.subscribed.rows)))
        assert await running.subscribing.listed() == []


async def test_a_command_gets_json_and_nothing_of_it_is_left(tmp_path):
    out = tmp_path / "got"
    script = f"import sys, pathlib; pathlib.Path({str(out)!r}).write_text(sys.stdin.read())"
    assert await feed([sys.executable, "-c", script], '{"a": "é; rm -rf"}'.encode()) == ""
    assert json.loads(out.read_text()) == {"a": "é; rm -rf"}
    assert await feed([sys.executable, "-c", "raise SystemExit(3)"], b"") == "exit code 3"
    assert "cannot be run" in await feed([str(tmp_path / "nothing")], b"")
    assert await feed([sys.executable, "-c", "import time; time.sleep(60)"], b"", seconds=0.5) == "timeout"


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
def test_a_command_that_does_not_read_its_input_harms_nobody(tmp_path, loop):
    """`true` ends before anything is written to it. The daemon's loop is uvloop, where that once ended the daemon."""
    out = tmp_path / "got"

    async def tell():
        for size in (2, 3_000_000):
            found = await asyncio.gather(*(feed(("true",), b"x" * size) for _ in range(8)))
            assert found == [""] * 8
        assert await feed(("false",), b"x" * 3_000_000) == "exit code 1"
        assert await feed(("sh", "-c", f"cat > {shlex.quote(str(out))}"), b"x" * 3_000_000) == ""
        assert "cannot be run" in await feed([str(tmp_path / "nothing")], b"x")
        assert await feed(("sleep", "60"), b"x" * 3_000_000, seconds=0.3) == "timeout"

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
    assert asyncio.run(feed(command, b"{}")) == ""
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
        number = await running.subscribe(neighbours.url("/p1.html"), EVERY, command)
        bring_forward(running, number)
        await running.until(lambda: running.subscribed.rows[number].sequence == 1)
        assert json.loads(out.read_text())["target"] == neighbours.url("/p1.html")


async def test_notices_of_a_paused_host_pile_up_nothing(tmp_path):
    neighbours = Neighbours()
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        subscribed, scheduler = running.subscribed, running.single.frontiers[0].scheduler
        number = await running.subscribe(neighbours.url("/p*.html"), EVERY, neighbours.url("/notice"))
        await running.single.hold(neighbours.host, "paused")
        for told in range(1, 4):
            bring_forward(running, number)
            await running.until(lambda told=told: subscribed.rows[number].sequence == told)
        assert len(neighbours.notices) == 3
        await running.until(lambda: not subscribed.unhandled())
        assert scheduler.parking.pages() == 5, "each page once"
        await running.single.hold(neighbours.host, "")
        await running.until(lambda: not running.overdue())


async def test_a_notice_of_many_pages_leaves_others_their_turn():
    crawl = Crawl.in_memory(refreshing=True)
    pages = [url(0, page) for page in range(3 * AT_ONCE)]
    crawl.submit(*pages)
    while orders := crawl.turn() or list(crawl.orders.values()):
        for order in orders:
            crawl.answer(order)
    services = Asked(crawl)
    targets, found = Targets(), TargetPages()
    for each in (targets, found):
        each.add("http://h0.example/*")
    for target, page in scan(crawl.frontier.partition, targets):
        found.take(target, page, (0, 0))
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
    notice = await compose(services, found.pages("http://h0.example/*"), 7, row, crawl.now + 5.0, crawl.now)
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
    services, pages = Asked(crawl), TargetPages()
    targets = [url(0, page) for page in range(30)] + [url(1)]
    for target in targets:
        pages.add(target)
    for place in await services.pages.find(targets):
        pages.take(*place)
    demand, delay = Demand(services, pages), crawl.settings.politeness.min_delay + TYPICAL
    assert demand.lead(targets[0]) == lead([(1, delay)]), "nobody has counted yet"
    assert await demand.count(targets) and not await demand.count(targets)
    assert demand.lead(targets[0]) == lead([(30, delay)]) and demand.lead(targets[-1]) == lead([(1, delay)])
    services.clock.advance(AGAIN)
    assert not await demand.count(targets), "no host has more than before"


def test_the_targets_of_a_url_are_found_by_its_origin():
    targets, pages = Targets(), TargetPages()
    names = ("http://a.example/x/*", "http://b.example/*", "*/common/*", "http://a.example/q?a=1")
    for target in names:
        assert targets.add(target) and not targets.add(target) and pages.add(target) and not pages.add(target)
    assert set(targets.names("http://a.example/x/common/1")) == {"http://a.example/x/*", "*/common/*"}
    assert set(targets.names("http://a.example/q?a=1")) == {"http://a.example/q?a=1"}
    assert not list(targets.names("http://a.example/qxa=1")) and not is_pattern("http://a.example/q?a=1")
    for page, new in enumerate(("http://b.example/1", "http://c.example/"), 5):
        for target in targets.names(new):
            pages.take(target, page, (0, 1))
    assert pages.pages("http://b.example/*") == [5] and pages.count("http://b.example/*") == 1
    for target in names:
        assert not targets.drop(target) and targets.drop(target) and not pages.drop(target) and pages.drop(target)
    assert not targets and not pages and not list(targets.names("http://b.example/1"))


@pytest.mark.parametrize("partitions", [1, 4])
async def test_a_partition_answers_what_is_known_of_pages(partitions):
    crawl = Crawl.in_memory(partitions)
    crawl.submit(*(url(host, page) for host in range(6) for page in range(3)))
    for order in crawl.turn():
        crawl.answer(order)
    crawl.turn()
    ask = Asked(crawl).pages
    known = [url(host, 1) for host in range(6)]
    places = await ask.find([*known, url(9)])
    assert sorted(place.target for place in places) == known
    facts = await ask.describe([place.page for place in places])
    assert [(fact.page, fact.url) for fact in facts] == [(place.page, place.target) for place in places]
    assert {fact.state for fact in facts} <= {State.READ, State.UNREAD}
    assert [fact.row is not None for fact in facts] == [fact.state is State.READ for fact in facts]
    found = [match async for match in ask.match(["http://h?.example/p1.*", "*h3*"])]
    assert sorted(match.page for match in found if match.target != "*h3*") == sorted(place.page for place in places)
    assert {match.host for match in found if match.target == "*h3*"} == {
        place.host for place in places if place.target == url(3, 1)
    }
