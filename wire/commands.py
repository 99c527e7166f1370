"""Commands are changes that somebody outside a partition wants made within one of its commit groups.

    HoldHost       a person pauses, blocks or resumes a host         -> whether a page of it is known (bool)
    ReturnOrders   orders that the fetch loop gave back unread       -> None
    CommandAnswer  the result of a command, or of a Submit: posted to the sender when its commit group is on disk; of a
                   question (questions.py), which changes nothing, at once

Plug-ins define commands of their own: frozen subclasses of Command, registered with the codec (`codec.register`) and
with the partition that applies them (`handle`). A command carries the number of its request, not an object: sender
and partition may live in different processes. A request number is node << 32 | number; 0 means that nobody waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgpack
from msgspec import Struct

if TYPE_CHECKING:  # codec.py knows it at run time
    from xyro.wire.ids import LocalPage

MAX_REQUEST = 2**63 - 1
NODE_SHIFT = 32


class Command(Struct, frozen=True):
    """A change for one partition."""

    hurries: ClassVar[bool] = False
    """its commit group is wanted at once, though nobody waits for an answer"""
    patient: ClassVar[bool] = False
    """it may wait a second for a commit group that is made anyway"""
    request: int
    """number of the request that the CommandAnswer names; 0: nobody waits for one"""

    def __post_init__(self) -> None:
        if not 0 <= self.request <= MAX_REQUEST:
            raise ValueError(f"{type(self).__name__}.request: 0..2**63-1")

    def url_count(self) -> int:
        """Return about how many URLs or pages the partition has to look up for it."""
        return 0


class HoldHost(Command, frozen=True):
    """Pause or block a host, or resume it."""

    host: str
    state: str
    """paused | blocked; empty: it is read again"""

    def __post_init__(self) -> None:
        Command.__post_init__(self)
        if self.state not in ("paused", "blocked", ""):
            raise ValueError("HoldHost.state: paused, blocked or empty")


class ReturnOrders(Command, frozen=True):
    """Orders of one partition that were taken back before they were read: epochs[i] belongs to pages[i]."""

    pages: tuple[LocalPage, ...]
    """local page numbers"""
    epochs: tuple[int, ...]

    def __post_init__(self) -> None:
        Command.__post_init__(self)
        if len(self.pages) != len(self.epochs):
            raise ValueError("ReturnOrders: one epoch per page")


class CommandAnswer(Struct, frozen=True):
    """The outcome of a request: its commit group is on disk, or `error` says why nothing of it is."""

    request: int
    error: str = ""
    value: bytes = b""
    """MessagePack of the command's result; empty for None"""

    def __post_init__(self) -> None:
        if not 0 < self.request <= MAX_REQUEST:
            raise ValueError("CommandAnswer.request: 1..2**63-1")

    @property
    def node(self) -> int:
        """Number of the node that asked."""
        return self.request >> NODE_SHIFT

    def result(self) -> Any:
        """The command's result; tuples come as lists."""
        return msgpack.unpackb(self.value) if self.value else None


def answer(request: int, result: object) -> CommandAnswer:
    """The answer of a command that was applied. TypeError: MessagePack cannot hold its result (a bug)."""
    return CommandAnswer(request, value=b"" if result is None else msgpack.packb(result))
