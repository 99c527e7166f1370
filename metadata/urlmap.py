"""URL -> page: exact, at the price of a hash.

Three steps, each exact where the one before said nothing:

    recent URLs    a dictionary of the URLs met lately, in two generations: nine of ten links of real pages end here
    fingerprints   64-bit xxh3 of the URL (seeded per data directory) -> page, in the table; a hit is confirmed against
                   Map-Data, so two URLs of one fingerprint stay two pages
    clashes        an exact side table for the URLs whose fingerprint belongs to another page

The way back (page -> URL) is Map-Data; as in P1, the inverse is hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

import numpy as np
from xxhash import xxh3_64_intdigest

from xyro.metadata import rows
from xyro.metadata.table import MISSING, FingerprintTable

ABSENT = -1
GENERATION = 60_000
"""URLs in one generation of the dictionary: about 20 MB in all"""


class UrlMap:
    """`url_of` reads Map-Data (what is not yet written included); `get` reads any key of the store likewise."""

    def __init__(
        self, table: FingerprintTable, seed: int, url_of: Callable[[int], str], get: Callable[[bytes], bytes | None]
    ) -> None:
        self.table = table
        self.seed = seed
        self._url_of = url_of
        self._get = get
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._mask = (1 << table.bits) - 1

    def fingerprint(self, url: str) -> int:
        """Of the table's width: 64 bits but in tests."""
        return xxh3_64_intdigest(url.encode(), self.seed) & self._mask

    def find(self, urls: Sequence[str]) -> list[int]:
        """Page of each URL, ABSENT where it was never met."""
        pages: list[int] = list(map(self._young.get, urls, repeat(ABSENT)))
        if ABSENT in pages:
            unsure = [i for i, page in enumerate(pages) if page == ABSENT]
            for i, page in zip(unsure, self._find_old([urls[i] for i in unsure]), strict=True):
                pages[i] = page
        return pages

    def find_one(self, url: str) -> int:
        return self.find((url,))[0]

    def _find_old(self, urls: Sequence[str]) -> list[int]:
        old = self._old.get
        pages = [old(url, ABSENT) for url in urls]
        unsure = [i for i, page in enumerate(pages) if page == ABSENT]
        if unsure:
            prints = np.array([self.fingerprint(urls[i]) for i in unsure], np.uint64)
            for i, page in zip(unsure, self.table.find(prints).tolist(), strict=True):
                if page != MISSING:
                    pages[i] = self._confirm(urls[i], page)
        self._remember(zip(urls, pages, strict=True))
        return pages

    def _confirm(self, url: str, page: int) -> int:
        """The page if it is this URL's; else what the side table says."""
        if self._url_of(page) == url:
            return page
        found = self._get(rows.CLASH.key(url))
        return ABSENT if found is None else int.from_bytes(found, "big")

    def add(self, urls: Sequence[str], first: int) -> list[tuple[str, int]]:
        """New pages first, first+1 ... for distinct absent URLs. Returns the clashes, which the caller must store."""
        prints = np.array([self.fingerprint(url) for url in urls], np.uint64)
        taken = self.table.find(prints) != MISSING
        _, firsts = np.unique(prints, return_index=True)
        own = np.zeros(len(urls), np.bool_)
        own[firsts] = True
        own &= ~taken
        self.table.insert(prints[own], (first + np.flatnonzero(own)).astype(np.uint32))
        self._remember(zip(urls, range(first, first + len(urls)), strict=True))
        return [(urls[i], first + i) for i in np.flatnonzero(~own).tolist()]

    def restore(self, urls: Sequence[str], first: int, clashing: bool) -> None:
        """Pages known on disk but not yet to the table (minted after the snapshot); stored clashes stay out of it.

        clashing: there are stored clashes, so each URL must be looked for among them.
        """
        chosen = [i for i, url in enumerate(urls) if not clashing or self._get(rows.CLASH.key(url)) is None]
        prints = np.array([self.fingerprint(urls[i]) for i in chosen], np.uint64)
        self.table.insert(prints, (first + np.array(chosen, np.int64)).astype(np.uint32))

    def _remember(self, pairs: Iterable[tuple[str, int]]) -> None:
        if len(self._young) >= GENERATION:
            self._old, self._young = self._young, {}
        self._young.update(pair for pair in pairs if pair[1] != ABSENT)
