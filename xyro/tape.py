"""A tape is one HTTP answer as it crossed the wire: status line, headers, body, with every coding left on."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import IO

MEMORY = 256 * 1024
"""bytes of one answer that stay in memory; what is more goes to a file without a name beside the archive"""


class Tape:
    """`limit`: bytes that are recorded; `directory`: of the file, where it needs one."""

    __slots__ = ("_directory", "_failure", "_file", "_limit", "_pieces", "cut", "size")

    def __init__(self, limit: int, directory: Path) -> None:
        self.size = 0
        self.cut = False
        """bytes are missing at the end: there were more than `limit`"""
        self._failure: OSError | None = None
        self._limit = limit
        self._directory = directory
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None

    def take(self, data: bytes) -> None:
        """Record what arrived; nothing is recorded behind a cut."""
        if self.cut or self._failure is not None or not data:
            return
        if self.size + len(data) > self._limit:
            data, self.cut = data[: self._limit - self.size], True
        self.size += len(data)
        if self._file is None and self.size <= MEMORY:
            self._pieces.append(data)
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115  closed by `close`
                self._file.write(b"".join(self._pieces))
                self._pieces.clear()
            self._file.write(data)
        except OSError as error:
            self._failure = error

    def read(self) -> bytes:
        """All that was recorded. OSError: its file has no room, or is lost; no other try finds more."""
        if self._failure is not None:
            raise self._failure
        if self._file is None:
            return b"".join(self._pieces)
        try:
            self._file.seek(0)  # what is in the buffer is written now
            return self._file.read(self.size)
        except OSError as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Forget it."""
        self._pieces.clear()
        if self._file is not None:
            with contextlib.suppress(OSError):  # of what is in the buffer
                self._file.close()
            self._file = None
