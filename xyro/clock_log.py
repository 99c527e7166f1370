"""The log of the clocks that politeness keeps: what a killed process knew of hosts that want to be left alone.

One line for each request that leaves and for each that ended, written (not synced) as it happens: it is there after any
death of the process. Only what outlives the pause after a restart is written, so a crawl without long delays writes
nothing. `host` lines are of hosts, `floor` lines of servers (server_floors.py); moments are wall clock, 0 = not so:

    kind  name  began  ready_at  gap
                0      t         g      may be contacted again at t; requests to it are g seconds apart at least
                t      0         g      a request left at t. Nobody knows its end: it is taken to be the restart

A last line that was torn is skipped. A power cut may take the last seconds of lines; a machine takes longer to start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xyro.wire.clock import Clock
from xyro.wire.errors import MachineError

DAY = 86_400.0
MOST_BYTES = 4 << 20
"""of the file, before it is written anew with what still counts"""
MOST_QUIET = 10_000
"""names whose moment is over of which the gap is remembered all the same"""


class ClockEntry(NamedTuple):
    """The last line of one name."""

    began: float
    ready_at: float
    gap: float


class ClockLog:
    """The lines of one process. `pause`: seconds that pass after any restart before the first request."""

    def __init__(self, path: Path, clock: Clock, pause: float) -> None:
        self.pause = pause
        self.entries: dict[tuple[str, str], ClockEntry] = {}
        """(kind, name) -> its last line, in the order of these lines"""
        self._path = path
        self._clock = clock
        self._size = 0
        self._file = -1
        try:
            self._load(path.read_bytes() if path.exists() else b"")
            self._renew()
        except OSError as error:
            raise self._failed(error) from error

    def begin(self, kind: str, name: str, gap: float) -> None:
        """A request leaves."""
        self._write(kind, name, ClockEntry(self._clock.time(), 0.0, gap))

    def end(self, kind: str, name: str, wait: float, gap: float) -> None:
        """A request ended: the next one may leave in `wait` seconds."""
        self._write(kind, name, ClockEntry(0.0, self._clock.time() + wait, gap))
        if max(wait, gap) <= self.pause:
            del self.entries[kind, name]  # the pause says as much

    def restore(self, factor: float, cap: float) -> Iterator[tuple[str, str, float]]:
        """Yield (kind, name, seconds to wait from now on) of what is to be left alone; `factor` times the duration of
        what was under way, at most `cap`, counts as its delay, too."""
        now = self._clock.time()
        for (kind, name), entry in self.entries.items():
            wait = entry.ready_at - now
            if entry.began:
                wait = max(entry.gap, min(factor * max(now - entry.began, 0.0), cap))
            if wait > DAY:  # the clock was set back
                wait = entry.gap
            if wait > 0.0:
                yield kind, name, wait

    def close(self) -> None:
        """Closing twice is fine."""
        handle, self._file = self._file, -1
        if handle >= 0:
            os.close(handle)

    def _load(self, data: bytes) -> None:
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            fields = line.decode("utf-8", "replace").split(" ")
            try:
                kind, name, began, ready_at, gap = fields
                self._note(kind, name, ClockEntry(float(began), float(ready_at), min(float(gap), DAY)))
            except ValueError:  # a line that the disk damaged
                continue

    def _note(self, kind: str, name: str, entry: ClockEntry) -> None:
        self.entries.pop((kind, name), None)  # so that they stand in the order of their last lines
        self.entries[kind, name] = entry

    def _write(self, kind: str, name: str, entry: ClockEntry) -> None:
        self._note(kind, name, entry)
        try:
            self._size += os.write(self._file, _line(kind, name, entry))
            if self._size > MOST_BYTES:
                self._renew()
        except OSError as error:
            raise self._failed(error) from error

    def _renew(self) -> None:
        """Write the file anew, with what still counts."""
        now = self._clock.time()
        quiet = [key for key, entry in self.entries.items() if not entry.began and entry.ready_at <= now]
        for key in quiet[: max(len(quiet) - MOST_QUIET, 0)]:
            del self.entries[key]
        fresh = self._path.with_name(f".{self._path.name}.new")
        data = b"".join(_line(*key, entry) for key, entry in self.entries.items())
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, data)
            fresh.rename(self._path)
        except BaseException:
            os.close(handle)
            raise
        self.close()
        self._file, self._size = handle, min(len(data), MOST_BYTES // 2)

    def _failed(self, error: OSError) -> MachineError:
        return MachineError(f"{self._path}: {error.strerror}: free or mend the disk, then start again")


def _line(kind: str, name: str, entry: ClockEntry) -> bytes:
    return f"{kind} {name} {entry.began:.3f} {entry.ready_at:.3f} {entry.gap:.3f}\n".encode()
