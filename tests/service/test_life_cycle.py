"""Start, stop and being killed, with real processes; what a terminal shows meanwhile."""

import asyncio
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
from functools import partial
from types import SimpleNamespace

import pytest

from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, rows, said, started, until, xyro
from xyro.configs.load import load
from xyro.lab.child import running
from xyro.service.node.life_cycle import Job, _Life, _Signals
from xyro.service.node.node import SETTLED, Bounds
from xyro.service.node.run_file import Remote

POLITE = ("--only-net", "127.0.0.0/8", "--scope", "any", "--delay", "0.25")
"""300 pages on 4 hosts take 20 s: long enough to be caught in the act on a machine that does much else"""


@pytest.fixture(scope="module")
def web():
    with running(pages=300, hosts=4, seed=3, rate_median=0.0) as web:
        yield web


@pytest.fixture(scope="module")
def slow():
    """Every answer takes 2 seconds."""
    with running(pages=60, hosts=4, seed=3, rate_median=0.0, latency=2.0) as web:
        yield web


def reads(data):
    return said("status", "--data", data)["reads_this_run"]


# In order


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_in_order_with_the_closing_report(web, tmp_path, number):
    data = tmp_path / "data"
    heeded = partial(signal.signal, number, signal.SIG_DFL)  # nohup, under which these tests may run, ignores SIGHUP
    with started("crawl", web.entry, *POLITE, "--json", data=data, preexec_fn=heeded) as crawl:
        until(lambda: reads(data) > 20)
        crawl.send_signal(number)
        out, told = crawl.communicate(timeout=60)
    report = json.loads(out)
    assert crawl.returncode == 0 and report["ended"] == "stopped" and "a second signal stops at once" in told
    assert not (data / "run").exists() and said("audit", "--data", data)["ok"]
    assert sum(page["reads"] for page in rows("pages", data)) == report["pages_read"] > 20
    rest = said("crawl", *LOOPBACK, "--data", data)
    assert rest["ended"] == "complete"
    assert rest["reads_total"] == report["pages_read"] + rest["pages_read"] == reference(web)


def reference(web, known={}):  # noqa: B006  # one crawl a web, for all tests
    """Reads of a crawl that nobody disturbed."""
    if web.entry not in known:
        done = process("crawl", web.entry, *LOOPBACK, "--json", "--data", f"{os.environ['PYTEST_TMP']}/reference")
        known[web.entry] = json.loads(done.stdout)["pages_read"]
    return known[web.entry]


@pytest.fixture(autouse=True)
def folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path_factory.mktemp("reference")))


def test_a_signal_before_the_first_read_stops_too(web, tmp_path):
    data = tmp_path / "data"
    with started("crawl", web.entry, *POLITE, "--json", data=data) as crawl:
        crawl.send_signal(signal.SIGINT)
        out, _ = crawl.communicate(timeout=60)
    assert crawl.returncode == 0 and json.loads(out)["ended"] in ("stopped", "complete")
    assert said("audit", "--data", data)["ok"]


def test_reads_under_way_are_finished_before_it_stops(slow, tmp_path):
    data = tmp_path / "data"
    with started("crawl", slow.entry, *LOOPBACK, "--json", data=data) as crawl:
        until(lambda: said("status", "--data", data)["in_flight"])
        crawl.terminate()
        out, _ = crawl.communicate(timeout=60)
    report = json.loads(out)
    assert crawl.returncode == 0 and report["errors"] == {}


@pytest.mark.parametrize(("first", "second"), [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGTERM)])
def test_a_second_signal_stops_at_once_and_loses_nothing_committed(slow, tmp_path, first, second):
    data = tmp_path / "data"
    with started("crawl", slow.entry, *LOOPBACK, "--json", data=data) as crawl:
        until(lambda: said("status", "--data", data)["in_flight"])
        crawl.send_signal(first)
        while "a second signal stops at once" not in crawl.stderr.readline():
            assert crawl.poll() is None
        crawl.send_signal(second)
        out, _ = crawl.communicate(timeout=60)
    assert crawl.returncode == 128 + second and out == ""
    assert said("audit", "--data", data)["ok"]


# Killed


