"""URL -> page: exact, at the price of a hash, at about 17 bytes of memory a known URL.

Three steps, each exact where the one before said nothing:

    recent URLs    a dictionary of the URLs met lately, in two generations: nine of ten links of real pages end here
    fingerprints   64-bit xxh3 of the URL (seeded per data directory) -> page, in the table; a hit is confirmed against
                   Map-Data, so two URLs of one fingerprint stay two pages
    clashes        an exact side table for the URLs whose fingerprint belongs to another page

The way back (page -> URL) is Map-Data; as in P1, the inverse is hashing.

The table works in batches of numpy vectors. It has 256 segments by the fingerprint's top 8 bits; a segment is a run of
buckets of 8 slots, one cache line of keys each. A fingerprint's home bucket comes from its next 32 bits by
multiply-shift, so a segment may have any number of buckets. A full bucket overflows into the next one of the segment
(round its end), hence:

    Invariant: a fingerprint lies at or after its home bucket, and every bucket from its home up to there is full.

so a look-up ends at the first bucket that is not full. Nothing is ever removed. A segment whose load would pass 0.8 is
rebuilt in place, 1.25 times larger; its sizes are the rungs of a ladder that is shifted by 1/256 of a step per segment,
so segments grow one after the other and the load of the whole stays at 0.72: 17.0 B a fingerprint, no doubling. Up
to FEW fingerprints lie in a dictionary instead: each of a node's partitions has a table, and most may have few pages.

One thread finds and inserts; `segments` may be read from another one (snapshots).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xxhash import xxh3_64_intdigest

from xyro.metadata.columns import CAPACITY, reserve
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage, page_range

ABSENT = LocalPage(-1)
GENERATION = 60_000
"""URLs in one generation of the dictionary: about 20 MB in all"""
MISSING = 0xFFFF_FFFF
"""what `find` answers for a fingerprint that is not there"""
SEGMENTS = 256
SLOTS = 8
LOAD = 0.8
"""fullest a segment gets; at 0.8 a look-up reads 1.3 buckets on average"""
GROWTH = 1.25
LEAST = 16
"""buckets of a segment to begin with: 20,000 pages and 0.4 MB until anything is rebuilt"""
SMALL = 10
"""up to here plain ints beat vectors (1.2 us a key against 13 us a round)"""
FEW = 4096
"""fingerprints for which there is a dictionary in place of the segments, whose first ones cost a page of memory each"""
CHUNK = 1 << 16
"""fingerprints inserted at a time: bounds the scratch memory of a bulk load"""

Fingerprints = NDArray[np.uint64]
Ids = NDArray[np.uint32]
Places = NDArray[np.int64]

_SLOT = np.arange(SLOTS, dtype=np.uint8)
_SEGMENT_SHIFT = np.uint64(56)
_BUCKET_SHIFT = np.uint64(24)
_LOW32 = np.uint64(0xFFFF_FFFF)
_BY_32 = np.uint64(32)


class UrlIndex:
    """All known URLs of a partition. `url_of` reads Map-Data, `clash_of` the side table: the page of a URL there, None
    where it has none. Both answer for what is not yet written, too.
    """

    def __init__(
        self,
        table: FingerprintTable,
        seed: int,
        url_of: Callable[[LocalPage], str],
        clash_of: Callable[[str], LocalPage | None],
    ) -> None:
        self.table = table
        self.seed = seed
        self._url_of = url_of
        self._clash_of = clash_of
        self._young: dict[str, LocalPage] = {}
        self._old: dict[str, LocalPage] = {}
        self._mask = (1 << table.bits) - 1

    def fingerprint(self, url: str) -> int:
        """Return the URL's fingerprint, of the table's width: 64 bits but in tests."""
        return xxh3_64_intdigest(url.encode(), self.seed) & self._mask

    def find(self, urls: Sequence[str]) -> list[LocalPage]:
        """Page of each URL, ABSENT where it was never met."""
        pages: list[LocalPage] = list(map(self._young.get, urls, repeat(ABSENT)))
        if ABSENT in pages:
            unsure = [i for i, page in enumerate(pages) if page == ABSENT]
            for i, page in zip(unsure, self._find_old([urls[i] for i in unsure]), strict=True):
                pages[i] = page
        return pages

    def find_one(self, url: str) -> LocalPage:
        return self.find((url,))[0]

    def _find_old(self, urls: Sequence[str]) -> list[LocalPage]:
        old = self._old.get
        pages = [old(url, ABSENT) for url in urls]
        unsure = [i for i, page in enumerate(pages) if page == ABSENT]
        if unsure:
            prints = np.array([self.fingerprint(urls[i]) for i in unsure], np.uint64)
            found = self.table.find(prints)
            for k in np.argsort(found, kind="stable").tolist():  # neighbours in Map-Data lie in one block
                if (page := int(found[k])) == MISSING:
                    break
                pages[unsure[k]] = self._confirm(urls[unsure[k]], LocalPage(page))
        self._remember(zip(urls, pages, strict=True))
        return pages

    def _confirm(self, url: str, page: LocalPage) -> LocalPage:
        """The page if it is this URL's; else what the side table says."""
        if self._url_of(page) == url:
            return page
        found = self._clash_of(url)
        return ABSENT if found is None else found

    def add(self, urls: Sequence[str], first: LocalPage) -> list[tuple[str, LocalPage]]:
        """New pages first, first+1 ... for distinct absent URLs. Returns the clashes, which the caller must store."""
        prints = np.array([self.fingerprint(url) for url in urls], np.uint64)
        present = self.table.find(prints) != MISSING
        pages = page_range(first, len(urls))
        if not present.any() and len(set(prints.tolist())) == len(urls):
            self.table.insert(prints, np.array(pages, np.uint32))
            self._remember(zip(urls, pages, strict=True))
            return []
        _, firsts = np.unique(prints, return_index=True)
        own = np.zeros(len(urls), np.bool_)
        own[firsts] = True
        own &= ~present
        self.table.insert(prints[own], (first + np.flatnonzero(own)).astype(np.uint32))
        self._remember(zip(urls, pages, strict=True))
        return [(urls[i], LocalPage(first + i)) for i in np.flatnonzero(~own).tolist()]

    def restore(self, urls: Sequence[str], first: LocalPage, clashing: bool) -> None:
        """Pages known on disk but not yet to the table (minted after the snapshot); stored clashes stay out of it.

        clashing: there are stored clashes, so each URL must be looked for among them.
        """
        chosen = [i for i, url in enumerate(urls) if not clashing or self._clash_of(url) is None]
        prints = np.array([self.fingerprint(urls[i]) for i in chosen], np.uint64)
        self.table.insert(prints, (first + np.array(chosen, np.int64)).astype(np.uint32))

    def _remember(self, pairs: Iterable[tuple[str, LocalPage]]) -> None:
        if len(self._young) >= GENERATION:
            self._old, self._young = self._young, {}
        self._young.update(pair for pair in pairs if pair[1] != ABSENT)


