"""Hosts of several nodes at one address: by its server's log it is read at the pace of one, whoever dies."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.service.cluster_rig import running_cluster
from tests.xyro.test_resolver import NameServer

HOSTS, PAGES, FLOOR = 60, 8, 0.1
TOLERANCE = 0.01
"""seconds by which a server's moments may be closer than ours"""
SLOW, SLOWLY = "h9.", 12.0
"""seconds for which the first page of this host takes longer than any grant"""


class OneAddress:
    """A server of many names, and the name server that knows them: all are this machine's."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str]] = []
        self.port = self.names = self.open = self.most = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[OneAddress]:
        self._thread.start()
        assert self._ready.wait(30)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._stop())
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        zone = lambda name, kind: (0, [(1, 600, "127.0.0.1")] if kind == 1 else [])  # noqa: E731
        self._names, _ = await self._loop.create_datagram_endpoint(
            lambda: NameServer(zone), local_addr=("127.0.0.1", 0)
        )
        self.names = self._names.get_extra_info("sockname")[1]

    async def _stop(self) -> None:
        self._server.close()
        self._names.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                path, host = head.split()[1], head.lower().partition("\r\nhost: ")[2].partition("\r\n")[0]
                self.requests.append((time.monotonic(), host + path))
                self.open += 1
                self.most = max(self.most, self.open)
                await asyncio.sleep(SLOWLY if path == "/" and host.startswith(SLOW) else 0.0)
                self.open -= 1
                links = "".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES))
                status = "404 Not Found" if path == "/robots.txt" else "200 OK"
                body = f"<html><body>{links}</body></html>"
                kind = "Content-Type: text/html\r\nContent-Length"
                writer.write(f"HTTP/1.1 {status}\r\n{kind}: {len(body)}\r\n\r\n{body}".encode())
                await writer.drain()

    def gaps(self, since: float = 0.0) -> list[float]:
        moments = sorted(moment for moment, _ in self.requests if moment >= since)
        return [later - sooner for sooner, later in pairwise(moments)]


@pytest.mark.long
def test_sixty_hosts_at_one_address_are_read_at_the_pace_of_one_by_three_nodes(tmp_path):
    with OneAddress().running() as server, running_cluster(tmp_path, delay=FLOOR) as cluster:
        cluster.settings = {"XYRO_FETCH__NAME_SERVERS": f"127.0.0.1:{server.names}"}
        for number in (1, 2, 3):
            cluster.start(number)
        cluster.balanced(5, 5, 6)
        cluster.submit(*(f"http://h{number}.example:{server.port}/" for number in range(HOSTS)))
        cluster.until(lambda: len(server.requests) > 250, "250 requests")
        cluster.until(lambda: max(server.gaps()) > SLOWLY, "the slow page")
        gaps = server.gaps()
        print(f"gap {min(gaps):.3f} at least, {sum(gaps[50:]) / len(gaps[50:]):.3f} mean")
        assert min(gaps) >= FLOOR - TOLERANCE
        assert server.most == 1
        cluster.kill(2)
        killed = time.monotonic()
        cluster.until(lambda: len(server.gaps(killed + 1.0)) > 10, "the others go on")
