"""Sinks: what they are given, in which order, and what becomes of those that fail, refuse, or stay away."""

import asyncio
import base64
import contextlib
import itertools
import json
import logging
import socket
import sys
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest

from tests.frontier.rig import Crawl, signature, url
from tests.plugins.changing_site import ChangingSite
from tests.plugins.test_changes import read, timeless, visit
from tests.plugins.webhook import webhook
from tests.service.face import LOOPBACK, process
from tests.xyro.test_proxy import proxying
from tests.xyro.test_resolver import AAAA, A, NameServer, own_name
from xyro.configs.load import load
from xyro.configs.schema import SinkTable
from xyro.metadata import rows
from xyro.plugins import PLUGINS
from xyro.plugins.changes.change_log import ChangeLog
from xyro.plugins.changes.change_report import change_status
from xyro.plugins.changes.change_rows import SinkRow, unpack_sink
from xyro.plugins.changes.change_stream import ChangeSource, read_all
from xyro.plugins.changes.changed_texts import ChangedTexts
from xyro.plugins.changes.sink_files import SinkFiles
from xyro.plugins.changes.sink_targets import PluginTarget
from xyro.plugins.changes.sinks import LATEST, Sinks
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.status import running
from xyro.wire.bus import EncodingBus
from xyro.wire.clock import ManualClock
from xyro.wire.codec import decode, encode
from xyro.wire.errors import InputError
from xyro.wire.questions import Question
from xyro.wire.text import LOG_FIELDS

HOUR = 3_600.0


class JumpingClock(ManualClock):
    """Whoever sleeps wakes at once, that much later."""

    async def sleep(self, seconds):
        self.advance(max(seconds, 0.0))
        await asyncio.sleep(0)


class Rig:
    """A crawl without loops whose sinks run: its partitions answer at once."""

    def __init__(self, path, *tables, **options):
        overrides = {"changes.record": True, "crawl.scope": "any", "politeness.delay": 0.0, **options}
        self.settings = msgspec.structs.replace(load(overrides=overrides), sinks=tables)
        self.path, self.numbers = path, itertools.count(1)
        self.open()

    def open(self):
        self.crawl = Crawl.on_disk(self.path, settings=self.settings, refreshing=True, now=1.7e9)
        self.clock = JumpingClock(self.crawl.now)
        self.services = SimpleNamespace(
            commands=self, clock=self.clock, settings=self.settings, endings=[], followed=[]
        )
        self.partitions = len(self.crawl.frontiers)
        self.sinks = Sinks(self.crawl.frontier, self.services, self.settings.sinks)
        self.sinks._recover()

    def restart(self):
        self.crawl.close()
        self.open()

    async def send(self, partition, command):
        await asyncio.sleep(0)
        message = decode(encode(command(next(self.numbers))))
        if isinstance(message, Question):
            (answer,) = self.crawl.frontiers[partition].commands.apply([message])
        else:
            (answer,) = self.post(partition, message).answers
        return answer.result()

    def post(self, partition, message):
        self.crawl.pending[partition].append(message)
        turn = self.crawl.seal(partition)
        self.crawl.write(turn, partition)
        return turn

    def change(self, count, first=0):
        for number in range(first, first + count):
            visit(self.crawl, url(number % 50), signature=signature(1000 + number))

    async def until(self, true):
        """Let the sinks run until it is so."""
        async with asyncio.timeout(60):
            task = asyncio.create_task(self.sinks.run())
            try:
                while not true():
                    await asyncio.sleep(0)
                    assert not task.done() or task.result()
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def status(self, name="s"):
        part = SimpleNamespace(
            number=0, extensions={key: of(0.0) for key, of in self.crawl.frontier.hooks.status.items()}
        )
        return change_status([part], 0.0)["sinks"][name]

    def row(self, name="s"):
        packed = self.crawl.frontier.partition.store.get(rows.SINK.key(name))
        return SinkRow("") if packed is None else unpack_sink(packed)

    def numbered(self):
        return [line["number"] for line in read(self.crawl)]


def lines_of(folder):
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


# Webhooks


