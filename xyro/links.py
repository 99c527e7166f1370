"""A page's links, found while its body arrives.

Small pages (up to 256 KiB, nearly all) are held until they are whole and read by `scan`, which costs a third of the
parser; larger ones, and those that scan will not answer for, go through lxml's streaming target parser: no tree,
linear on hostile markup (reliability.md 0.2), a fresh parser per page. Both see the same tags, and the same rules
make links of them.

Elements: a, area (href), frame, iframe (src), link rel=alternate, next, canonical, base (the first valid one), meta
refresh, meta name=robots or xyro. A link to the page itself is a link; a fragment of the page ("#top", an empty href)
is not. Where a URL is shown twice the first kind counts, but a plain link outweighs nofollow, and both outweigh a
hint.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lxml import etree

from wire.messages import LINK_EXTERNAL, LINK_HINT, LINK_KIND_MASK, LINK_NOFOLLOW, MAX_LINKS, NO_LINKS, LinkKind, Links
from wire.urls import authority, resolve
from xyro import scan
from xyro.charset import bom_of, codec_for, is_ascii_based

WHOLE = 256 * 1024
"""Bytes of a body that are held, to be scanned in one go; a longer one is parsed as it comes."""
PIECE = 16 * 1024
"""Bytes the parser is fed at a time (at most twice as many at once): what arrives in drips is collected first."""
PENDING = 16_384
"""References held until they are resolved: a <base> after so many is ignored."""
_CACHED_TAG = 512
"""Longest tag (bytes) worth remembering."""

_BLANK: Final = " \t\n\r\f"
_REFRESH = re.compile(
    r"[ \t\n\r\f]*[\d.]*[ \t\n\r\f]*[;,]?[ \t\n\r\f]*(?:url[ \t\n\r\f]*=)?[ \t\n\r\f]*(.*)", re.I | re.S
)
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_ROBOTS = frozenset({"robots", "xyro"})
_TAGS = frozenset({"a", "area", "base", "frame", "iframe", "link", "meta"})

Reference = tuple[str, int]
"""(href as the page wrote it, its kind and LINK_NOFOLLOW, LINK_HINT)"""
Mark = tuple[str, int] | str | None
"""What a tag comes to in a folder: (canonical URL, flags), an href that names no http(s) URL, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Found:
    """What `LinkExtractor.close` tells. `canonical`, `base`, `refresh`: canonical URLs, empty where there is none."""

    links: Links = NO_LINKS
    noindex: bool = False
    nofollow: bool = False
    canonical: str = ""
    base: str = ""
    refresh: str = ""
    charset: str = ""
    """Python's name of the encoding the page was read in"""


class HrefCache:
    """What the hrefs of a folder come to: most links of a page stood on its neighbours too (12,103 of 154,013 are new).

    Filled and read by extractors, on one thread. Bounded: two generations of `size` entries (about 400 bytes each);
    when the young one is full it becomes the old one, and the old one is dropped. Equal URLs are one object, so that
    the hash of each is computed once.
    """

    def __init__(self, size: int = 40_000) -> None:
        self._size = size
        self._young: dict[str, Folder] = {}
        self._old: dict[str, Folder] = {}
        self._room = size
        self._urls: dict[str, str] = {}

    def folder(self, base: str, page: str, *, fold_slashes: bool) -> Folder:
        """The folder of `base` (a page's URL or its <base>), as seen by `page`."""
        end = base.find("?")
        key = base[: base.rindex("/", 0, end if end > 0 else len(base)) + 1]
        if base is not page:  # external means another authority than the page's, not than the base's
            key = f"{key} {authority(page)}"
        found = self._young.get(key)
        if found is None:
            found = self._young[key] = self._old[key] if key in self._old else Folder(fold_slashes)
            self.spend(1)
        return found

    def spend(self, entries: int) -> None:
        """`entries` were added to folders."""
        self._room -= entries
        if self._room <= 0:
            self._old, self._young, self._urls, self._room = self._young, {}, {}, self._size

    def one(self, url: str) -> str:
        """The one object that stands for `url`."""
        return self._urls.setdefault(url, url)


class Folder:
    """What is known of one folder: `tags` by a tag's bytes (and encoding), `urls` by the text of an href."""

    __slots__ = ("fold_slashes", "tags", "urls")

    def __init__(self, fold_slashes: bool) -> None:
        self.fold_slashes = fold_slashes
        self.tags: dict[str, dict[bytes, Mark]] = {}
        self.urls: dict[str, str | None] = {}


