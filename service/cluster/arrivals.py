"""Partitions that come from other nodes: this end of a move (mover.py has the other one).

What arrives lies beside the data directory's partitions under a hidden name. It gets its real name, with its epoch in
it, when the sender says that it is whole and every range and file was compared; it is opened when the placement names
this node. Each request may come twice, and is answered again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgpack
from xxhash import xxh3_128_digest

from xyro.metadata.directories import sync
from xyro.metadata.store import Pairs, Store
from xyro.service.cluster.bucket import set_epoch
from xyro.service.node.data_dir import folder_of
from xyro.wire.errors import CodecError, MachineError, XyroError
from xyro.wire.sizes import sized

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.service.cluster.transport import ClusterBus

ARRIVING = ".arriving"
"""ends the name of a copy that is not whole"""
ROOM = 16 << 20
"""bytes that a partition which comes has to leave free for the others: a full disk ends a node"""
_log = logging.getLogger("xyro")


def arrival_subject(crawl: str, node: int) -> str:
    """Subject of the requests that bring a node a partition."""
    return f"xyro.{crawl}.arrive.{node}"


def digest_of(pairs: Pairs) -> bytes:
    """16 bytes that tell rows from others: keys and values in their order."""
    parts = [part for key, value in pairs for part in (len(key).to_bytes(4), len(value).to_bytes(4), key, value)]
    return xxh3_128_digest(b"".join(parts))


def rows_between(store: Store, first: bytes, last: bytes) -> Pairs:
    """Rows from the key `first` up to `last`, or to the end where that is empty."""
    for key, value in store.scan(b"", first):
        if last and key >= last:
            return
        yield key, value


class _Arrival:
    """One partition that is arriving."""

    def __init__(self, directory: Path, partition: int, move: str) -> None:
        self.move = move
        """names the try: a new one begins from nothing"""
        self.target = folder_of(directory, partition)
        self.folder = directory / f".{self.target.name}{ARRIVING}"
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            self.folder.mkdir(mode=0o700)
            self.store = Store.open(self.folder / "store", create=True)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def put(self, rows: list[list[bytes]]) -> None:
        batch = self.store.batch()
        for key, value in rows:
            batch.put(key, value)
        self.store.write(batch)

    def compare(self, ranges: list[list[bytes]]) -> list[int]:
        """Numbers of the ranges (first key, key after the last, digest) that are not as the sender has them."""
        return [
            number
            for number, (first, last, digest) in enumerate(ranges)
            if digest_of(rows_between(self.store, first, last)) != digest
        ]

    def replace(self, first: bytes, last: bytes, rows: list[list[bytes]]) -> None:
        batch = self.store.batch()
        for key, _ in list(rows_between(self.store, first, last)):
            batch.delete(key)
        for key, value in rows:
            batch.put(key, value)
        self.store.write(batch)

    def write(self, name: str, offset: int, data: bytes) -> None:
        if "/" in name or name.startswith(".") or not name:
            raise CodecError(f"arrival: {name!r} is no file of a partition")
        path = self.folder / name
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.seek(offset)
            file.write(data)
            file.truncate()

    def finish(self, epoch: int, files: dict[str, bytes]) -> list[str]:
        """Names of the files that are missing or others; none: the partition has its name and epoch now."""
        lacking = [name for name, digest in files.items() if _digest_of_file(self.folder / name) != digest]
        if lacking:
            return lacking
        self.store.close()
        for path in self.folder.iterdir():
            if path.is_file() and path.name not in files:
                path.unlink()
        set_epoch(self.folder, epoch)
        for place, _, names in os.walk(self.folder):
            for name in names:
                sync(Path(place, name))
            sync(Path(place))
        if self.target.exists():  # of a move that never came to its end: no placement names it
            shutil.rmtree(self.target)
        self.folder.rename(self.target)
        sync(self.target.parent)
        return []

    def close(self) -> None:
        """Give it up: what came is of no use."""
        self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _digest_of_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return digest_of_open(file)
    except FileNotFoundError:
        return b""


def digest_of_open(file: BinaryIO) -> bytes:
    """16 bytes that tell a file from others."""
    return xxh3_128_digest(file.read())


class Arrivals:
    """The partitions that are arriving at one node."""

    def __init__(self, link: BrokerLink, bus: ClusterBus, directory: Path) -> None:
        self._link = link
        self._bus = bus
        self._directory = directory
        self._arriving: dict[int, _Arrival] = {}
        self._finished: dict[int, str] = {}
        """partition -> the last move of it that was finished here"""
        self._subscription: Subscription | None = None
        self._lock = asyncio.Lock()
        self._pieces: tuple[str, list[bytes]] = ("", [])
        """of a request that is larger than a message"""

    async def start(self) -> None:
        """Take partitions from now on."""
        for left in self._directory.glob(f".*{ARRIVING}"):  # of a process that died
            await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
        subject = arrival_subject(self._bus.placement.crawl, self._bus.number)
        self._subscription = await self._link.subscribe(subject, self._take)

    async def close(self) -> None:
        """Take none any more."""
        if self._subscription is not None and self._link.connected:
            await self._subscription.unsubscribe()
        async with self._lock:
            for arrival in self._arriving.values():
                await asyncio.to_thread(arrival.close)
            self._arriving.clear()

    async def _take(self, received: Msg) -> None:
        async with self._lock:
            try:
                operation, partition, move, *values = msgpack.unpackb(received.data, strict_map_key=False)
                answer = await asyncio.to_thread(self._do, str(operation), int(partition), str(move), values)
            except (XyroError, OSError, ValueError, TypeError, msgpack.UnpackException) as error:
                _log.warning("cluster: a partition that arrives: %s", error)
                answer = {"error": str(error) or type(error).__name__}
        await self._link.publish(received.reply, msgpack.packb(answer))

    def _do(self, operation: str, partition: int, move: str, values: list[Any]) -> dict[str, Any]:
        """In a thread, one request after the other."""
        if operation in ("piece", "last"):
            name, number, data = values
            if self._pieces[0] != name:
                self._pieces = name, []
            parts = self._pieces[1]
            if number > len(parts):
                raise MachineError("a piece of a request was lost: the move begins again")
            parts[number:] = [data]
            if operation == "piece":
                return {}
            operation, partition, move, *values = msgpack.unpackb(b"".join(parts), strict_map_key=False)
        if partition in self._bus.open:
            raise MachineError(f"partition {partition} is open here")
        if operation == "finish" and self._finished.get(partition) == move:
            return {"lacking": []}
        arrival = self._arriving.get(partition)
        if operation == "begin":
            if arrival is None or arrival.move != move:
                self._give_up(partition)
                self._require_room(*values)
                self._arriving[partition] = _Arrival(self._directory, partition, move)
            return {}
        if arrival is None or arrival.move != move:
            raise MachineError(f"partition {partition}: this move is unknown here; it begins again")
        try:
            return self._carry_out(arrival, partition, operation, values)
        except BaseException:  # the sender begins again, and what is here would only take room
            self._give_up(partition)
            raise

    def _require_room(self, size: int) -> None:
        """MachineError: a partition of so many bytes would fill the disk."""
        if (free := shutil.disk_usage(self._directory).free) < size + ROOM:
            raise MachineError(f"its disk has no room for {sized(size)} more, {sized(free)} are free")

    def _give_up(self, partition: int) -> None:
        if (arrival := self._arriving.pop(partition, None)) is not None:
            arrival.close()

    def _carry_out(self, arrival: _Arrival, partition: int, operation: str, values: list[Any]) -> dict[str, Any]:
        """One step of a move under way."""
        if operation == "rows":
            arrival.put(values[0])
        elif operation == "compare":
            return {"different": arrival.compare(values[0])}
        elif operation == "replace":
            arrival.replace(*values)
        elif operation == "file":
            arrival.write(*values)
        elif operation == "finish":
            lacking = arrival.finish(*values)
            if not lacking:
                del self._arriving[partition]
                self._finished[partition] = arrival.move
            return {"lacking": lacking}
        else:
            raise CodecError(f"arrival: {operation!r} is no operation")
        return {}
