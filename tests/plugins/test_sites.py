"""[[sites]] and --header, judged by what servers of several hosts were sent, and by grep for the secrets."""

from __future__ import annotations

import base64
import contextlib
import gzip
import itertools
import json
import re
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.service.broker import running_brokers
from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, rows, started, until, xyro
from xyro.configs.load import load
from xyro.lab.crawls.jumping import Jumping
from xyro.lab.web.server import WebServer
from xyro.lab.web.shape import ORIGIN
from xyro.lab.web.web import Web
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.views.why import why
from xyro.wire.clock import ManualClock

SECRETS = ("k3y-of-the-wiki", "s3ssion-cookie", "us3r", "p4ssword")
LOGIN = base64.b64encode(b"us3r:p4ssword").decode()


class HostServer(ThreadingHTTPServer):
    """Pages by path, {n} in them grows; `seen`: (host, path, headers in lower case, moment) of each request."""

    daemon_threads = True

    def __init__(self, address: str) -> None:
        self.seen: list[tuple[str, str, dict[str, str], float]] = []
        self.pages: dict[str, str] = {}
        self.moved: dict[str, str] = {}
        super().__init__((address, 0), _Handler)
        self.host = f"{address}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HostServer

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        assert len(headers) == len(self.headers), "a header stands twice"
        self.server.seen.append((headers["host"], self.path, headers, time.monotonic()))
        if self.path in self.server.moved:
            self.send_response(302)
            self.send_header("Location", self.server.moved[self.path])
            body = b""
        else:
            found = self.server.pages.get(self.path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "text/html")
            body = (found or "").replace("{n}", str(len(self.server.seen))).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hosts() -> Iterator[tuple[HostServer, HostServer]]:
    """A wiki, which the table is for, and another host; they link and redirect to each other."""
    wiki, other = HostServer("127.0.0.2"), HostServer("127.0.0.3")
    wiki.pages = {"/": f"<a href=/a>a</a> <a href=/away>b</a> <a href=http://{other.host}/>c</a>", "/a": "<p>hello</p>"}
    wiki.moved = {"/away": f"http://{other.host}/landed"}
    other.pages = {"/": f"<a href=http://{wiki.host}/b>d</a> <a href=/back>e</a>", "/landed": "<p>here</p>"}
    other.moved = {"/back": f"http://{wiki.host}/a?back"}
    yield wiki, other
    for server in (wiki, other):
        server.shutdown()
        server.server_close()


def config(tmp_path: Path, wiki: HostServer, more: str = "") -> Path:
    (tmp_path / "session").write_text("s3ssion-cookie\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        f'[[sites]]\nhost = "{wiki.host}"\n'
        f'cookies = {{ session = {{ file = "{tmp_path}/session" }}, theme = "dark" }}\n'
        'headers = { "X-Api-Key" = { env = "WIKI_KEY" }, accept = "text/html" }\nauth = { env = "WIKI_LOGIN" }\n' + more
    )
    return path


ENV = {"WIKI_KEY": "k3y-of-the-wiki", "WIKI_LOGIN": "us3r:p4ssword"}
OWN = {"x-api-key": "k3y-of-the-wiki", "cookie": "session=s3ssion-cookie; theme=dark", "accept": "text/html",
       "authorization": f"Basic {LOGIN}"}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("client", "readers"), [("fast", "0"), ("aiohttp", "0"), ("fast", "1")])
