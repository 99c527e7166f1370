"""The rows of this plug-in in a partition's store; their keys are PUBLISHED, SUBSCRIPTION, KEYED and TOPIC.

All but the first are kept by the home partition, which writes and lists them for the others.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from xyro.metadata.rows import Row, reader
from xyro.plugins.publish.publish_messages import TABLES, ListRows, StoreRow
from xyro.wire.ids import PageId

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PublishedRow(Row, frozen=True):
    """A publication of a page (refresh/publications.py), kept until a read has shown whether it is true."""

    publisher: str
    claim: str
    made_at: float
    """when the claim was made, seconds since 1970"""
    deadline: float
    learn: bool = True
    ordered: bool = True


class SubscriptionRow(Row, frozen=True):
    """A subscription (refresh/subscriptions.py), and what was last told. Pages are ids (partition << 32 | local)."""

    target: str
    """canonical URL, or a pattern with * or ?"""
    every: float
    """seconds between two notices"""
    url: str
    """where notices are posted; empty for a command"""
    command: tuple[str, ...] = ()
    made: float = 0.0
    due: float = 0.0
    """of the next notice"""
    attempts: int = 0
    """tries of the present notice that failed"""
    sequence: int = 0
    """notices that were told"""
    told_at: float = 0.0
    seen: dict[PageId, bytes] = msgspec.field(default_factory=dict)
    """page -> signature as last told; empty where the page was not there"""
    error: str = ""
    """why the last try failed"""
    numbered: int = 0
    """the last number that a notice had, told or only tried"""
    tried: bytes = b""
    """digest of what that one says of its pages; empty once it was told"""
    based: bool = False
    """`seen` began with what the pages were when it was made, or when the crawl ran first after that"""


class KeyedRow(Row, frozen=True):
    """URLs that were published with a key (IndexNow) which is still to be read from its host."""

    host: str
    key: str
    location: str
    urls: tuple[str, ...]
    received_at: float
    """seconds since 1970"""


class TopicRow(Row, frozen=True):
    """A feed that a WebSub hub tells us of, or is asked to."""

    topic: str
    hub: str
    path: str
    """the last part of our callback: nobody else can know it"""
    secret: str
    state: str = "asked"
    """asked | active | denied"""
    asked: float = 0.0
    """when the hub was asked last"""
    begun: float = 0.0
    """when the lease, or the hub's denial, began"""
    until: float = 0.0
    """end of the lease"""
    failures: int = 0


unpack_published = reader(PublishedRow)
unpack_subscription = reader(SubscriptionRow)
unpack_keyed = reader(KeyedRow)
unpack_topic = reader(TopicRow)


def keep_rows(frontier: Frontier) -> None:
    """Let a partition store and list rows."""
    keeper = _RowKeeper(frontier)
    frontier.commands.handle(StoreRow, keeper.store)
    frontier.commands.handle(ListRows, keeper.list)


class _RowKeeper:
    """The rows of one partition."""

    def __init__(self, frontier: Frontier) -> None:
        self._partition = frontier.partition

    def store(self, command: StoreRow) -> None:
        key = TABLES[command.table].key(command.number)
        if command.row:
            self._partition.put(key, command.row)
        else:
            self._partition.delete(key)

    def list(self, question: ListRows) -> list[tuple[int, bytes]]:
        table = TABLES[question.table]
        stored = self._partition.scan(table.prefix, table.key(question.first))
        return [(table.split(key), row) for key, row in islice(stored, question.limit)]
