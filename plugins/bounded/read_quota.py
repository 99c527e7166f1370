"""The reads that one partition may make in a bounded run of the cluster.

    charged = reads of the run + orders that are out + orders that were out when a process was killed
    room    = granted - charged

The state is stored with every commit group, so with the orders that it charges, and goes with the partition wherever it
moves. A partition that runs low asks the home partition for more, and gives back what it has no page for.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.plugins.bounded.bound_messages import AskReads, BoundReads, CountReads, GrantReads
from xyro.plugins.bounded.quota_pool import GRANT, QuotaPool
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.frontier.batch import Settled
    from xyro.frontier.frontier import Frontier

KEY = "bounded"
UNBOUNDED = 1 << 30
LOST = 512
"""orders at most that a killed process may have read, and not yet told (node.py: AT_RISK, and those under way)"""
SOONEST, LATEST = 2.0, 30.0
"""seconds until a question without an answer is asked again; doubles each time"""
PATIENCE = 30.0
"""a run ends when no retry is due within so many seconds"""


class ReadQuota:
    """Registers with the hooks of one frontier."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self.run = self.pages = self._serial = self._granted = self._base = self._lost = self._bytes = 0
        self.until = math.inf
        self._earlier = 0
        """the last order that was made before the run; 0 after a restart, which no order outlives"""
        self.begun = asyncio.Event()
        """set when a run begins"""
        self._refresh = True
        self._errors: Counter[str] = Counter()
        self._asks = self._dry = False
        """it waits for reads; the home partition said that there are none now"""
        self._again = math.inf
        """wall clock: when it asks again"""
        self._wait = SOONEST
        self._pool: QuotaPool | None = None
        hooks, commands = frontier.hooks, frontier.commands
        if state := hooks.stored.get(KEY):
            self._load(state)
        hooks.keep(KEY, self.dump)
        hooks.status[KEY] = self.figures
        hooks.limits.append(self.room)
        hooks.alarms.append(lambda: self._again)
        hooks.settled.append(self._settled)
        commands.handle(BoundReads, self._begin)
        commands.handle(AskReads, self._share_out)
        commands.handle(GrantReads, self._take)
        commands.handle(CountReads, self.counts)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> list[Any]:
        """Plain values, as of the end of a turn: its orders are out."""
        numbers = [self._serial, self._granted, self._base, self._lost, len(self._frontier.scheduler.leases)]
        shares = [] if self._pool is None else self._pool.dump()
        return [self.run, self.pages, self.until, self._refresh, numbers, self._bytes, dict(self._errors), shares]

    def _load(self, state: Sequence[Any]) -> None:
        self.run, self.pages, self.until, self._refresh, numbers, self._bytes, errors, shares = state
        self._serial, self._granted, self._base, self._lost, out = numbers
        self._lost += min(out, LOST)
        self._errors = Counter(errors)
        self._follow(shares)
        if self.run and self.pages:
            self._again = 0.0  # what was said before the restart may have been lost: say it anew

    def _follow(self, shares: Sequence[Sequence[int]] = ()) -> None:
        self._frontier.scheduler.schedule.pause(bool(self.run) and not self._refresh)
        home = self._frontier.partition.number == HOME and self.pages
        self._pool = QuotaPool(self.pages, shares) if home else None

    # -- the run -------------------------------------------------------------------------------------------------

    def _begin(self, command: BoundReads) -> None:
        if command.run == self.run:
            self.until = min(self.until, command.until)
        elif not command.run or command.run > self.run:
            self.run, self.pages, self.until, self._refresh = (
                *(command.run, command.pages, command.until),
                command.refresh,
            )
            self._base, self._granted, self._lost, self._bytes = self._frontier.reads, 0, 0, 0
            self._earlier = self._frontier.scheduler.leases.next_epoch()
            self._errors.clear()
            self._asks, self._again = False, math.inf
            self._follow()
            self.begun.set()

    @property
    def _charged(self) -> int:
        return self._frontier.reads - self._base + self._lost + len(self._frontier.scheduler.leases)

    def room(self, now: float) -> int:
        """Reads that may be ordered now."""
        if not self.run:
            return UNBOUNDED
        if now >= self.until:
            return 0
        return self._granted - self._charged if self.pages else UNBOUNDED

    def _settled(self, settled: Sequence[Settled], now: float) -> None:
        """Count what a turn settled, and ask for what the next orders need."""
        if not self.run:
            return
        for order in settled:
            if order.lease.epoch <= self._earlier:  # its request was under way, and nobody granted it
                self._base += order.visit.answered
                continue
            self._bytes += order.report.size
            if order.report.error:
                self._errors[order.report.error] += 1
        if self.pages:
            self._trade(now)

    # -- quota ---------------------------------------------------------------------------------------------------

    def _backlog(self, now: float) -> int:
        """About how many pages wait to be read."""
        scheduler = self._frontier.scheduler
        due = GRANT if scheduler.next_time() <= now else 0
        return scheduler.unread + len(scheduler.requests) + scheduler.overflow.pages() + due

    def _trade(self, now: float) -> None:
        room, backlog, again = self.room(now), self._backlog(now), self._again <= now
        if now >= self.until:
            self._asks, self._again = False, math.inf
        elif room < min(backlog, GRANT // 2):
            if not self._asks or again:
                self._wait = min(2.0 * self._wait, LATEST) if self._asks else SOONEST
                self._asks, self._dry, self._again = True, False, now + self._wait
                self._ask(min(backlog, GRANT) - min(room, 0))
        elif again or (self._idle_room(backlog) and room > 0):
            self._asks, self._again = False, math.inf
            if self._idle_room(backlog):
                self._granted -= room
            self._ask(0)

    def _idle_room(self, backlog: int) -> bool:
        """Nothing here could use what is granted."""
        return not backlog and not self._frontier.scheduler.leases and not self._frontier.loads.loading

    def _ask(self, wants: int) -> None:
        self._serial += 1
        number = self._frontier.partition.number
        self._frontier.hooks.post(HOME, AskReads(0, number, self.run, self._serial, self._granted, wants))

    def _share_out(self, ask: AskReads) -> None:
        """The home partition: take a word, and grant what there is."""
        if ask.run != self.run or self._pool is None:
            return
        self._pool.hear(ask)
        granted = {source for source, *_ in map(self._grant, self._pool.grants())}
        if ask.wants and ask.source not in granted:
            self._grant((ask.source, *self._pool.answer(ask.source)))

    def _grant(self, grant: tuple[int, int, int]) -> tuple[int, int, int]:
        source, serial, reads = grant
        self._frontier.hooks.post(source, GrantReads(0, self.run, serial, reads))
        return grant

    def _take(self, grant: GrantReads) -> None:
        if grant.run != self.run or grant.serial != self._serial:
            return
        if grant.granted > self._granted:
            self._granted = grant.granted
            self._asks, self._again = False, math.inf
        elif self._asks:
            self._dry, self._again = True, self._frontier.now + LATEST

    # -- figures -------------------------------------------------------------------------------------------------

    def figures(self, now: float) -> dict[str, Any]:
        """The bounds that hold, and how far they are used, for `status`; empty where none do."""
        if not self.run:
            return {}
        out_of_reads = bool(self.pages) and self._asks and self._dry and self.room(now) <= 0
        return {
            "bounds": {"run": self.run, "pages": self.pages, "refresh": self._refresh},
            "reads": {"charged": self._charged, "out_of_time": now >= self.until, "out_of_reads": out_of_reads},
        }

    # -- counts --------------------------------------------------------------------------------------------------

    def counts(self, question: CountReads) -> dict[str, Any]:
        """One partition's line of a round of counts (run_end.py)."""
        frontier, now = self._frontier, question.now
        scheduler, room = frontier.scheduler, self.room(now)
        hungry = bool(self.pages) and room <= 0 and self._backlog(now) > 0
        busy = scheduler.leases or scheduler.requests.elsewhere or frontier.hooks.posts
        waits = self._asks and not self._dry
        exhausted = frontier.exhausted(now + PATIENCE, self._refresh) and not frontier.loads.loading
        return {
            "run": self.run,
            "reads": frontier.reads - self._base,
            "reads_total": frontier.reads,
            "pages": frontier.ledger.known_pages,
            "sent": sum(frontier.outbox.sent.values()),
            "received": sum(frontier.outbox.applied.values()),
            "granted": self._granted,
            "shared": 0 if self._pool is None else self._pool.granted,
            "charged": self._charged if self.run else 0,
            "idle": not busy and not waits,
            "exhausted": exhausted,
            "hungry": hungry,
            "over": now >= self.until,
            "challenged": scheduler.challenged,
            "errors": dict(self._errors),
            "bytes": self._bytes,
        }