def test_what_is_for_a_host_is_sent_to_it_alone_and_kept_nowhere(tmp_path, hosts, client, readers):
    wiki, other = hosts
    data = tmp_path / "data"
    settings = {"XYRO_FETCH__CLIENT": client, "XYRO_KEEP__WARC": "true", "XYRO_KEEP__TEXT": "true", **ENV}
    done = process(
        "crawl", f"http://{wiki.host}/", *LOOPBACK, "--data", data, "--config", config(tmp_path, wiki), "--json", "-v",
        "--header", "Accept-Language: de", "--header", "Accept: text/plain", "--readers", readers, **settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {path for _, path, _, _ in wiki.seen} >= {"/robots.txt", "/", "/a", "/away", "/b", "/a?back"}
    assert {path for _, path, _, _ in other.seen} >= {"/robots.txt", "/", "/landed", "/back"}
    for _, path, headers, _ in wiki.seen:
        assert {name: headers.get(name) for name in OWN} == OWN, path
        assert headers["accept-language"] == "de" and headers["user-agent"].startswith("Xyro/")
    for _, path, headers, _ in other.seen:
        assert headers["accept"] == "text/plain" and headers["accept-language"] == "de"
        assert not {"x-api-key", "cookie", "authorization", "referer"} & headers.keys(), path

    told = done.stdout + done.stderr
    for look in (["status", "--json"], ["hosts", "--json"], ["why", f"http://{wiki.host}/a"], ["audit"],
                 ["export", "pages"], ["export", "hosts"]):  # fmt: skip
        seen = xyro(*look, "--data", data)
        assert seen.returncode == 0, seen.stderr
        told += seen.stdout + seen.stderr
    kept = [path for path in data.rglob("*") if path.is_file()]
    packed = [path for path in kept if path.suffix == ".gz"]
    assert len(packed) >= 1
    text = b"".join(gzip.decompress(path.read_bytes()) for path in packed)
    assert text.count(b"X-Api-Key: (not kept)") >= 4 and text.count(b"Authorization: (not kept)") >= 4
    assert b"Cookie: (not kept)" in text and b"Host: " + wiki.host.encode() in text
    everything = told.encode() + text + b"".join(path.read_bytes() for path in kept)
    for secret in (*SECRETS, LOGIN):
        assert secret.encode() not in everything


@pytest.mark.long
def test_which_table_holds_is_told_and_the_first_that_fits_does(tmp_path, hosts):
    wiki, other = hosts
    data, more = (
        tmp_path / "data",
        '[[sites]]\nhost = "127.0.0.2"\ndelay = 9\n[[sites]]\nhost = "127.0.0.3"\ndelay = 0.4\n',
    )
    more += 'signature = "links"\n'
    command = ["serve", f"http://{wiki.host}/", *LOOPBACK, "--data", data, "--config", config(tmp_path, wiki, more)]
    arguments = [*map(str, command)]
    daemon = subprocess.Popen([*XYRO, *arguments], cwd=ROOT, env={**ENVIRONMENT, **ENV}, stderr=subprocess.PIPE)
    try:
        until(lambda: len(other.seen) >= 4)
        told = xyro("why", f"http://{wiki.host}/a", "--data", data).stdout
        assert f"[[sites]] number 1 ({wiki.host}) holds" in " ".join(told.split())
        assert "headers X-Api-Key, accept; cookies session, theme; a user and a password" in " ".join(told.split())
        row = {row["host"]: row["site"] for row in json.loads(xyro("hosts", "--json", "--data", data).stdout)}
        assert row == {wiki.host: wiki.host, other.host: "127.0.0.3"}
        assert "[[sites]] 127.0.0.3" in xyro("hosts", "--data", data).stdout
        said = xyro("why", f"http://{other.host}/", "--data", data).stdout
        assert "number 3 (127.0.0.3) holds for its host: delay 0.4 s; signature of its links" in " ".join(said.split())
        assert not any(secret in told + said for secret in SECRETS)
    finally:
        daemon.terminate()
        daemon.communicate()
    gaps = {server.host: [b[3] - a[3] for a, b in itertools.pairwise(server.seen)] for server in hosts}
    assert min(gaps[other.host]) >= 0.39
    assert min(gaps[wiki.host]) < 0.2


WORDS = " ".join(f"The harbour of town number {number} was built by people of the coast." for number in range(20))
CHANGING = {
    "/": "<a href=/around>a</a> <a href=/words>b</a> <a href=/targets>c</a>",
    "/around": f"<nav><a href=/>read {{n}} times</a></nav><main><h1>Towns</h1><p>{WORDS}</p></main>",
    "/words": f"<nav><a href=/>home</a></nav><main><h1>Towns</h1><p>{WORDS} Ships today: {{n}}.</p></main>",
    "/targets": f"<nav><a href=/>home</a></nav><main><h1>Towns</h1><p>{WORDS} <a href=/t?{{n}}>more</a></p></main>",
}
"""what changes at each read: around the main text, in its words, where its link leads to"""
SEEN = {"bytes": {"/around", "/words", "/targets"}, "text": {"/words"}, "links": {"/targets"}}
"""what is a change, by the signature of [[sites]]"""


@pytest.mark.long
def test_a_change_outside_of_what_the_signature_of_a_table_is_of_is_none(tmp_path):
    """Three hosts with the same pages, other bytes at each read; one setting each, "bytes" without a table."""
    servers = {kind: HostServer(f"127.0.0.{number}") for number, kind in enumerate(SEEN, 5)}
    (settings := tmp_path / "s.toml").write_text(
        '[refresh]\nbandwidth = "60/s"\nmin_interval = "1s"\n'
        + "".join(f'[[sites]]\nhost = "{servers[kind].host}"\nsignature = "{kind}"\n' for kind in ("text", "links"))
    )
    seeds = [f"http://{server.host}/" for server in servers.values()]
    for server in servers.values():
        server.pages = CHANGING

    def pages():
        found = {row["url"]: row for row in rows("pages", tmp_path / "d")}
        return {(kind, path): found.get(f"http://{server.host}{path}", {"reads": 0})
                for kind, server in servers.items() for path in CHANGING}  # fmt: skip

    with started("crawl", *seeds, *LOOPBACK, "--refresh", "--config", settings, data=tmp_path / "d", stderr=None):
        until(lambda: min(row["reads"] for row in pages().values()) > 2)
        found = pages()
    changed = {kind: {path for path in CHANGING if found[kind, path]["changes"]} for kind in SEEN}
    assert changed == SEEN
    for server in servers.values():
        server.shutdown()
        server.server_close()


REFUSED = [
    ('headers = { Host = "a" }', "host is Xyro's to send"),
    ('headers = { "user-agent" = "a" }', "user-agent is Xyro's to send"),
    ('headers = { "Accept-Encoding" = "br" }', "accept-encoding is Xyro's to send"),
    ('headers = { Range = "bytes=0-" }', "range is Xyro's to send"),
    ('headers = { "Proxy-Authorization" = "p4ssword" }', "proxy-authorization is Xyro's to send"),
    ('headers = { Cookie = "p4ssword" }', "[[sites]] cookies"),
    ('headers = { "X-A" = "p4ssword\\r\\nHost: b" }', "headers: expected a name -> value table"),
    ('headers = { "X A" = "p4ssword" }', "headers: expected a name -> value table"),
    ('cookies = { a = "p4ssword; b" }', "cookies: expected a name -> value table"),
    ('auth = "us3r:p4ssword"', "auth: expected { env"),
    ("auth = { }", "auth: expected one of env and file"),
    ('auth = { env = "NOT_SET" }', "environment variable NOT_SET is not set"),
    ('auth = { file = "/nowhere" }', "/nowhere: No such file"),
    ('auth = { env = "WIKI_KEY" }', "expected user:password there"),
    ('headers = { Authorization = "p4ssword" }\nauth = { env = "WIKI_LOGIN" }', "leave one of them"),
    ("delay = -1", "delay: expected a number of seconds"),
]


@pytest.mark.long
@pytest.mark.parametrize(("table", "complaint"), REFUSED)
def test_mistakes_are_named_and_secrets_are_not(tmp_path, table, complaint):
    path = tmp_path / "bad.toml"
    path.write_text(f'[[sites]]\nhost = "127.0.0.1"\n{table}\n')
    done = process("crawl", "http://127.0.0.1:9/", *LOOPBACK, "--data", tmp_path / "data", "--config", path, **ENV)
    assert done.returncode == 2 and complaint in done.stderr and "[[sites]] number 1" in done.stderr, done.stderr
    assert not any(secret in done.stderr for secret in SECRETS)
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("Authorization: Bearer k3y-of-the-wiki", "[[sites]]"),
        ("Cookie: a=p4ssword", "[[sites]] cookies"),
        ("User-Agent: me", "user-agent is Xyro's"),
        ("no colon p4ssword", "headers such as"),
    ],
)
def test_headers_for_every_host_are_no_credentials(tmp_path, header, complaint):
    done = process("crawl", "http://127.0.0.1:9/", *LOOPBACK, "--data", tmp_path / "data", "--header", header)
    assert done.returncode == 2 and complaint in done.stderr, done.stderr
    assert not re.search("p4ssword|k3y", done.stderr)


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "more", "complaint"),
    [
        ('proxy = "http://10.0.0.1:3128"', (), "[fetch] proxy: 10.0.0.1 is outside of --only-net"),
        ('proxy = "http://proxy.example:3128"', (), "is a name: with --only-net write the proxy's address"),
        ('proxy = "http://127.0.0.1:3128"\nproxy_resolves = true', (), "proxy_resolves"),
        ('proxy = "http://us3r:p4ssword@127.0.0.1:3128"', (), "without user or password"),
        ('ca_file = "/nowhere.pem"', (), "ca_file: /nowhere.pem: No such file"),
        ('proxy = ""\n[[sites]]\nhost = "a.example"\nproxy = "http://10.0.0.1:3128"', (), "[[sites]] number 1: proxy"),
    ],
)
def test_proxies_that_only_net_forbids_are_refused_at_the_start(tmp_path, lines, more, complaint):
    path = tmp_path / "bad.toml"
    path.write_text(f"[fetch]\n{lines}\n")
    done = process("crawl", "http://127.0.0.1:9/", *LOOPBACK, "--data", tmp_path / "data", "--config", path, *more)
    assert done.returncode == 2 and complaint in done.stderr, done.stderr
    assert "p4ssword" not in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "data").exists(), "nothing was changed"


