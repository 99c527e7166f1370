"""The library of stored parts and bodies that the loader asks before the web, from whichever thread it works in.

part(url)           a DTD or entity that was read less than `[loader] part_age` ago: its stored body; one that
                    redirects: its target; one that is never contacted, disallowed or dead: not to be had
body(page, epoch)   of Status-Data, once the partition has put it there (on disk or in the group under way)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from xyro.loader.library import StoredPart
from xyro.wire.ids import PageId

_P = ParamSpec("_P")
_R = TypeVar("_R")


class PartLibrary:
    """loader.library.Library over two look-ups, which are asked on the event loop, where the partitions change.

    `part` and `body` may be called from another thread, too, which then waits for the loop.
    """

    def __init__(
        self,
        find_part: Callable[[str, bool], StoredPart | None],
        find_body: Callable[[PageId, int], bytes | None],
    ) -> None:
        """find_part: (URL, unchanged) -> the part; find_body: (page, epoch) -> the body (page_lookup.py)."""
        self._find_part = find_part
        self._find_body = find_body
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def bind(self) -> None:
        """Remember the running loop; call it there, before the loader works in a thread."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def part(self, url: str, *, unchanged: bool = False) -> StoredPart | None:
        """Return the stored part at a URL. unchanged: it was just read and is as before, whatever its age."""
        return self._on_loop(self._find_part, url, unchanged)

    def body(self, page: PageId, epoch: int) -> bytes | None:
        """Return a body whose load waits, None if there is none of this epoch."""
        return self._on_loop(self._find_body, page, epoch)

    def _on_loop(self, ask: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._loop is None or threading.get_ident() == self._thread:
            return ask(*args, **kwargs)
        answered: Future[_R] = Future()

        def answer() -> None:
            try:
                answered.set_result(ask(*args, **kwargs))
            except BaseException as error:  # it belongs to the thread that asked
                answered.set_exception(error)

        self._loop.call_soon_threadsafe(answer)
        return answered.result()
