"""The interface of a running crawler: whom it answers, what it refuses, and that a look never outlives its request."""

import asyncio
import contextlib
import io
import json
import socket
import stat
import threading
from collections import Counter
from urllib.parse import quote

import numpy as np
import pytest
from aiohttp import ClientError, ClientSession

from tests.service.face import LOOPBACK, rows, said, started, until
from tests.service.neighbours import Neighbours, crawling
from xyro.configs.load import load
from xyro.lab.child import running
from xyro.metadata.states import State
from xyro.metadata.store import Store
from xyro.plugins import PLUGINS
from xyro.service.api import http_api
from xyro.service.api.endpoints import listen
from xyro.service.api.http_api import BODY, HttpApi
from xyro.service.node import long_views
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.seeds import sort_seeds
from xyro.service.views.views import View
from xyro.wire.errors import InputError, MachineError

TOKEN = "the-token"
SETTINGS = load(
    overrides={
        "crawl.scope": "any",
        "politeness.delay": 0.0,
        "fetch.only_net": ("127.0.0.0/8",),
        "refresh.gamma": 50.0,
    }
)


@pytest.fixture(scope="module")
def web():
    with running(pages=300, hosts=4, seed=3) as web:
        yield web


def pages_read(single):
    """How many pages were read; half of all reads are of pages that were read before."""
    columns = [frontier.columns for frontier in single.frontiers]
    return sum(np.count_nonzero(each["state"][: each.n] == State.READ) for each in columns)


@contextlib.asynccontextmanager
async def serving(web, data, *, pages=200, small_buffers=False):
    """A crawl in this process that has read some pages, each once or more, and its interface."""
    guard = guard_of(SETTINGS.fetch)
    single = Node(DataDir.open(data, make=True), SETTINGS, guard, Bounds(forever=True), plugins=PLUGINS)
    http_api = HttpApi(single, TOKEN)
    listening = listen("127.0.0.1", 0)
    if small_buffers:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    try:
        single.start()
        await http_api.start(listening)
        await single.sow([web.entry])
        while pages_read(single) < pages:
            await asyncio.sleep(0.01)
            single.check()
        yield single, http_api, listening.getsockname()[1]
    finally:
        await http_api.close()
        await single.stop()


@pytest.fixture
async def served(web, tmp_path):
    async with serving(web, tmp_path / "data") as (_, _, port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def pins(monkeypatch):
    """How many store snapshots are open."""
    count = Counter()
    take = Store.snapshot

    def snapshot(self):
        reader = take(self)
        close = reader.close
        count["open"] += 1
        count["taken"] += 1

        def closed():
            count["open"] -= 1
            close()

        reader.close = closed
        return reader

    monkeypatch.setattr(Store, "snapshot", snapshot)
    return count


async def ask(url, method="GET", *, token=TOKEN, headers=None, **options):
    """(status, JSON, headers)"""
    headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
    async with ClientSession() as session, session.request(method, url, headers=headers, **options) as response:
        assert response.content_type in ("application/json", "application/x-ndjson"), await response.text()
        text = await response.text()
        return response.status, json.loads(text) if response.content_type.endswith("/json") else text, response.headers


async def test_rows_of_top_are_read_aside_from_the_crawls_own_work(web, tmp_path, monkeypatch):
    seen = []
    describe = View.describe

    def noted(view, page, mean):
        seen.append(threading.current_thread())
        return describe(view, page, mean)

    monkeypatch.setattr(View, "describe", noted)
    async with serving(web, tmp_path / "data") as (_, _, port):
        for by in ("importance", "cash", "stale", "rising"):
            status, found, _ = await ask(f"http://127.0.0.1:{port}/top?n=250&by={by}")
            assert status == 200 and (by == "rising" or len(found) > 100)
            assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)
        assert len(seen) > 300 and threading.main_thread() not in seen


# Where it listens


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.1", "10.0.0.1", "169.254.1.1", "::ffff:8.8.8.8", "example.org", ""]
)
def test_nothing_but_loopback_is_listened_on(host):
    with pytest.raises(InputError, match=r"\[api\] host"):
        listen(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "localhost", "::1"])
