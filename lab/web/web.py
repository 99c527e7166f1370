"""The computed web: page = f(seed, url, time). Its true links, importance, change times and answers are known.

Nothing here touches a network or a clock. `Web(seed=1, pages=20_000, hosts=40)` draws the graph once (two seconds per
100,000 pages); everything else is computed when asked. See shape.py for the settings, places.py for the URLs.
"""

from __future__ import annotations

import copy
import enum
import math
from bisect import bisect_right
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web import web_graph
from xyro.lab.web.chance import mix, unit
from xyro.lab.web.changes import WEB_BEGAN, ChangeState, state_at
from xyro.lab.web.places import Doc, Places, address_of, disallows
from xyro.lab.web.shape import Shape

_DRIFT, _STATUS, _MANNER = 201, 202, 203
"""keys that keep the draws of different purposes apart"""
_LISTS = (Doc.FEED, Doc.SITEMAP, Doc.INDEX)
_CHANGING = (Doc.HTML, Doc.XML, Doc.DTD)


class Link(NamedTuple):
    """A link as shown: page number of its target and graph flags (TREE | NOFOLLOW | LIST)."""

    target: int
    flags: int

    @property
    def nofollow(self) -> bool:
        """rel=nofollow: not a link of the graph."""
        return bool(self.flags & web_graph.NOFOLLOW)


class Manner(enum.Enum):
    """The ways in which a host handles ETag and Last-Modified."""

    HONEST = "honest"
    ABSENT = "absent"
    LYING = "lying"
    """always new, never 304"""


