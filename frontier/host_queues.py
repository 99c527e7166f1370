"""HostQueues of pages before hosts that have no room: served first come, first served, as places come free.

Filled by revisits.py with pages that are due and found their host full, and by scheduler.py with pages that people
want of
a host that has very many orders out; emptied by them as orders of the host are answered, before what comes later. What
lies in a line is a hint: the columns decide whether the page is still to be read, so nothing of it is stored. 4 to 8
bytes a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.due import Folder


class HostQueues:
    """By host number. Invariant: no line is empty."""

    def __init__(self) -> None:
        self._lines: dict[int, Folder] = {}
        self._latest = 0.0

    def __len__(self) -> int:
        """Hosts with a line."""
        return len(self._lines)

    def __iter__(self) -> Iterator[int]:
        """Hosts with a line."""
        return iter(self._lines)

    def __contains__(self, host: int) -> bool:
        return host in self._lines

    def pages(self) -> int:
        """Entries, stale ones included."""
        return sum(map(len, self._lines.values()))

    def latest(self, now: float) -> float:
        """The latest time that was ever told here: a clock that is set back does not make a page less due, which would
        leave its line for good."""
        self._latest = max(self._latest, now)
        return self._latest

    def put(self, host: int, page: int) -> None:
        line = self._lines.get(host)
        if line is None:
            line = self._lines[host] = Folder()
        line.put(page)

    def take(
        self, leased: NDArray[np.int32], most: int, valid: Callable[[int], bool], claim: Callable[[int], bool]
    ) -> Iterator[int]:
        """Pages whose turn it is, host by host. Hosts that were served go behind those that were not: where places or
        bandwidth are too few for all, each gets its turn.

        leased: orders out, by host number, fewer than `most` where there is room. valid: is the page still to be read?
        Others leave the line. claim: may its host's place be taken now? Else the page stays the first of the line.
        """
        hosts = np.fromiter(self._lines, np.int64, len(self._lines))
        for host in hosts[leased[hosts] < most].tolist():
            line = self._lines[host]
            while line and (not (wanted := valid(line.first)) or claim(host)):
                (page,) = line.take(1).tolist()
                if wanted:
                    self._lines[host] = self._lines.pop(host)
                    yield page
            if not line:
                del self._lines[host]