def test_other_users_read_nothing_of_a_crawl(web, tmp_path):
    """Neither the directory nor what a process adds to it later; who opened it to others is reminded."""
    data = tmp_path / "data"
    told = process("crawl", web.entry, *LOOPBACK, "--max-pages", "20", "--data", data).stderr
    assert "can be read by other users" not in told
    assert data.stat().st_mode & 0o077 == 0
    data.chmod(0o755)
    before = set(data.rglob("*"))
    told = process("crawl", *LOOPBACK, "--max-pages", "60", "--data", data).stderr
    assert f"{data} can be read by other users of this machine: `chmod 700 {data}`" in told
    fresh = set(data.rglob("*")) - before
    assert fresh and all(path.stat().st_mode & 0o077 == 0 for path in fresh)
    assert xyro("backup", tmp_path / "copy", "--data", data).returncode == 0
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_killed_crawl_is_seen_to_be_dead_and_resumes(web, tmp_path, partitions):
    data = tmp_path / "data"
    with started("crawl", web.entry, *POLITE, "--partitions", partitions, data=data) as crawl:
        until(lambda: reads(data) > 40)
        assert Remote.find(data) is not None
        crawl.kill()
        crawl.communicate()
    assert (data / "run").exists() and Remote.find(data) is None
    assert said("status", "--data", data)["running"] is False and said("audit", "--data", data)["ok"]
    done = xyro("submit", web.entry, "--data", data)
    assert done.returncode == 2 and "xyro serve" in done.stderr
    rest = said("crawl", *LOOPBACK, "--data", data)
    assert rest["ended"] == "complete" and rest["reads_total"] == reference(web)
    assert not (data / "run").exists() and said("audit", "--data", data)["ok"]


def test_a_directory_that_lost_a_part_is_told(web, tmp_path):
    data = tmp_path / "data"
    said("crawl", web.entry, *LOOPBACK, "--data", data, "--partitions", 2, "--max-pages", 5)
    shutil.rmtree(data / "p0001")
    for words in (["crawl", *LOOPBACK], ["audit"]):
        done = (process if words[0] == "crawl" else xyro)(*words, "--data", data)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "1 of 2 partitions" in done.stderr


# On a terminal


@contextlib.contextmanager
def on_terminal(*arguments, data):
    """The command with a terminal for standard error; (process, what it has shown so far)."""
    ours, theirs = pty.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "160", "LINES": "40"}
    command = [*XYRO, *map(str, arguments), "--data", str(data)]
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = bytearray()

    def look():
        while select.select([ours], [], [], 0)[0]:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown.extend(piece)
        return shown.decode()

    try:
        yield child, look
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()
        os.close(ours)


def test_a_terminal_shows_one_live_line_with_log_lines_above_and_is_left_clean(web, tmp_path):
    data = tmp_path / "data"
    line = r"[\d,]+ read +[\d,]+/s +[\d,]+ known +[\d,]+ unread +queue: [^\r]*\d being read +\d+ errors?"
    with on_terminal("crawl", web.entry, *POLITE, data=data) as (crawl, look):
        until(lambda: len(re.findall(line, look())) > 2)
        os.kill(crawl.pid, signal.SIGINT)
        out, _ = crawl.communicate(timeout=60)
        screen = look()
    assert crawl.returncode == 0 and "(stopped)" in out and "\x1b" not in out
    assert re.search("scout|discover", screen) and "warning stopping" in screen
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h") > 0
    assert "\x1b[2K" in screen[screen.rindex("being read") :]


def test_without_a_terminal_there_are_only_log_lines(web, tmp_path):
    done = process("crawl", web.entry, *LOOPBACK, "--data", tmp_path / "data")
    assert done.returncode == 0
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (info|warning) ", line) for line in done.stderr.splitlines())
    assert re.match(r"[\d,]+ pages read, 300 known, .*\(complete\)\. Errors: ", done.stdout)


def test_logs_can_be_json(web, tmp_path):
    done = process("crawl", web.entry, *LOOPBACK, "--data", tmp_path / "data", XYRO_LOG__FORMAT="json")
    assert done.returncode == 0
    assert all(json.loads(line)["level"] for line in done.stderr.splitlines())


