"""Explains loads that wait for parts: `xyro status` counts them, `xyro why` says of one what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xyro.metadata import rows
from xyro.metadata.states import LEASED, NAMES, WANTED, State
from xyro.service.views.views import View, Views
from xyro.wire.ids import LocalPage, local_page, owner_of
from xyro.wire.text import stamp
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

READING, ORDERED, RETRY, LOADING = "being read", "ordered", "to be tried again", "about to be loaded"


def waiting_for(frontiers: Sequence[Frontier]) -> dict[str, int]:
    """Count loads by the state of the parts that they wait for. O(distinct parts)."""
    counts: Counter[str] = Counter()
    for frontier in frontiers:
        for need, loads in frontier.loads.needed.items():
            counts[_part_fate(*_home(frontiers, frontier, need))] += loads
    return dict(counts.most_common())


def _home(frontiers: Sequence[Frontier], frontier: Frontier, page: LocalPage) -> tuple[Frontier, LocalPage]:
    """The node and number where a page of another partition lives (itself while it is not known there)."""
    if frontier.partition.states[page] != State.FOREIGN:
        return frontier, page
    url = frontier.partition.url(page)
    home = frontiers[partition_of(host_of(url), len(frontiers))]
    number = home.partition.url_index.find_one(url)
    return (home, number) if number >= 0 else (frontier, page)


def _part_fate(frontier: Frontier, page: LocalPage) -> str:
    return _fate(frontier.partition.flags[page], frontier.partition.states[page])


def _fate(flags: int, state: int) -> str:
    if flags & LEASED:
        return READING
    if flags & WANTED or state == State.FOREIGN:
        return ORDERED
    if state == State.ERROR:
        return RETRY
    return LOADING if state == State.READ else NAMES[State(state)]


def wait_sentences(views: Views, view: View, page: LocalPage) -> Iterator[str]:
    """Sentences about a load that waits; none if it does not."""
    stored = view.store.get(rows.STATUS.key(page))
    if stored is None:
        return
    wait = rows.unpack_wait(stored)
    patience = view.frontier.settings.loader.patience
    times = "once" if wait.readings == 1 else f"{wait.readings:,} times"
    yield (
        f"Its load has waited since {stamp(wait.since)} for {len(wait.needs)} of its parts (DTDs, entities, schemas), "
        f"was read {times} for that, and is taken without them at {stamp(wait.since + patience)}."
    )
    for need in wait.needs:
        yield f"It waits for {_part(views, view, need)}"


def _part(views: Views, view: View, page: LocalPage) -> str:
    url = view.url(page)
    number = views.find(url)
    if number is not None:
        view, page = views.views[owner_of(number)], local_page(number)
    fate = _fate(int(view.flags[page]), int(view.state[page]))
    if fate == RETRY:
        row = view.row(page)
        return f"{url}: {row.error}, {fate} at {stamp(int(view.due[page]))}."
    return f"{url}: {fate}."
