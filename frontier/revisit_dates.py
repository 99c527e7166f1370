"""The schedule: when each page is to be read next, its weight in S, and the queues of dated pages.

    retries   filled by temporary failures, emptied when their time has come
    due       filled by every read while refreshing, emptied when their time has come (due_queue.py)
    ahead     the same in a bounded crawl that refreshes: in the order of their dates, whatever the time is

Filled by the pages that a turn settles (Dates, below), by claims (claims.py) and by publications, emptied by the
scheduler. What a queue says is a hint: the column `due` decides whether a page is still due, or to be tried again.

How often a page is read is bandwidth.py's to say.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from xyro.configs.schema import RefreshSettings, Settings
from xyro.frontier.bandwidth import DAY, Bandwidth, drawn, second
from xyro.frontier.batch import Settled
from xyro.frontier.change_model import ChangeModel, ChangeRecord
from xyro.frontier.due_queue import DueQueue
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import Ids, Ledger
from xyro.frontier.redating import Doublings, Recount
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.rows import Mark, RefreshRow
from xyro.metadata.states import HASTENED, KIND_MASK, KIND_SHIFT, LEASED, State
from xyro.metadata.visits import GONE, Visit, next_row
from xyro.opic.importance import TICKS, never_measured
from xyro.refresh.ahead import MEAN, Ahead
from xyro.refresh.periodic import timed
from xyro.refresh.policy import weight
from xyro.refresh.rate_belief import PageBelief
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import PageReport

if TYPE_CHECKING:
    from xyro.frontier.freshness import Freshness

LATE = 10.0
"""of a longest interval that the settings promise, the part by which a page may be read later"""
RETRIES_AT_ONCE = 512
"""most retries that one turn looks at"""
LOOK_AGAIN = 30 * DAY
"""a page that failed for good is tried once more after this long (refreshing only)"""
_GOOD, _FAILED_TEMPORARILY = State.READ, State.ERROR
_ERROR = int(State.ERROR)


class Basis(NamedTuple):
    """The numbers by which a page is dated."""

    importance: float
    rate: float
    """changes a day"""
    belief: PageBelief
    """which the rate is told by"""
    believed: float
    """the rate behind the weight that the page's row will tell: its own, where it is dated by a cluster's"""
    alone: bool
    """importance and rate are the page's own, no cluster's or guide's"""
    timed: Callable[[float], float] | None
    """seconds to the next read instead of the interval, where it is known when the page changes next"""


def _follows_importance(settings: Settings) -> bool:
    """Do importance and rate alone date pages, and dates stand for long? A bounded crawl reads ahead of all dates."""
    return settings.refresh.guide == "importance" and not settings.clusters and not settings.crawl.refresh


def time_unit(settings: Settings) -> int:
    """Seconds of a folder of due pages: a page is read up to so much late, which is a tenth of the shortest interval at
    most that the settings promise."""
    refresh = settings.refresh
    if settings.crawl.refresh:
        return 1
    most = [refresh.max_interval, *(site.max_interval for site in settings.sites if site.max_interval)]
    return max(1, min(refresh.time_unit, int(min(most) / LATE)))