async def test_every_loopback_address_answers_to_its_name(web, tmp_path, host):
    try:
        listening = listen(host, 0)
    except InputError:
        pytest.skip("no such address on this machine")
    guard = guard_of(SETTINGS.fetch)
    single = Node(DataDir.open(tmp_path / "data", make=True), SETTINGS, guard, Bounds(forever=True), plugins=PLUGINS)
    http_api = HttpApi(single, TOKEN)
    single.start()
    try:
        await http_api.start(listening)
        name = f"[{host}]" if ":" in host else host
        status, answer, _ = await ask(f"http://{name}:{listening.getsockname()[1]}/status")
        assert status == 200 and answer["running"] is True
    finally:
        await http_api.close()
        await single.stop()


def test_a_port_that_is_taken_is_named():
    with listen("127.0.0.1", 0) as first, pytest.raises(InputError, match="choose another port"):
        listen("127.0.0.1", first.getsockname()[1])


# Whom it answers


PATHS = ["/status", "/top", "/why?url=http://a/", "/audit", "/export/pages", "/submit", "/hosts", "/nowhere"]


async def test_without_the_token_only_health_answers(served):
    for path in PATHS:
        method = "POST" if path in ("/submit", "/hosts") else "GET"
        for token in ("", "wrong", TOKEN[:-1], TOKEN + "x", "the-tokén"):
            header = {"Authorization": f"Bearer {token}"} if token else {}
            status, answer, _ = await ask(served + path, method, token="", headers=header, data=b"{}")
            assert status == 401 and "token" in answer["error"] and TOKEN not in answer["error"]
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \xff\r\n\r\n"
        assert await raw(served, head) == 401
    assert (await ask(f"{served}/health", token=""))[0] == 200


async def raw(base, head):
    """Status of an answer to bytes of ours."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))
    writer.write(head.encode("latin-1"))
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


FOREIGN = ["evil.example", "127.0.0.1.evil.example:80", "127.0.0.2", "[::2]:80", "", "localhost.evil.example"]


async def test_another_host_name_is_refused_whatever_the_token(served):
    """DNS rebinding: a page of evil.example, pointed at 127.0.0.1, is still evil.example's."""
    for host in FOREIGN:
        for path in ("/health", "/status"):
            head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            assert await raw(served, head) == 403
    assert await raw(served, f"GET /status HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n") in (200, 403)


