"""Copies a directory of kept contents as it is at one moment, while it is written to: for `xyro backup`.

The moment is that of `PinnedContents.of_directory`, which takes microseconds: a read transaction pins the index, and
what it names lies in the files before it. Files that are closed never change: they are linked where the target is on
the same disk, so a later copy beside it costs no room for them. One that is being written is copied as far as it got;
whoever opens the copy mends its end (warc_mending.py).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from xyro.contents_index import NAME, open_index
from xyro.wire.errors import InputError, MachineError

PAGES = 1 << 10
"""of the index, copied between two looks whether to stop"""
_PASSING = (".new", ".tmp", "-wal", "-shm")
"""ends of names that mean nothing to a copy"""


class PinnedContents:
    """The contents of a directory at one moment. Close it."""

    def __init__(self, directory: Path, index: sqlite3.Connection) -> None:
        self._directory = directory
        self._index = index

    @classmethod
    def of_directory(cls, directory: Path) -> PinnedContents | None:
        """Pin what is there now; None: nothing is kept there."""
        try:
            index = open_index(directory)
        except InputError:
            return None
        index.execute("BEGIN")
        index.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return cls(directory, index)

    def copy(self, target: Path, stopped: Callable[[], bool]) -> int:
        """Copy it to a directory that is not there yet; its bytes. MachineError: stopped, or the index is damaged."""
        target.mkdir(mode=0o700)

        def progress(status: int, remaining: int, total: int) -> None:
            if stopped():
                raise MachineError("the backup was given up: the process stops")

        fresh = sqlite3.connect(target / NAME)
        try:
            self._index.backup(fresh, pages=PAGES, progress=progress)
        except sqlite3.Error as error:
            raise MachineError(f"{self._directory / NAME}: {error}: `xyro repair --contents` makes it anew") from error
        finally:
            fresh.close()
        size = (target / NAME).stat().st_size
        for path in sorted(self._directory.iterdir()):
            if path.name.startswith((NAME, ".")) or path.name.endswith(_PASSING) or not path.is_file():
                continue
            if stopped():
                raise MachineError("the backup was given up: the process stops")
            with contextlib.suppress(FileNotFoundError):  # sealed meanwhile under another name, or dropped
                size += _copy_file(path, target / path.name)
        return size

    def close(self) -> None:
        self._index.close()


def _copy_file(path: Path, target: Path) -> int:
    """Link a file that is closed, copy one that is written."""
    open_part = path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj.part")
    if not path.name.endswith(".part") and not open_part.exists():
        with contextlib.suppress(OSError):
            os.link(path, target)
            return target.stat().st_size
    shutil.copyfile(path, target)
    with target.open("rb") as copy:
        os.fsync(copy.fileno())
    return target.stat().st_size
