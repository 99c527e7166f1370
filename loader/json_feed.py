"""Feeds and sitemaps that are no XML: JSON Feed 1 and 1.1, and sitemaps of plain text.

xyro knows them by media type, name and first bytes (xyro/doctype.py) and hands them over as it does XML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from xyro.loader.dates import feed_time
from xyro.loader.parse import XmlFault
from xyro.loader.sitemaps import MAX_ENTRIES, folder_of
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import LINK_HINT, LinkKind

VERSION = "jsonfeed.org/version/"
_BLANK = b" \t\r\n"
_DATES = ("date_modified", "date_published")


def reader_of(head: bytes) -> Callable[[bytes, DocumentLinks, bool], XmlLinks] | None:
    """Return the reader of a body that begins so (unzipped); None: it is for the XML parser."""
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    if head.startswith(b"{"):
        return read_json
    return read_text if head[:8].lower().startswith((b"http://", b"https://")) else None


def read_json(body: bytes, found: DocumentLinks, named: bool) -> XmlLinks:
    """Links and dates of a JSON Feed. XmlFault: it is no JSON, or another JSON."""
    feed = _decoded(body.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(feed, dict) or VERSION not in _text(feed, "version"):
        raise XmlFault("not-well-formed", "JSON, but no JSON Feed")
    handler = XmlLinks(found)
    handler.format = "jsonfeed"
    found.add(_text(feed, "feed_url"), LinkKind.CANONICAL | LINK_HINT)
    found.add(_text(feed, "home_page_url"), LinkKind.FEED)
    found.add(_text(feed, "next_url"), LinkKind.NEXT)
    for hub in _objects(feed, "hubs"):
        found.hub(_text(hub, "url"))
    for item in _objects(feed, "items"):
        _item(item, found)
    return handler


def _decoded(body: bytes) -> Any:
    """msgspec is quicker; the standard library lets half an emoji or a byte of Latin-1 pass."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(body.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise XmlFault("not-well-formed", str(error)) from None


def _item(item: dict[str, Any], found: DocumentLinks) -> None:
    url = found.add(_text(item, "url"), LinkKind.FEED)
    found.add(_text(item, "external_url"), LinkKind.ANCHOR)
    dates = [when for name in _DATES if (when := feed_time(_text(item, name))) is not None]
    if dates:
        found.date(url, max(dates))


def _text(row: dict[str, Any], name: str) -> str:
    """A wrong type is one slip of a feed, not its end."""
    value = row.get(name)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _objects(row: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    value = row.get(name)
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def read_text(body: bytes, found: DocumentLinks, named: bool) -> XmlLinks:
    """A sitemap with a URL a line (sitemaps.org, "Text file"): the same limits, the same rule of location."""
    handler = XmlLinks(found)
    handler.format = "sitemap"
    folder = "" if named else folder_of(found.url)
    lines = body.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").split("\n")
    urls = [line for each in lines if (line := each.strip())]
    for line in urls[:MAX_ENTRIES]:
        url = found.resolve(line) if line[:8].lower().startswith(("http://", "https://")) else None
        if url is not None and url.startswith(folder):
            found.note(url, LinkKind.SITEMAP)
        else:
            found.dropped += url is not None
    if len(urls) > MAX_ENTRIES:
        raise XmlFault("too-many-urls")
    return handler
