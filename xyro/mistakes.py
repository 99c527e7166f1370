"""Logs mistakes of ours in reads, whose failure class is `internal` (reports.py): no page is lost, no mistake hidden.

A line at level error says which URL was read, and the last frame of the traceback, where the mistake is. One mistake
may fail each page of a crawl: at most LINES lines a minute are written, and the next one says how many were left out.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from pathlib import Path

from xyro.wire.clock import Clock
from xyro.wire.text import LOG_FIELDS, printable, short
from xyro.wire.urls import authority

INTERNAL = "internal"
LINES, WINDOW = 5, 60.0
"""at most so many log lines within so many seconds, whenever these begin"""
_ROOT = Path(__file__).resolve().parents[1]
_log = logging.getLogger("xyro")


def traced(error: BaseException) -> str:
    """An exception as one line, with the last frame of its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return short(error)
    path = Path(frames[-1].filename)
    file = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else Path(*path.parts[-2:])
    return f"{short(error)} ({file}, line {frames[-1].lineno}, in {frames[-1].name})"


def detail_of(failure: str, error: BaseException) -> str:
    """The detail of a failure class that an exception was given."""
    return traced(error) if failure == INTERNAL else short(error)


class MistakeLog:
    """Log lines of mistakes, some a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: deque[float] = deque([-WINDOW] * LINES)
        """when the latest were written"""
        self._omitted = 0

    def note(self, url: str, detail: str) -> None:
        """A read of this URL failed through a mistake of ours."""
        now = self._clock.monotonic()
        if now - self._lines[0] < WINDOW:
            self._omitted += 1
            return
        self._lines.append(now)
        self._lines.popleft()
        omitted, self._omitted = self._omitted, 0
        fields = {"event": "mistake", "url": url, "host": authority(url), "class": INTERNAL, "error": detail}
        more = f"; {omitted} more were not logged" if omitted else ""
        _log.error(
            "read %s: a mistake of Xyro's own: %s%s",
            printable(url, 2000),
            detail,
            more,
            extra={LOG_FIELDS: {**fields, "omitted": omitted}},
        )
