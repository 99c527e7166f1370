"""What guards the dashboard: keys that open one session, a session that may look, a policy that runs no script."""

import asyncio
import base64
import hashlib
import json
import re
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from urllib.error import URLError

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from tests.plugins.changing_site import ChangingSite
from tests.service.face import ENVIRONMENT, XYRO, process, started, until, xyro
from xyro.plugins.dashboard.dashboard_feed import DashboardFeed
from xyro.plugins.dashboard.dashboard_sessions import KEY_LIFE, MOST_SESSIONS, SESSION_LIFE, DashboardSessions
from xyro.plugins.dashboard.routes import LAST_READS
from xyro.wire.clock import ManualClock


def test_a_key_opens_one_session_within_its_time():
    clock = ManualClock()
    sessions = DashboardSessions(clock)
    key = sessions.key()
    session = sessions.open(key)
    assert session and sessions.open(key) is None and sessions.open("") is None
    assert sessions.admits(f"Session {session}") and not sessions.admits(f"Bearer {session}")
    assert not sessions.admits(f"Session {key}") and not sessions.admits("") and not sessions.admits("Session ")
    late = sessions.key()
    clock.advance(KEY_LIFE + 1.0)
    assert sessions.open(late) is None
    clock.advance(SESSION_LIFE)
    assert not sessions.admits(f"Session {session}")


def test_keys_and_sessions_are_bounded():
    sessions = DashboardSessions(ManualClock())
    first, *others = [sessions.key() for _ in range(MOST_SESSIONS + 1)]
    assert sessions.open(first) is None and all(map(sessions.open, others))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboard")
    (settings := folder / "s.toml").write_text("[keep]\ntext = true\n")
    options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--refresh", "--config", settings)
    with (
        ChangingSite(2, 4, 2).serving() as site,
        started("crawl", site.entry, *options, data=folder / "d", stderr=None),
    ):
        until(lambda: site.complete)
        yield site, folder / "d"


def ask(data, path, method="GET", body=None, **headers):
    run = json.loads((data / "run").read_text())
    with closing(HTTPConnection("127.0.0.1", run["port"], timeout=30)) as connection:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        text = response.read(20_000) if path.endswith("events") else response.read()
        return response.status, text.decode(), response.headers


@pytest.fixture(scope="module")
def session(crawl):
    link = xyro("dashboard", "--data", crawl[1]).stdout.strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:\d+/dashboard#(\S{32})", link)
    status, text, _ = ask(crawl[1], "/dashboard/session", "POST", {"key": found[1]})
    assert status == 200
    assert ask(crawl[1], "/dashboard/session", "POST", {"key": found[1]})[0] == 401
    return {"Authorization": f"Session {json.loads(text)['session']}"}


def test_the_page_holds_no_data_and_its_policy_names_its_own_script(crawl):
    status, page, headers = ask(crawl[1], "/dashboard")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["default-src"] == "'none'" and rules["script-src"] == f"'sha256-{digest}'"
    assert rules["require-trusted-types-for"] == "'script'" and rules["frame-ancestors"] == "'none'"
    assert "127.3.0" not in page and not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", page)
    assert not re.search(r"(src|href)=\"(?!data:)", page), "it asks for nothing else"


@pytest.mark.parametrize("path", ["/dashboard/events", "/dashboard/hosts", "/status", "/why?url=http://a/"])
def test_nothing_is_shown_without_a_session(crawl, path):
    assert ask(crawl[1], path)[0] == 401
    assert ask(crawl[1], path, Authorization="Session x")[0] == 401


@pytest.mark.parametrize("path", ["/audit", "/export/pages", "/changes", "/rank", "/metrics", "/mass"])
def test_a_session_is_no_token(crawl, session, path):
    assert ask(crawl[1], path, **session)[0] == 401


