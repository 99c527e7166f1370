"""Keeps the known pages of subscriptions' targets, wherever they live, as their partitions named them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xyro.frontier.targets import MOST_PAGES
from xyro.wire.ids import PageId

Host = tuple[int, int]
"""(partition, number of the host there)"""


class TargetPages:
    """Targets, each as often as it was added, and the first MOST_PAGES pages of each in the order they were met."""

    def __init__(self) -> None:
        self._users: dict[str, int] = {}
        self._pages: dict[str, dict[PageId, Host]] = {}

    def __bool__(self) -> bool:
        return bool(self._users)

    def add(self, target: str) -> bool:
        """Add a target; False if it is there already, and now once more."""
        self._users[target] = self._users.get(target, 0) + 1
        self._pages.setdefault(target, {})
        return self._users[target] == 1

    def drop(self, target: str) -> bool:
        """One of those who want it does no more; True if it was the last."""
        self._users[target] -= 1
        if self._users[target]:
            return False
        del self._users[target], self._pages[target]
        return True

    def take(self, target: str, page: PageId, host: Host) -> None:
        """A page that the target stands for."""
        pages = self._pages.get(target)
        if pages is not None and len(pages) < MOST_PAGES:
            pages.setdefault(page, host)

    def count(self, target: str) -> int:
        """Return the number of pages that the target stands for."""
        return len(self._pages.get(target, ()))

    def pages(self, target: str) -> Sequence[PageId]:
        """Return the pages that the target stands for."""
        return list(self._pages.get(target, ()))

    def places(self, target: str) -> Iterable[tuple[PageId, Host]]:
        """Return the pages with their hosts."""
        return self._pages.get(target, {}).items()
