"""The data of one turn: messages that came in (MessageBatch), settled orders (Settled), and what may leave once the
commit group is on disk (Effects)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from xyro.metadata.partition import Commit
from xyro.metadata.rows import RefreshRow
from xyro.metadata.visits import Visit
from xyro.wire.commands import Command, CommandAnswer
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage, PageId
from xyro.wire.messages import (
    Ack,
    CashTransfer,
    Document,
    FetchOrder,
    HostChallenged,
    LoadReport,
    Message,
    PageReport,
    Submit,
    XmlPage,
)

if TYPE_CHECKING:
    from xyro.frontier.leases import Lease

CROWD = 1024
"""links of a page that weigh as much as a page without any"""


def weight(report: PageReport) -> int:
    """As how many reports it counts where room for reports is bounded: a page may have a thousand links or 65,534."""
    return 1 + len(report.links.urls) // CROWD


def urls_of(message: Message) -> int:
    """Estimate the number of URLs that a turn has to look up for a message."""
    match message:
        case PageReport() | LoadReport():
            return len(message.links.urls)
        case Submit():
            return len(message.urls)
        case CashTransfer():
            return len(message.items)
        case Command():
            return message.url_count()
    return 0


class MessageBatch(Struct):
    """The messages that came in since the last turn."""

    visits: list[PageReport] = field(default_factory=list)
    loads: dict[PageId, LoadReport] = field(default_factory=dict)
    """by page: what the loader said last"""
    bodies: dict[PageId, XmlPage] = field(default_factory=dict)
    """by page: bodies whose load waits for parts"""
    documents: dict[PageId, Document] = field(default_factory=dict)
    """by page: what the warehouse keeps of a body that was loaded"""
    submits: list[Submit] = field(default_factory=list)
    transfers: list[CashTransfer] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    urls: int = 0
    """in all these"""

    def __bool__(self) -> bool:
        return bool(self.visits or self.loads or self.submits or self.transfers or self.acks or self.commands)

    @property
    def urgent(self) -> bool:
        """Tell whether somebody waits for a command's answer, or for what it leads to."""
        return any(command.request or command.hurries for command in self.commands)

    @property
    def may_wait(self) -> bool:
        """Tell whether nothing but cash of other partitions, its acknowledgements, and patient commands came in."""
        rest = self.visits or self.submits or self.loads or self.bodies or self.documents
        return not rest and all(command.patient for command in self.commands)

    def refused(self, error: str) -> list[CommandAnswer]:
        """Answers for a group that will never be on disk."""
        asked = [submit.request for submit in self.submits] + [command.request for command in self.commands]
        return [CommandAnswer(request, error) for request in asked if request]

    def add(self, message: Message) -> None:
        """Sort a message in. A message that is not for a frontier is a bug of the sender."""
        self.urls += urls_of(message)
        match message:
            case PageReport():
                self.visits.append(message)
            case LoadReport():
                self.loads[message.page] = message
            case XmlPage():
                self.bodies[message.page] = message
            case Document():
                self.documents[message.page] = message
            case Submit():
                self.submits.append(message)
            case CashTransfer():
                self.transfers.append(message)
            case Ack():
                self.acks.append(message)
            case Command():
                self.commands.append(message)
            case _:
                raise MachineError(f"a frontier got a {type(message).__name__} (a bug)")


class Effects(Struct):
    """The effects of a turn, which may leave once `commit` is on disk."""

    commit: Commit
    orders: list[FetchOrder]
    transfers: list[CashTransfer]
    acks: list[Ack]
    submits: list[Submit]
    """pages that this partition wants and others must order"""
    answers: list[CommandAnswer]
    """of the commands and submits that somebody waits for"""
    posts: list[tuple[int, Command]] = field(default_factory=list)
    """commands of extensions, each with the partition that it is for"""
    challenged: list[HostChallenged] = field(default_factory=list)
    """hosts that the fetch pool is to leave alone"""


class Settled(Struct):
    """An order settled in this turn, until its row is written."""

    page: LocalPage
    report: PageReport
    visit: Visit
    lease: Lease
    row: RefreshRow | None
    fault: str | None = None
    """what the loader said of the body in this turn, empty where nothing is wrong; None: nothing (yet)"""
