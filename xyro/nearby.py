"""Finds the links of a page that stand next to certain words: in text or title, or up to five words around it.

Fed with tags and text in the order of the page. Words are counted, not kept: a link is an interval of word numbers,
and it is focused if one of the words looked for has a number within AROUND of it. Linear in the page. Most pages show
none of the words: `mentions` finds out without a parser.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterator

from xyro.hrefs import Reference, reference_of

AROUND = 5
"""words before and after a link's text that count as next to it"""
MOST_LINKS = 65_536
"""links whose places are kept; what a page has more of is not marked"""
_WORDS = re.compile(r"\w+").findall
_SILENT = frozenset({"script", "style", "template", "textarea", "title"})
"""elements whose text does not stand in the page"""
_NOTED = frozenset({"a", "area", "img"}) | _SILENT


def mentions(body: bytes, codec: str, words: frozenset[str]) -> bool:
    """Tell whether the page may show one of the words. False is certain."""
    text = body.decode(codec, "replace")
    text = (html.unescape(text) if "&" in text else text).casefold()
    return any(word in text for word in words)


class Nearby:
    """`words`: casefolded, looked for as whole words. `data` takes text between two tags, in pieces of any size."""

    def __init__(self, words: frozenset[str]) -> None:
        self._words = words
        self._count = 0
        self._hits: list[int] = []
        """numbers of the words that were looked for, rising"""
        self._links: list[tuple[Reference, int, int]] = []
        """a link's reference, the number of its first word, and that of the first word after it"""
        self._open: tuple[Reference, int] | None = None
        self._pieces: list[str] = []
        """text since the last link began or ended, a blank for each tag: tags end words"""
        self._silent = ""
        self.data = self._pieces.append

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        """A start tag."""
        if tag not in _NOTED:
            self._pieces.append(" ")
            return
        self._read()
        if tag in _SILENT:
            self._silent = self._silent or tag
        elif tag == "img":
            self._pieces.append(attrs.get("alt", ""))
        else:
            self._close()
            reference = reference_of(tag, attrs)
            self._open = (reference, self._count) if reference else None
            self._pieces += (attrs.get("title", ""), " ", attrs.get("alt", "") if tag == "area" else "")
            if tag == "area":
                self._close()
        self._pieces.append(" ")

    def end(self, tag: str) -> None:
        """An end tag, written or implied."""
        if tag == "a":
            self._close()
        elif tag == self._silent:
            self._pieces.clear()
            self._silent = ""
        self._pieces.append(" ")

    def focused(self) -> Iterator[Reference]:
        """At the end: the links with words, each reference once or more."""
        self._close()
        for reference, first, after in self._links:
            hit = bisect_left(self._hits, first - AROUND)
            if hit < len(self._hits) and self._hits[hit] < after + AROUND:
                yield reference

    def _read(self) -> None:
        """Count the words of the text so far."""
        text = "".join(self._pieces) if not self._silent else ""
        self._pieces.clear()
        for word in _WORDS(text.casefold()):
            if word in self._words:
                self._hits.append(self._count)
            self._count += 1

    def _close(self) -> None:
        self._read()
        if self._open is not None and len(self._links) < MOST_LINKS:
            self._links.append((*self._open, self._count))
        self._open = None
