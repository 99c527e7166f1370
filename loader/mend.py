"""Slips of feeds and sitemaps after which an XML parser has seen nothing at all: mended, for the second reading of a
body that has failed by name. Such lists are wanted for the URLs in them, whatever else is wrong.

    a warning of PHP, or other text, ahead of the feed      cut off
    a declaration of UTF-16 over bytes that are not         as .NET writes it: UTF-8 is believed
    a media type with a charset over bytes in UTF-8         UTF-8 is believed
    & as it is in a URL, entities of HTML, and &amp;        numbers: behind a fault, libxml2 leaves out every entity
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import name2codepoint

from xyro.loader.parse import BOMS, encoding_of

_ROOT = re.compile(rb"(?:<\?xml\s[^<>]{0,200}\?>\s*)?<(?:rss|feed|urlset|sitemapindex|(?:\w{1,20}:)?RDF)[\s>]")
_BEGINNING = 4_096
"""bytes in which a list has to begin"""
_WIDE_NAME = re.compile("utf-?(16|32)|ucs-?[24]", re.I)
_WIDE = re.compile(
    rb"""(<\?xml\s[^<>]{0,100}?)\sencoding\s*=\s*["'](?:utf-?16|utf-?32|ucs-?[24]|unicode)\w*["']""", re.I
)
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)", re.ASCII)
_NAMED = re.compile(rb"&(\w{2,32});", re.ASCII)
_PREDEFINED = {b"&amp;": b"&#38;", b"&lt;": b"&#60;", b"&gt;": b"&#62;", b"&quot;": b"&#34;", b"&apos;": b"&#39;"}
_LIMIT = 200_000
"""references that are mended, up to 1 us each: 4 in each URL of a full sitemap"""


def may_be_list(body: bytes) -> bool:
    """Tell whether this is a feed or a sitemap (unzipped), as far as its first bytes tell."""
    return _ROOT.search(body[:_BEGINNING]) is not None


def mended(body: bytes, charset: str) -> tuple[bytes, str]:
    """(the body, unzipped, and its charset), mended where they need it."""
    if codec := _codec_of(body):
        body, charset = body.decode(codec, "replace").lstrip("\ufeff").encode(errors="replace"), "utf-8"
    root = _ROOT.search(body[:_BEGINNING])
    if root is not None:
        body = _WIDE.sub(rb"\1", body[root.start() :], count=1)
        charset = "" if _WIDE_NAME.match(charset) or _is_utf8(body) else charset
    return b"".join(_numbered(body)) if body.count(b"&") <= _LIMIT else body, charset


def _codec_of(body: bytes) -> str:
    """Return the codec of a body in UTF-16 or UTF-32, which cannot be mended byte by byte."""
    return encoding_of(body[:4], "") or ("utf-16" if body.startswith(BOMS[1:]) else "")


def _numbered(body: bytes) -> Iterator[bytes]:
    """References by number, but in CDATA, where there are none."""
    position = 0
    while (start := body.find(b"<![CDATA[", position)) >= 0 and (end := body.find(b"]]>", start)) >= 0:
        yield _without_names(body[position:start])
        yield body[start:end]
        position = end
    yield _without_names(body[position:])


def _without_names(text: bytes) -> bytes:
    text = _BARE_AMPERSAND.sub(b"&#38;", text)
    for name, number in _PREDEFINED.items():
        text = text.replace(name, number)
    return _NAMED.sub(_number, text)


def _number(reference: re.Match[bytes]) -> bytes:
    code = name2codepoint.get(reference[1].decode())
    return reference[0] if code is None else b"&#%d;" % code


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
