"""One order -> one Answer: a conditional GET, its headers judged, its body read as far as it is worth it.

The steps of `fetch`, each of which may end it with a failure class (xyro/failures.py):

1. the URL alone: suffixes not worth reading, the guard's verdict;
2. the headers: status, validators, redirect, media type (what is no document is dropped here);
3. the first bytes: HTML, XML, DTD or nothing for us; a packed sitemap is unpacked;
4. the body, decoded: the links of HTML are found while it arrives and it is forgotten; XML and DTD are kept whole.

A body that ends early (`truncated`) or is cut at our cap (`too-large`) keeps its links but has no signature. Where a
header stands twice, the first one counts. Nothing here waits, retries or follows (but for robots.txt): that is the
pool's and the page node's business.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Collection, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, Literal

from wire.clock import Clock
from wire.errors import TheirError
from wire.messages import FetchOrder, Kind
from wire.urls import host_of, resolve, suffix_of
from xyro import maintext
from xyro.answer import Answer
from xyro.client import Client, Reply
from xyro.decode import Caps, Decoder, codings_of
from xyro.doctype import SNIFF, is_gzip, kind_of, readable
from xyro.links import HrefCache, LinkExtractor

DAY = 86_400.0
ROBOTS_REDIRECTS = 5
ROBOTS_CAPS = Caps(size=500 * 1024)
"""RFC 9309 2.5: at least 500 KiB of a robots.txt are read."""
MAX_VALIDATOR = 1024
"""Longest ETag or Last-Modified (characters) that is stored and sent back."""

_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_EMPTY: Final = frozenset({204, 205})
_NAMED: Final = frozenset({401, 403, 404, 410, 429})
_READABLE: Final = {"truncated": "disconnect", "too-large": "length"}
"""Failures that leave a body worth keeping, and WARC's word for what happened to it."""
_CUT: Final = {"disconnect": "disconnect", "timeout": "time", "slow-body": "time", **_READABLE}


class Fetcher:
    """`signature`: MD5 of the bytes (P1), or of the main text of HTML; `skip_suffixes`: not even asked for (lower case,
    without dot); `cache`: of resolved links, may be shared by all fetchers on one thread. Closes its client."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        signature: Literal["bytes", "text"] = "bytes",
        skip_suffixes: Collection[str] = (),
        fold_slashes: bool = True,
        cache: HrefCache | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._text = signature == "text"
        self._skip = frozenset(skip_suffixes)
        self._fold = fold_slashes
        self._cache = HrefCache() if cache is None else cache

    async def fetch(self, order: FetchOrder) -> Answer:
        """One GET of the order's URL. Raises nothing for what the web does; cancellation closes the connection."""
        answer = Answer(self._clock.time())
        await self._timed(answer, self._fetch(order, answer))
        return answer

    async def fetch_robots(self, origin: str) -> Answer:
        """GET `origin`/robots.txt; at most 5 redirects are followed, each past the guard (RFC 9309 2.3.1.2). The first
        500 KiB are in Answer.body. `redirect-loop`: there were more."""
        answer = Answer(self._clock.time())
        await self._timed(answer, self._fetch_robots(f"{origin}/robots.txt", answer))
        return answer

    async def address(self, url: str) -> str:
        """The address that the URL's host resolves to (cached), empty where it has none."""
        try:
            return await self._client.resolver.address(host_of(url))
        except TheirError:
            return ""

    async def close(self) -> None:
        await self._client.close()

    async def _timed(self, answer: Answer, reading: Awaitable[None]) -> None:
        began = self._clock.monotonic()
        try:
            await reading
        except TheirError as error:
            answer.error, answer.detail = error.kind, error.detail
            answer.truncated = _CUT.get(error.kind, "") if answer.status else ""
        answer.ended = self._clock.time()
        answer.duration = self._clock.monotonic() - began

    async def _fetch(self, order: FetchOrder, answer: Answer) -> None:
        url = order.url
        if self._skip and suffix_of(url) in self._skip:
            raise TheirError("not-readable", "a suffix that is not worth reading")
        self._check(url)
        conditions = _conditions(order)
        reply = await self._client.get(url, conditions)
        try:
            self._note(reply, answer)
            if self._is_worth_reading(reply, answer, url, conditioned=bool(conditions)):
                await self._read(reply, answer, url)
        finally:
            answer.bytes = reply.received
            if reply.is_done or not answer.error ...
