"""Saves what is left of a damaged partition into a new one, for `xyro repair`.

LevelDB's own repair (on a copy) gives back every row whose block is whole. The new partition is made of these the way a
crawl makes one: URLs are minted in their order, so ids stay, then their rows and the hot columns are laid over. A URL
that is lost keeps its id by a stand-in that can never be read (`http://lost-0.invalid/ID`), for links and cash refer to
it. Rows that speak of what is not there, or of work that was under way, are left out; what follows from others (queues,
counts, sums) is not taken over but found again.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import numpy as np

from xyro.metadata import rows
from xyro.metadata.columns import Columns
from xyro.metadata.documents import Archive, Documents
from xyro.metadata.hosts import FOLDERS
from xyro.metadata.partition import Partition, Witness, create
from xyro.metadata.recovery import open_partition
from xyro.metadata.snapshot import load_snapshot
from xyro.metadata.states import CLASS_MASK, COLUMNS, LEASED, OPTIONAL, WANTED, State
from xyro.metadata.store import Store, StoreReader, mend
from xyro.wire.errors import XyroError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Priority
from xyro.wire.urls import authority, canonical, host_of, partition_of

CHUNK = 5_000
"""pages of one commit group"""
_HOLE = 100_000
"""most numbers in a row that one damage takes"""
_OWN_META = frozenset({"facts", "scalars", "documents", "journal from"})


@dataclass(slots=True)
class Loss:
    """Losses of a partition, as far as the rest tells."""

    commits: int = 0
    """last commit groups that the witness knows of and the store does not: pages first met there went unnoticed"""
    urls: int = 0
    """pages whose URL is lost"""
    reads: int = 0
    """pages that were read and of which that is lost: they are read again"""
    links: int = 0
    """pages that were read whose links are lost: they are stored again at the next read"""
    loads: int = 0
    """documents that waited for parts: they are read again"""
    documents: int = 0
    """documents of which a version is lost: all of them go, and the page is read again"""
    gaps: int = 0
    """damaged places in the store's log: rows of pages may be those of a read before"""
    hosts: int = 0
    """rows of hosts: delays, holds, trust"""
    columns: bool = False
    """cash, importance and dates are lost, all or those of the last commits"""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Salvage:
    """A partition that was saved. `state`: of its frontier, empty where it is lost."""

    loss: Loss
    state: dict[str, Any]


def salvage(old: Path, new: Path, facts: Mapping[str, int]) -> Salvage:
    """Make partition `new` of what is left of `old`, which stays as it is. `facts`: number, partitions, seed, where the
    old one does not tell. MachineError: there is no telling what it was."""
    work = new.with_name(f"{new.name}.old")
    shutil.copytree(old / "store", work, ignore=shutil.ignore_patterns("LOCK", "OWNER"))
    gaps = mend(work)
    store = Store.open(work)
    try:
        stored_facts = _unpacked(store.get(rows.META.key("facts")))
        create(new, facts["number"], facts["partitions"], stored_facts.get("seed", facts["seed"]), {})
        partition = open_partition(new)
        try:
            saved = _Salvager(old, store, partition).save()
            saved.loss.gaps = gaps
            return saved
        finally:
            partition.close()
    finally:
        store.close()
        shutil.rmtree(work, ignore_errors=True)


def _unpacked(packed: bytes | None) -> dict[str, Any]:
    found = msgpack.unpackb(packed) if packed else {}
    return found if isinstance(found, dict) else {}


