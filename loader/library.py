"""The loader's questions to the warehouse: parts that were read before, and the bodies of documents that wait.

The intake has an answer or none at once; how the warehouse finds it is its own affair
(service/node/part_library.py). Without a
warehouse (NOTHING) every part has to be read, and the bodies of waiting documents stay in memory.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from xyro.wire.ids import PageId
from xyro.wire.messages import XmlPage


class StoredPart(Struct, frozen=True):
    """A part as the warehouse has it: its body as it was read, where it moved, or (neither) that it cannot be had."""

    body: bytes | None = None
    charset: str = ""
    """of its media type"""
    moved: str = ""
    """canonical target of a redirect"""


LOST = StoredPart()
"""one that is never to be had"""


class Library(Protocol):
    """Asked from one thread at a time."""

    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        """None: it has to be read. `unchanged`: it was just asked for, and what is stored is what it is."""
        ...

    def body(self, page: PageId, epoch: int) -> bytes | None:
        """The stored body (zlib) of a document that waits since this read; None: it is not stored (yet, or no more)."""
        ...


class _Nothing:
    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        return None

    def body(self, page: PageId, epoch: int) -> bytes | None:
        return None


NOTHING: Library = _Nothing()


class Resumed(Struct, frozen=True):
    """A document that waited when the process before ended; its body is in the library."""

    page: XmlPage
    """with an empty body"""
    needs: tuple[str, ...]
    """canonical URLs; none: it is read again to find out"""
    since: float
    named: bool = False
