"""Cash and news of URLs for pages that live in other partitions: outbox and inbox, applied exactly once.

A child of another partition is a FOREIGN entry here: it has an id and holds cash like any page while a commit group
runs. After ledger.py has spent, `collect` moves that cash into CashTransfers that the same write batch puts into the
outbox; after the batch is on disk the transfers leave, and each stays in the outbox until the receiver's Ack (its own
batch is on disk then). Transfers between two partitions carry numbers without gaps; the receiver stores the last one it
applied, so sending again changes nothing. Whatever carries them may lose, repeat and reorder: what is not acknowledged
in time is sent again, the oldest first, more of them while that helps, and a receiver that finds a number missing keeps
what came early and says at once which one it has.

The outbox is bounded (`[cluster] outbox`): while it is full, cash for other partitions stays in its FOREIGN entries,
and what is news to them is told when half of the outbox has left.

An Ack also says which hosts here are full, and which are full no more: links to them wait where they are
(waiting_links.py).

Partition 0 gathers the income of the virtual page and shares it out by known pages. A crawl of one partition
does not use any of this.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.frontier.ledger import Ledger
from xyro.metadata import rows
from xyro.metadata.columns import distinct
from xyro.metadata.hosts import PRICE
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.opic.cash import VirtualPage
from xyro.wire.codec import decode, encode
from xyro.wire.errors import MachineError
from xyro.wire.ids import local_pages
from xyro.wire.messages import Ack, CashTransfer, Passing
from xyro.wire.urls import authority, host_of, site_of

MOST_ITEMS = 2_000
"""items in one transfer: about 200 kB"""
SOONEST, LATEST = 4.0, 30.0
"""seconds until a target without an answer is sent the oldest transfers again; doubles each time. A transfer and its
Ack may be held back at both ends (service/node/partition_loop.py: LONGEST_HOLD)"""
MOST_AGAIN = 64
"""transfers sent again at once"""
EARLY = 64
"""most transfers of one source that wait for a missing one: 13 MB"""
HELD_FROM = rows.META.key("held")
"""number of the first page that was minted while the outbox was full, until all was told that waited"""
_RETOLD = rows.META.key("retold")
"""partition -> epoch of its last restoration after which it was told again what is known of it here"""
Ids = NDArray[np.int64]


class Resend(NamedTuple):
    """When a target is sent again what it has not acknowledged."""

    at: float
    """wall clock, seconds"""
    wait: float
    """seconds from this time to the next"""
    burst: int = 1
    """transfers to send then"""
    asked: int = 0
    """number of the last one that the target missed: it is sent again at once, but not at once again"""


class PartitionCounts(NamedTuple):
    """A partition's share of the crawl, as its last transfer reported it."""

    spent: int = 0
    """units since the crawl began"""
    pages: int = 0
    """known pages"""
    weighted: int = 0
    """known pages, each counted as often as the virtual page pays it"""


class PageReceiver(Protocol):
    """Finds or makes the pages that another partition sent cash or news for (pages.py)."""

    heritage: dict[str, int]
    """host of another partition that was introduced in this turn -> credit that goes with its first page"""

    def receive(self, urls: list[str], depths: list[int]) -> Ids: ...

    def may_be_read(self, url: str, depth: int) -> bool: ...

    def full(self, hosts: Iterable[int]) -> set[int]: ...

    def answered(self, owner: int, full: Iterable[str], free: Iterable[str], now: float) -> None: ...

    def half_free(self, host: int) -> bool: ...


