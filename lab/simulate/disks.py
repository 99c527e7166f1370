"""A disk that a crash leaves as a real one may be left: what was synced is there, of the rest a drawn part.

The store is MemoryStore, whose batches and snapshots are those of LevelDB (tests/metadata/test_store.py holds both
against a model): a batch is there whole or not at all. Snapshots of the hot state are real files in a directory of a
file system in memory, if there is one; their syncs are noted instead of made, and after a crash a file whose bytes were
not synced is cut somewhere, one whose directory was not synced after its renaming may have its old name again.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from xyro.lab.simulate.faults import Crash, Faults
from xyro.lab.simulate.witness import CrawlWitness
from xyro.metadata.store import Batch, MemoryStore, Pairs, StoreReader
from xyro.wire.errors import MachineError


class Disk:
    """Partitions' stores and directories; they outlive every life."""

    def __init__(self, path: Path, partitions: int, draw: random.Random, witness: CrawlWitness) -> None:
        self.path = path
        self.stores = [MemoryStore() for _ in range(partitions)]
        self.folders = [path / f"p{number:04d}" for number in range(partitions)]
        for folder in self.folders:
            folder.mkdir()
        self.draw = draw
        self.witness = witness
        self.faults = Faults(None)
        self._sizes: dict[int, int] = {}
        """inode -> bytes that are synced"""
        self._names: dict[int, dict[int, str]] = {}
        """inode of a folder -> inode -> name, as synced"""

    def sync(self, handle: int) -> None:
        """Note that a file, or the names in a directory, would survive from here on; in place of os.fsync."""
        if self.faults.reach("file.sync"):
            raise OSError(28, "No space left on device")
        found = os.fstat(handle)
        for folder in self.folders:
            if folder.stat().st_ino == found.st_ino:
                self._names[found.st_ino] = {each.stat().st_ino: each.name for each in folder.iterdir()}
                return
        self._sizes[found.st_ino] = found.st_size

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Syncs of this process are this disk's, while the block lasts."""
        real, os.fsync = os.fsync, self.sync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync = real

    def loose_files(self) -> dict[Path, bytes]:
        """The files beside the partitions, which are written without syncs: a crash leaves them as they are."""
        return {file: file.read_bytes() for file in sorted(self.path.iterdir()) if file.is_file()}

    def put_back(self, files: Mapping[Path, bytes]) -> None:
        """Undo what was written to them since."""
        for file, data in files.items():
            file.write_bytes(data)

    def cut_power(self) -> None:
        """Lose a part of what was not synced."""
        for folder in self.folders:
            names = self._names.get(folder.stat().st_ino, {})
            for file in sorted(folder.iterdir()):
                found = file.stat()
                synced = self._sizes.get(found.st_ino, 0)
                if synced < found.st_size:
                    os.truncate(file, self.draw.randint(synced, found.st_size))
                elif names.get(found.st_ino) != file.name and self.draw.random() < 0.5:
                    file.rename(file.with_name(names.get(found.st_ino, f"{file.stem}.tmp")))


class SimulatedStore:
    """The store of a partition in one life, which ends with it."""

    def __init__(self, disk: Disk, number: int) -> None:
        self._disk = disk
        self._store = disk.stores[number]
        self._number = number

    def get(self, key: bytes) -> bytes | None:
        return self._store.get(key)

    def scan(self, prefix: bytes, start: bytes = b"", reverse: bool = False) -> Pairs:
        return self._store.scan(prefix, start, reverse)

    def batch(self) -> Batch:
        return self._store.batch()

    def snapshot(self) -> StoreReader:
        return self._store.snapshot()

    @property
    def pinned(self) -> bool:
        return self._store.pinned

    def compact(self, first: bytes, last: bytes) -> None:
        """Nothing that was deleted takes room here."""

    def write(self, batch: Batch) -> None:
        """As a store writes; MachineError where the disk is full."""
        faults = self._disk.faults
        try:
            full = faults.reach("store.before")
        except Crash as crash:
            if crash.is_first and self._disk.draw.random() < 0.5:
                self._store.write(batch)
            raise
        if full:
            raise MachineError("the store failed (No space left on device)")
        self._disk.witness.note_batch(self._number, batch)
        self._store.write(batch)
        faults.reach("store.after")

    def close(self) -> None:
        """Nothing: the disk keeps it."""


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A directory for one seed, in memory if the machine has such a file system."""
    shared = Path("/dev", "shm")
    place = str(shared) if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="xyro-simulate-", dir=place) as folder:
        yield Path(folder)
