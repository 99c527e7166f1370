"""Explains loads that wait for parts: `xyro status` counts them, `xyro why` says of one what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from xyro.metadata import rows
from xyro.metadata.states import LEASED, NAMES, WANTED, State
from xyro.wire.ids import LocalPage, local_page, owner_of
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.views import View, Views

READING, ORDERED, RETRY, LOADING = "being read", "ordered", "to be tried again", "about to be loaded"


def waits_for(frontier: Frontier) -> tuple[Counter[str], Counter[str]]:
    """Count the loads of a partition by the state of the parts that they wait for, O(distinct parts); those that wait
    for parts of other partitions by the URL."""
    own, foreign = Counter[str](), Counter[str]()
    partition = frontier.partition
    for need, loads in frontier.loads.needed.items():
        if partition.states[need] == State.FOREIGN:
            foreign[partition.url(need)] += loads
        else:
            own[_fate(partition.flags[need], partition.states[need])] += loads
    return own, foreign


def part_fates(frontier: Frontier, urls: Iterable[str]) -> dict[str, str]:
    """Return the states of parts of this partition, by URL; those that are unknown are left out."""
    partition = frontier.partition
    found = ((url, partition.url_index.find_one(url)) for url in urls)
    return {url: _fate(partition.flags[page], partition.states[page]) for url, page in found if page >= 0}


def waiting_for(
    waits: Iterable[tuple[Mapping[str, int], Mapping[str, int]]], fates: Mapping[str, str]
) -> dict[str, int]:
    """Count loads by the state of the parts that they wait for.

    waits: of each partition, as `waits_for` returned; fates: of the parts of other partitions. One that its partition
    does not know yet was ordered.
    """
    counts: Counter[str] = Counter()
    for own, foreign in waits:
        counts.update(own)
        for url, loads in foreign.items():
            counts[fates.get(url, ORDERED)] += loads
    return dict(counts.most_common())


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
        view, page = views.by_number[owner_of(number)], local_page(number)
    fate = _fate(int(view.flags[page]), int(view.state[page]))
    if fate == RETRY:
        row = view.row(page)
        return f"{url}: {row.error}, {fate} at {stamp(int(view.due[page]))}."
    return f"{url}: {fate}."