async def test_a_webhook_gets_every_change_once_signed_and_in_batches(tmp_path):
    key = b"\x01\x02 bytes of a key"
    secret = "whsec_" + base64.b64encode(key).decode()
    with webhook(key) as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret=secret, batch=20))
        rig.change(70)
        await rig.until(lambda: rig.row().delivered == 70)
        assert timeless(hook.changes) == timeless(read(rig.crawl)) and hook.forged == 0
        assert len(hook.batches) == 4 and len({name for name, _ in hook.batches}) == 4
        assert all(1.7e9 <= at <= rig.clock.time() for _, at in hook.batches)
        assert rig.status()["behind"] == 0 and rig.status()["delivered"] == 70


async def test_a_condition_chooses_and_the_position_moves_past_the_rest(tmp_path):
    with webhook() as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret", where="change = 'gone'"))
        rig.change(10)
        visit(rig.crawl, url(3), error="http-404", status=404)
        rig.change(5, 60)
        await rig.until(lambda: rig.status()["behind"] == 0)
        assert [(line["change"], line["url"]) for line in hook.changes] == [("gone", url(3))]


async def test_a_webhook_that_is_dead_for_an_hour_gets_everything_when_it_is_back(tmp_path, caplog):
    caplog.set_level(logging.INFO, "xyro")
    with webhook() as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret", batch=50))
        rig.change(60)
        hook.status = 503
        begun = rig.clock.time()
        await rig.until(lambda: rig.clock.time() - begun > HOUR)
        tries = hook.asked
        assert 5 < tries <= 10 + HOUR / LATEST and not hook.changes
        assert (
            rig.status()["behind"] == 60 and rig.status()["error"] == "http-503" and rig.status()["failures"] == tries
        )
        rig.change(60, 60)
        rig.restart()
        hook.status = 200
        await rig.until(lambda: rig.row().delivered == 120)
        assert [line["number"] for line in hook.changes] == list(range(1, 121)) and rig.row().gaps == 0
        assert rig.status()["error"] is None and rig.status()["behind"] == 0
    told = [getattr(record, LOG_FIELDS) for record in caplog.records if hasattr(record, LOG_FIELDS)]
    assert told == [{"event": "sink-failed", "sink": "s", "error": "http-503"}]


@pytest.mark.parametrize(("seconds", "count"), [(0.1, 20), (5.0, 0)])
async def test_an_orderly_end_waits_for_the_delivery_under_way_but_not_long(tmp_path, seconds, count):
    """It is not delivered again afterwards. One that hangs holds no process up."""
    began, released, taken = threading.Event(), threading.Event(), []

    def take(changes):
        began.set()
        released.wait(seconds)
        taken.extend(changes)

    rig = Rig(tmp_path / "d", SinkTable(name="s", url="http://127.0.0.1:1/", batch=20))
    rig.change(70)
    rig.sinks.deliveries[0]._target = target = PluginTarget(take)
    target.grace = 1.0
    try:
        await rig.until(began.is_set)
        assert rig.row().delivered == count == len(taken)
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "sink")
    finally:
        released.set()
    rig.restart()
    rig.sinks.deliveries[0]._target = PluginTarget(taken.extend)
    await rig.until(lambda: rig.row().delivered == 70)
    assert [line["number"] for line in taken[-70 + count :]] == list(range(1 + count, 71))


@pytest.mark.long
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_sink_that_stays_away_too_long_gets_one_gap_record(tmp_path, restarted):
    """Its backlog is bounded by bytes; the others are not held up."""
    with webhook() as hook:
        hook.status = 500
        dead = SinkTable(name="dead", url=hook.url, secret="a secret", batch=10)
        rig = Rig(tmp_path / "d", dead, SinkTable(name="s", path=str(tmp_path / "files")), **{"changes.bytes": 65_536})
        for part in range(30):
            rig.change(50, 50 * part)
            await rig.until(lambda part=part: rig.row().delivered == 50 * (part + 1))
            if restarted and part % 10 == 5:
                rig.restart()
        state = rig.crawl.frontier.hooks.extension(ChangeLog).state
        assert state.size <= 65_536 + 400 and state.first > 500
        assert [line["number"] for line in lines_of(tmp_path / "files")] == list(range(1, 1501)) and rig.row().gaps == 0
        status = rig.status("dead")
        assert status["delivered"] == 0 and status["dropped"] == state.first - 1
        assert status["behind"] == 1501 - state.first, "what can still be delivered"
        rig.restart()
        hook.status = 200
        await rig.until(lambda: rig.status("dead")["behind"] == 0)
        gap, *rest = hook.changes
        assert (gap["change"], gap["first"], gap["last"]) == ("gap", 1, state.first - 1)
        assert [line["number"] for line in rest] == list(range(state.first, 1501))
        row = rig.row("dead")
        assert (row.gaps, row.missed, row.delivered) == (1, state.first - 1, 1501 - state.first)


