"""Bounds the importances of a View, and tells growth from chance (opic/confidence.py).

convergence and error_bound are of a whole partition: the residual's bound (not an error), and the L1 error of all its
importances, of sum 1, at most, as far as intervals tell. importance_low and importance_high hold the true importance of
95 of 100 pages, by what a sample of them moved lately. A trend compares the importance of now with that at a read some
window of the clock ago.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.rows import Mark
from xyro.opic.confidence import (
    FARTHEST,
    LEAST,
    Trend,
    condition,
    convergence,
    error_bound,
    half_widths,
    interval,
    trend,
    young_width,
)
from xyro.opic.importance import TICKS, centred, elapsed, never_measured
from xyro.opic.page_parts import Mass
from xyro.opic.snapshots import HalfWidths
from xyro.service.views.text_tables import error_phrase, settled_phrase
from xyro.wire.ids import LocalPage
from xyro.wire.messages import MAX_LINKS
from xyro.wire.text import figure

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.metadata.store import StoreReader

Reals = NDArray[np.float64]
Pages = NDArray[np.int64] | slice
DAY = 86_400.0
TRENDS = ("trend", "trend_low", "trend_high", "trend_day", "trend_day_low", "trend_day_high")
"""log growth a turnover with its interval, and a day: not known before a day has passed, for nobody knows how a growth
of seconds goes on"""
BLOCK = 1 << 12
"""neighbouring pages whose widths are computed together"""
TINY = 1e-9
ROWS_AT_ONCE = 1 << 14
"""rows whose trends are computed together"""


class Rise(NamedTuple):
    page: LocalPage
    growth: float
    """relative growth a turnover (log)"""


class ImportanceBounds:
    """Intervals and trends of one View; `importance` tells those of pages, page-units a turnover (not of mean 1)."""

    def __init__(
        self, frontier: Frontier, importance: Callable[[Pages], Reals], mass: Mass, n: int, copied: bool
    ) -> None:
        ledger, opic = frontier.ledger, frontier.settings.opic
        self.importance = importance
        self.clock, self.settled, self.apart = ledger.clock.ticks, ledger.settled, ledger.remembered
        self._window = ledger.window.length_at(ledger.clock.ticks)
        self._snapshots = copy(frontier.importance_error.snapshots)
        self.now = frontier.now
        """wall clock of the last turn; 0 in a stopped crawl, whose OPIC clock stands since its last read"""
        columns = [frontier.columns[name][:n] for name in ("birth", "flow", "clock")]
        self._birth, self._flow, self._last = (column.copy() for column in columns) if copied else columns
        self._mean = mass.entries / max(int(mass.positive), 1) or 1.0
        self._block = -1, np.empty(0)
        self._plain = not ledger.terms.by_class and not ledger.terms.edge
        self._condition = condition(opic.damping, ledger.terms.edge, MAX_LINKS if ledger.terms.edge else 0)
        self.convergence = convergence(ledger.span)

    @cached_property
    def error_bound(self) -> float:
        """The proven bound, or the error with which every page of the sample lies at the end of its interval, if less.

        The proven one takes all errors to lead the same way; it is some 40 times the true error. Of the second each
        page is nearer to its middle than that but for 1 in 20, and on the mean by more than half: where fewer pages
        than promised lie in their intervals, it holds still.
        """
        proven, pages = error_bound(self.convergence, self._condition), self._snapshots.pages(len(self._flow))
        if proven >= FARTHEST:
            return proven
        middle = np.maximum(self._middles(pages), 0.0)
        whole = float(middle.sum())
        return min(proven, float((middle * np.expm1(self._widths(pages))).sum()) / whole) if whole > 0.0 else proven

    @cached_property
    def _moved(self) -> HalfWidths | None:
        """By how much the importances of the sample moved."""
        pages = self._snapshots.pages(len(self._flow))
        middle = self._middles(pages)
        unknown = never_measured(self._flow[pages]) | ~(middle > 0.0)
        sample = np.where(unknown, np.nan, middle / self._mean)
        return self._snapshots.half_widths(self.clock / TICKS, self._window, sample)

    def _widths(self, pages: Pages) -> Reals:
        """Half widths of the intervals of pages."""
        numbers = np.arange(*pages.indices(len(self._flow))) if isinstance(pages, slice) else pages
        never, age = never_measured(self._flow[pages]), elapsed(self.clock, self._birth[pages])
        middles, time = self._middles(pages) / self._mean, self.clock / TICKS
        return half_widths(numbers, middles, never, time, self.settled, age, self._moved)

    def _middles(self, pages: Pages) -> Reals:
        """Middles of the intervals, in the unit of the importances."""
        importance, flow = self.importance(pages), self._flow[pages]
        columns = flow, self._last[pages], self._birth[pages]
        return centred(importance, *columns, self.clock, self._window, self.settled)

    def _width(self, page: LocalPage) -> Reals:
        """The half width of a page's interval; those of its neighbours are computed with it, for an export."""
        number, first = page // BLOCK, page // BLOCK * BLOCK
        if self._block[0] != number:
            self._block = number, self._widths(slice(first, min(first + BLOCK, len(self._flow))))
        return self._block[1][page - first : page - first + 1]

    def interval(self, page: LocalPage, mean: float) -> tuple[float, float]:
        """(low, high) of a page's importance of mean 1. A page is never below 1 - damping if all are paid alike."""
        here = slice(page, page + 1)
        low, high = interval(self._middles(here) / mean, self._width(page), LEAST if self._plain else 0.0)
        importance = float(self.importance(here)[0]) / mean
        return min(float(low[0]), importance), max(float(high[0]), importance)

    def fields(self, page: LocalPage, mean: float, marks: Sequence[Mark], read_at: int) -> dict[str, float | None]:
        """Return the fields of a page's export row about its importance. read_at: its last read, seconds since 1970."""
        low, high = self.interval(page, mean)
        bounds: dict[str, float | None] = {
            "importance_low": round(low, 6),
            "importance_high": round(high, 6),
            "convergence": round(self.convergence, 6),
            "error_bound": round(self.error_bound, 6),
        }
        return {**bounds, **self._grown(page, self._base(marks), max(self.now, read_at))}

    def _grown(self, page: LocalPage, then: Mark | None, now: float) -> dict[str, float | None]:
        if then is None:
            return dict.fromkeys(TRENDS)
        growth = [float(values[0]) for values in self._trends([page], [then])]
        turnovers, days = (self.clock - then.clock) / TICKS, (now - then.time) / DAY
        daily = [value * turnovers / days if days >= 1.0 else None for value in growth]
        values = zip(TRENDS, (*growth, *daily), strict=True)
        return {name: None if value is None else round(value, 6) for name, value in values}

    def _base(self, marks: Sequence[Mark]) -> Mark | None:
        """The last mark that lies a window back: what it and the importance of now rest on overlaps little."""
        apart = self.apart * TICKS
        return next((mark for mark in reversed(marks) if self.clock - mark.clock >= apart), None)

    def _trends(self, pages: Sequence[LocalPage], then: Sequence[Mark]) -> Trend:
        ids = np.asarray(pages, np.int64)
        old = np.array([mark.importance for mark in then])
        backed = np.array([mark.backed for mark in then]) / TICKS
        turnovers = np.array([self.clock - mark.clock for mark in then]) / TICKS
        widths = young_width(np.array([mark.clock for mark in then]) / TICKS, backed)
        now = self.importance(ids)
        off = np.abs(np.log(np.maximum(now, TINY) / np.maximum(self._middles(ids), TINY)))
        return trend(now, self._widths(ids) + off, old, widths, turnovers)

    def rising(self, store: StoreReader) -> Iterator[Rise]:
        """Pages whose trend's interval lies above 0, from all rows of the store, some at a time."""
        found = ((rows.REFRESH.split(key), rows.unpack_refresh(row)) for key, row in store.scan(rows.REFRESH.prefix))
        based = ((page, then) for page, row in found if (then := self._base(row.marks)) and page < len(self._flow))
        while part := list(islice(based, ROWS_AT_ONCE)):
            pages = [page for page, _ in part]
            growth, low, _ = self._trends(pages, [then for _, then in part])
            up = np.flatnonzero(low > 0)
            yield from (Rise(pages[k], float(growth[k])) for k in up.tolist())


