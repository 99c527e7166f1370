"""Freshness of the collection: the model's expectation, the findings of audit reads, delays of changes and births.

Before: revisit_dates.py has dated the pages of a turn (`settled`, `moved`). After: `close` stores what changed with the
turn's commit group; service/views tells it.

    sample      refreshed pages in proportion to importance (refresh/dated_pages.py), kept up as their rows change
    fitted      how often the pages of each folder change (refresh/fitted_rates.py), from the sample, now and then
    expectation the model: all refreshed pages, told from these two when somebody asks (refresh/expected.py)
    calibration how often changes came beside how often the model expected them, at every read (refresh/calibration.py)
    audits      a share of the reads at random by importance, whatever is thought of staleness, which need no model
                (refresh/meter.py); `fresh` is the model as both correct it
    detection   from a change to the read that saw it; discovery: from a page's birth to its first read
    spent       reads of pages that had been read before, of any reason

An audit is chosen at the end of a turn, beside what the plan orders. A page that is out already when it is chosen is
not ordered again: the read that is under way becomes the audit. To pass it over would favour pages that the plan thinks
fresh. An audit whose read failed temporarily says nothing, and counts as missed; one that found the page gone found it
changed. Audits, delays and fitted rates are written when they change; the pages of the sample have a flag.
"""

from __future__ import annotations

import math
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
from xyro.metadata.states import FOLDER, LEASED, SAMPLED, State
from xyro.metadata.visits import GONE, Visit, http_date
from xyro.opic.page_parts import parts
from xyro.refresh import periodic
from xyro.refresh.calibration import Calibration
from xyro.refresh.change import usable_last_modified
from xyro.refresh.dated_pages import DatedPage, PageSample, PageTotals
from xyro.refresh.delays import Recent
from xyro.refresh.expected import Expected, fading
from xyro.refresh.fitted_rates import FittedRates
from xyro.refresh.meter import BLOCK, AuditWindow, Blocks, found, shifted
from xyro.refresh.rate_sums import DAY
from xyro.refresh.sharing import BandwidthMeter
from xyro.wire.ids import LocalPage, local_pages, page_range
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
_FITTED = rows.META.key("fitted")
_READ = int(State.READ)
_NEVER_MADE = (math.inf, 0, Expected())
LASTS = 1.0
"""seconds that an expectation is good for: it tells of later moments, too, but not of reads since"""
ROWS = 256
"""pages looked at in a turn while the sample is filled again: 3 ms"""
LEAST_EVIDENCE, MOST_EVIDENCE = 8, 2048
"""reads between two fits: an eighth of all so far, within these. 20 to 30 ms where the sample is full, 15 us a read"""


