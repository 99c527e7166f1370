"""Shows the progress of a running crawl: one live line on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xyro.service.node.status import running
from xyro.service.views.forecast import proposal
from xyro.wire.text import LOG_FIELDS, counted, figure

if TYPE_CHECKING:
    from xyro.service.node.node import Node

LIVE, PLAIN = 0.25, 10.0
"""seconds between two lines"""
LATER, IDLE = 60.0, 3_600.0
"""seconds between two log lines once a crawl runs for BEGINNING, and while nothing happens"""
BEGINNING = 600.0
RECENT = 5.0
OFFERED_AFTER = 3_600.0
"""seconds"""
_log = logging.getLogger("xyro")


def line(status: Mapping[str, Any]) -> str:
    """One line out of a status: read, pages a second, known, unread, queue by priority, errors."""
    queued = " ".join(f"{name} {count:,}" for name, count in status["queue"].items() if count)
    errors = sum(status["errors"].values())
    return "  ".join(
        [
            f"{status['reads_this_run']:,} read",
            rate(status["pages_per_second"]),
            f"{status['known']:,} known",
            f"{status['states']['unread']:,} unread",
            f"queue: {queued or 'empty'}",
            f"{status['in_flight']:,} being read",
            counted(errors, "error"),
        ]
    )


def log_fields(status: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as fields of a line of JSON."""
    return {
        "event": "progress",
        "reads": status["reads_this_run"],
        "pages_per_second": status["pages_per_second"],
        "known": status["known"],
        "unread": status["states"]["unread"],
        "queue": status["queue"],
        "in_flight": status["in_flight"],
        "errors": status["errors"],
    }


def rate(reads: float) -> str:
    """Reads a second as people read them: `1,234/s`, `2.5/s`, slow ones by the hour."""
    if reads >= 10.0:
        return f"{reads:,.0f}/s"
    return f"{figure(reads, 2)}/s" if reads >= 0.1 or not reads else f"{figure(3_600.0 * reads, 2)}/h"


class LogPace:
    """Decides which status of a running crawl is worth a line in its log: one a while, hardly any while all stays."""

    def __init__(self) -> None:
        self._last: object = None
        self._said_at = -IDLE

    def wants(self, status: Mapping[str, Any], seconds: float) -> bool:
        """Tell whether a status is logged, `seconds` after the start of the crawl."""
        now = [status[name] for name in ("reads_this_run", "known", "states", "queue", "in_flight", "errors")]
        least = IDLE if now == self._last else PLAIN if seconds < BEGINNING else LATER
        if seconds < self._said_at + least - PLAIN / 2:
            return False
        self._last, self._said_at = now, seconds
        return True


class _Recent:
    """Speed over the last few seconds, which is what an eye can follow."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._seen: deque[tuple[float, int]] = deque(maxlen=int(RECENT / LIVE))

    def status(self) -> dict[str, Any]:
        """The status, with the speed of the last RECENT seconds in place of that of ten minutes."""
        now, reads = self._node.clock.monotonic(), self._node.reads
        then, before = self._seen[0] if self._seen else (self._node.started, 0)
        self._seen.append((now, reads))
        return {**running(self._node), "pages_per_second": (reads - before) / max(now - then, LIVE)}


async def offer(node: Node) -> None:
    """Propose a bandwidth in the log of a daemon that has none: when no new page waits, or after OFFERED_AFTER."""
    began = node.clock.monotonic()
    while not node.settings.refresh.bandwidth:
        await node.clock.sleep(PLAIN)
        part = node.crawl_views.plan_part(node.clock.time())
        if not part.pages.pages or (node.unread and node.clock.monotonic() < began + OFFERED_AFTER):
            continue
        row = proposal(part, node.settings.refresh)
        _log.info(
            "no [refresh] bandwidth is set; `xyro plan` proposes %.0f reads a day for the %s known now: %.1f %% fresh",
            row["reads_per_day"],
            counted(part.pages.pages, "page"),
            100.0 * row["freshness"],
            extra={LOG_FIELDS: {"event": "bandwidth-proposed", **row}},
        )
        return


async def show(node: Node, *, live: bool) -> None:
    """Until cancelled. A log of JSON has no live line: each of its lines is an object."""
    if live and sys.stderr.isatty() and node.settings.log.format == "text" and os.environ.get("TERM", "dumb") != "dumb":
        await _live(node)
    pace = LogPace()
    while True:
        await asyncio.sleep(PLAIN)
        if pace.wants(status := running(node), node.clock.monotonic() - node.started):
            _log.info("%s", line(status), extra={LOG_FIELDS: log_fields(status)})


async def _live(node: Node) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    recent, console = _Recent(node), Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
        while True:
            live.update(Text(line(recent.status()), overflow="ellipsis", no_wrap=True), refresh=True)
            await asyncio.sleep(LIVE)
