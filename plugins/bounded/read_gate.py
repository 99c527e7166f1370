"""Shuts the node's reads when the time of a bounded run has passed: orders that are out then wait for the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xyro.plugins.bounded.read_quota import ReadQuota

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services

LOOK = 1.0
"""seconds between two looks whether a gate is open again"""


class ReadGate:
    """The gate of one partition: all have the same bound."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        self._quota = frontier.hooks.extension(ReadQuota)
        self._services = services

    def _is_open(self) -> bool:
        return self._quota is None or self._services.clock.time() < self._quota.until

    async def run(self) -> None:
        """Until the partition leaves."""
        gates, shut = self._services.gates, False
        gates.append(self._is_open)
        try:
            while True:
                await self._services.clock.sleep(LOOK)
                if shut and self._is_open():
                    self._services.wake()
                shut = not self._is_open()
        finally:
            gates.remove(self._is_open)
            self._services.wake()
