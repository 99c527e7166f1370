"""A crawl on files of a folder, numbered anew from 0 for a ranking: pages of all partitions, and the links among them.

An entry of one partition that stands for a page of another (FOREIGN) is that page, found by its URL. Where its owner
has not heard of it yet (the transfer is on its way) it is a page nonetheless, as it would be with one partition. Pages
that the crawl treats as dangling (dead, out of scope ...) link nowhere, whatever was stored of them once.

RAM: with several partitions 16 bytes a page while they are matched; everything else is written as it comes and mapped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from xyro.metadata.room import reserve
from xyro.metadata.states import DANGLING, State
from xyro.opic.matrix import Allocate, Array, Row, id_type
from xyro.plugins.rank.rank_input import Piece
from xyro.wire.errors import MachineError
from xyro.wire.urls import host_of, partition_of

LINKS_AT_ONCE = 1 << 20
_NEW = -1


def on_files(folder: Path) -> Allocate:
    """Arrays mapped from files of that folder, which are made anew. OSError: no room, before anything is written (what
    writes to a map of which the disk is full is killed, SIGBUS, without a word)."""
    folder.mkdir(parents=True, exist_ok=True)

    def allocate(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        if 0 in shape:
            return np.zeros(shape, dtype)
        with (folder / name).open("wb") as file:
            reserve(file.fileno(), math.prod(shape) * np.dtype(dtype).itemsize)
        return np.memmap(folder / name, dtype, "r+", shape=shape)

    return allocate


class Column:
    """A growing array on a file: written at its end, then mapped."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype, self.size = path, np.dtype(dtype), 0
        self.file = path.open("wb")

    def put(self, values: npt.ArrayLike) -> None:
        found = np.asarray(values, self.dtype)
        self.size += found.size
        self.file.write(found.tobytes())

    def close(self) -> None:
        self.file.close()

    def mapped(self) -> Array:
        self.file.flush()
        return np.memmap(self.path, self.dtype, "r") if self.size else np.zeros(0, self.dtype)


class Texts:
    """URLs, one after the other, and where each ends."""

    def __init__(self, folder: Path, name: str) -> None:
        self.bytes, self.ends = Column(folder / name, np.uint8), Column(folder / f"{name}-ends", np.int64)

    def put(self, texts: Iterable[str]) -> None:
        encoded = [text.encode() for text in texts]
        self.ends.put(self.bytes.size + np.cumsum([len(text) for text in encoded], dtype=np.int64))
        self.bytes.put(np.frombuffer(b"".join(encoded), np.uint8))

    def close(self) -> None:
        self.bytes.close()
        self.ends.close()

    def reader(self) -> RankFileReader:
        return RankFileReader(self.bytes.mapped(), self.ends.mapped())


class RankFileReader:
    """Texts, mapped."""

    def __init__(self, data: Array, ends: Array) -> None:
        self.data, self.ends = data, ends

    def __len__(self) -> int:
        return int(self.ends.size)

    def __getitem__(self, index: int) -> str:
        low = int(self.ends[index - 1]) if index else 0
        return bytes(self.data[low : int(self.ends[index])]).decode()

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))


