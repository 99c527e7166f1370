"""A page's links, found while its body arrives.

A page is read by `scan`, which costs a quarter of the parser: whole up to 256 KiB, a larger one in pieces as it comes.
From the first markup on that scan will not answer for, lxml's streaming target parser reads on: no tree, linear on
hostile markup, a fresh parser per page. Both see the same tags, and the same rules make links of them.

Elements: a, area (href), frame, iframe (src), link rel=alternate, next, canonical, base (the first valid one), meta
refresh, meta name=robots or xyro; link rel=hub names a WebSub hub. A link to the page itself is a link; a fragment of
the page ("#top", an empty href) is not. Where a URL is shown twice the first kind counts, but a plain link outweighs
nofollow, and both outweigh a hint.

Given words to look for, a page that shows one goes through the parser, which then tells text, too (nearby.py).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from xyro import scan
from xyro.charset import bom_of, codec_for, is_ascii_based
from xyro.hrefs import (
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
from xyro.wire.messages import LINK_FOCUSED, LINK_KIND_MASK, LinkKind

if TYPE_CHECKING:
    from lxml import etree

__all__ = ["ExtractedLinks", "HrefCache", "LinkExtractor", "Shapes"]

WHOLE = 256 * 1024
"""Bytes of a body that are held, to be scanned in one go; a longer one is read as it comes. Of a tag or a script, too:
one that ends later is the parser's."""
PIECE = 16 * 1024
"""Bytes of a long page collected before they are read: what arrives in drips costs no call each."""
MOUTHFUL = 32 * 1024
"""Most bytes the parser is fed at a time."""
PENDING = 16_384
"""References (or tags) held until they are resolved: a <base> after so many is ignored."""
FURTHER = 1_024
"""Those held from there on."""
STEP = 128
"""References (or tags) resolved in one step: 1 ms."""
MORSEL = 64 * 1024
"""Most bytes that are read in one step: 2 ms. A packed body comes in one piece of 8 MiB."""
SHAPES = 4096
"""Sets of links that are remembered, each by two numbers."""
MOST_LINKS = 512
"""Links of a page whose set is remembered."""

_TAGS = frozenset({"a", "area", "base", "frame", "iframe", "link", "meta"})
_BASE = frozenset({b"ba", b"BA", b"Ba", b"bA"})
"""Of the tags that scan tells, base alone begins like this."""


class Shapes:
    """Sets of links that pages have shown lately. A place holds the last one that fell there: memory is bounded, and
    a set that was overwritten costs nothing but evidence."""

    def __init__(self) -> None:
        self._shown: list[tuple[int, int]] = [(0, 0)] * SHAPES
        """(set of links, page that showed it)"""

    def recurs(self, host: str, url: str, links: tuple[str, ...]) -> bool:
        """Tell whether another URL of the host showed these very links lately; from now on this one did."""
        if len(links) > MOST_LINKS:
            return False
        shape, page = hash((host, links)), hash(url)
        place = shape % SHAPES
        before = self._shown[place]
        self._shown[place] = shape, page
        return before[0] == shape and before[1] != page


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
        self._over = False
        self._reader: _Scan | _Stream | None = None

    def feed(self, data: bytes) -> None:
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[None]:
        """Feed data in steps of some milliseconds at most, so that others have their turns in between."""
        for start in range(0, len(data), MORSEL):
            self._pending.append(data[start : start + MORSEL])
            self._size += len(self._pending[-1])
            if self._size > (WHOLE if self._reader is None else PIECE):
                yield from self._flush(last=False)
                yield

    @property
    def references(self) -> int:
        """Links, and what may be one, that are held now; none of a page that was not scanned yet."""
        return 0 if self._reader is None else len(self._page.links) + len(self._reader.waiting)

    def close(self) -> ExtractedLinks:
        for _ in self.last_steps():
            pass
        assert self._reader is not None
        return self._page.found(self._reader.codec)

    def last_steps(self) -> Iterator[None]:
        """Do what `close` would do all at once, in steps."""
        if not self._over:
            self._over = True
            yield from self._flush(last=True)
            assert self._reader is not None
            yield from self._reader.finish()

    def _flush(self, last: bool) -> Iterator[None]:
        body = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._pending, self._size = [], 0
        if self._reader is None:
            self._reader = self._begun(body, last)
        if isinstance(self._reader, _Scan):
            body = yield from self._reader.feed(body, last)
            if not body:
                return
            self._reader = _Stream(self._page, self._reader.codec, self._reader.tags)
        yield from self._reader.feed(body, last)

    def _begun(self, body: bytes, whole: bool) -> _Scan | _Stream:
        """The reader of a page that begins with `body`, or is it."""
        codec = codec_for(body, self._charset, whole=whole)
        self._page.read_in(codec)
        if self._words and (not whole or mentions(body, codec, self._words)):
            return _WordStream(self._page, codec, self._words)
        return _Scan(self._page, codec) if is_ascii_based(codec) else _Stream(self._page, codec)


