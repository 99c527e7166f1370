"""When a life ends: at a callback, or at the n-th time that a step of a commit is reached.

The steps are the places where anything leaves the process for something that outlives it, so every order of events that
a crash can leave behind is met by ending it there:

    store.before   a batch is on its way to the disk: a draw decides whether it arrives
    store.after    it is on the disk, and nobody knows yet
    file.sync      a file or directory of a snapshot is about to be synced
    post.orders    an order is about to leave for the pool            post.pages   a report, cash, or an acknowledgement
    post.answers   somebody is about to be told that it is on disk
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

CALLBACK = "callback"
STEPS = ("store.before", "store.after", "file.sync", "post.orders", "post.pages", "post.answers")


class Crash(BaseException):
    """The process is gone. Not an Exception: nobody handles it. `is_first`: it went at this very step."""

    def __init__(self, step: str, is_first: bool) -> None:
        super().__init__(step)
        self.is_first = is_first


@dataclass(frozen=True, slots=True)
class End:
    """The end of a life: 'crash', 'full' (the disk) or 'stop', at the n-th time that `step` is reached."""

    kind: str
    step: str
    count: int

    def __str__(self) -> str:
        return f"{self.kind} at {self.step} {self.count}"


class Faults:
    """Counts the steps of one life, and ends it. `end` None: it ends by itself."""

    def __init__(self, end: End | None) -> None:
        self.end = end
        self.reached: Counter[str] = Counter()
        self.is_due = False
        """the life has to end now"""
        self.is_dead = False
        """it crashed: nothing that its tasks still do counts"""

    def reach(self, step: str) -> bool:
        """Count a step. Crash where this is the end; True where the disk is full from here on."""
        self.reached[step] += 1
        if self.is_dead:
            raise Crash(step, False)
        end = self.end
        if end is None:
            return False
        if self.is_due:
            return end.kind == "full"
        if end.step == step and self.reached[step] >= end.count:
            self.is_due = True
            if end.kind == "crash":
                self.is_dead = True
                raise Crash(step, True)
            return end.kind == "full"
        return False