async def test_other_origins_get_no_leave(served):
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    status, _, headers = await ask(f"{served}/submit", "OPTIONS", headers=asked)
    assert status == 405
    for answer in (headers, (await ask(f"{served}/status", headers=asked))[2]):
        assert not [name for name in answer if name.lower().startswith("access-control")]
        assert answer["X-Content-Type-Options"] == "nosniff" and answer["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in answer


# What it refuses


BAD = [
    ("GET", "/nowhere", None, 404, "Not Found"),
    ("GET", "/submit", None, 405, "Not Allowed"),
    ("DELETE", "/export/pages", None, 405, "Not Allowed"),
    ("GET", "/export/secrets", None, 400, "pages, documents, histories, links, hosts; contents of pages"),
    ("GET", "/export/..%2f..%2fetc%2fpasswd", None, 400, "pages, documents, histories, links, hosts"),
    ("GET", "/top?n=many", None, 400, "whole number"),
    ("GET", "/top?n=-1", None, 400, "whole number"),
    ("GET", "/top?n=%C2%B2", None, 400, "whole number"),
    ("GET", "/top?by=luck", None, 400, "stale, rising, site"),
    ("GET", "/plan?target=much", None, 400, "target is a number"),
    ("GET", "/plan?target=1.5", None, 400, "above 0 and below 1"),
    ("GET", "/plan?bandwidth=4000/week", None, 400, "reads a second"),
    ("GET", "/plan?policies=mixed,best", None, 400, "'best': one of"),
    ("GET", "/why", None, 400, "http"),
    ("GET", "/why?url=example.org", None, 400, "write http://example.org"),
    ("POST", "/submit", b"", 400, "not JSON"),
    ("POST", "/submit", b"\xff\xfe", 400, "not JSON"),
    ("POST", "/submit", b"[" * 100_000, 400, "not JSON"),
    ("POST", "/submit", b"[]", 400, "not a JSON object"),
    ("POST", "/submit", b"{}", 400, "list of at most 10,000"),
    ("POST", "/submit", b'{"urls": "http://a/"}', 400, "list of at most"),
    ("POST", "/submit", b'{"urls": [1]}', 400, "list of at most"),
    ("POST", "/submit", json.dumps({"urls": ["http://127.1.0.1/"] * 10_001}).encode(), 400, "list of at most"),
    ("POST", "/submit", b'{"urls": [], "priority": "blocking"}', 400, "priority is ordered"),
    ("POST", "/submit", b" " * (BODY + 1), 413, "Too Large"),
    ("POST", "/hosts", b'{"host": "a"}', 400, "pause, resume or block"),
    ("POST", "/hosts", b'{"host": 1, "action": "pause"}', 400, "host[:port]"),
    ("POST", "/hosts", b'{"host": "", "action": "pause"}', 400, "host[:port]"),
    ("POST", "/hosts", b'{"host": "a", "action": ["pause"]}', 400, "pause, resume or block"),
]


async def test_a_bad_request_is_told_in_json_and_harms_nothing(served):
    for method, path, body, status, why in BAD:
        answer = await ask(served + path, method, data=body and io.BytesIO(body))
        assert answer[0] == status and why in answer[1]["error"], (method, path, answer)
        assert (await ask(f"{served}/health"))[0] == 200


async def test_submit_says_of_each_url_what_became_of_it(served, web):
    given = [
        web.entry, f"{web.entry}new.html#part", "  ", "# nothing", "example.org", "http://10.1.2.3/", "http://a.example/",
        f"{web.entry}x.zip", "http://127.1.0.1:7/", "\ud800", "http://\x1b[2J/",
    ]  # fmt: skip
    status, answer, _ = await ask(f"{served}/submit", "POST", json={"urls": given})
    refused = {one["url"]: one["why"] for one in answer["refused"]}
    assert status == 200 and answer["accepted"] == 2 and len(refused) == 7
    assert "only-net" in refused["http://10.1.2.3/"] and "only-net" in refused["http://a.example/"]
    assert "suffix" in refused[f"{web.entry}x.zip"] and "blocked-port" in refused["http://127.1.0.1:7/"]
    assert (await ask(f"{served}/why?url={web.entry}new.html"))[1]["state"] != "unknown"


async def test_a_blocked_host_is_left_alone_until_it_is_resumed(web, tmp_path):
    async with serving(web, tmp_path / "data", pages=20) as (single, _, port):
        host = web.entry.removeprefix("http://").rstrip("/")
        base = f"http://127.0.0.1:{port}"
        for action, held in (("block", "blocked"), ("resume", ""), ("pause", "paused")):
            _, answer, _ = await ask(f"{base}/hosts", "POST", json={"host": host, "action": action})
            assert answer == {"host": host, "known": True}
            hosts = single.frontiers[0].partition.hosts
            assert hosts.row(hosts.numbers[host]).hold == held
        assert (await ask(f"{base}/hosts", "POST", json={"host": "no.example", "action": "pause"}))[1]["known"] is False


# Looks while it runs


async def test_audits_of_a_running_crawl_hold_again_and_again(web, tmp_path, pins):
    async with serving(web, tmp_path / "data", pages=1) as (single, _, port):
        before, audits = single.reads, 0
        while audits < 8 or single.reads < before + 200:
            status, answer, _ = await ask(f"http://127.0.0.1:{port}/audit")
            assert status == 200 and answer["ok"], answer
            assert answer["cash_total"] == answer["cash_expected"] == 65_536 * answer["pages"]
            audits += 1
    assert pins["open"] == 0 and pins["taken"] >= audits


async def test_exports_of_a_running_crawl_are_of_one_moment(web, tmp_path, pins):
    async with serving(web, tmp_path / "data", pages=30) as (_, _, port):
        for _ in range(4):
            text = (await ask(f"http://127.0.0.1:{port}/export/pages"))[1]
            pages = [json.loads(line) for line in text.splitlines()]
            assert [page["id"] for page in pages] == list(range(len(pages)))
            assert sum(page["importance"] for page in pages) == pytest.approx(len(pages), rel=1e-3)
            links = [json.loads(line) for line in (await ask(f"http://127.0.0.1:{port}/export/links"))[1].splitlines()]
            assert links
    assert pins["open"] == 0


async def export_without_reading(port):
    """A client that asks for everything and takes nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    client.send(f"GET /export/links HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    return client


async def come_true(true):
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  # what it waits for has no event
            await asyncio.sleep(0.01)


async def test_why_finds_the_givers_of_a_page_without_a_copy_of_the_columns(web, tmp_path, pins, monkeypatch):
    async with serving(web, tmp_path / "data") as (single, _, port):
        with await single.views() as views:
            links = list(views.links())
        target = links[-1]["target_url"]

        def copied(*_):
            raise AssertionError("O(pages)")

        monkeypatch.setattr(Node, "copied_views", copied)
        explanation = (await ask(f"http://127.0.0.1:{port}/why?url={quote(target, safe='')}"))[1]
        givers = {giver["url"] for giver in explanation["givers"]}
        with await single.views(copied=False) as views:  # it may have read more meanwhile
            links += views.links()
    assert givers and givers <= {link["source_url"] for link in links if link["target_url"] == target}
    assert explanation["links_seen"] == 1.0 and pins["open"] == 0


async def test_a_client_that_goes_away_pins_nothing(web, tmp_path, pins):
    async with serving(web, tmp_path / "data", small_buffers=True) as (_, http_api, port):
        client = await export_without_reading(port)
        await come_true(lambda: pins["open"] == 1)
        await asyncio.sleep(0.2)
        assert pins["open"] == 1, "the export is too small to stall: the test shows nothing"
        client.close()
        await come_true(lambda: pins["open"] == 0)
        assert not http_api._long_views._tasks


async def test_a_client_that_takes_nothing_is_cut_off(web, tmp_path, pins, monkeypatch):
    monkeypatch.setattr(long_views, "STALLED", 0.3)
    async with serving(web, tmp_path / "data", small_buffers=True) as (_, _, port):
        client = await export_without_reading(port)
        await come_true(lambda: pins["taken"] == 1 and pins["open"] == 0)
        assert b"0\r\n\r\n" not in await rest(client)


async def rest(client):
    """What still comes before the end of a connection."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := await asyncio.get_running_loop().sock_recv(client, 65_536):
            got += piece
    client.close()
    return got


async def test_the_process_stops_although_a_client_takes_nothing(web, tmp_path, pins):
    async with serving(web, tmp_path / "data", small_buffers=True) as (_, _, port):
        client = await export_without_reading(port)
        await come_true(lambda: pins["open"] == 1)
    assert pins["open"] == 0
    client.close()


async def test_the_process_stops_in_the_middle_of_an_audit(web, tmp_path, pins, monkeypatch):
    reading = threading.Event()

    def endless(views, extensions):
        while True:
            for _ in views.views[0].store.scan(b""):
                reading.set()

    monkeypatch.setattr(http_api, "audit", endless)
    async with serving(web, tmp_path / "data") as (_, _, port):
        asked = asyncio.create_task(ask(f"http://127.0.0.1:{port}/audit"))
        await come_true(reading.is_set)
    assert pins["open"] == 0
    with pytest.raises(ClientError):
        await asked


async def test_only_so_many_long_looks_at_a_time(web, tmp_path, pins):
    async with serving(web, tmp_path / "data", small_buffers=True) as (_, _, port):
        clients = [await export_without_reading(port) for _ in range(long_views.AT_ONCE)]
        await come_true(lambda: pins["open"] == long_views.AT_ONCE)
        status, answer, _ = await ask(f"http://127.0.0.1:{port}/audit")
        assert status == 400 and "try again" in answer["error"]
        for client in clients:
            client.close()
        await come_true(lambda: pins["open"] == 0)
        assert (await ask(f"http://127.0.0.1:{port}/audit"))[1]["ok"]


async def test_what_only_seemed_wrong_is_looked_at_again_while_all_stands_still(web, tmp_path, monkeypatch):
    true, calls = http_api.audit, []

    def first_wrong(views, extensions):
        calls.append(threading.current_thread() is threading.main_thread())
        if len(calls) == 1:
            return {"ok": False}
        if len(calls) == 2:
            return true(views, extensions)
        raise ValueError("the columns grew")

    monkeypatch.setattr(http_api, "audit", first_wrong)
    async with serving(web, tmp_path / "data") as (_, _, port):
        assert (await ask(f"http://127.0.0.1:{port}/audit"))[1]["ok"]
    assert calls == [False, False], "in a thread both times"


async def test_a_failing_crawl_is_not_healthy(web, tmp_path, monkeypatch):
    async with serving(web, tmp_path / "data") as (single, _, port):
        with monkeypatch.context() as patch:
            patch.setattr(single, "check", lambda: (_ for _ in ()).throw(MachineError("disk full")))
            status, answer, _ = await ask(f"http://127.0.0.1:{port}/health", token="")
            assert status == 503 and not answer["ok"] and answer["failing"] == ["disk full"]


# The real process


def test_the_token_is_its_owner_s_and_new_each_time(web, tmp_path):
    tokens = set()
    for _ in range(2):
        with started("serve", *LOOPBACK, data=tmp_path / "data") as daemon:
            run = tmp_path / "data" / "run"
            assert stat.S_IMODE(run.stat().st_mode) == 0o600
            tokens.add(json.loads(run.read_text())["token"])
            daemon.terminate()
            daemon.communicate(timeout=60)
    assert len(tokens) == 2 and min(map(len, tokens)) >= 32


@pytest.mark.long
def test_looks_at_a_busy_process_hold_and_it_goes_on(web, tmp_path):
    data = tmp_path / "data"
    with started("crawl", web.entry, *LOOPBACK[:2], "--scope", "any", "--delay", "0.02", data=data) as crawl:
        until(lambda: said("status", "--data", data)["reads"] > 10)
        while crawl.poll() is None and said("status", "--data", data)["reads"] < 250:
            assert said("audit", "--data", data)["ok"]
            assert len(rows("pages", data)) > 1
        crawl.wait(60)
    assert crawl.returncode == 0 and said("audit", "--data", data)["ok"]


async def test_ten_thousand_urls_are_submitted_some_at_a_time(tmp_path, monkeypatch):
    """All at once took the event loop for most of a second; each is still accepted once."""
    neighbours, sizes = Neighbours(), []

    def counting(texts, scope):
        sizes.append(len(texts))
        return sort_seeds(texts, scope)

    monkeypatch.setattr(http_api, "sort_seeds", counting)
    async with neighbours.serving(), crawling(tmp_path / "d", neighbours) as running:
        owner, listening = http_api.HttpApi(running.single, "token"), listen("127.0.0.1", 0)
        await owner.start(listening)
        try:
            urls = [neighbours.url(f"/p{i % 5}.html?{i % 2_000}") for i in range(9_998)] + ["nonsense", "ftp://x/"]
            ask = running.http.post(
                f"http://127.0.0.1:{listening.getsockname()[1]}/submit",
                json={"urls": urls},
                headers={"Authorization": "Bearer token"},
            )
            async with ask as response:
                answer = await response.json()
        finally:
            await owner.close()
        assert answer["accepted"] == 2_000 and [one["url"] for one in answer["refused"]] == ["nonsense", "ftp://x/"]
        assert max(sizes) == http_api.AT_ONCE and sum(sizes) == 10_000
        assert all(running.single.frontiers[0].partition.url_index.find_one(url) >= 0 for url in urls[:2_000])


async def test_connections_that_show_no_token_leave_room_for_those_that_do(web, tmp_path, monkeypatch):
    """A local user opens more connections than there are places, silent ones and half a head; the owner is answered."""
    monkeypatch.setattr(http_api, "CONNECTIONS", 8)
    async with serving(web, tmp_path / "d", pages=20) as (_, served_api, port):
        url, mine = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
        async with ClientSession() as owner:
            async with owner.get(f"{url}/status", headers=mine) as answer:
                assert answer.status == 200
            strangers = []
            for number in range(40):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /status HTTP/1.1\r\nX: " if number % 2 else b"")
                strangers.append((reader, writer))
            async with owner.get(f"{url}/status", headers=mine) as answer:
                assert answer.status == 200  # over the connection that it had: nobody replaced it
            async with ClientSession() as second, second.get(f"{url}/status", headers=mine) as answer:
                assert answer.status == 200
            for reader, _ in strangers[:30]:
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 5.0) == b""
            assert len(served_api.admission) <= 10
            assert served_api.admission.refused >= 30
            for _, writer in strangers:
                writer.close()


async def test_a_client_that_left_before_its_answer_is_no_bug_of_ours(served, caplog):
    port = int(served.rpartition(":")[2])
    head = f"GET /rank?links=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        writer.write_eof()
        await asyncio.sleep(0.01)
        writer.close()
    async with ClientSession() as session, session.get(f"{served}/health") as response:
        assert response.status == 200
    assert [record.getMessage() for record in caplog.records if "(a bug)" in record.getMessage()] == []
