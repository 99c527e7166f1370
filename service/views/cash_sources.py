"""Finds the pages that give a page most cash: a reverse scan of Link-Data, which stores links only forward.

A page of importance x with d stored links gives each of them about x (1 - f) / d a turnover, f being what it pays the
virtual page. The look goes through the links of all pages, for at most SECONDS: of a hundred thousand or so; where it
was cut off it says how far it came. In a running crawl the look works in a thread on the stored links of one commit
boundary, the importance of those that it found is taken at a later one: no column is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from xyro.metadata import rows
from xyro.opic.arrays import Pages, Reals
from xyro.opic.page_parts import greatest
from xyro.service.views.views import View, Views
from xyro.wire.clock import Clock
from xyro.wire.ids import LocalPage, local_pages

SECONDS = 0.4
MAX_GIVERS = 3
CHECK = 4096
"""rows between two looks at the clock"""


class Parents(NamedTuple):
    """The pages of a partition that link to a page."""

    pages: Pages
    links: Pages
    """how many each has stored"""
    seen: int
    """pages that were looked at"""
    total: int


def targets_of(views: Views, url: str) -> dict[int, LocalPage]:
    """Find the numbers of a URL in the Link-Data of each partition: partition -> local number. Needs the URL tables."""
    found = {number: view.partition.url_index.find_one(url) for number, view in views.by_number.items()}
    return {number: page for number, page in found.items() if 0 <= page < views.by_number[number].n}


def find_parents(
    views: Views, targets: Mapping[int, LocalPage], clock: Clock, seconds: float = SECONDS
) -> dict[int, Parents]:
    """The pages of each partition that link to its target, of those that were looked at. Reads the store alone."""
    end = clock.monotonic() + seconds
    return {number: _look(views.by_number[number], target, clock, end) for number, target in targets.items()}


def _look(view: View, target: LocalPage, clock: Clock, end: float) -> Parents:
    needle, pages, links, seen = target.to_bytes(4, "little"), [], [], view.n
    for count, (key, value) in enumerate(view.store.scan(rows.LINK.prefix)):
        if count % CHECK == CHECK - 1 and clock.monotonic() > end:
            seen = rows.LINK.split(key)
            break
        if needle not in value:  # most rows: no need to take them apart
            continue
        page, children = rows.LINK.split(key), rows.unpack_links(value)
        if page < view.n and bool(np.any(children == target)):
            pages.append(page)
            links.append(len(children))
    return Parents(np.array(pages, np.int64), np.array(links, np.int64), seen, view.n)


def greatest_givers(views: Views, parents: Mapping[int, Parents]) -> dict[str, Any]:
    """{"givers": [{url, gives, stale}] the most generous first, "links_seen": share of the pages with links looked
    at}."""
    best: list[tuple[float, int, LocalPage]] = []
    for number in parents.keys() & views.by_number.keys():  # a partition may have left meanwhile
        view, (pages, links, _, _) = views.by_number[number], parents[number]

        def gives(part: slice, view: View = view, pages: Pages = pages, links: Pages = links) -> Reals:
            return view.importance_of(pages[part]) * view.settings.opic.damping / links[part]

        found, values = greatest(gives, len(pages), MAX_GIVERS)
        best += zip(values.tolist(), repeat(number), local_pages(pages[found]))
    givers = [
        _giver(views.by_number[number], page, value / views.mean)
        for value, number, page in sorted(best, reverse=True)[:MAX_GIVERS]
    ]
    total = sum(each.total for each in parents.values())
    seen = sum(each.seen for each in parents.values())
    return {"givers": givers, "links_seen": round(seen / total, 4) if total else 1.0}


def _giver(view: View, page: LocalPage, gives: float) -> dict[str, Any]:
    return {"url": view.url(page), "gives": round(gives, 6), "stale": view.stale(page, view.row(page))}


def giver_sentences(found: Mapping[str, Any]) -> list[str]:
    """Format what `greatest_givers` found as sentences."""
    part = found["links_seen"]
    cut = (
        ""
        if part >= 1.0
        else f" (of the first {100 * part:.0f} % of the pages; the look is cut off after {SECONDS:g} s)"
    )
    if not found["givers"]:
        return [f"No stored link leads to it{cut}: its cash comes from the virtual page, which gives to all."]
    named = ", ".join(f"{giver['url']} ({giver['gives']:.3g})" for giver in found["givers"])
    return [f"Most of its importance comes, each time that all cash is passed on, from {named}{cut}."]