class RankFiles:
    """A crawl's pages and links in files. Pages 0..n-1: `state`, `kind` uint8[n], `importance` float64[n], mean 1 over
    those known, `stale` float32[n] (NaN: none), `urls`; `rows` gives the links. `numbers[p]`: the page of each entry of
    partition p (int32 or int64)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.head: dict[str, Any] = {}
        self.m = 0
        self.numbers: list[Array] = []
        self.own: list[slice] = []
        """of the pages: those of each partition"""

    @property
    def n(self) -> int:
        return int(self.state.size)

    def take(self, data: Iterable[Piece]) -> None:
        """Read all pieces. MachineError: they do not fit together, or the disk failed."""
        try:
            with ExitStack() as self._open:
                self._take(iter(data))
        except OSError as error:
            raise MachineError(f"{self.folder}: {error.strerror or error}: free or mend the disk") from error

    def _take(self, data: Iterator[Piece]) -> None:
        later = Column(self.folder / "links-later", np.uint8)  # those that come before the last node's pages, packed
        self._open.callback(later.close)
        pages, links = self._first_pages(next(data)[1]), None
        for name, *piece in data:
            if name == "head":
                pages.expect(piece[0]["sizes"])
            elif name == "pages":
                pages.put(*piece)
            elif pages.lacking:
                later.put(np.frombuffer(msgpack.packb(piece), np.uint8))
            else:
                links = links or self._settle(pages)
                links.put(*piece)
        links = links or self._settle(pages)
        later.close()
        with later.path.open("rb") as file:
            for piece in msgpack.Unpacker(file, max_buffer_size=1 << 30):
                links.put(*piece)
        self._end(links)

    def _first_pages(self, head: dict[str, Any]) -> _Pages:
        self.head = head
        pages = _Pages(self.folder, head["partitions"], head["mean"])
        self._open.callback(pages.close)
        pages.expect(head["sizes"])
        return pages

    def _settle(self, pages: _Pages) -> _Links:
        """All pages are there: number them."""
        self.numbers, self.own = pages.numbers(), pages.own
        self.state, self.kind, self.importance, self.stale = (column.mapped() for column in pages.columns)
        self.urls = pages.urls.reader()
        links = _Links(self.folder, self.numbers, self.state)
        self._open.callback(links.close)
        return links

    def _end(self, links: _Links) -> None:
        self.m = links.targets.size
        self._blocks = links.blocks()
        self._columns = [column.mapped() for column in (links.sources, links.counts, links.targets)]

    def rows(self) -> Iterator[Row]:
        """All links, some LINKS_AT_ONCE at a time (opic.matrix.Scan)."""
        sources, counts, targets = self._columns
        for rows, links in self._blocks:
            yield np.repeat(sources[rows], counts[rows]), targets[links], None


class _Pages:
    def __init__(self, folder: Path, partitions: int, mean: float) -> None:
        """mean: the importance of a mean page of all."""
        self.folder, self.partitions, self.mean = folder, partitions, mean
        self.sizes: dict[int, int] = {}
        """entries of each partition, in the order in which they come"""
        self.columns = [Column(folder / "state", np.uint8), Column(folder / "kind", np.uint8)]
        self.columns += [Column(folder / "importance", np.float64), Column(folder / "stale", np.float32)]
        self.urls, self.foreign = Texts(folder, "urls"), Texts(folder, "foreign")
        self.prints = Column(folder / "prints", np.uint64)
        self._numbers: dict[int, Column] = {}
        self.own = [slice(0, 0)] * partitions

    def expect(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Some partitions are to come, each with so many entries. MachineError: one came already."""
        for number, size in sizes:
            if number in self.sizes:
                raise MachineError(f"rank: partition {number} has moved from node to node meanwhile: ask again")
            self.sizes[number] = size
            self._numbers[number] = Column(self.folder / f"numbers-{number}", np.int64)

    @property
    def lacking(self) -> bool:
        """Entries are still to come."""
        came = len(self.sizes) == self.partitions
        return not came or any(self._numbers[number].size < size for number, size in self.sizes.items())

    def put(self, partition: int, state: bytes, kind: bytes, importance: bytes, stale: bytes, urls: list[str]) -> None:
        """Entries of a partition: pages of its own are numbered on, those of others wait for their owners."""
        states = np.frombuffer(state, np.uint8)
        own = states != State.FOREIGN
        first = self.columns[0].size
        start = self.own[partition].start if self._numbers[partition].size else first
        self.columns[0].put(states[own])
        self.columns[1].put(np.frombuffer(kind, np.uint8)[own])
        self.columns[2].put(np.frombuffer(importance, "<f8")[own] / self.mean)
        self.columns[3].put(np.frombuffer(stale, "<f4")[own])
        self._numbers[partition].put(np.where(own, first + np.cumsum(own) - 1, _NEW))
        mine = [url for url, here in zip(urls, own.tolist(), strict=True) if here]
        self.urls.put(mine)
        if self.partitions > 1:
            self.prints.put(np.array([xxh3_64_intdigest(url.encode()) for url in mine], np.uint64))
            self.foreign.put(url for url, here in zip(urls, own.tolist(), strict=True) if not here)
        self.own[partition] = slice(start, first + len(mine))

    def numbers(self) -> list[Array]:
        """The page of every entry, by partition."""
        for number, size in self.sizes.items():
            if size != (came := self._numbers[number].size):
                raise MachineError(f"rank: {came} of {size} pages came: ask again")
        found = {number: self._numbers[number].mapped() for number in self.sizes}
        settled = found if self.partitions == 1 else self._matched(found)
        return [settled[number] for number in range(self.partitions)]

    def _matched(self, numbers: dict[int, Array]) -> dict[int, Array]:
        matcher = _Matcher(self.prints.mapped(), self.urls.reader(), self.own)
        waiting, new = iter(self.foreign.reader()), dict[str, int]()
        settled, kind = {}, id_type(sum(self.sizes.values()))
        for partition, column in numbers.items():
            found = on_files(self.folder)(f"settled-{partition}", column.shape, kind)
            found[:] = column
            for entry in np.flatnonzero(column == _NEW).tolist():
                url = next(waiting)
                page = matcher.find(url)
                found[entry] = new.setdefault(url, self.columns[0].size + len(new)) if page is None else page
            settled[partition] = found
        self._append(list(new))
        return settled

    def _append(self, urls: list[str]) -> None:
        for column, value in zip(self.columns, (int(State.UNREAD), 0, 0.0, np.nan), strict=True):
            column.put(np.full(len(urls), value))
        self.urls.put(urls)

    def close(self) -> None:
        for column in (*self.columns, *self._numbers.values(), self.prints):
            column.close()
        self.urls.close()
        self.foreign.close()


