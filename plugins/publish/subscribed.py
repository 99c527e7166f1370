"""Subscriptions of a running crawl: refreshed before their notice is due, then told what changed since the last one.

They live in the home partition. One heap says what is due (refresh/subscriptions.py); `run` orders pages and has
notices told, WORKERS at once, one a host (notice_outbox.py). Pages are wherever their hosts are: their partitions name
them, read them and describe them when they are asked (notice_pages.py). A subscription is on disk before it is
acknowledged, the number of a notice before it is told, and what was told after that. What nobody knows to have arrived
is told again: with the same number if it says the same of the pages, else with another one, so that who skips a number
that he has misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from xyro.frontier.targets import is_pattern
from xyro.metadata import rows
from xyro.plugins.publish import notices
from xyro.plugins.publish.compose import compose, signatures
from xyro.plugins.publish.demand import Demand
from xyro.plugins.publish.notice_outbox import NOBODY, NoticeOutbox
from xyro.plugins.publish.publication_rows import stored
from xyro.plugins.publish.publish_messages import (
    ListSubscriptions,
    MissPages,
    PagesFound,
    RefreshPages,
    RowTable,
    Subscribe,
    Unsubscribe,
    WatchTargets,
    store_row,
)
from xyro.plugins.publish.stored_rows import SubscriptionRow, unpack_subscription
from xyro.plugins.publish.subscribing import SUBSCRIPTION_LIMIT
from xyro.plugins.publish.target_pages import TargetPages
from xyro.refresh.subscriptions import Act, Subscriptions
from xyro.service.node.command_feed import feed
from xyro.service.node.slicing import unhurried
from xyro.wire.ids import LocalPage, PageId, join, local_page, owner_of
from xyro.wire.urls import authority, host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.node.services import Services

WORKERS = 8
TICK = 0.5
PAGES_AT_ONCE = 10_000
"""pages in one RefreshPages"""
TARGETS_AT_ONCE = 1_000
"""targets in one WatchTargets"""


class Subscribed:
    """The subscriptions of a crawl. `subscriptions` says what is due."""

    def __init__(self, frontier: Frontier, services: Services, open_client: Callable[[], notices.NoticeClient]) -> None:
        """frontier: of the home partition. open_client: makes what sends notices to URLs, with the first of them."""
        self.services = services
        self._open_client = open_client
        self._client: notices.NoticeClient | None = None
        self.pages = TargetPages()
        self.subscriptions = Subscriptions()
        self.rows: dict[int, SubscriptionRow] = {}
        self._partition = frontier.partition
        self._hooks = frontier.hooks
        self._planned: dict[int, float] = {}
        """number -> since when its pages are being refreshed"""
        self._outbox = NoticeOutbox()
        """notices that are due: filled by `run`, emptied by `_send`, bounded by the subscriptions"""
        self._telling = 0
        """notices on their way, at most WORKERS"""
        self._doing = 0
        """of those that were due: neither planned nor told yet"""
        self._next = 1
        self._demand = Demand(services, self.pages)
        self._new: list[int] = []
        """those whose pages are still to be looked for"""
        self._arrived = asyncio.Event()
        """there are new ones"""
        self._watched: set[int] = set()
        """those whose targets were added to `pages`"""
        self._registered = False
        frontier.hooks.recover.append(self._recover)
        frontier.hooks.status["subscribed"] = self.figures
        frontier.commands.handle(Subscribe, self._subscribe)
        frontier.commands.handle(Unsubscribe, self._unsubscribe)
        frontier.commands.handle(ListSubscriptions, self._list)
        frontier.commands.handle(PagesFound, self._take)

    def _register(self) -> None:
        """There are subscriptions: their counters are stored from now on."""
        if not self._registered:
            self._registered = True
            self._hooks.keep("subscriptions", self.subscriptions.dump)

    def _recover(self) -> None:
        """Take up the subscriptions; `run` looks for the pages of their targets."""
        self.subscriptions.load(self._hooks.stored.get("subscriptions", {}))
        self.rows.update(stored(self._partition))
        if self.rows:
            self._register()
        self._new += self.rows
        self._arrived.set()
        self._next = max(self.rows, default=0) + 1

    def figures(self, now: float) -> dict[str, Any]:
        """Counters, for `xyro status` (promise_report.py)."""
        return {"subscriptions": len(self.rows), "counts": self.subscriptions.dump()}

    @property
    def in_line(self) -> int:
        """Notices that were due and are not told yet."""
        return self._doing

    def unhandled(self) -> int:
        """Count what is new, and what is due now and waits for no host to be left alone."""
        now = self.services.clock.time()
        due = self.subscriptions.next_time() <= now
        return len(self._new) + self._doing + due - self._outbox.waiting(now)

    # -- commands ------------------------------------------------------------------------------------------------

    def _subscribe(self, command: Subscribe) -> int:
        """Store a new one; `run` looks for its pages. -> its number, 0 if there are too many."""
        if len(self.rows) >= SUBSCRIPTION_LIMIT:
            return 0
        self._register()
        number, self._next = self._next, self._next + 1
        self.rows[number] = unpack_subscription(command.row)
        self._partition.put(rows.SUBSCRIPTION.key(number), command.row)
        self._new.append(number)
        self._arrived.set()
        return number

    def _unsubscribe(self, command: Unsubscribe) -> bool:
        number = command.number
        row = self.rows.pop(number, None)
        if row is None:
            return False
        self._partition.delete(rows.SUBSCRIPTION.key(number))
        self.subscriptions.remove(number)
        self._planned.pop(number, None)
        if number in self._watched and self.pages.drop(row.target):
            for partition in self._partitions_of(row.target):
                self._hooks.post(partition, WatchTargets(0, (row.target,), wanted=False))
        self._watched.discard(number)
        return True

    def _list(self, question: ListSubscriptions) -> list[tuple[int, bytes, int]]:
        numbers = islice((number for number in self.rows if number >= question.first), question.limit)
        return [(number, rows.pack(row := self.rows[number]), self.pages.count(row.target)) for number in numbers]

    def _take(self, command: PagesFound) -> None:
        """New pages of a partition."""
        number = command.partition
        for target, page, host in zip(command.targets, command.pages, command.hosts, strict=True):
            self.pages.take(target, join(number, page), (number, host))

    # -- targets -------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Until cancelled: look for the pages of those that are new. What they are is the base of the first notice."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while chosen := self._new[:TARGETS_AT_ONCE]:
                numbers = [number for number in chosen if number in self.rows]
                self._watched.update(numbers)
                await self._follow([row.target for row in map(self.rows.__getitem__, numbers) if self._add(row)])
                await asyncio.gather(*map(self._base, numbers))
                for number in numbers:
                    if (row := self.rows.get(number)) is not None:  # nobody ended it meanwhile
                        lead = self._demand.lead(row.target)
                        self.subscriptions.add(number, row.every, row.due, lead, row.attempts)
                del self._new[: len(chosen)]

    def _add(self, row: SubscriptionRow) -> bool:
        """Tell whether its target is a new one."""
        return self.pages.add(row.target)

    def _partitions_of(self, target: str) -> Iterable[int]:
        """The partitions that may have pages of a target."""
        count = self.services.commands.partitions
        return range(count) if is_pattern(target) else (partition_of(host_of(target), count),)

    async def _follow(self, targets: Sequence[str]) -> None:
        """Watch targets that are new here, and find the pages that are known already."""
        parts: dict[int, list[str]] = {}
        for target in targets:
            for partition in self._partitions_of(target):
                parts.setdefault(partition, []).append(target)
        send = self.services.commands.send
        await asyncio.gather(
            *(send(q, partial(WatchTargets, targets=tuple(part), wanted=True)) for q, part in parts.items())
        )
        patterns = [target for target in targets if is_pattern(target)]
        urls = [target for target in targets if not is_pattern(target)]
        for place in await self.services.pages.find(urls):
            self.pages.take(*place)
        if unknown := [url for url in urls if not self.pages.count(url)]:
            await self.services.submit(unknown, seed=False)
        if patterns:
            async for place in self.services.pages.match(patterns):
                self.pages.take(*place)

    async def _base(self, number: int) -> None:
        """Find what its pages are now, unless something was told or found of them before."""
        row = self.rows.get(number)
        if row is None or row.based or row.sequence or row.seen:
            return
        seen = await signatures(self.services, self.pages.pages(row.target))
        if number in self.rows:
            await self._store(number, msgspec.structs.replace(self.rows[number], seen=seen, based=True))

    # -- the plan ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._run()
        finally:
            if self._client is not None:
                await self._client.close()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._begin())
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
        wanted: dict[tuple[int, float], dict[LocalPage, None]] = {}
        for number in numbers:
            self._planned[number] = now
            for page in self.pages.pages(self.rows[number].target):
                wanted.setdefault((owner_of(page), self.subscriptions.due(number)), {})[local_page(page)] = None
        await asyncio.gather(*(self._refresh(*place, list(pages)) for place, pages in wanted.items()))
        for number in numbers:
            if number in self.rows:
                self.subscriptions.planned(number, now, self._demand.lead(self.rows[number].target))

    async def _refresh(self, partition: int, due: float, pages: Sequence[LocalPage]) -> None:
        """Order local pages for a notice; returns when that is on disk."""
        parts = [tuple(pages[first : first + PAGES_AT_ONCE]) for first in range(0, len(pages), PAGES_AT_ONCE)]
        send = self.services.commands.send
        await asyncio.gather(*(send(partition, partial(RefreshPages, pages=part, due=due)) for part in parts))

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
        due = self.subscriptions.due(number)
        notice = await compose(self.services, self.pages.pages(row.target), number, row, due, since)
        if notice.digest != row.tried and number in self.rows:
            row = msgspec.structs.replace(row, numbered=notice.number, tried=notice.digest)
            await self._store(number, row)
        if number not in self.rows:  # unsubscribed meanwhile
            self._outbox.done(host)
            return
        if row.url:
            self._client = self._client or self._open_client()
            error, again = await notices.post(self._client, row.url, notice.body)
        else:
            error, again = await feed(row.command, notice.body), 0.0
        now = self.services.clock.time()
        self._outbox.done(host, now + again if again else 0.0)
        self._send(group)
        if number not in self.rows:  # unsubscribed meanwhile
            return
        if notice.missed and not self.subscriptions.attempts(number):
            self._miss(notice.missed, since, due)
        if error:
            self.subscriptions.failed(number, now, missed=bool(notice.missed))
            row = msgspec.structs.replace(row, error=error)
        else:
            self.subscriptions.sent(number, now, missed=bool(notice.missed))
            changes = {"sequence": row.sequence + 1, "told_at": now, "seen": notice.seen}
            row = msgspec.structs.replace(row, error="", tried=b"", **changes)
        due, attempts = self.subscriptions.due(number), self.subscriptions.attempts(number)
        await self._store(number, msgspec.structs.replace(row, due=due, attempts=attempts))

    def _miss(self, pages: Collection[PageId], since: float, due: float) -> None:
        """Tell their partitions of pages that were not refreshed for a notice."""
        parts: dict[int, list[LocalPage]] = {}
        for page in pages:
            parts.setdefault(owner_of(page), []).append(local_page(page))
        for partition, part in parts.items():
            self.services.commands.post(partition, MissPages(0, tuple(part), since, due))

    async def _store(self, number: int, row: SubscriptionRow) -> None:
        packed = rows.pack(row)  # whatever is wrong with it: not within a commit group
        self.rows[number] = row
        await store_row(self.services.commands, RowTable.SUBSCRIPTION, number, packed)
