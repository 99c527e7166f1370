"""The data directory: DIR/p000, p001 ... (one partition each) and, while a process works on it, DIR/run.

Made under a temporary name, synced and renamed: where it exists, resuming, audit and export work.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from xyro.metadata.directories import create_directory
from xyro.metadata.partition import Partition, fill, new_seed
from xyro.metadata.recovery import open_partition
from xyro.service.node import crawl_file
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME
from xyro.wire.text import counted

if TYPE_CHECKING:
    from xyro.configs.schema import Settings

NODE_FILE = "node.json"
"""file of the directory of a cluster's node (service/cluster/bucket.py)"""
AT_ONCE = 16
"""partitions that are created or opened at the same time"""


class DataDir:
    """Open partitions of one crawl, all locked by this process."""

    def __init__(self, path: Path, partitions: Sequence[Partition], created: bool, count: int | None = None) -> None:
        self.path = path
        self.partitions = list(partitions)
        self.created = created
        self.count: int = partitions[0].facts["partitions"] if count is None else count
        """partitions of the whole crawl; a node of a cluster has some of them here"""

    @property
    def home(self) -> Partition:
        """The partition of what the crawl has once."""
        return self.partitions[HOME]

    @classmethod
    def open(
        cls, path: Path, *, partitions: int | None = None, make: bool = False, bits: int = 64, look: bool = False
    ) -> DataDir:
        """Open a crawl; `make`: create it if it does not exist, with `partitions` partitions (default 1). `look`: it is
        not written to, which needs no right to write, and no room.

        InputError: it does not exist, is no crawl, is in use, or has another number of partitions.
        """
        created = False
        if _is_free(path):
            _refuse_half_migrated(path)
            if not make:
                raise InputError(f"{path}: no such data directory; `xyro crawl URL --data {path}` makes one")
            create_directory(path, lambda fresh: _fill(fresh, partitions or 1))
            created = True
        if (path / NODE_FILE).exists():
            raise InputError(
                f"{path}: holds some partitions of a cluster's crawl: `xyro serve --join URL` runs it, and "
                "commands ask the cluster with --join URL in place of --data"
            )
        folders = sorted(path.glob("p[0-9][0-9][0-9][0-9]"))
        if not folders:
            raise InputError(f"{path}: not a data directory of Xyro (no p0000 in it); name another one with --data")
        if partitions is not None and partitions != len(folders):
            raise InputError(
                f"{path}: has {counted(len(folders), 'partition')}, not {partitions}: their number is fixed when a "
                f"crawl is created; leave --partitions out, or name another directory with --data"
            )
        return cls(path, _open(folders, bits, look), created)

    @classmethod
    def open_some(
        cls, path: Path, numbers: Sequence[int], count: int | None = None, created: bool = False, look: bool = False
    ) -> DataDir:
        """Open some partitions of a crawl of `count`: those that a node of a cluster has. Each is there."""
        opened: list[Partition] = []
        try:
            opened.extend(open_partition(folder_of(path, number), look=look) for number in numbers)
        except BaseException:
            for partition in opened:
                partition.close()
            raise
        return cls(path, opened, created, count)

    def remember(self, settings: Settings) -> None:
        """Let this directory of a node, and the stores that are here, remember what the crawl was last given."""
        crawl_file.remember(self.path, settings, *(partition.store for partition in self.partitions))

    def close(self) -> None:
        """Close what is still open."""
        for partition in self.partitions:
            partition.close()


def folder_of(path: Path, number: int) -> Path:
    """The directory of a partition."""
    return path / f"p{number:04d}"


def _refuse_half_migrated(path: Path) -> None:
    """InputError: `xyro migrate` was killed between its two renames, so the crawl is there under two other names."""
    if path.absolute().with_name(f".{path.name}.migrating").exists():
        raise InputError(f"{path}: its migration was cut short: run `xyro migrate --data {path}`")


def _is_free(path: Path) -> bool:
    """Nothing is there, or an empty directory."""
    try:
        return not path.exists() or (path.is_dir() and not any(path.iterdir()))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name another directory with --data") from None


def _fill(path: Path, partitions: int) -> None:
    """The partitions, several at once: each waits for the disk a few times, and it serves all waits alike."""
    seed, making = new_seed(), list[Future[None]]()
    with ThreadPoolExecutor(min(partitions, AT_ONCE)) as makers:
        for number in range(partitions):
            making.append(makers.submit(fill, folder_of(path, number), number, partitions, seed, {}))
    for made in making:
        made.result()


def _open(folders: Sequence[Path], bits: int, look: bool) -> list[Partition]:
    """Open the first partition alone, for whoever has that one has the crawl; then the others, several at once."""
    opened: list[Partition] = []
    try:
        opened.append(open_partition(folders[0], bits=bits, look=look))
        with ThreadPoolExecutor(AT_ONCE) as openers:
            others = [openers.submit(open_partition, folder, bits=bits, look=look) for folder in folders[1:]]
        failures = [error for each in others if (error := each.exception()) is not None]
        opened.extend(each.result() for each in others if each.exception() is None)
        if failures:
            raise failures[0]
        found = [partition.number for partition in opened]
        if found != list(range(opened[0].facts["partitions"])):
            raise InputError(
                f"{folders[0].parent}: {len(opened)} of {opened[0].facts['partitions']} partitions are there; "
                "put the missing ones back"
            )
    except BaseException:
        for partition in opened:
            partition.close()
        raise
    return opened
