"""`xyro backup`, and [backup] at intervals: a whole copy of a data directory as it is at one commit boundary, while the
crawl goes on.

At the boundary, which lasts microseconds, each partition's store is pinned (a LevelDB snapshot) and its immutable files
are opened: what is deleted afterwards can still be read. The rest is done by a thread: rows go from the pinned stores
into fresh ones in their order, with LevelDB's checksums verified, so a damaged block fails the backup instead of being
copied; files that cannot change any more are linked where the target is on the same disk, else copied.

What is kept of pages (DIR/contents) goes with it: xyro/contents_copy.py.

The target is made under a temporary name, synced and renamed: where it exists, it is whole. It is a data directory like
any other, to audit, export, or go on crawling with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from xyro.contents_copy import PinnedContents
from xyro.contents_index import FOLDER
from xyro.metadata.directories import create_directory
from xyro.metadata.partition import Partition
from xyro.metadata.store import Store, StoreReader
from xyro.service.node import crawl_file
from xyro.service.node.data_dir import NODE_FILE, DataDir
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError, MachineError, XyroError
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.service.node.node import Node

BATCH = 1 << 20
"""bytes of rows in one write"""
AGAIN = 600.0
"""seconds after which a backup that failed is tried again"""
_log = logging.getLogger("xyro")
_UNFINISHED = (".tmp", ".new")


@dataclass(slots=True)
class Pinned:
    """A partition at a boundary: `files` by the name they will have, and the rows of its store."""

    name: str
    files: dict[str, BinaryIO]
    rows: StoreReader

    @classmethod
    def of_partition(cls, partition: Partition) -> Pinned:
        """At a commit boundary. Close it."""
        return cls(partition.directory.name, dict(opened_files(partition.directory)), partition.store.snapshot())

    def close(self) -> None:
        self.rows.close()
        for file in self.files.values():
            file.close()


def opened_files(directory: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Open the finished files right in a directory: snapshots of the columns, ranks that were kept."""
    for path in sorted(directory.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.suffix not in _UNFINISHED:
            with contextlib.suppress(FileNotFoundError):  # replaced meanwhile, by a newer one that is there too
                yield path.name, path.open("rb")


def _refuse_inside(source: Path, target: Path) -> None:
    if target.resolve().is_relative_to(source.resolve()):
        raise InputError(f"{target}: lies in the data directory itself; name a place outside {source}")


def stopped(source: Path, target: Path) -> dict[str, Any]:
    """Back up a directory that no process works on. InputError: there is none, it is in use, or the target exists."""
    _refuse_inside(source, target)
    if (source / NODE_FILE).exists():  # of a cluster: some partitions, without what makes it that node
        folders = sorted(source.glob("p[0-9][0-9][0-9][0-9]"))
        data = DataDir.open_some(source, [int(folder.name[1:]) for folder in folders], 0, look=True)
    else:
        data = DataDir.open(source, look=True)
    try:
        pinned = [Pinned.of_partition(partition) for partition in data.partitions]
        contents = PinnedContents.of_directory(source / FOLDER)
        return _write(source, target, pinned, threading.Event(), contents)
    finally:
        data.close()


async def running(node: Node, target: Path) -> dict[str, Any]:
    """Back up a running crawl. Raises the same errors; a cancelled backup leaves nothing behind."""
    source = node.data.path
    _refuse_inside(source, target)
    async with node.boundary():
        pinned = [Pinned.of_partition(partition) for partition in node.data.partitions]
        contents = PinnedContents.of_directory(source / FOLDER)
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(_write, source, target, pinned, stop, contents))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(work, return_exceptions=True)
        raise


async def scheduled(node: Node) -> None:
    """Back a running crawl up again and again, as [backup] says. InputError: its directory lies in the crawl's own."""
    settings, source = node.settings.backup, node.data.path.resolve()
    directory = Path(settings.directory)
    _refuse_inside(source, directory)
    rest = 0.0
    while True:
        made = _made(directory, source.name)
        due = made[-1].stat().st_mtime + settings.every if made else -math.inf
        await node.clock.sleep(max(rest, min(due - node.clock.time(), settings.every), 0.0))
        rest = 0.0
        try:
            moment = f"{stamp(node.clock.time())}".replace(":", "")
            await running(node, directory / f"{source.name}-{moment}")
            for path in made[: len(made) + 1 - settings.keep]:
                await asyncio.to_thread(shutil.rmtree, path)
        except (XyroError, OSError) as error:
            _log.warning("the crawl is not backed up: %s", error)
            rest = min(settings.every, AGAIN)


def _made(directory: Path, name: str) -> list[Path]:
    """The backups of a data directory that `scheduled` made, the oldest first."""
    return sorted(directory.glob(f"{name}-*Z"))


def _write(
    source: Path,
    target: Path,
    pinned: Sequence[Pinned],
    stop: threading.Event,
    contents: PinnedContents | None = None,
) -> dict[str, Any]:
    """The target, whole or not at all; what was done. Closes what was pinned."""
    clock = SystemClock()
    began, size = clock.monotonic(), 0

    def fill(fresh: Path) -> None:
        nonlocal size
        for path in crawl_file.paths(source):
            shutil.copy(path, fresh / path.name)
        for partition in pinned:
            size += _fill(fresh / partition.name, partition, stop)
        if contents is not None:
            size += contents.copy(fresh / FOLDER, stop.is_set)

    try:
        create_directory(target, fill)
    finally:
        for partition in pinned:
            partition.close()
        if contents is not None:
            contents.close()
    return {
        "to": str(target.absolute()),
        "partitions": len(pinned),
        "bytes": size,
        "seconds": round(clock.monotonic() - began, 3),
    }


def _fill(directory: Path, partition: Pinned, stop: threading.Event) -> int:
    """Bytes of rows and files."""
    directory.mkdir()
    size = sum(_link(file, directory / name) for name, file in partition.files.items())
    store = Store.open(directory / "store", create=True)
    try:
        return size + _copy(partition.rows, store, stop)
    finally:
        store.close()


def _link(file: BinaryIO, target: Path) -> int:
    """The very file under another name; its content, where it is replaced or the target is on another disk."""
    own = os.fstat(file.fileno())
    with contextlib.suppress(OSError):
        os.link(file.name, target)
        if os.path.samestat(own, target.stat()):
            return own.st_size
        target.unlink()
    with target.open("xb") as copy:
        shutil.copyfileobj(file, copy, BATCH)
    return own.st_size


def _copy(rows: StoreReader, store: Store, stop: threading.Event) -> int:
    """All rows, in batches; their bytes."""
    size = 0
    batch = store.batch()
    for key, value in rows.scan(b""):
        batch.put(key, value)
        size += len(key) + len(value)
        if batch.size >= BATCH:
            if stop.is_set():
                raise MachineError("the backup was given up: the process stops")
            store.write(batch)
            batch = store.batch()
    store.write(batch)
    return size