class Freshness:
    """The freshness of one partition. Invariant: `totals` and `sample` hold a page as long as its Refresh-Data has a
    weight."""

    def __init__(
        self, partition: Partition, ledger: Ledger, bandwidth: Bandwidth, settings: RefreshSettings, hooks: Hooks
    ) -> None:
        self.partition = partition
        self.ledger = ledger
        self.bandwidth = bandwidth
        self.hooks = hooks
        self.totals = PageTotals()
        self.sample = PageSample(partition.facts["seed"], partition.facts["partitions"])
        self.fitted = FittedRates()
        self.calibration = Calibration()
        self.audits = Audits(partition, self._importance)
        self.detection, self.discovery = Recent(), Recent()
        self.spent = BandwidthMeter()
        self.since = 0.0
        """when the first page was read: births from before say nothing of how fast pages are found"""
        self._now = 0.0
        self._compared = self._fitted_at = 0
        """reads that were compared with what was expected, so far and at the last fit"""
        self._refilled: int | None = None
        """pages that were looked at once more, while the sample is filled again"""
        self._made = _NEVER_MADE
        """the last expectation: when, of how many pages"""
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
        self.moved(page, old, new)

    def _compare(self, page: LocalPage, report: PageReport, visit: Visit, old: RefreshRow) -> None:
        """A page was read again: compare what was expected of it with what came."""
        dated, changed = _dated(old), _verdict(report, visit)
        if dated is None:
            if page in self.audits.pending:
                self.audits.settled(page, changed, 0.0, report.ended)
            return
        days = max(report.ended - old.last_read, 0.0) / DAY
        fresh, believed = fading(self.fitted.shares([dated.belief], [self._folder(page)])[0], days)
        if page in self.audits.pending:
            self.audits.settled(page, changed, self.calibration.fresh(fresh), report.ended)
        if changed is None or not old.last_read:
            return
        seen = _stale(report, old, days, believed / max(1.0 - fresh, 1e-9)) if changed else 0.0
        r = dated.importance
        self.calibration.read(r * days, r * believed, r * seen, r)
        self._compared += 1

    def moved(self, page: LocalPage, old: RefreshRow | None, new: RefreshRow | None) -> None:
        """A page's row is another now; None: it has none."""
        before, after = _dated(old), _dated(new)
        if before is not None or after is not None:
            self.totals.replace([before] if before is not None else (), [after] if after is not None else ())
            self.sample.put(page, after, self._folder(page))

    def _folder(self, page: LocalPage) -> int:
        return int(self.partition.columns[FOLDER][page])

    def _load_sample(self) -> None:
        """Read the rows of the pages that a restart knows to be in the sample, 12 us each."""
        for page in self.sample.take_unread():
            if page not in self.sample.pages:
                self.sample.put(page, _dated(self.partition.row(page)), self._folder(page))

    def _refill(self) -> None:
        """Look at some of all pages once more, of a sample that is starved."""
        if self._refilled is None:
            self.sample.restart()
            self._refilled = 0
        stop = min(self._refilled + ROWS, self.partition.columns.n)
        for page in page_range(LocalPage(self._refilled), stop - self._refilled):
            if self.partition.states[page] == _READ:
                self.sample.put(page, _dated(self.partition.row(page)), self._folder(page))
        self._refilled = stop if stop < self.partition.columns.n else None

    def expectation(self, now: float) -> Expected:
        """Tell what the model expects of all refreshed pages, as of up to LASTS ago: 13 ms where the sample is full.
        Not to be changed."""
        if self.sample.unread:
            self._load_sample()
        pages = list(self.sample.pages.values())
        made_at, made_of, found = self._made
        if made_at <= now < made_at + LASTS and 8 * abs(len(pages) - made_of) <= made_of:
            return found
        shares = self.fitted.shares([each.page.belief for each in pages], [each.folder for each in pages])
        found = Expected.from_pages([each.page for each in pages], now, shares, self.sample.stands_for(pages))
        found.scale(self.totals.importance)
        self._made = now, len(pages), found
        return found

    def _fit(self, now: float) -> None:
        """Fit the rates to what the sample has shown, and let kappa rest on as many changes as there are stale
        pages."""
        self._fit_rates()
        self.partition.put(_FITTED, msgpack.packb(self.fitted.dump()))
        self.calibration.remember(self.expectation(now).stale(now))
        self._fitted_at = self._compared

    def _fit_rates(self) -> None:
        if self.sample.unread:
            self._load_sample()
        pages = list(self.sample.pages.values())
        self.fitted.fit([each.page.belief for each in pages], [each.folder for each in pages])
        self.fitted = FittedRates.load(self.fitted.dump())  # as a restart will have them
        self._made = _NEVER_MADE

    def fresh(self) -> float | None:
        """Weighted freshness by the model, as reads and audits correct it, as of the last turn."""
        expected = self.expectation(self._now)
        if not (whole := expected.importance):
            return None
        seen = found([(self.audits.window, whole)])
        return shifted(self.calibration.headline(expected.stale(self._now), whole), seen).freshness

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
        since = self._compared - self._fitted_at
        if since >= min(max(self._compared // 8, LEAST_EVIDENCE), MOST_EVIDENCE):
            self._fit(now)
        if answered:
            self.audits.answered(self._refreshed)
            self.spent.count(now, self._refreshed)
            self._refreshed = 0
        if self._refilled is not None or self.sample.is_starved:
            self._refill()
        for page in self.sample.moved:
            (self.partition.set_flag if page in self.sample.pages else self.partition.clear_flag)(page, SAMPLED)
        self.sample.moved.clear()
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
            "totals": self.totals.dump(),
            "calibration": self.calibration.dump() if self.calibration.whole.believed else None,
            "threshold": self.sample.threshold,
            "compared": (self._compared, self._fitted_at),
            "refilled": self._refilled,
            "audits": self.audits.dump(),
            "since": self.since,
        }

    def recover(self, state: Mapping[str, Any] | None, now: float) -> None:
        """Go on from what `dump` gave; None, or without totals: of a directory from before, whose rows are read."""
        if state is None or "totals" not in state:
            self._take_rows(now)
        else:
            self.totals = PageTotals.load(state["totals"])
            self._compared, self._fitted_at = state["compared"]
            self._refilled = state["refilled"]
            flags = self.partition.columns["flags"][: self.partition.columns.n]
            self.sample.resume(state["threshold"], local_pages(np.flatnonzero(flags & SAMPLED)))
            if stored := self.partition.get(_FITTED):
                self.fitted = FittedRates.load(msgpack.unpackb(stored))
        if state is None:
            return
        self.since = state["since"]
        self.calibration = Calibration.load(state.get("calibration"))
        self.audits.load(state["audits"])
        stored = self.partition.get(_DELAYS)
        if stored:
            self.detection, self.discovery = map(Recent.load, msgpack.unpackb(stored))

    def _take_rows(self, now: float) -> None:
        """Take all pages of a directory of an older version in: 12 s a million, until a group is sealed."""
        self.totals, self.sample = PageTotals(), PageSample(self.sample.seed, self.partition.facts["partitions"])
        for key, row in self.partition.scan(rows.REFRESH.prefix):
            page = LocalPage(rows.REFRESH.split(key))
            if (dated := _dated(rows.unpack_refresh(row))) is not None:
                self.totals.replace((), [dated])
                self.sample.put(page, dated, self._folder(page))
        self._fit_rates()
        self.since = now if self.totals.importance else 0.0


def _dated(row: RefreshRow | None) -> DatedPage | None:
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
