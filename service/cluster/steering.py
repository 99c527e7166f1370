"""Shows a cluster, and changes it as a person wants: a partition is to move, a node to leave.

Each is one change of the placement (bucket.py); the nodes do what it asks for when they next look, and are told to
look at once. Where all servers of the broker lost their disks, running nodes say what they know on a subject of their
own, and `adopt` makes the bucket anew of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

import msgpack
import msgspec

from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.bucket import Bucket
from xyro.service.cluster.gathering import listed
from xyro.service.cluster.node_watch import changed_subject, live_node
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError
from xyro.wire.placement import Placement
from xyro.wire.text import counted

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ORPHANS: Final = "xyro.*.orphan"
"""subjects on which nodes say what they know of a placement whose bucket is empty"""
FOLLOWED_EACH: Final = 0.5
"""seconds between two looks at a node that drains"""
LISTEN_SECONDS: Final = 5.0
"""until every running node has said so: they look every two seconds"""


async def cluster_status(link: BrokerLink, placement: Placement) -> dict[str, Any]:
    """Nodes with their partitions, who does not answer, and the moves to come."""
    numbers = sorted(map(int, placement.members))
    answers = await asyncio.gather(*(live_node(link, placement.crawl, number) for number in numbers))
    nodes = [
        {
            "node": number,
            "host": placement.members[str(number)].host,
            "pid": placement.members[str(number)].pid,
            "directory": placement.members[str(number)].directory,
            "alive": live is not None,
            "ended": placement.members[str(number)].ended,
            "draining": placement.members[str(number)].draining,
            "partitions": sorted(placement.owned(number)),
            "open": sorted(live.open if live else ()),
            "closed": sorted(live.shut if live else ()),
        }
        for number, live in zip(numbers, answers, strict=True)
    ]
    moves = [
        {"partition": int(q), "from": placement.owners[int(q)].node, "to": target}
        for q, target in sorted(placement.moves.items(), key=lambda move: int(move[0]))
    ]
    return {"crawl": placement.crawl, "partitions": placement.partitions, "nodes": nodes, "moves": moves}


async def plan_move(link: BrokerLink, partition: int, node: int) -> Placement:
    """Let a partition go to a node. InputError: there is no such partition or node."""

    def change(now: Placement) -> Placement:
        _require_member(now, node)
        if not 0 <= partition < now.partitions:
            raise InputError(f"partition {partition}: the crawl has partitions 0 to {now.partitions - 1}")
        return now.planned(partition, node)

    return await _change(link, change)


async def drain(link: BrokerLink, node: int) -> Placement:
    """Let all partitions of a node go to others, and none come. InputError: there is no other node."""

    def change(now: Placement) -> Placement:
        _require_member(now, node)
        if all(int(n) == node or member.draining for n, member in now.members.items()):
            raise InputError(f"node {node}: there is no other node that could take its partitions")
        member = now.members[str(node)]
        return now.with_member(node, msgspec.structs.replace(member, draining=True))

    return await _change(link, change)


async def follow_drain(
    link: BrokerLink, placement: Placement, node: int, clock: Clock, patience: float, tell: Callable[[str], None]
) -> None:
    """Return when a node that drains has no partition any more; meanwhile tell where each goes.

    MachineError: none has gone for `patience` seconds, or the node does not answer."""
    bucket, left = await Bucket.open(link), placement.owned(node)
    end = clock.monotonic() + patience
    while left:
        if await live_node(link, placement.crawl, node) is None:
            raise MachineError(
                f"node {node}: does not answer, and has {_partitions(left)}: start it, and drain it again; if its disk "
                "is lost, `xyro cluster restore` brings them back from a backup"
            )
        if clock.monotonic() > end:
            raise MachineError(
                f"node {node}: has {_partitions(left)} yet, and none has gone for {patience:.0f} s; it goes on, and "
                "its log says what holds them"
            )
        await clock.sleep(FOLLOWED_EACH)
        now = await bucket.change(lambda now: None)
        if (member := now.members.get(str(node))) is not None and not member.draining:
            raise MachineError(f"node {node}: was started anew meanwhile, and keeps what it has")
        for q in sorted(left.keys() - now.owned(node).keys()):
            del left[q]
            end = clock.monotonic() + patience
            tell(f"partition {q} is on node {now.owners[q].node} now; {len(left)} to go")


def _partitions(numbers: Collection[int]) -> str:
    return f"{counted(len(numbers), 'partition')} ({listed(sorted(numbers))})"


async def forget(link: BrokerLink, node: int) -> Placement:
    """Take a node without partitions off the list. InputError: it has some."""

    def change(now: Placement) -> Placement:
        _require_member(now, node)
        if owned := sorted(now.owned(node)):
            raise InputError(
                f"node {node}: has {len(owned)} partitions, and what they know is on its disk alone: start it again, "
                f"`xyro cluster drain {node}`, then forget it"
            )
        return now.without_member(node)

    return await _change(link, change)


async def agree(link: BrokerLink, change: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[str, ...]:
    """Change the settings that all nodes share; names of those that are others now. `change`: old ones -> new ones."""
    before: dict[str, Any] = {}

    def replace(now: Placement) -> Placement:
        before.update(now.settings)
        return msgspec.structs.replace(now, settings=change(now.settings))

    placement = await _change(link, replace)
    return tuple(key for key, value in placement.settings.items() if before.get(key) != value)


def _require_member(placement: Placement, node: int) -> None:
    if str(node) not in placement.members:
        raise InputError(f"node {node}: is none of the cluster; `xyro cluster status` lists them")


async def _change(link: BrokerLink, change: Any) -> Placement:
    placement = await (await Bucket.open(link)).change(change)
    await link.publish(changed_subject(placement.crawl), b"")
    return placement


async def adopt(link: BrokerLink) -> Placement:
    """Make an empty bucket anew from what the running nodes know. InputError: it is not empty, or nobody knows."""
    bucket = await Bucket.open(link)
    if await bucket.read() is not None:
        raise InputError("the cluster's bucket is not empty: there is nothing to adopt")
    found: list[tuple[Placement, int, dict[int, int]]] = []

    async def hear(message: Msg) -> None:
        placement, node, opened = msgpack.unpackb(message.data, strict_map_key=False)
        found.append((msgspec.json.decode(placement, type=Placement), node, opened))

    subscription = await link.subscribe(ORPHANS, hear)
    await asyncio.sleep(LISTEN_SECONDS)
    await subscription.unsubscribe()
    if not found:
        raise InputError("no running node knows of a placement: start the nodes that had partitions, then adopt")
    if len({placement.crawl for placement, _, _ in found}) > 1:
        raise InputError("nodes of several crawls are there: stop those of all but one")
    placement = adopted([(each, node, opened) for each, node, opened in found])
    if not await bucket.create(placement):
        raise MachineError("somebody made the bucket meanwhile: look again")
    await link.publish(changed_subject(placement.crawl), b"")
    return placement


def adopted(answers: list[tuple[Placement, int, dict[int, int]]]) -> Placement:
    """The latest placement, with the partitions where they are open at the highest epoch."""
    placement = max((each for each, _, _ in answers), key=lambda each: each.version)
    opened: dict[int, tuple[int, int]] = {}
    for _, node, partitions in answers:
        for partition, epoch in partitions.items():
            opened[partition] = max(opened.get(partition, (0, 0)), (epoch, node))
    return placement.opened_at({q: (node, epoch) for q, (epoch, node) in opened.items()})