_GROWING = ("read", "leased", "queued")
"""states of pages whose trend is told: one that failed only keeps what it had"""


def importance_sentences(fields: dict[str, Any]) -> list[str]:
    """Format the fields as sentences."""
    found = [
        f"Its importance is {fields['importance']:.4g} (95 % interval: {fields['importance_low']:.4g} to "
        f"{fields['importance_high']:.4g}). Over all pages, {settled_phrase(fields['convergence'])}; "
        f"{error_phrase(fields['error_bound'])}."
    ]
    if fields["trend"] is not None and fields.get("state", "read") in _GROWING:
        sure = fields["trend_low"] > 0 or fields["trend_high"] < 0
        daily = ""
        if fields["trend_day"] is not None:
            daily = f", {_percent(fields['trend_day'])} a day"
            daily += f" ({_percent(fields['trend_day_low'])} to {_percent(fields['trend_day_high'])})"
        found.append(
            f"Its importance {'grew' if fields['trend'] > 0 else 'fell'}: {_percent(fields['trend'])} each time that "
            f"all cash is passed on ({_percent(fields['trend_low'])} to {_percent(fields['trend_high'])}"
            f"{')' if sure else ', so it may be chance)'}{daily}."
        )
    return found


def _percent(growth: float) -> str:
    """A log growth for people."""
    percent = 100.0 * math.expm1(growth)
    return f"{'-' if percent < 0 else '+'}{figure(abs(percent))} %"
