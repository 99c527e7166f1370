"""When pages are read again: change rate, weight in S, interval and next read of what a turn settled; their rows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from xyro.configs.schema import Refresh
from xyro.frontier.batch import Settled
from xyro.frontier.change_model import ChangeModel, Learnt
from xyro.frontier.freshness import Freshness
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import Ids, Ledger
from xyro.frontier.schedule import Basis, Schedule
from xyro.metadata import keys, rows
from xyro.metadata.manager import Partition
from xyro.metadata.rows import Mark
from xyro.metadata.states import KIND_MASK, KIND_SHIFT, State
from xyro.metadata.visits import next_row
from xyro.opic.importance import TICKS, never_measured
from xyro.refresh.change import rate
from xyro.refresh.periodic import timed

GOLDEN = 0.618_033_988_749_895
"""Multiples of it, modulo 1, are spread more evenly than chance: intervals of a page keep their mean."""


def marked(marks: tuple[Mark, ...], mark: Mark, apart: int) -> tuple[Mark, ...]:
    """The marks with this one, if it is `apart` ticks or more after the last: their evidence then overlaps little."""
    return marks if marks and mark.clock - marks[-1].clock < apart else (*marks[-1:], mark)


class Dates:
    """`date` at the end of a turn, after the pages have spent."""

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        schedule: Schedule,
        freshness: Freshness,
        settings: Refresh,
        hooks: Hooks,
    ) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.ledger = ledger
        self.schedule = schedule
        self.freshness = freshness
        """hears of every read, to tell how fresh all pages are"""
        self.change_model = ChangeModel(partition, settings)
        self.hooks = hooks

    def follow(self, settings: Refresh) -> None:
        """Begin with these settings, or go on with others; a page is dated by them at its next read."""
        self.change_model.settings = settings

    def date(self, settled: list[Settled], now: float) -> None:
        """Change rate, weight in S, interval and next read of the pages settled in this turn; their rows."""
        if not settled:
            self.change_model.keep()
            return
        pages = np.array([one.page for one in settled], np.int64)
        dues, kinds, id_of = [], [], self.partition.id_of
        clock, apart = self.ledger.clock.ticks, int(self.ledger.remembered * TICKS)
        flow = self._importance(pages)
        guided = flow
        for guide in self.hooks.importance:
            guided = guide(pages, guided, now)
        for one, importance, r, backed in zip(settled, flow, guided, self._backed(pages), strict=True):
            learnt = self.change_model.learn(one.page, one.report, one.visit, one.row)
            changes = rate(*learnt.belief)
            weight, pace = r, changes
            for basis in self.hooks.basis:
                weight, pace = basis(id_of(one.page), weight, pace)
            alone = weight == importance and pace == changes
            dated_by = Basis(weight, pace, learnt.belief[0], changes, alone, self._timed(one, learnt))
            due, heavy = self.schedule.date(one.page, one.report, one.visit, one.row, dated_by, now)
            row = next_row(one.report, one.visit, one.row, learnt.belief, heavy, one.fault)
            marks = one.row.marks if one.row is not None else ()
            if row.reads:
                marks = marked(marks, Mark(importance, backed, clock, int(now)), apart)
            row = msgspec.structs.replace(
                row,
                marks=marks,
                said=learnt.said,
                counted=self.change_model.count(one.page, one.row, row),
                diary=learnt.diary,
            )
            self.partition.put(keys.REFRESH.key(one.page), rows.pack(row))
            self.freshness.settled(one.page, one.report, one.visit, one.row, row)
            dues.append(due)
            kinds.append(int(row.kind) << KIND_SHIFT)
        self.columns["due"][pages] = dues
        self.columns["flags"][pages] = (self.columns["flags"][pages] & (~KIND_MASK & 0xFFFF_FFFF)) | np.array(
            kinds, np.uint32
        )
        for name in ("due", "flags"):
            self.columns.touch(name, pages)
        self.change_model.keep()

    def _importance(self, pages: Ids) -> list[float]:
        """Flow of pages just read; where a page has not spent yet (its load goes on), the estimate of now."""
        flow = self.columns["flow"][pages]
        never = never_measured(flow)
        if never.any():
            flow[never] = self.ledger.importance(pages[never])
        found: list[float] = flow.tolist()
        return found

    def _backed(self, pages: Ids) -> list[int]:
        """Ticks of evidence behind the importance of pages, at most."""
        age = np.uint32(self.ledger.clock.ticks & 0xFFFF_FFFF) - self.columns["birth"][pages]
        found: list[int] = np.minimum(age, int(self.ledger.span * TICKS)).tolist()
        return found

    def _timed(self, one: Settled, learnt: Learnt) -> Callable[[float], float] | None:
        """How the interval of a page that changes by the clock becomes a read just after it has changed."""
        if learnt.habit is None or one.visit.state is not State.READ:
            return None
        habit, ended = learnt.habit, one.report.ended
        reads = one.row.reads if one.row is not None else 0
        draw = ((one.page + reads) * GOLDEN) % 1.0
        return lambda wait: timed(habit, ended, wait, draw)
