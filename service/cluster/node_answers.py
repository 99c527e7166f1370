"""Answers requests that come over the broker by asking the node's own HTTP interface, and sends its answers in pieces.

So whatever `xyro` commands ask of a process on its own machine, they ask of a cluster: one list of endpoints, one set
of checks. Who may use the broker may ask; what writes files outside of the data directory is not passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientSession, ClientTimeout

from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.cluster_remote import LOST_SECONDS, ask_subject, offer_subject, packed_piece, unpacked_request
from xyro.wire.errors import CodecError

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

PIECE = 256 << 10
WINDOW = 8
"""pieces on their way that the one who asked has not taken yet"""
STALLED = 60.0
"""seconds that it may take nothing"""
AT_ONCE = 32
"""requests answered at once; further ones are left to other nodes, or to a second try"""
SIGN_OF_LIFE = LOST_SECONDS / 4
BROKEN_OFF = "its answer broke off, its log says why: ask again"
POSTS = ("/submit", "/bounds", "/hosts", "/ids", "/xml/bodies", "/publish", "/subscriptions", "/unsubscribe")
"""changes that are passed on, and questions that need a body"""
_log = logging.getLogger("xyro")


class NodeAnswers:
    """The requests to one node."""

    def __init__(self, link: BrokerLink, crawl: str, node: int, host: str, port: int, token: str) -> None:
        """host, port, token: of the node's HTTP interface."""
        self._link = link
        self._crawl = crawl
        self._node = node
        self._base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Subscription] = []
        self._session: ClientSession | None = None

    async def start(self) -> None:
        """Answer from now on."""
        self._session = ClientSession(headers=self._headers, timeout=ClientTimeout(total=None))
        self._subscriptions = [
            await self._link.subscribe(offer_subject(self._crawl), self._offer),
            await self._link.subscribe(ask_subject(self._crawl, self._node), self._take),
        ]

    async def close(self) -> None:
        """Break off what is under way."""
        if self._link.connected:
            for subscription in self._subscriptions:
                await subscription.unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _offer(self, received: Msg) -> None:
        if received.reply and len(self._tasks) < AT_ONCE:
            await self._link.publish(received.reply, b"%d" % self._node)

    async def _take(self, received: Msg) -> None:
        if not received.reply or len(self._tasks) >= AT_ONCE:
            return
        task = asyncio.create_task(self._answer(received.reply, received.data))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, inbox: str, data: bytes) -> None:
        await self._link.publish(inbox, packed_piece(0, 0, "", b"", False))
        sender = _PieceSender(self._link, inbox)
        signs = asyncio.create_task(self._live(inbox))
        try:
            await sender.start()
            await self._pass_on(sender, *unpacked_request(data))
        except (CodecError, ValueError) as error:
            await sender.send(400, "", _fault(str(error)), True)
        except (ClientError, OSError, TimeoutError) as error:
            _log.info("cluster: a request broke off: %s", error or type(error).__name__)
            with contextlib.suppress(TimeoutError):
                await sender.send(503, "", _fault(f"node {self._node}: {BROKEN_OFF}"), True)
        finally:
            signs.cancel()
            await asyncio.gather(signs, return_exceptions=True)
            await sender.close()

    async def _live(self, inbox: str) -> None:
        while True:
            await asyncio.sleep(SIGN_OF_LIFE)
            await self._link.publish(inbox, packed_piece(-1, 0, "", b"", False))

    async def _pass_on(self, sender: _PieceSender, method: str, path: str, body: bytes) -> None:
        route = path.partition("?")[0]
        if not (method == "GET" or (method in ("POST", "DELETE") and route.startswith(POSTS))):
            raise ValueError(f"{method} {route[:80]}: is asked of the machine itself, with --data")
        assert self._session is not None, "started"
        async with self._session.request(method, self._base + path, data=body or None) as response:
            headers = json.dumps({name: value for name, value in response.headers.items() if name[:2] in ("X-", "Co")})
            async for part in response.content.iter_chunked(PIECE):
                await sender.send(response.status, headers, part, False)
                headers = ""
            await sender.send(response.status, headers, b"", True)


class _PieceSender:
    """Sends pieces in order, at most WINDOW ahead of the one who takes them."""

    def __init__(self, link: BrokerLink, inbox: str) -> None:
        self._link = link
        self._inbox = inbox
        self._receipts = link.client.new_inbox()
        self._room = asyncio.Semaphore(WINDOW)
        self._number = 0
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        self._subscription = await self._link.subscribe(self._receipts, self._release)

    async def _release(self, _: Msg) -> None:
        self._room.release()

    async def send(self, status: int, headers: str, data: bytes, last: bool) -> None:
        """TimeoutError: nobody takes the pieces any more."""
        async with asyncio.timeout(STALLED):
            await self._room.acquire()
        self._number += 1
        await self._link.publish(self._inbox, packed_piece(self._number, status, headers, data, last), self._receipts)

    async def close(self) -> None:
        if self._subscription is not None and self._link.connected:
            await self._subscription.unsubscribe()


def _fault(text: str) -> bytes:
    return json.dumps({"error": text}).encode()
