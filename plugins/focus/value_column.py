"""The values that a plug-in gives to pages ([opic] values): less of what such a page spends goes along its links.

    a reader asks the plug-in        -> Answer.value (xyro/page_plug_ins.py)
    the report is about to leave     -> `_answered` notes the value
    a turn applies the report        -> `_visited`: column `voice`, before the page's links get their cash
    the ledger spends                -> the rest goes to the virtual page (frontier/ledger.py)

A page of which no value is known passes on all. The column is kept as long as the setting names a plug-in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xyro.metadata.states import VOICE
from xyro.opic.cash import LINK
from xyro.wire.ids import LocalPage, PageId, owner_of

if TYPE_CHECKING:
    from xyro.answer import Answer
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services
    from xyro.wire.messages import LoadReport, PageReport

BACKLOG = 20_000
"""values that wait for their order; then the oldest go"""


class ValueColumn:
    """The column of one partition, running or stopped, and what it says to people."""

    def __init__(self, frontier: Frontier, name: str) -> None:
        self._columns, self._name = frontier.columns, name
        if not name:
            if VOICE in self._columns:
                self._columns.drop(VOICE)
            return
        self._columns.add(VOICE, np.uint16)
        frontier.hooks.why.append(self._why)

    def _why(self, page: LocalPage, now: float) -> list[str]:
        voice = int(self._columns[VOICE][page])
        return (
            [f"The plug-in {self._name} lets it pass on {(voice - 1) / LINK:.0%} of its importance."] if voice else []
        )


class ValueAnswers:
    """Brings values from answers into the column; in a running crawl."""

    def __init__(self, frontier: Frontier, services: Services) -> None:
        self._columns, self._number = frontier.columns, frontier.partition.number
        self._waiting: dict[tuple[PageId, int], float] = {}
        services.answered.append(self._answered)
        frontier.hooks.visited.append(self._visited)

    async def run(self) -> None:
        """Nothing runs beside the turns."""

    def _answered(self, report: PageReport, answer: Answer) -> None:
        if answer.status == 200 and not report.error and owner_of(report.page) == self._number:
            self._waiting[report.page, report.epoch] = answer.value
            if len(self._waiting) > BACKLOG:
                del self._waiting[next(iter(self._waiting))]

    def _visited(self, settled: Sequence[Settled], _: Iterable[LoadReport]) -> None:
        for order in settled:
            value = self._waiting.pop((order.report.page, order.report.epoch), None)
            if value is not None:
                self._columns[VOICE][order.page] = 0 if value >= 1.0 else 1 + round(LINK * value)
                self._columns.touch(VOICE, order.page)
