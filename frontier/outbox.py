"""Cash and news of URLs for pages that live in other partitions: outbox and inbox (reliability.md 3.2).

A child of another partition is a FOREIGN entry here: it has an id and holds cash like any page while a commit group
runs. At its end the cash leaves in a CashTransfer that the same write batch puts into the outbox; after the batch is on
disk the transfer is posted, and it stays in the outbox until the receiver's Ack (its own batch is on disk then).
Transfers of a pair carry numbers without gaps; the receiver stores the last one it applied, so sending again changes
nothing.

Partition 0 gathers the income of the virtual page and shares it out (design.md section 6, Partitions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.ledger import Ledger
from xyro.metadata import keys
from xyro.metadata.manager import Partition
from xyro.metadata.states import State
from xyro.wire.codec import decode, encode
from xyro.wire.errors import MachineError
from xyro.wire.messages import Ack, CashTransfer, Passing
from xyro.wire.urls import host_of, partition_of

MOST_ITEMS = 2_000
"""items in one transfer: about 200 kB"""


class Outbox:
    """One partition's outbox and inbox."""

    def __init__(self, partition: Partition, ledger: Ledger, partitions: int) -> None:
        self.partition = partition
        self.ledger = ledger
        self.partitions = partitions
        self.sent: dict[int, int] = defaultdict(int)
        """last number sent, by target"""
        self.applied: dict[int, int] = defaultdict(int)
        """last number applied, by source"""
        self.heard: dict[int, tuple[int, int, int]] = {}
        """partition 0: (units spent, known pages, the same by weight) of each other partition, as last told"""
        self._marks: set[str] = set()
        """URLs elsewhere that transfers of this group mark"""
        self._marked: list[NDArray[np.int64]] = []
        """pages here that transfers of other partitions marked, since `take_marked`"""
        self.unacknowledged: dict[tuple[int, int], int] = {}
        """(target, number) -> units on their way"""
        self._told = (0, 0)

    @property
    def in_flight(self) -> int:
        """Units in the outbox: the receiver may have applied some of them already."""
        return sum(self.unacknowledged.values())

    def recover(self) -> list[CashTransfer]:
        """What must be sent again: everything not acknowledged."""
        again = []
        for _, value in self.partition.scan(keys.OUTBOX.prefix):
            transfer = decode(value)
            if not isinstance(transfer, CashTransfer):
                raise MachineError(f"{self.partition.directory}: the outbox holds a {type(transfer).__name__}")
            self._note(transfer)
            self.sent[transfer.target] = max(self.sent[transfer.target], transfer.seq)
            again.append(transfer)
        for key, value in self.partition.scan(keys.INBOX.prefix):
            self.applied[keys.INBOX.split(key)] = int.from_bytes(value, "big")
        return again

    def dump(self) -> dict[str, list[tuple[int, ...]]]:
        return {
            "sent": [(target, seq) for target, seq in self.sent.items()],
            "heard": [(source, *counts) for source, counts in self.heard.items()],
        }

    def load(self, state: dict[str, list[tuple[int, ...]]]) -> None:
        self.sent.update((target, seq) for target, seq in state["sent"])
        for source, spent, pages, *weighted in state["heard"]:  # three numbers: of before there were classes
            self.heard[source] = (spent, pages, weighted[0] if weighted else pages)

    # -- marks ---------------------------------------------------------------------------------------------------

    def mark(self, urls: set[str]) -> None:
        """Let the transfers of this group mark these URLs: links with words of a focus led there."""
        self._marks = urls

    def take_marked(self) -> list[NDArray[np.int64]]:
        """Pages here that transfers of other partitions have marked since the last call."""
        marked, self._marked = self._marked, []
        return marked

    # -- in ------------------------------------------------------------------------------------------------------

    def take(self, transfer: CashTransfer, resolve: Callable[[list[str], list[int]], NDArray[np.int64]]) -> Ack | None:
        """Apply a transfer to this partition, once; the Ack may leave when the group is on disk.

        None: an earlier one has not come yet (it will: the sender repeats what is not acknowledged).
        """
        last = self.applied[transfer.source]
        if transfer.seq > last + 1:
            return None
        if transfer.seq == last + 1:
            self._apply(transfer, resolve)
            self.applied[transfer.source] = transfer.seq
            self.partition.put(keys.INBOX.key(transfer.source), transfer.seq.to_bytes(8, "big"))
        return Ack(source=self.partition.number, target=transfer.source, seq=self.applied[transfer.source])

    def _apply(self, transfer: CashTransfer, resolve: Callable[[list[str], list[int]], NDArray[np.int64]]) -> None:
        ledger = self.ledger
        if transfer.items:
            pages = resolve([item.url for item in transfer.items], [item.depth for item in transfer.items])
            ledger.credit(pages, np.array([item.cash for item in transfer.items], np.int64))
            if transfer.focused:
                self._marked.append(pages[list(transfer.focused)])
        if self.partition.number == 0:
            ledger.virtual.receive(transfer.virtual)
            weighted = transfer.weighted if transfer.weighted >= 0 else transfer.pages
            self.heard[transfer.source] = (transfer.spent, transfer.pages, weighted)
            ledger.count_elsewhere(*(sum(counts[i] for counts in self.heard.values()) for i in (0, 1)))
        elif transfer.source == 0:
            ledger.virtual.deposit(transfer.virtual)
            ledger.count_elsewhere(transfer.spent, transfer.pages)

    def acknowledged(self, ack: Ack) -> None:
        """The receiver has everything up to ack.seq on disk: trim the outbox."""
        for target, seq in [pair for pair in self.unacknowledged if pair[0] == ack.source and pair[1] <= ack.seq]:
            del self.unacknowledged[target, seq]
            self.partition.delete(keys.OUTBOX.key(target, seq))

    # -- out -----------------------------------------------------------------------------------------------------

    def collect(
        self, touched: Iterable[NDArray[np.int64]], nearer: Iterable[NDArray[np.int64]], born: int
    ) -> list[CashTransfer]:
        """Drain the FOREIGN entries that this group touched or made into transfers; add the virtual page's share.

        nearer: FOREIGN entries whose depth fell, which is news even without cash.
        """
        if self.partitions == 1:
            self.ledger.virtual.pay(self.ledger.known)
            return []
        news = np.concatenate([np.arange(born, self.partition.columns.n), *nearer]).astype(np.int64)
        parcels = self._parcels(touched, news)
        virtual = self._virtual()
        transfers = []
        for target in sorted({*parcels, *virtual}):
            items = parcels.get(target, [])
            for start in range(0, max(1, len(items)), MOST_ITEMS):
                units = virtual.pop(target, 0)
                transfers.append(self._send(target, tuple(items[start : start + MOST_ITEMS]), units))
        return transfers

    def _parcels(self, touched: Iterable[NDArray[np.int64]], news: NDArray[np.int64]) -> dict[int, list[Passing]]:
        columns = self.partition.columns
        pages = np.concatenate([news, *touched]).astype(np.int64)
        pages = np.unique(pages[columns["state"][pages] == State.FOREIGN])
        cash = columns["cash"][pages]
        chosen = (cash > 0) | np.isin(pages, news)
        parcels: dict[int, list[Passing]] = defaultdict(list)
        depths = columns["depth"][pages]
        for page, units, depth in zip(
            pages[chosen].tolist(), cash[chosen].tolist(), depths[chosen].tolist(), strict=True
        ):
            url = self.partition.url(page)
            parcels[partition_of(host_of(url), self.partitions)].append(Passing(url, units, depth))
        columns["cash"][pages] = 0
        columns.touch("cash", pages)
        return parcels

    def _virtual(self) -> dict[int, int]:
        """Units of the virtual page to each partition: income to 0, or 0's payouts. Settles this one's account."""
        virtual, known, weighted = self.ledger.virtual, self.ledger.known, self.ledger.weighted
        out: dict[int, int] = {}
        if self.partition.number:
            if virtual.due(known) or (virtual.pot and self._told != (known, weighted)):
                self._told = (known, weighted)
                out[0] = virtual.take()
        elif virtual.due(self.ledger.known_everywhere):
            others = [self.heard.get(q, (0, 0, 0)) for q in range(1, self.partitions)]
            counts = [weighted, *(other[2] for other in others)]
            if not any(counts):  # nobody is to be paid yet: all are
                counts = [known, *(other[1] for other in others)]
            parts = virtual.split(counts)
            virtual.deposit(parts[0])
            out = {q: units for q, units in enumerate(parts) if q and counts[q]}
        virtual.settle(known)
        return out

    def _send(self, target: int, items: tuple[Passing, ...], units: int) -> CashTransfer:
        spent, pages = self.ledger.spent, self.ledger.known
        if self.partition.number == 0:
            others = [counts for q, counts in self.heard.items() if q != target]
            spent += sum(counts[0] for counts in others)
            pages += sum(counts[1] for counts in others)
        self.sent[target] += 1
        focused = tuple(i for i, item in enumerate(items) if item.url in self._marks) if self._marks else ()
        number, weighted = self.sent[target], self.ledger.weighted
        transfer = CashTransfer(
            self.partition.number, target, number, items, units, spent, pages, weighted=weighted, focused=focused
        )
        self.partition.put(keys.OUTBOX.key(target, transfer.seq), encode(transfer))
        self._note(transfer)
        return transfer

    def _note(self, transfer: CashTransfer) -> None:
        units = transfer.virtual + sum(item.cash for item in transfer.items)
        self.unacknowledged[transfer.target, transfer.seq] = units