@pytest.mark.long
@pytest.mark.parametrize("restarted", [False, True])
async def test_each_gap_record_names_what_was_left_out_since_the_last_change_that_came(tmp_path, restarted):
    with webhook() as hook:
        table = SinkTable(name="s", url=hook.url, secret="a secret", batch=10)
        rig, number, seen, gaps = Rig(tmp_path / "d", table, **{"changes.bytes": 65_536}), 0, 0, 0
        for _ in range(3):
            hook.status = 500
            for _ in range(20):
                rig.change(50, number)
                number, asked = number + 50, hook.asked
                await rig.until(lambda asked=asked: hook.asked > asked)
            if restarted:
                rig.restart()
            hook.status = 200
            await rig.until(lambda: rig.status()["behind"] == 0)
        for line in hook.changes:
            gap = line["change"] == "gap"
            assert (line["first"] if gap else line["number"]) == seen + 1
            seen, gaps = (line["last"], gaps + 1) if gap else (line["number"], gaps)
        assert (seen, gaps) == (number, 3) and rig.row().missed == number - rig.row().delivered


@pytest.mark.long
async def test_a_new_sink_begins_with_the_oldest_change_and_a_reader_who_asks_for_more_is_told(tmp_path):
    rig = Rig(tmp_path / "d", SinkTable(name="s", path=str(tmp_path / "files")), **{"changes.bytes": 65_536})
    rig.change(700)
    first = rig.crawl.frontier.hooks.extension(ChangeLog).state.first
    await rig.until(lambda: rig.row().delivered == 701 - first > 100)
    assert lines_of(tmp_path / "files")[0]["number"] == first > 1 and rig.row().gaps == 0
    source = ChangeSource.of_commands(rig, rig.clock, ChangedTexts(tmp_path))
    for since in ("", "1000h"):
        gap, oldest, *_ = await read_all(source, since, None, rig.crawl.now)
        assert (gap["change"], gap["first"], gap["last"], gap["count"]) == ("gap", 1, first - 1, first - 1)
        assert oldest["number"] == first


async def test_what_is_refused_for_good_is_kept_and_the_rest_goes_on(tmp_path):
    with webhook() as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret", batch=10, attempts=3))
        rig.change(10)
        hook.status = 422
        await rig.until(lambda: rig.row().dead == 10)
        assert hook.asked == 3
        hook.status = 200
        rig.change(5, 60)
        await rig.until(lambda: rig.row().delivered == 5)
        letters = lines_of(tmp_path / "d" / "sinks")
        assert [line["number"] for line in letters] == list(range(1, 11))
        assert {line["error"] for line in letters} == {"http-422"}
        assert [line["number"] for line in hook.changes] == list(range(11, 16))
        status = rig.status()
        assert status["dead"] == 10 and status["dead_letters"] == str(tmp_path / "d" / "sinks" / "s.dead-000001.jsonl")


# Files and commands


async def test_files_are_rolled_and_cut_back_to_what_was_stored(tmp_path):
    folder = tmp_path / "files"
    rig = Rig(tmp_path / "d", SinkTable(name="s", path=str(folder), roll=4096, batch=7))
    rig.change(50)
    await rig.until(lambda: rig.row().delivered == 50)
    files = sorted(folder.iterdir())
    assert len(files) > 3
    for path in files:  # a file ends with the line that fills it, in the middle of a batch, too
        *lines, last = path.read_bytes().splitlines(keepends=True)
        assert sum(map(len, lines)) < 4096 and (path == files[-1] or sum(map(len, (*lines, last))) >= 4096)
    with files[-1].open("a") as last:
        last.write('{"torn": ')
    (folder / f"s-{len(files) + 1:06d}.jsonl").write_text('{"of a life that ended before it was stored": 1}\n')
    rig.restart()
    rig.change(10, 60)
    await rig.until(lambda: rig.row().delivered == 60)
    assert timeless(lines_of(folder)) == timeless(read(rig.crawl))


