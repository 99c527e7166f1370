"""Subscriptions of a running crawl: refreshed before their notice is due, then told what changed since the last one.

One heap says what is due (refresh/subscriptions.py); `run` orders pages and has notices told, WORKERS at once, one a
host (notice_outbox.py). Rows are in partition 0: a subscription is on disk before it is acknowledged, the number of
a notice
before it is told, and what was told after that. What nobody knows to have arrived is told again: with the same number
if it says the same of the pages, else with another one, so that who skips a number that he has misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from xyro.frontier.batch import Settled
from xyro.frontier.watch import Watch, is_pattern, scan
from xyro.metadata import rows
from xyro.plugins.publish import notices
from xyro.plugins.publish.compose import READABLE, compose, signatures
from xyro.plugins.publish.demand import Demand
from xyro.plugins.publish.notice_outbox import NOBODY, NoticeOutbox
from xyro.plugins.publish.publication_rows import described, made, stored
from xyro.plugins.publish.publish_messages import RefreshPages, RowTable, store_row
from xyro.plugins.publish.stored_rows import SubscriptionRow
from xyro.refresh.subscriptions import Act, Subscriptions
from xyro.service.node.seeds import why_refused
from xyro.service.node.slicing import unhurried
from xyro.wire.errors import InputError
from xyro.wire.ids import LocalPage, PageId, local_page, owner_of
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.service.node.services import Services

SUBSCRIPTION_LIMIT = 100_000
WORKERS = 8
TICK = 0.5
PAGES_AT_ONCE = 10_000
"""pages in one RefreshPages"""
IdOf = Callable[[LocalPage], PageId]
"""Partition.id_of of the partition that a hook is called by"""


class Subscribed:
    """The subscriptions of one node. `subscriptions` says what is due, and counts reads that came too late."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.watch = Watch(services.frontiers)
        self.subscriptions = Subscriptions()
        self.rows: dict[int, SubscriptionRow] = {}
        self._planned: dict[int, float] = {}
        """number -> since when its pages are being refreshed"""
        self._outbox = NoticeOutbox()
        """notices that are due: filled by `run`, emptied by `_send`, bounded by the subscriptions"""
        self._telling = 0
        """notices on their way, at most WORKERS"""
        self._doing = 0
        """of those that were due: neither planned nor told yet"""
        self._next = 1
        self._demand = Demand(services, self.watch)
        self._based: list[int] = []
        """those whose base was found by `recover`: not on disk yet"""
        self._registered = False

    def _register(self) -> None:
        """There are subscriptions: take part in the turns of the nodes from now on."""
        if self._registered:
            return
        self._registered = True
        for frontier in self.services.frontiers:
            id_of = frontier.partition.id_of
            frontier.hooks.deadlines.append(partial(_promised, self.subscriptions, id_of))
            frontier.hooks.settled.append(partial(self._settled, id_of))
            frontier.hooks.why.append(partial(self._why, id_of))
        self.services.frontiers[0].hooks.keep("subscriptions", self.subscriptions.dump)

    def _settled(self, id_of: IdOf, settled: Sequence[Settled], now: float) -> None:
        """Pages were read: were they overdue?"""
        if self.subscriptions.awaited or self.subscriptions.overdue:
            for order in settled:
                if order.visit.answered or order.report.final:
                    self.subscriptions.read(id_of(order.page), now)

    def _why(self, id_of: IdOf, page: LocalPage, now: float) -> list[str]:
        overdue = id_of(page) in self.subscriptions.overdue
        return ["A subscription's notice was due before it was refreshed."] if overdue else []

    def recover(self) -> None:
        """Once all nodes have recovered: take up the subscriptions, and find the pages of their targets."""
        self.subscriptions.load(self.services.frontiers[0].hooks.stored.get("subscriptions", {}))
        found = list(stored(self.services.frontiers[0].partition))
        if found:
            self._register()
        for _, row in found:
            self.watch.add(row.target)
        for frontier in self.services.frontiers if found else ():
            for target, page in scan(frontier.partition, self.watch.targets):
                self.watch.take(target, page)
        for number, row in found:
            if not row.based and not row.sequence and not row.seen:  # made while nothing ran: told of what changes now
                row = msgspec.structs.replace(
                    row, seen=dict(signatures(self.services, self.watch, row.target)), based=True
                )
                self._based.append(number)
            self.rows[number] = row
            self._next = max(self._next, number + 1)
            self.subscriptions.add(number, row.every, row.due, self._demand.lead(row.target), row.attempts)

    # -- people --------------------------------------------------------------------------------------------------

    async def subscribe(self, target: str, every: float, notify: str | Sequence[str]) -> int:
        """A URL or pattern, seconds, and a URL or a command. Its number, when it is on disk. InputError."""
        row = made(target, every, notify, self.services.clock.time(), self.services.scope.fold_slashes)
        if len(self.rows) >= SUBSCRIPTION_LIMIT:
            raise InputError(
                f"subscribe: there are {SUBSCRIPTION_LIMIT:,} subscriptions; end some with `xyro unsubscribe`"
            )
        self._check(row)
        self._register()
        number, self._next = self._next, self._next + 1
        await self._follow(row.target)
        seen = {
            page: signature async for page, signature in unhurried(signatures(self.services, self.watch, row.target))
        }
        row = msgspec.structs.replace(row, seen=seen, based=True)
        await self._store(number, row)
        if number in self.rows:  # nobody ended it meanwhile
            self.subscriptions.add(number, row.every, row.due, self._demand.lead(row.target))
        return number

    def _check(self, row: SubscriptionRow) -> None:
        """Would the crawl read it, and may the notice be told?"""
        scope = self.services.scope
        if not is_pattern(row.target) and (reason := scope.why_refused(row.target) or scope.why_out(row.target, 0)):
            raise InputError(f"{row.target}: {reason}: it would never be read; `xyro submit` widens the scope")
        if row.url and (reason := why_refused(row.url, scope)):
            raise InputError(f"--notify {row.url}: {reason}")

    async def _follow(self, target: str) -> None:
        """Watch a target, and find the pages that are known already."""
        if not self.watch.add(target):
            return
        if is_pattern(target):
            for frontier in self.services.frontiers:
                found = await asyncio.to_thread(scan, frontier.partition, self.watch.matches(target))
                for name, page in found:
                    self.watch.take(name, page)
            return
        page_id = self.services.lookup.find(target)
        if page_id is not None:
            self.watch.take(target, page_id)
        else:
            await self.services.submit([target], seed=False)

    async def unsubscribe(self, number: int) -> bool:
        """False: there is none of that number."""
        row = self.rows.pop(number, None)
        if row is None:
            return False
        self.subscriptions.remove(number)
        self._planned.pop(number, None)
        self.watch.drop(row.target)
        await store_row(self.services.commands, RowTable.SUBSCRIPTION, number, b"")
        return True

    def listed(self) -> Iterator[dict[str, Any]]:
        """For `xyro subscriptions`: those of now."""
        for number, row in list(self.rows.items()):
            yield described(number, row, self.watch.count(row.target))

    def counters(self) -> dict[str, Any]:
        """Counters, for `xyro status`."""
        return subscriptions_told(len(self.rows), self.subscriptions)

    @property
    def quiet(self) -> bool:
        """Nothing is due now, no notice is on its way."""
        return not self._doing and self.subscriptions.next_time() > self.services.clock.time()

    # -- the plan ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        for number in self._based:
            if number in self.rows:
                await self._store(number, self.rows[number])
        pages_of = self.watch.pages
        if unknown := {
            row.target for row in self.rows.values() if not is_pattern(row.target) and not pages_of(row.target)
        }:
            await self.services.submit(unknown, seed=False)
        async with asyncio.TaskGroup() as group:
            while True:
                await self._foresee()
                now = self.services.clock.time()
                due = self.subscriptions.pop(now)
                self._doing += len(due)
                plans = [event.number for event in due if event.act is Act.PLAN]
                await self._plan(plans, now)
                self._doing -= len(plans)
                for event in due:
                    if event.act is Act.NOTIFY:
                        self._put(event.number)
                self._send(group)
                wait = self.subscriptions.next_time() - self.services.clock.time()
                await self.services.clock.sleep(min(max(wait, 0.0), TICK))

    async def _plan(self, numbers: Sequence[int], now: float) -> None:
        """Order the pages of subscriptions whose notice comes near, all in one commit group a partition."""
        wanted: dict[int, dict[LocalPage, None]] = {}
        for number in numbers:
            self._planned[number] = now
            pages = list(filter(self._is_readable, self.watch.pages(self.rows[number].target)))
            self.subscriptions.promise(pages, self.subscriptions.due(number))
            for page in pages:
                wanted.setdefault(owner_of(page), {})[local_page(page)] = None

        await asyncio.gather(*(self._refresh(partition, list(pages)) for partition, pages in wanted.items()))
        for number in numbers:
            if number in self.rows:
                self.subscriptions.planned(number, now, self._demand.lead(self.rows[number].target))

    async def _refresh(self, partition: int, pages: Sequence[LocalPage]) -> None:
        """Order local pages; returns when that is on disk."""
        parts = [tuple(pages[first : first + PAGES_AT_ONCE]) for first in range(0, len(pages), PAGES_AT_ONCE)]
        ask = self.services.commands.send
        await asyncio.gather(*(ask(partition, partial(_refresh_pages, part)) for part in parts))

    def _is_readable(self, page: PageId) -> bool:
        return self.services.lookup.state(page) in READABLE

    async def _foresee(self) -> None:
        """Begin notices sooner where more is promised of their hosts than it seemed."""
        if self.rows and await self._demand.count({row.target for row in self.rows.values()}):
            async for number, row in unhurried(list(self.rows.items()), 1):
                self.subscriptions.foresee(number, self._demand.lead(row.target))

    # -- notices -------------------------------------------------------------------------------------------------

    def _put(self, number: int) -> None:
        row = self.rows.get(number)
        if row is None:  # unsubscribed meanwhile
            self._doing -= 1
        else:
            self._outbox.put(number, authority(row.url) if row.url else NOBODY)

    def _send(self, group: asyncio.TaskGroup) -> None:
        """Tell what may be told now."""
        now = self.services.clock.time()
        while self._telling < WORKERS and (next_one := self._outbox.take(now)) is not None:
            self._telling += 1
            group.create_task(self._deliver(group, *next_one))

    async def _deliver(self, group: asyncio.TaskGroup, number: int, host: str) -> None:
        if number in self.rows:
            await self._tell(group, number, host)
        else:  # unsubscribed meanwhile
            self._outbox.done(host)
        self._telling -= 1
        self._doing -= 1
        self._send(group)

    async def _tell(self, group: asyncio.TaskGroup, number: int, host: str) -> None:
        """The next one of its host goes out while what came of this one is put on disk."""
        row = self.rows[number]
        since = self._planned.get(number, row.told_at)
        notice = await compose(self.services, self.watch, number, row, self.subscriptions.due(number), since)
        if notice.digest != row.tried and number in self.rows:
            row = msgspec.structs.replace(row, numbered=notice.number, tried=notice.digest)
            await self._store(number, row)
        if number not in self.rows:  # unsubscribed meanwhile
            self._outbox.done(host)
            return
        if row.url:
            error, again = await notices.post(self.services.post, row.url, notice.body)
        else:
            error, again = await notices.run(row.command, notice.body), 0.0
        now = self.services.clock.time()
        self._outbox.done(host, now + again if again else 0.0)
        self._send(group)
        if number not in self.rows:  # unsubscribed meanwhile
            return
        if error:
            self.subscriptions.failed(number, now, notice.missed)
            row = msgspec.structs.replace(row, error=error)
        else:
            self.subscriptions.sent(number, now, notice.missed)
            changes = {"sequence": row.sequence + 1, "told_at": now, "seen": notice.seen}
            row = msgspec.structs.replace(row, error="", tried=b"", **changes)
        due, attempts = self.subscriptions.due(number), self.subscriptions.attempts(number)
        await self._store(number, msgspec.structs.replace(row, due=due, attempts=attempts))

    async def _store(self, number: int, row: SubscriptionRow) -> None:
        packed = rows.pack(row)  # whatever is wrong with it: not within a commit group
        self.rows[number] = row
        await store_row(self.services.commands, RowTable.SUBSCRIPTION, number, packed)


def _refresh_pages(pages: tuple[LocalPage, ...], request: int) -> RefreshPages:
    return RefreshPages(request, pages)


def _promised(subscriptions: Subscriptions, id_of: IdOf, page: LocalPage) -> float:
    """By when a notice promises that a page of this partition is read; 0 = none does."""
    return subscriptions.deadline(id_of(page))


def subscriptions_told(number: int, subscriptions: Subscriptions) -> dict[str, Any]:
    """Counters of so many subscriptions, for people."""
    counts = subscriptions.dump()
    return {
        "subscriptions": number,
        **counts,
        "lateness": round(counts["lateness"], 1),
        "overdue_pages": len(subscriptions.overdue),
    }
