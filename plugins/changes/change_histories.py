"""Change histories of a crawl's own pages, for `xyro export histories`: what `xyro lab refresh --changes` replays.

A line a page: {"path", "events": [[seconds since 1970, "A" | "M" | "D"], ...], "between": [[seconds, seconds], ...],
"importance", "rate", "reads", "last_read", "stale"}. Its events are the changes that the stream has of it (new: A,
changed and moved: M, gone: D), each at the time that Last-Modified says where that lies between the event before and
the read that showed it, else at that read. `between` has, for each event, the read before it and the read that showed
it: nothing is known of when, between them, an event without a date came, nor of others that it hid. A page that the
stream has not from its beginning on is born at its first read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xyro.metadata import rows
from xyro.plugins.changes.change_rows import ChangeKind, unpack_change
from xyro.wire.ids import LocalPage

if TYPE_CHECKING:
    from xyro.service.views.views import View, Views

EVENTS = {ChangeKind.NEW: "A", ChangeKind.CHANGED: "M", ChangeKind.MOVED: "M", ChangeKind.GONE: "D"}
Event = tuple[float, str, float, float]
"""(time, letter, the read before, the read that showed it)"""
PageEvents = dict[LocalPage, list[Event]]


def gather_histories(views: Views) -> list[PageEvents]:
    """The events of each partition, by page. Memory: some 150 bytes a stored change."""
    return [_gather(view) for view in views.views]


def _gather(view: View) -> PageEvents:
    pages: PageEvents = {}
    for _, packed in view.store.scan(rows.CHANGE.prefix):
        change = unpack_change(packed)
        letter = EVENTS.get(change.kind)
        if letter is None:
            continue
        events = pages.setdefault(change.page, [])
        if not events:
            letter = "A"
            if change.kind is not ChangeKind.NEW and (read := view.row(change.page).first_read):
                events.append(_birth(min(read, int(change.time))))
                letter = EVENTS[change.kind]
        if not events:
            events.append((change.time, letter, change.time, change.time))
            continue
        last, _, _, shown = events[-1]
        since = min(max(float(change.before), shown), change.time)
        dated = last < change.modified <= change.time
        events.append((float(change.modified) if dated else change.time, letter, since, change.time))
    return pages


def _birth(read: int) -> Event:
    return (float(read), "A", float(read), float(read))


def history_rows(views: Views, found: list[PageEvents]) -> Iterator[dict[str, Any]]:
    """A line of every page that was read, in the order of their ids."""
    for view, pages in zip(views.views, found, strict=True):
        for key, _ in view.store.scan(rows.REFRESH.prefix):
            page = rows.REFRESH.split(key)
            row, events = view.row(page), pages.get(page)
            if events is None:
                if not row.first_read or not row.signature:
                    continue
                events = [_birth(row.first_read)]
            yield {
                "path": view.url(page),
                "events": [[time, letter] for time, letter, _, _ in events],
                "between": [[since, shown] for _, _, since, shown in events],
                "importance": round(view.importance_at(page) / views.mean, 6),
                "rate": row.rate,
                "reads": row.reads,
                "last_read": row.last_read,
                "stale": view.stale(page, row),
            }