class Outbox:
    """One partition's outbox and inbox."""

    def __init__(self, partition: Partition, ledger: Ledger, pages: PageReceiver, partitions: int) -> None:
        self.partition = partition
        self.ledger = ledger
        self.pages = pages
        self.partitions = partitions
        self.sent: dict[int, int] = defaultdict(int)
        """target -> number of the last transfer sent"""
        self.applied: dict[int, int] = defaultdict(int)
        """source -> number of the last transfer applied"""
        self.elsewhere: dict[int, PartitionCounts] = {}
        """partition 0: counts of each other partition"""
        self.claims: dict[int, int] = {}
        """partition 0: units that others, or this one, are to get out of the pot before it is shared out; a crash
        forgets them (joint_settling.py)"""
        self._marks: set[str] = set()
        """URLs elsewhere that transfers of this group mark"""
        self._marked_pages: list[Ids] = []
        """pages here that transfers of other partitions marked, since `take_marked`"""
        self.unacknowledged: dict[int, deque[tuple[int, int, int]]] = {}
        """target -> (number, units, bytes) of the transfers on their way, in order; no target has an empty one"""
        self._early: dict[int, dict[int, CashTransfer]] = defaultdict(dict)
        """source -> transfers by number that wait for an earlier one"""
        self._told_full: dict[int, set[int]] = defaultdict(set)
        """full host -> partitions that were told so; a restart forgets them"""
        self._resends: dict[int, Resend] = {}
        """for each target of `unacknowledged`"""
        self._retelling: deque[tuple[int, int, Ids]] = deque()
        """(partition, epoch, pages of it that are to be told again) of partitions that were restored from a backup"""
        self.in_flight = 0
        """units in the outbox; the receiver may have applied some of them already"""
        self.bytes = 0
        """of the transfers in the outbox"""
        self.is_full = False
        self._held_from: int | None = None
        """first page that was minted since the outbox was full, as it is stored"""
        self._nearer = self._late = np.empty(0, np.int64)
        """FOREIGN entries whose depth fell while it is full; those that are told now that it is full no more"""
        self._reported = (0, 0)

    @property
    def busy(self) -> bool:
        """Something is on its way, or is to be told later or again."""
        return bool(self.unacknowledged or self._retelling or self._held_from is not None)

    def recover(self) -> list[CashTransfer]:
        """Read outbox and inbox; returns everything not acknowledged, to be sent again."""
        self.unacknowledged, self.in_flight, self.bytes, self._resends = {}, 0, 0, {}
        again: list[CashTransfer] = []
        if self.partition.facts["partitions"] == 1:
            return again  # a scan of the inbox would pass all that is left of deleted journal records
        for _, value in self.partition.scan(rows.OUTBOX.prefix):
            transfer = decode(value)
            if not isinstance(transfer, CashTransfer):
                raise MachineError(f"{self.partition.directory}: the outbox holds a {type(transfer).__name__}")
            self._count(transfer, len(value))
            self.sent[transfer.target] = max(self.sent[transfer.target], transfer.seq)
            again.append(transfer)
        for key, value in self.partition.scan(rows.INBOX.prefix):
            self.applied[rows.INBOX.split(key)] = int.from_bytes(value, "big")
        first = self.partition.get(HELD_FROM)
        self._held_from = None if first is None else int.from_bytes(first, "big")
        self.is_full = first is not None
        return again

    def dump(self) -> dict[str, list[tuple[int, ...]]]:
        return {
            "sent": [(target, seq) for target, seq in self.sent.items()],
            "heard": [(source, *counts) for source, counts in self.elsewhere.items()],
        }

    def load(self, state: dict[str, list[tuple[int, ...]]]) -> None:
        """Go on from what `dump` returned."""
        self.sent.update((target, seq) for target, seq in state["sent"])
        for source, spent, pages, *weighted in state["heard"]:  # three numbers: of before there were classes
            self.elsewhere[source] = PartitionCounts(spent, pages, weighted[0] if weighted else pages)

    # -- marks ---------------------------------------------------------------------------------------------------

    def mark(self, urls: set[str]) -> None:
        """Let the transfers of this group mark these URLs: links with words of a focus led there."""
        self._marks = urls

    def take_marked(self) -> list[Ids]:
        """Pages here that transfers of other partitions have marked since the last call."""
        pages, self._marked_pages = self._marked_pages, []
        return pages

    # -- in ------------------------------------------------------------------------------------------------------

    def apply(self, transfers: Iterable[CashTransfer]) -> list[Ack]:
        """Apply transfers to this partition, each once; the Acks, one for each source, may leave when the group is on
        disk.

        If an earlier one has not come yet, a transfer waits for it: the Ack says so, and the sender repeats the earlier
        one.
        """
        ready: list[CashTransfer] = []
        sources = {transfer.source: self._arrived(transfer, ready) for transfer in transfers}
        full = self._receive(ready)
        own, names = self.partition.number, self.partition.hosts.names
        return [Ack(own, source, last, tuple(names[host] for host in full[source])) for source, last in sources.items()]

    def freed(self) -> list[Ack]:
        """Tell those that were told that hosts are full of which half of the places are free again."""
        free = [host for host in self._told_full if self.pages.half_free(host)]
        names, targets = self.partition.hosts.names, defaultdict[int, list[str]](list)
        for host in free:
            for source in self._told_full.pop(host):
                targets[source].append(names[host])
        return [Ack(self.partition.number, s, self.applied[s], (), tuple(hosts)) for s, hosts in targets.items()]

    def _arrived(self, transfer: CashTransfer, ready: list[CashTransfer]) -> int:
        """Add a transfer to those that are ready to be applied, with all that waited for it. Returns the number of the
        last one of its source that is."""
        source, last = transfer.source, self.applied[transfer.source]
        early = self._early[source]
        if last < transfer.seq and len(early) < EARLY:
            early[transfer.seq] = transfer
        if transfer.seq == last + 1:
            early[transfer.seq] = transfer
            while (following := early.pop(self.applied[source] + 1, None)) is not None:
                ready.append(following)
                self.applied[source] = following.seq
            self.partition.put(rows.INBOX.key(source), self.applied[source].to_bytes(8, "big"))
        return self.applied[source]

    def _receive(self, transfers: Sequence[CashTransfer]) -> dict[int, set[int]]:
        """Find or make the pages of all items at once: each look into the index costs more than a page does. Returns,
        by source, the hosts among theirs that are full."""
        full = defaultdict[int, set[int]](set)
        items = [item for transfer in transfers for item in transfer.items]
        if items:
            self._inherit(items)
            pages = self.pages.receive([item.url for item in items], [item.depth for item in items])
            self.ledger.credit(pages, np.array([item.cash for item in items], np.int64))
            hosts = self.partition.columns["host"][pages].astype(np.int64)
            crowded, first = self.pages.full(distinct(hosts).tolist()), 0
            for transfer in transfers:
                if transfer.focused:
                    self._marked_pages.append(pages[[first + place for place in transfer.focused]])
                last = first + len(transfer.items)
                for host in crowded.intersection(hosts[first:last].tolist()) if crowded else ():
                    full[transfer.source].add(host)
                    self._told_full[host].add(transfer.source)
                first = last
        for transfer in transfers:
            self._hear(transfer)
        return full

    def _hear(self, transfer: CashTransfer) -> None:
        """Take what a transfer says of the virtual page and of the rest of the crawl."""
        ledger = self.ledger
        if self.partition.number == 0:
            ledger.virtual.receive(transfer.virtual)
            weighted = transfer.weighted if transfer.weighted >= 0 else transfer.pages
            self.elsewhere[transfer.source] = PartitionCounts(transfer.spent, transfer.pages, weighted)
            others = self.elsewhere.values()
            ledger.count_elsewhere(sum(counts.spent for counts in others), sum(counts.pages for counts in others))
        elif transfer.source == 0:
            ledger.virtual.deposit(transfer.virtual)
            ledger.count_elsewhere(transfer.spent, transfer.pages)

    def _inherit(self, items: Iterable[Passing]) -> None:
        """Hand the credit that came with links over to the domains of their hosts. The price of an introduction is
        among it, for the sender cannot know whether the host is new: it is due only if it is."""
        introductions, introduced = self.partition.introductions, set[str]()
        for item in items:
            host = authority(item.url)
            is_new = host not in self.partition.hosts.numbers and host not in introduced
            if is_new and (item.credit or self.pages.may_be_read(item.url, item.depth)):
                introductions.inherit(site_of(host_of(item.url)), max(item.credit - PRICE, 0))
            elif item.credit:
                introductions.give(site_of(host_of(item.url)), item.credit)
            introduced.add(host)

    def acknowledge(self, ack: Ack, now: float) -> None:
        """Trim the outbox: the receiver has everything up to ack.seq on disk. One that trims nothing asks for what
        comes next."""
        self.pages.answered(ack.source, ack.full, ack.free, now)
        waiting = self.unacknowledged.get(ack.source)
        if not waiting:
            return
        resend = self._resends.get(ack.source, Resend(now + SOONEST, SOONEST))
        if waiting[0][0] <= ack.seq:
            self._resends[ack.source] = Resend(now + SOONEST, SOONEST, resend.burst)
        elif (missing := ack.seq + 1) == waiting[0][0] and resend.asked < missing:
            self._resends[ack.source] = resend._replace(at=now, burst=1, asked=missing)
        while waiting and waiting[0][0] <= ack.seq:
            seq, units, size = waiting.popleft()
            self.in_flight -= units
            self.bytes -= size
            self.partition.delete(rows.OUTBOX.key(ack.source, seq))
        if not waiting:
            del self.unacknowledged[ack.source]
            self._resends.pop(ack.source, None)

    # -- out -----------------------------------------------------------------------------------------------------

    def next_time(self) -> float:
        """Return when something is to be sent again (wall clock, seconds); infinite if nothing is on its way."""
        if self._retelling or len(self._late) or (self.is_full and not self.unacknowledged):
            return 0.0
        return min((resend.at for resend in self._resends.values()), default=math.inf)

    def collect(
        self, touched: Iterable[Ids], nearer: Iterable[Ids], born: int, now: float, limit: int
    ) -> list[CashTransfer]:
        """Drain the FOREIGN entries that this group touched or made into transfers; add the virtual page's share, and
        what is to be sent again.

        nearer: FOREIGN entries whose depth fell, which is news even without cash. born: the group's first new page.
        limit: of the outbox, in bytes.
        """
        transfers = self._overdue(now)
        self._fill_or_empty(born, limit)
        if self.is_full:
            self._nearer = np.unique(np.concatenate([self._nearer, *nearer]))
            self.ledger.virtual.settle(self.ledger.known_pages)
            return transfers
        news = np.arange(born, self.partition.columns.n)
        news = np.concatenate([news, *nearer, *self._retold(), self._told_late()]).astype(np.int64)
        parcels = self._parcels(touched, news)
        virtual = self._virtual()
        for target in sorted({*parcels, *virtual}):
            items = parcels.get(target, [])
            for start in range(0, max(1, len(items)), MOST_ITEMS):
                units = virtual.pop(target, 0)
                transfers.append(self._send(target, tuple(items[start : start + MOST_ITEMS]), units))
        for target in self.unacknowledged.keys() - self._resends.keys():
            self._resends[target] = Resend(now + SOONEST, SOONEST)
        return transfers

    def _fill_or_empty(self, born: int, limit: int) -> None:
        """Full from `limit` bytes on, until half of them have left; then all that waited is told, in several groups."""
        if not self.is_full and self.bytes >= limit:
            self.is_full = True
            if self._held_from is None:  # else the last time is not over
                self._held_from = born
                self.partition.put(HELD_FROM, born.to_bytes(8, "big"))
        elif self.is_full and 2 * self.bytes <= limit:
            self.is_full = False
            columns, first = self.partition.columns, self._held_from or 0
            waits = (columns["cash"][: columns.n] > 0) | (np.arange(columns.n) >= first)
            found = np.flatnonzero(waits & (columns["state"][: columns.n] == State.FOREIGN))
            self._late, self._nearer = np.union1d(found, self._nearer), np.empty(0, np.int64)

    def _told_late(self) -> Ids:
        """Some of what waited while the outbox was full."""
        some, self._late = self._late[:MOST_ITEMS], self._late[MOST_ITEMS:]
        if self._held_from is not None and not len(self._late):
            self._held_from = None
            self.partition.delete(HELD_FROM)
        return some

    def retell(self, restored: Mapping[int, int]) -> None:
        """Partitions were restored from a backup, each at an epoch: what came early from them before is void, and the
        URLs of theirs that are known here are told again, once. Between two turns."""
        stored = self.partition.get(_RETOLD)
        done = msgpack.unpackb(stored, strict_map_key=False) if stored else {}
        done |= {target: epoch for target, epoch, _ in self._retelling}
        for target, epoch in restored.items():
            if target == self.partition.number or done.get(target, 0) >= epoch:
                continue
            self._early.pop(target, None)
            columns, owners = self.partition.columns, self.partition.owners()
            foreign = np.flatnonzero(columns["state"][: columns.n] == State.FOREIGN)
            self._retelling.append((target, epoch, foreign[owners[columns["host"][foreign]] == target]))

    def _retold(self) -> list[Ids]:
        """Some of what is told again; that it was told is stored with the last of it."""
        if not self._retelling:
            return []
        target, epoch, pages = self._retelling.popleft()
        if len(pages) > MOST_ITEMS:
            self._retelling.appendleft((target, epoch, pages[MOST_ITEMS:]))
        else:
            stored = self.partition.get(_RETOLD)
            done = msgpack.unpackb(stored, strict_map_key=False) if stored else {}
            self.partition.put(_RETOLD, msgpack.packb({**done, target: epoch}))
        return [pages[:MOST_ITEMS]]

    def _overdue(self, now: float) -> list[CashTransfer]:
        """The oldest transfers of each target that did not answer in time: one, then twice as many each time that it
        helped. They leave after this group, so after the one that made them."""
        again = []
        for target, (at, wait, burst, asked) in self._resends.items():
            if now < at <= now + LATEST:  # else the clock was set back
                continue
            more = min(2 * burst, MOST_AGAIN) if wait == SOONEST else 1
            self._resends[target] = Resend(now + wait, min(2.0 * wait, LATEST), more, asked)
            for seq, *_ in itertools.islice(self.unacknowledged[target], burst):
                value = self.partition.get(rows.OUTBOX.key(target, seq))
                transfer = decode(value) if value is not None else None
                if isinstance(transfer, CashTransfer):
                    again.append(transfer)
        return again

    def _parcels(self, touched: Iterable[Ids], news: Ids) -> dict[int, list[Passing]]:
        """Items for each other partition; the FOREIGN entries among the pages are left without cash."""
        columns, parcels = self.partition.columns, defaultdict[int, list[Passing]](list)
        pages = np.concatenate([news, *touched]).astype(np.int64)
        is_foreign = columns["state"][pages] == State.FOREIGN
        if not is_foreign.any():
            return parcels
        news = news[is_foreign[: len(news)]]
        pages = distinct(pages[is_foreign])
        cash = columns["cash"][pages]
        chosen = cash > 0
        chosen[pages.searchsorted(news)] = True
        pages, units = pages[chosen], cash[chosen]
        hosts, heritage = columns["host"][pages], self.pages.heritage
        owners, names = self.partition.owners()[hosts].tolist(), self.partition.hosts.names
        for page, amount, depth, host, owner in zip(
            local_pages(pages), units.tolist(), columns["depth"][pages].tolist(), hosts.tolist(), owners, strict=True
        ):
            credit = heritage.pop(names[host], 0) if heritage else 0
            parcels[owner].append(Passing(self.partition.url(page), amount, depth, credit))
        columns["cash"][pages] = 0
        columns.touch("cash", pages)
        return parcels

    def _virtual(self) -> dict[int, int]:
        """Units of the virtual page to each partition: income to 0, or 0's payouts. Settles this one's account."""
        self.ledger.repay()
        virtual, pages, weighted = self.ledger.virtual, self.ledger.known_pages, self.ledger.weighted
        out: dict[int, int] = {}
        if self.partition.number:
            if virtual.due(pages) or (virtual.pot and self._reported != (pages, weighted)):
                self._reported = (pages, weighted)
                out[0] = virtual.take()
        elif virtual.due(self.ledger.known_everywhere) and self.claims:
            out = self._meet_claims(virtual)
        elif virtual.due(self.ledger.known_everywhere):
            others = [self.elsewhere.get(q, PartitionCounts()) for q in range(1, self.partitions)]
            counts = [weighted, *(other.weighted for other in others)]
            if not any(counts):  # nobody is to be paid yet: all are
                counts = [pages, *(other.pages for other in others)]
            parts = virtual.split(counts)
            virtual.deposit(parts[0])
            out = {q: units for q, units in enumerate(parts) if q and counts[q]}
        virtual.settle(pages)
        return out

    def _meet_claims(self, virtual: VirtualPage) -> dict[int, int]:
        """Pay claims as far as the pot goes."""
        out: dict[int, int] = {}
        for q in sorted(self.claims):
            units = min(self.claims[q], virtual.pot)
            virtual.pot -= units
            self.claims[q] -= units
            if units and q == self.partition.number:
                virtual.deposit(units)
            elif units:
                out[q] = units
        self.claims = {q: units for q, units in self.claims.items() if units}
        return out

    def _send(self, target: int, items: tuple[Passing, ...], units: int) -> CashTransfer:
        spent, pages = self.ledger.spent, self.ledger.known_pages
        if self.partition.number == 0:
            others = [counts for q, counts in self.elsewhere.items() if q != target]
            spent += sum(counts.spent for counts in others)
            pages += sum(counts.pages for counts in others)
        self.sent[target] += 1
        focused = tuple(i for i, item in enumerate(items) if item.url in self._marks) if self._marks else ()
        number, weighted = self.sent[target], self.ledger.weighted
        transfer = CashTransfer(
            self.partition.number, target, number, items, units, spent, pages, weighted=weighted, focused=focused
        )
        value = encode(transfer)
        self.partition.put(rows.OUTBOX.key(target, transfer.seq), value)
        self._count(transfer, len(value))
        return transfer

    def _count(self, transfer: CashTransfer, size: int) -> None:
        """The transfer, of so many bytes, is on its way."""
        units = transfer.virtual + sum(item.cash for item in transfer.items)
        self.unacknowledged.setdefault(transfer.target, deque()).append((transfer.seq, units, size))
        self.in_flight += units
        self.bytes += size