@pytest.mark.parametrize("path", ["/submit", "/backup", "/publish", "/dashboard/link"])
def test_a_session_gives_no_orders_but_to_hosts(crawl, session, path):
    assert ask(crawl[1], path, "POST", {}, **session)[0] == 401


def test_it_answers_to_its_own_address_only(crawl, session):
    assert ask(crawl[1], "/dashboard", Host="evil.example")[0] == 403
    assert ask(crawl[1], "/dashboard/hosts", Host="evil.example", **session)[0] == 403


def test_events_are_status_health_and_speed(crawl, session):
    run = json.loads((crawl[1] / "run").read_text())
    with closing(HTTPConnection("127.0.0.1", run["port"], timeout=30)) as connection:
        connection.request("GET", "/dashboard/events", headers=session)
        response = connection.getresponse()
        assert response.getheader("Content-Type") == "text/event-stream"
        assert response.readline() == b"event: crawl\n"
        crawled = json.loads(response.readline().removeprefix(b"data: "))
        assert crawled == {"data": str(crawl[1].resolve()), "machine": socket.gethostname()}
        assert response.readline() == b"\n"
        event = json.loads(response.readline().removeprefix(b"data: "))
    assert event["status"]["limits"]["speed"]["kind"] and event["status"]["limits"]["wrong"] == []
    assert event["health"]["ok"] and event["status"]["known"] >= 12 and isinstance(event["series"], list)
    assert len(event["last_reads"]) == LAST_READS and {row["result"] for row in event["last_reads"]} <= {"200", "304"}
    assert all(row["url"].startswith("http://127.3.0.") and row["seconds"] >= 0.0 for row in event["last_reads"])


async def test_which_crawl_it_is_comes_before_figures_that_take_long():
    """A browser is told at once, however long the first look takes."""
    over = asyncio.Event()

    async def look():
        await over.wait()
        return {"status": {}}

    async def events(request):
        return await feed.stream(request, {})

    feed = DashboardFeed(look, {"data": "/srv/crawl", "machine": "here"})
    app = web.Application()
    app.add_routes([web.get("/", events)])
    async with TestServer(app, host="127.0.0.1") as server, ClientSession() as session:
        async with session.get(server.make_url("/")) as response:
            first = await asyncio.wait_for(response.content.readuntil(b"\n\n"), 5)
            assert first == b'event: crawl\ndata: {"data": "/srv/crawl", "machine": "here"}\n\n'
            over.set()
            second = await asyncio.wait_for(response.content.readuntil(b"\n\n"), 5)
            assert second == b'data: {"status": {}}\n\n'
        await feed.close()


def test_hosts_are_found_and_held(crawl, session):
    site, data = crawl
    rows = json.loads(ask(data, "/dashboard/hosts?by=backlog&find=0.2", **session)[1])
    (name,) = [row["host"] for row in rows]
    assert rows[0]["bytes"] > 100 and rows[0]["requests"] >= 4 and rows[0]["seconds"] > 0
    costs = [row["bytes"] for row in json.loads(ask(data, "/dashboard/hosts?by=cost", **session)[1])]
    assert costs == sorted(costs, reverse=True) and len(costs) == 2
    assert name == f"127.3.0.2:{site.port}" and rows[0]["delay"] == 0.0
    assert ask(data, "/hosts", "POST", {"host": name, "action": "pause"}, **session)[0] == 200
    text = xyro("status", "--data", data).stdout
    assert f"! Hosts that somebody has paused: {name} (0 unread pages)." in text.replace("\n  ", " ")
    assert ask(data, "/hosts", "POST", {"host": name, "action": "resume"}, **session)[0] == 200
    assert ask(data, "/dashboard/hosts?by=size", **session)[0] == 400


