"""JSON over HTTP, as the interface on loopback and the listener for other machines both speak it.

What comes in is one JSON object, what goes out is JSON that no browser guesses at and nothing caches; an error is
{"error": "..."}.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from xyro.service.node.slicing import unhurried
from xyro.wire.errors import InputError

T = TypeVar("T")
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_THEIRS = (ConnectionError, HttpProcessingError, ClientPayloadError, web.RequestPayloadError)
"""what goes wrong because of the client"""


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], _THEIRS)


LOG = logging.getLogger("xyro.http")
"""For aiohttp's server. A client that speaks no HTTP gets 400 and not a line: anybody could fill the log with it."""
LOG.addFilter(_is_ours)


async def received(request: web.Request) -> bytes:
    """The body. InputError: it ended early (nobody may be left to hear that)."""
    try:
        return await request.read()
    except _THEIRS:
        raise InputError("the body ended early") from None


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object that a request brings, in UTF-8, -16 or -32. InputError: it brings anything else."""
    try:
        body = json.loads(await received(request))
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise InputError("the body is not a JSON object")
    return body


async def form_of(request: web.Request, form: type[T]) -> T:
    """Parse the body of an unknown client as a msgspec.Struct. What the form has not is skipped, what is of another
    type ends it: nothing is built of it. (Of 4 MB of `[],` `body_of` makes a million lists, in a second without a turn
    of the event loop.)
    """
    body = await received(request)
    try:
        return msgspec.json.decode(body.decode(json.detect_encoding(body)), type=form)
    except msgspec.ValidationError as error:
        raise InputError(f"the body is not of the form: {error}") from None
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None


def answer(payload: object, status: int = 200) -> web.Response:
    return web.json_response(payload, status=status, headers=HEADERS)


async def listing(rows: Iterable[object], name: str = "") -> web.Response:
    """[rows], or {name: [rows]}, made and encoded some at a time: other work goes on meanwhile."""
    text = f"[{', '.join([json.dumps(row) async for row in unhurried(rows)])}]"
    if name:
        text = f'{{"{name}": {text}}}'
    return web.Response(text=text, content_type="application/json", headers=HEADERS)


async def lines(rows: Iterable[object]) -> web.Response:
    """Rows as JSON lines, made and encoded some at a time."""
    text = "".join([f"{json.dumps(row)}\n" async for row in unhurried(rows)])
    return web.Response(text=text, content_type="application/x-ndjson", headers=HEADERS)


def error(status: int, text: str, again: float = 0.0) -> web.Response:
    """`again`: seconds after which to come again, told with Retry-After; 0 says nothing of it."""
    headers = {**HEADERS, "Retry-After": str(math.ceil(again))} if again else HEADERS
    return web.json_response({"error": text}, status=status, headers=headers)
