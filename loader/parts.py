"""The parts that documents are made of: on the shelf, from the library, or known not to be had.

    keep(page)    a DTD or a wanted entity was read                 lose(url)   it cannot be had
    point(...)    it moved                                          fill(urls)  what the library knows of missing ones
    put(url, part)  what somebody else knows of it

A part that was lost is not asked for again for a while: a thousand documents that name the same dead DTD cost one read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from xyro.loader.library import Library, StoredPart
from xyro.loader.needs import Shelf
from xyro.loader.parse import ParseLimits, XmlFault, pieces
from xyro.wire.messages import XmlPage

_LOST = 10_000
"""lost parts that are remembered: 2 MB"""


class Parts:
    """Bounded by the shelf's capacity and _LOST. Times are the intake's."""

    def __init__(self, capacity: int, limits: ParseLimits, library: Library, lost_s: float) -> None:
        """`lost_s`: seconds for which a lost part is not asked for again."""
        self.shelf = Shelf(capacity)
        self._limits = limits
        self._library = library
        self._lost_s = lost_s
        self._lost: OrderedDict[str, float] = OrderedDict()

    def body_of(self, page: XmlPage) -> bytes:
        """The page's body as a part: unzipped, in an encoding that the parser finds by itself. Raises XmlFault."""
        return self._plain(page.body, page.charset)

    def keep(self, page: XmlPage) -> bool:
        """Put a part on the shelf; False: it cannot be kept."""
        return self._shelve(page.url, page.body, page.charset)

    def point(self, url: str, target: str) -> bool:
        """Reading `url` led to `target`."""
        return self.shelf.point(url, target)

    def lose(self, url: str, now: float) -> None:
        self._lost[url] = now + self._lost_s
        self._lost.move_to_end(url)
        if len(self._lost) > _LOST:
            self._lost.popitem(last=False)

    def is_lost(self, url: str, now: float) -> bool:
        return self._lost.get(url, now) > now

    def fill(self, urls: Iterable[str], now: float, *, unchanged: bool = False) -> bool:
        """Put on the shelf what the library has of these parts; True if there was any. What it has not may be lost."""
        found = [self._fetch(url, now, unchanged) for url in urls]
        return True in found

    def _fetch(self, url: str, now: float, unchanged: bool) -> bool:
        if self.is_lost(url, now):
            return False
        part = self._library.part(url, unchanged=unchanged)
        return part is not None and self.put(url, part, now)

    def put(self, url: str, part: StoredPart, now: float) -> bool:
        """Put on the shelf what a stored part has; False: it is lost."""
        if part.moved and self.shelf.point(url, part.moved):
            return True
        if part.body is not None and self._shelve(url, part.body, part.charset):
            return True
        self.lose(url, now)
        return False

    def _shelve(self, url: str, body: bytes, charset: str) -> bool:
        try:
            part = self.shelf.put(url, self._plain(body, charset))
        except XmlFault:
            return False
        self._lost.pop(url, None)
        return part

    def _plain(self, body: bytes, charset: str) -> bytes:
        plain = b"".join(pieces(body, self._limits))
        if len(plain) > self._limits.part:
            raise XmlFault("too-large", "as a part")
        return _as_utf8(plain, charset)


def _as_utf8(body: bytes, charset: str) -> bytes:
    """A part as the parser can read it without being told the charset of its media type (it cannot be, for parts).

    Only a part without text declaration and byte order mark is recoded; a charset nobody knows is left to the parser.
    """
    if not charset or body.startswith((b"<?xml", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return body
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError, ValueError):
        return body
