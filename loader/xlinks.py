"""Links of any XML document: XHTML, XLink and XInclude; and the collector that all formats write their links into.

What is a link to a page: href of XHTML's a, area and link (canonical, next, alternate), src of frame and iframe, meta
refresh; xlink:href of simple links and locators (XLink 1.1), unless xlink:show="embed" or an SVG element other
than `a` says that it is a resource; href of xi:include (XInclude is never expanded, only told). A reference inside the
same document ("#part") is none. An xml-stylesheet that is XSLT is a link (it is an XML document), one that is CSS is
none. Schemas are no links but needs of the validator (schemas.py). What is included, XSLT stylesheets, and what XLink
embeds on loading are told as extras too, for those who want documents whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from xyro.loader.parse import XLINK, Attributes
from xyro.wire.messages import LINK_EXTERNAL, LINK_HINT, LINK_NOFOLLOW, MAX_LINKS, LinkKind, Links
from xyro.wire.urls import authority, origin, resolve

XHTML = "{http://www.w3.org/1999/xhtml}"
XINCLUDE = "{http://www.w3.org/2001/XInclude}"
_XSLT = frozenset({"text/xsl", "text/xml", "application/xml", "application/xslt+xml"})
_SVG = "{http://www.w3.org/2000/svg}"
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_REFRESH = re.compile(r"\s*[\d.]*\s*[;,]?\s*(?:url\s*=)?\s*(.*)", re.IGNORECASE | re.DOTALL)
_LESS = LINK_NOFOLLOW | LINK_HINT
_MEMO = 4_096
"""Distinct hrefs remembered with what they resolve to."""
_OVERFLOW = 300_000
"""Distinct links counted beyond MAX_LINKS (a hash each: 25 MB at most)."""
EXTRAS = ("xinclude", "stylesheet", "xlink")
"""parts that are acquired with a document though it can be read without them: what xi:include names, XSLT stylesheets,
and what XLink embeds when the document is loaded"""
_MOST_EXTRAS = 64
_MOST_HUBS = 8
_CLOCK_SKEW = 86_400.0
"""Dates up to a day after the read are local times without a zone; later ones are lies."""


class DocumentLinks:
    """The links of one document: distinct, in order of first appearance, with dates of change of the linked pages.

    Where a URL is shown twice the first kind counts, but a plain link outweighs nofollow, and both outweigh a hint.
    """

    def __init__(self, url: str, read_at: float, *, fold_slashes: bool = True, extras: Collection[str] = ()) -> None:
        """`url`: of the document, canonical; `read_at`: seconds since 1970; `fold_slashes`: see wire.urls.

        `extras`: which of EXTRAS are told apart as parts of the document.
        """
        self.base = url
        """what relative references are resolved against; follows xml:base"""
        self.url = url
        self.dropped = 0
        """references that name no http(s) URL, or one the document may not name"""
        self._read_at = read_at
        self.fold_slashes = fold_slashes
        self._site = origin(url) + "/"
        self._authority = authority(url)
        self._flags: dict[str, int] = {}
        self._over: set[int] = set()
        self._dates: dict[str, float] = {}
        self._rates: dict[str, float] = {}
        self._hubs: dict[str, None] = {}
        self._extras: dict[str, None] = {}
        self._of_interest = frozenset(extras)
        self._memo: dict[str, str | None] = {}
        self._memo_base = url

    def resolve(self, href: str) -> str | None:
        """The canonical URL of `href` here; None (and counted) where it has none."""
        if self.base is not self._memo_base or len(self._memo) >= _MEMO:
            self._memo.clear()
            self._memo_base = self.base
        if href in self._memo:
            url = self._memo[href]
        else:
            url = self._memo[href] = resolve(self.base, href, fold_slashes=self.fold_slashes)
        self.dropped += url is None
        return url

    def add(self, href: str, flags: int) -> str | None:
        """Note the link; its URL, or None where it names no page or comes after MAX_LINKS others."""
        if not href or href[0] == "#":
            return None
        url = self.resolve(href)
        return None if url is None else self.note(url, flags)

    def note(self, url: str, flags: int) -> str | None:
        """Add a link whose URL is canonical. `flags`: a LinkKind and LINK_* bits; LINK_EXTERNAL is set here."""
        earlier = self._flags.get(url)
        if earlier is None:
            if len(self._flags) >= MAX_LINKS:
                self._over_full(url)
                return None
            inside = url.startswith(self._site) or authority(url) == self._authority
            self._flags[url] = flags if inside else flags | LINK_EXTERNAL
        elif earlier & _LESS and _weight(flags) > _weight(earlier):
            self._flags[url] = flags | earlier & LINK_EXTERNAL
        return url

    def date(self, url: str | None, when: float) -> None:
        """Evidence: page `url`, a link of this document, last changed at `when`; the latest counts, lies do not."""
        if url is not None and 0.0 < when <= self._read_at + _CLOCK_SKEW and url in self._flags:
            self._dates[url] = max(min(when, self._read_at), self._dates.get(url, 0.0))

    def acquire(self, kind: str, href: str) -> None:
        """A part that the document is complete without, as far as a parser is concerned; `kind`: of EXTRAS."""
        if kind in self._of_interest and href and href[0] != "#" and len(self._extras) < _MOST_EXTRAS:
            url = self.resolve(href)
            if url is not None and url != self.url:
                self._extras[url] = None

    @property
    def extras(self) -> tuple[str, ...]:
        """Canonical URLs of such parts."""
        return tuple(self._extras)

    def rate(self, url: str | None, per_day: float) -> None:
        """A claim: page `url`, a link of this document or the document itself, changes so often."""
        if url is not None and (url in self._flags or url == self.url):
            self._rates[url] = per_day

    def hub(self, href: str) -> None:
        """A WebSub hub that tells of this feed's changes."""
        url = self.resolve(href) if href and len(self._hubs) < _MOST_HUBS else None
        if url is not None:
            self._hubs[url] = None

    @property
    def rates(self) -> tuple[tuple[str, float], ...]:
        """(URL, changes a day), in order of first appearance."""
        return tuple(self._rates.items())

    @property
    def hubs(self) -> tuple[str, ...]:
        """Canonical URLs."""
        return tuple(self._hubs)

    @property
    def dates(self) -> tuple[tuple[str, float], ...]:
        """(URL, seconds since 1970), in order of first appearance."""
        return tuple(self._dates.items())

    def links(self, *, nofollow: bool = False) -> Links:
        """All links so far; `nofollow`: the whole document asked not to follow them."""
        every = LINK_NOFOLLOW if nofollow else 0
        flags = bytes(flag | every for flag in self._flags.values())
        return Links(tuple(self._flags), flags, len(self._over), self.dropped)

    def _over_full(self, url: str) -> None:
        if len(self._over) < _OVERFLOW:
            self._over.add(hash(url))


