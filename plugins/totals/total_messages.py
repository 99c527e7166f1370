"""The commands that carry sums of partitions (refresh/other_sums.py)."""

from __future__ import annotations

from typing import ClassVar

from xyro.refresh.other_sums import OtherSums
from xyro.refresh.population import ChanceWaits, Population
from xyro.wire import codec
from xyro.wire.commands import Command

_FIRST_TAG = codec.PLUGIN_TAGS + 96


class TellSums(Command, frozen=True):
    """Sums: those of the partition `source`, to the home partition; those of all others (-1), to one of them."""

    patient: ClassVar[bool] = True
    source: int
    cells: tuple[int, ...]
    """bins of the population, and the number of pages in each"""
    counts: tuple[int, ...]
    datings: float
    waits: float
    spread: float
    rate: float
    promised: float
    unread: int
    reads: int
    gamma: float
    weight: float
    importance: float = 0.0
    page_count: int = 0

    @classmethod
    def pack(cls, source: int, sums: OtherSums) -> TellSums:
        """Pack sums."""
        cells, counts = sums.population.dump()
        waits = sums.population.chance_waits
        rest = (sums.spread, sums.rate, sums.promised, sums.unread, sums.reads, sums.gamma, sums.weight)
        mass = (sums.importance, sums.page_count)
        return cls(0, source, tuple(cells), tuple(counts), waits.datings, waits.total, *rest, *mass)

    def sums(self) -> OtherSums:
        """Unpack them."""
        population = Population.load((self.cells, self.counts), ChanceWaits(self.datings, self.waits))
        rest = (self.spread, self.rate, self.promised, self.unread, self.reads, self.gamma, self.weight)
        return OtherSums(population, *rest, self.importance, self.page_count)


codec.register(_FIRST_TAG, TellSums)
