"""The commands of publications and subscriptions; the handlers of each partition are where its state is.

to the partition of the pages                                                               handled by
Publish         URLs that their publisher says changed    -> [[URL, why it was refused] ..]   promises.py
WatchTargets    new pages of these targets are wanted     -> None                             notice_pages.py
RefreshPages    pages to read before a notice is due      -> None
MissPages       pages that a notice was due without       -> None

to partition 0, where the rows are that the whole crawl has once
StoreRow        a row, stored or deleted                  -> None                             stored_rows.py
ListRows        some rows of a table (a question)         -> [[number, row] ...]
Subscribe       a new subscription                        -> its number, 0: there are too many  subscribed.py
Unsubscribe     a subscription ends                       -> whether there was one (bool)
ListSubscriptions  some subscriptions (a question)        -> [[number, row, pages] ...]
PagesFound      pages of a partition that targets name    -> None
HubNamed        a page was read that names hubs           -> None                             websub.py
"""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING

from xyro.metadata import rows
from xyro.wire import codec
from xyro.wire.commands import Command
from xyro.wire.ids import HOME, LocalPage
from xyro.wire.questions import Question

if TYPE_CHECKING:
    from xyro.service.node.command_sender import CommandSender


class RowTable(enum.IntEnum):
    """A table of rows that StoreRow writes."""

    SUBSCRIPTION = 0
    TOPIC = 1
    """feeds whose hubs are asked (WebSub)"""
    KEYED = 2
    """publications that wait for their key (IndexNow)"""


TABLES = {RowTable.SUBSCRIPTION: rows.SUBSCRIPTION, RowTable.TOPIC: rows.TOPIC, RowTable.KEYED: rows.KEYED}


class Publish(Command, frozen=True):
    """A publication of canonical URLs of one partition; see promises.PublisherClaim."""

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


class WatchTargets(Command, frozen=True):
    """Targets whose new pages are to be named to the home partition; those that are not `wanted` are so no more."""

    targets: tuple[str, ...]
    wanted: bool


class RefreshPages(Command, frozen=True):
    """Pages (local numbers) to order for a notice, but for those that wait to be ordered already."""

    pages: tuple[LocalPage, ...]
    due: float
    """of the notice, seconds since 1970"""

    def url_count(self) -> int:
        return len(self.pages)


class MissPages(Command, frozen=True):
    """Pages (local numbers) that were not refreshed for a notice: it went out without."""

    pages: tuple[LocalPage, ...]
    since: float
    """a page that was read at this time or later is not missed any more"""
    due: float


class StoreRow(Command, frozen=True):
    """Store a row under its number, or delete it."""

    table: RowTable
    number: int
    row: bytes
    """packed (stored_rows.py); empty: delete it"""


class ListRows(Question, frozen=True):
    """Ask for at most `limit` rows, from a number on."""

    table: RowTable
    first: int
    limit: int


class Subscribe(Command, frozen=True):
    """A subscription that somebody checked (subscribing.py)."""

    row: bytes
    """packed SubscriptionRow"""


class Unsubscribe(Command, frozen=True):
    """The end of a subscription."""

    number: int


class ListSubscriptions(Question, frozen=True):
    """Ask for at most `limit` subscriptions, from a number on."""

    first: int
    limit: int


class PagesFound(Command, frozen=True):
    """New pages of one partition: pages[i], of the host hosts[i] there, belongs to targets[i]."""

    partition: int
    targets: tuple[str, ...]
    pages: tuple[LocalPage, ...]
    hosts: tuple[int, ...]


class HubNamed(Command, frozen=True):
    """A page was read that names hubs (in a feed, in HTML, in Link headers)."""

    url: str
    hubs: tuple[str, ...]
    topic: str
    """its rel=self; empty where it has none"""


async def store_row(sender: CommandSender, table: RowTable, number: int, row: bytes) -> None:
    """Store a packed row with the home partition, or delete it (empty); returns when that is on disk."""
    await sender.send(HOME, partial(StoreRow, table=table, number=number, row=row))


codec.register(
    codec.PLUGIN_TAGS,
    *(Publish, RefreshPages, StoreRow, WatchTargets, MissPages, ListRows, Subscribe, Unsubscribe, ListSubscriptions),
    *(PagesFound, HubNamed),
)
