"""A small site whose pages change at listed times, served on loopback; it notes every answer.

    async with ScriptedSite({"/": ScriptedPage(links=("/a",)), "/a": ScriptedPage(changes=[noon])}, clock) as site:
        site.url("/"), site.reads

One host, no validators: each answer is whole, and says which version it is. Times are seconds since 1970.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from aiohttp import web as http

from xyro.wire.clock import Clock


@dataclass(slots=True)
class ScriptedPage:
    """A page that links to these paths. changes: when its text changes, ascending; more may be appended later."""

    links: Sequence[str] = ()
    changes: Sequence[float] = ()

    def version(self, t: float) -> int:
        """Return the number of changes until time t."""
        return bisect_right(self.changes, t)

    def until(self, t: float) -> float:
        """Return when the page changes next after time t; infinite where it does not."""
        after = bisect_right(self.changes, t)
        return self.changes[after] if after < len(self.changes) else math.inf


class SiteRead(NamedTuple):
    """One answer of the server with a page."""

    time: float
    path: str
    version: int


class ScriptedSite:
    """Serves while the `async with` block lasts. `reads`: all answers with a page, in the order of time; robots.txt and
    what does not exist are not among them."""

    def __init__(self, pages: Mapping[str, ScriptedPage], clock: Clock) -> None:
        self.pages = pages
        self.clock = clock
        self.reads: list[SiteRead] = []
        self.port = 0

    async def __aenter__(self) -> ScriptedSite:
        app = http.Application()
        app.add_routes([http.get("/{path:.*}", self._answer)])
        self._runner = http.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await http.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    def url(self, path: str) -> str:
        """The canonical URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def _answer(self, request: http.Request) -> http.Response:
        page, now = self.pages.get(request.path), self.clock.time()
        if page is None:
            return http.Response(status=404, text="not here")
        version = page.version(now)
        self.reads.append(SiteRead(now, request.path, version))
        links = "".join(f'<p><a href="{path}">{path}</a></p>' for path in page.links)
        body = f"<!doctype html><html><title>{request.path}</title><h1>Version {version}</h1>{links}</html>"
        return http.Response(text=body, content_type="text/html")