class _Matcher:
    """The page of a URL, by fingerprint and then by letter."""

    def __init__(self, prints: Array, urls: RankFileReader, own: list[slice]) -> None:
        self.urls, self.own = urls, own
        self.orders = [np.argsort(prints[pages]) for pages in own]
        self.sorted = [prints[pages][order] for pages, order in zip(own, self.orders, strict=True)]

    def find(self, url: str) -> int | None:
        """None: its owner does not know it."""
        owner = partition_of(host_of(url), len(self.own))
        sorted_prints, wanted = self.sorted[owner], np.uint64(xxh3_64_intdigest(url.encode()))
        place = int(np.searchsorted(sorted_prints, wanted))
        while place < sorted_prints.size and sorted_prints[place] == wanted:
            number: int = self.own[owner].start + int(self.orders[owner][place])
            if self.urls[number] == url:
                return number
            place += 1
        return None


class _Links:
    def __init__(self, folder: Path, numbers: list[Array], state: Array) -> None:
        self.numbers, self.links = numbers, ~np.isin(state, [int(dangling) for dangling in DANGLING])
        kind = id_type(state.size)
        self.sources, self.targets = Column(folder / "link-sources", kind), Column(folder / "link-targets", kind)
        self.counts = Column(folder / "link-counts", np.int32)
        self._ends = [(0, 0)]

    def put(self, partition: int, sources: bytes, counts: bytes, children: bytes) -> None:
        numbers, lengths = self.numbers[partition], np.frombuffer(counts, "<u4").astype(np.int32)
        local, below = np.frombuffer(sources, "<u4"), np.frombuffer(children, "<u4")
        if max(local.max(initial=0), below.max(initial=0)) >= max(1, numbers.size):
            raise MachineError("damaged store: Link-Data names pages that are not there: restore a copy")
        pages = numbers[local]
        chosen = self.links[pages] & (lengths > 0)
        self.sources.put(pages[chosen])
        self.counts.put(lengths[chosen])
        self.targets.put(numbers[below[np.repeat(chosen, lengths)]])
        if self.targets.size - self._ends[-1][1] >= LINKS_AT_ONCE:
            self._ends.append((self.sources.size, self.targets.size))

    def blocks(self) -> list[tuple[slice, slice]]:
        """Rows, and the links that they have."""
        ends = [*self._ends, (self.sources.size, self.targets.size)]
        return [(slice(low[0], high[0]), slice(low[1], high[1])) for low, high in pairwise(ends)]

    def close(self) -> None:
        for column in (self.sources, self.counts, self.targets):
            column.close()
