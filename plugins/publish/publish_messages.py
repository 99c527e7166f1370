"""The commands of publications and subscriptions, and the handlers that a partition applies them with.

Publish        URLs of a partition that their publisher says changed       -> [[URL, why it was refused] ...]
RefreshPages   pages to read before a notice is due                        -> None
StoreRow       a row that lives with partition 0, stored or deleted        -> None
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xyro.metadata import rows
from xyro.metadata.states import LEASED, WANTED
from xyro.plugins.publish.promises import Promises, PublisherClaim
from xyro.wire import codec
from xyro.wire.commands import Command
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.command_sender import CommandSender


class RowTable(enum.IntEnum):
    """A table of rows that StoreRow writes."""

    SUBSCRIPTION = 0
    TOPIC = 1
    """feeds whose hubs are asked (WebSub)"""
    KEYED = 2
    """publications that wait for their key (IndexNow)"""


_KEYS = {RowTable.SUBSCRIPTION: rows.SUBSCRIPTION, RowTable.TOPIC: rows.TOPIC, RowTable.KEYED: rows.KEYED}


@dataclass(frozen=True, slots=True)
class Publish(Command):
    """A publication of canonical URLs of one partition; see promises.Said."""

    urls: tuple[str, ...]
    claim: str
    made_at: float
    """when the claim was made, seconds since 1970"""
    deadline: float
    """by when they are to be read, seconds since 1970"""
    rate: float
    """changes a day that the publisher claims; 0: it claims none"""
    sure: bool
    """the owner of the crawl says so"""

    def url_count(self) -> int:
        return len(self.urls)


@dataclass(frozen=True, slots=True)
class RefreshPages(Command):
    """Pages (local numbers) to order, but for those that wait to be ordered already."""

    pages: tuple[LocalPage, ...]

    def url_count(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class StoreRow(Command):
    """Store a row under its number, or delete it."""

    table: RowTable
    number: int
    row: bytes
    """packed (stored_rows.py); empty: delete it"""


async def store_row(sender: CommandSender, table: RowTable, number: int, row: bytes) -> None:
    """Store a packed row with partition 0, or delete it (empty); returns when that is on disk."""
    await sender.send(0, lambda request: StoreRow(request, table, number, row))


codec.register(64, Publish)
codec.register(65, RefreshPages)
codec.register(66, StoreRow)


def register(frontier: Frontier, promises: Promises) -> None:
    """Let a partition apply the commands of this plug-in."""
    handlers = _Handlers(frontier, promises)
    frontier.commands.handle(Publish, handlers.publish)
    frontier.commands.handle(RefreshPages, handlers.refresh)
    frontier.commands.handle(StoreRow, handlers.store)


class _Handlers:
    """The commands, applied to one partition within its commit group."""

    def __init__(self, frontier: Frontier, promises: Promises) -> None:
        self._node = frontier
        self._promises = promises

    def publish(self, command: Publish) -> list[tuple[str, str]]:
        claim = PublisherClaim(command.claim, command.made_at, command.deadline, command.rate, command.sure)
        return self._promises.publish(list(command.urls), claim)

    def refresh(self, command: RefreshPages) -> None:
        frontier = self._node
        frontier.requests.order([page for page in command.pages if not self._waits(page)], Priority.ORDERED)

    def _waits(self, page: LocalPage) -> bool:
        """Tell whether the page waits to be ordered. (Its host is paused, say.) Another order adds nothing."""
        frontier = self._node
        return frontier.partition.flags[page] & (WANTED | LEASED) == WANTED and page not in frontier.loads.loading

    def store(self, command: StoreRow) -> None:
        key = _KEYS[command.table].key(command.number)
        if command.row:
            self._node.partition.put(key, command.row)
        else:
            self._node.partition.delete(key)
