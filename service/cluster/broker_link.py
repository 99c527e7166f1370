"""The connection of a process to the broker of its cluster: core NATS, and the bucket of membership.

A broker that is lost stops nothing: what is published meanwhile is dropped (senders send again what they get no answer
to), and the connection is made anew for as long as the process lives. A peer that died is noticed within seconds.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from xyro.wire.errors import InputError, MachineError
from xyro.wire.text import LOG_FIELDS

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js.client import JetStreamContext

    from xyro.wire.clock import Clock

PORT = 4222
PING_SECONDS, MISSED_PINGS = 2, 2
"""a broker that answers so many pings of so many seconds not at all is lost (the client's own default: minutes)"""
RECONNECT_SECONDS = 0.5
REACH_SECONDS = 5.0
"""for the first connection of a command, which does not wait for a broker that is away"""
PENDING_BYTES = 16 << 20
"""published and not yet written to the socket; what does not fit is dropped, as anything may be"""
_log = logging.getLogger("xyro")
Receive = Callable[["Msg"], Awaitable[None]]


def check_url(urls: str) -> str:
    """Return the URL of a broker, or those of its servers with commas between them, as they are.

    InputError: it is none, or leads beyond this machine without TLS and a token.
    """
    for url in urls.split(","):
        _check(url)
    if len({urlsplit(url).scheme for url in urls.split(",")}) > 1:
        raise InputError(f"--join {without_tokens(urls)}: the servers of one broker have TLS, all or none")
    return urls


def _check(url: str) -> None:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port or PORT
    except ValueError:
        host, port = "", 0
    if parts.scheme not in ("nats", "tls") or not host:
        raise InputError(
            f"--join {without_tokens(url)}: no broker's URL; write nats://HOST:{PORT} or tls://TOKEN@HOST:{PORT}"
        )
    if not is_loopback(host) and (parts.scheme != "tls" or not parts.username):
        raise InputError(
            f"--join {without_tokens(url)}: a broker beyond this machine needs TLS and a token: "
            f"tls://TOKEN@{host}:{port}, with --ca FILE; `xyro hub` there prints the line"
        )


def is_loopback(host: str) -> bool:
    """Tell whether a host of a URL is this machine's own loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def without_tokens(urls: str) -> str:
    """The URLs without their tokens, for lines that are shown."""
    return ",".join(url.rpartition("@")[2] for url in urls.split(","))


class BrokerLink:
    """One connection. `open` makes it; who waits for a broker that is away opens with `wait`."""

    def __init__(self, client: Client, url: str) -> None:
        self.client = client
        self.url = without_tokens(url)
        self.dropped = 0
        """messages that were not handed to the broker, which was away or slow"""
        self._clock: Clock | None = None
        """of the log; None: it is not told"""
        self._lost_at: float | None = None
        """monotonic: since when the broker is away"""

    @classmethod
    async def open(cls, url: str, ca: Path | None = None, name: str = "xyro", wait: bool = False) -> BrokerLink:
        """Connect. `wait`: for as long as it takes. InputError: the URL, or the file `ca`; MachineError: no broker."""
        try:
            from nats.aio.client import Client
            from nats.errors import Error
        except ImportError:
            raise InputError("--join needs the broker's client: pip install 'xyro[cluster]'") from None
        options: dict[str, Any] = {"tls": _tls(ca)} if urlsplit(check_url(url)).scheme == "tls" else {}
        client = Client()
        link = cls(client, url)
        try:
            await client.connect(
                url.split(","),
                name=name,
                connect_timeout=int(REACH_SECONDS),
                ping_interval=PING_SECONDS,
                max_outstanding_pings=MISSED_PINGS,
                reconnect_time_wait=RECONNECT_SECONDS,  # type: ignore[arg-type]  # it sleeps so long: any number
                max_reconnect_attempts=-1 if wait else 1,
                pending_size=PENDING_BYTES,
                error_cb=_ignore,
                disconnected_cb=link._note_loss,
                reconnected_cb=link._note_return,
                **options,
            )
        except (OSError, Error) as error:
            await client.close()
            raise MachineError(
                f"{without_tokens(url)}: no broker answers there ({error}); `xyro hub` starts one"
            ) from error
        return link

    def log_losses(self, clock: Clock) -> None:
        """Say in the log from now on when the broker goes away, and when it is back."""
        self._clock = clock

    async def _note_loss(self) -> None:
        if self._clock is None or self._lost_at is not None or self.client.is_closed:  # the latter: by ourselves
            return
        self._lost_at = self._clock.monotonic()
        text = "the broker %s is away: this node reads on, and messages for other nodes wait"
        _log.warning(text, self.url, extra={LOG_FIELDS: {"event": "broker-away", "broker": self.url}})

    async def _note_return(self) -> None:
        if self._clock is None or self._lost_at is None:
            return
        seconds, self._lost_at = round(self._clock.monotonic() - self._lost_at, 1), None
        fields = {"event": "broker-back", "broker": self.url, "seconds": seconds}
        _log.warning("the broker %s is back; it was away for %.1f s", self.url, seconds, extra={LOG_FIELDS: fields})

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Hand a message to the broker, or drop it where that is away: whoever misses it is sent it again."""
        from nats.errors import Error

        if not self.client.is_connected:
            self.dropped += 1
            return
        try:
            await self.client.publish(subject, data, reply)
        except (OSError, Error):
            self.dropped += 1

    async def subscribe(self, subject: str, receive: Receive, queue: str = "") -> Subscription:
        """Have `receive` called for each message; of those in one `queue` one gets it."""
        return await self.client.subscribe(subject, queue, cb=receive)

    def jetstream(self, patience: float = REACH_SECONDS) -> JetStreamContext:
        """The interface of buckets."""
        return self.client.jetstream(timeout=patience)

    async def close(self) -> None:
        """Give up the connection; what was published before is written."""
        from nats.errors import Error

        try:
            if self.client.is_connected:
                await self.client.flush(timeout=1)
        except (OSError, Error):
            self.dropped += 1
        await self.client.close()


async def _ignore(error: Exception) -> None:
    """A broker that is away is no error of ours: `connected` tells, and status shows it."""
    _log.debug("broker: %s", error or type(error).__name__)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """asyncio warns of how the client ends each connection over TLS, which harms nothing."""
    return "eof_received" not in str(record.msg)


def _tls(ca: Path | None) -> ssl.SSLContext:
    logging.getLogger("asyncio").addFilter(_is_worth_saying)
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"--ca {ca}: {error}; name the certificate that `xyro hub` made") from error
