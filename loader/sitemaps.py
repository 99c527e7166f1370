"""Sitemaps and sitemap indexes (sitemaps.org 0.9): their URLs, lastmod dates, and claims how often pages change.

    SITEMAP          loc, and video:player_loc (a page that plays it)
    ALTERNATE        xhtml:link rel=alternate: the page in other languages
    MEDIA hint       image:loc, video:content_loc and thumbnail_loc: known, no page
    date of change   lastmod; where there is none, news:publication_date or video:publication_date
    claimed rate     changefreq

priority is a wish and is not read. An index is a document like any other: its children are links, read as pages of
their own, once each, so indexes that name each other end.
"""

from __future__ import annotations

from xyro.loader.dates import w3c_time
from xyro.loader.parse import Attributes, XmlFault
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import LINK_HINT, LinkKind

MAX_ENTRIES = 50_000
"""sitemaps.org: entries of one sitemap, and sitemaps of one index."""
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


class Sitemap(XmlLinks):
    """urlset or sitemapindex.

    The location rule (sitemaps.org, "Sitemap file location"): a sitemap speaks for its own scheme, host, port and
    folder, unless the host's robots.txt names it (`named`). Entries outside are dropped and counted.
    """

    def __init__(self, found: DocumentLinks, root: str, *, named: bool = False) -> None:
        """`root`: the root element's tag; its namespace (0.9, Google's 0.84, or none) is the one of all entries."""
        super().__init__(found)
        namespace, _, local = root.rpartition("}")
        prefix = namespace + "}" if namespace else ""
        self.format = "sitemap" if local == "urlset" else local
        self._folder = "" if named else folder_of(found.url)
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
        if url is not None:
            self._url = self.found.note(url, LinkKind.SITEMAP)

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
