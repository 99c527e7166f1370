"""The seam between fetcher and network: what a client and its replies do.

Two clients stand behind it, `[fetch] client` chooses: fast_client.py, our own protocol over httptools, and client.py,
over aiohttp. Neither follows redirects, sends a request twice, keeps cookies, trusts the environment or decodes bodies;
TLS is always verified and every connection begins at the guard. What both share: exchange.py.
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Mapping
from typing import Protocol

from xyro.decode import ACCEPTED
from xyro.exchange import ClientLimits
from xyro.guard import Guard
from xyro.proxy import ProxyOf
from xyro.resolver import Resolver
from xyro.tape import Tape

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5"
_HUNG_UP = (None, errno.ECONNRESET, errno.EPIPE)
"""A server that shares no protocol version or cipher with us often just closes in the handshake."""
_KINDS_OF_ERRNO = {errno.ECONNREFUSED: "connect-refused", errno.ETIMEDOUT: "connect-timeout"}


class Reply(Protocol):
    """An answer whose headers are here. Its body is read piece by piece; `drop` or `close` ends it in any case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """READ_HEADERS of headers.py at least, by the names that stand there; the first where one stands twice."""

    def values(self, name: str) -> list[str]:
        """All values of a header, in their order."""

    @property
    def address(self) -> str:
        """The address that answered."""

    @property
    def tape(self) -> Tape | None:
        """The answer as it came, where it is kept."""

    @property
    def whole(self) -> bool:
        """Tell whether the answer came to its end."""

    @property
    def request(self) -> bytes:
        """The head of the request as it was sent."""

    @property
    def received(self) -> int:
        """Bytes that came for this answer so far, headers and framing included."""

    @property
    def ended(self) -> float:
        """Monotonic seconds: when its last byte came, or it failed; 0.0 while it goes on."""

    async def read(self) -> bytes:
        """The next bytes of the body as they were sent (coded), empty at its end. TheirError if it breaks."""

    def widen(self, wire: int) -> None:
        """Raise the number of bytes that this answer may have; never lower it."""

    def pause(self, paused: bool) -> None:
        """Stop the answer's clocks while it waits for us, or let them go on."""

    async def drop(self, tiny: int = 16 * 1024) -> None:
        """End the answer. A rest of at most `tiny` announced bytes is read, which keeps the connection for the next
        page; otherwise the connection is closed."""

    def close(self) -> None:
        """End the answer at once: a connection whose body was not read to its end is closed."""


class PageClient(Protocol):
    """Sends one request at a time and never again; made inside a running loop, and closed. The resolver is its
    owner's."""

    guard: Guard
    resolver: Resolver
    limits: ClientLimits

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Send GET `url` (canonical, without userinfo) and wait for the headers. TheirError with the failure class."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send POST `url` with a body, as `get`: notices to subscribers, requests to WebSub hubs."""

    def expect(self, host: str, seconds: float) -> None:
        """The next request to `host` (authority) comes in so many seconds; infinite: nobody knows of one."""

    def follow(self, proxy_of: ProxyOf | None) -> None:
        """Lead connections through other proxies from now on, or through none."""

    async def close(self) -> None:
        """Close every connection; what is still being read ends as `disconnect`."""


def request_headers(user_agent: str, contact: str) -> dict[str, str]:
    """The headers of every request, beside Host."""
    headers = {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPTED}
    if contact:
        headers["From"] = contact
    return headers


def check_tls(tls: ssl.SSLContext | None) -> None:
    """ValueError for a context that would read from anyone."""
    if tls is not None and (tls.verify_mode is not ssl.CERT_REQUIRED or not tls.check_hostname):
        raise ValueError("tls: the context has to verify certificates and host names")


def connect_failure(error: Exception, *, secure: bool) -> str:
    """The failure class of a connection that was not made; `secure`: over TLS."""
    number = error.errno if isinstance(error, OSError) else 0
    if isinstance(error, ssl.SSLError) or (secure and number in _HUNG_UP):
        return "tls"
    return _KINDS_OF_ERRNO.get(number or 0, "connect-failed")