class _Page:
    """The links of one page: references go in, in the order of the page; distinct URLs with their flags come out."""

    def __init__(self, url: str, cache: HrefCache, fold_slashes: bool) -> None:
        self.url = url
        self.cache = cache
        self.fold_slashes = fold_slashes
        self.base = url
        self.authority = authority(url)
        self.noindex = self.nofollow = False
        self.canonical = self.refresh = ""
        self.links: dict[str, int] = {}
        self.dropped: set[str] = set()
        self.more: set[int] = set()
        self._based = False
        self._folder: Folder | None = None

    @property
    def folder(self) -> Folder:
        if self._folder is None:
            self._folder = self.cache.folder(self.base, self.url, fold_slashes=self.fold_slashes)
        return self._folder

    def settle(self, attrs: dict[str, str]) -> None:
        """A <base>: the first one that names an http(s) URL counts, unless references were resolved before."""
        if not self._based and self._folder is None and "href" in attrs:
            found = resolve(self.url, attrs["href"], fold_slashes=self.fold_slashes)
            if found is not None:
                self._based, self.base = True, found

    def meta(self, attrs: dict[str, str]) -> Reference | None:
        """A <meta>: robots' words are noted; a refresh to another page is a reference."""
        content = attrs.get("content", "")
        if attrs.get("name", "").strip(_BLANK).lower() in _ROBOTS:
            self.robots(content)
        if attrs.get("http-equiv", "").strip(_BLANK).lower() != "refresh":
            return None
        target = refresh_target(content)
        return (target, LinkKind.REDIRECT) if target else None

    def robots(self, content: str) -> None:
        words = {word.strip(_BLANK) for word in content.lower().split(",")}
        self.noindex |= bool(words & {"noindex", "none"})
        self.nofollow |= bool(words & {"nofollow", "none"})

    def mark(self, reference: Reference) -> Mark:
        """What a reference comes to: its URL with all flags, or the href that names none, or nothing."""
        href, flags = reference
        href = href.strip(_BLANK)
        if not href or href[0] == "#":
            return None
        url = self._resolved(href)
        if url is None:
            return href
        if authority(url) != self.authority:
            flags |= LINK_EXTERNAL
        return url, flags

    def _resolved(self, href: str) -> str | None:
        urls = self.folder.urls
        if href in urls:
            return urls[href]
        url = resolve(self.base, href, fold_slashes=self.fold_slashes)
        if url is not None:
            url = self.cache.one(url)
        if href[0] != "?" and len(href) <= _CACHED_TAG:  # a bare query hangs on the page, not on its folder
            urls[href] = url
            self.cache.spend(1)
        return url

    def add(self, mark: Mark) -> None:
        """Note what a tag came to."""
        if isinstance(mark, tuple):
            self._add(*mark)
        elif mark is not None and len(self.dropped) < MAX_LINKS:
            self.dropped.add(mark)

    def _add(self, url: str, flags: int) -> None:
        links = self.links
        if url in links:
            if _weight(flags) > _weight(links[url]):
                links[url] = flags
        elif len(links) < MAX_LINKS:
            links[url] = flags
        else:
            self.more.add(hash(url))
        kind = flags & LINK_KIND_MASK
        if kind == LinkKind.CANONICAL:
            self.canonical = self.canonical or url
        elif kind == LinkKind.REDIRECT:
            self.refresh = self.refresh or url

    def found(self, charset: str) -> Found:
        links = Links(tuple(self.links), bytes(self.links.values()), len(self.more), len(self.dropped))
        base = self.base if self._based else ""
        return Found(links, self.noindex, self.nofollow, self.canonical, base, self.refresh, charset)


def _weight(flags: int) -> int:
    """A plain link (2) outweighs a nofollow one (1), and that a hint (0)."""
    return 0 if flags & LINK_HINT else 1 if flags & LINK_NOFOLLOW else 2


def refresh_target(content: str) -> str:
    """The href of '5; url=next.html' (Refresh header, meta refresh), empty where it names no other page."""
    match = _REFRESH.match(content)
    target = match[1] if match else ""
    quote = target[:1]
    if quote and quote in "\"'":
        target = target[1:].partition(quote)[0]
    return target.strip(_BLANK)


def _reference(tag: str, attrs: dict[str, str]) -> Reference | None:
    """The reference that a tag makes, or None; what base and meta do is the page's business."""
    if tag in ("base", "meta"):
        return None
    if tag in ("frame", "iframe"):
        return (attrs["src"], LinkKind.FRAME) if "src" in attrs else None
    href = attrs.get("href")
    if href is None:
        return None
    rel = attrs.get("rel", "").lower().split()
    flags = LINK_NOFOLLOW if "nofollow" in rel else 0
    if tag != "link":
        return href, flags | (LinkKind.AREA if tag == "area" else LinkKind.ANCHOR)
    if "canonical" in rel:
        return href, flags | LinkKind.CANONICAL | LINK_HINT
    if "next" in rel:
        return href, flags | LinkKind.NEXT
    if "alternate" in rel and "stylesheet" not in rel:
        feed = attrs.get("type", "").partition(";")[0].strip(_BLANK).lower() in _FEEDS
        return href, flags | (LinkKind.FEED if feed else LinkKind.ALTERNATE)
    return None


