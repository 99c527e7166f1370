"""Sitemaps and sitemap indexes (sitemaps.org 0.9): their URLs and lastmod dates.

changefreq and priority are wishes, not evidence, and are not read. An index is a document like any other: its children
are links, read as pages of their own, once each, so indexes that name each other end.
"""

from __future__ import annotations

from datetime import UTC, datetime

from loader.parse import Attributes, XmlFault
from loader.xlinks import Found, XmlLinks
from wire.messages import LinkKind

MAX_ENTRIES = 50_000
"""sitemaps.org: entries of one sitemap, and sitemaps of one index."""
_LONGEST_DATE = 64


class Sitemap(XmlLinks):
    """urlset or sitemapindex.

    The location rule (sitemaps.org, "Sitemap file location"): a sitemap speaks for its own scheme, host, port and
    folder, unless the host's robots.txt names it (`named`). Entries outside are dropped and counted.
    """

    def __init__(self, found: Found, root: str, *, named: bool = False) -> None:
        """`root`: the root element's tag; its namespace (0.9, Google's 0.84, or none) is the one of all entries."""
        super().__init__(found)
        namespace, _, local = root.rpartition("}")
        prefix = namespace + "}" if namespace else ""
        self.format = "sitemap" if local == "urlset" else local
        self._folder = "" if named else folder_of(found.url)
        self._entries = 0
        self._url: str | None = None
        self._modified: float | None = None
        entry = prefix + ("url" if local == "urlset" else "sitemap")
        self.starts[entry] = self._begin
        self.ends = {entry: self._end, prefix + "loc": self._loc, prefix + "lastmod": self._lastmod}

    def _begin(self, _: Attributes) -> None:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise XmlFault("too-many-urls")
        self._url = self._modified = None

    def _loc(self, text: str) -> None:
        if "&amp;" in text:  # escaped twice
            text = text.replace("&amp;", "&")
        url = self.found.resolve(text) if text else None
        if url is None:
            return
        if url.startswith(self._folder):
            self._url = self.found.note(url, LinkKind.SITEMAP)
        else:
            self.found.dropped += 1

    def _lastmod(self, text: str) -> None:
        self._modified = w3c_time(text)

    def _end(self, _: str) -> None:
        if self._modified is not None:
            self.found.date(self._url, self._modified)
        self._url = self._modified = None


def folder_of(url: str) -> str:
    """A canonical URL up to the last slash of its path: http://h/a/b.xml?c -> http://h/a/."""
    path = url.partition("?")[0]
    return path[: path.rindex("/") + 1]


def w3c_time(text: str) -> float | None:
    """Seconds since 1970 of a W3C Datetime (YYYY, YYYY-MM, ... , fractions of a second); None where it is none.

    Without a zone it is taken as UTC; a day stands for its first moment.
    """
    if len(text) > _LONGEST_DATE:
        return None
    if len(text) in (4, 7):
        text += "-01-01"[: 10 - len(text)]
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
