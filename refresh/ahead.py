"""Refreshing as fast as the web allows: pages in the order of P1's law, on a clock that jumps to the next one due.

A bounded `crawl --refresh` reads without a pause until its bound. Real intervals are then far under a second, and a
page read early would be due again early, so heavy pages would crowd out the others. Here time is virtual: the mean
interval is MEAN virtual seconds, t_i = MEAN S / (n w_i), and popping moves the clock to what it pops. Every page gets
its share of the reads, in proportion to its weight w = sqrt(r lambda), whatever the speed (P1 eq. 22).

Where a host has unread pages as well, its own part of the reads is kept for pages that it shows already (`pop_of`): the
host's clock then gains a lead over the common one, so that its pages keep their proportions. The lead is not paid back:
a host that stood still until all others had caught up would leave its pages unread for a large part of the crawl.
"""

from __future__ import annotations

import heapq

from xyro.wire.ids import LocalPage

MEAN = 4096
"""virtual seconds of the mean interval: a share is exact to a part in so many"""
LONGEST = 64 * MEAN
"""a page of little weight, or none, still gets its turn"""
_BITS = 32
_LOW = (1 << _BITS) - 1


class Ahead:
    """Invariant: at most one valid entry a page; `put` again replaces it, and what was replaced is skipped.

    Entries are integers, turn << 32 | page in the heap of a host, by its own clock; turn << 32 | host in the heap of
    all hosts, by the common one.
    """

    def __init__(self) -> None:
        self.clock = 0
        """the common one"""
        self._due: dict[LocalPage, int] = {}
        self._lines: dict[int, list[int]] = {}
        """by host; none is empty"""
        self._heads: list[int] = []
        self._first: dict[int, int] = {}
        """the valid entry of each host in `_heads`: the turn of its first page, or an earlier one"""
        self._leads: dict[int, int] = {}
        """by host: how far its clock is ahead of the common one"""

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, host: int) -> bool:
        return host in self._lines

    def put(self, page: LocalPage, weight: float, mean_weight: float, host: int = 0) -> None:
        """The page was read; mean_weight = S / n over the pages that are refreshed."""
        wait = MEAN * mean_weight / weight if weight > 0.0 else LONGEST
        self.put_after(page, int(min(max(wait, 1.0), LONGEST)), host)

    def put_after(self, page: LocalPage, wait: int, host: int = 0) -> None:
        """The page's turn comes `wait` virtual seconds from now."""
        due = self._due[page] = self._now(host) + wait
        line = self._lines.setdefault(host, [])
        heapq.heappush(line, due << _BITS | page)
        self._file(host, line)

    def pop(self, limit: int) -> list[LocalPage]:
        """The next pages, at most `limit`; the clock moves on to the last one's turn."""
        found: list[LocalPage] = []
        while self._heads and len(found) < limit:
            head = self._heads[0]
            host = head & _LOW
            if self._first.get(host) != head:
                heapq.heappop(self._heads)
                continue
            entry = heapq.heappop(self._lines[host])
            if self._take(entry, found):
                self.clock = max(self.clock, (entry >> _BITS) - self._leads.get(host, 0))
            self._file(host, self._lines[host])
        return found

    def pop_of(self, host: int, limit: int) -> list[LocalPage]:
        """The next pages of a host, at most `limit`; its clock moves on."""
        found: list[LocalPage] = []
        line = self._lines.get(host)
        if line is None:
            return found
        while line and len(found) < limit:
            entry = heapq.heappop(line)
            if self._take(entry, found):
                self._leads[host] = max(entry >> _BITS, self._now(host)) - self.clock
        self._file(host, line)
        return found

    def _now(self, host: int) -> int:
        """The host's clock."""
        return self.clock + self._leads.get(host, 0)

    def _take(self, entry: int, found: list[LocalPage]) -> bool:
        """Take the page of an entry that is valid."""
        page = LocalPage(entry & _LOW)
        if self._due.get(page) != entry >> _BITS:
            return False
        del self._due[page]
        found.append(page)
        return True

    def _file(self, host: int, line: list[int]) -> None:
        """The host's place among all hosts follows the first page of its line."""
        if not line:
            del self._lines[host]
            self._first.pop(host, None)
            return
        head = (line[0] >> _BITS) - self._leads.get(host, 0) << _BITS | host
        if self._first.get(host) != head:
            self._first[host] = head
            heapq.heappush(self._heads, head)
