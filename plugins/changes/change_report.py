"""Reports the stream of changes and its sinks for `xyro status`: what is stored, and how far each sink lags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xyro.metadata import rows
from xyro.plugins.changes.change_rows import unpack_sink
from xyro.plugins.changes.cursors import decode_cursor
from xyro.plugins.changes.stored_changes import KEY, StreamState
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.partition_status import PartitionStatus

SINKS = "sinks"


def change_status(parts: Sequence[PartitionStatus], now: float) -> dict[str, Any]:
    """The fields `changes` and `sinks`, where the crawl records changes."""
    found = [part.extensions[KEY] for part in parts if KEY in part.extensions]
    if not found:
        return {}
    counts: Counter[str] = Counter()
    for part in found:
        counts.update(part["counts"])
    changes = {
        "recorded": counts.total(),
        **dict(sorted(counts.items())),
        "stored": sum(part["last"] - part["first"] + 1 for part in found),
        "bytes": sum(part["bytes"] for part in found),
    }
    home = next((part.extensions for part in parts if part.number == HOME), {})
    sinks = {name: _with_lag(sink, found) for name, sink in home.get(SINKS, {}).items()}
    return {"changes": changes, **({"sinks": sinks} if sinks else {})}


def _with_lag(sink: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Behind: stored changes that it was not given yet; dropped: those that it never will be."""
    fields = dict(sink)
    numbers = fields.pop("numbers") or [part["first"] - 1 for part in parts]  # it has not begun
    pairs = list(zip(numbers, parts, strict=False))
    behind = sum(max(0, part["last"] - max(number, part["first"] - 1)) for number, part in pairs)
    dropped = sum(max(0, part["first"] - 1 - number) for number, part in pairs)
    return {"behind": behind, "dropped": dropped, **fields}


def stored_changes(frontier: Frontier) -> dict[str, Any]:
    """Figures of one partition of a stopped crawl."""
    stored = frontier.hooks.stored.get(KEY)
    if stored is None:
        return {}
    state = StreamState.load(stored)
    figures: dict[str, Any] = {
        KEY: {"first": state.first, "last": state.last, "bytes": state.size, "counts": state.counts}
    }
    if frontier.partition.number == HOME:
        figures[SINKS] = {
            rows.SINK.split(key): _stored_sink(value, frontier.partitions)
            for key, value in frontier.partition.scan(rows.SINK.prefix)
        }
    return figures


def _stored_sink(packed: bytes, partitions: int) -> dict[str, Any]:
    row = unpack_sink(packed)
    return {
        "numbers": [position.number for position in decode_cursor(row.cursor, partitions)],
        "delivered": row.delivered,
        "gaps": row.gaps,
        "missed": row.missed,
        "dead": row.dead,
    }
