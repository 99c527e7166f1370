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

import asyncio
import hashlib
from collections.abc import Awaitable, Collection, Mapping
from typing import Final, Literal, NamedTuple

from xyro import maintext
from xyro.answer import Answer
from xyro.body import READABLE, Body, Sitemaps
from xyro.client import Client, Reply
from xyro.decode import Caps
from xyro.doctype import is_gzip, is_sitemap, kind_of, readable
from xyro.headers import conditions, failure_of, fresh_for, media_type, retry_after, robots_words, validator
from xyro.hubs import websub
from xyro.links import HrefCache, LinkExtractor
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError
from xyro.wire.messages import FetchOrder, Kind, Priority
from xyro.wire.urls import authority, host_of, resolve, suffix_of

ROBOTS_REDIRECTS = 5
ROBOTS_CAPS = Caps(size=500 * 1024)
"""RFC 9309 2.5: at least 500 KiB of a robots.txt are read."""
SLICE = 64 * 1024
"""Bytes of HTML between two turns of the event loop: a packed body comes in one piece of 8 MiB, which takes seconds."""
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_EMPTY: Final = frozenset({204, 205})
_CUT: Final = {"disconnect": "disconnect", "timeout": "time", "slow-body": "time", **READABLE}


class Posted(NamedTuple):
    """The answer to a POST."""

    status: int
    again: float = 0.0
    """Retry-After: seconds for which the host wants to be left alone, 0 = it does not say"""


class Fetcher:
    """`signature`: MD5 of the bytes (P1), or of HTML's main text, or of its links; `skip_suffixes`: not even asked for
    (lower case, without dot); `cache`: of resolved links, may be shared by all fetchers on one thread; `words`: links
    next to one of them are marked (LINK_FOCUSED). Closes its client."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        signature: Literal["bytes", "text", "links"] = "bytes",
        skip_suffixes: Collection[str] = (),
        fold_slashes: bool = True,
        cache: HrefCache | None = None,
        words: frozenset[str] = frozenset(),
    ) -> None:
        self._client = client
        self._clock = clock
        self._text, self._linked = signature == "text", signature == "links"
        self._skip = frozenset(skip_suffixes)
        self._fold = fold_slashes
        self._cache = HrefCache() if cache is None else cache
        self._words = words
        self._sitemaps = Sitemaps(client.limits.body.size)
        self._unpacking = asyncio.Lock()
        """HTML of which more than a slice is here at once"""

    async def fetch(self, order: FetchOrder) -> Answer:
        """One GET of the order's URL. Raises nothing for what the web does; cancellation closes the connection."""
        answer = Answer(self._clock.time())
        await self._timed(answer, self._fetch(order, answer))
        return answer

    async def fetch_robots(self, url: str) -> Answer:
        """GET a robots.txt; at most 5 redirects within its host are followed, each past the guard (RFC 9309 2.3.1.2).
        The first 500 KiB are in Answer.body. `redirect-loop`: there were more. One to another host is told, not
        followed: that host has its turn."""
        answer = Answer(self._clock.time())
        await self._timed(answer, self._fetch_robots(url, answer))
        return answer

    def knows(self, url: str) -> bool:
        """Tell whether `address` has its answer without asking a name server."""
        return self._client.resolver.knows(host_of(url))

    async def address(self, url: str) -> str:
        """The address that the URL's host resolves to (cached), empty where it has none."""
        try:
            return await self._client.resolver.address(host_of(url))
        except TheirError:
            return ""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """POST to `url` past the guard; the answer's body is dropped. TheirError as `Client.post`."""
        reply = await self._client.post(url, body, headers)
        again = retry_after(reply.headers.get("Retry-After", ""), self._clock.time())
        await reply.drop()
        return Posted(reply.status, again)

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
        asked = conditions(order)
        part = order.priority is Priority.BLOCKING  # a loader wants it whatever it is called: .mod, .ent, text/plain
        reply = await self._client.get(url, asked)
        try:
            _note(reply, answer)
            if self._has_body(reply, answer, url, bool(asked), part):
                await self._read(reply, answer, url, part)
        except TheirError:
            await reply.drop()
            raise
        except BaseException:
            reply.close()
            raise
        else:
            await reply.drop()
        finally:
            answer.bytes = reply.received

    async def _fetch_robots(self, url: str, answer: Answer) -> None:
        host = authority(url)
        for _ in range(ROBOTS_REDIRECTS + 1):
            self._check(url)
            reply = await self._client.get(url)
            try:
                _note(reply, answer)
                if reply.status in _REDIRECTS:
                    url = answer.location = self._target(reply, url)
                    if authority(url) != host:
                        return
                    continue
                if failure := failure_of(reply.status):
                    answer.retry_after = self._retry_after(reply.headers)
                    raise TheirError(failure)
                await _read_robots(reply, answer)
                return
            finally:
                answer.bytes += reply.received
                await reply.drop()
        raise TheirError("redirect-loop", "more redirects of robots.txt than we follow")

    def _check(self, url: str) -> None:
        kind = self._client.guard.host_allowed(url)
        if kind:
            raise TheirError(kind, "refused before any contact")

    def _has_body(self, reply: Reply, answer: Answer, url: str, conditioned: bool, part: bool) -> bool:
        """Judge the headers. False: the answer is complete without a body; TheirError: it is none that can be used."""
        status, headers = reply.status, reply.headers
        if status == 200 or (200 < status < 300 and status not in _EMPTY and status != 206):
            answer.etag = validator(headers, "ETag")
            answer.last_modified = validator(headers, "Last-Modified")
            answer.fresh_for = fresh_for(headers)
            if "Link" in headers:
                answer.hubs, answer.topic = websub(headers.getall("Link"), url, self._fold)
            answer.mime, answer.charset = media_type(headers.get("Content-Type", ""))
            if not part and readable(answer.mime, url) is False:
                answer.kind = Kind.OTHER
                raise TheirError("not-readable", answer.mime)
            return True
        if status == 304 and conditioned:
            answer.etag, answer.last_modified = validator(headers, "ETag"), validator(headers, "Last-Modified")
            answer.fresh_for = fresh_for(headers)
            return False
        if status in _REDIRECTS:
            answer.retry_after = self._retry_after(headers)
            answer.location = self._target(reply, url)
            if answer.location == url:
                raise TheirError("redirect-loop", "a redirect to itself")
            return False
        if status in _EMPTY:
            return False
        answer.retry_after = self._retry_after(headers)
        raise TheirError(failure_of(status))

    def _target(self, reply: Reply, url: str) -> str:
        location = reply.headers.get("Location", "")
        target = resolve(url, location, fold_slashes=self._fold) if location else None
        if target is None:
            raise TheirError("redirect-bad", f"Location: {location[:200]}")
        return target

    async def _read(self, reply: Reply, answer: Answer, url: str, part: bool) -> None:
        body = Body(reply, self._client.limits.body)
        head = await body.head()
        if is_gzip(answer.mime, url, head):
            body.unpack(head)
            head = await body.head()
        answer.kind = kind_of(answer.mime, url, head)
        if part and answer.kind is Kind.OTHER:
            answer.kind = Kind.XML
        if answer.kind is Kind.HTML:
            await self._read_html(body, head, answer, url, part)
        elif answer.kind is Kind.OTHER:
            raise TheirError("not-readable", "first bytes of nothing we read")
        elif is_sitemap(url, head):
            _keep(await self._sitemaps.read(body, head), answer)
        else:
            await _read_whole(body, head, answer)
        if body.failure:
            answer.signature = b""
            raise TheirError(body.failure)

    async def _read_html(self, body: Body, piece: bytes, answer: Answer, url: str, part: bool) -> None:
        extractor = LinkExtractor(
            url, fold_slashes=self._fold, resolver=self._cache, charset=answer.charset, words=self._words
        )
        digest = hashlib.md5(usedforsecurity=False)
        pieces: list[bytes] | None = [] if self._text or part else None
        while piece:
            if len(piece) > SLICE:
                async with self._unpacking:  # one page after the other: each takes RAM, and all together no less time
                    while piece:
                        pieces = _note_piece(piece, answer, digest, pieces)
                        await _feed(extractor, piece)
                        piece = body.at_hand()
            else:
                pieces = _note_piece(piece, answer, digest, pieces)
                extractor.feed(piece)
            piece = await body.piece()
        found = extractor.close()
        answer.links, answer.charset = found.links, found.charset
        answer.noindex |= found.noindex
        answer.nofollow |= found.nofollow
        if not answer.hubs:  # Link headers come first (WebSub section 4)
            answer.hubs, answer.topic = found.hubs, found.topic
        if pieces is not None and part:  # a key, an entity: text/html is what many servers call any file
            answer.body = b"".join(pieces)
        if self._linked:
            answer.signature = _of_links(found.links.urls)
            return
        text = maintext.signature(b"".join(pieces), found.charset) if pieces is not None and self._text else None
        answer.signature = text or digest.digest()

    def _retry_after(self, headers: Mapping[str, str]) -> float:
        text = headers.get("Retry-After", "")
        return retry_after(text, self._clock.time()) if text else 0.0


