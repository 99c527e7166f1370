"""When pages are read again: change rate, weight in S, interval and next read of what a turn settled; their rows."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from configs.schema import Refresh
from crawl.guide import Guide
from crawl.planner import Planner
from crawl.purse import Ids, Purse
from metadata import keys, rows
from metadata.manager import Partition
from metadata.rows import Mark, RefreshRow
from metadata.states import KIND_MASK, KIND_SHIFT
from metadata.visits import Visit, http_date, next_row
from opic.importance import TICKS, never_measured
from refresh.change import DAY, DEFAULT_PRIOR, first_read, rate, update, usable_last_modified
from wire.messages import PageReport


@dataclass(slots=True)
class Settled:
    """An order settled in this turn, until its row is written."""

    page: int
    report: PageReport
    visit: Visit
    row: RefreshRow | None
    error: str = ""


def marked(marks: tuple[Mark, ...], mark: Mark, apart: int) -> tuple[Mark, ...]:
    """The marks with this one, if it is `apart` ticks or more after the last: their evidence then overlaps little."""
    return marks if marks and mark.clock - marks[-1].clock < apart else (*marks[-1:], mark)


class Dates:
    """`date` at the end of a turn, after the pages have spent."""

    def __init__(self, partition: Partition, purse: Purse, planner: Planner, settings: Refresh) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.purse = purse
        self.planner = planner
        self.settings = settings
        self.guide = Guide(partition.directory, partition.number) if settings.guide == "interest" else None

    def date(self, settled: list[Settled], now: float) -> None:
        """Change rate, weight in S, interval and next read of the pages settled in this turn; their rows."""
        if not settled:
            return
        pages = np.array([one.page for one in settled], np.int64)
        self.planner.answered(sum(one.visit.answered for one in settled), now)
        dues, kinds = [], []
        clock, apart = self.purse.clock.ticks, int(self.purse.remembered * TICKS)
        flow = self._importance(pages)
        guided = flow if self.guide is None else self.guide.weigh(pages, self.columns["flags"][pages], flow, now)
        for one, importance, r, backed in zip(settled, flow, guided, self._backed(pages), strict=True):
            belief = self._belief(one)
            changes = rate(*belief)
            due, heavy = self.planner.date(one.page, one.report, one.visit, one.row, r, changes, now)
            row = next_row(one.report, one.visit, one.row, belief, heavy)
            marks = one.row.marks if one.row is not None else ()
            if row.reads:
                marks = marked(marks, Mark(importance, backed, clock, int(now)), apart)
            row = msgspec.structs.replace(row, marks=marks, error=one.error or row.error)
            self.partition.put(keys.REFRESH.key(one.page), rows.pack(row))
            dues.append(due)
            kinds.append(int(row.kind) << KIND_SHIFT)
        self.columns["due"][pages] = dues
        self.columns["flags"][pages] = (self.columns["flags"][pages] & (~KIND_MASK & 0xFFFF)) | np.array(
            kinds, np.uint16
        )
        for name in ("due", "flags"):
            self.columns.touch(name, pages)

    def _importance(self, pages: Ids) -> list[float]:
        """Flow of pages just read; where a page has not spent yet (its load goes on), the estimate of now."""
        flow = self.columns["flow"][pages]
        never = never_measured(flow)
        if never.any():
            flow[never] = self.purse.importance(pages[never])
        found: list[float] = flow.tolist()
        return found

    def _backed(self, pages: Ids) -> list[int]:
        """Ticks of evidence behind the importance of pages, at most."""
        age = np.uint32(self.purse.clock.ticks & 0xFFFF_FFFF) - self.columns["birth"][pages]
        found: list[int] = np.minimum(age, int(self.purse.span * TICKS)).tolist()
        return found

    def _belief(self, one: Settled) -> tuple[float, float]:
        """Gamma(a, b) of the change rate after this report (algorithms.md E)."""
        row, report = one.row, one.report
        if one.visit.changed is None or row is None or not row.last_read:
            if row is not None and row.reads and row.rate_b:
                return row.rate_a, row.rate_b
            hinted = float(row.last_change) if row is not None and not row.reads else 0.0
            said = http_date(report.last_modified) if report.last_modified else hinted or None
            return first_read(DEFAULT_PRIOR, usable_last_modified(said, report.ended))
        tau = (report.ended - row.last_read) / DAY
        a, b = (row.rate_a, row.rate_b) if row.rate_b else (DEFAULT_PRIOR.a, DEFAULT_PRIOR.b)
        age = None
        if one.visit.changed and report.last_modified:
            said = http_date(report.last_modified)
            age = usable_last_modified(said, report.ended, float(row.last_read))
        return update(a, b, tau, one.visit.changed, age, DEFAULT_PRIOR, self.settings.memory)
