"""The ways to deliver changes: files of JSON lines, a webhook, a command, a plug-in; brokers: broker_targets.py.

A webhook is signed as the Standard Webhooks say (https://www.standardwebhooks.com): HMAC-SHA256 over
`webhook-id.webhook-timestamp.body`, in base64. The id is a digest of the body, so that a batch that is sent again has
the same one. It is sent by a client of its own (webhook_client.py), not in the turn of a host.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from xyro.configs.webhook_secret import signing_key
from xyro.plugins.changes.sink_files import SinkFiles
from xyro.service.node.command_feed import feed
from xyro.wire.errors import TheirError

if TYPE_CHECKING:
    from xyro.plugins.changes.change_rows import SinkRow
    from xyro.plugins.changes.webhook_client import WebhookClient

PATIENCE = 600.0
"""seconds until a plug-in returns"""
GRACE = 10.0
"""seconds that an orderly end waits for a delivery: as long again as for reads"""
TEMPORARY = 75
"""exit code of a command that wants to be asked again (EX_TEMPFAIL of sysexits.h)"""
LATER = (408, 425, 429)
"""HTTP statuses that ask to come again, among those that refuse"""
Line = Mapping[str, Any]


class DeliveryOutcome(NamedTuple):
    """The outcome of a delivery."""

    error: str = ""
    """empty: it was taken"""
    refused: int = 0
    """changes, the first behind those taken, the very same of which would be refused again"""
    again: float = 0.0
    """seconds after which to come again, where the target says so"""
    taken: int = 0
    """changes, the first of the batch, that were taken although the rest failed"""


class SinkTarget(Protocol):
    """Takes changes."""

    grace: float
    """seconds that a delivery which is on its way has when the crawl ends in order"""

    async def begin(self, row: SinkRow | None) -> None:
        """Go on behind what is stored of the sink; None: it is a new one. OSError: the disk failed."""

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        """Deliver all of them, or the first ones, or none."""

    def place(self) -> dict[str, int]:
        """Fields of the sink's row that say where it goes on."""

    async def close(self) -> None:
        """Give up what is open."""


class StatelessTarget:
    """A target that remembers nothing: the position of its sink says it all."""

    grace = GRACE

    async def begin(self, row: SinkRow | None) -> None:
        """Nothing is open between two deliveries, or can be opened then."""

    def place(self) -> dict[str, int]:
        return {}

    async def close(self) -> None:
        """Nothing is open."""


def json_lines(lines: Sequence[Line]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class FileTarget(StatelessTarget):
    """Files of JSON lines."""

    def __init__(self, files: SinkFiles) -> None:
        self.files = files

    async def begin(self, row: SinkRow | None) -> None:
        if row is None:
            await asyncio.to_thread(self.files.begin_anew)
        else:
            await asyncio.to_thread(self.files.begin, row.file, row.length)

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        try:
            await asyncio.to_thread(self.files.write, json_lines(lines))
        except OSError as error:
            return DeliveryOutcome(f"{error.filename or self.files.directory}: {error.strerror}")
        return DeliveryOutcome()

    def place(self) -> dict[str, int]:
        return {"file": self.files.file, "length": self.files.length}


class WebhookTarget(StatelessTarget):
    """A URL that gets {"sink", "changes"} by POST."""

    def __init__(self, name: str, url: str, secret: str, client: WebhookClient, now: Callable[[], float]) -> None:
        self._name = name
        self._url = url
        self._secret = signing_key(secret)
        self._client = client
        self._now = now

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        body = json.dumps({"sink": self._name, "changes": lines}).encode()
        try:
            status, again = await self._client.post(self._url, body, self.headers(body))
        except TheirError as error:
            return DeliveryOutcome(str(error))
        if 200 <= status < 300:
            return DeliveryOutcome()
        refused = 300 <= status < 500 and status not in LATER
        return DeliveryOutcome(f"http-{status}", len(lines) if refused else 0, again)

    def headers(self, body: bytes) -> dict[str, str]:
        """The headers of a delivery, its signature among them where there is a secret."""
        name = f"msg_{hashlib.blake2b(body, digest_size=16).hexdigest()}"
        time = str(int(self._now()))
        headers = {"Content-Type": "application/json", "webhook-id": name, "webhook-timestamp": time}
        if self._secret:
            digest = hmac.digest(self._secret, f"{name}.{time}.".encode() + body, "sha256")
            headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
        return headers

    async def close(self) -> None:
        await self._client.close()


class CommandTarget(StatelessTarget):
    """A command that gets JSON lines on its input."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        error = await feed(self._command, json_lines(lines))
        refused = error.startswith("exit code ") and error != f"exit code {TEMPORARY}"
        return DeliveryOutcome(error, len(lines) if refused else 0)


class PluginTarget(StatelessTarget):
    """A callable of an installed package that gets a list of changes, in a thread.

    What it raises, and what takes longer than `patience` seconds, has not been delivered. A call that hangs cannot be
    ended: nothing more is delivered until it returns. The end of the process does not wait for it.
    """

    def __init__(self, take: Callable[[list[dict[str, Any]]], object], patience: float = PATIENCE) -> None:
        self._take = take
        self._patience = patience
        self._call: asyncio.Future[object] | None = None

    async def deliver(self, lines: Sequence[Line]) -> DeliveryOutcome:
        if self._call is not None and not self._call.done():
            return DeliveryOutcome("the plug-in has not returned from an earlier call", again=self._patience)
        self._call = _in_daemon(partial(self._take, [dict(line) for line in lines]))
        done, _ = await asyncio.wait([self._call], timeout=self._patience)
        if not done:
            return DeliveryOutcome("timeout")
        error = self._call.exception()
        return DeliveryOutcome(repr(error)[:200] if error is not None else "")

    async def close(self) -> None:
        if self._call is not None:
            self._call.cancel()  # nobody is told when it returns


def _in_daemon(call: Callable[[], object]) -> asyncio.Future[object]:
    """Call in a thread that does not hold the end of the process up."""
    result: Future[object] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, name="sink", daemon=True).start()
    return asyncio.wrap_future(result)
