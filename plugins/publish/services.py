"""What publications and subscriptions need of the process they live in, which is service/node/single.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from xyro.configs.schema import Settings
from xyro.frontier.partition import PageNode
from xyro.frontier.scope import Scope
from xyro.frontier.watch import Watch
from xyro.plugins.publish.commands import RowTable, StoreRow
from xyro.service.node.command_sender import CommandSender
from xyro.service.node.side_reads import SideReads
from xyro.wire.clock import Clock
from xyro.wire.messages import Priority


class Machine(Protocol):
    """All page nodes of a process, their loops, and the way to read something on the side."""

    settings: Settings
    clock: Clock
    scope: Scope
    nodes: list[PageNode]
    commands: CommandSender
    watch: Watch
    side: SideReads

    async def submit(
        self, urls: Iterable[str], priority: Priority = Priority.ORDERED, *, seed: bool = True
    ) -> None: ...


async def store_row(single: Machine, table: RowTable, number: int, row: bytes) -> None:
    """Store a packed row with partition 0, or delete it (empty); returns when that is on disk."""
    await single.commands.send(0, lambda request: StoreRow(request, table, number, row))
