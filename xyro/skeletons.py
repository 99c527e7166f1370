"""The skeleton of a page: what stays equal while the page tells its own URL, numbers, tokens and the time. Pure.

Soft 404s and interstitials of one make differ in just these. Words stay, so pages of one template with texts of their
own have skeletons of their own, too; so have pages that say more of their URL, or in numbers, than an apology does (a
server that makes a page for each number). A skeleton costs as much as a page's links: the fetcher makes one only where
the page shows the very links that another URL of its host has just shown (links.py, Shapes).
"""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import urlsplit

MOST_DROPPED: Final = 32
"""words of the URL, and words with a digit, that a soft 404 or an interstitial may differ in"""
_DROPPED: Final = ((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style"))
_TOKEN: Final = re.compile(rb"</?([a-z][a-z0-9]*)[^<>]*>|([^\s<>&;/.,:!?\"'()=-]+)")
_DIGIT: Final = re.compile(rb"[0-9]")
_URL_WORD: Final = re.compile(r"[^\W_]+")


def skeleton(url: str, body: bytes) -> bytes:
    """MD5 (16 bytes) of the page's tags and words, without scripts, attributes, and, where they are few, the URL's own
    words and words with a digit."""
    own = frozenset(word.encode("utf-8", "replace") for word in _URL_WORD.findall(url.lower()))
    text = body.lower()
    for opening, closing in _DROPPED:
        text = _without(text, opening, closing)
    path = frozenset(word.encode("utf-8", "replace") for word in _URL_WORD.findall(urlsplit(url.lower()).path))
    parts: list[bytes] = []
    echoes: list[bytes] = []
    numbers: list[bytes] = []
    has_digit = _DIGIT.search
    for tag, word in _TOKEN.findall(text):
        if tag:
            parts.append(b"<" + tag)
        elif word in own:
            if word in path:
                echoes.append(word)
        elif word.isalpha() or not has_digit(word):
            parts.append(b" " + word)
        else:
            numbers.append(word)
    content = [b"=" + b" ".join(dropped) for dropped in (echoes, numbers) if len(dropped) > MOST_DROPPED]
    parts += content
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