class _ProxyHandler(socketserver.StreamRequestHandler):
    """A proxy in threads, with a log of what it was asked for."""

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.rfile.readline()
        self.server.heads.append(head.decode())
        host, _, port = head.split(b" ")[1].rpartition(b":")
        with socket.create_connection((host.decode(), int(port))) as outer:
            self.wfile.write(b"HTTP/1.1 200 ok\r\n\r\n")
            thread = threading.Thread(target=self._copy, args=(outer,), daemon=True)
            thread.start()
            while data := self.connection.recv(65_536):
                outer.sendall(data)
            with contextlib.suppress(OSError):
                outer.shutdown(socket.SHUT_WR)
            thread.join()

    def _copy(self, outer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := outer.recv(65_536):
                self.connection.sendall(data)


@pytest.mark.long
@pytest.mark.parametrize(("client", "readers"), [("fast", "0"), ("aiohttp", "0"), ("fast", "1")])
def test_a_whole_crawl_through_a_proxy_and_its_resumption(tmp_path, hosts, client, readers):
    """The proxy's log has every request's address; a resumed crawl still knows it, and no password is kept."""
    wiki, other = hosts
    data, path = tmp_path / "data", tmp_path / "mine.toml"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _ProxyHandler) as proxy:
        proxy.daemon_threads, proxy.heads = True, []
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        name = f"http://127.0.0.1:{proxy.server_address[1]}"
        path.write_text(f'[fetch]\nproxy = "{name}"\nproxy_auth = {{ env = "WIKI_LOGIN" }}\n')
        settings = {"XYRO_FETCH__CLIENT": client, "XYRO_KEEP__WARC": "true", **ENV}
        done = process("crawl", f"http://{wiki.host}/", *LOOPBACK, "--data", data, "--config", path, "-v", "--readers",
                       readers, **settings)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert len(wiki.seen) >= 6 and len(other.seen) >= 4
        asked = {head.split("\r\n")[0] for head in proxy.heads}
        assert asked == {f"CONNECT {wiki.host} HTTP/1.1", f"CONNECT {other.host} HTTP/1.1"}
        assert all(f"Proxy-Authorization: Basic {LOGIN}\r\n" in head for head in proxy.heads)
        assert all("proxy-authorization" not in headers for _, _, headers, _ in (*wiki.seen, *other.seen))
        before = len(proxy.heads)
        wiki.pages["/new"] = "<p>new</p>"
        assert process("crawl", f"http://{wiki.host}/new", *LOOPBACK, "--data", data, **settings).returncode == 0
        assert any(found == "/new" for _, found, _, _ in wiki.seen) and len(proxy.heads) > before
        assert "proxy-authorization" not in proxy.heads[-1].lower()
        proxy.shutdown()
    kept = [found for found in data.rglob("*") if found.is_file()]
    text = b"".join(gzip.decompress(found.read_bytes()) for found in kept if found.suffix == ".gz")
    assert b"WARC-IP-Address: 127.0.0.2" in text and b"WARC-IP-Address: 127.0.0.1\r" not in text
    everything = done.stderr.encode() + done.stdout.encode() + text + b"".join(found.read_bytes() for found in kept)
    assert not any(secret.encode() in everything for secret in (*SECRETS, LOGIN))


