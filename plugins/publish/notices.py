"""Delivers a notice to a subscriber's URL: a POST of JSON. (Commands: command_feed.py.)

The operator names the URL, as that of a webhook: the same client sends it (plugins/__init__.py hands it over). One goes
to a host at a time, and its Retry-After holds (notice_outbox.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from xyro.wire.errors import TheirError

if TYPE_CHECKING:
    from xyro.posts import Posted

_JSON = {"Content-Type": "application/json"}


class NoticeClient(Protocol):
    """Sends POSTs to receivers that the operator names."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """TheirError: it failed."""

    async def close(self) -> None:
        """Close its connections."""


async def post(client: NoticeClient, url: str, notice: bytes) -> tuple[str, float]:
    """(empty if it was taken (2xx), else why not; seconds until its host may be contacted again)"""
    try:
        status, again = await client.post(url, notice, _JSON)
    except TheirError as error:
        return error.kind, 0.0
    return "" if 200 <= status < 300 else f"http-{status}", again