async def test_files_of_another_crawl_are_left_alone(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "s-000004.jsonl").write_text("{}\n")
    rig = Rig(tmp_path / "d", SinkTable(name="s", path=str(folder)))
    rig.change(3)
    await rig.until(lambda: rig.row().delivered == 3)
    assert sorted(path.name for path in folder.iterdir()) == ["s-000004.jsonl", "s-000005.jsonl"]
    assert (folder / "s-000004.jsonl").read_text() == "{}\n"


def test_a_write_that_fails_in_its_second_file_is_written_again(tmp_path):
    files = SinkFiles(tmp_path, "x", 100)
    files.begin_anew()
    lines = [b"%04d" % number + b"." * 35 + b"\n" for number in range(12)]
    files.write(b"".join(lines[:2]))
    (tmp_path / "x-000003.jsonl").mkdir()
    with pytest.raises(IsADirectoryError):
        files.write(b"".join(lines[2:]))
    assert (files.file, files.length) == (1, 80)
    (tmp_path / "x-000003.jsonl").rmdir()
    files.write(b"".join(lines[2:]))
    written = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert b"".join(written) == b"".join(lines) and [len(text) for text in written] == [120] * 4
    files.write(lines[0])
    assert (files.file, files.length) == (5, 40)


def test_dead_letters_are_bounded(tmp_path):
    files = SinkFiles(tmp_path, "x", 100, 2)
    files.begin_anew()
    for number in range(10):
        files.write(b"%d" % number * 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-000009.jsonl", "x-000010.jsonl"]
    files.write((b"." * 99 + b"\n") * 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-000014.jsonl", "x-000015.jsonl"]


async def test_a_command_gets_lines_and_says_by_its_code_what_became_of_them(tmp_path):
    out, code = tmp_path / "out", tmp_path / "code"
    code.write_text("75")
    script = (
        f"import sys; c = int(open({str(code)!r}).read()); c or open({str(out)!r}, 'a').write(sys.stdin.read()); "
        "sys.exit(c)"
    )
    rig = Rig(tmp_path / "d", SinkTable(name="s", command=(sys.executable, "-c", script), attempts=2))
    rig.change(4)
    begun = rig.clock.time()
    await rig.until(lambda: rig.sinks.deliveries[0].failures >= 3)
    assert rig.clock.time() - begun >= 1 + 2 and rig.row().dead == 0, "75 asks to come again, for ever"
    code.write_text("0")
    await rig.until(lambda: rig.row().delivered == 4)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert timeless(lines) == timeless(read(rig.crawl))
    code.write_text("1")
    rig.change(2, 60)
    await rig.until(lambda: rig.row().dead == 2)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('name = "s"', "one of path, url, command and plugin"),
        ('path = "x"', "a name"),
        ('name = "s"\npath = "x"\nurl = "http://a/"', "one of"),
        ('name = "s"\npath = "x"\n[[sinks]]\nname = "s"\npath = "y"', "twice"),
        ('name = "s"\npath = "x"\nsecret = 5', "something else"),
        ('name = "a b"\npath = "x"', "name"),
    ],
)
def test_tables_that_say_nothing_clear_are_refused(tmp_path, table, place):
    path = tmp_path / "s.toml"
    path.write_text(f"[[sinks]]\n{table}\n")
    with pytest.raises(InputError, match=place):
        load([path])


def test_a_condition_that_is_none_is_refused_at_the_start(tmp_path):
    with pytest.raises(InputError, match="where"):
        Rig(tmp_path / "d", SinkTable(name="s", path="x", where="importance >"))


# In a running crawl


