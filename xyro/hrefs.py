"""From a page's tags to its links: references to canonical URLs with their flags, and the page's own declarations.

`HrefCache` remembers what the hrefs of a folder resolve to; `PageLinks` collects one page's distinct links; both are
fed by the extractor of links.py. The rules which elements make links, of what kind, are `reference_of` and
PageLinks.meta.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from xyro.hubs import named
from xyro.wire.messages import (
    LINK_EXTERNAL,
    LINK_HINT,
    LINK_KIND_MASK,
    LINK_NOFOLLOW,
    MAX_LINKS,
    NO_LINKS,
    LinkKind,
    Links,
)
from xyro.wire.urls import authority, resolve

LONGEST_KEPT = 512
"""Longest tag (bytes) or href (characters) worth remembering."""
FOLDER_KEPT = 20_000
"""Most tags remembered of one folder: one hostile page must not fill the cache."""
CARRIED = 1_000
"""Entries of a folder that outlive a generation; a larger one is learnt anew, which one of its pages does."""
ENTRY = 256
"""Characters that count as one entry: URLs may be longer than all else that is kept."""
MOST_CHARACTERS = 8 * 1024 * 1024
"""of all links of a page: a <base> makes 4,096 characters out of each <a href=1>"""
MOST_MORE = 262_144
"""links beyond these that are counted"""

BLANK: Final = "".join(map(chr, range(33)))
"""What the URL standard strips from both ends of an href."""
_ROBOTS = frozenset({"robots", "xyro"})
_REFRESH = re.compile(
    r"[ \t\n\r\f]*[\d.]*[ \t\n\r\f]*[;,]?[ \t\n\r\f]*(?:url[ \t\n\r\f]*=)?[ \t\n\r\f]*(.*)", re.I | re.S
)
MOST_RELATED = 16
"""<link rel=hub> and <link rel=self> of a page that are looked at"""
_RELATED = frozenset({"hub", "self"})
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})

Reference = tuple[str, int]
"""(href as the page wrote it, its kind and LINK_NOFOLLOW, LINK_HINT)"""
Mark = tuple[str, int] | str | None
"""What a tag comes to in a folder: (canonical URL, flags), an href that names no http(s) URL, or nothing at all."""


class ExtractedLinks(Struct, frozen=True):
    """The result of `LinkExtractor.close`. `canonical`, `base`, `refresh`: canonical URLs, empty where there is none;
    `hubs`, `topic`: WebSub hubs that the page names, and with them its rel=self."""

    links: Links = NO_LINKS
    noindex: bool = False
    nofollow: bool = False
    canonical: str = ""
    base: str = ""
    refresh: str = ""
    charset: str = ""
    """Python's name of the encoding the page was read in"""
    hubs: tuple[str, ...] = ()
    topic: str = ""


