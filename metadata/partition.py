"""The Metadata Manager (P1 section 4): a partition's pages, on disk and in memory, behind a write batch a commit group.

    begin()                 a new commit group
    mint, put, mark ...     its effects: visible to this process at once
    seal(scalars)           -> Commit: one write batch with every effect, after-images of the hot columns included
    write(commit)           synced; may run in a writer thread, one commit after the other
    written(commit)         back on the loop: from here on the effects may leave the process

Holds: what `get` returns is what the sealed and unsealed groups before it put, written or not; a directory opened after
a crash is as it was after the last synced batch: newest snapshot, then the journal's after-images over it.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from xyro.metadata import rows
from xyro.metadata.columns import Columns
from xyro.metadata.directories import create_directory
from xyro.metadata.hosts import QUERIES, HostCosts, Hosts, Introductions, Standing
from xyro.metadata.rows import RefreshRow
from xyro.metadata.snapshot import SnapshotStep, oldest_snapshot, write_snapshot
from xyro.metadata.states import FOLDER, LEASED, State
from xyro.metadata.store import Batch, KeyValue, Store
from xyro.metadata.url_index import FingerprintTable, UrlIndex
from xyro.metadata.version import VERSION
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage, PageId, first_id, join, page_range
from xyro.wire.urls import folder_of, host_of, partition_of

WITNESS = ".witness"
"""file of a partition's directory; hidden, so no backup takes it for one that never changes"""
_SLOT = struct.Struct(">QQ")
JOURNAL_FROM = rows.META.key("journal from")
"""number of the oldest journal record that is stored, since records were last deleted"""
COMPACT_FROM = 1 << 20
"""bytes of deleted journal that are worth a compaction: half a table file"""
_UNREAD = int(State.UNREAD)
_UNLEASED = ~LEASED & 0xFFFF_FFFF
Ids = NDArray[np.int64]


class Witness:
    """The number of the last commit group, beside the store: tells when the store has lost its end.

    Written after the group is synced, and not synced itself: it costs no time, is there after any death of the process,
    and never says more than what is on disk. A power cut may take its last seconds; then it says less. Two slots in
    turn, each with its checksum, so that a torn write leaves the other one.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / WITNESS
        self._file = -1

    def last(self) -> int:
        """The number of a commit group that was synced, 0 where nothing says so."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise MachineError(f"{self.path}: {error.strerror}: mend the disk or its rights") from error
        slots = (data[start : start + _SLOT.size] for start in range(0, len(data), _SLOT.size))
        found = [_SLOT.unpack(slot) for slot in slots if len(slot) == _SLOT.size]
        return max((number for number, digest in found if digest == _digest(number)), default=0)

    def note(self, number: int) -> None:
        """Commit group `number` is on disk."""
        try:
            if self._file < 0:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, _SLOT.pack(number, _digest(number)), number % 2 * _SLOT.size)
        except OSError as error:
            raise MachineError(f"{self.path}: {error.strerror}: free or mend the disk, then start again") from error

    def close(self) -> None:
        """Closing twice is fine."""
        handle, self._file = self._file, -1
        if handle >= 0:
            os.close(handle)


def _digest(number: int) -> int:
    return xxh3_64_intdigest(number.to_bytes(8, "big"))


class Commit(Struct):
    """One commit group on its way to disk."""

    number: int
    batch: Batch
    changes: dict[bytes, bytes | None]
    journal_bytes: int
    durable: bool = False


class _Group(Struct):
    """The effects gathered since `begin`."""

    batch: Batch
    changes: dict[bytes, bytes | None] = field(default_factory=dict)
    marked: dict[str, list[int]] = field(default_factory=dict)
    """column -> rows changed one at a time"""


class Recovery(Struct, frozen=True):
    """The hot state of a partition as of its last commit, which it begins with (recovery.py)."""

    columns: Columns
    table: FingerprintTable
    unindexed: Iterator[tuple[LocalPage, list[str]]]
    """URLs whose fingerprints the table lacks, in chunks, each with its first page"""
    scalars: dict[str, Any]
    """of the last commit group"""
    commit: int
    """number of the last commit group; 0: there was none"""
    journal_from: int
    """the oldest journal record still stored"""
    records: int
    """journal records that were replayed"""
    journal_bytes: int
    """their size"""


