"""Finds the pages that give a page most cash: a reverse scan of Link-Data, which stores links only forward.

A page of importance x with d stored links gives each of them about x (1 - f) / d a turnover, f being what it pays the
virtual page. The look goes through the links of all pages, for at most SECONDS: of a hundred thousand or so; where it
was cut off it says how far it came. In a running crawl it works in a thread, on the rows of one commit boundary.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np

from xyro.metadata import rows
from xyro.service.views.views import View, Views
from xyro.wire.clock import Clock
from xyro.wire.ids import LocalPage

SECONDS = 0.4
MAX_GIVERS = 3
CHECK = 4096
"""rows between two looks at the clock"""


def targets_of(views: Views, url: str) -> dict[int, LocalPage]:
    """Find the numbers of a URL in the Link-Data of each partition: partition -> local number. Needs the URL tables."""
    found = {number: view.partition.url_index.find_one(url) for number, view in views.by_number.items()}
    return {number: page for number, page in found.items() if 0 <= page < views.by_number[number].n}


def find_givers(
    views: Views, targets: Mapping[int, LocalPage], clock: Clock, seconds: float = SECONDS
) -> dict[str, Any]:
    """{"givers": [{url, gives}] the most generous first, "links_seen": share of the pages with links looked at}."""
    end = clock.monotonic() + seconds
    best: list[tuple[float, int, LocalPage]] = []
    seen = pages = 0
    for number, target in targets.items():
        view = views.by_number[number]
        pages += view.n
        seen += _look(view, number, target, clock, end, best)
    found = [
        {"url": views.by_number[number].url(page), "gives": round(gives / views.mean, 6)}
        for gives, number, page in sorted(best, reverse=True)
    ]
    return {"givers": found, "links_seen": round(seen / pages, 4) if pages else 1.0}


def _look(
    view: View, number: int, target: LocalPage, clock: Clock, end: float, best: list[tuple[float, int, LocalPage]]
) -> int:
    """The parents within one partition; -> how many of its pages were looked at."""
    needle, share = target.to_bytes(4, "little"), view.frontier.settings.opic.damping
    for count, (key, value) in enumerate(view.store.scan(rows.LINK.prefix)):
        if count % CHECK == CHECK - 1 and clock.monotonic() > end:
            return rows.LINK.split(key)
        if needle not in value:  # most rows: no need to take them apart
            continue
        page, children = rows.LINK.split(key), rows.unpack_links(value)
        if page >= view.n or not bool(np.any(children == target)):
            continue
        entry = (view.importance_at(page) * share / len(children), number, page)
        (heapq.heappush if len(best) < MAX_GIVERS else heapq.heappushpop)(best, entry)
    return view.n


def giver_sentences(found: Mapping[str, Any]) -> list[str]:
    """Format what `find_givers` found as sentences."""
    part = found["links_seen"]
    cut = (
        ""
        if part >= 1.0
        else f" (of the first {100 * part:.0f} % of the pages; the look is cut off after {SECONDS:g} s)"
    )
    if not found["givers"]:
        return [f"No stored link leads to it{cut}: its cash comes from the virtual page."]
    named = ", ".join(f"{giver['url']} ({giver['gives']:.3g})" for giver in found["givers"])
    return [f"Most of its cash comes, in importance a turnover, from {named}{cut}."]