def test_versions_of_a_text_are_compared(crawl, session):
    site, data = crawl
    found = json.loads(ask(data, f"/dashboard/texts?url={site.entry}p1.html", **session)[1])
    assert [row["version"] for row in found["versions"]] == [1, 2] and (found["from"], found["to"]) == (1, 2)
    assert [(change["removed"], change["added"]) for change in found["changes"]] == [("0", "1")]
    assert json.loads(ask(data, "/dashboard/texts?url=http://b.example/", **session)[1])["versions"] == []
    assert ask(data, f"/dashboard/texts?url={site.entry}&from=x", **session)[0] == 400


def test_a_stopped_crawl_has_no_dashboard(tmp_path):
    done = xyro("dashboard", "--data", tmp_path)
    assert done.returncode == 2 and "no process works on it" in done.stderr


NO_BROWSER = "no browser was found on this machine: open the link in one, once, within ten minutes\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "screen", "opens", "told"),
    [
        ('echo "$1" > "$OPENED"', ":9", True, ""),
        ("echo \"xdg-open: no method available for opening '$1'\" >&2; exit 3", ":9", False, NO_BROWSER),
        ('echo "$1" > "$OPENED"', "", False, NO_BROWSER),
        ('echo "$1" > "$OPENED"; echo noise >&2; exec sleep 7', ":9", True, ""),
    ],
)
def test_a_browser_is_opened_or_one_line_says_that_there_is_none(crawl, tmp_path, script, screen, opens, told):
    """By an `xdg-open` of our own, first in the PATH; the link is printed whatever comes of it."""
    (program := tmp_path / "xdg-open").write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}", "OPENED": str(tmp_path / "opened")}
    environment |= {"DISPLAY": screen, "WAYLAND_DISPLAY": "", "BROWSER": ""}
    done = process("dashboard", "--open", "--data", crawl[1], **environment)
    assert done.returncode == 0 and done.stderr == told
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/dashboard#\S{32}\n", done.stdout)
    assert (tmp_path / "opened").exists() is opens
    assert not opens or (tmp_path / "opened").read_text() == done.stdout


@pytest.mark.parametrize(
    ("host", "published"), [("127.0.0.1", "localhost"), ("127.0.0.1", ""), ("[::1]", "[::1]"), ("[::1]", "")]
)
def test_a_relay_passes_the_page_on_until_it_is_interrupted(crawl, host, published):
    """As out of a container: the link names the published address, the page and a session answer there."""
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    with socket.create_server((host.strip("[]"), 0), family=family) as free:
        port = free.getsockname()[1]
    words = [*XYRO, "dashboard", "--data", str(crawl[1]), "--listen", f"{host}:{port}"]
    words += ["--at", f"{published}:{port}"] if published else []
    published = published or host
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=ENVIRONMENT, **pipes, text=True) as relay, ExitStack() as end:
        end.callback(relay.kill)
        link = relay.stdout.readline().strip()
        key = re.fullmatch(rf"http://{re.escape(published)}:{port}/dashboard#(\S{{32}})", link)[1]
        deadline = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(link, timeout=30) as page:
                    assert page.status == 200 and b"<script>" in page.read()
                break
            except URLError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        opened = urllib.request.Request(
            f"http://{published}:{port}/dashboard/session", json.dumps({"key": key}).encode()
        )
        opened.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(opened, timeout=30) as answer:
            assert json.load(answer)["session"]
        with socket.create_connection((host.strip("[]"), port), 30) as still_open:
            still_open.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert still_open.recv(1)
            relay.send_signal(signal.SIGINT)
            assert relay.wait(30) == 0
        assert relay.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "8089"], "expected HOST:PORT"),
        (["--at", "127.0.0.1:1"], "goes with --listen"),
        (["--listen", "0.0.0.0:99999"], "expected HOST:PORT"),
        (["--listen", "::1:8089"], r"or [::1]:8089"),
    ],
)
def test_a_relay_with_a_wrong_address_is_refused(crawl, words, said):
    done = xyro("dashboard", "--data", crawl[1], *words)
    assert done.returncode == 2 and said in done.stderr