class _Salvager:
    """Fills one new partition."""

    def __init__(self, old: Path, store: StoreReader, partition: Partition) -> None:
        self.old = old
        self.store = store
        self.partition = partition
        self.loss = Loss()
        self._count = 0
        self.scalars = _unpacked(store.get(rows.META.key("scalars")))
        self.columns = self._columns()

    def save(self) -> Salvage:
        self.loss.commits = max(Witness(self.old).last() - int(self.scalars.get("commit", 0)), 0)
        self._hosts()
        self._pages()
        self._rows()
        return Salvage(self.loss, self.scalars.get("node") or {})

    def _columns(self) -> Columns:
        """The hot columns as far as snapshots and journal are whole."""
        try:
            loaded = load_snapshot(self.old, COLUMNS, optional=OPTIONAL, report=self.loss.notes.append)
        except XyroError:
            loaded = None
        columns = loaded.columns if loaded else Columns(COLUMNS, optional=OPTIONAL)
        expected = loaded.seq + 1 if loaded else 1
        try:
            for key, record in self.store.scan(rows.JOURNAL.prefix, rows.JOURNAL.key(expected)):
                if rows.JOURNAL.split(key) != expected:
                    break
                columns.replay(record)
                expected += 1
        except XyroError as error:
            self.loss.notes.append(str(error))
        self.loss.columns = expected <= int(self.scalars.get("commit", 0))
        return columns

    def _hosts(self) -> None:
        """Hosts keep their numbers; a lost one gets a stand-in, which has no page."""
        self.partition.begin()
        for number, key, value in self._found(rows.HOST, rows.unpack_host):
            name = rows.unpack_host(value).name
            if number > 2 * len(self.partition.hosts) + _HOLE:
                continue  # no hole is so wide: its key is damaged
            while len(self.partition.hosts) < number:
                self.loss.hosts += 1
                self.partition.host(f"lost-host-{len(self.partition.hosts)}.invalid")
            if self.partition.host(name) == number:
                self.partition.put(key, value)
        self._commit()

    def _pages(self) -> None:
        for first, found in self._urls():
            self.partition.begin()
            urls = [
                rows.unpack_map(value) if value else self._stand_in(LocalPage(first + i))
                for i, value in enumerate(found)
            ]
            hosts = [self.partition.host(authority(url)) for url in urls]
            states, depths = self._states(first, urls, found), self._of_column("depth", first, len(urls))
            self.partition.mint(urls, hosts, states, depths.tolist())
            for number, value in enumerate(found, first):
                if value:
                    self.partition.put(rows.MAP.key(LocalPage(number)), value)
            self._lay_columns(first, len(urls))
            self._commit()
        self.loss.urls += max(self.columns.n - self.partition.columns.n, 0)

    def _urls(self) -> Iterator[tuple[int, list[bytes]]]:
        """Map-Data in chunks, each with its first page; what is lost is empty."""
        chunk, first, seen = list[bytes](), 0, set[bytes]()
        for number, _, value in self._found(rows.MAP, lambda value: canonical(rows.unpack_map(value))):
            if value[4:] in seen or number > max(self.columns.n, 2 * (first + len(chunk)) + _HOLE):
                continue
            seen.add(value[4:])
            while first + len(chunk) < number:
                chunk.append(b"")
                if len(chunk) == CHUNK:
                    yield first, chunk
                    first, chunk = first + CHUNK, []
            chunk.append(value)
            if len(chunk) == CHUNK:
                yield first, chunk
                first, chunk = first + CHUNK, []
        if chunk:
            yield first, chunk

    def _stand_in(self, page: LocalPage) -> str:
        self.loss.urls += 1
        facts = self.partition.facts
        own = int(self._of_column("state", page, 1)[0]) != State.FOREIGN
        names = (f"lost-{number}.invalid" for number in itertools.count())
        home = next(name for name in names if (partition_of(name, facts["partitions"]) == facts["number"]) is own)
        return f"http://{home}/{page}"

    def _states(self, first: int, urls: list[str], found: list[bytes]) -> list[int]:
        facts = self.partition.facts
        states = []
        for number, (url, value, state) in enumerate(
            zip(urls, found, self._of_column("state", first, len(urls)).tolist(), strict=True), first
        ):
            if not value:
                states.append(int(State.FOREIGN if state == State.FOREIGN else State.DEAD))
            elif partition_of(host_of(url), facts["partitions"]) != facts["number"]:
                states.append(int(State.FOREIGN))
            else:
                states.append(self._state(LocalPage(number), state))
        return states

    def _state(self, page: LocalPage, state: int) -> int:
        """The state in the column, unless it is not what Refresh-Data says."""
        stored = self.store.get(rows.REFRESH.key(page))
        row = rows.unpack_refresh(stored) if stored and _is_sound(stored, rows.unpack_refresh) else rows.RefreshRow()
        reads = row.reads
        if state == State.READ and not reads:
            self.loss.reads += 1
            return int(State.UNREAD)
        if state == State.READ and self.store.get(rows.LINK.key(page)) is None:
            self.loss.links += 1
        if state in (State.UNREAD, State.FOREIGN) or state > max(State):
            return int((State.ERROR if row.error else State.READ) if reads else State.UNREAD)
        return state

    def _of_column(self, name: str, first: int, count: int) -> Any:
        """Rows of a column; zero where it has none."""
        values = np.zeros(count, self.columns[name].dtype)
        there = self.columns[name][first : max(min(first + count, self.columns.n), first)]
        values[: len(there)] = there
        return values

    def _lay_columns(self, first: int, count: int) -> None:
        columns, pages = self.partition.columns, np.arange(first, first + count)
        own = columns["state"][first : first + count] != State.FOREIGN
        for name in ("cash", "flow", "clock", "birth", "due", "flags"):
            values = self._of_column(name, first, count)
            if name == "flags":
                values &= np.uint32(0xFFFF_FFFF & ~(LEASED | WANTED | (0 if self.scalars else CLASS_MASK)))
            columns[name][first : first + count] = np.where(own, values, 0) if name == "cash" else values
            columns.touch(name, pages)

    def _rows(self) -> None:
        """The rows of pages that are there, and what speaks of no page."""
        n = self.partition.columns.n
        self.partition.begin()
        for number, key, value in self._found(rows.REFRESH, rows.unpack_refresh):
            if number < n:
                self._put(key, value)
        for number, key, value in self._found(rows.PUBLISHED, _is_list):
            if number < n:
                self._put(key, value)
        for family, check in _AS_THEY_ARE:
            for number, key, value in self._found(family, check):
                if family not in (rows.STANDING, rows.COST) or self._stands(number, family):
                    self._put(key, value)
        for number, key, value in self._found(rows.LINK, rows.unpack_links):
            children = rows.unpack_links(value)
            there = children[children < n]
            if number < n and len(np.unique(there)) == len(there):
                self._put(key, rows.pack_links(there))
        for name, key, value in self._found(rows.META, msgpack.unpackb):
            if name not in _OWN_META:
                self._put(key, value)
        self._orders(n)
        self._documents(n)
        self._commit()

    def _orders(self, n: int) -> None:
        """Pages that are wanted stay so; loads that waited are wanted again."""
        for page, _, value in self._found(rows.WANTED, rows.unpack_wanted):
            if page < n and self._is_own(page):
                self._want(page, value)
        for page, _, _ in self._found(rows.STATUS, len):
            self.loss.loads += 1
            if page < n and self._is_own(page):
                self._want(page, rows.pack(rows.WantedRow(Priority.ORDERED)))

    def _documents(self, n: int) -> None:
        """Documents of which all versions are whole; those that are not are read again."""
        source, documents = Archive(self.store.get), Documents(self.partition)
        named = {page for page, _, _ in self._found(rows.DOCUMENT, len)}
        named |= {page for (page, _), _, _ in self._found(rows.VERSIONS, len)}
        for page in sorted(named):
            if page >= n or not self._is_own(page):
                self.loss.documents += 1
            elif not documents.copy(source, page):
                self.loss.documents += 1
                self._forget_validators(page)
                self._want(page, rows.pack(rows.WantedRow(Priority.ORDERED)))
            self._part()

    def _forget_validators(self, page: LocalPage) -> None:
        """Its next read brings the whole body."""
        row = self.partition.row(page)
        if row is not None:
            bare = msgspec.structs.replace(row, etag="", last_modified="", signature=b"")
            self.partition.put(rows.REFRESH.key(page), rows.pack(bare))

    def _want(self, page: LocalPage, row: bytes) -> None:
        self.partition.put(rows.WANTED.key(page), row)
        self.partition.set_flag(page, WANTED)

    def _is_own(self, page: LocalPage) -> bool:
        return self.partition.states[page] != State.FOREIGN

    def _stands(self, number: int, family: object) -> bool:
        """Tell whether there is the folder, or the host, that a row of standing, or of costs, is of."""
        kind, place = (1, number) if family is rows.COST else divmod(number, 1 << 32)
        return place < (len(self.partition.hosts) if kind == 1 else FOLDERS) and kind < 3

    def _found(self, family: Any, check: Callable[[bytes], object]) -> Iterator[tuple[Any, bytes, bytes]]:
        """Yield (what the key says, key, value) of the rows of a family that can be read. A record of the log that lost
        its middle passes LevelDB's checksums: what it leaves behind has no form."""
        for key, value in self.store.scan(family.prefix):
            try:
                number = family.split(key)
            except XyroError:
                continue
            if _is_sound(value, check):
                yield number, key, value

    def _put(self, key: bytes, value: bytes) -> None:
        self.partition.put(key, value)
        self._part()

    def _part(self) -> None:
        """A commit group of many rows is ended, and the next begun."""
        self._count += 1
        if self._count % CHUNK == 0:
            self._commit()
            self.partition.begin()

    def _commit(self) -> None:
        commit = self.partition.seal({})
        self.partition.write(commit)
        self.partition.written(commit)


def _is_sound(value: bytes, check: Callable[[bytes], object]) -> bool:
    """Tell whether `check` takes the value."""
    try:
        check(value)
    except (XyroError, ValueError, TypeError, msgpack.UnpackException):
        return False
    return True


def _is_list(value: bytes) -> None:
    """ValueError: it is no row."""
    if not isinstance(msgpack.unpackb(value), list):
        raise ValueError("no row")


def _is_numbers(value: bytes) -> None:
    """ValueError: it is no table of whole numbers."""
    if not value or len(value) % 8:
        raise ValueError("no numbers")


_AS_THEY_ARE: tuple[tuple[Any, Callable[[bytes], object]], ...] = (
    (rows.SUBSCRIPTION, _is_list),
    (rows.KEYED, _is_list),
    (rows.TOPIC, _is_list),
    (rows.CHANGE, _is_list),
    (rows.SINK, _is_list),
    (rows.STANDING, _is_numbers),
    (rows.COST, _is_numbers),
    (rows.BIRTHS, _is_numbers),
)
"""families that speak of no page by number (a change has its URL, too), and what tells that a row is whole"""
