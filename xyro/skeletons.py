"""The skeleton of a page: what stays equal while the page tells its own URL, numbers, tokens and the time. Pure.

Soft 404s and interstitials of one make differ in just these. Words stay, so pages of one template with texts of their
own have skeletons of their own, too. A skeleton costs as much as a page's links: the fetcher makes one only where the
page shows the very links that another URL of its host has just shown (links.py, Shapes).
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

_DROPPED: Final = ((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style"))
_TOKEN: Final = re.compile(rb"</?([a-z][a-z0-9]*)[^<>]*>|([^\s<>&;/.,:!?\"'()=-]+)")
_DIGIT: Final = re.compile(rb"[0-9]")
_URL_WORD: Final = re.compile(r"[^\W_]+")


def skeleton(url: str, body: bytes) -> bytes:
    """MD5 (16 bytes) of the page's tags and words, without scripts, attributes, the URL's own words and words with a
    digit."""
    own = frozenset(word.encode("utf-8", "replace") for word in _URL_WORD.findall(url.lower()))
    text = body.lower()
    for opening, closing in _DROPPED:
        text = _without(text, opening, closing)
    parts, has_digit = [], _DIGIT.search
    for tag, word in _TOKEN.findall(text):
        if tag:
            parts.append(b"<" + tag)
        elif word not in own and (word.isalpha() or not has_digit(word)):
            parts.append(b" " + word)
    return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def _without(text: bytes, opening: bytes, closing: bytes) -> bytes:
    """The text without what stands between these, in linear time; an unclosed one goes to the end."""
    pieces, place = [], 0
    while (start := text.find(opening, place)) >= 0:
        pieces.append(text[place:start])
        end = text.find(closing, start)
        if end < 0:
            return b"".join(pieces)
        place = end + len(closing)
    return b"".join([*pieces, text[place:]])