@pytest.mark.long
@pytest.mark.parametrize("bound", [(), ("--max-seconds", "2")])
def test_a_crawl_that_ends_by_itself_has_delivered_all_it_found(tmp_path, bound):
    with webhook() as hook, ChangingSite(3, 8, 4).serving() as site:
        settings = tmp_path / "s.toml"
        settings.write_text(
            f'[changes]\nrecord = true\n[[sinks]]\nname = "s"\nurl = "{hook.url}"\nsecret = "a secret"\nwait = 5.0\n'
            f'[[sinks]]\nname = "none"\npath = "{tmp_path}/files"\nwhere = "change = \'gone\'"\n'
        )
        words = ("crawl", site.entry, *LOOPBACK, "--config", settings, "--data", tmp_path / "d")
        done = process(*words, *bound, *(["--refresh"] if bound else []))
        assert done.returncode == 0 and "end of this run" not in done.stderr, done.stderr
        found = process("changes", "--data", tmp_path / "d").stdout.splitlines()
        assert len(hook.changes) == len(found) >= 3 * 9
        assert [json.loads(line)["number"] for line in found] == [line["number"] for line in hook.changes]
        sinks = json.loads(process("status", "--json", "--data", tmp_path / "d").stdout)["sinks"]
        assert {name: sink["behind"] for name, sink in sinks.items()} == {"none": 0, "s": 0}, "what fits no sink, too"


def test_a_crawl_waits_for_no_sink_that_fails_and_says_what_is_left(tmp_path):
    with ChangingSite(1, 3, 1).serving() as site:
        settings = tmp_path / "s.toml"
        settings.write_text('[changes]\nrecord = true\n[[sinks]]\nname = "s"\ncommand = ["false"]\n')
        words = ("crawl", site.entry, *LOOPBACK, "--config", settings, "--data", tmp_path / "d")
        done = process(*words)
        assert done.returncode == 0
        (said,) = [line for line in done.stderr.splitlines() if "sink s: it has not taken all changes" in line]
        assert "at the end of this run (exit code 1): the next one goes on with them" in said


async def crawl_until_delivered(path, site, *sinks, name="s", delay=0.0):
    """Crawl a site in two partitions until each change of it was delivered to a sink; the status then."""
    overrides = {"crawl.scope": "any", "politeness.delay": delay, "fetch.only_net": ("127.0.0.0/8",)}
    settings = msgspec.structs.replace(load(overrides=overrides), sinks=sinks)
    data = DataDir.open(path, partitions=2, make=True)
    node = Node(data, settings, guard_of(settings.fetch), Bounds(refresh=True), None, EncodingBus(), plugins=PLUGINS)
    node.start()
    try:
        await node.sow([site.entry])
        async with asyncio.timeout(60):
            while not site.complete or running(node, VIEW_EXTENSIONS)["sinks"][name]["behind"]:
                node.check()
                await asyncio.sleep(0.05)
        return running(node, VIEW_EXTENSIONS)
    finally:
        await node.stop()


@pytest.mark.long
async def test_a_running_crawl_delivers_and_shows_how_far(tmp_path):
    """Also over several partitions."""
    with webhook() as hook, ChangingSite(3, 8, 4).serving() as site:
        sink = SinkTable(name="s", url=hook.url, secret="a secret", wait=0.1)
        status = await crawl_until_delivered(tmp_path / "d", site, sink)
    assert hook.forged == 0 and len(hook.changes) == status["changes"]["recorded"] == 3 * (8 * 4 + 1)
    told = {}
    for line in hook.changes:
        told.setdefault(line["url"], []).append((line["change"], line["signature_old"], line["signature"]))
    assert told == site.expected()


