"""Records the calls of our own code between two moments, in the order in which they happen.

The way begins when the first page's body leaves the server (`begin`) and ends when the commit group that has the linked
page's report is on disk. Within it, the turn lasts from the call of the partition's turn with that report until it
returns. Functions are told apart by their code, not by their names, so renaming one changes nothing here.

The interpreter's profile hook sees every Python function that is entered, generators and coroutines each time that
they go on; modules being imported and list comprehensions do not count, they are parts of what holds them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import xyro
from xyro.frontier.batch import Effects, MessageBatch
from xyro.frontier.frontier import Frontier
from xyro.lab.walk.rooms import OUTSIDE, file_of, room_of
from xyro.metadata.partition import Commit, Partition

ROOT = Path(xyro.__file__).parent
_PARTS = ("<module>", "<listcomp>", "<dictcomp>", "<setcomp>")


class CodePlace(NamedTuple):
    """A function of ours."""

    file: str
    """below the repository's root"""
    function: str
    """qualified name"""

    @property
    def room(self) -> str:
        return room_of(self.file)


class TraceStep(NamedTuple):
    """One entry into a function."""

    place: CodePlace
    caller: CodePlace | None
    """the nearest function of ours that waits for it; None: an event loop, a thread or what is outside calls it"""


class Tracer:
    """`with tracer.watching(): ...` while a crawl runs; then `way` and `turn` are complete if `finished` is set."""

    def __init__(self) -> None:
        self.way: list[TraceStep] = []
        self.turn: list[TraceStep] = []
        self.finished = asyncio.Event()
        self._url = ""
        self._begun = False
        self._turning: FrameType | None = None
        self._writing: FrameType | None = None
        self._commit: Commit | None = None
        self._thread = threading.get_ident()
        self._places: dict[CodeType, CodePlace | None] = {}

    def begin(self, url: str) -> None:
        """Begin to record steps. url: of the linked page."""
        self._url, self._begun = url, True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread and those that start meanwhile."""
        before = sys.getprofile(), threading.getprofile()
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)
        try:
            yield
        finally:
            sys.setprofile(before[0])
            threading.setprofile(before[1])

    def _seen(self, frame: FrameType, event: str, value: Any) -> None:
        """The profile hook."""
        if not self._begun or self.finished.is_set():
            return
        if event == "call":
            self._entered(frame)
        elif event == "return":
            self._left(frame, value)

    def _entered(self, frame: FrameType) -> None:
        place = self._place(frame.f_code)
        if place is None:
            return
        if self._url and frame.f_code is Frontier.turn.__code__ and self._has_report(frame):
            self._turning = frame
        elif self._commit is not None and frame.f_code is Partition.written.__code__:
            self._writing = frame
        step = TraceStep(place, self._caller(frame))
        self.way.append(step)
        if self._turning is not None and threading.get_ident() == self._thread:
            self.turn.append(step)

    def _left(self, frame: FrameType, value: Any) -> None:
        if frame is self._turning and isinstance(value, Effects):
            self._turning, self._commit, self._url = None, value.commit, ""
        elif frame is self._writing and self._commit in frame.f_locals.values():
            self.finished.set()

    def _has_report(self, frame: FrameType) -> bool:
        """Tell whether the call of a turn takes the report of the linked page."""
        works = (value for value in frame.f_locals.values() if isinstance(value, MessageBatch))
        return any(report.url == self._url for work in works for report in work.visits)

    def _caller(self, frame: FrameType) -> CodePlace | None:
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(f"{ROOT}/"):
            back = back.f_back
        return self._place(back.f_code) if back is not None else None

    def _place(self, code: CodeType) -> CodePlace | None:
        """Return the place of a function; None: it is not ours, or a part of another function."""
        if code not in self._places:
            self._places[code] = _place_of(code)
        return self._places[code]


def _place_of(code: CodeType) -> CodePlace | None:
    if not code.co_filename.startswith(f"{ROOT}/") or code.co_name in _PARTS:
        return None
    place = CodePlace(file_of(Path(code.co_filename).relative_to(ROOT).as_posix()), code.co_qualname)
    return None if place.room in OUTSIDE else place
