"""When a crawl is over, by its bounds or because nothing is left to read; and how importance settles then."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from xyro.service.node.joint_settling import Ids, JointSettling, places

if TYPE_CHECKING:
    from xyro.service.node.node import Node

PATIENCE = 30.0
"""`xyro crawl` ends when no retry is due within so many seconds"""
SETTLED = 24.0
"""turnovers after which the importance of a graph that was just found is within a few per cent (500 pages: 28 % after
12, 2.8 % after 24)"""
SETTLING_SPENDS = 16
"""most free spends for each read of the run while importance settles: 10 us each"""
SETTLING_PARTS = 3
"""commit groups of each of several partitions in which importance settles"""
FREE_SPENDS = 1 << 14
"""most spends of several partitions at once: 40 ms"""
EXCHANGES = 8
"""most rounds of commit groups by which transfers between partitions arrive"""
IDLE_GROUPS = 10
"""groups of settling in a row in which a lone partition found nothing to spend"""


class Bounds(Struct, frozen=True):
    """The bounds of a crawl, which ends when one is reached. 0 = unbounded."""

    pages: int = 0
    seconds: float = 0.0
    refresh: bool = False
    """goes on refreshing until a bound"""
    forever: bool = False
    """a daemon: never ends by itself"""
    wanted: Callable[[], bool] = lambda: True
    """nothing more is read while it says no; wake the pool when it says yes again"""


def ended(node: Node) -> str:
    """Return the reason why the crawl is over: 'max-pages' | 'max-seconds' | 'complete' | 'challenged' (all that is
    left waits for hosts that show challenges); '' while it is not."""
    if node.bounds.seconds and node.clock.monotonic() - node.started >= node.bounds.seconds:
        return "max-seconds"
    if node.bounds.pages and node.reads >= node.bounds.pages and quiet(node):
        return "max-pages"
    if node.bounds.forever or not quiet(node) or not _exhausted(node):
        return ""
    return "challenged" if any(frontier.scheduler.challenged for frontier in node.frontiers) else "complete"


def quiet(node: Node) -> bool:
    """No order out, nothing on its way to disk."""
    return node.pool.quiet() and all(loop.quiet for loop in node.partition_loops) and not node.leased


def _exhausted(node: Node) -> bool:
    """Nothing in scope is unread, no retry is due soon, no load waits, no transfer is on its way."""
    soon = node.clock.time() + PATIENCE
    refreshing = node.bounds.refresh
    return all(frontier.exhausted(soon, refreshing) for frontier in node.frontiers) and node.load_loop.quiet


def all_read(node: Node) -> bool:
    """Every known page in scope was read, or failed for good."""
    return not any(frontier.scheduler.unread_before(math.inf) for frontier in node.frontiers)


async def settle(node: Node) -> None:
    """Let importance settle once every page was read: a small crawl has spent its cash only a few times over."""
    spends, loops = node.reads * SETTLING_SPENDS, node.partition_loops
    if len(loops) > 1:
        await _settle_jointly(node, spends)
        return
    idle, loop = 0, loops[0]
    while spends > 0 and idle < IDLE_GROUPS and loop.frontier.ledger.clock.turnovers < SETTLED:
        spent = await loop.settle(SETTLED)
        spends, idle = spends - spent, 0 if spent else idle + 1


async def _settle_jointly(node: Node, spends: int) -> None:
    """The same of several partitions; after every few turnovers what came out is stored."""
    placed: Sequence[Ids] = ()
    while spends > 0 and (now := max(frontier.ledger.clock.turnovers for frontier in node.frontiers)) < SETTLED:
        await _exchanged(node)
        async with node.boundary():
            frontiers = node.frontiers
            if [len(numbers) for numbers in placed] != [frontier.columns.n for frontier in frontiers]:
                placed = places(frontiers)
            part, enough = JointSettling(frontiers, placed), min(now + SETTLED / SETTLING_PARTS, SETTLED)
            spent = -1
            while spent and part.spends < spends:
                spent = part.spend(enough, FREE_SPENDS)
                await asyncio.sleep(0)
            for index, loop in enumerate(node.partition_loops):
                await loop.commit(partial(part.close, index, node.clock.time()))
        node.check_writes()
        spends -= part.spends if part.spends else spends


async def _exchanged(node: Node) -> None:
    """Let cash between partitions arrive: to partition 0, and from there to the others."""
    for _ in range(EXCHANGES):
        await node.catch_up()
        async with node.boundary():
            if all(loop.quiet for loop in node.partition_loops):
                return


async def finished(node: Node) -> str:
    """Wait for the end; the reason. Raises what a node failed of."""
    while not (reason := ended(node)):
        await asyncio.sleep(0.05)
        node.check()
    return reason
