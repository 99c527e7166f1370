"""The reads of a bounded run, as the home partition grants them: never more than the bound, to whoever asks.

A partition tells what it has and what it wants (AskReads); the later word holds, so each may be lost, repeated or come
late. Who asks gets some at once: the less is left, the fewer, so that no partition sits on reads that others could
make. Where nothing is left its wish stays, until another partition gives some back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from xyro.plugins.bounded.bound_messages import AskReads

GRANT = 64
"""reads granted at once"""


@dataclass(slots=True)
class _Share:
    serial: int
    granted: int
    wants: int


class QuotaPool:
    """The shares of all partitions of one run."""

    def __init__(self, pages: int, shares: Sequence[Sequence[int]] = ()) -> None:
        """shares: as `dump` gave them."""
        self._pages = pages
        self._shares = {source: _Share(*values) for source, *values in shares}

    def dump(self) -> list[list[int]]:
        return [[source, *astuple(share)] for source, share in self._shares.items()]

    @property
    def granted(self) -> int:
        """Reads that partitions have, as they told or were told last."""
        return sum(share.granted for share in self._shares.values())

    def hear(self, ask: AskReads) -> None:
        """Take a partition's word; an older one than its last changes nothing."""
        share = self._shares.get(ask.source)
        if share is None or share.serial < ask.serial:
            self._shares[ask.source] = _Share(ask.serial, ask.granted, ask.wants)

    def grants(self) -> Iterator[tuple[int, int, int]]:
        """Yield (partition, serial number of its question, reads that it has now) of those that get some."""
        for source, share in self._shares.items():
            left = self._pages - self.granted
            if share.wants > 0 and left > 0:
                share.granted += min(share.wants, GRANT, max(1, left // (2 * max(len(self._shares), 4))))
                share.wants = 0
                yield source, share.serial, share.granted

    def answer(self, source: int) -> tuple[int, int]:
        """Return (serial number of its last question, reads that it has)."""
        share = self._shares[source]
        return share.serial, share.granted
