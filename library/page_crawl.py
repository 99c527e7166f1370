"""`async for page in xyro.crawl(seed, ...)` inside a program's own event loop, `for` in a script.

It is the crawl of `xyro crawl`, in a thread of its own: the same life from start to stop, data directory, politeness,
robots.txt and guard; the commands can ask it while it runs. Pages come as they are read; who takes them slowly slows
the crawl down.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xyro.configs.load import load
from xyro.configs.parsed_types import scope_settings
from xyro.frontier.scope import Scope
from xyro.library.crawled_pages import CrawledPages
from xyro.plugins import check, extensions, plugins
from xyro.service.api.endpoints import ENDPOINTS
from xyro.service.node import crawl_file
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.life_cycle import Job, Stopping, run
from xyro.service.node.node import Bounds
from xyro.service.node.seeds import why_unread
from xyro.service.node.services import PluginSet
from xyro.wire.errors import InputError, TheirError
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.frontier.frontier import Extension
    from xyro.library.page_feed import PageFeed


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
) -> CrawledPages:
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
    return CrawledPages(directory, partial(_work, directory, loaded, wanted))


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


def _work(directory: Path, settings: Settings, seeds: Sequence[str], feed: PageFeed, stopping: Stopping) -> None:
    """The crawl from start to stop. TheirError: no seed gave a page."""

    def listening(chosen: Settings) -> Sequence[Extension]:
        return [*extensions(chosen), feed.extend]

    _check_seeds(seeds, settings)
    limits = settings.crawl
    attending = PluginSet(
        listening, lambda frontier, services: [*plugins(frontier, services), feed.attend(frontier, services)], check
    )
    bounds = Bounds(limits.max_pages, limits.max_seconds, limits.refresh, wanted=feed.has_room)
    job = Job(directory, settings, bounds, ENDPOINTS, tuple(seeds), plugins=attending, stopping=stopping)
    if (ended := run(job)).fruitless:
        url, error = ended.failed[0]
        raise TheirError(error, f"{url}: no seed gave a page; xyro.open({str(directory)!r}).why(URL) says why")


def _check_seeds(seeds: Sequence[str], settings: Settings) -> None:
    """InputError: none of the seeds is to be read."""
    urls = [canonical(seed, fold_slashes=settings.crawl.fold_slashes) for seed in seeds]
    scope = Scope(scope_settings(settings), settings.rules, guard_of(settings.fetch).host_allowed)
    for url in urls:
        scope.add_seed(url)
    refused = [f"{url}: not read: {reason}" for url in urls if (reason := why_unread(url, scope))]
    if refused and len(refused) == len(urls):
        raise InputError(refused[0])
