"""What the copies of a crawler of the computed web are worth, as the server sees it: from its answers and its truth.

A copy is fresh from its read until the page's next change, which the server knows at the moment of the read. So time
spent fresh is an exact sum over reads, whatever the crawler believes, and needs no samples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lab.answers import Request
from lab.refresh_world import Ids, Reals, World, of_events
from lab.shape import DAY
from lab.truth import truth
from lab.web import Web

_ROUNDING = 1e-3
"""seconds: a state at the very moment of a change may still be the old one"""


class Live:
    """Of the pages that a polite crawler refreshes (readable, not dead). `served` for each answer, in order of time.

    Invariant: `_fresh[page]` holds the seconds in which its copy was fresh, from the last `begin` to `_since[page]`.
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
        self._began = 0.0
        self.reads = 0
        """of these pages, since `begin`"""
        self.read_pages = 0

    def served(self, host: int, request: Request, t: float) -> None:
        """The server answered; what is no page, or not one of these, does not count."""
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
        self._fresh[:], self._since[:] = 0.0, t
        self._began, self.reads = t, 0

    def _settle(self, places: int | slice, t: float) -> None:
        since = self._since[places]
        self._fresh[places] += np.clip(np.minimum(self._until[places], t) - since, 0.0, None)
        self._since[places] = t

    def freshness(self, t: float) -> float:
        """Share of importance x time since `begin` that was fresh."""
        self._settle(slice(None), t)
        return float((self.importance * self._fresh).sum() / (self.importance.sum() * (t - self._began)))

    def fresh_now(self, t: float) -> float:
        """Share of importance that is fresh at t."""
        return float(self.importance[t < self._until].sum() / self.importance.sum())

    def world(self, days: float, burn: float) -> World:
        """The same pages and changes for the simulator, from the web's origin on."""
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
