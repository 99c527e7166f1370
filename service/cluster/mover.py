"""Moves a partition to another node while the crawl goes on.

    copy      its rows and files at one commit boundary are sent while it works on; exports that read it end
    stop      it ends its reads, commits what came in, and is closed: from here on it stands still
    tail      ranges of rows are compared by digest and those that differ sent again; files, too
    name      the copy gets its name, carrying the next epoch; no placement names it yet
    change    the placement names the other node, at that epoch, by compare-and-set; there it is opened

Killed before `change`, the placement names this node, whose directory carries its epoch: it goes on here, and the copy
is overwritten by the next try. Killed after it, the other node has it and this directory's epoch is old: it is never
opened. Where it is not known whether the change was made, the partition stays closed until the bucket says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgpack

from xyro.metadata.store import Pairs, Store
from xyro.service.cluster.arrivals import arrival_subject, digest_of, digest_of_open
from xyro.service.cluster.bucket import EPOCH, Bucket
from xyro.service.node.backup import Pinned, opened_files
from xyro.service.node.data_dir import folder_of
from xyro.wire.clock import Clock
from xyro.wire.errors import MachineError
from xyro.wire.frames import MAX_FRAME
from xyro.wire.placement import Placement

if TYPE_CHECKING:
    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.service.cluster.transport import ClusterBus
    from xyro.service.node.node import Node

SENT_BYTES = 512 << 10
"""of rows, or of a file, in one request"""
RANGE_ROWS = 4096
RANGES = 64
"""ranges compared by one request"""
PATIENCE, TRIES = 10.0, 6
"""seconds for an answer, and how often it is asked for"""
Stage = Callable[[str], None]
_log = logging.getLogger("xyro")


class Carrier:
    """Carries a partition to a node that takes it (arrivals.py). `move` names the try."""

    def __init__(self, link: BrokerLink, crawl: str, clock: Clock, target: int, partition: int) -> None:
        self._link = link
        self._clock = clock
        self._subject = arrival_subject(crawl, target)
        self._target = target
        self._partition = partition
        self._move = secrets.token_hex(4)

    async def send(self, pinned: Pinned, size: int) -> None:
        """Begin, and send rows and files as they are at one commit boundary; size: bytes that they take here."""
        await self.ask("begin", size)
        batches = _batches(pinned.rows.scan(b""))
        while (rows := await asyncio.to_thread(next, batches, None)) is not None:
            await self.ask("rows", rows)
        for name, file in pinned.files.items():
            await self.send_file(name, file.read)

    async def send_file(self, name: str, read: Callable[[int], bytes]) -> None:
        offset = 0
        while (data := await asyncio.to_thread(read, SENT_BYTES)) or not offset:
            await self.ask("file", name, offset, data)
            offset += len(data)
            if not data:
                return

    async def finish(self, epoch: int, files: Mapping[str, BinaryIO]) -> None:
        """Have the copy named, at this epoch, with just these files; those that are others there are sent again."""
        named = {name: file for name, file in files.items() if name != EPOCH}
        digests = {}
        for name, file in named.items():
            file.seek(0)
            digests[name] = await asyncio.to_thread(digest_of_open, file)
        while lacking := (await self.ask("finish", epoch, digests))["lacking"]:
            for name in lacking:
                named[name].seek(0)
                await self.send_file(name, named[name].read)

    async def ask(self, operation: str, *values: object) -> dict[str, Any]:
        """One request to the other node. MachineError: it refuses, or does not answer."""
        partition, move = self._partition, self._move
        data = msgpack.packb((operation, partition, move, *values))
        *pieces, last = [data[i : i + MAX_FRAME] for i in range(0, len(data), MAX_FRAME)]
        name = secrets.token_hex(4)
        for number, piece in enumerate(pieces):
            await self._request(msgpack.packb(("piece", partition, move, name, number, piece)))
        if pieces:
            last = msgpack.packb(("last", partition, move, name, len(pieces), last))
        return await self._request(last)

    async def _request(self, data: bytes) -> dict[str, Any]:
        from nats.errors import Error

        for _ in range(TRIES):
            try:
                received = await self._link.client.request(self._subject, data, timeout=PATIENCE)
            except (OSError, Error):
                await self._clock.sleep(0.5)
                continue
            answer: dict[str, Any] = msgpack.unpackb(received.data)
            if error := answer.get("error"):
                raise MachineError(f"node {self._target}: {error}")
            return answer
        raise MachineError(f"node {self._target} does not answer")


class Mover:
    """Moves partitions of one node, one at a time. `stage`: called with the name of each step that begins."""

    def __init__(self, link: BrokerLink, bus: ClusterBus, node: Node, stage: Stage = lambda name: None) -> None:
        self._link = link
        self._bus = bus
        self._node = node
        self._stage = stage

    async def move(self, partition: int, target: int, bucket: Bucket, reopen: Callable[[], Any]) -> Placement:
        """Move a partition that is open here; the placement afterwards. MachineError: it could not be moved, and is
        open here again (`reopen`)."""
        carrier = Carrier(self._link, self._bus.placement.crawl, self._node.clock, target, partition)
        await self._copy(partition, carrier)
        await self._node.read_out(partition)
        self._stage("stop")
        began = self._node.clock.monotonic()
        epoch = self._bus.placement.owners[partition].epoch + 1
        await self._node.release(partition)
        try:
            self._stage("tail")
            await self._send_tail(partition, carrier, epoch)
        except BaseException:
            await reopen()
            raise
        self._stage("change")
        placement = await self._change(bucket, partition, target, epoch)
        if placement.owners[partition].node == self._bus.number:
            await reopen()
            raise MachineError(f"partition {partition}: somebody took the move back")
        stood = self._node.clock.monotonic() - began
        _log.info("partition %d: moved to node %d; it stood still for %.2f s here", partition, target, stood)
        self._stage("delete")
        await asyncio.to_thread(shutil.rmtree, folder_of(self._node.data.path, partition), ignore_errors=True)
        return placement

    # -- the steps -----------------------------------------------------------------------------------------------

    async def _copy(self, partition: int, carrier: Carrier) -> None:
        """Send the partition as it is at one commit boundary."""
        self._stage("copy")
        pinned = await self._node.look_at(partition, Pinned.of_partition)
        try:
            await carrier.send(pinned, await asyncio.to_thread(size_of, folder_of(self._node.data.path, partition)))
        finally:
            pinned.close()

    async def _send_tail(self, partition: int, carrier: Carrier, epoch: int) -> None:
        """Bring the copy to where the closed partition is, and have it named."""
        folder = folder_of(self._node.data.path, partition)
        store = await asyncio.to_thread(Store.open, folder / "store")
        try:
            ranges = _ranges(store)
            while some := await asyncio.to_thread(_some, ranges):
                compared = [(first, last, digest) for first, last, digest, _ in some]
                answer = await carrier.ask("compare", compared)
                for number in answer["different"]:
                    first, last, _, rows = some[number]
                    await self._replace(carrier, first, last, rows)
        finally:
            store.close()
        files = dict(opened_files(folder))
        try:
            await carrier.finish(epoch, files)
        finally:
            for file in files.values():
                file.close()
        self._stage("name")

    async def _replace(self, carrier: Carrier, first: bytes, last: bytes, rows: list[tuple[bytes, bytes]]) -> None:
        """Send a range anew, in requests that a broker takes."""
        batches = list(_batches(iter(rows))) or [[]]
        for number, batch in enumerate(batches):
            begin = first if not number else batch[0][0]
            end = last if number == len(batches) - 1 else batches[number + 1][0][0]
            await carrier.ask("replace", begin, end, batch)

    async def _change(self, bucket: Bucket, partition: int, target: int, epoch: int) -> Placement:
        """Let the placement name the other node; however long it takes to know that it does."""
        number = self._bus.number

        def change(now: Placement) -> Placement | None:
            owner = now.owners[partition]
            if owner.node != number or owner.epoch + 1 != epoch or now.moves.get(str(partition)) != target:
                return None
            return now.moved(partition, target)

        while True:
            try:
                return await bucket.change(change)
            except MachineError as error:
                _log.warning("partition %d: waits for the bucket (%s)", partition, error)
                await self._node.clock.sleep(1.0)


def size_of(folder: Path) -> int:
    """Bytes of the files of a folder, of which some may go meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def _batches(pairs: Pairs) -> Iterator[list[tuple[bytes, bytes]]]:
    """Rows in lists of about SENT_BYTES, one that is larger alone."""
    rows: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in pairs:
        length = len(key) + len(value) + 16
        if rows and size + length > SENT_BYTES:
            yield rows
            rows, size = [], 0
        rows.append((key, value))
        size += length
    if rows:
        yield rows


def _ranges(store: Store) -> Iterator[tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]]]]:
    """(first key, key after the last, digest, rows): together all keys there can be."""
    rows: list[tuple[bytes, bytes]] = []
    first, size = b"", 0
    for pair in store.scan(b""):
        if len(rows) == RANGE_ROWS or size > SENT_BYTES:
            yield first, pair[0], digest_of(iter(rows)), rows
            first, rows, size = pair[0], [], 0
        rows.append(pair)
        size += len(pair[0]) + len(pair[1])
    yield first, b"", digest_of(iter(rows)), rows


def _some(
    ranges: Iterator[tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]]]],
) -> list[tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]]]]:
    return [found for _, found in zip(range(RANGES), ranges, strict=False)]
