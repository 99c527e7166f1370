"""A crawl without a web: page nodes driven turn by turn, every report made up, messages delivered when a test says.

    crawl = Crawl.on_disk(tmp_path, partitions=4)      real LevelDB; Crawl.in_memory(...) for hundreds of examples
    crawl.submit(url(0, 0)); crawl.turn()              a commit group of every partition, written at once
    crawl.answer(order, links=[...])                   the report of an order that is out, for the next turn
    crawl.run(web)                                     until nothing is left, `web(order)` making the reports

Between partitions messages wait in `wire` until `deliver` hands them over, in any order and as often as a test likes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgpack
import numpy as np

from xyro.configs.schema import Settings
from xyro.frontier.batch import Effects, MessageBatch
from xyro.frontier.frontier import Extension, Frontier
from xyro.frontier.scope import Scope
from xyro.loader.library import Resumed
from xyro.metadata import rows
from xyro.metadata.partition import JOURNAL_FROM, Partition
from xyro.metadata.recovery import recover
from xyro.metadata.states import LEASED, State
from xyro.metadata.store import MemoryStore
from xyro.opic.cash import UNIT
from xyro.plugins import extensions
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import DataDir
from xyro.service.views.audit import audit
from xyro.service.views.views import Views
from xyro.wire.commands import Command
from xyro.wire.messages import (
    Ack,
    CashTransfer,
    FetchOrder,
    Kind,
    LinkKind,
    Links,
    LoadReport,
    Message,
    PageReport,
    Priority,
    Submit,
    XmlPage,
)
from xyro.wire.urls import host_of, partition_of

START = 1_700_000_000.0
PLENTY = 1 << 30


def url(host: int, page: int = 0) -> str:
    return f"http://h{host}.example/p{page}.html"


def links_to(urls: Sequence[str], flags: int = LinkKind.ANCHOR) -> Links:
    return Links(tuple(urls), bytes([flags]) * len(urls))


def signature(number: int) -> bytes:
    return number.to_bytes(16, "big")


def report(order: FetchOrder, now: float, links: Sequence[str] | Links = (), **fields: object) -> PageReport:
    """A page that was read well; `fields` make anything else of it."""
    shown = links if isinstance(links, Links) else links_to(list(links))
    said = {"status": 200, "kind": Kind.HTML, "signature": signature(order.page + 1), "links": shown} | fields
    return PageReport(order.page, order.url, order.epoch, now, now, **said)


def failed(order: FetchOrder, now: float, error: str, *, status: int = 0, retry_in: float | None = None) -> PageReport:
    """retry_in None: for good."""
    final = retry_in is None
    fields = {"status": status, "error": error, "final": final, "retry_at": 0.0 if final else now + retry_in}
    return report(order, now, signature=b"", kind=Kind.UNKNOWN, **fields)


def in_memory_partition(store: MemoryStore, number: int, partitions: int, bits: int = 64) -> Partition:
    """A partition as of what the store holds (there are no snapshots to begin with)."""
    facts = {"number": number, "partitions": partitions, "seed": 7}
    directory = Path(tempfile.gettempdir()) / "no-snapshots-here"
    return Partition(directory, store, facts, recover(directory, store, bits))


class Crawl:
    """Page nodes of one crawl, their orders, and the messages between them."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        settings: Settings,
        scope: Scope | None = None,
        refreshing: bool = False,
        now: float = START,
        plugins: Sequence[Extension] = (),
        ahead: bool = False,
        others: bool = False,
    ) -> None:
        """others: pages of partitions that are not among these are being read."""
        self.settings = settings
        self.others = others
        self.scope = scope or Scope(settings.crawl, settings.rules)
        self.frontiers = [
            Frontier(partition, self.scope, settings, refreshing, extensions(settings), ahead)
            for partition in partitions
        ]
        self.now = now
        self.room = PLENTY
        self.orders: dict[int, FetchOrder] = {}
        """by page id: those that are out"""
        self.issued: list[FetchOrder] = []
        """all orders ever given out, in their order"""
        self.probes: list[FetchOrder] = []
        """all questions for URLs that cannot exist"""
        self.answer_probes: Callable[[FetchOrder, float], PageReport] = lambda order, now: failed(
            order, now, "http-404", status=404
        )
        self.wire: list[CashTransfer | Ack | Submit | tuple[int, Command]] = []
        self.pending: list[list[Message]] = [[] for _ in partitions]
        self.resumed: list[Resumed] = []
        for extend in plugins:
            for frontier in self.frontiers:
                extend(frontier)
        for frontier in self.frontiers:
            transfers, waits = frontier.recover(now)
            self.wire += transfers
            self.resumed += waits

    @classmethod
    def on_disk(cls, path: Path, partitions: int = 1, bits: int = 64, **options: object) -> Crawl:
        """Open the crawl in `path`, or make one."""
        data = DataDir.open(path, partitions=None if path.exists() else partitions, make=True, bits=bits)
        return cls(data.partitions, **_with_settings(options))

    @classmethod
    def in_memory(cls, partitions: int = 1, bits: int = 64, **options: object) -> Crawl:
        made = [in_memory_partition(MemoryStore(), q, partitions, bits) for q in range(partitions)]
        return cls(made, **_with_settings(options))

    @property
    def frontier(self) -> Frontier:
        return self.frontiers[0]

    def owner(self, target: str) -> int:
        return partition_of(host_of(target), len(self.frontiers))

    def page(self, target: str) -> tuple[Frontier, int]:
        """The node and the local number of a known URL."""
        frontier = self.frontiers[self.owner(target)]
        page = frontier.partition.url_index.find_one(target)
        assert page >= 0, f"{target} is not known"
        return frontier, page

    def state(self, target: str) -> State:
        frontier, page = self.page(target)
        return State(int(frontier.columns["state"][page]))

    def depth(self, target: str) -> int:
        frontier, page = self.page(target)
        return int(frontier.columns["depth"][page])

    # -- in ------------------------------------------------------------------------------------------------------

    def submit(self, *urls: str, priority: Priority = Priority.ORDERED, seed: bool = True) -> None:
        for one in urls:
            self.pending[self.owner(one)].append(Submit((one,), priority, seed))

    def answer(self, order: FetchOrder, links: Sequence[str] | Links = (), **fields: object) -> PageReport:
        return self.give(report(order, self.now, links, **fields))

    def fail(self, order: FetchOrder, error: str, **options: object) -> PageReport:
        return self.give(failed(order, self.now, error, **options))

    def give(self, said: PageReport) -> PageReport:
        self.orders.pop(said.page, None)
        self.pending[said.page >> 32].append(said)
        return said

    def load(self, said: LoadReport, body: XmlPage | None = None) -> None:
        if body is not None:
            self.pending[body.page >> 32].append(body)
        self.pending[said.page >> 32].append(said)

    def order(self, target: str) -> FetchOrder:
        """The order for a URL that is out."""
        return next(order for order in self.orders.values() if order.url == target)

    # -- turns ---------------------------------------------------------------------------------------------------

    def seal(self, q: int = 0) -> Effects:
        """One turn of partition q, not written yet: nothing of it may leave."""
        work = MessageBatch()
        messages, self.pending[q] = self.pending[q], []
        for message in messages:
            work.add(message)
        return self.frontiers[q].turn(work, self.now, self.room, others=self.others)

    def write(self, turn: Effects, q: int = 0) -> None:
        """The group reaches the disk, its effects leave."""
        partition = self.frontiers[q].partition
        partition.write(turn.commit)
        partition.written(turn.commit)
        pages = [order for order in turn.orders if not order.probe]
        self.issued += pages
        self.orders.update((order.page, order) for order in pages)
        self.probes += [order for order in turn.orders if order.probe]
        self.pending[q] += [self.answer_probes(order, self.now) for order in turn.orders if order.probe]
        self.wire += [*turn.transfers, *turn.acks, *turn.submits, *turn.posts]

    def turn(self, *which: int) -> list[FetchOrder]:
        """A commit group of these partitions (all, if none is named); the orders that left."""
        given: list[FetchOrder] = []
        for q in which or range(len(self.frontiers)):
            turn = self.seal(q)
            self.write(turn, q)
            given += [order for order in turn.orders if not order.probe]
        return given

    def deliver(self, at: int = 0, *, keep: bool = False) -> None:
        """Hand over the message at this place of the wire; `keep`: it will come once more."""
        message = self.wire[at] if keep else self.wire.pop(at)
        if isinstance(message, tuple):
            target, message = message
        else:
            target = self.owner(message.urls[0]) if isinstance(message, Submit) else message.target
        self.pending[target].append(message)

    def deliver_all(self) -> None:
        while self.wire:
            self.deliver()

    def send_again(self) -> None:
        """What a restart does: post all transfers that were not acknowledged."""
        for frontier in self.frontiers:
            self.wire += frontier.outbox.recover()

    def run(self, web: Callable[[FetchOrder], PageReport], turns: int = 10_000, step: float = 0.05) -> int:
        """Until nothing is out and nothing is on its way; the number of turns."""
        for count in range(turns):
            for order in list(self.orders.values()):
                self.give(web(order))
            self.deliver_all()
            busy = any(self.pending) or not count
            if not (self.turn() or busy or self.wire):
                return count
            self.now += step
        raise AssertionError("the crawl does not end")

    # -- looks ---------------------------------------------------------------------------------------------------

    @property
    def crawl_views(self) -> CrawlViews:
        return CrawlViews(self.frontiers)

    def views(self) -> Views:
        return self.crawl_views.views(self.now)

    def audit(self) -> dict[str, object]:
        with self.views() as views:
            return audit(views, VIEW_EXTENSIONS)

    def cash(self) -> tuple[int, int]:
        """(units there are, units there should be), counted by this file alone, from the columns and the outboxes."""
        there = known = 0
        for frontier in self.frontiers:
            n = frontier.columns.n
            own = frontier.columns["state"][:n] != State.FOREIGN
            assert not frontier.columns["cash"][:n][~own].any()
            there += sum((frontier.columns["cash"][:n][own] + _paid(frontier)[own]).tolist())
            there += frontier.ledger.virtual.pot + frontier.ledger.virtual.account
            known += int(own.sum())
            for target, waiting in frontier.outbox.unacknowledged.items():
                applied = self.frontiers[target].outbox.applied.get(frontier.partition.number, 0)
                there += sum(units for seq, units, _ in waiting if seq > applied)
        return there, UNIT * known

    def close(self) -> None:
        for frontier in self.frontiers:
            frontier.partition.close()