def test_a_daemon_tells_a_refused_seed_at_once_and_ends_with_1(web, tmp_path):
    """As JSON: every line of standard error is an object, the closing report too."""
    data, refused, log = tmp_path / "data", "http://10.0.0.1/", tmp_path / "log"

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines()]

    def told():
        return [line for line in lines() if line.get("event") == "url-refused"]

    words = ("serve", web.entry, refused, *LOOPBACK)
    with (
        log.open("w") as errors,
        started(*words, data=data, environment={"XYRO_LOG__FORMAT": "json"}, stderr=errors) as daemon,
    ):
        (line,) = until(told)
        assert line["level"] == "error" and line["url"] == refused and "only-net" in line["text"]
        assert daemon.poll() is None
        os.kill(daemon.pid, signal.SIGTERM)
        assert daemon.wait(30) == 1
    last = lines()[-1]
    assert {line["event"] for line in lines()} >= {"started", "url-refused", "stopping", "closing-report"}
    assert last["event"] == "closing-report" and last["ended"] == "stopped" and last["seeds"] == 2
    assert f"{last['pages_known']:,} known" in last["text"]
    assert len(told()) == 1


def test_a_daemon_tells_a_refused_seed_in_its_log_of_text(web, tmp_path):
    with started("serve", web.entry, "http://10.0.0.1/", *LOOPBACK, data=tmp_path / "data") as daemon:
        os.kill(daemon.pid, signal.SIGTERM)
        _, told = daemon.communicate(timeout=30)
    assert daemon.returncode == 1
    assert told.count(" error http://10.0.0.1/: not read: only-net: ") == 1
    assert re.match(r"[\d,]+ pages? read, [\d,]+ known.*\(stopped\)", told.splitlines()[-1])


def test_what_ends_a_command_is_an_object_of_the_log_too(tmp_path):
    words = ("crawl", "--data", tmp_path / "none", "--contact", "me@example.org")
    plain = process(*words)
    assert plain.returncode == 2 and plain.stderr.startswith("xyro: ")
    done = process(*words, XYRO_LOG__FORMAT="json")
    line = json.loads(done.stderr)
    assert done.returncode == 2 and line["level"] == "error" and line["code"] == 2
    assert line["text"] == plain.stderr.strip()


def test_nothing_lives_on_a_terminal_whose_log_is_json(web, tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "XYRO_LOG__FORMAT", "json")
    with on_terminal("crawl", web.entry, *LOOPBACK, data=tmp_path / "data") as (crawl, look):
        out, _ = crawl.communicate(timeout=60)
        screen = look()
    assert crawl.returncode == 0 and "(complete)" in out
    assert all(json.loads(line)["level"] for line in screen.splitlines())


@pytest.mark.parametrize("again", [False, True])
def test_a_daemon_takes_the_hangup_that_nohup_ignores(again):
    """There it asks for the settings to be read again; elsewhere it would end the crawl, and stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _Signals(again).installed():
            assert (signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN) is again
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.long
@pytest.mark.parametrize(("reads", "settled"), [(2_000, True), (100, False)], ids=["all read", "pages left"])
def test_importance_settles_at_a_bound_of_reads_once_all_is_read(web, tmp_path, reads, settled):
    data = tmp_path / "data"
    report = said("crawl", web.entry, *LOOPBACK, "--refresh", "--max-pages", str(reads), "--data", data)
    assert (report["ended"], report["pages_read"]) == ("max-pages", reads)
    assert (said("status", "--data", data)["turnovers"] >= SETTLED) == settled


class Complete:
    """A crawl that has read all there is, and whose importance takes for ever to settle."""

    def __init__(self):
        self.settling, self.left = asyncio.Event(), False
        self.services = SimpleNamespace(endings=[])

    async def finished(self):
        return "complete"

    async def settle(self):
        self.settling.set()
        try:
            await asyncio.sleep(10**6)
        finally:
            self.left = True


async def test_a_signal_ends_the_settling_of_importance_too(tmp_path):
    life = _Life(Job(tmp_path, load(), Bounds(), ()), [], _Signals(), [])
    crawl = Complete()
    serving = asyncio.create_task(life._serve(crawl))
    await crawl.settling.wait()
    life._stopped()
    async with asyncio.timeout(10):
        assert await serving == "complete"
    assert crawl.left
