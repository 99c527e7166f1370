"""JSON over HTTP, as the interface on loopback and the listener for other machines both speak it.

What comes in is one JSON object, what goes out is JSON that no browser guesses at and nothing caches; an error is
{"error": "..."}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from crawl.unhurried import unhurried
from wire.errors import InputError

HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object that a request brings, in UTF-8, -16 or -32. InputError: it brings anything else."""
    try:
        given = json.loads(await request.read())
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(given, dict):
        raise InputError("the body is not a JSON object")
    return given


def answer(said: object, status: int = 200) -> web.Response:
    return web.json_response(said, status=status, headers=HEADERS)


async def listing(rows: Iterable[object], name: str = "") -> web.Response:
    """[rows], or {name: [rows]}, made and encoded some at a time: other work goes on meanwhile."""
    text = f"[{', '.join([json.dumps(row) async for row in unhurried(rows)])}]"
    if name:
        text = f'{{"{name}": {text}}}'
    return web.Response(text=text, content_type="application/json", headers=HEADERS)


def error(status: int, text: str, again: float = 0.0) -> web.Response:
    """`again`: seconds after which to come again, told with Retry-After; 0 says nothing of it."""
    headers = {**HEADERS, "Retry-After": str(math.ceil(again))} if again else HEADERS
    return web.json_response({"error": text}, status=status, headers=headers)
