"""Known pages by target: a URL, or a pattern (*, ?, [..]), for extensions that take pages by name.

One watch spans all partitions of a process: pages are ids (partition << 32 | local). The hook `born` brings new pages
in the turn that mints them, those of before are found by `scan`. Patterns are looked up by what stands before their
first wildcard, so a thousand patterns of a thousand hosts cost a new URL no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from xyro.frontier.scope import globs
from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.wire.ids import LocalPage, PageId, page_range
from xyro.wire.urls import origin

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.metadata.partition import Partition

MOST_PAGES = 10_000
"""pages that one target stands for, at most: the first that are met"""
Matcher = Callable[[str], object]


def is_pattern(target: str) -> bool:
    """A target with *, or with [ behind its host, is a pattern. One with ? alone is a URL with a query."""
    return "*" in target or "[" in target.partition("://")[2].partition("/")[2]


class Watch:
    """The pages of some targets. It takes part in the turns of all partitions while there are targets."""

    def __init__(self, frontiers: Sequence[Frontier] = (), gained: Callable[[str, PageId], None] | None = None) -> None:
        """gained: called with each page that a target gained."""
        self._nodes = frontiers
        self._gained = gained
        self._pages: dict[str, dict[PageId, None]] = {}
        self._users: dict[str, int] = {}
        """target -> how many want it"""
        self._by_origin: dict[str, dict[str, Matcher]] = {}
        """scheme://host[:port] -> patterns below it; "" -> those that name no whole host"""
        self._registered = False

    @property
    def on(self) -> bool:
        """Tell whether there are targets."""
        return bool(self._users)

    def _register(self) -> None:
        if not self._registered:
            self._registered = True
            for frontier in self._nodes:
                frontier.hooks.born.append(partial(self._minted, frontier.partition))

    def _minted(self, partition: Partition, first: LocalPage, urls: Sequence[str]) -> None:
        """New pages of a partition; those of other partitions are for these to tell of."""
        if self._users:
            states, id_of = partition.states, partition.id_of
            for page, url in zip(page_range(first, len(urls)), urls, strict=True):
                if states[page] != State.FOREIGN:
                    self.born(id_of(page), url)

    def add(self, target: str) -> bool:
        """Watch a target; False if it is watched already."""
        self._register()
        self._users[target] = self._users.get(target, 0) + 1
        if self._users[target] > 1:
            return False
        self._pages[target] = {}
        if is_pattern(target):
            matcher = globs((target,))
            assert matcher is not None
            self._by_origin.setdefault(_literal_origin(target), {})[target] = matcher
        return True

    def drop(self, target: str) -> None:
        """One of those who want it does no more."""
        self._users[target] -= 1
        if self._users[target]:
            return
        del self._users[target], self._pages[target]
        if is_pattern(target):
            place = _literal_origin(target)
            del self._by_origin[place][target]
            if not self._by_origin[place]:
                del self._by_origin[place]

    def count(self, target: str) -> int:
        """Return the number of pages that the target stands for."""
        return len(self._pages.get(target, ()))

    def pages(self, target: str) -> Sequence[PageId]:
        """Ids of the pages that the target stands for, in the order they were met."""
        return list(self._pages.get(target, ()))

    def born(self, page: PageId, url: str) -> None:
        """A new page."""
        for target in self.targets(url):
            self.take(target, page)

    def take(self, target: str, page: PageId) -> None:
        """A page that the target stands for."""
        pages = self._pages.get(target)
        if pages is None or page in pages or len(pages) >= MOST_PAGES:
            return
        pages[page] = None
        if self._gained is not None:
            self._gained(target, page)

    def targets(self, url: str) -> Iterator[str]:
        """The targets that a canonical URL belongs to."""
        if url in self._pages and not is_pattern(url):
            yield url
        for place in (origin(url), ""):
            for target, matches in self._by_origin.get(place, {}).items():
                if matches(url):
                    yield target

    def matches(self, target: str) -> Callable[[str], Iterable[str]]:
        """A test of URLs for one target alone, for `scan` in another thread."""
        matcher = globs((target,))
        assert matcher is not None
        return lambda url: (target,) if matcher(url) else ()

    @property
    def patterns(self) -> bool:
        """Tell whether there is any pattern. (A start then has to look at all URLs.)"""
        return bool(self._by_origin)


def scan(partition: Partition, targets: Callable[[str], Iterable[str]]) -> list[tuple[str, PageId]]:
    """(target, page id) of the partition's pages on disk: 1-2 us a page. May run in another thread."""
    return [
        (target, partition.id_of(page))
        for key, value in partition.scan(rows.MAP.prefix)
        for target in targets(rows.unpack_map(value))
        if partition.states[page := rows.MAP.split(key)] != State.FOREIGN
    ]


def _literal_origin(pattern: str) -> str:
    """The origin that all URLs of the pattern share, empty where it names none."""
    scheme, _, rest = pattern.partition("://")
    host, slash, _ = rest.partition("/")
    whole = slash and not set(scheme + host) & set("*?[")
    return f"{scheme}://{host}" if whole else ""