def _paid(frontier: Frontier) -> np.ndarray:
    """What the virtual page paid each page so far, by the class in bits 16 to 19 of its flags."""
    virtual = frontier.ledger.virtual
    scalars = getattr(virtual, "scalars", np.full(16, virtual.scalar))
    return scalars[frontier.columns["flags"][: frontier.columns.n] >> 16 & 15]


def _with_settings(options: dict[str, object]) -> dict[str, object]:
    return {"settings": Settings(), **options}


def snapshot(frontier: Frontier) -> None:
    """A whole snapshot, between two groups."""
    for _ in frontier.partition.snapshot():
        pass


def copied(path: Path, target: Path) -> Path:
    """What is on disk now: as a crash at this moment would leave it."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(path, target)
    return target


def dump(partition: Partition) -> dict[str, object]:
    """Everything that must survive a crash, and what `get` answers for every key there is."""
    n = partition.columns.n
    columns = {name: partition.columns[name][:n].copy() for name in partition.columns.spec}
    columns["flags"] &= np.uint32(~LEASED & 0xFFFF_FFFF)
    fps, ids = partition.table.items()
    stored = {key for key, _ in partition.store.scan(b"") if not key.startswith(rows.JOURNAL.prefix)}
    for commit in partition._flying:
        stored.update(key for key in commit.changes if not key.startswith(rows.JOURNAL.prefix))
    said = {key: partition.get(key) for key in stored - {rows.META.key("scalars"), JOURNAL_FROM}}
    return {
        "n": n,
        "columns": {name: values.tobytes() for name, values in columns.items()},
        "table": sorted(zip(fps.tolist(), ids.tolist(), strict=True)),
        "scalars": msgpack.unpackb(msgpack.packb(partition.scalars)),
        "said": {key: value for key, value in said.items() if value is not None},
        "hosts": (list(partition.hosts.names), _waiting(partition)),
    }


def _waiting(partition: Partition) -> list[int]:
    """Pages that wait or are out, by host."""
    hosts, n = partition.hosts, partition.columns.n
    unread = (partition.columns["state"][:n] == State.UNREAD) & (partition.columns["flags"][:n] & LEASED != 0)
    out = np.bincount(partition.columns["host"][:n][unread], minlength=len(hosts))
    return (hosts.waiting[: len(hosts)] + out).tolist()


def read_urls(crawl: Crawl) -> set[str]:
    return {page["url"] for page in pages(crawl) if page["state"] == "read"}


def pages(crawl: Crawl) -> list[dict[str, object]]:
    with crawl.views() as views:
        return list(views.pages())


def cycle(urls: Iterable[str]) -> Callable[[FetchOrder], PageReport]:
    """A web whose every page shows the next one."""
    ring = list(urls)
    after = dict(zip(ring, ring[1:] + ring[:1], strict=True))
    return lambda order: report(order, START, [after[order.url]])
