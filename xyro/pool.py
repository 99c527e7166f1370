"""The pool: draws orders from the queue, reads them politely, and hands back exactly one report for each.

An order's way through it:

    submit -> queue -> pop (its host is busy from here on)
        robots.txt of its origin forbids it       -> report, nobody was contacted
        its host or its address is not ready      -> back to the front of its line, no slot is held
        robots.txt of its origin is not known     -> read that first (politeness holds after it, too), then back
        else                                      -> read the page, report
    -> the host is free again at the moment politeness says

A robots.txt that redirects to another host is read when that host may be read (hops.py).

A slot is one read under way. A host has at most one slot, so a slow host holds no other up; at most half of the slots
wait for name servers (lookups.py). Workers are tasks that live as long as something is ready to be read; one alarm
sleeps until the earliest moment at which something may be read. Nothing polls. robots.txt is consulted when an order is
about to be read, not when it was queued, so a robots.txt that changes binds the orders already there.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from xyro.answer import Answer
from xyro.failures import POLICIES
from xyro.fetch_queue import FetchQueue, urgency
from xyro.hops import PAGE as HOP
from xyro.hops import Hops
from xyro.lookups import Lookups
from xyro.politeness import Manners, Politeness
from xyro.reports import report_of
from xyro.robots import EVERYTHING, RobotsState, RobotsTable
from xyro.wire.clock import Clock
from xyro.wire.messages import FetchOrder, PageReport
from xyro.wire.urls import authority
from xyro.wire.urls import origin as origin_of


class PageFetcher(Protocol):
    """The fetcher as the pool uses it. No method raises for what the web does; cancellation passes
    through."""

    async def fetch(self, order: FetchOrder) -> Answer:
        """One GET of the order's URL, no redirects followed."""
        ...

    async def fetch_robots(self, url: str) -> Answer:
        """GET `url`, at most 5 redirects within its host followed, the body (<= 500 KiB) in Answer.body. A redirect to
        another host is not: it is in Answer.location."""
        ...

    def knows(self, url: str) -> bool:
        """Tell whether `address` has its answer without asking a name server."""
        ...

    async def address(self, url: str) -> str:
        """The IP that the URL's host resolves to (cached), empty where it cannot be resolved."""
        ...


@dataclass(slots=True)
class Counters:
    """Counters since the pool was made. `reads`: orders that the web answered (robots.txt not counted)."""

    reads: int = 0
    robots_reads: int = 0
    refused: int = 0
    """orders that robots.txt (or its absence) forbade: reported without a request"""
    bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """per failure class; bodies kept although truncated are counted here too"""


