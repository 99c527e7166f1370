"""Classification of a body (Kind) by its media type, the suffix of its URL and its first bytes. Pure.

1. `readable` decides on the headers: True and False are final, None asks for the first bytes.
2. `kind_of` decides on the first bytes (up to SNIFF, after decoding; `is_gzip` says that a .gz has to be unpacked
first).

XHTML: text/html is HTML whatever stands in it, but for a feed or sitemap sent under the wrong name.
application/xhtml+xml is HTML, too: its links are found on the fly, and no loader is needed, unless its DOCTYPE names
a DTD that is not the W3C's: then its entities may matter, and it is XML. An XML type is XML whatever its root (the
loader knows XHTML). So is what stands beside XML feeds and sitemaps: a JSON Feed, a sitemap of plain text.
"""

from __future__ import annotations

import re

from xyro.charset import bom_of
from xyro.decode import GZIP_MAGIC
from xyro.wire.messages import Kind
from xyro.wire.urls import suffix_of

SNIFF = 1024
"""First bytes that `kind_of` looks at."""

HTML = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml", "text/xsl", "application/rdf+xml"})
_JSON = frozenset({"application/feed+json", "application/json"})
_JSON_FEED = b"jsonfeed.org/version/"
_DTD = frozenset({"application/xml-dtd", "text/x-dtd", "application/xml-external-parsed-entity"})
_VAGUE = frozenset({"", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "application/unknown"})
_GZIP = frozenset({"application/gzip", "application/x-gzip", "application/x-gunzip"})
_NOT_DOCUMENTS = ("image/", "model/", "audio/", "video/", "font/")
_HTML_SUFFIXES = frozenset({"html", "htm", "xhtml", "xht", "shtml"})
_XML_SUFFIXES = frozenset({"xml", "rss", "atom", "rdf", "xsl", "xslt", "xsd", "sitemap"})
_DTD_SUFFIXES = frozenset({"dtd", "ent", "mod"})
_TEXT_SUFFIXES = _HTML_SUFFIXES | _XML_SUFFIXES | _DTD_SUFFIXES

_TEXT_SITEMAP = re.compile(r"[^?#]*/(?:[\w.-]*sitemap[\w.-]*|urllist)\.txt(?:\.gz)?(?:\?|$)", re.IGNORECASE).match
"""sitemaps.org names no name; these are what sites use (urllist.txt was Yahoo's)"""

_PROLOG = re.compile(r"(?:[\s\ufeff]|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_DOCTYPE = re.compile(
    r"<!DOCTYPE\s+([^\s>\[]+)(?:\s+(?:PUBLIC\s+(?:\"[^\"]*\"|'[^']*')|SYSTEM)\s*(?:\"([^\"]*)\"|'([^']*)')?)?[^>]*>?",
    re.IGNORECASE,
)
_ROOT = re.compile(r"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)")
_FEED_ROOTS = frozenset({"rss", "feed", "RDF", "urlset", "sitemapindex", "opml"})
_SITEMAP_ROOTS = frozenset({"urlset", "sitemapindex"})
_HTML_ROOTS = frozenset(
    {
        *("html", "head", "body", "title", "meta", "link", "script", "style"),
        *(
            "table",
            "div",
            "p",
            "a",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "br",
            "b",
            "font",
            "iframe",
            "center",
            "ul",
            "ol",
        ),
    }
)
_W3C_DTD = re.compile(r"https?://www\.w3\.org/|DTD/xhtml|xhtml[\w.-]*\.dtd|about:legacy-compat", re.IGNORECASE).match


def readable(mime: str, url: str) -> bool | None:
    """Tell whether a body of this media type (lower case, no parameters) is worth reading. None: the first bytes
    decide."""
    if mime in HTML or mime in _XML or mime in _DTD:
        return True
    if mime.endswith("+xml"):
        return not mime.startswith(_NOT_DOCUMENTS)
    suffix = suffix_of(url)
    if mime in _VAGUE or mime in _JSON:
        return None
    if mime in _GZIP:
        return None if suffix in ("gz", "") else False
    return None if mime == "text/plain" and (suffix in _TEXT_SUFFIXES or _lists_urls(url)) else False


def is_sitemap(url: str, head: bytes) -> bool:
    """Tell whether this body is a sitemap, an index of them, or one of plain text."""
    return _opening(head[:SNIFF])[1] in _SITEMAP_ROOTS or _lists_urls(url)


def is_gzip(mime: str, url: str, head: bytes) -> bool:
    """Tell whether this body is a packed document (a sitemap.xml.gz), not the document itself."""
    return head.startswith(GZIP_MAGIC) and mime not in HTML


def kind_of(mime: str, url: str, head: bytes) -> Kind:
    """The kind of a body that begins with `head` and whose type `readable` did not refuse."""
    head = head[:SNIFF]
    suffix = suffix_of(url)
    if suffix == "gz":
        suffix = suffix_of(url[: url.lower().rindex(".gz")])
    if mime in _DTD or (suffix in _DTD_SUFFIXES and mime not in HTML):
        return Kind.DTD
    if mime == "text/html" and b"<?xml" not in head[:64] and b"<rss" not in head and b"<feed" not in head:
        return Kind.HTML  # nearly all of them
    system, root, declares = _opening(head)
    if mime in HTML:
        if mime == "text/html":
            return Kind.XML if root in _FEED_ROOTS else Kind.HTML
        return Kind.XML if root in _FEED_ROOTS or (system and not _W3C_DTD(system)) else Kind.HTML
    if mime in _XML or mime.endswith("+xml"):
        return Kind.XML
    plain = _plain(mime, url, head)
    return plain if plain is not Kind.UNKNOWN else _guessed(root, declares, suffix)


def _lists_urls(url: str) -> bool:
    """Tell whether it is named as sitemaps of plain text are."""
    return bool(_TEXT_SITEMAP(url))


def _plain(mime: str, url: str, head: bytes) -> Kind:
    """JSON Feeds and sitemaps of plain text: the loader reads them as it does their XML kin."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if mime in _JSON:
        return Kind.XML if start.startswith(b"{") and _JSON_FEED in head else Kind.OTHER
    return Kind.XML if _lists_urls(url) and start[:8].lower().startswith((b"http://", b"https://")) else Kind.UNKNOWN


def _guessed(root: str, declares: bool, suffix: str) -> Kind:
    """A body without a type: by its root element, then by its XML declaration or its suffix."""
    if root.lower() in _HTML_ROOTS:
        return Kind.HTML
    if root in _FEED_ROOTS or declares:
        return Kind.XML
    if not root:
        return Kind.OTHER
    return Kind.XML if suffix in _XML_SUFFIXES else Kind.HTML if suffix in _HTML_SUFFIXES else Kind.OTHER


def _opening(head: bytes) -> tuple[str, str, bool]:
    """(system id of the DOCTYPE, local name of the root element, is there an XML declaration); empty if not there."""
    codec, skip = bom_of(head)
    if not codec:
        codec = "utf-16-le" if head[1:2] == b"\0" else "utf-16-be" if head[:1] == b"\0" else "latin-1"
    text = head[skip:SNIFF].decode(codec, "replace")
    start = _end(_PROLOG, text, 0)
    declares = text.lstrip().startswith("<?xml")
    doctype = _DOCTYPE.match(text, start)
    if doctype is None:
        root = _ROOT.match(text, start)
        return "", root[2] if root else "", declares
    return doctype[2] or doctype[3] or "", doctype[1].rpartition(":")[2], declares


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
