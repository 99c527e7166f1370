"""Packed bodies of documents that wait: in memory until the warehouse has written them, and a little longer.

A body comes with `put`, when its document begins to wait. Once more than `capacity` bytes are held, the oldest ones
that the library has by then leave the memory and are read from there; those that it does not have are on their way to
it and stay, up to `most` bytes: what is over that is for the caller to give up (`excess`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from xyro.loader.library import NOTHING, Library
from xyro.wire.ids import PageId

_TRIES = 8
"""bodies looked for in the library each time one is put; at least as many have been written as were put before"""
_ON_THE_WAY = 4
"""times the capacity that bodies on their way to the library may take"""


class Bodies:
    """Memory: `capacity` bytes, while the library keeps up. Keys are page ids; `epoch` tells one read from another."""

    def __init__(self, capacity: int, library: Library) -> None:
        self.size = 0
        self._capacity = capacity
        self._limit = capacity if library is NOTHING else _ON_THE_WAY * capacity
        self._library = library
        self._packed: OrderedDict[PageId, tuple[int, bytes]] = OrderedDict()

    def put(self, page: PageId, epoch: int, packed: bytes) -> None:
        self.drop(page)
        self._packed[page] = (epoch, packed)
        self.size += len(packed)
        if self.size > self._capacity and self._library is not NOTHING:
            self._shed()

    def get(self, page: PageId, epoch: int) -> bytes | None:
        """The packed body; None: another read has replaced it."""
        entry = self._packed.get(page)
        if entry is not None and entry[0] == epoch:
            return entry[1]
        return self._library.body(page, epoch)

    def drop(self, page: PageId) -> None:
        entry = self._packed.pop(page, None)
        if entry is not None:
            self.size -= len(entry[1])

    def excess(self) -> Iterator[PageId]:
        """The oldest pages beyond what may be held at all."""
        over = self.size - self._limit
        for page, (_, packed) in self._packed.items():
            if over <= 0:
                return
            yield page
            over -= len(packed)

    def _shed(self) -> None:
        for page in list(_first(self._packed, _TRIES)):
            if self.size <= self._capacity:
                return
            epoch, _ = self._packed[page]
            if self._library.body(page, epoch) is not None:
                self.drop(page)
            else:
                self._packed.move_to_end(page)


def _first(packed: OrderedDict[PageId, tuple[int, bytes]], count: int) -> Iterator[PageId]:
    for page, _ in zip(packed, range(count), strict=False):
        yield page