class Schedule:
    """The schedule of one partition. refreshing: pages are read again when due.

    Invariant: population and S (bandwidth.py) hold every READ page of weight above 0 as its Refresh-Data row tells it.
    """

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        bandwidth: Bandwidth,
        freshness: Freshness,
        settings: Settings,
        refreshing: bool,
        ahead: bool = False,
    ) -> None:
        self.partition = partition
        self.ledger = ledger
        self.settings = settings
        self.refreshing = refreshing
        self.still = False
        """pages are dated, and none is read again until it ends"""
        self.bandwidth = bandwidth
        self.freshness = freshness
        self.change_model = ChangeModel(partition, settings.refresh)
        self.due_queue = DueQueue(partition, self.bandwidth, ledger, time_unit(settings))
        self.ahead = Ahead() if ahead and not (bandwidth.bounded or bandwidth.fixed) else None
        """a bounded `crawl --refresh` reads the page due next rather than nothing, unless that may be too soon, or more
        than the bandwidth that is set"""
        self.retries: list[tuple[float, LocalPage]] = []
        """a heap: when, page"""
        self._filing = False
        """pages go into the folders of another time unit"""
        self.recount: Recount | None = None
        """under way after a switch of policy or bounds, and while importance settles"""
        follows = refreshing and _follows_importance(settings)
        self.doublings = Doublings(ledger, self.change_model) if follows else None
        """where dates that were given should follow importance and priors"""

    def reconfigure(self, settings: Settings) -> None:
        """Other settings (SIGHUP), between two turns: by another policy all pages are dated anew, in slices."""
        law = self.bandwidth.law
        self.settings = settings
        if self.bandwidth.sites is not None:
            self.bandwidth.sites.follow(settings.sites)
        self.bandwidth.follow(settings.refresh)
        self.freshness.follow(settings.refresh)
        self.due_queue.follow(time_unit(settings))
        self._filing = self.due_queue.filing
        if self.bandwidth.law != law:
            self.bandwidth.stop_counting()
            self._count_anew()

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        doublings = {} if self.doublings is None else {"doublings": self.doublings.dump()}
        return {**self.bandwidth.dump(), "debt": self.due_queue.governor.debt, **doublings}

    def load(self, state: Mapping[str, Any]) -> None:
        same = self.bandwidth.load(state, self.partition)
        self.due_queue.governor.load(state.get("debt", 0.0))
        if self.doublings is not None:
            self.doublings.load(state.get("doublings"))
        if not same:
            self._count_anew()

    def recover(self) -> None:
        """Rebuild the queues from the columns."""
        columns, n = self.partition.columns, self.partition.columns.n
        state, due = columns["state"][:n], columns["due"][:n]
        failed = np.flatnonzero(state == _ERROR)
        self.retries = list(zip(due[failed].astype(np.float64).tolist(), local_pages(failed), strict=True))
        heapq.heapify(self.retries)
        if self.ahead is not None:
            read = np.flatnonzero((due > 0) & (state == _GOOD))
            for turn, page in enumerate(read[np.argsort(due[read], kind="stable")].tolist()):
                self.ahead.put_after(page, MEAN * turn // len(read), self.partition.hosts_of[page])
        self._file(0, n)

    def _file(self, start: int, stop: int) -> None:
        """Put those of a range of pages that have a date into their folders."""
        columns = self.partition.columns
        state, due = columns["state"][start:stop], columns["due"][start:stop]
        if self.refreshing:
            dated = (due > 0) & (state != _ERROR) & ((state != _GOOD) | (self.ahead is None))
            pages = np.flatnonzero(dated)
            self.due_queue.recover((pages + start).astype(np.uint32), due[pages])

    def _count_anew(self) -> None:
        follows = self.doublings is not None
        hooks, model = self.freshness.hooks, self.change_model
        self.recount = Recount(self.partition, self.bandwidth, self.ledger, hooks, model, self.rewrite, follows)

    # -- what is settled -----------------------------------------------------------------------------------------

    def weigh(self, page: LocalPage, visit: Visit, row: RefreshRow | None, by: Basis) -> float:
        """Weight of the page in S after a report; S and the population have it from now on. A page that failed
        temporarily keeps its place."""
        if visit.state is _FAILED_TEMPORARILY:
            heavy = row.weight if row is not None else 0.0
        else:
            heavy = self._weight(by) if visit.state is _GOOD else 0.0
        self.bandwidth.replace(page, row, heavy, by.believed)
        return heavy

    def date(self, order: Settled, by: Basis, heavy: float, now: float) -> int:
        """Next read (seconds since 1970, 0 = none) of a page that was weighed, as its report is, by the multiplier as
        the bandwidth has it."""
        page, report, visit, row = order.page, order.report, order.visit, order.row
        good = visit.state is _GOOD
        if visit.state is _FAILED_TEMPORARILY:
            self.retry(page, report.retry_at)
            return second(report.retry_at)
        wait = self._wait(page, row, by) if good else self._look_again(report, visit)
        moved = wait
        if by.timed is not None and good:
            moved = self.bandwidth.bounds(page).clamp(max(by.timed(wait), self.bandwidth.rules.floor * DAY))
        due = second(now + moved) if moved else 0
        if self.ahead is not None and good:
            mean = self.bandwidth.spread.total / max(self.bandwidth.population.pages, 1)
            self.ahead.put(page, heavy, mean, self.partition.hosts_of[page])
        elif self.refreshing:
            self.due_queue.dated(page, due)
        self._hasten(page, moved != wait)
        return due

    def _weight(self, by: Basis) -> float:
        """Return the weight of a page in S; 0 below the least importance that is read."""
        return (
            weight(by.importance, by.rate)
            if by.importance * self.bandwidth.scale >= self.bandwidth.rules.least
            else 0.0
        )

    def _wait(self, page: LocalPage, row: RefreshRow | None, by: Basis) -> float:
        """Seconds to the next read of a page, or to the next look at one that the policy gives up."""
        interval = self.bandwidth.at_site(page, self.bandwidth.interval(by.importance, by.rate, by.belief))
        if interval.term == "chance":
            self.bandwidth.dated(interval, by.rate)
        return self.bandwidth.wait(interval, page, row.reads if row is not None else 0)

    def _look_again(self, report: PageReport, visit: Visit) -> float:
        """Seconds to the next try of a page that failed for good, 0 = none is planned."""
        if visit.state is State.DEAD or visit.state is State.BLOCKED:
            return 0.0
        if report.error in GONE:
            return self.settings.crawl.confirm_dead
        return DAY if visit.state is State.DISALLOWED else LOOK_AGAIN

    # -- what is learned without a read --------------------------------------------------------------------------

    def put_due(self, page: LocalPage, due: int, hastened: bool = True) -> None:
        """Date a page anew, not sooner than its site allows. hastened: because something is known of it; else by its
        interval."""
        if floor := self.bandwidth.bounds(page).floor:
            row = self.partition.row(page)
            due = max(due, second(row.last_read + floor)) if row is not None else due
        self._hasten(page, hastened)
        if self.refreshing:
            self.due_queue.put(page, due)
        else:
            self.partition.columns["due"][page] = due
            self.partition.columns.touch("due", page)

    def _hasten(self, page: LocalPage, hastened: bool) -> None:
        if bool(self.partition.flags[page] & HASTENED) != hastened:
            (self.partition.set_flag if hastened else self.partition.clear_flag)(page, HASTENED)

    def rewrite(self, page: LocalPage, old: RefreshRow, new: RefreshRow) -> None:
        """A page's row changes without a read of it (evidence of its change rate, another policy): everyone hears."""
        if (old.weight, old.pace) != (new.weight, new.pace):
            self.bandwidth.replace(page, old, new.weight, new.pace)
        self.partition.put(rows.REFRESH.key(page), rows.pack(new))
        self.freshness.moved(page, old, new if new.weight else None)

    def retire(self, page: LocalPage) -> None:
        """The page left the scope: it is read no more, and its weight leaves S. No order for it may be out."""
        self.partition.columns["due"][page] = 0
        self.partition.columns.touch("due", page)
        row = self.partition.row(page)
        if row is not None and row.weight:
            self.rewrite(page, row, msgspec.structs.replace(row, weight=0.0))

    # -- the queues ----------------------------------------------------------------------------------------------

    def file(self, page: LocalPage) -> None:
        """Queue a page where its columns say that it belongs, if it has a date."""
        due, state = int(self.partition.columns["due"][page]), self.partition.states[page]
        if state == _ERROR:
            self.retry(page, float(due))
        elif due and self.ahead is not None and state == _GOOD:
            self.ahead.put_after(page, 0, self.partition.hosts_of[page])
        elif due and self.refreshing:
            self.due_queue.file(page, due)

    def retry(self, page: LocalPage, when: float) -> None:
        """Look at a page that failed temporarily no earlier than `at`."""
        heapq.heappush(self.retries, (when, page))

    def to_retry(self, now: float) -> Iterator[LocalPage]:
        """Pages that failed temporarily and whose time has come; they leave the queue."""
        due, states, flags = self.partition.columns["due"], self.partition.states, self.partition.flags
        for _ in range(RETRIES_AT_ONCE):
            if self.next_retry > now:
                return
            when, page = heapq.heappop(self.retries)
            if states[page] == _ERROR and not flags[page] & LEASED and due[page] <= when + 1:
                yield page

    @property
    def next_retry(self) -> float:
        """Wall clock; infinite where none waits."""
        return self.retries[0][0] if self.retries else math.inf

    def go_on(self, now: float) -> None:
        """The next slice of what goes through all pages: filing after another time unit, and a recount. Within a commit
        group."""
        if self._filing:
            self._file(*self.due_queue.next_to_file())
            self._filing = self.due_queue.filing
        self._go_on_counting(now)

    def _go_on_counting(self, now: float) -> None:
        if self.doublings is not None and self.doublings.passed() and self.recount is None:
            self._count_anew()
        if self.recount is None:
            return
        for page, due in self.recount.step(now):
            if self.ahead is None:
                self.put_due(page, second(due), hastened=False)
        if self.recount.done:
            self.recount = None

    def pause(self, still: bool) -> None:
        """Date pages, and read none again while `still`."""
        self.still = still

    def next_time(self, now: float) -> float:
        """Return when a page that is not yet out becomes due (wall clock); infinite if none will."""
        if self.ahead or self.recount is not None or self.due_queue.filing:
            return 0.0
        rereads = self.refreshing and not self.still
        return min(self.next_retry, self.due_queue.next_time(now) if rereads else math.inf)


def marked(marks: tuple[Mark, ...], mark: Mark, apart: int) -> tuple[Mark, ...]:
    """The marks with this one, if it is `apart` ticks or more after the last: their evidence then overlaps little."""
    return marks if marks and mark.clock - marks[-1].clock < apart else (*marks[-1:], mark)


class Dating:
    """`date` at the end of a turn, after the pages have spent."""

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        schedule: Schedule,
        freshness: Freshness,
        settings: RefreshSettings,
        hooks: Hooks,
    ) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.ledger = ledger
        self.schedule = schedule
        self.freshness = freshness
        """hears of every read, to tell how fresh all pages are"""
        self.change_model = schedule.change_model
        self.hooks = hooks

    def follow(self, settings: RefreshSettings) -> None:
        """Begin with these settings, or go on with others; a page is dated by them at its next read."""
        self.change_model.follow(settings)

    def date(self, settled: list[Settled], now: float) -> None:
        """Change rate, weight in S, interval and next read of the pages settled in this turn; their rows."""
        if not settled:
            self.change_model.keep()
            return
        pages = np.array([order.page for order in settled], np.int64)
        dues, kinds, id_of = [], [], self.partition.id_of
        clock, apart = self.ledger.clock.ticks, int(self.ledger.remembered * TICKS)
        flow = self._importance(pages)
        worths = self.partition.standing.worth(pages, self.partition.children) * flow
        guided = (self.hooks.guided(pages, worths, now) if self.hooks.importance else worths).tolist()
        model, backed = self.change_model, self._backed(pages)
        reads = [model.learn(order.page, order.report, order.visit, order.row) for order in settled]
        rates = model.rates([record.belief for record in reads])
        weighed = []
        for order, importance, r, record, (rate, _) in zip(settled, flow, guided, reads, rates, strict=True):
            capped = model.capped(record.belief, rate)
            changes = capped or rate
            weight, pace = r, changes
            for basis in self.hooks.basis:
                weight, pace = basis(id_of(order.page), weight, pace)
            alone = weight == importance and pace == changes
            dated_by = Basis(weight, pace, record.belief, changes, alone, self._timed(order, record))
            weighed.append((dated_by, capped, self.schedule.weigh(order.page, order.visit, order.row, dated_by)))
        self.schedule.bandwidth.renew(now)  # once: a small crawl's S moves with each page
        for order, importance, ticks, record, (rate, code), (dated_by, capped, heavy) in zip(
            settled, flow, backed, reads, rates, weighed, strict=True
        ):
            due = self.schedule.date(order, dated_by, heavy, now)
            row = next_row(order.report, order.visit, order.row, record.belief, rate, heavy, order.fault)
            marks = order.row.marks if order.row is not None else ()
            if row.reads:
                marks = marked(marks, Mark(importance, ticks, clock, int(now)), apart)
            row = msgspec.structs.replace(
                row,
                marks=marks,
                claims=record.claims,
                counted=model.count(order.page, order.row, row, code),
                capped=capped,
                diary=record.diary,
            )
            self.partition.put(rows.REFRESH.key(order.page), rows.pack(row))
            self.freshness.settled(order.page, order.report, order.visit, order.row, row)
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
        found: list[int] = np.minimum(age, int(self.ledger.settled * TICKS)).tolist()
        return found

    def _timed(self, order: Settled, record: ChangeRecord) -> Callable[[float], float] | None:
        """Return the function from interval to time of read, just after the change, for a page that changes by the
        clock."""
        if record.habit is None or order.visit.state is not State.READ:
            return None
        habit, ended = record.habit, order.report.ended
        draw = drawn(order.page, order.row.reads if order.row is not None else 0)
        return lambda wait: timed(habit, ended, wait, draw)