def _note_piece(piece: bytes, answer: Answer, digest: hashlib._Hash, pieces: list[bytes] | None) -> list[bytes] | None:
    """For the signature; returns `held`, None once there is too much for a main text."""
    answer.size += len(piece)
    digest.update(piece)
    if pieces is None or answer.size > maintext.MAX_SIZE:
        return None
    pieces.append(piece)
    return pieces


async def _feed(extractor: LinkExtractor, piece: bytes) -> None:
    """Some at a time: others have their turn."""
    for start in range(0, len(piece), SLICE):
        extractor.feed(piece[start : start + SLICE])
        await asyncio.sleep(0)


def _of_links(urls: tuple[str, ...]) -> bytes:
    """MD5 of distinct links, whatever their order."""
    return hashlib.md5("\n".join(sorted(urls)).encode("utf-8", "replace"), usedforsecurity=False).digest()


async def _read_whole(body: Body, piece: bytes, answer: Answer) -> None:
    pieces = []
    while piece:
        pieces.append(piece)
        piece = await body.piece()
    _keep(b"".join(pieces), answer)


def _keep(whole: bytes, answer: Answer) -> None:
    answer.body = whole
    answer.size = len(whole)
    answer.signature = hashlib.md5(whole, usedforsecurity=False).digest()


async def _read_robots(reply: Reply, answer: Answer) -> None:
    """The lines that came are used, whatever became of the rest (RFC 9309 2.3.1.5)."""
    body = Body(reply, ROBOTS_CAPS)
    answer.mime, answer.charset = media_type(reply.headers.get("Content-Type", ""))
    await _read_whole(body, await body.head(), answer)
    if body.failure:
        answer.signature = b""
        answer.truncated = READABLE[body.failure]


def _note(reply: Reply, answer: Answer) -> None:
    answer.status, answer.address = reply.status, reply.address
    if "X-Robots-Tag" in reply.headers:
        answer.noindex, answer.nofollow = robots_words(reply.headers.getall("X-Robots-Tag"))
