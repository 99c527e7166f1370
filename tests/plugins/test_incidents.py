"""Incidents of a real process, named by the first view of its dashboard in a real browser, each within a minute."""

import asyncio
import glob
import os
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.plugins.browser import CHROMIUM, browser
from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, said, started, until, xyro

NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is here: Debian's package `chromium` has it")
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
"""Debian's package `faketime`: without it, the clock cannot be set"""
MAY_MOUNT = not os.geteuid() and not subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode
"""without that, the disk cannot fill up"""
UNTRIED = ["clock: Debian's package `faketime` sets one"] * (not FAKETIME)
UNTRIED += ["disk: only root, who may `unshare -m`, can mount a small one"] * (not MAY_MOUNT)
SETTINGS = """
[changes]
record = true
[[sinks]]
name = "dead"
url = "http://127.0.0.1:1025/"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
[fetch]
readers = 1
name_servers = ["127.0.0.1:{names}"]
[refresh]
bandwidth = "20/day"
"""
NEWS = "".join(f'<a href="/p{number}">page {number}</a> ' for number in range(60))


class Site(BaseHTTPRequestHandler):
    """Pages that differ at each read; /slow answers when the test ends; /trap?n shows ever more of its like."""

    def do_GET(self):
        if self.path == "/slow":
            self.server.over.wait(120)
        page = f"<p>{os.urandom(20).hex()}</p>"
        if self.path.startswith("/trap"):
            page += "".join(f'<a href="/trap?n={os.urandom(8).hex()}">on</a>' for _ in range(30))
        elif self.path == "/":
            page += NEWS + '<a href="/slow">slow</a><a href="/trap?n=0">trap</a>'
        self.send_response(200 if self.path == "/" or self.path.startswith(("/p", "/slow", "/trap?n=")) else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


@contextmanager
def site(address, certificate=None):
    server = ThreadingHTTPServer((address, 0), Site)
    server.daemon_threads, server.block_on_close, server.over = True, False, threading.Event()
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{address}:{server.server_port}"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def self_signed(folder):
    place = folder / "cert.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other.test -keyout {0} -out {0}.crt"
    subprocess.run(words.format(place).split(), check=True, capture_output=True)
    place.write_text(place.read_text() + Path(f"{place}.crt").read_text())
    return place


@contextmanager
def daemon(folder, *seeds, settings):
    """A crawl whose data lie on a small disk of its own, by a clock that is set with `clock`: (process, data)."""
    data, clock = folder / "disk" / "data", folder / "clock"
    data.parent.mkdir()
    clock.write_text("+0")
    fake = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if FAKETIME else {}  # fmt: skip
    words = [*XYRO, "serve", *seeds, *LOOPBACK, "--config", str(settings), "--data", str(data)]
    if MAY_MOUNT:
        mount = 'mount -t tmpfs -o size=500m none "$0"; exec "$@"'
        words = ["unshare", "-m", "--propagation", "private", "sh", "-ec", mount, str(data.parent), *words]
    process = subprocess.Popen(words, cwd=ROOT, env={**ENVIRONMENT, **fake})
    seen = Path(f"/proc/{process.pid}/root{data}")
    try:
        until(lambda: (seen / "run").exists() or process.poll() is not None)
        yield process, seen, clock
    finally:
        process.kill()
        process.wait()


def children(pid):
    return [int(word) for task in Path(f"/proc/{pid}/task").glob("*/children") for word in task.read_text().split()]


@pytest.mark.long
@NEEDS_CHROMIUM
def test_the_first_view_names_each_incident(tmp_path):
    async def visit(link, wanted, cause):
        async with browser() as tab:
            await tab.size(1200, 900)
            await tab.open(link)
            await tab.until("document.querySelector('#limit')")
            await asyncio.to_thread(cause)
            kinds = "[...document.querySelectorAll('#limit .wrong b')].map((each) => each.textContent)"
            for kind in wanted:
                await tab.until(f"{kinds}.includes('{kind}')", 60.0)
            await tab.picture(Path(os.environ.get("XYRO_TEST_PICTURES", tmp_path)) / "incidents.png")
            assert tab.console == []
            assert await tab.value("document.documentElement.scrollWidth") == 1200, "what failed is told in its frame"
            return await tab.value("document.querySelector('#limit').innerText")

    wanted = ["blocked", "sink", "certificate", "name-server", "reader", "trap", "bandwidth"]
    wanted += ["clock"] * bool(FAKETIME) + ["disk"] * MAY_MOUNT
    with ExitStack() as stack:
        main = stack.enter_context(site("127.0.0.1"))
        secure = stack.enter_context(site("127.0.0.2", self_signed(tmp_path)))
        shut = stack.enter_context(site("127.0.0.3"))
        names = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))  # answers nothing
        names.bind(("127.0.0.1", 0))
        (settings := tmp_path / "s.toml").write_text(SETTINGS.format(names=names.getsockname()[1]))
        seeds = [f"http://{main}/", f"https://{secure}/", f"http://{shut}/", "http://slow.test/"]
        process, data, clock = stack.enter_context(daemon(tmp_path, *seeds, settings=settings))

        def cause():
            assert xyro("block", shut, "--data", data).returncode == 0
            until(lambda: said("status", "--data", data)["reads"] > 60)
            clock.write_text("-7200")
            readers = children(process.pid)
            assert readers
            for reader in readers:
                os.kill(reader, 9)

        link = xyro("dashboard", "--data", data).stdout.strip()
        text = asyncio.run(visit(link, wanted, cause))
        assert shut in text and f"https://{secure}/" in text and "slow.test" in text and "Sink dead" in text
    if UNTRIED:
        pytest.skip(f"{len(wanted)} incidents were named; not tried were {'; '.join(UNTRIED)}")


@pytest.mark.long
@NEEDS_CHROMIUM
def test_the_first_view_says_that_nothing_is_left_to_read(tmp_path):
    async def visit(link):
        async with browser() as tab:
            await tab.open(link)
            await tab.until("document.querySelector('#limit')?.dataset.kind === 'queue'", 60.0)
            await tab.until("document.querySelector('#limit').innerText.includes('Nothing is wrong.')")

    data = tmp_path / "d"
    with site("127.0.0.1") as entry, started("serve", f"http://{entry}/p1", *LOOPBACK, data=data, stderr=None):
        asyncio.run(visit(xyro("dashboard", "--data", data).stdout.strip()))
