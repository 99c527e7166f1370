"""One partition at work in a node: its frontier, its loop, its plug-ins, and their tasks.

A node begins with the partitions of its directory; in a cluster one may come while the node runs, and go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from xyro.service.node.host_calendar import HostCalendar
from xyro.service.node.page_lookup import PartitionParts
from xyro.service.node.partition_loop import PartitionLoop
from xyro.service.node.services import Plugin

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

GRACE = 2.0
"""seconds for a commit group under way when a partition leaves"""


class Resident(Struct, eq=False):
    """The parts of a node that belong to one partition."""

    frontier: Frontier
    loop: PartitionLoop
    parts: PartitionParts
    calendar: HostCalendar
    plugins: Sequence[Plugin]
    opens_at: float
    """monotonic: no order before; another node may have read its hosts a moment ago"""
    leaving: bool = False
    """it makes no orders any more"""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    """of its loop, then of its plug-ins"""

    @property
    def number(self) -> int:
        return self.frontier.partition.number

    def start(self, ended: Callable[[asyncio.Task[None]], None]) -> None:
        """Set its loop and plug-ins to work. ended: called with each task that ends."""
        for work in (self.loop.run(), *(plugin.run() for plugin in self.plugins)):
            task = asyncio.create_task(work)
            task.add_done_callback(ended)
            self.tasks.append(task)

    async def stop_plugins(self) -> None:
        """End its plug-ins while its loop still commits what they store as they end."""
        await _cancelled(self.tasks[1:])

    async def stop(self) -> None:
        """Commit what came in; nothing works on it afterwards."""
        await self.stop_plugins()
        await _cancelled(self.tasks)
        await self.loop.drain(GRACE)

    def hosts(self) -> set[str]:
        """Names of the hosts that belong to the partition; of others it knows links."""
        partition = self.frontier.partition
        names, owners = partition.hosts.names, partition.owners().tolist()
        return {name for name, owner in zip(names, owners, strict=True) if owner == self.number}

    def leased_hosts(self) -> list[str]:
        """Names of the hosts of which orders are out."""
        hosts = self.frontier.partition.hosts
        return [name for number, name in enumerate(hosts.names) if hosts.leased[number]]


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