HOUR, DAY, UNIT = 3_600.0, 86_400.0, 600
BOUNDS = """
    [refresh]
    bandwidth = "2000/day"
    least_chance = 0.1
    time_unit = 600
    [[sites]]
    host = "127.1.0.1"
    min_interval = "36h"
    [[sites]]
    host = "127.1.0.2"
    max_interval = "6h"
"""


async def _lived(directory: Path, config: str, seen: list[tuple[int, str, float]], spans: list[float]) -> list[str]:
    """A daemon on a clock that jumps, restarted after each span but the last; return what `why` says in the end.

    seen: gets host, path and time of each request that the servers of a web of three hosts answer.
    """
    (path := directory / "s.toml").write_text(config)
    options = {"crawl.scope": "any", "fetch.only_net": ("127.0.0.0/8",), "politeness.delay": 0.0}
    settings = load((path,), {}, {**options, "store.commit_seconds": 0.002})
    clock = ManualClock(ORIGIN)
    web = Web(seed=4, pages=45, hosts=3, origin=ORIGIN)
    async with WebServer(web, clock=clock, listener=lambda host, ask, t: seen.append((host, ask.target, t))) as server:
        for number, span in enumerate(spans, start=1):
            with contextlib.closing(DataDir.open(directory / "data", make=True)) as data:
                bounds = Bounds(forever=True)
                single = Node(data, settings, guard_of(settings.fetch), bounds, clock, plugins=PLUGINS)
                try:
                    single.start()
                    if number == 1:  # a seed that is given again is read at once
                        await single.submit([server.web.url(int(page)) for page in server.web.places.starts[:-1]])
                    await Jumping(single, clock, 60.0).until(clock.time() + span)
                    if number == len(spans):
                        with await single.views() as views:
                            urls = [server.web.url(int(page)) for page in server.web.places.starts[:2]]
                            return [" ".join(why(views, url, clock.time())["because"]) for url in urls]
                finally:
                    await single.stop()
    raise AssertionError("no span")


