"""The messages of the stream of changes.

to a partition
ReadChanges    some changes behind a position (a question)        -> ChangeStretch, as a list      change_log.py
FindChange     the position before a time (a question)            -> Position, as a list

to partition 0
StoreSink      how far a sink has come                            -> None                    sinks.py
"""

from __future__ import annotations

from xyro.wire import codec
from xyro.wire.commands import Command
from xyro.wire.questions import Question

FIRST_TAG = codec.PLUGIN_TAGS + 64


class ReadChanges(Question, frozen=True):
    """Ask for changes behind a position (cursors.Position), at most `size` bytes of them."""

    number: int
    lineage: tuple[int, ...]
    """epoch, base, epoch, base ..."""
    size: int
    now: float = 0.0
    """seconds since 1970: the moment of which `stale` is"""


class FindChange(Question, frozen=True):
    """Ask for the position before a time (stored_changes.find_position)."""

    time: float


class StoreSink(Command, frozen=True):
    """Store how far a sink has come."""

    name: str
    row: bytes
    """packed SinkRow"""


codec.register(FIRST_TAG, ReadChanges, FindChange, StoreSink)