class XmlLinks:
    """The handler (parse.Handler) of any document; feeds and sitemaps add to it what they know better."""

    format = "xml"

    def __init__(self, found: DocumentLinks) -> None:
        self.found = found
        self.nofollow = False
        """meta robots: no link of this document is to be followed"""
        self._outer: list[str] = []
        self.ends: dict[str, Callable[[str], None]] = {}
        self.starts: dict[str, Callable[[Attributes], None]] = {XINCLUDE + "include": self._include}
        self._understand(XHTML)

    def _understand(self, namespace: str) -> None:
        """Tags of XHTML in this namespace."""
        self.starts[namespace + "a"] = self._anchor
        self.starts[namespace + "area"] = self._area
        self.starts[namespace + "frame"] = self.starts[namespace + "iframe"] = self._frame
        self.starts[namespace + "link"] = self._link
        self.starts[namespace + "meta"] = self._meta

    def close(self) -> None:
        """The document is over: without its tables of bound methods the handler is no reference cycle."""
        self.starts = {}
        self.ends = {}

    def rebase(self, base: str | None) -> None:
        """xml:base (XML Base 1.1): resolved against the base around it; one that names nothing changes nothing."""
        found = self.found
        if base is None:
            found.base = self._outer.pop()
        else:
            self._outer.append(found.base)
            found.base = resolve(found.base, base, fold_slashes=found.fold_slashes) or found.base

    def styled(self, sheet: Mapping[str, str]) -> None:
        if sheet.get("type", "").partition(";")[0].strip().lower() in _XSLT:
            self.found.add(sheet.get("href", ""), LinkKind.STYLESHEET)
            self.found.acquire("stylesheet", sheet.get("href", ""))

    def linked(self, tag: str, attrib: Attributes) -> None:
        kind = attrib.get(XLINK + "type", "simple")
        if kind not in ("simple", "locator"):
            return
        if tag.startswith(_SVG) and tag != _SVG + "a":  # image, use, gradients: parts of the picture
            return
        if attrib.get(XLINK + "show") == "embed":
            if attrib.get(XLINK + "actuate") == "onLoad":
                self.found.acquire("xlink", attrib[XLINK + "href"])
            return
        self.found.add(attrib[XLINK + "href"], LinkKind.XLINK)

    def _include(self, attrib: Attributes) -> None:
        self.found.add(attrib.get("href", ""), LinkKind.XLINK)
        self.found.acquire("xinclude", attrib.get("href", ""))

    def _anchor(self, attrib: Attributes) -> None:
        self.found.add(attrib.get("href", ""), LinkKind.ANCHOR | _nofollow(attrib))

    def _area(self, attrib: Attributes) -> None:
        self.found.add(attrib.get("href", ""), LinkKind.AREA | _nofollow(attrib))

    def _frame(self, attrib: Attributes) -> None:
        self.found.add(attrib.get("src", ""), LinkKind.FRAME)

    def _link(self, attrib: Attributes) -> None:
        rels = _words(attrib.get("rel", ""))
        flags = _link_flags(rels, attrib.get("type", ""))
        if flags is not None:
            self.found.add(attrib.get("href", ""), flags | _nofollow(attrib))

    def _meta(self, attrib: Attributes) -> None:
        content = attrib.get("content", "").lower()
        if attrib.get("name", "").strip().lower() in ("robots", "xyro"):
            self.nofollow |= not {"nofollow", "none"}.isdisjoint(content.replace(",", " ").split())
        elif attrib.get("http-equiv", "").strip().lower() == "refresh":
            self.found.add(_refresh_target(attrib.get("content", "")), LinkKind.REDIRECT)


