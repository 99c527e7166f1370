"""Incidents of a real process, named by the first view of its dashboard in a real browser, each within a minute."""

import asyncio
import glob
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.plugins.browser import CHROMIUM, browser
from tests.service.face import ENVIRONMENT, LOOPBACK, ROOT, XYRO, process, said, started, until, xyro

NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is here: Debian's package `chromium` has it")
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
"""Debian's package `faketime`: without it, the clock cannot be set"""
MAY_MOUNT = not os.geteuid() and not subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode
"""without that, the disk cannot fill up"""
UNTRIED = ["clock: Debian's package `faketime` sets one"] * (not FAKETIME)
UNTRIED += ["disk: only root, who may `unshare -m`, can mount a small one"] * (not MAY_MOUNT)
NAMED_WITHIN = 60.0
"""seconds from the moment at which something goes wrong"""
SETTINGS = """
[changes]
record = true
[[sinks]]
name = "web"
url = "http://127.0.0.1:{sink}/"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
[fetch]
readers = 1
name_servers = ["127.0.0.1:{names}"]
"""
NEWS = "".join(f'<a href="/p{number}">page {number}</a> ' for number in range(60))


class Site(BaseHTTPRequestHandler):
    """Pages that differ at each read; /trap?n shows ever more of its like."""

    def do_GET(self):
        page = f"<p>{os.urandom(20).hex()}</p>"
        if self.path.startswith("/trap"):
            page += "".join(f'<a href="/trap?n={os.urandom(8).hex()}">on</a>' for _ in range(30))
        elif self.path == "/":
            page += NEWS
        self.send_response(200 if self.path == "/" or self.path.startswith(("/p", "/trap?n=")) else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


@contextmanager
def site(address, certificate=None):
    server = ThreadingHTTPServer((address, 0), Site)
    server.daemon_threads, server.block_on_close = True, False
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{address}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def self_signed(folder):
    place = folder / "cert.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other.test -keyout {0} -out {0}.crt"
    subprocess.run(words.format(place).split(), check=True, capture_output=True)
    place.write_text(place.read_text() + Path(f"{place}.crt").read_text())
    return place


class Taking(BaseHTTPRequestHandler):
    """A webhook that takes all that it is sent."""

    def do_POST(self):
        self.server.taken += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Names:
    """A name server that knows each name as 127.0.0.9, at once or after some seconds. `asked`: names of queries."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port, self.wait, self.asked = self.socket.getsockname()[1], 0.0, []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            self.asked.append(query[12:])
            threading.Timer(self.wait, self._answer, (query, sender)).start()

    def _answer(self, query, sender):
        end = query.index(b"\0", 12) + 5
        is_v4 = query[end - 4 : end - 2] == b"\0\1"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\x09" if is_v4 else b""
        counts = b"\0\1" + (b"\0\1" if is_v4 else b"\0\0") + b"\0\0\0\0"
        self.socket.sendto(query[:2] + b"\x81\x80" + counts + query[12:end] + record, sender)


@contextmanager
def daemon(folder, *seeds, settings):
    """A crawl whose data lie on a disk of their own, by a clock that a file sets: (process, disk, clock, log)."""
    disk, clock, log = folder / "disk", folder / "clock", folder / "log"
    disk.mkdir()
    clock.write_text("+0")
    fake = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if FAKETIME else {}  # fmt: skip
    words = [*XYRO, "serve", *seeds, *LOOPBACK, "--config", str(settings), "--data", str(disk / "data")]
    if MAY_MOUNT:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8g", "none", str(disk)], check=True)
    try:
        with log.open("w") as lines:
            process = subprocess.Popen(words, cwd=ROOT, env={**ENVIRONMENT, **fake}, stderr=lines)
        try:
            until(lambda: (disk / "data" / "run").exists() or process.poll() is not None)
            yield process, disk, clock, log
        finally:
            process.kill()
            process.wait()
    finally:
        if MAY_MOUNT:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk):
    """Take all the room that is left on a disk that becomes small."""
    used = sum(path.stat().st_blocks * 512 for path in disk.rglob("*") if path.is_file())
    subprocess.run(["mount", "-o", f"remount,size={used + (1 << 20)}", str(disk)], check=True)
    with (disk / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(disk).free == 0


def children(pid):
    return [int(word) for task in Path(f"/proc/{pid}/task").glob("*/children") for word in task.read_text().split()]


@pytest.mark.long
@NEEDS_CHROMIUM
def test_the_first_view_names_each_incident_within_a_minute_of_its_onset(tmp_path):
    """One after the other, each from the moment at which it was caused; the last one is a disk without any room, which
    ends the process: its last line says so."""
    with ExitStack() as stack:
        main, shut = (stack.enter_context(site(address)) for address in ("127.0.0.1", "127.0.0.3"))
        secure = stack.enter_context(site("127.0.0.2", self_signed(tmp_path)))
        far = stack.enter_context(site("127.0.0.9"))
        names, webhook = Names(), ThreadingHTTPServer(("127.0.0.1", 0), Taking)
        webhook.taken, webhook.daemon_threads = 0, True
        threading.Thread(target=webhook.serve_forever, daemon=True).start()
        settings = tmp_path / "s.toml"
        written = SETTINGS.format(names=names.port, sink=webhook.server_port)
        settings.write_text(written)
        seeds = [f"http://{main}/", f"http://{shut}/", f"http://quick.test:{far.rpartition(':')[2]}/p1"]
        process, disk, clock, log = stack.enter_context(daemon(tmp_path, *seeds, settings=settings))
        data, port = disk / "data", far.rpartition(":")[2]

        def close_webhook():
            webhook.shutdown()
            webhook.server_close()
            submit(f"http://{main}/p?late")

        def submit(url):
            assert xyro("submit", url, "--data", data).returncode == 0

        def slow_names():
            names.wait = 3.0  # two would be slow, and after four it asks again
            submit(f"http://slow.test:{port}/p1")

        def lower_bandwidth():
            settings.write_text(written + '[refresh]\nbandwidth = "20/day"\n')
            os.kill(process.pid, signal.SIGHUP)

        def kill_readers():
            readers = children(process.pid)
            assert readers
            for reader in readers:
                os.kill(reader, 9)

        def shrink_disk():
            subprocess.run(["mount", "-o", "remount,size=500m", str(disk)], check=True)

        incidents = {
            "blocked": (lambda: xyro("block", shut, "--data", data), shut),
            "sink": (close_webhook, "Sink web"),
            "certificate": (lambda: submit(f"https://{secure}/"), f"https://{secure}/"),
            "name-server": (slow_names, "Name servers are slow: "),
            "trap": (lambda: submit(f"http://{main}/trap?n=0"), main),
            "reader": (kill_readers, "Reader processes ended"),
            "bandwidth": (lower_bandwidth, "20/day"),
        }
        if FAKETIME:
            incidents["clock"] = (lambda: clock.write_text("-7200"), "back by 7,200 s")
        if MAY_MOUNT:
            incidents["disk"] = (shrink_disk, "nearly full")
        until(lambda: said("status", "--data", data)["states"]["read"] > 60 and webhook.taken)
        assert names.asked and said("status", "--data", data)["limits"]["wrong"] == []
        link = xyro("dashboard", "--data", data).stdout.strip()
        took = asyncio.run(visit(link, incidents, Path(os.environ.get("XYRO_TEST_PICTURES", tmp_path))))
        if MAY_MOUNT:
            onset = time.monotonic()
            fill(disk)
            submit_if_up(main, data)
            assert process.wait(NAMED_WITHIN) == 3
            took["full disk"] = time.monotonic() - onset
            last = log.read_text().splitlines()[-1]
            assert "No space left on device" in last and str(data) in last, last
    print({kind: round(seconds, 1) for kind, seconds in took.items()})
    assert max(took.values()) < NAMED_WITHIN
    if UNTRIED:
        pytest.skip(f"{len(took)} incidents were named; not tried were {'; '.join(UNTRIED)}")


def submit_if_up(main, data):
    """There is something to write; the process may have ended before."""
    with suppress(subprocess.SubprocessError):
        process("submit", f"http://{main}/p?last", "--data", data)


AGO = (
    "[...document.querySelectorAll('#now svg text')].map((each) => each.textContent)"
    ".find((text) => text.endsWith(' ago'))"
)
"""where the chart of speed begins"""


async def visit(link, incidents, pictures):
    """Seconds from the moment at which each incident is caused to that at which the first view names it."""
    took = {}
    async with browser() as tab:
        await tab.size(1200, 900)
        await tab.open(link)
        await tab.until("document.querySelector('#limit')")
        kinds = "[...document.querySelectorAll('#limit .wrong b')].map((each) => each.textContent)"
        for kind, (cause, text) in incidents.items():
            assert kind not in await tab.value(kinds), "it is wrong already"
            onset = time.monotonic()
            await asyncio.to_thread(cause)
            await tab.until(f"{kinds}.includes('{kind}')", NAMED_WITHIN)
            took[kind] = time.monotonic() - onset
            await tab.until(f"document.querySelector('#limit').innerText.includes({json.dumps(text)})")
        await tab.picture(pictures / "incidents.png")
        curve = (await tab.value("document.querySelector('#now .curve').getAttribute('points')")).split()
        places, shown = [float(point.partition(",")[0]) for point in curve], await tab.value(AGO)
        assert places == sorted(places) and places[0] >= 0.0, "times are in order, also where the clock was set"
        assert shown != "10 s ago", "the chart of ten minutes has all of the run"
        assert tab.console == []
        assert await tab.value("document.documentElement.scrollWidth") == 1200, "what failed is told in its frame"
    return took


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
