"""What to read next, of one partition: what somebody wants, retries, pages to be read again, pages that are rich.

    wanted    filled by people, publishers and loads, emptied by every turn (requests.py)
    crowded   filled from `wanted` with pages of hosts that have very many orders out, emptied as these are answered
    promised  filled from `wanted` with what has a deadline and the bandwidth does not allow for (promised.py)
    retries   filled by temporary failures, emptied when their time has come (schedule.py)
    rereads   pages that are due, and those whose host had no room for them (revisits.py, schedule.py, host_queues.py)
    unread    not a queue: a scan of the columns for hosts that run low on orders (discovery.py)
    parking   filled from all but the last with pages of hosts that a person holds, or that [[blackouts]] and
              [[budgets]] shut (host_limits.py), emptied when the host opens (parking.py)

How many orders may be out, of a host and in all, is places.py's to say: that bounds the fetch queue. How discovery and
refresh share them is gamma.py's. What a queue says is a hint: the columns decide whether the page is still wanted,
due or to be tried again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bottleneck import Crowd
from xyro.frontier.deadlines import Promised
from xyro.frontier.discovery import Unread
from xyro.frontier.due_queue import DuePages
from xyro.frontier.gamma import Sharing
from xyro.frontier.host_limits import Limits
from xyro.frontier.host_queues import Lines
from xyro.frontier.leases import Leases
from xyro.frontier.ledger import Ledger
from xyro.frontier.order_quota import Places
from xyro.frontier.parking import Parking
from xyro.frontier.requests import Wanted
from xyro.frontier.revisits import Rereads
from xyro.frontier.schedule import Agenda
from xyro.metadata.manager import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HINTED, LEASED, WANTED
from xyro.opic.choose import Sweep
from xyro.refresh.split import Turns
from xyro.wire.messages import FetchOrder, Priority


class Planner:
    """`orders` at the end of every turn. refreshing: pages read are read again when due."""

    def __init__(self, partition: Partition, ledger: Ledger, settings: Settings, refreshing: bool) -> None:
        self.partition = partition
        self.settings = settings
        self.leases = Leases(partition, whole=not settings.store.links)
        self.places = Places(self.leases, partition.hosts, settings.store.leases_per_host)
        self.limits = Limits(partition.hosts, settings.budgets, settings.blackouts)
        self.parking = Parking(partition, self.limits)
        self.wanted, self.crowded = Wanted(partition), Lines()
        self.agenda = Agenda(partition, ledger, settings, refreshing, self._shut_hosts)
        self.pace = self.agenda.pace
        self.promised = Promised(self.agenda, settings.publish.deadline, refreshing)
        self.sharing, self.turns = Sharing(settings.refresh), Turns()
        self.rereads = Rereads(
            partition, settings, self.agenda, self.leases, self.places, self.parking, self.sharing, self.turns
        )
        self.discovery = Unread(partition, ledger, settings, self.limits, self.places, self.turns)
        self.crowd = Crowd(partition, self.limits)
        self._now = 0.0
        self._busy = False
        """at the last turn there was more to read than went out"""

    @property
    def due(self) -> DuePages:
        """Who finds the pages whose time has come, as of now: a switch of execution replaces it."""
        return self.agenda.due

    def _shut_hosts(self) -> NDArray[np.bool_]:
        """Hosts whose pages could not be ordered now: held, shut, full, or with pages that wait for a place."""
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        shut = ~hosts.open[:count] | (hosts.leased[:count] >= self.places.per_host)
        shut[[*self.limits.until, *self.rereads.lines]] = True
        return shut

    def reconfigure(self, settings: Settings) -> None:
        """Other settings (SIGHUP), between two turns: how often and what is read follows from the next turn on."""
        self.settings = self.discovery.settings = settings
        self.sharing.follow(settings.refresh)
        self.limits.follow(settings.budgets, settings.blackouts)
        self.agenda.reconfigure(settings)

    # -- looks ---------------------------------------------------------------------------------------------------

    @property
    def unread(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that nobody holds."""
        return self.discovery.waiting

    @property
    def shut_out(self) -> bool:
        """Do pages wait for the end of a blackout, or for a new day's budget?"""
        return self.parking.shut_out

    @property
    def gamma(self) -> float:
        """Percent of the orders for discovery, as of now."""
        return self.sharing.gamma

    def next_time(self) -> float:
        """When something becomes due that is not yet out (wall clock); infinite if nothing will."""
        credit = self.due.next_credit(self._now) if self.rereads.lines else math.inf
        opens = min((until for until, _ in self.limits.until.values()), default=math.inf)
        return min(self.agenda.next_time(self._now), credit, opens, self.promised.next_time(self._now))

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            **self.agenda.dump(),
            "finder": self.discovery.finder.dump(),
            "boot": self.leases.boot,
            "reads": self.discovery.reads,
            "gamma": self.sharing.gamma,
            "limits": self.limits.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self.agenda.load(state)
        self.discovery.finder = Sweep.load(state["finder"])
        self.leases.boot = state["boot"] + 1
        self.discovery.reads = state["reads"]
        self.sharing.resume(state.get("gamma", self.sharing.gamma))
        self.limits.load(state.get("limits", {}))

    def recover(self) -> None:
        """Rebuild the queues from columns and LEASE rows."""
        self.wanted.recover()
        self.agenda.recover()

    # -- reports, hosts ------------------------------------------------------------------------------------------

    def answered(self, reads: int, now: float) -> None:
        """So many orders of this turn were answered by the web; their pages are dated next."""
        self.pace.answered(reads, now, self._busy)
        self.discovery.reads += reads
        self.sharing.renew(now, self.discovery.reads, self.pace)
        contested = self.agenda.refreshing and self.discovery.waiting > 0
        self.pace.share = self.sharing.refresh_share(contested, self.pace.fixed > 0.0)

    def drop(self, page: int, epoch: int) -> None:
        """The order was taken back unread (a person blocked its host): it is to be given out again, later."""
        if self.leases.is_out(page, epoch):
            self.leases.settle(page)
            self.rereads.dropped(page)
            if not self.parking.park(page):
                self._put_back(page)

    def resume(self, host: int) -> None:
        """The host is open again."""
        for page in self.parking.leave(host):
            self._put_back(page)

    def _put_back(self, page: int) -> None:
        """Queue a page where it belongs; unread ones are found without a queue."""
        if self.partition.flags[page] & WANTED:
            self.wanted.again(page)
        else:
            self.agenda.file(page)

    # -- orders --------------------------------------------------------------------------------------------------

    def orders(self, now: float, room: int) -> list[FetchOrder]:
        """The orders of this turn, most urgent first; at most `room` of them. Within a commit group."""
        self._now = now
        for host in self.limits.renew(now):
            self.resume(host)
        self.pace.renew(now)
        self.agenda.go_on_counting()
        room = min(room, self.places.free)
        found: list[FetchOrder] = []
        if room > 0:
            self._take_wanted(found, room)
            self._take_retries(found, room, now)
            if self.agenda.refreshing:
                self._take_rereads(found, room, now)
            self._take_unread(found, room, now)
        self._busy = self.due.behind or self.crowd.waits(self.rereads.lines, now)
        self.pace.store(self.partition)
        return found

    def _take_wanted(self, found: list[FetchOrder], room: int) -> None:
        while len(found) < room and (page := self.promised.pop()) is not None:
            self._take_one(page, Priority.ORDERED, found)
        self._take_crowded(found, room)
        while len(found) < room and (wanted := self.wanted.pop()) is not None:
            page, priority = wanted
            if priority is not Priority.BLOCKING and self._is_crowded(page):
                self.crowded.put(self.partition.hosts_of[page], page)
            else:
                self._take_one(page, priority, found)

    def _take_crowded(self, found: list[FetchOrder], room: int) -> None:
        """What people want of hosts that had too many orders out, as far as places have come free since."""
        if not self.crowded:
            return
        leased = self.partition.hosts.leased

        def claim(host: int) -> bool:
            return len(found) < room and bool(leased[host] < self.places.wanted_per_host)

        for page in self.crowded.take(leased, self.places.wanted_per_host, lambda page: True, claim):
            self._take_one(page, Priority.ORDERED, found)

    def _is_crowded(self, page: int) -> bool:
        """Are so many orders of its host out that a page that nobody was promised has to wait?"""
        if self.partition.flags[page] & LEASED or self.promised.of(page):
            return False
        return bool(self.partition.hosts.leased[self.partition.hosts_of[page]] >= self.places.wanted_per_host)

    def _take_one(self, page: int, priority: Priority, found: list[FetchOrder]) -> None:
        """A page that is still wanted; where an order for it is out, that one moves up instead of waiting its turn."""
        flags = self.partition.flags[page]
        if not flags & WANTED:
            return
        if flags & LEASED:
            found.append(self.leases.raised(page, priority, self._deadline(page, priority)))
        elif not self.wanted.may_read(page, priority):
            self.wanted.release(page)  # it was wanted before a restart, by another scope
        elif not self.parking.park(page):
            row = self.partition.row(page)
            again = priority is Priority.ORDERED and row is not None and row.reads > 0
            if not again or self.promised.pay(page):
                found.append(self._order(page, priority, row))

    def _take_retries(self, found: list[FetchOrder], room: int, now: float) -> None:
        if len(found) >= room:
            return
        for page in self.agenda.to_retry(now):
            if self.parking.park(page):
                continue
            if (promised := self.promised.of(page)) or self._has_room(page):
                row = self.partition.row(page)
                level = Priority.REFRESH if row is not None and row.reads > 0 else Priority.DISCOVER
                found.append(self._order(page, Priority.ORDERED if promised else level, row))
                if len(found) >= room:
                    return
            else:
                self.agenda.retry(page, now + 1.0)

    def _take_rereads(self, found: list[FetchOrder], room: int, now: float) -> None:
        room -= len(found)
        if self.places.scarce and self.discovery.ready:
            room = self.places.part(room, self.sharing.gamma)
        for page, row in self.rereads.take(now, room):
            found.append(self._order(page, Priority.REFRESH, row))

    def _take_unread(self, found: list[FetchOrder], room: int, now: float) -> None:
        for page, priority in self.discovery.take(room - len(found), len(self.leases) > 0, self.sharing.gamma):
            host = self.partition.hosts_of[page]
            if host in self.limits.until:
                continue  # its host's budget ended with an order before it
            self.turns.discovery(host)
            row = self.partition.row(page) if self.partition.flags[page] & HINTED else None
            found.append(self._order(page, priority, row))
        if self.sharing.seeks(now):
            self.sharing.hear(self.discovery.margin(self.pace, now), now)

    def _has_room(self, page: int) -> bool:
        return self.places.room(self.partition.hosts_of[page]) > 0

    def _order(self, page: int, priority: Priority, row: RefreshRow | None) -> FetchOrder:
        self.limits.count(self.partition.hosts_of[page], self._now)
        return self.leases.order(page, priority, row, self._deadline(page, priority))

    def _deadline(self, page: int, priority: Priority) -> float:
        return self.promised.deadline(page, self._now) if priority is Priority.ORDERED else 0.0
