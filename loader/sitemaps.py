"""Sitemaps and sitemap indexes (sitemaps.org 0.9): their URLs, lastmod dates, and claims how often pages change.

    SITEMAP          loc, and video:player_loc (a page that plays it)
    ALTERNATE        xhtml:link rel=alternate: the page in other languages
    MEDIA hint       image:loc, video:content_loc and thumbnail_loc: known, no page
    date of change   lastmod; where there is none, news:publication_date or video:publication_date
    claimed rate     changefreq

priority is a wish and is not read. An index is a document like any other: its children are links, read as pages of
their own, once each, so indexes that name each other end, and those that name ever new ones do after NESTED.
"""

from __future__ import annotations

from xyro.loader.dates import w3c_time
from xyro.loader.parse import Attributes, XmlFault
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import LINK_HINT, LinkKind

MAX_ENTRIES = 50_000
"""sitemaps.org: entries of one sitemap, and sitemaps of one index."""
NESTED = 3
"""Indexes within indexes that are followed. sitemaps.org has none at all; some sites have one or two, and traps have
?page=n+1."""
REMEMBERED = 50_000
"""Entries of indexes whose depth is known; what is forgotten counts as outermost."""
_XHTML = "{http://www.w3.org/1999/xhtml}"
_MEDIA = LinkKind.MEDIA | LINK_HINT
CLAIMS = {
    "always": 24.0,
    "hourly": 24.0,
    "daily": 1.0,
    "weekly": 1 / 7,
    "monthly": 1 / 30,
    "yearly": 1 / 365,
    "never": 0.0,
}
"""changefreq as changes a day; "always" is not believed to be more often than hourly"""


class Nesting:
    """Counts how many other indexes each entry of an index of sitemaps lies in, for one loader, until it ends."""

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}

    def depth(self, url: str) -> int:
        """The number of indexes that `url` was found within; the first one to name it counts, 0 = none."""
        return self._note(url, 0)

    def note(self, url: str, depth: int) -> None:
        """An index that `depth - 1` others lie around names `url`."""
        self._note(url, depth)

    def _note(self, url: str, depth: int) -> int:
        key = hash(url)
        found = self._depths.setdefault(key, depth)
        if len(self._depths) > REMEMBERED:
            del self._depths[next(iter(self._depths))]
        return found


class Sitemap(XmlLinks):
    """urlset or sitemapindex.

    The location rule (sitemaps.org, "Sitemap file location"): a sitemap speaks for its own scheme, host, port and
    folder, unless the host's robots.txt names it (`named`). Entries outside are dropped and counted, and so are those
    of an index that lies deeper than NESTED in others (`nesting`).
    """

    def __init__(self, found: DocumentLinks, root: str, *, named: bool = False, nesting: Nesting | None = None) -> None:
        """`root`: the root element's tag; its namespace (0.9, Google's 0.84, or none) is the one of all entries."""
        super().__init__(found)
        namespace, _, local = root.rpartition("}")
        prefix = namespace + "}" if namespace else ""
        self.format = "sitemap" if local == "urlset" else local
        self._folder = "" if named else folder_of(found.url)
        self._nesting = nesting if nesting is not None and self.format == "sitemapindex" else None
        self._depth = self._nesting.depth(found.url) if self._nesting is not None else 0
        self._entries = 0
        self._url: str | None = None
        self._modified: float | None = None
        self._published: float | None = None
        self._claim: float | None = None
        entry = prefix + ("url" if local == "urlset" else "sitemap")
        self.starts = {entry: self._begin}
        self.ends = {entry: self._end, prefix + "loc": self._loc, prefix + "lastmod": self._lastmod}
        if local == "urlset":
            self.ends[prefix + "changefreq"] = self._changefreq
            self.starts[_XHTML + "link"] = self._alternate
            self._extend()

    def _extend(self) -> None:
        """The extensions, in each of the namespaces that they are written in."""
        for scheme in ("http://www.", "https://www."):
            for name, tags in _EXTENDED.items():
                namespace = f"{{{scheme}google.com/schemas/sitemap-{name}/"
                for tag, act in tags.items():
                    for version in ("1.1}", "0.9}"):
                        self.ends[namespace + version + tag] = getattr(self, act)

    def _begin(self, _: Attributes) -> None:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise XmlFault("too-many-urls")
        self._url = self._modified = self._published = self._claim = None

    def _loc(self, text: str) -> None:
        url = self._allowed(text)
        if url is None:
            return
        if self._depth >= NESTED:
            self.found.dropped += 1
            return
        self._url = self.found.note(url, LinkKind.SITEMAP)
        if self._nesting is not None:
            self._nesting.note(url, self._depth + 1)

    def _allowed(self, text: str) -> str | None:
        """The URL, if the location rule lets this sitemap speak of it."""
        if "&amp;" in text:  # escaped twice
            text = text.replace("&amp;", "&")
        url = self.found.resolve(text) if text else None
        if url is None or url.startswith(self._folder):
            return url
        self.found.dropped += 1
        return None

    def _lastmod(self, text: str) -> None:
        self._modified = w3c_time(text)

    def _publication(self, text: str) -> None:
        self._published = w3c_time(text)

    def _changefreq(self, text: str) -> None:
        self._claim = CLAIMS.get(text.lower())

    def _player(self, text: str) -> None:
        url = self._allowed(text)
        if url is not None:
            self.found.note(url, LinkKind.SITEMAP)

    def _medium(self, text: str) -> None:
        self.found.add(text, _MEDIA)

    def _alternate(self, attrib: Attributes) -> None:
        """hreflang: any host (a language often has one of its own); scope and the location rule's aim differ here."""
        if "alternate" in attrib.get("rel", "").lower().split():
            self.found.add(attrib.get("href", ""), LinkKind.ALTERNATE)

    def _end(self, _: str) -> None:
        when = self._published if self._modified is None else self._modified
        if when is not None:
            self.found.date(self._url, when)
        if self._claim is not None:
            self.found.rate(self._url, self._claim)
        self._url = self._modified = self._published = self._claim = None


_EXTENDED = {
    "image": {"loc": "_medium"},
    "video": {
        "content_loc": "_medium",
        "thumbnail_loc": "_medium",
        "player_loc": "_player",
        "publication_date": "_publication",
    },
    "news": {"publication_date": "_publication"},
}
"""by namespace: element -> the method that its text goes to"""


def folder_of(url: str) -> str:
    """A canonical URL up to the last slash of its path: http://h/a/b.xml?c -> http://h/a/."""
    path = url.partition("?")[0]
    return path[: path.rindex("/") + 1]