def _gaps(seen: list[tuple[int, str, float]]) -> list[list[float]]:
    """Seconds between two reads of a page, for each host; robots.txt and invented names apart."""
    moments: dict[tuple[int, str], list[float]] = {}
    for host, path, moment in seen:
        moments.setdefault((host, path), []).append(moment)
    pages = [(host, times) for (host, path), times in moments.items() if path != "/robots.txt" and len(times) > 1]
    assert {host for host, _ in pages} == {0, 1, 2}
    return [[b - a for at, times in pages if at == host for a, b in itertools.pairwise(times)] for host in range(3)]


@pytest.mark.long
async def test_pages_are_read_again_within_the_bounds_of_their_site(tmp_path):
    """Judged by the log of the servers, over five days on a clock that jumps; a restart with the same settings keeps
    them."""
    seen: list[tuple[int, str, float]] = []
    because = await _lived(tmp_path, BOUNDS, seen, [3 * DAY, 2 * DAY])
    rare, often, free = _gaps(seen)
    assert len(rare) > 10 and min(rare) >= 36 * HOUR, min(rare) / HOUR
    assert len(often) > 100 and max(often) <= 6 * HOUR + 2 * UNIT, max(often) / HOUR
    assert min(free) < 6 * HOUR and max(free) > 36 * HOUR, "without bounds the policy goes beyond either"
    last = {path: moment for host, path, moment in seen if host == 1}
    assert {path for path, moment in last.items() if moment < ORIGIN + 5 * DAY - 6 * HOUR - 2 * UNIT} <= {"/robots.txt"}
    assert "read again no sooner than 1 day 12 hours later" in because[0]
    assert "Without min_interval of its [[sites]] entry" in because[0], because[0]
    assert "read again at latest 6 hours later" in because[1]
    assert "Without max_interval of its [[sites]] entry" in because[1], because[1]


