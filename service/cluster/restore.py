"""Brings partitions back whose owner is lost for good: from backups of its directory, or empty, on other nodes.

    copy      rows and files of the backup are sent to the node that is to have the partition (mover.py, arrivals.py)
    change    the placement names that node, at the next epoch: nothing of the lost process is taken any more
    books     all other partitions are audited at one moment: what they have applied, and what lies in their outboxes
    adjust    the copy numbers its transfers after the last ones that others applied, and waits for those that are still
              in an outbox; units that are missing are paid to its virtual page, those that it paid out after the
              backup, and has again, are taken back from what its pages pay there (`Ledger.excess`)
    open      it gets its name, and is opened; the others tell it again which of its URLs they know (outbox.py)

Until `change` nothing has happened. Killed after it, the partition is open nowhere until the command is given again.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import msgspec

from xyro.configs.schema import Settings
from xyro.metadata import rows
from xyro.metadata.partition import create
from xyro.plugins import extensions
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.cluster.bucket import Bucket, epochs
from xyro.service.cluster.cluster_remote import gather_answer, reason_of
from xyro.service.cluster.gathering import listed
from xyro.service.cluster.mover import Carrier, size_of
from xyro.service.cluster.node_watch import LiveNode, changed_subject, live_node
from xyro.service.node import crawl_file
from xyro.service.node.backup import Pinned
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import folder_of
from xyro.service.node.stopped import nodes_of
from xyro.service.views.audit import PartitionAudit, audit_part, combined_audit
from xyro.wire.clock import Clock
from xyro.wire.errors import InputError, MachineError
from xyro.wire.placement import Placement

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.cluster.broker_link import BrokerLink

FOLLOW_SECONDS = 60.0
"""for all nodes to follow a change of the placement: they look every two seconds"""
Pair = tuple[int, int]


@dataclass(slots=True)
class Restored:
    """A partition as its backup has it, and where it goes."""

    frontier: Frontier
    source: Path | None
    """None: it begins empty"""
    node: int
    audit: PartitionAudit
    loss: dict[str, Any]

    @property
    def number(self) -> int:
        return self.frontier.partition.number


class Restoration:
    """One `xyro cluster restore`."""

    def __init__(self, link: BrokerLink, clock: Clock) -> None:
        self._link = link
        self._clock = clock

    async def restore(
        self, sources: Sequence[Path], wanted: Sequence[int], node: int | None, empty: bool
    ) -> list[dict[str, Any]]:
        """Bring back the partitions that are open nowhere; what each has lost. wanted: just these; node: all of them
        there; empty: those that are in no backup begin anew.

        InputError: nothing is lost, or a backup is none of this crawl; MachineError: a node does not answer.
        """
        bucket = await Bucket.open(self._link)
        placement = await bucket.read()
        if placement is None:
            raise InputError("the cluster's bucket is empty; `xyro cluster adopt` makes it anew from its nodes")
        alive = await self._alive(placement)
        places = _places(placement, alive, sources, wanted, empty)
        targets = _targets(placement, alive, places, node)
        with ExitStack() as stack:
            lost = [stack.enter_context(_opened(placement, q, places[q], targets[q])) for q in places]
            return await self._bring_back(bucket, placement, lost, stack)

    async def _bring_back(
        self, bucket: Bucket, placement: Placement, lost: list[Restored], stack: ExitStack
    ) -> list[dict[str, Any]]:
        carried = []
        for each in lost:
            pinned = Pinned.of_partition(each.frontier.partition)
            stack.callback(pinned.close)
            carrier = Carrier(self._link, placement.crawl, self._clock, each.node, each.number)
            await carrier.send(pinned, size_of(each.frontier.partition.directory))
            carried.append((each, carrier, pinned))
        changed = await bucket.change(lambda now: _recovered(now, placement, lost))
        await self._until(
            changed, "follow the placement", lambda found: all(live.version >= changed.version for live in found)
        )
        adjust(lost, await self._books(changed, lost))
        for each, carrier, pinned in carried:
            await carrier.ask("rows", list(_rows_of(each)))
            await carrier.finish(changed.owners[each.number].epoch, pinned.files)
        wanted = {(each.number, changed.owners[each.number].epoch) for each in lost}
        opened = await bucket.change(lambda now: now)
        await self._until(
            opened, "open them", lambda found: wanted <= {pair for live in found for pair in live.open.items()}
        )
        return [{"partition": each.number, "node": each.node, **each.loss} for each in lost]

    async def _alive(self, placement: Placement) -> dict[int, LiveNode]:
        """The members that answer: node -> what it says."""
        members = sorted(map(int, placement.members))
        answers = await asyncio.gather(*(live_node(self._link, placement.crawl, number) for number in members))
        return {number: live for number, live in zip(members, answers, strict=True) if live is not None}

    async def _until(self, placement: Placement, name: str, reached: Callable[[Collection[LiveNode]], bool]) -> None:
        """Wait until all nodes that answer have come so far. MachineError: they do not."""
        end = self._clock.monotonic() + FOLLOW_SECONDS
        while True:
            await self._link.publish(changed_subject(placement.crawl), b"")
            alive = await self._alive(placement)
            if alive and reached(alive.values()):
                return
            if self._clock.monotonic() > end:
                raise MachineError(f"the nodes do not {name}; look at their logs, and give the command again")
            await self._clock.sleep(0.5)

    async def _books(self, placement: Placement, lost: Sequence[Restored]) -> list[PartitionAudit]:
        """The audits of all other partitions, of one moment. MachineError: one is missing."""
        others = {*range(placement.partitions)}.difference(each.number for each in lost)
        reason = ""
        end = self._clock.monotonic() + FOLLOW_SECONDS
        while others:
            node = placement.owners[min(others)].node
            status, data, _ = await gather_answer(self._link, placement.crawl, node, "GET", "/audit?books=1")
            if status == 200:
                answer = json.loads(data)
                parts = [msgspec.convert(part, PartitionAudit, strict=False) for part in answer["parts"]]
                absent = others.difference(*(part.partitions for part in parts))
                if not absent:
                    return parts
                reason = "; ".join(answer["missing"]) or f"partitions {listed(sorted(absent))} are open on no node"
            else:
                reason = reason_of(data, status)
            if self._clock.monotonic() > end:
                raise MachineError(f"{reason}: mend that, and give the command again")
            await self._clock.sleep(1.0)
        return []


def _places(
    placement: Placement,
    alive: Mapping[int, LiveNode],
    sources: Sequence[Path],
    wanted: Sequence[int],
    empty: bool,
) -> dict[int, Path | None]:
    """The partitions to bring back, each with the newest directory that has it. InputError: none, or not all."""
    opened = {partition: node for node, live in alive.items() for partition in live.open}
    for q in wanted:
        if q in opened:
            raise InputError(f"partition {q} is open on node {opened[q]}: it is not lost; `xyro cluster move` moves it")
    found: dict[int, Path] = {}
    for source in sources:
        if not epochs(source):
            raise InputError(f"{source}: not a backup of a node (no p0000 or the like in it)")
    for source in sorted(sources, key=lambda path: path.stat().st_mtime):
        found |= dict.fromkeys(epochs(source), source)
    lost = [q for q in range(placement.partitions) if q not in opened]
    if not lost:
        raise InputError("all partitions are open: nothing is lost")
    absent = [q for q in lost if q not in (wanted or lost) or (q not in found and not empty)]
    if absent:
        nodes = sorted({placement.owners[q].node for q in absent})
        raise InputError(
            f"partitions {listed(absent)} of node {listed(nodes)} are open on no node either: start it, name a backup "
            "that has them, too, or let those that no backup has begin anew by --empty"
        )
    return {q: found.get(q) for q in lost}


def _targets(
    placement: Placement,
    alive: Mapping[int, LiveNode],
    places: Mapping[int, object],
    node: int | None,
) -> dict[int, int]:
    """The node of each partition: the one that is named, or the living one with fewest. InputError: there is none."""
    counts = {n: len(live.open) for n, live in alive.items() if not placement.members[str(n)].draining}
    if node is not None:
        counts = {n: count for n, count in counts.items() if n == node}
    if not counts:
        raise InputError("no node is there to take them; start one with `xyro serve --join`, or name another")
    found: dict[int, int] = {}
    for q in places:
        found[q] = min(counts, key=lambda n: (counts[n], n))
        counts[found[q]] += 1
    return found


@contextmanager
def _opened(placement: Placement, number: int, source: Path | None, node: int) -> Iterator[Restored]:
    """A partition of a backup; an empty one where there is none. InputError: it is of another crawl, or damaged."""
    with ExitStack() as stack:
        directory = source or _empty_directory(placement, number, stack)
        (frontier,) = stack.enter_context(nodes_of(directory, extensions, [number]))
        facts = frontier.partition.facts
        if (facts["seed"], facts["partitions"]) != (placement.seed, placement.partitions):
            raise InputError(f"{source}: its partition {number} is one of another crawl")
        with CrawlViews([frontier], stopped=True).views() as views:
            audit = audit_part(views.views, VIEW_EXTENSIONS)
        if audit.violations:
            raise InputError(f"{source}: is damaged ({audit.violations[0]}): name another backup")
        yield Restored(frontier, source, node, audit, {})


def _empty_directory(placement: Placement, number: int, stack: ExitStack) -> Path:
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xyro-empty-")))
    settings = crawl_file.with_agreed(Settings(), placement.settings)
    (directory / crawl_file.NAME).write_text(crawl_file.text_of(settings), encoding="utf-8")
    create(folder_of(directory, number), number, placement.partitions, placement.seed, {})
    return directory


def _recovered(now: Placement, seen: Placement, lost: Sequence[Restored]) -> Placement:
    """The placement with them on their nodes. InputError: it is another one than was looked at."""
    for each in lost:
        if now.owners[each.number] != seen.owners[each.number] or str(each.node) not in now.members:
            raise InputError(f"partition {each.number}: somebody changed where it is meanwhile: look again")
        now = now.recovered(each.number, each.node)
    return now


def adjust(lost: Sequence[Restored], others: Sequence[PartitionAudit]) -> None:
    """Let the partitions go on where the others are, and make cash exact; `loss` of each says what is gone."""
    parts = [*others, *(each.audit for each in lost)]
    applied: dict[Pair, int] = {(source, target): seq for part in parts for source, target, seq in part.applied}
    sent: dict[Pair, int] = {(source, target): seq for part in parts for source, target, seq in part.sent}
    waiting: dict[Pair, int] = {}
    for source, target, seq, _ in (transfer for part in parts for transfer in part.transfers):
        waiting[source, target] = min(seq, waiting.get((source, target), seq))
    counted = {q: pages for part in parts for q, pages in part.counted.items()}
    report = combined_audit(parts)
    gap = report["cash_expected"] - report["cash_total"]
    for each in lost:
        number, outbox = each.number, each.frontier.outbox
        out = into = 0
        for q in range(outbox.partitions):
            last = applied.get((number, q), 0)
            out += max(last - outbox.sent.get(q, 0), 0)
            if q != number and last > outbox.sent.get(q, 0):
                outbox.sent[q] = last
            last = waiting.get((q, number), sent.get((q, number), 0) + 1) - 1
            into += max(last - outbox.applied.get(q, 0), 0)
            if q != number and last > outbox.applied.get(q, 0):
                outbox.applied[q] = last
        known = each.frontier.ledger.known_pages
        each.loss.update(
            backup=None if each.source is None else str(each.source),
            pages=known,
            pages_lost=max(counted.get(number, known) - known, 0),
            transfers_lost=out + into,
        )
    largest = max(lost, key=lambda each: each.frontier.ledger.known_pages)
    largest.frontier.ledger.virtual.receive(max(gap, 0))
    largest.frontier.ledger.excess += max(-gap, 0)
    largest.loss["cash"] = gap


def _rows_of(each: Restored) -> Iterator[tuple[bytes, bytes]]:
    """The rows of a partition that `adjust` has changed."""
    partition = each.frontier.partition
    scalars = {"commit": 0, **partition.scalars, "node": each.frontier.dump()}
    yield rows.META.key("scalars"), msgpack.packb(scalars)
    for source, seq in each.frontier.outbox.applied.items():
        if seq:
            yield rows.INBOX.key(source), seq.to_bytes(8, "big")