class HrefCache:
    """Caches the URLs of a folder's hrefs: most links of a page stood on its neighbours too (12,103 of 154,013 are
    new).

    Filled and read by extractors, on one thread. Bounded: two generations of `size` entries (about 400 bytes each; what
    is long counts as several); when the young one is full it becomes the old one, and the old one is dropped. Equal
    URLs are one object, so that the hash of each is computed once.
    """

    def __init__(self, size: int = 40_000) -> None:
        self._size = size
        self._young: dict[str, Folder] = {}
        self._old: dict[str, Folder] = {}
        self._room = self._urls_room = size
        self._urls: dict[str, str] = {}

    def folder(self, base: str, page: str, *, fold_slashes: bool, codec: str = "") -> Folder:
        """The folder of `base` (a page's URL or its <base>), as seen by `page`, whose queries are in `codec`."""
        end = base.find("?")
        key = base[: base.rindex("/", 0, end if end > 0 else len(base)) + 1]
        if base is not page:  # external means another authority than the page's, not than the base's
            key = f"{key} {authority(page)}"
        if codec:
            key = f"{key}\n{codec}"
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None or found.entries > CARRIED:
                found = Folder(fold_slashes)
            self._young[key] = found
            self._spend(1 + len(key) // ENTRY + found.entries)
        return found

    def count_entry(self, folder: Folder, mark: Mark) -> None:
        """An entry was added to `folder`, with what it comes to."""
        url = mark[0] if isinstance(mark, tuple) else mark
        entries = 1 if url is None else 1 + len(url) // ENTRY
        folder.entries += entries
        self._spend(entries)

    def intern(self, url: str) -> str:
        """The one object that stands for `url`."""
        found = self._urls.setdefault(url, url)
        if found is url:
            self._urls_room -= 1 + len(url) // ENTRY
            if self._urls_room <= 0:
                self._urls, self._urls_room = {}, self._size
        return found

    def _spend(self, entries: int) -> None:
        self._room -= entries
        if self._room <= 0:
            self._old, self._young, self._room = self._young, {}, self._size


class Folder:
    """The cache of one folder: `marks` by the bytes of a tag, of an <a>'s href (scan.py), or by a reference."""

    __slots__ = ("entries", "fold_slashes", "marks")

    def __init__(self, fold_slashes: bool) -> None:
        self.fold_slashes = fold_slashes
        self.entries = 0
        self.marks: dict[bytes | Reference, Mark] = {}


class PageLinks:
    """The links of one page: references go in, in the order of the page; distinct URLs with their flags come out."""

    def __init__(self, url: str, cache: HrefCache, fold_slashes: bool) -> None:
        self.url = url
        self.cache = cache
        self.fold_slashes = fold_slashes
        self.base = url
        self.codec = ""
        """what queries are written in; empty for UTF-8"""
        self.authority = authority(url)
        self.noindex = self.nofollow = False
        self.canonical = self.refresh = ""
        self.links: dict[str, int] = {}
        self.dropped: set[str] = set()
        self.room = MOST_CHARACTERS
        self.more: set[int] = set()
        self._related: list[tuple[str, frozenset[str]]] = []
        self._based = False
        self._folder: Folder | None = None

    @property
    def folder(self) -> Folder:
        if self._folder is None:
            self._folder = self.cache.folder(self.base, self.url, fold_slashes=self.fold_slashes, codec=self.codec)
        return self._folder

    def read_in(self, codec: str) -> None:
        """Heed the page's encoding, before its first tag. In UTF-16 and UTF-32 queries are in UTF-8, too."""
        self.codec = "" if codec.startswith("utf") else codec

    def settle(self, attrs: dict[str, str]) -> None:
        """A <base>: the first one that names an http(s) URL counts, unless references were resolved before."""
        if not self._based and self._folder is None and "href" in attrs:
            found = resolve(self.url, attrs["href"], fold_slashes=self.fold_slashes, codec=self.codec)
            if found is not None:
                self._based, self.base = True, found

    def meta(self, attrs: dict[str, str]) -> Reference | None:
        """A <meta>: robots' words are noted; a refresh to another page is a reference."""
        content = attrs.get("content", "")
        if _name(attrs) in _ROBOTS:
            self.robots(content)
        if not _refreshes(attrs):
            return None
        target = refresh_target(content)
        return (target, LinkKind.REDIRECT) if target else None

    def relate(self, attrs: dict[str, str]) -> bool:
        """A <link>: does it name a hub, or what the hub calls this page? Noted; the page's base may still change."""
        relations = _RELATED.intersection(attrs.get("rel", "").lower().split())
        if relations and "href" in attrs and len(self._related) < MOST_RELATED:
            self._related.append((attrs["href"], relations))
        return bool(relations)

    def robots(self, content: str) -> None:
        words = {word.strip(BLANK) for word in content.lower().split(",")}
        self.noindex |= bool(words & {"noindex", "none"})
        self.nofollow |= bool(words & {"nofollow", "none"})

    def mark(self, reference: Reference, tag: bytes = b"") -> Mark:
        """Resolve a reference: its URL with all flags, or the href that names none, or nothing.

        What comes to the same on every page of the folder is remembered: of the tag if there is one, or else of the
        reference.
        """
        if not tag and reference in self.folder.marks:
            return self.folder.marks[reference]
        href, flags = reference
        href = href.strip(BLANK)
        mark: Mark = None
        if href and href[0] != "#":
            if (len(self.links) >= MAX_LINKS or self.room <= 0) and not flags & LINK_KIND_MASK:
                return self._counted(reference)
            url = resolve(self.base, href, fold_slashes=self.fold_slashes, codec=self.codec)
            if url is None:
                mark = href
            else:
                url = self.cache.intern(url)
                mark = url, flags | LINK_EXTERNAL if authority(url) != self.authority else flags
        if href[:1] != "?" and len(reference[0]) <= LONGEST_KEPT:  # a bare query hangs on the page, not on its folder
            self.remember(tag or reference, mark)
        return mark

    def remember(self, key: bytes | Reference, mark: Mark) -> None:
        marks = self.folder.marks
        if len(marks) < FOLDER_KEPT:
            marks[key] = mark
            self.cache.count_entry(self.folder, mark)

    def _counted(self, reference: Reference) -> Mark:
        """A page that has all the links it may: a new href is counted as it is written, resolving it would cost more
        than all else."""
        if len(self.more) < MOST_MORE:
            self.more.add(hash(reference[0]))
        return None

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
        elif len(links) < MAX_LINKS and self.room > 0:
            links[url] = flags
            self.room -= len(url)
        elif len(self.more) < MOST_MORE:
            self.more.add(hash(url))
        kind = flags & LINK_KIND_MASK
        if kind == LinkKind.CANONICAL:
            self.canonical = self.canonical or url
        elif kind == LinkKind.REDIRECT:
            self.refresh = self.refresh or url

    def found(self, charset: str) -> ExtractedLinks:
        links = Links(tuple(self.links), bytes(self.links.values()), len(self.more), len(self.dropped))
        base = self.base if self._based else ""
        hubs, topic = named(self._related, self.base, self.fold_slashes) if self._related else ((), "")
        return ExtractedLinks(
            links, self.noindex, self.nofollow, self.canonical, base, self.refresh, charset, hubs, topic
        )


def _weight(flags: int) -> int:
    """A plain link (2) outweighs a nofollow one (1), and that a hint (0)."""
    return 0 if flags & LINK_HINT else 1 if flags & LINK_NOFOLLOW else 2


def has_effect(meta: dict[str, str]) -> bool:
    """Tell whether this <meta> can be one that PageLinks.meta heeds."""
    return _refreshes(meta) or _name(meta) in _ROBOTS


def _refreshes(meta: dict[str, str]) -> bool:
    return meta.get("http-equiv", "").strip(BLANK).lower() == "refresh"


def _name(meta: dict[str, str]) -> str:
    return meta.get("name", "").strip(BLANK).lower()


def refresh_target(content: str) -> str:
    """The href of '5; url=next.html' (Refresh header, meta refresh), empty where it names no other page."""
    match = _REFRESH.match(content)
    target = match[1] if match else ""
    quote = target[:1]
    if quote and quote in "\"'":
        target = target[1:].partition(quote)[0]
    return target.strip(BLANK)


def reference_of(tag: str, attrs: dict[str, str]) -> Reference | None:
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
        feed = attrs.get("type", "").partition(";")[0].strip(BLANK).lower() in _FEEDS
        return href, flags | (LinkKind.FEED if feed else LinkKind.ALTERNATE)
    return None
