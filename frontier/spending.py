"""Who spends in a turn, and over what: gathered while reports are applied, spent at once (ledger.spend)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.wire.messages import LINK_HINT, LINK_NOFOLLOW, LoadReport

NO_CHILDREN: NDArray[np.uint32] = np.empty(0, np.uint32)
_UNFOLLOWED = frozenset(f for f in range(256) if f & (LINK_NOFOLLOW | LINK_HINT))


class Spending:
    """Who spends in this turn, over which children; URLs are resolved for all pages at once."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.children: list[NDArray[Any]] = []
        self.urls: list[str] = []
        self.open: list[tuple[int, int, int]] = []
        """(index into pages, start, stop) of URL runs that wait to be resolved"""
        self.loaded: list[tuple[int, LoadReport]] = []
        """pages whose load ended, and what was found there: sitemaps and feeds tell of other pages' changes"""
        self.loads = False
        """from here on loads are applied: their pages may have spent already"""

    def over(self, page: int, children: NDArray[Any]) -> None:
        self.pages.append(page)
        self.children.append(children)

    def over_urls(self, page: int, urls: Sequence[str]) -> None:
        start = len(self.urls)
        self.urls.extend(urls)
        self.open.append((self._index(page), start, len(self.urls)))

    def _index(self, page: int) -> int:
        """A page spends once a turn: the links of a load that ends now replace what it would have spent over."""
        if self.loads and page in self.pages:
            return self.pages.index(page)
        self.over(page, NO_CHILDREN)
        return len(self.pages) - 1


def followed(urls: tuple[str, ...], flags: bytes) -> Sequence[str]:
    """Links that give cash and new pages."""
    if _UNFOLLOWED.isdisjoint(flags):
        return urls
    return [url for url, flag in zip(urls, flags, strict=True) if flag not in _UNFOLLOWED]
