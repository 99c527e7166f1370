"""A page's links, found while its body arrives.

Small pages (up to 256 KiB, nearly all) are held until they are whole and read by `scan`, which costs a third of the
parser; larger ones, and those that scan will not answer for, go through lxml's streaming target parser: no tree,
linear on hostile markup, a fresh parser per page. Both see the same tags, and the same rules
make links of them.

Elements: a, area (href), frame, iframe (src), link rel=alternate, next, canonical, base (the first valid one), meta
refresh, meta name=robots or xyro; link rel=hub names a WebSub hub. A link to the page itself is a link; a fragment of
the page ("#top", an empty href) is not. Where a URL is shown twice the first kind counts, but a plain link outweighs
nofollow, and both outweigh a hint.

Given words to look for, a page that shows one goes through the parser, which then tells text, too (nearby.py).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from lxml import etree

from xyro import scan
from xyro.charset import bom_of, codec_for, is_ascii_based
from xyro.hrefs import (
    BLANK,
    FOLDER_KEPT,
    LONGEST_KEPT,
    ExtractedLinks,
    HrefCache,
    Mark,
    PageLinks,
    Reference,
    has_effect,
    reference_of,
)
from xyro.nearby import Nearby, mentions
from xyro.wire.messages import LINK_FOCUSED, LINK_KIND_MASK

__all__ = ["ExtractedLinks", "HrefCache", "LinkExtractor"]

WHOLE = 256 * 1024
"""Bytes of a body that are held, to be scanned in one go; a longer one is parsed as it comes."""
PIECE = 16 * 1024
"""Bytes collected before the parser is fed: what arrives in drips costs no call each."""
MOUTHFUL = 32 * 1024
"""Most bytes the parser is fed at a time."""
PENDING = 16_384
"""References held until they are resolved: a <base> after so many is ignored."""

_TAGS = frozenset({"a", "area", "base", "frame", "iframe", "link", "meta"})
_BASE = frozenset({b"ba", b"BA", b"Ba", b"bA"})
"""Of the tags that scan tells, base alone begins like this."""


class LinkExtractor:
    """Fed with the decoded body's bytes as they arrive, in pieces of any size; `close` tells what it found.

    `resolver`: the cache shared by all pages (a private one if None); `charset`: the one of Content-Type, empty where
    it had none; `words`: links with one of these in their text or next to it get LINK_FOCUSED.

    Raises nothing on any input: what was found before a parser gave up is kept.
    """

    def __init__(
        self,
        url: str,
        *,
        fold_slashes: bool = True,
        resolver: HrefCache | None = None,
        charset: str = "",
        words: frozenset[str] = frozenset(),
    ) -> None:
        self._page = PageLinks(url, HrefCache() if resolver is None else resolver, fold_slashes)
        self._charset = charset
        self._words = words
        self._pending: list[bytes] = []
        self._size = 0
        self._stream: _Stream | None = None

    def feed(self, data: bytes) -> None:
        self._pending.append(data)
        self._size += len(data)
        if self._size > (WHOLE if self._stream is None else PIECE):
            self._flush(whole=False)

    def close(self) -> ExtractedLinks:
        if self._stream is None:
            body = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
            codec = codec_for(body, self._charset)
            plain = not self._words or not mentions(body, codec, self._words)
            if plain and _scan(self._page, body, codec):
                return self._page.found(codec)
            self._pending = [body]
        self._flush(whole=True)
        assert self._stream is not None
        self._stream.finish()
        return self._page.found(self._stream.codec)

    def _flush(self, whole: bool) -> None:
        body = b"".join(self._pending)
        self._pending, self._size = [], 0
        if self._stream is None:
            codec = codec_for(body, self._charset, whole=whole)
            reader = _WordStream(self._page, codec, body, self._words) if self._words else None
            self._stream = reader or _Stream(self._page, codec, body)
        self._stream.feed(body, whole)


def _scan(page: PageLinks, body: bytes, codec: str) -> bool:
    """Read a whole body the fast way; False (and nothing noted) if that is not possible."""
    if not is_ascii_based(codec):
        return False
    tags = scan.tags(body)
    if tags is None:
        return False
    page.read_in(codec)
    distinct = dict.fromkeys(tags)
    for tag in distinct:  # first of all: a base counts for what stands before it, too
        if tag[:2] in _BASE:
            page.settle(scan.attributes(tag, codec)[1])
    marks = page.folder.tags.setdefault(codec, {})
    links = page.links
    brief = len(page.base) <= LONGEST_KEPT  # then no need to count: WHOLE bytes cannot show MAX_LINKS
    for tag in distinct:
        mark = marks[tag] if tag in marks else _learnt(page, marks, tag, codec)
        if isinstance(mark, tuple):
            url, flags = mark
            if not brief or flags & LINK_KIND_MASK or links.setdefault(url, flags) != flags:
                page.add(mark)
        elif mark is not None:
            page.add(mark)
    return True


def _learnt(page: PageLinks, marks: dict[bytes, Mark], tag: bytes, codec: str) -> Mark:
    """Resolve a tag not met in this folder; cache it if it means the same on every page of the folder."""
    if not tag:
        return None
    name, attrs = scan.attributes(tag, codec)
    if name == "meta" and has_effect(attrs):
        reference = page.meta(attrs)
        return page.mark(reference) if reference else None
    reference = reference_of(name, attrs)
    mark = page.mark(reference) if reference else None
    relates = name == "link" and page.relate(attrs)
    if (
        not relates
        and len(tag) <= LONGEST_KEPT
        and len(marks) < FOLDER_KEPT
        and not (reference and reference[0].strip(BLANK)[:1] == "?")
    ):
        marks[tag] = mark
        page.cache.count_entry(page.folder, mark)
    return mark


class _Stream:
    """The linear way: the body, as UTF-8, into a parser that tells start tags only, to this object."""

    def __init__(self, page: PageLinks, codec: str, head: bytes) -> None:
        self.codec = codec
        self._page = page
        page.read_in(codec)
        self._pending: dict[Reference, None] = {}
        self._skip = bom_of(head)[1]
        self._decoder = codecs.getincrementaldecoder(codec)("replace")
        self._parser: etree.HTMLParser | None = etree.HTMLParser(target=self, huge_tree=True, encoding="utf-8")

    def feed(self, body: bytes, last: bool) -> None:
        text = self._decoder.decode(body[self._skip :], last).encode("utf-8", "replace")
        self._skip = 0
        for start in range(0, len(text), MOUTHFUL):
            if self._parser is None:
                return
            self._call(self._parser.feed, text[start : start + MOUTHFUL])

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
        if tag == "link":
            self._page.relate(attrs)
        reference = self._page.meta(attrs) if tag == "meta" else reference_of(tag, attrs)
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


class _WordStream(_Stream):
    """A stream that reads text, too: links next to one of the words are marked."""

    def __init__(self, page: PageLinks, codec: str, head: bytes, words: frozenset[str]) -> None:
        self._text = Nearby(words)
        self.data = self._text.data
        """the parser's call for text, in pieces"""
        self.end = self._text.end
        """its call for each end tag"""
        super().__init__(page, codec, head)

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self._text.start(tag, attrs)
        if tag in _TAGS:
            super().start(tag, attrs)

    def finish(self) -> None:
        super().finish()
        page = self._page
        for reference in self._text.focused():
            mark = page.mark(reference)
            if isinstance(mark, tuple) and mark[0] in page.links:
                page.links[mark[0]] |= LINK_FOCUSED
