"""The scheduler chooses what a partition reads next, as orders: requests, retries, revisits, unread pages rich in cash.

Before: frontier.py has applied the reports of the turn and revisit_dates.py has dated their pages. After: the orders
leave with the commit group for the fetch queue, whose host they wait for.

    wanted      filled by people, publishers and loads, emptied by every turn (requests.py)
    overflow    filled from `wanted` with pages of hosts that have very many orders out, emptied as these are answered
    deadlines   filled from `wanted` with what has a deadline and the bandwidth does not allow for (due_queue.py)
    retries     filled by temporary failures, emptied when their time has come (revisit_dates.py)
    revisits    pages that are due, and those whose host had no room for them (revisits.py, due_queue.py)
    discovery   not a queue: a scan of the columns for hosts that run low on orders (discovery.py)
    parking     filled from all but the last with pages of hosts that a person holds, or that [[blackouts]] and
                [[budgets]] shut (host_limits.py), emptied when the host opens (leases.py)

How many orders may be out, of a host and in all, OrderQuota says (leases.py): that bounds the fetch queue. How
discovery and refresh share the reads Gamma says (bandwidth.py): each keeps orders of its own out at every host, and the
fetch queue takes them by gamma when the host is read. What a queue says is a hint: the columns decide whether the
page is still wanted, due or to be tried again.

Bottleneck: is it the machine that limits what is read, or do a few slow hosts? A host whose pages wait is read as fast
as it may be, whatever the crawl could do besides. Were that taken for the capacity of all, one slow host with more
pages than it can serve would make the intervals of every other host as long as its own. So there is more to read than
is read when the hosts that wait are at least half of those that have pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import DAY, LEAST_BURST, Bandwidth, Gamma, Governor, second
from xyro.frontier.discovery import Discovery
from xyro.frontier.due_queue import Deadlines
from xyro.frontier.freshness import Freshness
from xyro.frontier.hooks import Hooks
from xyro.frontier.host_limits import HostLimits
from xyro.frontier.leases import ORDERS_OUT, HostQueues, Leases, OrderQuota, Parking
from xyro.frontier.ledger import Ledger
from xyro.frontier.look_ahead import LookAhead
from xyro.frontier.requests import Requests
from xyro.frontier.revisit_dates import Schedule
from xyro.frontier.revisits import Revisits
from xyro.frontier.scope_change import ScopeChange
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HINTED, LEASED, WANTED, State
from xyro.wire.ids import LocalPage
from xyro.wire.messages import FetchOrder, Priority

ORDERS_A_TURN = 1_000
"""most orders that one turn gives out: some 25 ms. The first turns of a crawl of thousands of hosts took up to 300"""


class Scheduler:
    """`orders` at the end of every turn. refreshing: pages read are read again when due."""

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        bandwidth: Bandwidth,
        freshness: Freshness,
        settings: Settings,
        refreshing: bool,
        hooks: Hooks,
        scope_change: ScopeChange,
        ahead: bool = False,
    ) -> None:
        self.partition = partition
        self.settings = settings
        self.leases = Leases(partition, whole=not settings.store.links)
        self.order_quota = OrderQuota(self.leases, partition.hosts, settings.store.leases_per_host)
        self.host_limits = HostLimits(partition.hosts, settings.budgets, settings.blackouts)
        self.parking = Parking(partition, self.host_limits)
        self.requests, self.overflow = Requests(partition), HostQueues()
        self.bandwidth = bandwidth
        self.schedule = Schedule(partition, ledger, bandwidth, freshness, settings, refreshing, ahead)
        self.due_queue = self.schedule.due_queue
        self.deadlines = Deadlines(self.due_queue, settings.publish.deadline, refreshing, hooks.deadline)
        self.gamma = Gamma(settings.refresh, freshness.fresh)
        self.look_ahead = LookAhead(partition, self.host_limits, self.order_quota, refreshing, settings.politeness)
        self.revisits = Revisits(
            partition,
            settings,
            self.schedule,
            self.leases,
            self.parking,
            freshness.audits,
            self.look_ahead,
        )
        endless = refreshing and not ahead
        self.discovery = Discovery(partition, ledger, settings, self.host_limits, self.look_ahead, endless)
        self.new_pages = Governor()
        """reads of new pages, where the bandwidth that is set covers them"""
        self.bottleneck = Bottleneck(partition, self.host_limits)
        self.scope_change = scope_change
        """what a change of scope has not reached yet"""
        self._outbox_full = False
        """no new page is ordered: what they lead to could not leave (outbox.py)"""
        self._now = 0.0
        self._busy = False
        """at the last turn there was more to read than went out"""
        self._cut = False
        """the last turn gave out as many orders as one may"""

    def reconfigure(self, settings: Settings) -> None:
        """Other settings (SIGHUP), between two turns: how often and what is read follows from the next turn on."""
        self.settings = settings
        self.discovery.follow(settings)
        self.gamma.follow(settings.refresh)
        self.host_limits.follow(settings.budgets, settings.blackouts)
        self.look_ahead.follow(settings.politeness)
        self.schedule.reconfigure(settings)

    # -- looks ---------------------------------------------------------------------------------------------------

    @property
    def most_reads(self) -> float:
        """Reads a day that politeness allows of all hosts with pages that were read; see Bottleneck."""
        return self.bottleneck.most_reads(self.settings.politeness.usual_gap)

    @property
    def unread(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that nobody holds."""
        return self.discovery.waiting

    def unread_before(self, soon: float) -> int:
        """Count the unread pages that wait, but for hosts that are left alone beyond `soon` for a challenge."""
        hosts, challenged = self.partition.hosts, self.host_limits.challenged
        late = sum(int(hosts.waiting[host]) for host, until in challenged.items() if until > soon and hosts.open[host])
        return self.discovery.waiting - late

    @property
    def challenged(self) -> bool:
        """Do pages wait for hosts that are left alone for a challenge?"""
        hosts = self.partition.hosts
        return any(hosts.waiting[host] or self.parking.has(host) for host in self.host_limits.challenged)

    @property
    def shut_out(self) -> bool:
        """Do pages wait for the end of a blackout, or for a new day's budget?"""
        return self.parking.shut_out

    def next_time(self) -> float:
        """Return when a page that is not yet out becomes due (wall clock); infinite if none will."""
        if self.scope_change.pending or self._cut:
            return 0.0
        credit = self.due_queue.next_credit(self._now) if self.revisits.host_queues else math.inf
        opens = min((until for until, _ in self.host_limits.until.values()), default=math.inf)
        ready = (self.bandwidth.covers_all or self.discovery.rests_until) and self.discovery.ready
        new = self._next_new() if ready and not self._outbox_full else math.inf
        return min(self.schedule.next_time(self._now), credit, opens, self.deadlines.next_time(self._now), new)

    @property
    def may_discover(self) -> bool:
        """Do unread pages wait that the bandwidth allows to be read now?"""
        if self._outbox_full or not self.discovery.waiting:
            return False
        return self._next_new() <= self._now

    def _next_new(self) -> float:
        """Return when a new page may be read: out of the bandwidth, if that covers them; of poor pages, if those are
        all, after the last of them."""
        rest = self.discovery.rests_until
        if rest and self.leases:
            return math.inf
        if not self.bandwidth.covers_all or self._unused_by_refresh >= 1:
            return max(self._now, rest)
        return max(self.new_pages.when(self._now, self._for_new_pages), rest)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            **self.schedule.dump(),
            "boot": self.leases.boot,
            **self.discovery.dump(),
            "gamma": self.gamma.percent,
            "limits": self.host_limits.dump() if self.host_limits.orders_today else {},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self.schedule.load(state)
        self.discovery.load(state)
        self.leases.begin_epoch(state["boot"] + 1)
        self.gamma.resume(state.get("gamma", self.gamma.percent))
        self.host_limits.load(state.get("limits", {}))

    def recover(self) -> None:
        """Rebuild the queues from columns and LEASE rows."""
        self.requests.recover()
        self.schedule.recover()

    # -- reports, hosts ------------------------------------------------------------------------------------------

    def answered(self, reads: int, now: float) -> None:
        """Count the orders of this turn that the web answered; their pages are dated next."""
        self.bandwidth.answered(reads, now, self._busy)
        self.discovery.count(reads)
        self.gamma.renew(now, self.discovery.reads, self.bandwidth)
        new = self.discovery.waiting > 0 and not self.discovery.poor_only
        contested = self.schedule.refreshing and (new or self.bandwidth.unread_elsewhere > 0) and not self._outbox_full
        self.bandwidth.share_out(self.gamma.refresh_share(contested, self.bandwidth.own))

    def drop(self, page: LocalPage, epoch: int) -> None:
        """The order was taken back unread (a person blocked its host, or that failed and is left alone while others can
        be read): it is to be given out again, later."""
        if self.leases.is_out(page, epoch):
            host = self.partition.hosts_of[page]
            clock = self.partition.hosts.clocks.get(host)
            if clock is not None and clock.failures and clock.next_at > self._now:
                self.host_limits.back_off(host, clock.next_at)
            self.leases.settle(page)
            self.revisits.dropped(page)
            if not self.parking.park(page):
                self._put_back(page)

    def put_aside(self, page: LocalPage, due: float = 0.0) -> None:
        """The answer of a page counts for nothing: it is asked again at `due`, or as if it had never been asked."""
        self.revisits.dropped(page)
        if self.parking.park(page):
            return
        if due and self.partition.states[page] == State.READ:
            self.schedule.put_due(page, second(due))
        else:
            self._put_back(page)

    def resume(self, host: int) -> None:
        """The host is open again."""
        for page in self.parking.leave(host):
            self._put_back(page)

    def _put_back(self, page: LocalPage) -> None:
        """Queue a page where it belongs; unread ones are found without a queue."""
        if self.partition.flags[page] & WANTED:
            self.requests.again(page)
        else:
            self.schedule.file(page)

    # -- orders --------------------------------------------------------------------------------------------------

    def orders(self, now: float, room: int, outbox_full: bool = False, others: bool = False) -> list[FetchOrder]:
        """The orders of this turn, most urgent first; at most `room` of them. Within a commit group. others: pages of
        other partitions are being read."""
        self._now, self._outbox_full = now, outbox_full
        if self.host_limits.on:
            for host in self.host_limits.renew(now):
                self.resume(host)
        self.bandwidth.renew(now)
        self.schedule.go_on(now)
        room = min(room, self.order_quota.free, ORDERS_A_TURN)
        found: list[FetchOrder] = []
        if room > 0:
            self.look_ahead.renew(self.gamma.agreed, self._allowed_new(now) > 0, others, now)
            if self.deadlines.waiting or self.overflow or any(self.requests.queues.values()):
                self._take_wanted(found, room)
            self._take_retries(found, room, now)
            if self.schedule.refreshing and not self.schedule.still:
                self._take_rereads(found, room, now)
            self._take_unread(found, room, now)
        self._cut = len(found) >= ORDERS_A_TURN
        self._busy = self.due_queue.behind or self.bottleneck.waits(self.revisits.host_queues, now)
        self.bandwidth.store(self.partition)
        partition = self.partition
        for key, value in chain(
            partition.standing.changes(), partition.introductions.changes(), partition.costs.changes()
        ):
            partition.put(key, value)
        return found

    def _take_wanted(self, found: list[FetchOrder], room: int) -> None:
        while self.deadlines.waiting and len(found) < room and (page := self.deadlines.pop()) is not None:
            self._take_one(page, Priority.ORDERED, found)
        self._take_overflow(found, room)
        while len(found) < room and (wanted := self.requests.pop()) is not None:
            page, priority = wanted
            if priority is not Priority.BLOCKING and self._is_host_full(page):
                self.overflow.put(self.partition.hosts_of[page], page, int(self._now))
            else:
                self._take_one(page, priority, found)

    def _take_overflow(self, found: list[FetchOrder], room: int) -> None:
        """Order the requests for hosts that had too many orders out, as far as places have come free since."""
        if not self.overflow:
            return
        leased = self.partition.hosts.leased

        def claim(host: int) -> bool:
            return len(found) < room and bool(leased[host] < self.order_quota.wanted_per_host)

        has_room = leased < self.order_quota.wanted_per_host
        for page in self.overflow.take(has_room, self._now, lambda page, since: True, claim):
            self._take_one(page, Priority.ORDERED, found)

    def _is_host_full(self, page: LocalPage) -> bool:
        """Tell whether so many orders of its host are out that a page without a deadline has to wait."""
        if self.partition.flags[page] & LEASED or self.deadlines.deadline_of(page):
            return False
        return bool(self.partition.hosts.leased[self.partition.hosts_of[page]] >= self.order_quota.wanted_per_host)

    def _take_one(self, page: LocalPage, priority: Priority, found: list[FetchOrder]) -> None:
        """A page that is still wanted; where an order for it is out, that one moves up instead of waiting its turn."""
        flags = self.partition.flags[page]
        if not flags & WANTED:
            return
        if flags & LEASED:
            found.append(self.leases.raised(page, priority, self._deadline(page, priority), self._now))
        elif not self._may_read(page, priority):
            self.requests.release(page)  # it was wanted before a restart, by another scope
        elif not self.parking.park(page):
            row = self.partition.row(page)
            again = priority is Priority.ORDERED and row is not None and row.reads > 0
            if not again or self.deadlines.pay(page):
                found.append(self._order(page, priority, row))

    def _take_retries(self, found: list[FetchOrder], room: int, now: float) -> None:
        if len(found) >= room:
            return
        for page in self.schedule.to_retry(now):
            if self._is_outside(page) or self.parking.park(page):
                continue
            if (deadline := self.deadlines.deadline_of(page)) or self._has_room(page):
                row = self.partition.row(page)
                level = Priority.REFRESH if row is not None and row.reads > 0 else Priority.DISCOVER
                if level is Priority.DISCOVER and self.bandwidth.covers_all:
                    self.new_pages.spend()
                found.append(self._order(page, Priority.ORDERED if deadline else level, row))
                if len(found) >= room:
                    return
            else:
                self.schedule.retry(page, now + 1.0)

    def _take_rereads(self, found: list[FetchOrder], room: int, now: float) -> None:
        room -= len(found)
        if self.order_quota.scarce and self.discovery.ready:
            room = self.order_quota.part(room, self.gamma.agreed)
        for page, row in self.revisits.take(now, room):
            if self._is_outside(page):
                self.revisits.dropped(page)
                continue
            found.append(self._order(page, Priority.REFRESH, row))

    def _take_unread(self, found: list[FetchOrder], room: int, now: float) -> None:
        room = min(room - len(found), self._allowed_new(now))
        for page, priority in self.discovery.take(room, len(self.leases) > 0, now):
            host = self.partition.hosts_of[page]
            if host in self.host_limits.until or self._is_outside(page):
                continue  # its host's budget ended with an order before it, or it left the scope
            self._pay_new()
            row = self.partition.row(page) if self.partition.flags[page] & HINTED else None
            found.append(self._order(page, priority, row))
        if self.gamma.seeks(now):
            self.gamma.hear(self.discovery.margin(self.bandwidth, now), now)

    def _may_read(self, page: LocalPage, priority: Priority) -> bool:
        """Tell whether a wanted page may be read, by the scope of now."""
        self._is_outside(page)
        return self.requests.may_read(page, priority)

    def _is_outside(self, page: LocalPage) -> bool:
        """Tell whether the page is one that a change of scope takes out of it, and has not reached before now."""
        if not self.scope_change.pending:
            return False
        self.scope_change.settle((page,))
        return self.partition.states[page] in _NEVER

    def _allowed_new(self, now: float) -> int:
        """Return how many new pages are allowed: of a bandwidth discovery's part by gamma, and what refresh leaves."""
        if self._outbox_full:
            return 0
        if not self.bandwidth.covers_all:
            return ORDERS_OUT
        self.new_pages.advance(now, self._for_new_pages)
        return max(int(self.new_pages.credit), 0) + self._unused_by_refresh

    @property
    def _for_new_pages(self) -> float:
        """Reads a second of a bandwidth that covers new pages which are theirs."""
        whole = self.bandwidth.for_new_pages(self.discovery.waiting)
        return whole * (1.0 - self.bandwidth.share if self.schedule.refreshing else 1.0)

    @property
    def _unused_by_refresh(self) -> int:
        """Reads that refresh has earned, and had no page for: it looks for some once in a unit of time."""
        if self.due_queue.behind or self.revisits.host_queues:
            return 0
        kept = max(LEAST_BURST, 2.0 * self.due_queue.folders.unit_seconds * self.bandwidth.reads_per_second)
        return max(int(self.due_queue.governor.credit - kept), 0)

    def _pay_new(self) -> None:
        if self.bandwidth.covers_all:
            (self.new_pages if self.new_pages.credit >= 1.0 else self.due_queue.governor).spend()

    def _has_room(self, page: LocalPage) -> bool:
        """Tell whether a page that failed may be tried again: whatever kind it is, its host has few orders out."""
        return bool(self.partition.hosts.leased[self.partition.hosts_of[page]] < self.order_quota.per_host)

    def _order(self, page: LocalPage, priority: Priority, row: RefreshRow | None) -> FetchOrder:
        if self.host_limits.on:
            self.host_limits.count(self.partition.hosts_of[page], self._now)
        self.partition.standing.serve(page, self._now)
        return self.leases.order(page, priority, row, self._deadline(page, priority), self._since(page, priority))

    def _since(self, page: LocalPage, priority: Priority) -> float:
        """Return when the page was due, or was to be tried again; now, where nothing but this order dates it."""
        due = float(self.partition.columns["due"][page]) if priority > Priority.ORDERED else 0.0
        return min(due or self._now, self._now)

    def _deadline(self, page: LocalPage, priority: Priority) -> float:
        return self.deadlines.deadline(page, self._now) if priority is Priority.ORDERED else 0.0


