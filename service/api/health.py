"""`GET /health` of a running crawler: what a supervisor asks again and again, without a token.

It answers at all: the process lives. 200: it does its work. 503: it does not, and `failing` says why; a supervisor may
restart it, which loses nothing that was committed. Numbers tell how near it is: how late the event loop is, since when
a commit group waits for the disk, how much disk is left, and what must not grow over months (tasks, open files).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyro.service.node.recent_figures import disk_free
from xyro.wire.clock import SystemClock

if TYPE_CHECKING:
    from xyro.service.node.node import Node

LOOK = 0.5
"""seconds between two looks at the event loop"""
REMEMBERED = 60
"""looks: half a minute"""
MOST_LATE = 10.0
"""seconds: an event loop this late keeps nobody's timeouts. An audit or export of millions of pages takes less"""
MOST_WAITING = 60.0
"""seconds that a commit group may wait for the disk: one write takes milliseconds, a compaction some seconds"""
LEAST_DISK = 256 << 20
"""bytes: room for some snapshots and compactions; a full disk stops the crawl"""


class Health:
    """`start` on the running loop, `close` in the end; `look` at any time."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._time = SystemClock()
        """of this machine, whatever clock the crawl goes by"""
        self._late: deque[float] = deque([0.0], maxlen=REMEMBERED)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            before = self._time.monotonic()
            await asyncio.sleep(LOOK)
            self._late.append(max(0.0, self._time.monotonic() - before - LOOK))

    def lag(self) -> float:
        """Seconds by which the event loop was late, at most in the last half minute."""
        return max(self._late)

    def look(self) -> dict[str, Any]:
        """`ok`, `failing` (why not), and the numbers; seconds and bytes."""
        now = self.node.clock.monotonic()
        committed, waits = self.node.committed_at, self.node.waits_since
        figures = {
            "pid": os.getpid(),
            "loop_lag": round(self.lag(), 3),
            "last_commit": None if committed is None else round(now - committed, 1),
            "commit_waits": 0.0 if waits is None else round(now - waits, 1),
            "disk_free": disk_free(self.node.data.path),
            "tasks": len(asyncio.all_tasks()),
            "open_files": _open_files(),
        }
        failing = self._failing(figures)
        return {"ok": not failing, **({"failing": failing} if failing else {}), **figures}

    def _failing(self, figures: dict[str, Any]) -> list[str]:
        found = []
        try:
            self.node.check()
        except Exception as error:
            found.append(str(error) or repr(error))
        if figures["loop_lag"] > MOST_LATE:
            found.append(f"the event loop was {figures['loop_lag']:.1f} s late")
        if figures["commit_waits"] > MOST_WAITING:
            found.append(f"a commit group waits for the disk since {figures['commit_waits']:.0f} s")
        if figures["disk_free"] < LEAST_DISK:
            found.append(f"{figures['disk_free'] >> 20} MiB of disk are left: free some")
        return found


def _open_files() -> int | None:
    """None where this system does not tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return None
