"""Knows the disk that contents are written to again, and whose they are.

An unmounted disk leaves an empty directory in its place. A file in the directory names the archive, by a number drawn
when it was made. A disk that comes back has it, whatever device number it is given; the place where it was mounted, and
another disk, have not. A second file names the crawl: page ids of two crawls would mean two pages each.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from xyro.wire.errors import InputError

NAME = "archive-id"
"""of the file"""
CRAWL = "crawl-id"
"""of the file that names the crawl"""


def claim(directory: Path, crawl: str = "") -> None:
    """Make a directory of contents a crawl's own, from now on. InputError: it is another's. crawl: a word that no other
    crawl has; empty: one that is yet to be made."""
    path, owner = directory / CRAWL, ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        owner = path.read_text("ascii").strip()
    if owner and owner != crawl:
        raise InputError(f"[keep] directory {directory} has the contents of another crawl: name another one")
    if crawl and not owner:
        with contextlib.suppress(OSError):  # without room, or read-only: what is written there says so
            path.write_text(f"{crawl}\n", "ascii")


class ArchiveDisk:
    """The disk under a directory as it is when this is made; one that takes no file is known by its device number."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._device = self._device_now()
        self._name = self._read() or self._draw()

    def check(self) -> None:
        """OSError: the disk was unmounted, or another one took its place: what was written there would be lost from
        sight when it is back."""
        device = self._path.parent.stat().st_dev
        if not self._device or device == self._device:
            return
        if not self._name or self._read() != self._name:
            raise OSError(errno.ENODEV, "its disk was unmounted, or another one is there; restart if that is meant")
        self._device = device

    def _device_now(self) -> int:
        """The number of the file system; 0 where the directory is not there."""
        try:
            return self._path.parent.stat().st_dev
        except OSError:
            return 0

    def _read(self) -> str:
        try:
            return self._path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def _draw(self) -> str:
        """Name the archive, unless another process just does."""
        fresh = self._path.with_name(f"{NAME}.{os.getpid()}")
        with contextlib.suppress(OSError):
            fresh.write_text(f"{secrets.token_hex(16)}\n", "ascii")
            with contextlib.suppress(FileExistsError):
                os.link(fresh, self._path)
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return self._read()
