"""One order -> one Answer: a conditional GET, its headers judged, its body read as far as it is worth it.

The steps of `fetch`, each of which may end it with a failure class (xyro/failures.py):

1. the URL alone: suffixes not worth reading, the guard's verdict;
2. the headers: a challenge that says so, status, validators, redirect, media type (what is no document is dropped
   here; the text of a refusal is looked at, for it may be a challenge);
3. the first bytes: HTML, XML, DTD or nothing for us; a packed sitemap is unpacked;
4. the body, decoded: the links of HTML are found while it arrives and it is forgotten; XML and DTD are kept whole.

A body that ends early (`truncated`) or is cut at a cap of ours (`too-large`, `ratio-too-large`) keeps its links but has
no signature. Where a header stands twice, the first one counts. Nothing here waits, retries or follows: that is for
pool and page node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Collection, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from xyro import challenges, maintext
from xyro.answer import Answer
from xyro.body import READABLE, Body, LongPages, Sitemaps
from xyro.challenges import FEW, REFUSALS, SMALL, SOME, TELLING, TINY, TITLE, TITLE_WITHIN
from xyro.decode import Caps, coding_word
from xyro.doctype import HTML, is_gzip, is_sitemap, kind_of, readable
from xyro.headers import (
    conditions,
    failure_of,
    fresh_for,
    media_type,
    mitigated,
    retry_after,
    robots_words,
    validator,
)
from xyro.hubs import websub
from xyro.links import HrefCache, LinkExtractor, Shapes
from xyro.page_client import PageClient, Reply
from xyro.page_copy import PageCopy
from xyro.site_entries import SignatureKind, SiteEntries, SiteOptions, is_of_bytes, private_names
from xyro.skeletons import skeleton
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError
from xyro.wire.messages import EMPTY, NO_LINKS, FetchOrder, Kind, Priority
from xyro.wire.urls import authority, host_of, resolve, suffix_of

if TYPE_CHECKING:
    from xyro.page_archive import PageArchive
    from xyro.page_plug_ins import PagePlugIns
    from xyro.request_signing import RequestSigner

ROBOTS_CAPS = Caps(size=500 * 1024)
"""RFC 9309 2.5: at least 500 KiB of a robots.txt are read."""
MANY = 4096
"""Links of a page that is not over yet, from which on it is a long one (LongPages): one page of hundreds has them."""
SLICE = 64 * 1024
"""Bytes of HTML that are parsed at once: a packed body comes in one piece of 8 MiB, which takes seconds."""
SEVERAL = 512
"""links of a page from which on its next pieces are parsed in steps"""
LONG = 2 * SLICE
"""Bytes of HTML from which on a page is no ordinary one, beside which long ones give way."""
AT_ONCE = 8
"""steps in which the end of a page is parsed before others have their turns: a thousand links, 10 ms"""
LONG_COPIES = 8
"""reads at a time whose bodies are kept for their text beyond the length of most"""
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 307, 308})
_EMPTY: Final = frozenset({204, 205})
_CUT: Final = {"disconnect": "disconnect", "timeout": "time", "slow-body": "time", **READABLE}


class Fetcher:
    """`signature`: MD5 of the bytes (P1), or of HTML's main text, or of its links; `skip_suffixes`: not even asked for
    (lower case, without dot); `cache`: of resolved links, may be shared by all fetchers on one thread; `words`: links
    next to one of them are marked (LINK_FOCUSED). Closes its client."""

    def __init__(
        self,
        client: PageClient,
        clock: Clock,
        *,
        signature: SignatureKind = "bytes",
        skip_suffixes: Collection[str] = (),
        fold_slashes: bool = True,
        cache: HrefCache | None = None,
        words: frozenset[str] = frozenset(),
        archive: PageArchive | None = None,
        plug_ins: PagePlugIns | None = None,
        signer: RequestSigner | None = None,
        sites: SiteEntries | None = None,
    ) -> None:
        self._client = client
        self._signer = signer
        self._sites = SiteEntries() if sites is None else sites
        self._archive = archive
        self._plug_ins = plug_ins
        self._clock = clock
        self._signature: SignatureKind = signature
        self._skip = frozenset(skip_suffixes)
        self._fold = fold_slashes
        self._cache = HrefCache() if cache is None else cache
        self._words = words
        self._shapes = Shapes()
        self._sitemaps = Sitemaps(client.limits.body.size)
        self._long_copies = 0
        self._long_pages = LongPages(client.limits.slow_window / 2, clock)

    async def fetch(self, order: FetchOrder) -> Answer:
        """One GET of the order's URL. Raises nothing for what the web does; cancellation closes the connection."""
        answer = Answer(self._clock.time())
        if self._archive is None and self._plug_ins is None:
            await self._timed(answer, self._fetch(order, answer))
            return answer
        copy = PageCopy(order.refused)
        order = order if self._archive is None else self._archive.asking(order)
        try:
            await self._timed(answer, self._fetch(order, answer, copy))
            if self._plug_ins is not None and copy.body and not answer.error and not order.probe:
                await self._plug_ins.look_at(order.url, copy, answer)
            if self._archive is not None:
                await self._archive.keep(None if order.probe else order.page, order.url, copy, answer)
        finally:
            self._long_copies -= copy.long
        return answer

    async def fetch_robots(self, url: str) -> Answer:
        """GET a robots.txt; the first 500 KiB are in Answer.body. A redirect is in Answer.location: the next hop is an
        order of its own (hops.py)."""
        answer = Answer(self._clock.time())
        copy = PageCopy() if self._archive is not None else None
        await self._timed(answer, self._fetch_robots(url, answer, copy))
        if self._archive is not None and copy is not None:
            await self._archive.keep(None, url, copy, answer)
        return answer

    def follow(self, sites: SiteOptions) -> None:
        """Ask hosts by other entries, from the next request to each on."""
        self._sites.follow(sites)
        self._client.follow(self._sites.proxy if self._sites.on else None)
        if self._archive is not None:
            self._archive.follow(private_names(sites), is_of_bytes(sites, self._signature))

    def sign(self, host: str) -> None:
        """Sign requests to `host` (authority) from now on, where hosts that show challenges get that."""
        if self._signer is not None:
            self._signer.add(host)

    def knows(self, url: str) -> bool:
        """Tell whether `address` has its answer without asking a name server."""
        return self._client.resolver.knows(host_of(url))

    def expect(self, host: str, seconds: float) -> None:
        self._client.expect(host, seconds)

    def known_for(self, url: str) -> float:
        """Seconds for which `address` has its answer without asking a name server."""
        return self._client.resolver.known_for(host_of(url))

    async def address(self, url: str) -> str:
        """The address that the URL's host resolves to (cached), empty where it has none."""
        try:
            return await self._client.resolver.address(host_of(url))
        except TheirError:
            return ""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST to `url` past the guard; the answer's body is dropped. Any status is a good answer."""
        answer = Answer(self._clock.time())
        await self._timed(answer, self._post(url, body, headers, answer))
        return answer

    async def close(self) -> None:
        await self._client.close()
        if self._plug_ins is not None:
            self._plug_ins.close()
        if self._archive is not None:
            await self._archive.close()

    async def _timed(self, answer: Answer, reading: Awaitable[None]) -> None:
        began = self._clock.monotonic()
        try:
            await reading
        except TheirError as error:
            answer.error, answer.detail = error.kind, error.detail
            answer.truncated = _CUT.get(error.kind, "") if answer.status else ""
        now = self._clock.monotonic()
        answer.ended = self._clock.time()
        answer.received_at = min(max(answer.received_at, began), now) if answer.received_at else now
        answer.duration = answer.received_at - began
        if answer.status and answer.size <= LONG:
            self._long_pages.note_other(now)

    async def _fetch(self, order: FetchOrder, answer: Answer, copy: PageCopy | None = None) -> None:
        url = order.url
        if self._skip and suffix_of(url) in self._skip:
            raise TheirError("not-readable", "a suffix that is not worth reading")
        self._check(url)
        asked = conditions(order)
        part = order.priority is Priority.BLOCKING  # a loader wants it whatever it is called: .mod, .ent, text/plain
        reply = await self._client.get(url, self._signed(url, asked))
        if copy is not None:
            copy.reply = reply
        try:
            _note(reply, answer)
            self._check_signature(url, reply)
            if vendor := mitigated(reply.headers):
                answer.retry_after = self._retry_after(reply.headers)
                raise _challenge(answer, vendor)
            if reply.status in REFUSALS:
                await self._look_behind(reply, answer)
            if self._has_body(reply, answer, url, bool(asked), part):
                await self._read(reply, answer, order, copy)
        except TheirError as error:
            await reply.drop()
            if error.kind == "challenge" and answer.vendor != EMPTY and self._begins_to_sign(url):
                answer.vendor, answer.retry_after = "", 0.0
                raise TheirError("signature-asked", f"a challenge ({error.detail})") from None
            raise
        except BaseException:
            reply.close()
            raise
        else:
            await reply.drop()
        finally:
            answer.bytes, answer.received_at = reply.received, reply.ended

    def _signed(self, url: str, headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Headers of one request."""
        headers = self._sites.headers(url, headers) if self._sites.on else headers
        return headers if self._signer is None else self._signer.headers(url, headers)

    def _begins_to_sign(self, url: str) -> bool:
        """Tell whether the host of a URL gets signatures from now on, and got none before."""
        return self._signer is not None and self._signer.add(authority(url))

    def _check_signature(self, url: str, reply: Reply) -> None:
        """TheirError: it was refused because it had no signature."""
        if self._signer is not None and self._signer.asked(url, reply):
            raise TheirError("signature-asked", reply.headers["Accept-Signature"][:200])

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], answer: Answer) -> None:
        signed = headers if self._signer is None else self._signer.headers(url, headers)
        reply = await self._client.post(url, body, signed or headers)
        _note(reply, answer)
        answer.retry_after = self._retry_after(reply.headers)
        await reply.drop()
        answer.bytes, answer.received_at = reply.received, reply.ended

    async def _fetch_robots(self, url: str, answer: Answer, copy: PageCopy | None) -> None:
        self._check(url)
        reply = await self._client.get(url, self._signed(url, None))
        if copy is not None:
            copy.reply = reply
        try:
            _note(reply, answer)
            self._check_signature(url, reply)
            if reply.status in _REDIRECTS:
                answer.retry_after = self._retry_after(reply.headers)
                answer.location = self._target(reply, url)
                if answer.location == url:
                    raise TheirError("redirect-loop", "a redirect to itself")
            elif failure := failure_of(reply.status):
                answer.retry_after = self._retry_after(reply.headers)
                raise TheirError(failure)
            else:
                await _read_robots(reply, answer)
        finally:
            await reply.drop()
            answer.bytes, answer.received_at = reply.received, reply.ended

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
                answer.hubs, answer.topic = websub(reply.values("Link"), url, self._fold)
            answer.mime, answer.charset = media_type(headers.get("Content-Type", ""))
            if not part and not self._is_parsed(answer.mime) and readable(answer.mime, url) is False:
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

    def _is_parsed(self, mime: str) -> bool:
        """Tell whether a plug-in parses pages of this media type."""
        return self._plug_ins is not None and self._plug_ins.parses(mime)

    def _target(self, reply: Reply, url: str) -> str:
        location = reply.headers.get("Location", "")
        target = resolve(url, location, fold_slashes=self._fold) if location else None
        if target is None:
            raise TheirError("redirect-bad", f"Location: {location[:200]}")
        return target

    async def _look_behind(self, reply: Reply, answer: Answer) -> None:
        """Raise a challenge if the text of a refusal is one. What cannot be read of it is none."""
        mime, _ = media_type(reply.headers.get("Content-Type", ""))
        if mime not in ("text/html", "application/xhtml+xml", "application/json", ""):
            return
        body, text = Body(reply, self._client.limits.body), b""
        try:
            while len(text) < SMALL and (piece := await body.piece()):
                text += piece
        except TheirError:
            return
        if vendor := challenges.by_body(reply.status, text[:SMALL]):
            answer.retry_after = self._retry_after(reply.headers)
            raise _challenge(answer, vendor)

    async def _read(self, reply: Reply, answer: Answer, order: FetchOrder, copy: PageCopy | None) -> None:
        url, part = order.url, order.priority is Priority.BLOCKING
        body = Body(reply, self._client.limits.body)
        head = await body.head()
        parsed = copy is not None and not part and not order.probe and self._is_parsed(answer.mime)
        if is_gzip(answer.mime, url, head) and not parsed:
            body.unpack(head)
            head = await body.head()
        answer.kind = Kind.OTHER if parsed and answer.mime not in HTML else kind_of(answer.mime, url, head)
        if part and answer.kind is Kind.OTHER:
            answer.kind = Kind.XML
        if answer.kind is Kind.HTML:
            await self._read_html(body, head, answer, order, copy)
        elif parsed and copy is not None and answer.kind is Kind.OTHER:
            await _read_whole(body, head, answer)
            copy.body, answer.body = answer.body or b"", None
        elif order.probe:
            raise TheirError("not-readable", "a URL that cannot exist shows a document")
        elif answer.kind is Kind.OTHER:
            raise TheirError("not-readable", "first bytes of nothing we read")
        elif is_sitemap(url, head):
            _keep(await self._sitemaps.read(body, head), answer)
        else:
            await _read_whole(body, head, answer)
        if body.failure:
            answer.signature = b""
            raise TheirError(body.failure)

    async def _read_html(
        self, body: Body, piece: bytes, answer: Answer, order: FetchOrder, copy: PageCopy | None
    ) -> None:
        url, part = order.url, order.priority is Priority.BLOCKING
        extractor = LinkExtractor(
            url, fold_slashes=self._fold, resolver=self._cache, charset=answer.charset, words=self._words
        )
        digest = hashlib.md5(usedforsecurity=False)
        pieces: list[bytes] | None = []
        signature = self._sites.signature(url, self._signature) if self._sites.on else self._signature
        limit = maintext.MAX_BODY if signature == "text" or part or copy is not None else SMALL
        while piece and extractor.references <= MANY:
            if copy is not None and answer.size + len(piece) > limit:
                limit = self._widened(copy, limit)
            pieces = _note_piece(piece, answer, digest, pieces, limit)
            if len(piece) > SLICE or extractor.references > SEVERAL:
                await self._long_pages.go(extractor.steps(piece), body)
            else:
                extractor.feed(piece)
            piece = await body.piece()
        if piece:
            async with self._long_pages.place(body):
                async for more in self._long_pages.pieces(piece, body):
                    if copy is not None and answer.size + len(more) > limit:
                        limit = self._widened(copy, limit)
                    pieces = _note_piece(more, answer, digest, pieces, limit)
                    await self._long_pages.go_in_place(extractor.steps(more), body)
                await self._long_pages.go_in_place(extractor.last_steps(), body)
        else:
            steps = extractor.last_steps()
            if sum(1 for _ in islice(steps, AT_ONCE)) == AT_ONCE:
                await self._long_pages.go(steps, body)
        found = extractor.close()
        answer.links, answer.charset = found.links, found.charset
        answer.noindex |= found.noindex
        answer.nofollow |= found.nofollow
        if not answer.hubs:  # Link headers come first (WebSub section 4)
            answer.hubs, answer.topic = found.hubs, found.topic
        if pieces is not None and part:  # a key, an entity: text/html is what many servers call any file
            answer.body = b"".join(pieces)
        if copy is not None and pieces is not None and not body.failure:
            copy.body, copy.charset = b"".join(pieces), found.charset
        if not part and not body.failure:
            self._doubt(answer, order, pieces)
        if signature == "links":
            answer.signature = _of_links(found.links.urls)
            return
        text = None
        if pieces is not None and signature == "text":
            text = maintext.signature(b"".join(pieces), found.charset)
        answer.signature = text or digest.digest()

    def _widened(self, copy: PageCopy, limit: int) -> int:
        """Bytes of a body that are kept, now that more come than of most."""
        if not copy.long and self._archive is not None and self._archive.keeps_texts:
            if self._long_copies >= LONG_COPIES:
                return limit
            self._long_copies += 1
            copy.long = True
        return maintext.LONG.body if copy.long else limit

    def _doubt(self, answer: Answer, order: FetchOrder, pieces: list[bytes] | None) -> None:
        """Look at the text of what may be no page. Raises a challenge. Ordinary pages cost a hash of their links."""
        urls, url = answer.links.urls, order.url
        recurs = self._shapes.recurs(url[: url.find("/", 8)], url, urls)
        if pieces is None or answer.size > SMALL or (len(urls) > SOME and not recurs and not order.probe):
            return
        body = b"".join(pieces)
        bare = len(urls) <= FEW and answer.size <= TINY
        telling = TELLING().search(body) if bare else len(urls) <= SOME and TITLE().search(body, 0, TITLE_WITHIN)
        if telling and (vendor := challenges.by_body(answer.status, body)):
            raise _challenge(answer, vendor)
        if recurs or order.probe:
            answer.skeleton = skeleton(url, body)

    def _retry_after(self, headers: Mapping[str, str]) -> float:
        text = headers.get("Retry-After", "")
        return retry_after(text, self._clock.time()) if text else 0.0


def _challenge(answer: Answer, vendor: str) -> TheirError:
    """The failure of an answer that is no page; nothing that it shows is the page's."""
    answer.vendor, answer.links, answer.hubs, answer.topic = vendor, NO_LINKS, (), ""
    answer.etag = answer.last_modified = ""
    return TheirError("challenge", vendor)


def _note_piece(
    piece: bytes, answer: Answer, digest: hashlib._Hash, pieces: list[bytes] | None, limit: int
) -> list[bytes] | None:
    """For the signature; returns `pieces`, None once there are more than `limit` bytes."""
    answer.size += len(piece)
    digest.update(piece)
    if pieces is None or answer.size > limit:
        return None
    pieces.append(piece)
    return pieces


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
    answer.status, answer.address, answer.coding = reply.status, reply.address, coding_word(reply.headers)
    if "X-Robots-Tag" in reply.headers:
        answer.noindex, answer.nofollow = robots_words(reply.values("X-Robots-Tag"))