class Web:
    """Pages 0..pages-1 are ours; pages.. (if any) are outside. Times are seconds since 1970, rates changes per day."""

    def __init__(self, shape: Shape | None = None, **settings: Any) -> None:
        """Settings are the fields of Shape. InputError: a value out of range; TypeError: an unknown name."""
        self.shape = replace(shape or Shape(), **settings)
        rng = np.random.default_rng((self.shape.seed, 1))
        self.places = Places(self.shape, rng)
        self.slots = web_graph.build(self.places, rng)
        self.rates = self._draw_rates(rng)
        self._born_on = self._births()
        self._states: dict[int, ChangeState] = {}

    def served_at(self, port: int) -> Web:
        """Return a copy of this web under another port."""
        other = copy.copy(self)
        other.shape = replace(self.shape, port=port)
        return other

    @property
    def size(self) -> int:
        """Number of URLs, those outside included."""
        return self.shape.pages + self.slots.outside

    def entry(self) -> str:
        """The URL from which everything can be reached."""
        return self.url(0)

    def kind(self, page: int) -> Doc:
        """Return the kind of a page."""
        return Doc(self.places.kinds[page]) if page < self.shape.pages else Doc.OUTSIDE

    def host(self, page: int) -> int:
        """Host number of one of our own pages."""
        return int(self.places.hosts[page])

    def origin_of(self, host: int) -> str:
        """Scheme, address and port of a host."""
        return f"{'https' if self.shape.tls else 'http'}://{address_of(host)}:{self.shape.port}"

    def url(self, page: int) -> str:
        """Canonical URL of a page."""
        if page >= self.shape.pages:
            return f"http://outside-{page % 10}.example/p{page}.html"
        return self.origin_of(self.host(page)) + self.places.path(page)

    def state(self, page: int, t: float) -> ChangeState:
        """Version, last and next change at time t; lists change when a page they list changes."""
        state = self._states.get(page)
        if state is None or not state.since <= t < state.until:
            state = self._states[page] = self._state(page, t)
        return state

    def version(self, page: int, t: float) -> int:
        """Return the number of changes of a page from the origin to time t."""
        return self.state(page, t).version

    def links(self, page: int, version: int) -> list[Link]:
        """Links that the page shows in this version, in order; a target may stand twice."""
        start, end = self.slots.indptr[page], self.slots.indptr[page + 1]
        targets, flags = self.slots.targets[start:end].tolist(), self.slots.flags[start:end].tolist()
        if self.shape.drift and self.kind(page) in (Doc.HTML, Doc.XML):
            self._alter(page, version, targets, flags)
        return list(map(Link, targets, flags))

    def shown(self, page: int, t: float) -> list[Link]:
        """Links that the page shows at time t: none to documents that are not there yet."""
        links = self.links(page, self.version(page, t))
        return [link for link in links if self.is_born(link.target, t)] if page in self._born_on else links

    def is_born(self, page: int, t: float) -> bool:
        """Tell whether the page is there at time t; pages outside always are."""
        return page >= self.shape.pages or bool(self.places.born[page] <= t)

    def listed(self, page: int) -> list[int]:
        """Return the pages that a feed, sitemap or index lists (a feed: its home page first)."""
        listed: list[int] = self.slots.targets[self.slots.indptr[page] : self.slots.indptr[page + 1]].tolist()
        return listed

    def needs(self, page: int) -> int:
        """The DTD page that an XML document names; -1 for other pages."""
        return int(self.slots.needs[page])

    def status(self, page: int, t: float = math.inf) -> int:
        """HTTP status of an unconditional GET at time t, in the end by default."""
        if not self.is_born(page, t):
            return 404
        match self.kind(page):
            case Doc.REDIRECT:
                return 301 if mix(self.shape.seed, page, _STATUS) % 2 else 302
            case Doc.DEAD:
                return 410 if mix(self.shape.seed, page, _STATUS) % 4 == 0 else 404
        return 200

    def manner(self, host: int) -> Manner:
        """Return the way in which a host handles validators."""
        drawn = unit(self.shape.seed, host, _MANNER)
        if drawn < self.shape.absent:
            return Manner.ABSENT
        return Manner.LYING if drawn < self.shape.absent + self.shape.lying else Manner.HONEST

    def robots(self, host: int) -> str:
        """Text of the host's robots.txt. Even hosts name their sitemap index, odd ones their sitemaps too."""
        named = self.robots_sitemaps(host)
        lines = ["# computed web", "User-agent: *"]
        lines += ["Disallow: /private/"] if disallows(host) else ["Disallow:"]
        lines += [f"Crawl-delay: {self.shape.crawl_delay:g}"] if self.shape.crawl_delay else []
        return "\n".join([*lines, "", *(f"Sitemap: {self.url(page)}" for page in named), ""])

    def robots_sitemaps(self, host: int) -> list[int]:
        """Pages that the host's robots.txt names as sitemaps."""
        start, end = self.places.starts[host], self.places.starts[host + 1]
        kinds = self.places.kinds[start:end]
        wanted = kinds == Doc.INDEX if host % 2 == 0 else (kinds == Doc.SITEMAP) | (kinds == Doc.INDEX)
        named: list[int] = (start + np.flatnonzero(wanted)).tolist()
        return named

    def _draw_rates(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Changes per day (ln-normal); a list changes as often as all that it lists together."""
        shape, kinds = self.shape, self.places.kinds
        rates = np.exp(rng.normal(0.0, shape.rate_sigma, shape.pages)) * shape.rate_median * shape.speed
        rates[~np.isin(kinds, _CHANGING)] = 0.0
        for layer in _LISTS:  # an index comes after the sitemaps that it sums up
            for page in np.flatnonzero(kinds == layer).tolist():
                rates[page] = rates[self.listed(page)].sum()
        return np.concatenate((rates, np.zeros(self.slots.outside)))

    def _state(self, page: int, t: float) -> ChangeState:
        if self.kind(page) not in _LISTS:
            return self._with_births(page, t) if self.shape.births else self._own_state(page, t)
        versions, modified, since, until = zip(*(self.state(item, t) for item in self.listed(page)), strict=True)
        return ChangeState(sum(versions), max(modified), max(since), min(until))

    def _own_state(self, page: int, t: float) -> ChangeState:
        return state_at(self.shape.seed, page, float(self.rates[page]), self.shape.origin, t)

    def _with_births(self, page: int, t: float) -> ChangeState:
        """A page changes when a document is born that it links to; a document begins with its birth."""
        born = self.places.born[page : page + 1].tolist() if page < self.shape.pages else [-math.inf]
        if t < born[0]:
            return ChangeState(0, WEB_BEGAN, -math.inf, born[0])
        own, times = self._own_state(page, t), born + self._born_on.get(page, [])
        done = bisect_right(times, t)
        last = times[done - 1]
        until = min(own.until, times[done]) if done < len(times) else own.until
        return ChangeState(own.version + done - 1, max(own.modified, last), max(own.since, last), until)

    def _births(self) -> dict[int, list[float]]:
        """Page -> when documents that it links to are born, ascending."""
        inner = np.flatnonzero(self.slots.targets < self.shape.pages)
        later = inner[np.isfinite(self.places.born[self.slots.targets[inner]])]
        found: dict[int, list[float]] = {}
        for slot in later.tolist():
            page = int(np.searchsorted(self.slots.indptr, slot, side="right")) - 1
            found.setdefault(page, []).append(float(self.places.born[self.slots.targets[slot]]))
        return {page: sorted(set(times)) for page, times in found.items()}

    def _alter(self, page: int, version: int, targets: list[int], flags: list[int]) -> None:
        """Drift: the alterations up to this version each lead one link to the target of another, drawn at random."""
        rng = np.random.default_rng((self.shape.seed, page, _DRIFT))
        times = int(np.count_nonzero(rng.random(version) < self.shape.drift))
        free = [slot for slot, flag in enumerate(flags) if not flag]
        for time in range(times if free else 0):
            slot = free[mix(self.shape.seed, page, _DRIFT, time) % len(free)]
            chosen = mix(self.shape.seed, page, _DRIFT, time, 1) % len(self.slots.targets)
            target = int(self.slots.targets[chosen])
            if target not in targets and self.kind(target) not in _LISTS and self.is_born(target, -math.inf):
                targets[slot] = target
