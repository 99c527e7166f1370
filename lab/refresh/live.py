"""The worth of the copies of a crawler of the computed web, as the server sees it: from its answers and its truth.

A copy is fresh from its read until the page's next change, which the server knows at the moment of the read. So time
spent fresh is an exact sum over reads, whatever the crawler believes, and needs no samples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.prediction import CrawlHistory, Listing
from xyro.lab.refresh.world import Ids, Reals, World, of_events
from xyro.lab.web.answers import Request
from xyro.lab.web.places import Doc
from xyro.lab.web.shape import DAY
from xyro.lab.web.truth import truth
from xyro.lab.web.web import Web
from xyro.refresh.trust import Source

_ROUNDING = 1e-3
"""seconds: a state at the very moment of a change may still be the old one"""
_LISTS = {Doc.FEED: Source.FEED, Doc.SITEMAP: Source.SITEMAP, Doc.INDEX: Source.SITEMAP}


class Live:
    """The freshness of the pages that a polite crawler refreshes (readable, not dead), by the server's answers.

    `served` is to be called for each answer, in the order of time.

    Invariant: `_fresh[page]` holds the seconds in which its copy was fresh, up to `_since[page]`.
    """

    def __init__(self, web: Web) -> None:
        self.web = web
        true = truth(web, web.shape.origin)
        own = np.arange(web.shape.pages)
        self.pages: Ids = own[true.readable()[own] & (true.statuses[own] >= 200) & (true.statuses[own] < 400)]
        weight = true.importance[self.pages]
        self.importance: Reals = weight / weight.mean()
        """float64[pages], mean 1"""
        self.rates: Reals = web.rates[self.pages]
        self._place = np.full(web.shape.pages, -1)
        self._place[self.pages] = np.arange(len(self.pages))
        n = len(self.pages)
        self._until: NDArray[np.float64] = np.full(n, -np.inf)
        """until when the copy is fresh; -inf: never read"""
        self._since: NDArray[np.float64] = np.zeros(n)
        self._fresh: NDArray[np.float64] = np.zeros(n)
        self._began, self._before = 0.0, np.zeros(n)
        """of `begin`: when, and what was fresh until then"""
        self.reads = 0
        """of these pages, since `begin`"""
        self.read_pages = 0

    def served(self, host: int, request: Request, t: float) -> None:
        """Count an answer of the server; an answer for a URL that is not one of these pages does not count."""
        page = self.web.places.find(host, request.target)
        place = int(self._place[page]) if page >= 0 else -1
        if place < 0:
            return
        self._settle(place, t)
        self.read_pages += self._until[place] == -np.inf
        self._until[place] = self.web.state(page, t).until
        self.reads += 1

    def begin(self, t: float) -> None:
        """Measure from now on."""
        self._began, self._before, self.reads = t, self.fresh_seconds(t).copy(), 0

    def _settle(self, places: int | slice, t: float) -> None:
        since = self._since[places]
        self._fresh[places] += np.clip(np.minimum(self._until[places], t) - since, 0.0, None)
        self._since[places] = t

    def fresh_seconds(self, t: float) -> Reals:
        """Return the seconds in which each page's copy was fresh, up to t: float64[pages]; a view."""
        self._settle(slice(None), t)
        return self._fresh

    def freshness(self, t: float) -> float:
        """Return the share of importance x time since `begin` that was fresh."""
        fresh = self.fresh_seconds(t) - self._before
        return float((self.importance * fresh).sum() / (self.importance.sum() * (t - self._began)))

    def fresh_now(self, t: float, weights: Reals | None = None) -> float:
        """Return the share of importance, or of other weights, that is fresh at t."""
        weights = self.importance if weights is None else weights
        return float(weights[t < self._until].sum() / weights.sum())

    def history(self, days: float, burn: float, start: Reals | None = None) -> CrawlHistory:
        """Return all that the simulator learns of this web, from its origin on.

        start: as of CrawlHistory; by default the true importance.
        """
        begins = self.importance if start is None else start
        return CrawlHistory(self.world(days, burn), self._ages(), [*self._listings()], begins)

    def _ages(self) -> Reals:
        """Days from each page's last change to the origin, as Last-Modified tells; NaN where an answer has none."""
        origin = self.web.shape.origin
        dates = [self.web.state(page, origin).modified for page in self.pages.tolist()]
        dated = [self.web.status(page) == 200 for page in self.pages.tolist()]
        return np.where(dated, (origin - np.array(dates)) / DAY, np.nan)

    def _listings(self) -> Iterator[Listing]:
        """Yield the lists of the web; a feed's first entry is its home page, which has no date, and is left out."""
        for place, page in enumerate(self.pages.tolist()):
            source = _LISTS.get(self.web.kind(page))
            if source is not None:
                items = self._place[self.web.listed(page)[source is Source.FEED :]]
                yield Listing(place, self.web.host(page), source, items[items >= 0])

    def world(self, days: float, burn: float) -> World:
        """Return these pages and their changes as a world of the simulator, from the web's origin on."""
        pages, times = zip(*self._changes(days), strict=True)
        return of_events(self.importance, self.rates, np.array(pages), np.array(times), days, burn)

    def _changes(self, days: float) -> Iterator[tuple[int, float]]:
        """(place, days since the origin) of every change."""
        origin = self.web.shape.origin
        end = origin + days * DAY
        for place, page in enumerate(self.pages.tolist()):
            t = self.web.state(page, origin).until
            while t < end:
                yield place, (t - origin) / DAY
                t = self.web.state(page, t + _ROUNDING).until
