"""Pages on their way from a crawl, in its own thread, to the program that takes them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from xyro.metadata.rows import RefreshRow
from xyro.packed_text import StoredText, unpacked
from xyro.page_archive import PageContents
from xyro.service.views.staleness import stale_of
from xyro.wire.uses import names_of

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.ids import PageId
    from xyro.wire.messages import PageReport

WAITING_TEXTS = 20_000
"""texts whose order is not settled yet; then the oldest go"""
UNTAKEN = 256
"""pages that wait for the program, from which on nothing more is read"""


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """A page as one read of it showed it."""

    url: str
    status: int
    """HTTP status"""
    kind: str
    """HTML, XML, DTD, OTHER or UNKNOWN"""
    links: tuple[str, ...]
    """canonical URLs, in their order"""
    importance: float
    """mean 1 over all known pages, as far as the crawl knows by now"""
    changed: bool | None
    """against the read before; None: there was none, or nobody can say"""
    location: str
    """where a redirect leads; else empty"""
    error: str
    """failure class; empty for a good read"""
    read_at: float
    """seconds since 1970"""
    text: str = ""
    """the main text of an HTML page, where `text=True` asks for it"""
    markdown: str = ""
    """the same with headings, lists, tables and links"""
    title: str | None = None
    """of an HTML page, where `text=True` asks for its text; else None, for it is read with the text"""
    refused: tuple[str, ...] = ()
    """what the site's robots.txt refuses that it is used for: search, ai-input, ai-train (Content-Signal)"""
    stale: float | None = None
    """the probability that it has changed between the read and the commit group that brought it; None: it is not
    there"""


class PageFeed:
    """Pages between the crawl and the program. `settled` fills it, `take` empties it; UNTAKEN bounds it, but for the
    reads that are under way then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """of all fields but the texts, which the crawl's thread alone sees"""
        self._pages: deque[CrawledPage] = deque()
        self._closed = False
        self._full = False
        """the crawl waits for room"""
        self._arrival: Future[None] | None = None
        """what the program waits for"""
        self._wake: Callable[[], object] = lambda: None
        self._texts: dict[tuple[PageId, int], StoredText] = {}
        """of answers whose report is on its way"""

    def attend(self, frontier: Frontier, services: Services) -> PageFeed:
        """Listen to the answers of a node, once."""
        if frontier.partition.number == services.commands.partitions - 1:
            services.answered.append(self._answered)
            self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, services.wake)
        return self

    async def run(self) -> None:
        """Nothing runs beside the turns."""

    def _answered(self, report: PageReport, answer: Answer) -> None:
        if not answer.contents:
            return
        text = msgspec.msgpack.decode(answer.contents, type=PageContents).text
        if text is not None:
            self._texts[report.page, report.epoch] = text
            if len(self._texts) > WAITING_TEXTS:
                del self._texts[next(iter(self._texts))]

    def extend(self, frontier: Frontier) -> PageFeed:
        """Listen to a partition."""
        frontier.hooks.settled.append(partial(self.settled, frontier))
        return self

    def settled(self, frontier: Frontier, settled: Sequence[Settled], now: float) -> None:
        """Take what the web answered in a turn."""
        answered = [order for order in settled if order.visit.answered]
        if answered:
            pages = np.array([order.page for order in answered], np.int64)
            worth = frontier.importance_error.relative(pages)
            texts = [self._texts.pop((order.report.page, order.report.epoch), None) for order in answered]
            states, row_of = frontier.partition.states, frontier.partition.row
            stale = [stale_of(states[order.page], row_of(order.page) or RefreshRow(), now) for order in answered]
            with self._lock:
                self._pages += map(_page, answered, worth, texts, stale)
                self._notify()

    def has_room(self) -> bool:
        """Tell whether more may be read; if not, the crawl is woken once it may."""
        with self._lock:
            self._full = len(self._pages) >= UNTAKEN
            return not self._full

    def take(self) -> CrawledPage | Literal[False] | None:
        """The next page; None where there is none now; False where none comes any more."""
        with self._lock:
            page = self._pages.popleft() if self._pages else None
            if self._full and len(self._pages) < UNTAKEN:
                self._full = False
                if not self._closed:
                    self._wake()
            return page or (False if self._closed else None)

    def arrival(self) -> Future[None]:
        """Done once `take` has something to say."""
        future = Future[None]()
        with self._lock:
            self._arrival = future
            if self._pages or self._closed:
                self._notify()
        return future

    def close(self) -> None:
        """No page comes any more: those that wait are taken still."""
        with self._lock:
            self._closed = True
            self._notify()

    def _notify(self) -> None:
        waiting, self._arrival = self._arrival, None
        if waiting is not None and waiting.set_running_or_notify_cancel():
            waiting.set_result(None)


def _page(order: Settled, importance: float, text: StoredText | None, stale: float | None) -> CrawledPage:
    report = order.report
    written = unpacked(text.packed) if text is not None else {}
    return CrawledPage(
        report.url,
        report.status,
        report.kind.name,
        tuple(report.links.urls),
        importance,
        order.visit.changed,
        report.location,
        report.error,
        report.ended,
        written.get("text", ""),
        written.get("markdown", ""),
        text.title if text is not None else None,
        tuple(names_of(report.refused)),
        stale,
    )
