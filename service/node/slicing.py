"""Long work on the event loop, some at a time: reads go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

AT_A_TIME = 100
"""between two turns of the event loop: 3 ms of work, where an item takes 30 us"""
T = TypeVar("T")


async def unhurried(items: Iterable[T], slice_size: int = AT_A_TIME) -> AsyncIterator[T]:
    """Yield the items; let other tasks run after each `slice_size` of them."""
    for count, item in enumerate(items, 1):
        yield item
        if not count % slice_size:
            await asyncio.sleep(0)