class Pool:
    """Invariants: every order submitted is reported once, dropped, still queued, or was being read when `close` cut it
    off; at most `concurrency` reads go on, at most one per host (host[:port]); no page is read before its origin's
    robots.txt, nor while that forbids it.

    Who fills the queue: `submit`. Who empties it: the workers. What bounds it: the caller, by the orders it submits.
    """

    def __init__(
        self,
        queue: FetchQueue,
        politeness: Politeness,
        fetcher: PageFetcher,
        clock: Clock,
        *,
        robots_token: str,
        on_report: Callable[[PageReport, Answer], None],
        concurrency: int = 256,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_read`: asked before each read; False while too much that was read is not yet on disk or not yet parsed
        (`wake` follows)."""
        if concurrency < 1:
            raise ValueError(f"concurrency: at least 1, not {concurrency}")
        self.counters = Counters()
        self._queue = queue
        self._politeness = politeness
        self._fetcher = fetcher
        self._clock = clock
        self._robots = RobotsTable(robots_token)
        self._lookups = Lookups(concurrency // 2)
        self._hops = Hops()
        self._on_report = on_report
        self._concurrency = concurrency
        self._may_read = may_read
        self._in_flight = 0
        self._unread: dict[str, FetchOrder] = {}
        """host -> its order that is out, while it still waits for DNS or robots.txt: `drop` can take it back"""
        self._workers: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = math.inf
        self._running = False
        self._ended = asyncio.Event()
        self._error: Exception | None = None

    @property
    def in_flight(self) -> int:
        """Orders that are out: popped and neither reported nor given back."""
        return self._in_flight

    def quiet(self) -> bool:
        """Nothing queued, nothing being read."""
        return not self._in_flight and not len(self._queue)

    def next_ready_in(self) -> float | None:
        """Seconds until something queued may be read (0: now); None while nothing but reads that go on, `submit` or
        `resume` can change that."""
        moment = self._queue.wake_at()
        return None if moment is None else max(moment - self._clock.monotonic(), 0.0)

    def submit(self, orders: Iterable[FetchOrder]) -> None:
        """Queue orders; they may be read at once. `not_before` (wall clock) holds for the order's whole host; a raised
        one moves the order that it repeats up, unless that is being read already."""
        wall, now = self._clock.time(), self._clock.monotonic()
        for order in orders:
            host = authority(order.url)
            if order.not_before > wall:
                self._queue.postpone(host, now + order.not_before - wall)
            if order.raised:
                self._raise(order, host)
            else:
                self._queue.put(order, host)
        self._fill()

    def _raise(self, order: FetchOrder, host: str) -> None:
        """The order that it repeats goes up, in the queue or while it waits for DNS or robots.txt."""
        pending = self._unread.get(host)
        if pending is None or (pending.page, pending.epoch) != (order.page, order.epoch):
            self._queue.lift(order, host)
        elif urgency(order) < urgency(pending):
            self._unread[host] = replace(order, raised=False)

    def restore(self, host: str, host_next: float, failures: int) -> None:
        """After a restart: what the last report of `host` (host[:port]) said about it. `host_next` is wall clock."""
        wait = host_next - self._clock.time()
        if wait <= 0.0 and not failures:
            return  # nearly all hosts of an old crawl: nothing to remember
        ready_at = self._clock.monotonic() + max(wait, 0.0)
        self._politeness.restore(host, ready_at, failures)
        self._queue.postpone(host, ready_at)

    def follow(self, manners: Manners) -> None:
        """Other delays, from the end of each read under way on."""
        self._politeness.manners = manners

    def wake(self) -> None:
        """`may_read` may have become true."""
        self._fill()

    def hold(self, host: str) -> None:
        """Pause: start no further read of `host`; one that goes on is reported as usual."""
        self._queue.hold(host)

    def resume(self, host: str) -> None:
        """End a pause."""
        self._queue.resume(host)
        self._fill()

    def drop(self, host: str) -> list[FetchOrder]:
        """Block: take back all orders of `host` whose read has not begun; they are not reported."""
        pending = self._unread.pop(host, None)
        dropped = ([pending] if pending is not None else []) + self._queue.drop(host)
        for hop in (order for order in dropped if order.page == HOP):
            self._hops.end(self._hops.origin_of(hop))
        return [order for order in dropped if order.page != HOP]

    async def run(self) -> None:
        """Read until `stop`. Raises what `on_report` raised: a report that cannot be taken must not be lost
        silently."""
        self._running = True
        self._fill()
        await self._ended.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Start no further read. Reads that go on end and are reported."""
        self._running = False
        self._silence()
        self._ended.set()

    async def close(self, grace: float) -> None:
        """Stop, wait at most `grace` seconds for the reads that go on, cut off the rest. Leaves no task behind."""
        self.stop()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # Slots: who works, and when somebody wakes up.

    def _fill(self) -> None:
        """Give every free slot an order that may be read now; if slots stay free, set the alarm for the next one."""
        now = self._clock.monotonic()
        while self._has_slot():
            job = self._queue.pop(now)
            if job is None:
                self._set_alarm()
                return
            self._in_flight += 1
            task = asyncio.create_task(self._work(*job))
            self._workers.add(task)
            task.add_done_callback(self._workers.discard)

    def _has_slot(self) -> bool:
        return self._running and self._in_flight < self._concurrency and self._may_read()

    def _set_alarm(self) -> None:
        """For the next host that may be read."""
        moment = self._queue.wake_at()
        if moment is not None and moment < self._alarm_at:
            self._silence()
            self._alarm, self._alarm_at = asyncio.create_task(self._ring(moment)), moment

    async def _work(self, host: str, order: FetchOrder) -> None:
        """One slot: goes from order to order while there are some that may be read now."""
        try:
            while True:
                if not await self._handle(host, order):
                    await asyncio.sleep(0)  # thousands of refused orders in a row must not stop the loop
                job = self._queue.pop(self._clock.monotonic()) if self._running and self._may_read() else None
                if job is None:
                    break
                host, order = job
                self._fill()  # the host that was just freed may be due before anything the alarm knows of
        except Exception as error:
            self._error = self._error or error
            self.stop()
        finally:
            self._in_flight -= 1
            self._fill()

    async def _ring(self, moment: float) -> None:
        await self._clock.sleep(max(moment - self._clock.monotonic(), 0.0))
        self._alarm, self._alarm_at = None, math.inf
        self._fill()

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm, self._alarm_at = None, math.inf

    # One order.

    async def _handle(self, host: str, order: FetchOrder) -> bool:
        """Take one order one step further; False if no request was made for it."""
        now = self._clock.monotonic()
        origin = origin_of(order.url)
        state = self._robots.get(origin, now) if order.page != HOP else _NO_RULES
        ready_at = self._politeness.host_ready(host)
        if state is not None and (refusal := _refusal(state, order.url)):
            self._refuse(host, order, state, refusal, ready_at)
            return False
        if ready_at > now:
            self._queue.give_back(order, host, ready_at)
            return False
        if state is None and (wait := self._hops.waits(origin)):
            self._queue.give_back(order, host, now + wait)
            return False
        if state is not None and not self._politeness.servers.active:
            await self._read_page(host, order, "", state)  # the short way of nearly all orders of a fast crawl
            return True
        asks = not self._fetcher.knows(order.url)
        if asks and (turn := self._lookups.claim(now)) > now:
            self._queue.give_back(order, host, turn)
            return False
        self._unread[host] = order
        return await self._approach(host, order, origin, state, asks)

    async def _approach(self, host: str, order: FetchOrder, origin: str, state: RobotsState | None, asks: bool) -> bool:
        """The long way: the turn of the host's address first, then robots.txt if it is not known, else the page."""
        address = await self._address(order.url, asks)
        now = self._clock.monotonic()
        if host not in self._unread:  # dropped meanwhile
            self._queue.release(host, now)
            return False
        turn = self._politeness.servers.claim(host, address, now)
        if turn <= now and state is None:
            await self._read_robots(host, origin, address)
            return True
        order = self._unread.pop(host)  # it may have been raised
        if turn <= now and state is not None:
            await self._read_page(host, order, address, state)
            return True
        self._queue.give_back(order, host, turn)
        return False

    async def _read_robots(self, host: str, origin: str, address: str) -> None:
        url = f"{origin}/robots.txt"
        answer = await self._answer(self._fetcher.fetch_robots(url))
        now = self._clock.monotonic()
        hop = self._hops.follow(answer, url, origin)
        state = self._robots.learn(origin, answer, now) if hop is None else _NO_RULES
        self.counters.robots_reads += 1
        self.counters.bytes += answer.bytes
        ready_at = self._leave(host, address, answer, state, now, failed=state.failures > 0)
        order = self._unread.pop(host, None)
        if hop is not None:
            self._queue.put(hop, authority(hop.url))
            ready_at = max(ready_at, now + self._hops.waits(origin))
        if order is None:  # dropped meanwhile
            self._queue.release(host, ready_at)
        elif refusal := _refusal(state, order.url):
            self._refuse(host, order, state, refusal, ready_at)
        else:
            self._queue.give_back(order, host, ready_at)

    async def _read_hop(self, host: str, order: FetchOrder, address: str) -> None:
        """The robots.txt of another host, which redirected it here."""
        answer = await self._answer(self._fetcher.fetch_robots(order.url))
        now = self._clock.monotonic()
        failed = bool(answer.error) and POLICIES[answer.error].host_wide
        self._queue.release(host, self._leave(host, address, answer, _NO_RULES, now, failed))
        self.counters.robots_reads += 1
        self.counters.bytes += answer.bytes
        origin = self._hops.origin_of(order)
        hop = self._hops.follow(answer, order.url, origin)
        if hop is not None:
            self._queue.put(hop, authority(hop.url))
            return
        answer.status = answer.status or 302  # the site did answer: it sent us to such a place
        self._robots.learn(origin, answer, now)
        self._hops.end(origin)

    async def _read_page(self, host: str, order: FetchOrder, address: str, state: RobotsState) -> None:
        if order.page == HOP:
            await self._read_hop(host, order, address)
            return
        answer = await self._answer(self._fetcher.fetch(order))
        now = self._clock.monotonic()
        failed = bool(answer.error) and POLICIES[answer.error].host_wide
        ready_at = self._leave(host, address, answer, state, now, failed)
        self._queue.release(host, ready_at)
        self.counters.bytes += answer.bytes
        self.counters.reads += answer.status > 0
        self._tell(host, order, answer, ready_at - now)

    async def _answer(self, reading: Awaitable[Answer]) -> Answer:
        """Fetch an order; if the fetcher breaks its contract, answer `internal`: our mistake must not lose a page."""
        try:
            answer = await reading
        except Exception as error:
            wall = self._clock.time()
            return Answer(wall, wall, error="internal", detail=repr(error))
        if answer.error and answer.error not in POLICIES:
            answer.error, answer.detail = "internal", f"a failure class without policy: {answer.error}"
        return answer

    async def _address(self, url: str, asks: bool) -> str:
        """The address whose turn has to be waited for; empty where there is none, or no floor for addresses. `asks`: a
        name server, as `_lookups` allowed."""
        floor = self._politeness.servers.active
        if not floor and not asks:
            return ""
        began = self._clock.monotonic()
        try:
            address = await self._fetcher.address(url)
        except Exception:
            return ""
        finally:
            if asks:
                self._lookups.ended(self._clock.monotonic() - began)
        return address if floor else ""

    def _refuse(self, host: str, order: FetchOrder, state: RobotsState, kind: str, ready_at: float) -> None:
        """Report an order that may not be read; where that is temporary, not before robots.txt is asked again."""
        wall, now = self._clock.time(), self._clock.monotonic()
        self.counters.refused += 1
        self._queue.release(host, ready_at)
        answer = Answer(wall, wall, error=kind, retry_after=max(state.fresh_until - now, 0.0))
        self._tell(host, order, answer, ready_at - now)

    def _leave(self, host: str, address: str, answer: Answer, state: RobotsState, now: float, failed: bool) -> float:
        """A read ended: the moment of the host's next one. Where nobody was contacted, nobody has to be spared."""
        if answer.error and not answer.status and POLICIES[answer.error].unsent:
            self._politeness.servers.unclaim(host, address)
            return max(self._politeness.host_ready(host), now)
        if answer.address != address:
            self._politeness.servers.touched(host, answer.address, now)
        delay = state.rules.crawl_delay
        return self._politeness.finished(host, address, now, answer.duration, failed, answer.retry_after, delay)

    def _tell(self, host: str, order: FetchOrder, answer: Answer, host_wait: float) -> None:
        """The order's one report; its host may be read again `host_wait` seconds after the end of the read."""
        if answer.error:
            self.counters.errors[answer.error] += 1
        failures = self._politeness.failures(host)
        sitemaps = self._robots.untold(origin_of(order.url))
        report = report_of(order, answer, host_wait=max(host_wait, 0.0), host_failures=failures, sitemaps=sitemaps)
        self._on_report(report, answer)


_NO_RULES = RobotsState(EVERYTHING, math.inf)
"""what holds for a hop: rules are for pages"""


def _refusal(state: RobotsState, url: str) -> str:
    """The failure class with which `url` is refused, empty if it may be read."""
    return state.kind or ("" if state.rules.allows(url) else "robots-disallowed")