class TimedSite(ChangingSite):
    """Notes when each request came."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.times = []

    async def answer(self, request):
        self.times.append(time.monotonic())
        return await super().answer(request)


@pytest.mark.long
async def test_a_receiver_that_hangs_pauses_neither_the_site_nor_the_other_sinks_of_its_address(tmp_path):
    with (
        socket.create_server(("127.3.0.1", 0)) as silent,
        webhook(address="127.3.0.1") as hook,
        TimedSite(1, 60, 1).serving() as site,
    ):
        hangs = SinkTable(name="hangs", url=f"http://127.3.0.1:{silent.getsockname()[1]}/", wait=0.0)
        sink = SinkTable(name="s", url=hook.url, secret="a secret", wait=0.1)
        status = await crawl_until_delivered(tmp_path / "d", site, hangs, sink, delay=0.02)
    assert max(after - before for before, after in itertools.pairwise(site.times)) < 3.0
    assert len(hook.changes) == status["changes"]["recorded"] == 60 + 1
    assert status["sinks"]["hangs"]["delivered"] == 0


async def test_what_a_webhook_is_asked_with_and_when_it_is_asked_again(tmp_path):
    """By its own name and nothing that pages are asked with; Retry-After is heeded; a redirect is a refusal."""
    with webhook() as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret", attempts=2))
        rig.change(3)
        hook.status, hook.answer = 429, {"Retry-After": "777"}
        begun = rig.clock.time()
        await rig.until(lambda: hook.asked == 2)
        assert rig.clock.time() - begun >= 777 and rig.row().dead == 0
        (head, *_) = hook.heads
        assert head.keys() == {
            *("Host", "User-Agent", "Content-Type", "Content-Length"),
            *("webhook-id", "webhook-timestamp", "webhook-signature"),
        }
        assert head["User-Agent"].startswith("Xyro/")
        hook.status, hook.answer = 307, {"Location": hook.url}
        asked = hook.asked
        await rig.until(lambda: rig.row().dead == 3)
        assert hook.asked == asked + 2


@pytest.mark.parametrize("place", ["192.0.2.1", "[2001:db8::1]:8080", "127.0.0.1", "localhost"])
def test_a_webhook_outside_of_only_net_is_refused_at_the_start(tmp_path, place):
    with pytest.raises(InputError, match=r"\[\[sinks\]\] s: url .* is outside of --only-net"):
        Rig(
            tmp_path / "d",
            SinkTable(name="s", url=f"http://{place}/hook"),
            **{"fetch.only_net": ("10.0.0.0/8", "fd00::/8")},
        )


@pytest.mark.parametrize("address", ["198.51.100.7", "2001:db8::7"])
async def test_a_name_that_leads_out_of_only_net_is_the_error_of_its_sink(tmp_path, address):
    """The address is judged that its name server tells."""
    kind = AAAA if ":" in address else A
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: NameServer(lambda _, asked: (0, [(kind, 300, address)] if asked == kind else [])),
        local_addr=("127.0.0.1", 0),
    )
    with contextlib.closing(transport):
        server = "127.0.0.1:{}".format(transport.get_extra_info("sockname")[1])
        options = {"fetch.only_net": ("127.0.0.0/8",), "fetch.name_servers": (server,)}
        rig = Rig(tmp_path / "d", SinkTable(name="s", url="http://hook.example:9/"), **options)
        rig.change(1)
        await rig.until(lambda: rig.sinks.deliveries[0].error)
        assert rig.status()["error"].startswith("only-net") and address in rig.status()["error"]


async def test_a_webhook_may_have_a_name_that_only_the_hosts_file_of_this_machine_has(tmp_path):
    name, address = own_name()
    with webhook(address=address) as hook:
        url = hook.url.replace(address, name)
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=url, secret="a secret"), **{"fetch.only_net": (address,)})
        rig.change(1)
        await rig.until(lambda: rig.row().delivered == 1)


async def test_a_webhook_may_be_where_no_page_would_be_read(tmp_path):
    """On any port, and in a private network: the operator names it."""
    with webhook() as hook:
        rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret"))
        assert not rig.settings.fetch.only_net and not rig.settings.fetch.allow_private
        rig.change(1)
        await rig.until(lambda: rig.row().delivered == 1)


async def test_a_webhook_is_reached_by_the_proxy_of_the_settings_also_by_the_one_that_they_name_next(tmp_path):
    with webhook() as hook:
        async with proxying() as first, proxying() as second:
            settings = {"fetch.proxy": f"http://127.0.0.1:{first.port}", "fetch.only_net": ("127.0.0.0/8",)}
            rig = Rig(tmp_path / "d", SinkTable(name="s", url=hook.url, secret="a secret", batch=1), **settings)
            rig.change(1)
            await rig.until(lambda: rig.row().delivered == 1)
            fetch = msgspec.structs.replace(rig.settings.fetch, proxy=f"http://127.0.0.1:{second.port}")
            rig.services.settings = msgspec.structs.replace(rig.settings, fetch=fetch)
            for follow in rig.services.followed:
                follow()
            rig.change(1, 60)
            await rig.until(lambda: rig.row().delivered == 2)
        assert first.asked == second.asked and len(first.asked) == 1
