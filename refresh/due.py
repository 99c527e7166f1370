"""Due pages, foldered by the time unit of their next read (P1 6.6: "a file per time unit").

Filled by: every report (the page's next read) and recovery (the due column). Emptied by: the scheduler, which pops what
has begun. Bounded by: one entry per read; an entry whose page was read or re-dated since is stale, and the caller, who
has the due column, skips it. 4 to 4.5 bytes a page plus some 300 bytes a folder.
"""

from __future__ import annotations

import heapq
import struct
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.wire.ids import LocalPage

Ids = NDArray[np.uint32]


LAST = 2**32 - 1


class DueFolder:
    """Page ids of one time unit, first in first out. An array of C integers: no Python object per page."""

    __slots__ = ("_ids", "_start")

    def __init__(self) -> None:
        self._ids = array("I")
        self._start = 0

    def __len__(self) -> int:
        return len(self._ids) - self._start

    def put(self, page: LocalPage) -> None:
        self._ids.append(page)

    def extend(self, pages: Ids) -> None:
        self._ids.frombytes(pages.tobytes())

    def take(self, limit: int) -> Ids:
        """The oldest `limit` ids. The space before them is given back once it is half of the folder: O(1) a page."""
        end = min(self._start + limit, len(self._ids))
        ids = np.array(self._ids[self._start : end], dtype=np.uint32)
        self._start = end
        if 2 * end >= len(self._ids):
            del self._ids[:end]
            self._start = 0
        return ids


