"""Files of JSON lines that a sink writes: rolled at a size, and cut back to what was stored when a process was killed.

NAME-000001.jsonl, NAME-000002.jsonl ...; the number and the whole length of the last one stand in the sink's row. What
is behind that in the files was written by a process that died before it had stored so: it is cut off and written again.
"""

from __future__ import annotations

import os
from pathlib import Path

from xyro.metadata.directories import sync


class SinkFiles:
    """The files of one sink. Blocking: call in a thread."""

    def __init__(self, directory: Path, name: str, roll: int, limit: int = 0) -> None:
        """limit: files that stay, the oldest go first; 0 = all stay."""
        self.directory = directory
        self.name = name
        self.roll = roll
        self.limit = limit
        self.file = 0
        self.length = 0

    def begin_anew(self) -> None:
        """Begin a file behind those that are there, which some other crawl wrote. OSError: the disk failed."""
        self.directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.file, self.length = max(self._files(), default=0), self.roll

    def begin(self, file: int, length: int) -> None:
        """Go on behind what was stored. OSError: the disk failed."""
        self.directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.file, self.length = file, length
        for number in self._files():
            if number > file:
                self.path(number).unlink()
            elif number == file and self.path(number).stat().st_size > length:
                os.truncate(self.path(number), length)

    def _files(self) -> list[int]:
        """Numbers of the files that are there."""
        stems = (path.stem.removeprefix(f"{self.name}-") for path in self.directory.glob(f"{self.name}-*.jsonl"))
        return [int(stem) for stem in stems if stem.isdigit()]

    def path(self, file: int) -> Path:
        return self.directory / f"{self.name}-{file:06d}.jsonl"

    def write(self, lines: bytes) -> None:
        """Append whole lines, to as many files as they fill: the last line of each may pass `roll`. They are on disk
        when it returns. OSError: nothing of them counts."""
        file, length, start = self.file, self.length, 0
        while start < len(lines):
            if not file or length >= self.roll:
                file, length = file + 1, 0
            full = lines.find(b"\n", start + max(self.roll - length - 1, 0)) + 1
            end = full or len(lines)
            self._append(file, length, lines[start:end])
            length, start = length + end - start, end
        if file != self.file:
            for old in range(max(self.file - self.limit, 0) + 1, file - self.limit + 1) if self.limit else ():
                self.path(old).unlink(missing_ok=True)
            sync(self.directory)
        self.file, self.length = file, length

    def _append(self, file: int, length: int, lines: bytes) -> None:
        """Write behind the bytes of a file that count."""
        with os.fdopen(os.open(self.path(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as out:
            out.truncate(length)
            out.seek(length)
            out.write(lines)
            out.flush()
            os.fsync(out.fileno())
