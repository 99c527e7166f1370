"""A bounded crawl beside a host that stops answering: its orders come back, and other pages are read in their place."""

import asyncio
import contextlib

import pytest

import xyro
from xyro.lab.hostile.loopback_server import listening
from xyro.wire.clock import SystemClock

PAGES = 12
BOUND = 16
LOST = "127.0.0.2"
"""hangs up after its first page"""


class _Site(asyncio.Protocol):
    """Each page shows all pages of both hosts."""

    reads: list[str] = []  # noqa: RUF012

    def connection_made(self, transport):
        self.transport, self.input = transport, b""
        self.host, self.port = transport.get_extra_info("sockname")

    def data_received(self, data):
        self.input += data
        while (end := self.input.find(b"\r\n\r\n")) >= 0:
            path = self.input.split(b" ", 2)[1].decode()
            self.input = self.input[end + 4 :]
            if path != "/robots.txt":
                self.reads.append(self.host)
                if self.host == LOST and self.reads.count(LOST) > 1:
                    self.transport.write(b"HTTP/1.1 200 OK\r\n")
                    self.transport.close()
                    return
            hosts = (f"http://{host}:{self.port}/p{page}" for host in ("127.0.0.1", LOST) for page in range(PAGES))
            body = "".join(f'<a href="{url}">{path}</a>' for url in hosts).encode() if path != "/robots.txt" else b""
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


@pytest.mark.parametrize("refresh", [False, True])
async def test_a_host_that_is_left_alone_holds_no_read_of_the_bound(tmp_path, monkeypatch, refresh):
    monkeypatch.setattr("xyro.service.node.node.HOUSEKEEPING", 0.2)
    monkeypatch.setattr("xyro.politeness.Politeness._backoff", lambda self, failures: 600.0 if failures else 0.0)
    monkeypatch.setattr(_Site, "reads", [])
    options = {"only_net": ["127.0.0.0/8"], "scope": "any", "delay": 0.05}
    options["refresh"] = refresh
    clock, sock = SystemClock(), listening()
    server = await asyncio.get_running_loop().create_server(_Site, sock=sock)
    began = clock.monotonic()
    with contextlib.closing(server):
        seeds = [f"http://{host}:{sock.getsockname()[1]}/p0" for host in ("127.0.0.1", LOST)]
        bound = BOUND if refresh else PAGES
        found = [page async for page in xyro.crawl(*seeds, data=tmp_path / "d", max_pages=bound, **options)]
    answered = [page for page in found if page.status]
    assert len(answered) == bound and _Site.reads.count(LOST) == 2, "the bound is used up, and not exceeded"
    assert clock.monotonic() - began < 300.0, "ten minutes of back-off were not waited for"
