"""What a person sees while a crawl runs: one live line on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys

from crawl.single import Single
from crawl.status import running

LIVE, PLAIN = 0.25, 10.0
"""seconds between two lines"""
_log = logging.getLogger("xyro")


def line(single: Single) -> str:
    """pages/s, known, queue by priority, errors."""
    said = running(single)
    queue = said["queue"]
    names = {"blocking": "block", "ordered": "order", "refresh": "refresh", "discover": "discover", "scout": "scout"}
    queued = " ".join(f"{names[name]} {count:,}" for name, count in queue.items() if count)
    errors = sum(said["errors"].values())
    parts = [
        f"{said['reads_this_run']:,} read",
        f"{said['pages_per_second']:.0f}/s",
        f"{said['known']:,} known",
        f"{said['states']['unread']:,} unread",
        f"queue: {queued or 'empty'}",
        f"{said['in_flight']} being read",
        f"{errors:,} errors",
    ]
    return "  ".join(parts)


async def show(single: Single) -> None:
    """Until cancelled."""
    if sys.stderr.isatty():
        await _live(single)
    while True:
        await asyncio.sleep(PLAIN)
        _log.info("%s", line(single))


async def _live(single: Single) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(Text(""), console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        while True:
            live.update(Text(line(single), overflow="ellipsis", no_wrap=True))
            await asyncio.sleep(LIVE)