class LinkExtractor:
    """Fed with the decoded body's bytes as they arrive, in pieces of any size; `close` tells what it found.

    `resolver`: the cache shared by all pages (a private one if None); `charset`: the one of Content-Type, empty where
    it had none. Raises nothing on any input: what was found before a parser gave up is kept.
    """

    def __init__(
        self, url: str, *, fold_slashes: bool = True, resolver: HrefCache | None = None, charset: str = ""
    ) -> None:
        self._page = _Page(url, HrefCache() if resolver is None else resolver, fold_slashes)
        self._charset = charset
        self._held: list[bytes] = []
        self._size = 0
        self._stream: _Stream | None = None

    def feed(self, data: bytes) -> None:
        self._held.append(data)
        self._size += len(data)
        if self._size > (WHOLE if self._stream is None else PIECE):
            self._flush(whole=False)

    def close(self) -> Found:
        if self._stream is None:
            body = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            codec = codec_for(body, self._charset)
            if _scan(self._page, body, codec):
                return self._page.found(codec)
            self._held = [body]
        self._flush(whole=True)
        assert self._stream is not None
        self._stream.finish()
        return self._page.found(self._stream.codec)

    def _flush(self, whole: bool) -> None:
        body = b"".join(self._held)
        self._held, self._size = [], 0
        if self._stream is None:
            self._stream = _Stream(self._page, codec_for(body, self._charset, whole=whole), body)
        self._stream.feed(body, whole)


def _scan(page: _Page, body: bytes, codec: str) -> bool:
    """Read a whole body the fast way; False (and nothing noted) if that is not possible."""
    if not is_ascii_based(codec):
        return False
    tags = scan.tags(body)
    if tags is None:
        return False
    distinct = dict.fromkeys(tags)
    for tag in distinct:  # first of all: a base counts for what stands before it, too
        if tag[:4] in (b"base", b"BASE"):
            page.settle(scan.attributes(tag, codec)[1])
    known = page.folder.tags.setdefault(codec, {})
    links = page.links  # no need to count: a body of at most WHOLE bytes cannot show MAX_LINKS
    for tag in distinct:
        mark = known[tag] if tag in known else _learnt(page, known, tag, codec)
        if isinstance(mark, tuple):
            url, flags = mark
            if flags & LINK_KIND_MASK or links.setdefault(url, flags) != flags:
                page.add(mark)
        elif mark is not None:
            page.add(mark)
    return True


def _learnt(page: _Page, known: dict[bytes, Mark], tag: bytes, codec: str) -> Mark:
    """What a tag not met in this folder comes to; remembered if it comes to the same on every page of the folder."""
    if not tag:
        return None
    name, attrs = scan.attributes(tag, codec)
    if name == "meta" and ("http-equiv" in attrs or attrs.get("name", "").strip(_BLANK).lower() in _ROBOTS):
        reference = page.meta(attrs)
        return page.mark(reference) if reference else None
    reference = _reference(name, attrs)
    mark = page.mark(reference) if reference else None
    if len(tag) <= _CACHED_TAG and not (reference and reference[0].strip(_BLANK)[:1] == "?"):
        known[tag] = mark
        page.cache.spend(1)
    return mark


class _Stream:
    """The linear way: the body, as UTF-8, into a parser that tells start tags only, to this object."""

    def __init__(self, page: _Page, codec: str, head: bytes) -> None:
        self.codec = codec
        self._page = page
        self._pending: dict[Reference, None] = {}
        self._skip = bom_of(head)[1]
        self._decoder = codecs.getincrementaldecoder(codec)("replace")
        self._parser: etree.HTMLParser | None = etree.HTMLParser(target=self, huge_tree=True, encoding="utf-8")

    def feed(self, body: bytes, last: bool) -> None:
        text = self._decoder.decode(body[self._skip :], last).encode("utf-8", "replace")
        self._skip = 0
        for start in range(0, len(text), 2 * PIECE):
            if self._parser is None:
                return
            self._call(self._parser.feed, text[start : start + 2 * PIECE])

    def finish(self) -> None:
        if self._parser is not None:
            self._call(self._parser.close)
        self._resolve()

    def _call(self, step: Callable[..., object], *args: bytes) -> None:
        """One step of the parser; should it give up, what it told so far stands."""
        try:
            step(*args)
        except (etree.LxmlError, AssertionError):
            self._parser = None

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        """The parser's call for each start tag."""
        if tag not in _TAGS:
            return
        if tag == "base":
            self._page.settle(attrs)
            return
        reference = self._page.meta(attrs) if tag == "meta" else _reference(tag, attrs)
        if reference is not None:
            self._pending[reference] = None
            if len(self._pending) >= PENDING:
                self._resolve()

    def close(self) -> None:
        """The parser's call at the end."""

    def _resolve(self) -> None:
        page = self._page
        for reference in self._pending:
            page.add(page.mark(reference))
        self._pending = {}
