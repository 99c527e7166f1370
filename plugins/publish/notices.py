"""Delivers a notice to a subscriber's URL: a POST of JSON through the reader's pool. (Commands: command_feed.py.)

A POST goes where a person asked for it, so robots.txt, which speaks to crawlers that read, is not asked; one goes to a
host at a time (notice_outbox.py), and in the turn of that host: its delays, and Retry-After, hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from xyro.wire.errors import TheirError

if TYPE_CHECKING:
    from xyro.posts import Posted

PATIENCE = 600.0
"""seconds until a POST is answered, the delay of its host included"""
_JSON = {"Content-Type": "application/json"}
Post = Callable[[str, bytes, Mapping[str, str]], Awaitable["Posted"]]


async def post(send: Post, url: str, notice: bytes) -> tuple[str, float]:
    """(empty if it was taken (2xx), else why not; seconds until its host may be contacted again)"""
    try:
        async with asyncio.timeout(PATIENCE):
            status, again = await send(url, notice, _JSON)
    except TimeoutError:
        return "timeout", 0.0
    except TheirError as error:
        return error.kind, 0.0
    return "" if 200 <= status < 300 else f"http-{status}", again