class FingerprintTable:
    """A set of (fingerprint, id), fingerprints distinct. `bits` < 64 narrows fingerprints to their low bits (tests).
    few: as many lie in a dictionary until there are more."""

    def __init__(self, bits: int = 64, capacity: int = CAPACITY, few: int = FEW) -> None:
        if not 1 <= bits <= 64:
            raise ValueError(f"bits {bits}: 1..64")
        self.bits = bits
        self.mask = (1 << bits) - 1
        self._shift = 64 - bits
        self._room = int(capacity / (SEGMENTS * SLOTS * LOAD) * GROWTH) + 64
        self._keys = reserve(np.uint64, SEGMENTS * self._room * SLOTS, scattered=True)
        self._ids = reserve(np.uint32, SEGMENTS * self._room * SLOTS, scattered=True)
        self._fill = reserve(np.uint8, SEGMENTS * self._room, scattered=True)
        self._rows = self._keys.reshape(-1, SLOTS)
        self._key_view: memoryview[int] = self._keys.data
        self._id_view: memoryview[int] = self._ids.data
        self._fill_view: memoryview[int] = self._fill.data
        self._sizes = [min(_rung(segment, 0), self._room) for segment in range(SEGMENTS)]
        self._buckets = np.array(self._sizes)
        self._counts = np.zeros(SEGMENTS, np.int64)
        self._limits = (self._buckets * SLOTS * LOAD).astype(np.int64)
        self._few: dict[int, int] | None = {} if few else None
        """all there are, in place of the segments"""
        self._most_few = few
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._counts.sum()) if self._few is None else len(self._few)

    @property
    def nbytes(self) -> int:
        """Bytes of all buckets in use."""
        return int(self._buckets.sum()) * (SLOTS * (self._keys.itemsize + self._ids.itemsize) + self._fill.itemsize)

    def find(self, fps: ArrayLike) -> Ids:
        """uint64[n] -> uint32[n]: the id of each fingerprint, or MISSING."""
        wanted = self._narrowed(fps)
        if (few := self._few) is not None:
            return np.array([few.get(fp, MISSING) for fp in wanted.tolist()], np.uint32)
        if len(wanted) <= SMALL:
            return np.array([self._find_one(fp) for fp in wanted.tolist()], np.uint32)
        found = np.full(len(wanted), MISSING, np.uint32)
        index, places = np.arange(len(wanted)), self._home(wanted)
        while len(index) > SMALL:
            full = self._look(wanted, index, places, found)
            index, wanted = index[full], wanted[full]
            places = self._next(wanted, places[full])
        for i, fp in zip(index.tolist(), wanted.tolist(), strict=True):
            found[i] = self._find_one(fp)
        return found

    def insert(self, fps: ArrayLike, ids: ArrayLike) -> None:
        """Add uint64[n], uint32[n]. The fingerprints (narrowed to `bits`) must be distinct and absent: not checked.

        From call to call they come in random order, as hashes do: sorted ones would crowd one end of a segment that is
        not yet large enough for all. Within a call any order is good.
        """
        keys, values = self._narrowed(fps), np.asarray(ids, np.uint32)
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} fingerprints, {len(values)} ids")
        if self._few is not None:
            with self._lock:
                if len(self._few) + len(keys) <= self._most_few:
                    self._few.update(zip(keys.tolist(), values.tolist(), strict=True))
                    return
                self._leave_few()
        with self._lock:
            self._make_room(keys)
        for start in range(0, len(keys), CHUNK):
            with self._lock:
                self._place(keys[start : start + CHUNK], values[start : start + CHUNK])

    def items(self) -> tuple[Fingerprints, Ids]:
        """All fingerprints and their ids, in the table's own order (a copy: 12 bytes each)."""
        parts = [(np.empty(0, np.uint64), np.empty(0, np.uint32)), *self.segments()]
        return np.concatenate([fps for fps, _ in parts]), np.concatenate([ids for _, ids in parts])

    def segments(self) -> Iterator[tuple[Fingerprints, Ids]]:
        """Yield fingerprints and ids, copied segment by segment; what was inserted before a segment's turn is in it.
        Empty ones are left out. A few fingerprints come together, in the order of their segments."""
        with self._lock:
            few = None if self._few is None else self._pairs_of_few(self._few)
        if few is not None:
            if len(few[0]):
                yield few
            return
        for segment in range(SEGMENTS):
            if self._counts[segment]:
                with self._lock:
                    copy = self._extract(segment)
                yield copy

    # Vectors

    def _narrowed(self, fps: ArrayLike) -> Fingerprints:
        keys = np.asarray(fps, np.uint64)
        return keys & np.uint64(self.mask) if self._shift else keys

    def _segment(self, keys: Fingerprints) -> Places:
        spread = keys << np.uint64(self._shift) if self._shift else keys
        return (spread >> _SEGMENT_SHIFT).view(np.int64)

    def _home(self, keys: Fingerprints) -> Places:
        """Each key's home bucket, counted over all segments."""
        spread = keys << np.uint64(self._shift) if self._shift else keys
        segment = (spread >> _SEGMENT_SHIFT).view(np.int64)
        within = (spread >> _BUCKET_SHIFT) & _LOW32
        within *= self._buckets.view(np.uint64).take(segment)
        within >>= _BY_32
        return segment * self._room + within.view(np.int64)

    def _next(self, keys: Fingerprints, places: Places) -> Places:
        """Return the bucket after each of `places`, round the end of each key's segment."""
        segment = self._segment(keys)
        start = segment * self._room
        after = places + 1
        return np.where(after == start + self._buckets.take(segment), start, after)

    def _look(self, wanted: Fingerprints, index: Places, places: Places, found: Ids) -> NDArray[np.intp]:
        """Look into one bucket a key; set found[index] where it is there; which keys must go on to the next bucket."""
        fill = self._fill.take(places)
        hit = np.flatnonzero(self._rows.take(places, axis=0) == wanted[:, None])
        row, slot = hit >> 3, hit & 7
        true = slot < fill.take(row)
        if not true.all():  # what lies beyond the fill is left over from before a rebuild
            row, slot = row[true], slot[true]
        found[index.take(row)] = self._ids.take(places.take(row) * SLOTS + slot)
        fill[row] = 0
        return np.flatnonzero(fill == SLOTS)

    def _make_room(self, keys: Fingerprints) -> None:
        counts = self._counts + np.bincount(self._segment(keys), minlength=SEGMENTS)
        for segment in np.flatnonzero(counts > self._limits).tolist():
            self._enlarge(segment, int(counts[segment]))
        self._counts = counts

    def _place(self, keys: Fingerprints, ids: Ids) -> None:
        """Put keys into the first bucket from their home on that is not full: bucket by bucket, all keys at once."""
        places = self._home(keys)
        while len(keys) > SMALL:
            order = np.argsort(places)
            places, keys, ids = places[order], keys[order], ids[order]
            slot = self._fill.take(places) + _rank(places)
            fits = slot < SLOTS
            where = places[fits] * SLOTS + slot[fits]
            self._keys[where], self._ids[where] = keys[fits], ids[fits]
            last = np.append(places[1:] != places[:-1], True)
            self._fill[places[last]] = np.minimum(slot[last] + 1, SLOTS)
            late = ~fits
            keys, ids = keys[late], ids[late]
            places = self._next(keys, places[late])
        for key, number in zip(keys.tolist(), ids.tolist(), strict=True):
            self._place_one(key, number)

    # The dictionary of few

    def _pairs_of_few(self, few: dict[int, int]) -> tuple[Fingerprints, Ids]:
        keys = np.fromiter(few, np.uint64, len(few))
        order = np.argsort(self._segment(keys), kind="stable")
        return keys[order], np.fromiter(few.values(), np.uint32, len(few))[order]

    def _leave_few(self) -> None:
        """There are more now: put them into their segments."""
        keys, ids = self._pairs_of_few(self._few or {})
        self._few = None
        self._make_room(keys)
        self._place(keys, ids)

    # Plain ints, for a few keys

    def _run(self, key: int) -> Iterable[int]:
        """The buckets of a key in the order of its look-up: from its home on, round the segment."""
        spread = key << self._shift
        segment = spread >> 56
        buckets = self._sizes[segment]
        start = segment * self._room
        home = start + ((spread >> 24 & 0xFFFF_FFFF) * buckets >> 32)
        return chain(range(home, start + buckets), range(start, home))

    def _find_one(self, key: int) -> int:
        for bucket in self._run(key):
            fill, slot = self._fill_view[bucket], bucket * SLOTS
            keys = self._key_view[slot : slot + fill].tolist()
            if key in keys:
                return self._id_view[slot + keys.index(key)]
            if fill < SLOTS:
                break
        return MISSING

    def _place_one(self, key: int, number: int) -> None:
        for bucket in self._run(key):
            fill = self._fill_view[bucket]
            if fill < SLOTS:
                self._key_view[bucket * SLOTS + fill] = key
                self._id_view[bucket * SLOTS + fill] = number
                self._fill_view[bucket] = fill + 1
                break

    # Segments

    def _extract(self, segment: int) -> tuple[Fingerprints, Ids]:
        buckets = slice(segment * self._room, segment * self._room + self._sizes[segment])
        used = self._fill[buckets, None] > _SLOT
        return self._rows[buckets][used], self._ids.reshape(-1, SLOTS)[buckets][used]

    def _enlarge(self, segment: int, count: int) -> None:
        """Rebuild a segment in place on the first rung that holds `count` keys."""
        keys, ids = self._extract(segment)
        buckets = min(_rung(segment, count), self._room)
        if count > buckets * SLOTS * LOAD:
            raise MachineError(f"the fingerprint table is full ({len(self):,}): create the crawl with more partitions")
        start = segment * self._room
        self._fill[start : start + self._sizes[segment]] = 0
        self._buckets[segment] = self._sizes[segment] = buckets
        self._limits[segment] = int(buckets * SLOTS * LOAD)
        self._place(keys, ids)


def _rung(segment: int, count: int) -> int:
    """Fewest buckets of this segment's ladder that hold `count` keys at LOAD."""
    buckets = LEAST * GROWTH ** (segment / SEGMENTS)
    while int(buckets) * SLOTS * LOAD < count:
        buckets *= GROWTH
    return int(buckets)


def _rank(places: Places) -> Places:
    """Position of each item among its equals, `places` sorted: 5 5 7 7 7 -> 0 1 0 1 2."""
    here = np.arange(len(places))
    first = np.append(True, places[1:] != places[:-1])
    return here - np.maximum.accumulate(np.where(first, here, 0))
