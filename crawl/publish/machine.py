"""What publications and subscriptions need of the process they live in, which is crawl/single.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from configs.schema import Settings
from crawl.page_loop import PageLoop
from crawl.page_node import PageNode
from crawl.publish.side_reads import SideReads
from crawl.publish.watch import Watch
from crawl.turn.scope import Scope
from wire.clock import Clock
from wire.messages import Priority


class Machine(Protocol):
    """All page nodes of a process, their loops, and the way to read something on the side."""

    settings: Settings
    clock: Clock
    scope: Scope
    nodes: list[PageNode]
    loops: list[PageLoop]
    watch: Watch
    side: SideReads

    async def submit(
        self, urls: Iterable[str], priority: Priority = Priority.ORDERED, *, seed: bool = True
    ) -> None: ...
