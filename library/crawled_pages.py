"""The pages of a crawl, for `async for` inside a program's event loop and for `for` in a script that has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Iterator
from typing import Generic, TypeVar

from xyro.wire.errors import InputError

_Page = TypeVar("_Page")


class CrawledPages(Generic[_Page]):
    """Each page as it is read. The crawl begins with the first page that is asked for, and ends in order with the loop,
    however that is left; leave an `async for` with `aclose`.

    `for` runs the crawl in a thread of its own, so that it goes on while the script works at a page.
    """

    def __init__(self, pages: AsyncGenerator[_Page, None]) -> None:
        self._pages = pages

    def __aiter__(self) -> CrawledPages[_Page]:
        return self

    def __anext__(self) -> Awaitable[_Page]:
        return self._pages.__anext__()

    async def aclose(self) -> None:
        """End the crawl in order: what was read is stored."""
        await self._pages.aclose()

    def __iter__(self) -> Iterator[_Page]:
        """InputError: an event loop runs in this thread, which `for` would stop."""
        if asyncio._get_running_loop() is not None:
            raise InputError("an event loop runs here (a notebook has one): `async for page in xyro.crawl(...)`")
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run, args=(loop,), name="xyro.crawl", daemon=True)
        asked: asyncio.Task[_Page | None] | None = None

        async def ask() -> _Page | None:
            nonlocal asked
            asked = asyncio.current_task()
            return await anext(self._pages, None)

        async def end() -> None:
            if asked is not None:  # it is under way still where this thread was interrupted (Ctrl-C)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            await self._pages.aclose()

        thread.start()
        try:
            while (page := asyncio.run_coroutine_threadsafe(ask(), loop).result()) is not None:
                yield page
        finally:
            asyncio.run_coroutine_threadsafe(end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it."""
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
