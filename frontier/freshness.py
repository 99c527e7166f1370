"""Freshness of the collection: the model's expectation, the findings of audit reads, delays of changes and births.

Before: revisit_dates.py has dated the pages of a turn (`settled`, `moved`). After: `close` stores what changed with the
turn's commit group; service/views tells it.

    expected    all refreshed pages by the model (refresh/expected.py); kept up as their rows change
    calibration how often changes came beside how often the model expected them, at every read (refresh/calibration.py)
    audits      a share of the reads at random by importance, whatever is thought of staleness, which need no model
                (refresh/meter.py); `fresh` is the model as both correct it
    detection   from a change to the read that saw it; discovery: from a page's birth to its first read
    spent       reads of pages that had been read before, of any reason

An audit is chosen at the end of a turn, beside what the plan orders. A page that is out already when it is chosen is
not ordered again: the read that is under way becomes the audit. To pass it over would favour pages that the plan thinks
fresh. An audit whose read failed temporarily says nothing, and counts as missed; one that found the page gone found it
changed. Costs some 15 us a page and 3 kB of each commit group; the window of audits and the delays are written when
they change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import RefreshSettings
from xyro.frontier.bandwidth import Bandwidth
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import Ledger
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import LEASED, State
from xyro.metadata.visits import GONE, Visit, http_date
from xyro.opic.page_parts import parts
from xyro.refresh import periodic
from xyro.refresh.calibration import Calibration
from xyro.refresh.change import usable_last_modified
from xyro.refresh.delays import Recent
from xyro.refresh.expected import DatedPage, Expected
from xyro.refresh.meter import BLOCK, AuditWindow, Blocks, found, shifted
from xyro.refresh.rate_sums import DAY
from xyro.refresh.sharing import BandwidthMeter
from xyro.wire.ids import LocalPage
from xyro.wire.messages import PageReport

OWED = 16.0
"""most audits that wait to be made; what a pause leaves unread is not made up for"""
DRAWS = 8
"""blocks looked at for each audit; of a million pages each is looked at anew every 31 audits"""
FIRST_LOOKS = 16
"""blocks looked at in one turn while some were never: 1 ms"""
_WINDOW = rows.META.key("audits")


class Audits:
    """Audit reads of one partition. importance: of the pages start .. stop - 1, 0 for those that are not refreshed.

    Invariant: whether a page is chosen depends on its importance alone. The draws follow from the directory's seed and
    the number of the draw, so a turn that is made again draws the same.
    """

    def __init__(self, partition: Partition, importance: Callable[[int, int], NDArray[np.float64]]) -> None:
        self.partition = partition
        self.importance = importance
        self.share = 0.0
        """of the reads of pages that had been read before"""
        self.window = AuditWindow()
        self.pending: dict[LocalPage, float] = {}
        """pages whose audit is out -> weight"""
        self.made = self.missed = 0
        self._blocks = Blocks()
        self._owed = 0.0
        self._draws = 0
        self._stored = True

    def follow(self, share: float) -> None:
        """Go on with another share of the reads."""
        self.share = share

    def answered(self, reads: int) -> None:
        """Count pages that were read again. (First reads owe no audit: reading a page of just now again would say
        nothing.)"""
        self._owed = min(self._owed + self.share * reads, OWED)

    def choose(self, allowance: int) -> list[LocalPage]:
        """Pages to order now, none of which is out; at most `allowance`. 60 us each, nothing while none is owed."""
        chosen: list[LocalPage] = []
        if self._owed < 1.0 or not self._prepared():
            return chosen
        while self._owed >= 1.0 and len(chosen) < allowance:
            self._owed -= 1.0
            page = self._draw()
            if page is not None and not self.partition.flags[page] & LEASED and page not in chosen:
                chosen.append(page)
        return chosen

    def settled(self, page: LocalPage, changed: bool | None, expected: float, now: float) -> None:
        """A read of `page` ended. changed: None where that is not known; expected: probability that it was fresh."""
        weight = self.pending.pop(page, 0.0)
        if not weight:
            return
        if changed is None:
            self.missed += 1
        else:
            self.made += 1
            self.window.add(not changed, expected, weight, now)
        self._stored = False

    def lost(self, page: LocalPage) -> None:
        """No read of `page` will say anything."""
        if self.pending.pop(page, 0.0):
            self.missed += 1
            self._stored = False

    def _prepared(self) -> bool:
        """Was every block of pages looked at? New ones are, some at a time."""
        pages = self.partition.columns.n
        draws = min(DRAWS, len(self._blocks)) if self._blocks.whole(pages) else FIRST_LOOKS
        for _ in range(draws):
            block = self._blocks.behind(pages)
            if block * BLOCK < pages:
                self._blocks.look(block, self._importance_of(block))
        return self._blocks.whole(pages)

    def _draw(self) -> LocalPage | None:
        self._draws += 1
        facts = self.partition.facts
        draw = random.Random(f"{facts['seed']}:{self.partition.number}:{self._draws}")
        block = self._blocks.block(draw.random())
        page = None if block is None else self._blocks.page(block, self._importance_of(block), draw.random())
        if page is None:
            return None
        self.pending[page.page] = self.pending.get(page.page, 0.0) + page.weight
        return page.page

    def _importance_of(self, block: int) -> NDArray[np.float64]:
        return self.importance(block * BLOCK, min((block + 1) * BLOCK, self.partition.columns.n))

    # -- state ---------------------------------------------------------------------------------------------------

    def store(self) -> None:
        """Put what changed into the open commit group."""
        if not self._stored:
            self.partition.put(_WINDOW, msgpack.packb([self.made, self.missed, self.window.dump()]))
            self._stored = True

    def dump(self) -> dict[str, Any]:
        return {"owed": self._owed, "draws": self._draws}

    def load(self, state: Mapping[str, Any]) -> None:
        self._owed, self._draws = state["owed"], state["draws"]
        stored = self.partition.get(_WINDOW)
        if stored:
            self.made, self.missed, window = msgpack.unpackb(stored)
            self.window = AuditWindow.load(window)


_DELAYS = rows.META.key("delays")
_READ = int(State.READ)


class Freshness:
    """The freshness of one partition. Invariant: `expected` holds every page whose Refresh-Data has a weight."""

    def __init__(
        self, partition: Partition, ledger: Ledger, bandwidth: Bandwidth, settings: RefreshSettings, hooks: Hooks
    ) -> None:
        self.partition = partition
        self.ledger = ledger
        self.bandwidth = bandwidth
        self.hooks = hooks
        self.expected = Expected()
        self.calibration = Calibration()
        self.audits = Audits(partition, self._importance)
        self.detection, self.discovery = Recent(), Recent()
        self.spent = BandwidthMeter()
        self.since = 0.0
        """when the first page was read: births from before say nothing of how fast pages are found"""
        self._now = 0.0
        self._old: list[DatedPage] = []
        self._new: list[DatedPage] = []
        self._refreshed = 0
        self._reported = True
        self.follow(settings)

    def follow(self, settings: RefreshSettings) -> None:
        """Other settings."""
        self.audits.follow(settings.audit / 100.0)

    # -- a turn --------------------------------------------------------------------------------------------------

    def settled(
        self, page: LocalPage, report: PageReport, visit: Visit, old: RefreshRow | None, new: RefreshRow
    ) -> None:
        """An order ended; the page's row before and after."""
        self.since = self.since or report.ended
        if old is not None and old.reads:
            self._compare(page, report, visit, old)
            self._refreshed += visit.answered
            if visit.changed:
                self._detected(report, old)
        elif visit.state is State.READ:
            self._discovered(report, old)
        self.moved(old, new)

    def _compare(self, page: LocalPage, report: PageReport, visit: Visit, old: RefreshRow) -> None:
        """A page was read again: compare what was expected of it with what came."""
        expectation, changed = _expectation(old), _verdict(report, visit)
        fresh = expectation.fresh(report.ended) if expectation is not None else 0.0
        if page in self.audits.pending:
            likely = self.calibration.fresh(fresh, expectation.pace) if expectation is not None else 0.0
            self.audits.settled(page, changed, likely, report.ended)
        if expectation is None or changed is None or not old.last_read:
            return
        days = max(report.ended - old.last_read, 0.0) / DAY
        believed = expectation.belief.stale_days(days)
        seen = _stale(report, old, days, believed / max(1.0 - fresh, 1e-9)) if changed else 0.0
        r = expectation.importance
        self.calibration.read(r * days, r * believed, r * seen, r, expectation.pace)

    def moved(self, old: RefreshRow | None, new: RefreshRow | None) -> None:
        """A page's row is another now; None: it has none."""
        before, after = _expectation(old), _expectation(new)
        if before is not None:
            self._old.append(before)
        if after is not None:
            self._new.append(after)

    def fresh(self) -> float | None:
        """Weighted freshness by the model, as reads and audits correct it, as of the last turn."""
        whole = self.expected.importance
        if not whole:
            return None
        seen = found([(self.audits.window, whole)])
        return shifted(self.calibration.headline(self.expected.stale(self._now), whole), seen).freshness

    def overdue(self, now: float) -> float:
        """Sum up the importance of the refreshed pages whose time has passed, and that were not read since: a pass over
        a column, 1 ms a million pages, and 50 ns for each that is late."""
        due, found = self.partition.columns["due"], 0.0
        for part in parts(self.partition.columns.n):
            late = np.flatnonzero((due[part] > 0) & (due[part] < now)) + part.start
            found += float(self._importance_of(late).sum())
        return found

    def close(self, answered: int, now: float) -> None:
        """The turn ends, within its commit group; so many orders were answered."""
        self._now = now
        if self._old or self._new:
            self.expected.replace(self._old, self._new, now)
            self._old, self._new = [], []
        if answered:
            if self._refreshed:
                self.calibration.remember(float(self.expected.stale(now).sum()))
            self.audits.answered(self._refreshed)
            self.spent.count(now, self._refreshed)
            self._refreshed = 0
        self.audits.store()
        if not self._reported:
            self.partition.put(_DELAYS, msgpack.packb([self.detection.dump(), self.discovery.dump()]))
            self._reported = True

    def _detected(self, report: PageReport, old: RefreshRow) -> None:
        """A change: since when the copy was out of date, its Last-Modified says where it is to be believed."""
        if not old.last_read:
            return
        tau = max(report.ended - old.last_read, 0.0)
        modified = http_date(report.last_modified)
        age = usable_last_modified(modified, report.ended, float(old.last_read))
        if age is not None and age * DAY <= tau:
            self.detection.certain(age * DAY)
        else:
            self.detection.between(tau, old.belief)
        self._reported = False

    def _discovered(self, report: PageReport, old: RefreshRow | None) -> None:
        """A first read: born when a feed or sitemap said so, or by its Last-Modified, whichever is earlier."""
        dates = [float(claim.time) for claim in old.claims if not claim.rate] if old is not None else []
        if report.last_modified and (modified := http_date(report.last_modified)) is not None:
            dates.append(modified)
        born = min((when for when in dates if usable_last_modified(when, report.ended) is not None), default=0.0)
        if born and born >= self.since:
            self.discovery.certain(report.ended - born)
            self._reported = False

    def _importance(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the importance of pages start .. stop - 1, as they are dated; 0 for those that are not refreshed."""
        return self._importance_of(np.arange(start, stop))

    def _importance_of(self, pages: NDArray[np.int64]) -> NDArray[np.float64]:
        found = self.hooks.guided(pages, self.ledger.importance(pages), self._now)
        counts = (self.partition.columns["state"][pages] == _READ) & (
            found * self.bandwidth.scale >= self.bandwidth.rules.least
        )
        return np.where(counts & np.isfinite(found), found, 0.0)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            "expected": self.expected.dump(),
            "calibration": self.calibration.dump() if self.calibration.octaves else None,
            "audits": self.audits.dump(),
            "since": self.since,
        }

    def recover(self, state: Mapping[str, Any] | None, now: float) -> None:
        """Go on from what `dump` gave; None: of a directory from before there was a meter, whose rows are read."""
        if state is None or not Expected.reads(state["expected"]):
            found = (rows.unpack_refresh(row) for _, row in self.partition.scan(rows.REFRESH.prefix))
            expectations = (page for row in found if (page := _expectation(row)) is not None)
            self.expected = Expected.from_pages(expectations, now)
            self.since = now if self.expected.importance else 0.0
        else:
            self.expected = Expected.load(state["expected"])
        if state is None:
            return
        self.since = state["since"]
        self.calibration = Calibration.load(state.get("calibration"))
        self.audits.load(state["audits"])
        stored = self.partition.get(_DELAYS)
        if stored:
            self.detection, self.discovery = map(Recent.load, msgpack.unpackb(stored))


def _expectation(row: RefreshRow | None) -> DatedPage | None:
    """A page of the model; None: it is not refreshed."""
    if row is None or row.weight <= 0.0 or row.pace <= 0.0:
        return None
    return DatedPage(row.weight, row.pace, row.belief, row.last_read)


def _stale(report: PageReport, old: RefreshRow, days: float, expected: float) -> float:
    """Days that a copy was stale which a read after so many days found changed; `expected`: where no date tells.

    A read that was made for the change's sake (it was announced, or comes by the clock) is late by the days since the
    change. Any other read is a moment like all others, so the days from the last change to it are what the copy of the
    read before was fresh for, on average: changes look the same forwards and backwards, however they come.
    """
    dates = [float(claim.time) for claim in old.claims if not claim.rate]
    if dates:
        return min(max(report.ended - min(dates), 0.0) / DAY, days)
    modified = http_date(report.last_modified) if report.last_modified else None
    age = usable_last_modified(modified, report.ended, float(old.last_read))
    if age is None:
        return expected
    by_the_clock = bool(old.diary) and periodic.unpack(old.diary).habit is not None
    return min(age, days) if by_the_clock else max(days - age, 0.0)


def _verdict(report: PageReport, visit: Visit) -> bool | None:
    """Had the page changed? One that is gone had. None: this read does not tell."""
    return True if report.error in GONE else visit.changed
