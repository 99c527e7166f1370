"""A bounded crawl: `async for page in xyro.crawl(seed, ...)` inside a program's own event loop, `for` in a script.

It is the crawl of `xyro crawl`, without the HTTP interface: the same data directory, politeness, robots.txt and guard.
Pages come as they are read; who takes them slowly slows the crawl down.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import inspect
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from xyro.configs.load import load
from xyro.configs.parsed_types import scope_settings
from xyro.frontier.scope import Scope
from xyro.library.crawled_pages import CrawledPages
from xyro.metadata.rows import RefreshRow
from xyro.packed_text import StoredText, unpacked
from xyro.page_archive import PageContents
from xyro.plugins import check, extensions, plugins
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import check_contact, guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.reader_factory import check_options
from xyro.service.node.seeds import failed_seeds, why_unread
from xyro.service.node.services import PluginSet
from xyro.service.views.staleness import stale_of
from xyro.wire.errors import InputError, TheirError
from xyro.wire.urls import canonical
from xyro.wire.uses import names_of

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.configs.schema import Settings
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Extension, Frontier
    from xyro.guard import Guard
    from xyro.service.node.services import Services
    from xyro.wire.ids import PageId
    from xyro.wire.messages import PageReport

WAITING_TEXTS = 20_000
"""texts whose order is not settled yet; then the oldest go"""
_log = logging.getLogger("xyro")
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
        self._pages: deque[CrawledPage] = deque()
        self._arrived = asyncio.Event()
        self._texts: dict[tuple[PageId, int], StoredText] = {}
        """of answers whose report is on its way"""

    def attend(self, frontier: Frontier, services: Services) -> PageFeed:
        """Listen to the answers of a node, once."""
        if frontier.partition.number == services.commands.partitions - 1:
            services.answered.append(self._answered)
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
            self._pages += map(_page, answered, worth, texts, stale)
            self._arrived.set()

    @property
    def has_room(self) -> bool:
        return len(self._pages) < UNTAKEN

    def take(self) -> CrawledPage | None:
        """The next page, None where there is none now."""
        return self._pages.popleft() if self._pages else None

    async def wait(self) -> None:
        """Until there may be more."""
        await self._arrived.wait()
        self._arrived.clear()


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


def crawl(
    *seeds: str | Iterable[str],
    data: str | Path = "xyro-data",
    config: str | Path | Sequence[str | Path] = (),
    max_pages: int | None = None,
    max_seconds: float | None = None,
    scope: str | None = None,
    max_depth: int | None = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    only_net: str | Sequence[str] = (),
    delay: float | None = None,
    contact: str | None = None,
    user_agent: str | None = None,
    header: str | Sequence[str] = (),
    readers: int | str | None = None,
    partitions: int | None = None,
    refresh: bool | None = None,
    text: bool | None = None,
    warc: bool | None = None,
    changes: bool | None = None,
    **settings: object,
) -> CrawledPages[CrawledPage]:
    """Crawl from seeds, or resume the crawl in `data`: each page as it is read, until nothing is left or a bound. For
    `async for`, or for `for` where no event loop runs.

    The options are those of `xyro crawl`, several values where that repeats them, `settings` any other one as
    section__key (fetch__signature="text"). Who leaves the loop ends the crawl in order: what was read is stored, what
    was not yielded yet is in `xyro.open(data).pages()` alone. text=True: the main text of each HTML page comes along,
    and is kept. InputError: nothing was changed. TheirError, at the end: no seed gave a page.
    """
    _check_names(settings)
    chosen: dict[str, object] = {
        "crawl.max_pages": max_pages,
        "crawl.max_seconds": max_seconds,
        "crawl.scope": scope,
        "crawl.max_depth": max_depth,
        "crawl.include": _several(include),
        "crawl.exclude": _several(exclude),
        "crawl.partitions": partitions,
        "crawl.refresh": refresh,
        "keep.text": text,
        "keep.warc": warc,
        "changes.record": changes,
        "fetch.only_net": _several(only_net),
        "fetch.contact": contact,
        "fetch.user_agent": user_agent,
        "fetch.headers": _several(header),
        "fetch.readers": readers,
        "politeness.delay": delay,
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    wanted = [url for seed in seeds for url in _several(seed)]
    directory = Path(data)
    files = [Path(config)] if isinstance(config, str | Path) else [Path(file) for file in config]
    try:
        loaded = load((*crawl_file.paths(directory), *files), {}, chosen)
    except InputError as error:
        raise InputError(_in_python(str(error), settings)) from None
    return CrawledPages(_pages(directory, loaded, wanted))


def _check_names(settings: Iterable[str]) -> None:
    """InputError: one is no setting, section__key."""
    for name in settings:
        if "__" not in name:
            near = difflib.get_close_matches(name, inspect.signature(crawl).parameters, n=1)
            mend = f"did you mean {near[0]}?" if near else "a setting is written section__key: fetch__gamma=50"
            raise InputError(f"xyro.crawl: {name}: no such option; {mend}")


def _in_python(error: str, settings: Collection[str]) -> str:
    """The error with the name of the argument. settings: those that were given as section__key."""

    def argument(place: re.Match[str]) -> str:
        setting = f"{place[1]}__{place[2]}"
        return f"{setting if setting in settings else _RENAMED.get(setting, place[2])}:"

    named = _PLACE.sub(argument, error)
    return error if named == error and not error.startswith(_SOURCE) else f"xyro.crawl: {named.removeprefix(_SOURCE)}"


_SOURCE = "command line: "
_PLACE = re.compile(rf"{_SOURCE}\[(\w+)\] (\w+):")
_RENAMED = {"fetch__headers": "header", "changes__record": "changes"}
"""arguments that are not called as the keys that they stand for"""


def _several(values: str | Iterable[str]) -> tuple[str, ...]:
    """One value, or several."""
    return (values,) if isinstance(values, str) else tuple(values)


async def _pages(directory: Path, settings: Settings, seeds: Sequence[str]) -> AsyncGenerator[CrawledPage, None]:
    feed, failed = PageFeed(), list[tuple[str, str]]()
    urls = [canonical(seed, fold_slashes=settings.crawl.fold_slashes) for seed in seeds]
    await asyncio.to_thread(check_options, settings, directory)  # plug-ins are tried, which may take a while
    async with _left_alone(directory) as ending, _running(directory, settings, urls, feed) as node:
        ended = asyncio.create_task(node.finished())
        try:
            while True:
                while (page := feed.take()) is not None:
                    yield page
                node.pool.wake()
                if ended.done():
                    ended.result()
                    with await node.views() as views:
                        failed = failed_seeds(views, urls)
                    break
                arrived = asyncio.create_task(feed.wait())
                try:
                    await asyncio.wait([ended, arrived], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    arrived.cancel()
        finally:
            ending()
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)
    while (page := feed.take()) is not None:
        yield page
    if failed and len(failed) == len(set(urls)):
        url, error = failed[0]
        raise TheirError(error, f"{url}: no seed gave a page; xyro.open({str(directory)!r}).why(URL) says why")


_ENDING: dict[tuple[Path, asyncio.AbstractEventLoop], asyncio.Future[None]] = {}
"""crawls that were left and are about to end, by directory"""


def _place_of(directory: Path) -> tuple[Path, asyncio.AbstractEventLoop]:
    return directory.absolute(), asyncio.get_running_loop()


@contextlib.asynccontextmanager
async def _left_alone(directory: Path) -> AsyncIterator[Callable[[], None]]:
    """Wait for a crawl of this program that was left and still ends: Python closes what an `async for` was left with
    (`break`) some turns of the loop later. What comes is to be called once this crawl begins to end."""
    place = _place_of(directory)
    end: asyncio.Future[None] = place[1].create_future()
    if place in _ENDING:
        await asyncio.shield(_ENDING[place])
    try:
        yield lambda: _ENDING.update({place: end})
    finally:
        if _ENDING.get(place) is end:
            del _ENDING[place]
        end.set_result(None)


@contextlib.asynccontextmanager
async def _running(directory: Path, settings: Settings, urls: Sequence[str], feed: PageFeed) -> AsyncIterator[Node]:
    """A node that works on the directory; stopped in order at the end."""
    guard = guard_of(settings.fetch)
    check_contact(settings.fetch, guard)
    check(settings, guard)
    _check_seeds(urls, settings, guard)
    count = settings.crawl.partitions
    stored = DataDir.open(directory, partitions=count if count > 1 else None, make=bool(urls))
    try:
        crawl_file.check(directory, stored.home.store)
        crawl_file.remember(directory, settings, stored.home.store)

        def listening(chosen: Settings) -> Sequence[Extension]:
            return [*extensions(chosen), feed.extend]

        limits = settings.crawl
        node = Node(
            stored,
            settings,
            guard,
            Bounds(limits.max_pages, limits.max_seconds, limits.refresh, wanted=lambda: feed.has_room),
            plugins=PluginSet(
                listening, lambda frontier, services: [*plugins(frontier, services), feed.attend(frontier, services)]
            ),
        )
        try:
            node.start()
            if urls:
                await node.sow(urls)
            yield node
        finally:
            await node.stop()
        node.check_writes()
    finally:
        stored.close()


def _check_seeds(urls: Sequence[str], settings: Settings, guard: Guard) -> None:
    """Log the seeds that are not read. InputError: that is all of them."""
    scope = Scope(scope_settings(settings), settings.rules, guard.host_allowed)
    for url in urls:
        scope.add_seed(url)
    reasons = [(url, why_unread(url, scope)) for url in urls]
    refused = [f"{url}: not read: {reason}" for url, reason in reasons if reason]
    for line in refused:
        _log.warning("%s", line)
    if refused and len(refused) == len(urls):
        raise InputError(refused[0])