class _Scan:
    """The fast way: tags by one expression over the bytes."""

    def __init__(self, page: PageLinks, codec: str) -> None:
        self.codec = codec
        self.tags: dict[bytes, None] = {}
        """not resolved yet"""
        self._page = page
        self._rest = b""
        self._size = 0
        self._batch = PENDING

    @property
    def waiting(self) -> Collection[object]:
        """Tags that wait."""
        return self.tags

    def feed(self, body: bytes, last: bool) -> Generator[None, None, bytes]:
        """Read on, in steps. Returns what only the parser can read: the page from here on, or nothing."""
        self._size += len(body)
        tags, self._rest = scan.tags(self._rest + body if self._rest else body)
        self.tags.update(dict.fromkeys(tags))
        if self._rest and (last or len(self._rest) > WHOLE):
            return self._rest
        if len(self.tags) >= self._batch:
            yield from self.finish()
            self._batch = FURTHER
        return b""

    def finish(self) -> Iterator[None]:
        page, codec, tags = self._page, self.codec, self.tags
        self.tags = {}
        for tag in tags:  # first of all: a base counts for what stands before it, too
            if tag[:2] in _BASE:
                page.settle(scan.attributes(tag, codec)[1])
        rest = iter(tags)
        for _ in range(0, len(tags), STEP):
            self._resolve(islice(rest, STEP))
            yield

    def _resolve(self, tags: Iterable[bytes]) -> None:
        page, codec = self._page, self.codec
        marks = page.folder.marks
        links = page.links
        brief = len(page.base) <= LONGEST_KEPT and self._size <= WHOLE  # then no need to count: it has no MAX_LINKS
        for tag in tags:
            mark = marks[tag] if tag in marks else _learnt(page, tag, codec)
            if isinstance(mark, tuple):
                url, flags = mark
                if not brief or flags & LINK_KIND_MASK or links.setdefault(url, flags) != flags:
                    page.add(mark)
            elif mark is not None:
                page.add(mark)


def _learnt(page: PageLinks, tag: bytes, codec: str) -> Mark:
    """Resolve a tag not met in this folder; it is remembered if it means the same on every page of the folder."""
    if not tag:
        return None
    if tag[:1] == b'"':  # a plain anchor's
        href = scan.unescape(tag[1:].decode(codec, "replace"))
        return page.mark((href, LinkKind.ANCHOR), tag if len(tag) <= LONGEST_KEPT else b"")
    name, attrs = scan.attributes(tag, codec)
    if name == "meta" and has_effect(attrs):
        reference = page.meta(attrs)
        return page.mark(reference) if reference else None
    reference = reference_of(name, attrs)
    relates = name == "link" and page.relate(attrs)
    lasts = not relates and len(tag) <= LONGEST_KEPT
    if reference is not None:
        return page.mark(reference, tag if lasts else b"")
    if lasts:
        page.remember(tag, None)
    return None


class _Stream:
    """The linear way: the body, as UTF-8, into a parser that tells start tags only, to this object."""

    def __init__(self, page: PageLinks, codec: str, tags: Iterable[bytes] = ()) -> None:
        """`tags`: those that the scan has read of the page."""
        self.codec = codec
        self._page = page
        self._pending: dict[Reference, None] = {}
        self._batch = PENDING
        self._decoder: codecs.IncrementalDecoder | None = None
        from lxml import etree  # most pages go without it

        self._parser: etree.HTMLParser | None = etree.HTMLParser(target=self, huge_tree=True, encoding="utf-8")
        self._complaints = etree.LxmlError, AssertionError
        for tag in filter(None, tags):
            self.start(*scan.attributes(tag, codec))

    @property
    def waiting(self) -> Collection[object]:
        """References that wait."""
        return self._pending

    def feed(self, body: bytes, last: bool) -> Iterator[None]:
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(self.codec)("replace")
            body = body[bom_of(body)[1] :]
        text = self._decoder.decode(body, last).encode("utf-8", "replace")
        for start in range(0, len(text), MOUTHFUL):
            if self._parser is None:
                return
            self._call(self._parser.feed, text[start : start + MOUTHFUL])
            if len(self._pending) >= self._batch:
                yield from self._resolve()
                self._batch = FURTHER

    def finish(self) -> Iterator[None]:
        if self._parser is not None:
            self._call(self._parser.close)
        yield from self._resolve()

    def _call(self, step: Callable[..., object], *args: bytes) -> None:
        """One step of the parser; should it give up, what it told so far stands."""
        try:
            step(*args)
        except self._complaints:
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

    def close(self) -> None:
        """The parser's call at the end."""

    def _resolve(self) -> Iterator[None]:
        page, references = self._page, self._pending
        self._pending = {}
        for number, reference in enumerate(references, 1):
            page.add(page.mark(reference))
            if not number % STEP:
                yield


class _WordStream(_Stream):
    """A stream that reads text, too: links next to one of the words are marked."""

    def __init__(self, page: PageLinks, codec: str, words: frozenset[str]) -> None:
        self._text = Nearby(words)
        self.data = self._text.data
        """the parser's call for text, in pieces"""
        self.end = self._text.end
        """its call for each end tag"""
        super().__init__(page, codec)

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self._text.start(tag, attrs)
        if tag in _TAGS:
            super().start(tag, attrs)

    def finish(self) -> Iterator[None]:
        yield from super().finish()
        page = self._page
        for reference in self._text.focused():
            mark = page.mark(reference)
            if isinstance(mark, tuple) and mark[0] in page.links:
                page.links[mark[0]] |= LINK_FOCUSED