class Xhtml(XmlLinks):
    """An XHTML document: base href too, and the tags of a root that forgot its namespace."""

    format = "xhtml"

    def __init__(self, found: DocumentLinks, root: str) -> None:
        super().__init__(found)
        namespace = root[: root.rindex("}") + 1] if "}" in root else ""
        if namespace != XHTML:
            self._understand(namespace)
        self.starts[namespace + "base"] = self._base
        self._based = False

    def _base(self, attrib: Attributes) -> None:
        """The first one that names an http(s) URL counts, for what follows it (HTML 4.2.3)."""
        url = None if self._based else self.found.resolve(attrib.get("href", ""))
        if url is not None:
            self._based = True
            self.found.base = url
            self._outer = [url for _ in self._outer]


def _link_flags(rels: list[str], media_type: str) -> int | None:
    """Flags of a `link` element with these relations; None where it is no link to a page."""
    if "canonical" in rels:
        return LinkKind.CANONICAL | LINK_HINT
    if "next" in rels:
        return LinkKind.NEXT
    if "alternate" in rels and "stylesheet" not in rels:
        return LinkKind.FEED if media_type.partition(";")[0].strip().lower() in _FEEDS else LinkKind.ALTERNATE
    return None


def _weight(flags: int) -> int:
    """A plain link (2) outweighs a nofollow one (1), and that a hint (0)."""
    return 0 if flags & LINK_HINT else 1 if flags & LINK_NOFOLLOW else 2


def _nofollow(attrib: Attributes) -> int:
    rel = attrib.get("rel")
    return LINK_NOFOLLOW if rel is not None and "nofollow" in _words(rel) else 0


def _words(text: str) -> list[str]:
    return text.lower().split()


def _refresh_target(content: str) -> str:
    """The href of a meta refresh ('5; url=next.html', with or without quotes), empty where it reloads its own page."""
    match = _REFRESH.match(content)
    target = match[1].strip() if match else ""
    quote = target[:1]
    return target[1:].partition(quote)[0] if quote and quote in "'\"" else target