class DueFolders:
    """Pages by the time unit of their next read. Invariant: a heap entry and a folder, never empty, per unit in use."""

    def __init__(self, unit_seconds: int) -> None:
        if unit_seconds < 1:
            raise ValueError(f"DueFolders: a time unit is at least one second, got {unit_seconds}")
        self.unit_seconds = unit_seconds
        self._folders: dict[int, DueFolder] = {}
        self._units: list[int] = []
        self._entries = 0

    def __len__(self) -> int:
        """Entries, stale ones included."""
        return self._entries

    def put(self, page: LocalPage, due: int) -> None:
        """Add one page, due at `due` (seconds); both fit 32 bits."""
        if not (0 <= page <= LAST and 0 <= due <= LAST):
            raise ValueError(f"DueFolders.put: 32-bit numbers, got page {page}, due {due}")
        self._folder(due // self.unit_seconds).put(page)
        self._entries += 1

    def add(self, ids: Ids, due: Ids) -> None:
        """Add many: ids and due times (seconds), two uint32 arrays of one length; sorted by unit, then folder-wise."""
        if ids.shape != due.shape:
            raise ValueError(f"DueFolders.add: {ids.shape} ids, {due.shape} due times")
        if len(ids) == 0:
            return
        units = due // np.uint32(self.unit_seconds)
        order = np.argsort(units, kind="stable")
        units, sorted_ids = units[order], ids[order].astype(np.uint32, copy=False)
        starts = np.flatnonzero(np.diff(units, prepend=units[:1] + np.uint32(1)))
        ends = np.append(starts[1:], len(units))
        for unit, start, end in zip(units[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
            self._folder(unit).extend(sorted_ids[start:end])
        self._entries += len(ids)

    def pop(self, now: int, limit: int | None = None) -> Ids:
        """Take out, oldest unit first, every page whose time unit has begun at `now` (seconds), at most `limit`."""
        room = self._entries if limit is None else limit
        parts = list(self._take(now // self.unit_seconds, room))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)

    def next_due(self) -> int | None:
        """Return when the oldest unit in use begins (seconds); None where nothing waits."""
        return self._units[0] * self.unit_seconds if self._units else None

    def _take(self, last_unit: int, room: int) -> Iterator[Ids]:
        while room > 0 and self._units and self._units[0] <= last_unit:
            folder = self._folders[self._units[0]]
            pages = folder.take(room)
            room -= len(pages)
            self._entries -= len(pages)
            if not folder:
                del self._folders[heapq.heappop(self._units)]
            yield pages

    def _folder(self, unit: int) -> DueFolder:
        folder = self._folders.get(unit)
        if folder is None:
            folder = self._folders[unit] = DueFolder()
            heapq.heappush(self._units, unit)
        return folder


CHOSEN = 512
"""pages that are chosen at once, or a 64th of all that wait"""
CHOICE_LASTS = 60.0
"""seconds after which those that are not read yet are chosen anew"""
HASTE = 0
"""when a page was read whose change is known: it is to be read at once"""
LONGEST = 1e30
_ENTRY = struct.Struct("<IIf")
_ENTRIES = np.dtype([("page", "<u4"), ("read", "<u4"), ("interval", "<f4")])


class OverduePages:
    """Pages whose time has come, and for which there is no bandwidth, or no place, yet: first the one of whose interval
    most is over.

    So where more is due than can be read all intervals grow alike, as the policy has it of less bandwidth. By dates
    alone a page that is due every ten minutes would wait behind thousands that are due once a day, as long as they.
    Every second page is one whose change is known (HASTE), while there are such: a site map that names more than can be
    read leaves half to the others. Pages of one interval come as they were put. Emptied by `take`. 12 bytes a page;
    `full` says that no more should be put in.
    """

    __slots__ = ("_chosen", "_chosen_at", "_others", "_start")

    LIMIT = 1 << 20

    def __init__(self) -> None:
        self._chosen, self._others = b"", bytearray()
        """entries that were chosen, the first to be read first; all others, as they were put"""
        self._start = 0
        """those before it are taken"""
        self._chosen_at = 0.0

    def __len__(self) -> int:
        return (len(self._chosen) - self._start + len(self._others)) // _ENTRY.size

    @property
    def full(self) -> bool:
        return len(self) >= self.LIMIT

    def put(self, page: LocalPage, last_read: int, interval: float) -> None:
        """Add a page that was read then (seconds since 1970; or HASTE), and is to be read once in so many seconds."""
        self._others += _ENTRY.pack(page, min(max(last_read, 0), LAST), min(max(interval, 1.0), LONGEST))

    def first(self, now: float) -> tuple[LocalPage, int] | None:
        """The page to be read first, as of a minute ago at most, and when it was read; None where there is none."""
        if self._start == len(self._chosen) or not self._chosen_at <= now < self._chosen_at + CHOICE_LASTS:
            self._choose(now)
        if self._start == len(self._chosen):
            return None
        page, last_read, _ = _ENTRY.unpack_from(self._chosen, self._start)
        return LocalPage(page), last_read

    def take(self, now: float) -> LocalPage | None:
        """Take the first one out."""
        first = self.first(now)
        if first is None:
            return None
        self._start += _ENTRY.size
        return first[0]

    def _choose(self, now: float) -> None:
        waiting = self._chosen[self._start :] + self._others
        self._start, self._chosen_at = 0, now
        if len(waiting) <= _ENTRY.size:
            self._chosen, self._others = waiting, bytearray()
            return
        entries = np.frombuffer(waiting, _ENTRIES)
        over = (now - entries["read"]) / entries["interval"]
        number = max(CHOSEN, len(entries) // 64)
        hastened = entries["read"] == HASTE
        first = _greatest(over, np.flatnonzero(~hastened), number)
        if hastened.any():
            urgent = np.flatnonzero(hastened)[:number]
            turns = np.concatenate([np.arange(len(urgent)) - 0.5, np.arange(len(first))])
            first = np.concatenate([urgent, first])[turns.argsort(kind="stable")]
        rest = np.ones(len(entries), np.bool_)
        rest[first] = False
        self._chosen, self._others = entries[first].tobytes(), bytearray(entries[rest].tobytes())


def _greatest(over: NDArray[np.float64], places: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """So many of these places, those where most is over first; of equal ones in their order."""
    if len(places) > number:  # a million sorted would take a third of a second
        least = np.partition(over[places], -number)[-number]
        places = places[over[places] >= least]
    found: NDArray[np.int64] = places[np.lexsort((places, -over[places]))[:number]]
    return found