@pytest.mark.long
def test_each_node_of_a_cluster_goes_by_its_sites(tmp_path):
    """Judged by the servers' logs: hosts of both nodes get the header, and are read within the greatest interval."""
    servers = [HostServer(f"127.0.0.{number}") for number in range(2, 10)]
    for server in servers:
        server.pages = {"/": f"<p>{server.host}</p>"}
    tables = (f'[[sites]]\nhost = "{s.host}"\nheaders = {{ X-For-You = "yes" }}\nmax_interval = 2\n' for s in servers)
    (settings := tmp_path / "s.toml").write_text("[refresh]\ntime_unit = 1\n" + "".join(tables))
    with running_brokers(tmp_path / "js") as (broker,):
        words = ["serve", "--join", broker.url, *LOOPBACK, "--config", settings]
        one, two = tmp_path / "one", tmp_path / "two"
        with started(*words, data=one, stderr=None), started(*words, data=two, stderr=None):
            url = broker.url
            until(lambda: xyro("submit", *(f"http://{s.host}/" for s in servers), "--join", url).returncode == 0)
            until(lambda: all(sum(path == "/" for _, path, _, _ in s.seen) > 2 for s in servers))
            because = xyro("why", f"http://{servers[0].host}/", "--join", url).stdout
    for server in servers:
        server.shutdown()
        server.server_close()
        assert all(headers.get("x-for-you") == "yes" for _, _, headers, _ in server.seen)
    assert f"[[sites]] number 1 ({servers[0].host}) holds for its host: headers X-For-You; read again at" in because


def test_bounds_that_no_interval_can_keep_are_refused(tmp_path):
    (settings := tmp_path / "s.toml").write_text(
        '[[sites]]\nhost = "a.test"\nmin_interval = "2h"\nmax_interval = "1h"\n'
    )
    done = xyro("crawl", "http://127.0.0.1:1/", *LOOPBACK, "--config", settings, "--data", tmp_path / "d")
    assert done.returncode == 2 and "min_interval: 7200 is above max_interval, 3600" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("alive", [False, True])
def test_a_proxy_that_fails_is_named_everywhere(tmp_path, hosts, alive):
    wiki, other = hosts
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        if alive:  # the connection is made, and nothing is ever said
            listening.listen()
        proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = tmp_path / "mine.toml"
        settings.write_text(f'[[sites]]\nhost = "{wiki.host}"\nproxy = "{proxy}"\n[fetch]\nconnect_timeout = "1s"\n')
        first, second = f"http://{wiki.host}/", f"http://{other.host}/"
        lonely, mixed = tmp_path / "lonely", tmp_path / "mixed"
        done = process("crawl", first, *LOOPBACK, "--data", lonely, "--config", settings, "--max-seconds", "8")
        assert (done.returncode, "robots" in done.stdout + done.stderr) == (4, False)
        assert f"no seed gave a page; the proxy {proxy} failed" in done.stderr
        assert f"warning the proxy {proxy} fails (" in done.stderr
        assert f"The proxy {proxy} failed (" in done.stdout and f"{first} (proxy-failed)" in done.stdout
        assert "(proxy-failed); it is tried again at" in (found := xyro("why", first, "--data", lonely).stdout)
        assert "The proxy that the settings name for its host could not be reached" in found
        words = ("serve", first, second, *LOOPBACK, "--config", settings)
        with started(*words, data=mixed):
            until(lambda: f"! The proxy {proxy} fails (" in xyro("status", "--data", mixed).stdout)
            assert f"holds for its host: proxy {proxy}." in xyro("why", first, "--data", mixed).stdout
    assert not any(path == "/" for _, path, _, _ in wiki.seen) and any(path == "/" for _, path, _, _ in other.seen)
