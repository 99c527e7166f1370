"""The pages of a crawl, for `async for` inside a program's event loop and for `for` in a script that has none."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread as _registered_first  # noqa: F401
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from xyro.library.page_feed import CrawledPage, PageFeed
from xyro.service.node.life_cycle import Stopping
from xyro.wire.errors import InputError

Work = Callable[[PageFeed, Stopping], None]
"""a crawl from start to stop; it may raise"""


class CrawledPages:
    """Each page as it is read. Each loop over it is a crawl, which begins with the first page that is asked for; one
    that is left, however, tells its crawl to end in order, and the next one, or `xyro.open`, waits for that."""

    def __init__(self, directory: Path, work: Work) -> None:
        self._directory = directory
        self._work = work
        self._loops: weakref.WeakSet[PageLoop] = weakref.WeakSet()

    def __aiter__(self) -> PageLoop:
        pages = PageLoop(_Crawl(self._directory, self._work))
        self._loops.add(pages)
        return pages

    def __iter__(self) -> Iterator[CrawledPage]:
        """InputError: an event loop runs in this thread, which `for` would stop."""
        if asyncio._get_running_loop() is not None:
            raise InputError("an event loop runs here (a notebook has one): `async for page in xyro.crawl(...)`")
        return _Crawl(self._directory, self._work).pages()

    async def aclose(self) -> None:
        """End what loops over it have begun, and wait: what was read is stored."""
        for pages in list(self._loops):
            await pages.aclose()
        await asyncio.to_thread(wait_for_ends, self._directory)


class PageLoop:
    """One `async for` over them. It is no generator: asyncio would close that some turns after whoever breaks off has
    dropped it, which is too late for the line below the loop, and not at all where the program ends there."""

    def __init__(self, crawl: _Crawl) -> None:
        self._crawl = crawl
        self._begun = False

    def __aiter__(self) -> PageLoop:
        return self

    async def __anext__(self) -> CrawledPage:
        if not self._begun:
            self._begun = True
            self._crawl.start()
        try:
            page = await self._crawl.awaited()
        except BaseException:  # cancelled, for one
            await self.aclose()
            raise
        if page is None:
            raise StopAsyncIteration
        return page

    async def aclose(self) -> None:
        """End the crawl in order, and wait for that."""
        await self._crawl.awaited_end()

    def __del__(self) -> None:
        self._crawl.leave()


class _Crawl:
    """One crawl in a thread of its own, so that it goes on while the program works at a page, and ends when it must,
    whatever the program does."""

    def __init__(self, directory: Path, work: Work) -> None:
        self.directory = directory.resolve()
        self._work = work
        self._feed, self._stopping = PageFeed(), Stopping()
        self.left = False
        """true once it is told to end"""
        self._before: list[_Crawl] = []
        """crawls of the same directory that were left, and end first"""
        self._thread = threading.Thread(target=self._run, name="xyro.crawl", daemon=True)
        self._error: BaseException | None = None

    async def awaited(self) -> CrawledPage | None:
        """The next page, in an event loop, which gets a turn with each; None behind the last."""
        await asyncio.sleep(0)
        while (page := self._feed.take()) is None:
            await asyncio.wrap_future(self._feed.arrival())
        if page is False:
            await self.awaited_end()
            self._raise()
        return page or None

    async def awaited_end(self) -> None:
        """End it in order, and wait for that."""
        self.leave()
        await asyncio.to_thread(self.wait)

    def pages(self) -> Iterator[CrawledPage]:
        """The pages, where no event loop runs."""
        self.start()
        try:
            while (page := self._feed.take()) is not False:
                if page is None:
                    self._feed.arrival().result()
                else:
                    yield page
            self._raise()
        finally:
            self.leave()
            self.wait()

    def leave(self) -> None:
        """End it in order, without waiting for that. Garbage collection calls this, too, in any thread."""
        self.left = True
        self._stopping.ask()

    def wait(self) -> None:
        """Until it has ended."""
        if self._thread.ident is not None:
            self._thread.join()

    def start(self) -> None:
        """Begin, once. InputError: another one works on the directory, and was not left."""
        self._before = _crawls_of(self.directory)
        if not all(crawl.left for crawl in self._before):
            raise InputError(f"{self.directory}: another loop of this program crawls there; leave that one first")
        _CRAWLS.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            for crawl in self._before:
                crawl.wait()
            self._work(self._feed, self._stopping)
        except BaseException as error:
            self._error = error
        finally:
            _CRAWLS.discard(self)
            self._feed.close()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


_CRAWLS: set[_Crawl] = set()
"""those that have begun and not ended"""


def _crawls_of(directory: Path) -> list[_Crawl]:
    place = directory.resolve()
    return [crawl for crawl in tuple(_CRAWLS) if crawl.directory == place]


def wait_for_ends(directory: Path) -> None:
    """Wait for crawls of this program that work on a directory, and were left."""
    for crawl in _crawls_of(directory):
        if crawl.left:
            crawl.wait()


def _end_all() -> None:
    for crawl in (crawls := tuple(_CRAWLS)):
        crawl.leave()
    for crawl in crawls:
        crawl.wait()


# As the program ends, before the thread pools that an orderly end needs are closed: so concurrent.futures closes these,
# which `atexit` comes too late for. What is registered last is called first.
threading._register_atexit(_end_all)  # type: ignore[attr-defined]
