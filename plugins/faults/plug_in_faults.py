"""Stores what plug-ins failed at when a page was read last, in the commit group of that read; `xyro why` tells it.

a reader calls a plug-in, which fails   -> Answer.plug_in_faults (xyro/page_plug_ins.py)
the report is about to leave            -> `_answered` notes it
a turn settles the order                -> `_settled`: the row FAULTS and the flag FAULTY, until a better read
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xyro.metadata.rows import FAULTS, Row, pack, reader
from xyro.metadata.states import FAULTY
from xyro.wire.ids import LocalPage, PageId, owner_of

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.messages import PageReport

BACKLOG = 20_000
"""faults that wait for their order; then the oldest go"""


class FaultRow(Row, frozen=True):
    """The faults of a page, a phrase each: "no value by plug-in topic: not done after 1 s"."""

    phrases: tuple[str, ...]


unpack_faults = reader(FaultRow)


class PlugInFaults:
    """The faults of one partition, running or stopped."""

    def __init__(self, frontier: Frontier) -> None:
        self._partition = frontier.partition
        frontier.hooks.why.append(self._why)

    def _why(self, page: LocalPage, now: float) -> list[str]:
        row = self._partition.get(FAULTS.key(page)) if self._partition.flags[page] & FAULTY else None
        return [f"At its last read: {phrase}." for phrase in unpack_faults(row).phrases] if row is not None else []


class FaultAnswers:
    """Brings faults from answers into the store; in a running crawl."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        self._partition = frontier.partition
        self._waiting: dict[tuple[PageId, int], tuple[str, ...]] = {}
        self._services = services
        services.answered.append(self._answered)
        frontier.hooks.settled.append(self._settled)

    async def run(self) -> None:
        """Nothing runs beside the turns."""

    def _answered(self, report: PageReport, answer: Answer) -> None:
        if answer.plug_in_faults and owner_of(report.page) == self._partition.number:
            self._services.plug_in_faults += len(answer.plug_in_faults)
            self._waiting[report.page, report.epoch] = answer.plug_in_faults
            if len(self._waiting) > BACKLOG:
                del self._waiting[next(iter(self._waiting))]

    def _settled(self, settled: Sequence[Settled], now: float) -> None:
        partition = self._partition
        for order in settled:
            page, report = order.page, order.report
            phrases = self._waiting.pop((report.page, report.epoch), ())
            if phrases:
                partition.put(FAULTS.key(page), pack(FaultRow(phrases)))
                partition.set_flag(page, FAULTY)
            elif partition.flags[page] & FAULTY and report.status == 200 and not report.error:
                partition.delete(FAULTS.key(page))
                partition.clear_flag(page, FAULTY)
