"""aiohttp's exceptions, and what its parser complains about, as failure classes (xyro/failures.py). Pure."""

from __future__ import annotations

import re
import ssl

import aiohttp
from aiohttp.http_exceptions import BadStatusLine, LineTooLong

from xyro.page_client import connect_failure
from xyro.wire.errors import TheirError

_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength:[ \t]*(\d{1,12})[ \t]*(?:\r\n|$)")


def first_answer(data: bytes) -> bytes:
    """The first answer in `data` as far as its own head says how long it is; empty if that cannot be told."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return b""
    if head[9:12] in (b"204", b"304"):
        return head + end
    length = _LENGTH.search(head)
    return head + end + body[: int(length[1])] if length and len(body) >= int(length[1]) else b""


def kind(error: BaseException, *, secure: bool = False) -> str:
    """aiohttp's exceptions, and those that come through it, as failure classes. `secure`: over TLS."""
    if isinstance(error, TheirError):
        return error.kind
    if isinstance(error, (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch, ssl.SSLError)):
        return "tls"
    if isinstance(error, aiohttp.ClientConnectorError):
        return connect_failure(error, secure=secure)
    if isinstance(error, (aiohttp.ConnectionTimeoutError, TimeoutError)):
        return "connect-timeout"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "truncated"
    return "disconnect" if isinstance(error, (aiohttp.ClientConnectionError, OSError)) else "internal"


def framing(error: BaseException, spoke_http: bool) -> str:
    """The failure class of a complaint of aiohttp's parser; `spoke_http`: what came did begin as HTTP does."""
    if isinstance(error, LineTooLong) or "Too many headers" in str(error):
        return "headers-too-large"
    if isinstance(error, BadStatusLine) and not (spoke_http and "Expected HTTP/" in str(error)):
        return "bad-status"
    return "bad-framing"  # a status line expected where a body went on is a wrong length