def create(directory: Path, number: int, partitions: int, seed: int, facts: Mapping[str, Any]) -> None:
    """A new partition: exists only once it is complete. `facts`: what the crawl's roof wants to find again."""
    create_directory(directory, lambda path: fill(path, number, partitions, seed, facts))


def fill(path: Path, number: int, partitions: int, seed: int, facts: Mapping[str, Any]) -> None:
    """Put an empty partition into a directory that somebody makes: as `create`, but what is here is not synced yet."""
    path.mkdir(0o700, exist_ok=True)
    store = Store.open(path / "store", create=True)
    batch = store.batch()
    settled = {"format": VERSION, "number": number, "partitions": partitions, "seed": seed, **facts}
    batch.put(rows.META.key("facts"), msgpack.packb(settled))
    store.write(batch)
    store.close()


def new_seed() -> int:
    """A fresh fingerprint seed: nobody outside can prepare URLs that clash."""
    return secrets.randbits(63)


class Partition:
    """One LevelDB directory, one set of hot columns, one writer."""

    def __init__(
        self,
        directory: Path,
        store: KeyValue,
        facts: Mapping[str, Any],
        recovery: Recovery,
        witness: Witness | None = None,
    ) -> None:
        """`facts`: as `create` stored them. `recovery`: the hot state of `directory` and `store` (recovery.py).
        `witness`: None where nothing is written, or no disk is."""
        self.directory = directory
        self.store = store
        self._witness = witness
        self.facts = dict(facts)
        self.number: int = facts["number"]
        self.base = first_id(self.number)
        """the id of page 0: what to add to an array of row numbers"""
        self._group: _Group | None = None
        self._flying: list[Commit] = []
        self.scalars = recovery.scalars
        self.recovered_records = recovery.records
        self.journal_bytes = recovery.journal_bytes
        self.journal_from = recovery.journal_from
        """the oldest journal record still stored"""
        self._trimmed = 0
        """bytes of journal records that were deleted since the last compaction"""
        """journal records were deleted"""
        self._next = recovery.commit + 1
        self.columns = columns = recovery.columns
        self.states: memoryview[int] = columns["state"].data
        self.flags: memoryview[int] = columns["flags"].data
        self.hosts_of: memoryview[int] = columns["host"].data
        self.table = recovery.table
        self.url_index = UrlIndex(recovery.table, facts["seed"], self.url, self._clash_of)
        clashing = next(iter(store.scan(rows.CLASH.prefix)), None) is not None
        for first, urls in recovery.unindexed:
            self.url_index.restore(urls, first, clashing)
        self.hosts = Hosts()
        self._owners, self._owned = np.zeros(0, np.int32), 0
        self.standing = Standing(self.hosts, columns)
        self.introductions = Introductions()
        self.introductions.load(store.scan(rows.DOMAIN.prefix))
        for key, value in store.scan(rows.HOST.prefix):
            self.hosts.load(rows.HOST.split(key), rows.unpack_host(value))
        self.costs = HostCosts()
        self.costs.load(store.scan(rows.COST.prefix), len(self.hosts))
        if FOLDER not in columns:
            self._begin_folders()
        self._count_hosts()

    def _begin_folders(self) -> None:
        """A new directory, or one of an older Xyro: there a page's host stands for its folder."""
        self.columns.add(FOLDER, np.uint16)
        n = self.columns.n
        if n:
            self.columns[FOLDER][:n] = self.columns["host"][:n] * np.uint32(0x9E3779B1) >> np.uint32(16)
            self.columns.touch(FOLDER, np.arange(n))

    def folder_slot(self, url: str) -> int:
        """The slot of a URL's folder, 0 .. FOLDERS - 1; from QUERIES on those of paths with a query."""
        folder = folder_of(url)
        slot = xxh3_64_intdigest(folder.encode(), self.facts["seed"]) % QUERIES
        return slot + QUERIES if folder.endswith("?") else slot

    def _count_hosts(self) -> None:
        """Orders of the run before are void: their leases carry an older epoch."""
        n = self.columns.n
        self.columns["flags"][:n] &= np.uint32(_UNLEASED)
        unread = self.columns["state"][:n] == _UNREAD
        waiting = np.bincount(self.columns["host"][:n][unread], minlength=len(self.hosts.waiting))
        self.hosts.waiting = waiting.astype(np.int32)

    def owners(self) -> NDArray[np.int32]:
        """Return the partition of each known host, by its number; not to be written to."""
        names, first = self.hosts.names, self._owned
        if (count := len(names)) > first:
            if count > len(self._owners):
                self._owners = np.concatenate([self._owners, np.zeros(count, np.int32)])
            partitions = self.facts["partitions"]
            owners = [partition_of(host_of(f"http://{name}/"), partitions) for name in names[first:]]
            self._owners[first:count] = owners
            self._owned = count
        return self._owners[:count]

    def id_of(self, page: LocalPage) -> PageId:
        """The id of a page of this partition."""
        return join(self.number, page)

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """The newest value, written or not."""
        if self._group is not None and key in self._group.changes:
            return self._group.changes[key]
        for commit in reversed(self._flying):
            if key in commit.changes:
                return commit.changes[key]
        return self.store.get(key)

    def url(self, page: LocalPage) -> str:
        """Map-Data of a local number. MachineError where it is missing."""
        found = self.get(rows.MAP.key(page))
        if found is None:
            raise MachineError(f"{self.directory}: Map-Data has no page {page}: run `xyro audit`, restore a copy")
        return rows.unpack_map(found)

    def row(self, page: LocalPage) -> RefreshRow | None:
        """Refresh-Data of a local number, None for a page no order of which was ever settled."""
        found = self.get(rows.REFRESH.key(page))
        return None if found is None else rows.unpack_refresh(found)

    def children(self, page: LocalPage) -> NDArray[np.uint32] | None:
        """Link-Data: local numbers of the page's children, None where none are stored."""
        found = self.get(rows.LINK.key(page))
        return None if found is None else rows.unpack_links(found)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Scan the rows on disk, from the key `start` on (one view of it; groups on their way are not in it)."""
        return self.store.scan(prefix, start)

    @property
    def next_number(self) -> int:
        """Number that the next sealed group will have."""
        return self._next

    def _clash_of(self, url: str) -> LocalPage | None:
        """The page of a URL whose fingerprint belongs to another one."""
        found = self.get(rows.CLASH.key(url))
        return None if found is None else LocalPage(int.from_bytes(found, "big"))

    # -- one commit group ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self._group is not None:
            raise MachineError("Partition.begin: a commit group is open (a bug: groups do not nest)")
        self._group = _Group(self.store.batch())

    def put(self, key: bytes, value: bytes) -> None:
        assert self._group is not None, "put belongs into a commit group"
        self._group.batch.put(key, value)
        self._group.changes[key] = value

    def delete(self, key: bytes) -> None:
        assert self._group is not None, "delete belongs into a commit group"
        self._group.batch.delete(key)
        self._group.changes[key] = None

    def host(self, name: str) -> int:
        """The host's number; a new one is stored with this group."""
        number = self.hosts.numbers.get(name)
        if number is None:
            number = self.hosts.number(name)
            self.put(*self.hosts.stored(number))
        return number

    def mint(
        self, urls: Sequence[str], hosts: Sequence[int], states: Sequence[int], depths: Iterable[int], seen: int = 0
    ) -> LocalPage:
        """New pages for distinct unknown URLs, met at `seen` (seconds since 1970); returns the first local number.

        The columns that do not follow from these are zero.
        """
        first = LocalPage(self.columns.grow(len(urls)))
        end = first + len(urls)
        put, key_of = self.put, rows.MAP.key
        for page, url in zip(page_range(first, len(urls)), urls, strict=True):
            put(key_of(page), rows.pack_map(url, seen))
        for url, page in self.url_index.add(urls, first):
            self.put(rows.CLASH.key(url), page.to_bytes(4, "big"))
        host = np.array(hosts, np.uint32)
        state = np.array(states, np.uint8)
        self.columns["host"][first:end] = host
        self.columns["state"][first:end] = state
        self.columns[FOLDER][first:end] = np.fromiter(map(self.folder_slot, urls), np.uint16, len(urls))
        self.columns["depth"][first:end] = np.minimum(np.fromiter(depths, np.int64, len(urls)), 255)
        np.add.at(self.hosts.waiting, host[state == _UNREAD], 1)
        return first

    def set_state(self, page: LocalPage, state: int) -> None:
        """Move a page to another state; keeps the host's counts of unread pages."""
        old = self.states[page]
        if old == state:
            return
        if old == _UNREAD or state == _UNREAD:
            counts = self.hosts.exploring if self.flags[page] & LEASED else self.hosts.waiting
            counts[self.hosts_of[page]] += 1 if state == _UNREAD else -1
        self.states[page] = state
        self._mark("state", page)

    def set_flag(self, page: LocalPage, flag: int) -> None:
        """Set one of the durable flags (metadata/states.py) of a page."""
        self.flags[page] |= flag
        self._mark("flags", page)

    def clear_flag(self, page: LocalPage, flag: int) -> None:
        self.flags[page] &= ~flag & 0xFFFF_FFFF
        self._mark("flags", page)

    def _mark(self, column: str, page: LocalPage) -> None:
        """A row changed: as `Columns.touch`, cheap for single rows."""
        assert self._group is not None, "columns change within a commit group"
        self._group.marked.setdefault(column, []).append(page)

    def lease(self, page: LocalPage) -> None:
        """An order for the page goes out: it waits no more."""
        host = self.hosts_of[page]
        self.flags[page] |= LEASED
        self.hosts.leased[host] += 1
        if self.states[page] == _UNREAD:
            self.hosts.waiting[host] -= 1
            self.hosts.exploring[host] += 1
            self.standing.lease(page)

    def unlease(self, page: LocalPage) -> None:
        """The order was answered, or taken back."""
        host = self.hosts_of[page]
        self.flags[page] &= _UNLEASED
        self.hosts.leased[host] -= 1
        self.standing.unlease(page)
        if self.states[page] == _UNREAD:
            self.hosts.waiting[host] += 1
            self.hosts.exploring[host] -= 1

    def seal(self, scalars: Mapping[str, Any]) -> Commit:
        """Close the group: its batch holds every effect, with the journal record of the hot columns."""
        group, self._group = self._group, None
        assert group is not None, "seal follows begin"
        for name, marked in group.marked.items():
            self.columns.touch(name, marked)
        record = self.columns.after_images()
        number, self._next = self._next, self._next + 1
        self.scalars = {**scalars, "commit": number}
        group.batch.put(rows.JOURNAL.key(number), record)
        group.batch.put(rows.META.key("scalars"), msgpack.packb(self.scalars))
        self.journal_bytes += len(record)
        commit = Commit(number, group.batch, group.changes, len(record))
        self._flying.append(commit)
        return commit

    def write(self, commit: Commit) -> None:
        """Make the group durable (synced). The only part that may run in another thread, one commit at a time."""
        self.store.write(commit.batch)
        if self._witness is not None:
            self._witness.note(commit.number)

    def written(self, commit: Commit) -> None:
        """The group is on disk: what it put can be read from there."""
        commit.durable = True
        while self._flying and self._flying[0].durable:
            self._flying.pop(0)

    # -- snapshots -----------------------------------------------------------------------------------------------

    def snapshot(self) -> Iterator[SnapshotStep]:
        """Write a snapshot, a chunk a step, while groups go on; ends by trimming the journal that no snapshot needs.

        Begin and resume it between groups. Later records repair what changes while it is copied, so it may become valid
        only when all groups sealed so far are on disk.
        """
        since, length = self._next - 1, self.journal_bytes
        for step in write_snapshot(self.directory, since, self.columns, self.table):
            yield step
            if step is SnapshotStep.COPIED:
                last = self._next - 1
                while any(commit.number <= last for commit in self._flying):
                    yield step
        self.journal_bytes -= length  # records sealed meanwhile are yet to be replayed
        self._trimmed += length
        self._trim(oldest_snapshot(self.directory) or 0)

    def _trim(self, oldest: int) -> None:
        if oldest >= self.journal_from:
            batch = self.store.batch()
            for number in range(self.journal_from, oldest + 1):
                batch.delete(rows.JOURNAL.key(number))
            batch.put(JOURNAL_FROM, msgpack.packb(oldest + 1))
            self.store.write(batch)
            self.journal_from = oldest + 1

    def close(self) -> None:
        """Every group must have been written. What is left of much deleted journal goes: scans would pass it."""
        try:
            if self._trimmed >= COMPACT_FROM:
                self._trimmed = 0
                self.store.compact(rows.JOURNAL.key(0), rows.JOURNAL.key(self.journal_from))
        finally:
            self.store.close()
            if self._witness is not None:
                self._witness.close()
