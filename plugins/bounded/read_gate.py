"""Holds the node to the bounds of a run.

When a run begins, orders that are out without being granted go back. Requests under way end, but count for none of its
reads.
When its time has passed, no read begins: orders that are out then wait for the next run.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from xyro.plugins.bounded.read_quota import ReadQuota

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services

LOOK, SOON = 1.0, 0.05
"""seconds between two looks whether a gate is open again; while more orders are out than are granted, for some may just
be on their way to the pool"""


class ReadGate:
    """The gate of one partition: all have the same bound."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        self._quota = frontier.hooks.extension(ReadQuota)
        self._number = frontier.partition.number
        self._services = services

    def _is_open(self) -> bool:
        return self._quota is None or self._services.clock.time() < self._quota.until

    def _is_overdrawn(self) -> bool:
        return self._quota is not None and self._quota.room(self._services.clock.time()) < 0

    async def run(self) -> None:
        """Until the partition leaves."""
        gates, shut = self._services.gates, False
        gates.append(self._is_open)
        try:
            while True:
                await self._rest(SOON if self._is_overdrawn() else LOOK)
                if self._is_overdrawn():
                    self._services.give_back(self._number)
                if shut and self._is_open():
                    self._services.wake()
                shut = not self._is_open()
        finally:
            gates.remove(self._is_open)
            self._services.wake()

    async def _rest(self, seconds: float) -> None:
        """So long, or until a run begins."""
        if self._quota is None:
            await self._services.clock.sleep(seconds)
            return
        self._quota.begun.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._quota.begun.wait()
