"""Finds known pages by target: a URL, or a pattern (*, ?, [..]), for extensions that take pages by name.

The hook `born` brings new pages in the turn that mints them, `scan` finds those of before. Patterns are looked up by
what stands before their first wildcard, so a thousand patterns of a thousand hosts cost a new URL no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from xyro.frontier.scope import globs
from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.wire.ids import LocalPage
from xyro.wire.urls import origin

if TYPE_CHECKING:
    from xyro.metadata.partition import Partition

MOST_PAGES = 10_000
"""pages that one target stands for, at most: the first that are met"""
FIRST = LocalPage(0)
Matcher = Callable[[str], object]


def is_pattern(target: str) -> bool:
    """A target with *, or with [ behind its host, is a pattern. One with ? alone is a URL with a query."""
    return "*" in target or "[" in target.partition("://")[2].partition("/")[2]


class Targets:
    """Some targets, each as often as it was added."""

    def __init__(self) -> None:
        self._users: dict[str, int] = {}
        """target -> how many want it"""
        self._by_origin: dict[str, dict[str, Matcher]] = {}
        """scheme://host[:port] -> patterns below it; "" -> those that name no whole host"""

    def __bool__(self) -> bool:
        return bool(self._users)

    def __contains__(self, target: str) -> bool:
        return target in self._users

    def add(self, target: str) -> bool:
        """Add a target; False if it is there already, and now once more."""
        self._users[target] = self._users.get(target, 0) + 1
        if self._users[target] > 1:
            return False
        if is_pattern(target):
            matcher = globs((target,))
            assert matcher is not None
            self._by_origin.setdefault(_literal_origin(target), {})[target] = matcher
        return True

    def drop(self, target: str) -> bool:
        """One of those who want it does no more; True if it was the last."""
        self._users[target] -= 1
        if self._users[target]:
            return False
        del self._users[target]
        if is_pattern(target):
            place = _literal_origin(target)
            del self._by_origin[place][target]
            if not self._by_origin[place]:
                del self._by_origin[place]
        return True

    def names(self, url: str) -> Iterator[str]:
        """The targets that a canonical URL belongs to."""
        if url in self._users and not is_pattern(url):
            yield url
        for place in (origin(url), ""):
            for target, matches in self._by_origin.get(place, {}).items():
                if matches(url):
                    yield target


def scan(
    partition: Partition, targets: Targets, first: LocalPage = FIRST, limit: int = 0
) -> Iterator[tuple[str, LocalPage]]:
    """(target, page) of the partition's pages on disk from `first` on, `limit` of them (0: all): 1-2 us a page."""
    end = first + limit if limit else partition.columns.n
    for key, value in partition.scan(rows.MAP.prefix, rows.MAP.key(first)):
        page = rows.MAP.split(key)
        if page >= end:
            return
        if partition.states[page] != State.FOREIGN:
            for target in targets.names(rows.unpack_map(value)):
                yield target, page


def _literal_origin(pattern: str) -> str:
    """The origin that all URLs of the pattern share, empty where it names none."""
    scheme, _, rest = pattern.partition("://")
    host, slash, _ = rest.partition("/")
    whole = slash and not set(scheme + host) & set("*?[")
    return f"{scheme}://{host}" if whole else ""