LOOK = 600.0
"""seconds between two looks at which hosts have pages that are refreshed (60 ms for 10 M pages)"""
SHARE = 0.5
_READ = int(State.READ)
_NEVER = (int(State.OUT), int(State.BLOCKED))


class Bottleneck:
    """`waits` at the end of each turn."""

    def __init__(self, partition: Partition, host_limits: HostLimits) -> None:
        self.partition = partition
        self.host_limits = host_limits
        self._refreshed: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """hosts with a page that was read, at the last look"""
        self._next = -math.inf

    def waits(self, lined: Iterable[int], now: float) -> bool:
        """Do half of the hosts wait? lined: those with due pages that found no place."""
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        waiting = hosts.waiting[:count] > 0
        waiting[list(lined)] = True
        waiting &= hosts.open[:count]
        if self.host_limits.until:
            waiting &= ~self.host_limits.shut[:count]
        if not waiting.any():
            return False
        refreshed = self._look(now)
        dated = int(waiting.sum()) + int((refreshed & ~waiting[: len(refreshed)]).sum())
        return int(waiting.sum()) >= SHARE * dated

    def most_reads(self, usual_gap: float) -> float:
        """Reads a day that politeness allows of all hosts with pages that were read; infinite where there are none.
        60 ms for 10 M pages."""
        gaps = self.partition.hosts.gaps(usual_gap)[self._refreshed_hosts()]
        return float((DAY / gaps).sum()) if len(gaps) and gaps.all() else math.inf

    def _look(self, now: float) -> NDArray[np.bool_]:
        if not self._next - LOOK <= now < self._next:
            self._refreshed, self._next = self._refreshed_hosts(), now + LOOK
        return self._refreshed

    def _refreshed_hosts(self) -> NDArray[np.bool_]:
        columns = self.partition.columns
        found = np.zeros(len(self.partition.hosts), np.bool_)
        found[columns["host"][: columns.n][columns["state"][: columns.n] == _READ]] = True
        return found
