"""The pool: draws orders from the queue, reads them politely, and hands back exactly one report for each.

An order's way through it:

    submit -> queue -> pop (its host is busy from here on)
        robots.txt of its origin forbids it       -> report, nobody was contacted
        its host or its address is not ready      -> back to the front of its line, no slot is held
        robots.txt of its origin is not known     -> read that first (politeness holds after it, too), then back
        else                                      -> read the page, report
    -> the host is free again at the moment politeness says

A robots.txt that redirects is read on when the host of its next hop may be read (hops.py). Requests to hubs stand in
the same lines (posts.py): nothing is sent to the web but from here, so a host has one clock.

A host that shows a challenge (challenges.py) is left alone for an hour, doubling; its orders are reported at once.

A slot is one read under way. A host has at most one slot, so a slow host holds no other up; hosts whose answers cost
more than they are worth share a part of the slots (fetch_queue.py), and at most half of the slots wait for name servers
(lookups.py). Workers are tasks that live as long as something is ready to be read; one alarm sleeps until the earliest
moment at which something may be read. Nothing polls. robots.txt is consulted when an order is about to be read, not
when it was queued, so a robots.txt that changes binds the orders already there.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from xyro.answer import Answer
from xyro.failures import DAY, POLICIES, challenge_wait
from xyro.fetch_queue import FetchQueue, urgency
from xyro.hops import PAGE as HOP
from xyro.hops import Hops
from xyro.kept_rules import KeptRules, RulesFile
from xyro.lookups import Lookups
from xyro.page_fetcher import PageFetcher
from xyro.politeness import Manners, Politeness
from xyro.posts import PAGE as POST
from xyro.posts import Parcel, Posted, Posts
from xyro.reports import Counters, GuardedReads, report_of
from xyro.robots import NO_RULES, RobotsState, RobotsTable
from xyro.slot_shares import SlotShares
from xyro.wire.clock import Clock
from xyro.wire.errors import TheirError
from xyro.wire.messages import EMPTY, FetchOrder, HostChallenged, PageReport
from xyro.wire.urls import authority
from xyro.wire.urls import origin as origin_of
from xyro.wire.uses import SEARCH

STARTS = 32
"""most reads that begin in one turn of the event loop: a connection takes .3 ms, and others wait meanwhile"""


class Pool:
    """Invariants: every order submitted is reported once, dropped, still queued, or was being read when `close` cut it
    off; at most as many reads go on as there are slots, and at most one per host (host[:port]); no page is read before
    its origin's robots.txt, nor while that forbids it.

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
        purposes: int = SEARCH,
        on_report: Callable[[PageReport, Answer], None],
        slots: SlotShares,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        """`purposes`: uses that pages are read for (wire/uses.py). `may_read`: asked before each read; False while too
        much that was read is not yet on disk or not yet parsed (`wake` follows)."""
        self.counters = Counters()
        self._queue = queue
        self._politeness = politeness
        self._fetcher = fetcher
        self._clock = clock
        self._robots = RobotsTable(robots_token, purposes=purposes)
        self._lookups = Lookups(slots.concurrency // 2)
        self._hops = Hops()
        self._posts = Posts()
        self._reads = GuardedReads(clock)
        self._on_report = on_report
        self.slots = slots
        self._may_read = may_read
        self._unread: dict[str, FetchOrder] = {}
        """host -> its order that is out, while it still waits for DNS or robots.txt: `drop` can take it back"""
        self._workers: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = math.inf
        self._running = False
        self._is_filling = False
        """the next turn of the event loop starts more reads"""
        self._ended = asyncio.Event()
        self._error: Exception | None = None

    @property
    def in_flight(self) -> int:
        """Orders that are out: popped and neither reported nor given back."""
        return self.slots.in_flight

    def quiet(self) -> bool:
        """Nothing queued, nothing being read."""
        return not self.slots.in_flight and not len(self._queue)

    def next_ready_in(self) -> float | None:
        """Seconds until something queued may be read (0: now); None: only reads under way, or a call, change that."""
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
            elif self._queue.put(order, host):
                self._fetcher.expect(host, self._queue.next_read(host) - now)
        self._fill()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Posted:
        """POST to a canonical URL in its turn, unless nobody waits for it by then. TheirError: it failed."""
        host = authority(url)
        if self._queue.is_held(host):
            raise TheirError("paused", "a person, or a blackout, wants its host to be left alone")
        parcel = Parcel(url, body, headers, asyncio.get_running_loop().create_future())
        self._queue.put(self._posts.order(parcel), host)
        self._fill()
        return await parcel.posted

    def _raise(self, order: FetchOrder, host: str) -> None:
        """The order that it repeats goes up, in the queue or while it waits for DNS or robots.txt."""
        if (pending := self._unread.get(host)) is None or (pending.page, pending.epoch) != (order.page, order.epoch):
            self._queue.lift(order, host)
        elif urgency(order) < urgency(pending):
            self._unread[host] = replace(order, raised=False)

    def restore_clocks(self) -> None:
        """After a restart: take up the moments before which hosts and servers are not to be contacted."""
        now = self._clock.monotonic()
        for host, ready_at in self._politeness.restore_log(now):
            self._queue.postpone(host, ready_at)

    def restore(self, host: str, host_next: float, failures: int) -> None:
        """After a restart: what the last report of `host` (host[:port]) said about it. `host_next` is wall clock."""
        if (wait := host_next - self._clock.time()) <= 0.0 and not failures:
            return  # nearly all hosts of an old crawl: nothing to remember
        ready_at = self._clock.monotonic() + max(wait, 0.0)
        self._politeness.restore(host, ready_at, failures)
        self._queue.postpone(host, ready_at)

    @property
    def hosts_read(self) -> Iterable[str]:
        """Hosts that are being read now."""
        return self.slots.hosts

    def give_rules(self, hosts: Iterable[str]) -> RulesFile:
        """Another process is to read these hosts (host[:port]) from now on: what is known of their robots.txt, which is
        forgotten here."""
        wall, now = self._clock.time(), self._clock.monotonic()
        kept = [
            KeptRules.of_state(origin, state, self._politeness.host_ready(host), wall - now)
            for host in hosts
            for origin in (f"http://{host}", f"https://{host}")
            if (state := self._robots.take(origin, now)) is not None
        ]
        return RulesFile(self._robots.token, kept)

    def take_rules(self, directory: Path) -> None:
        """Go on by what another process left in a partition's directory."""
        wall, now = self._clock.time(), self._clock.monotonic()
        for kept in RulesFile.take(directory, self._robots.token):
            self._robots.restore(kept.origin, kept.state(wall - now, wall, self._robots.purposes))
            self.restore(authority(f"{kept.origin}/"), min(kept.ready_at, wall + DAY), 0)

    def follow(self, manners: Manners) -> None:
        """Other delays, from the end of each read under way on."""
        self._politeness.follow(manners)

    def wake(self) -> None:
        """`may_read` may have become true."""
        self._fill()

    def slow_lookups(self, seconds: float) -> int:
        """Count the names of the last so many seconds that took long to look up."""
        return self._lookups.slow(self._clock.monotonic() - seconds)

    def hold(self, host: str) -> None:
        """Pause: start no further read of `host`; one that goes on is reported as usual."""
        self._queue.hold(host)

    def challenged(self, message: HostChallenged) -> None:
        """Leave a host alone by evidence."""
        self.restore(message.host, message.until, message.failures)
        self._fetcher.sign(message.host)
        self._report_challenged(message.host, message.vendor, max(message.until - self._clock.time(), 0.0))

    def resume(self, host: str) -> None:
        """End a pause."""
        self._queue.resume(host)
        self._fill()

    def drop(self, host: str) -> list[FetchOrder]:
        """Block: take back all orders of `host` whose read has not begun; they are not reported."""
        pending = self._unread.pop(host, None)
        dropped = ([pending] if pending is not None else []) + self._queue.drop(host)
        for order in dropped:
            if order.page == HOP:
                self._hops.end(self._hops.origin_of(order))
            elif order.page == POST:
                self._posts.refuse(order)
        return [order for order in dropped if order.page < POST]

    def drop_failed(self, wait: float) -> list[FetchOrder]:
        """Take back the orders of hosts that failed and are not to be contacted for so many seconds."""
        late = self._queue.waiting_hosts(self._clock.monotonic() + wait)
        return [order for host in late if self._politeness.failures(host) for order in self.drop(host)]

    async def run(self) -> None:
        """Read until `stop`. Raises what `on_report` raised: no report may be lost silently."""
        self._running = not self._ended.is_set()  # it may have been stopped before it began
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

    # SlotShares: who works, and when somebody wakes up.

    def _fill(self) -> None:
        """Give every free slot an order that may be read now; if some stay free, set the alarm."""
        if self._is_filling:
            return
        for started in itertools.count():
            if not self._has_slot():
                return
            if started == STARTS:
                self._is_filling = True
                asyncio.get_running_loop().call_soon(self._fill_on)
                return
            job = self._pop()
            if job is None:
                self._set_alarm()
                return
            self.slots.in_flight += 1
            task = asyncio.create_task(self._work(*job))
            self._workers.add(task)
            task.add_done_callback(self._workers.discard)

    def _fill_on(self) -> None:
        self._is_filling = False
        self._fill()

    def _pop(self) -> tuple[str, FetchOrder] | None:
        """The next order and its host, which has a slot from here on."""
        now = self._clock.monotonic()
        job = self._queue.pop(now, self.slots.open)
        if job is not None:
            self.slots.enter(job[0], now)
        return job

    def _has_slot(self) -> bool:
        return self._running and self.slots.in_flight < self.slots.concurrency and self._may_read()

    def _set_alarm(self) -> None:
        """For the next host that may be read."""
        moment = self._queue.wake_at(self.slots.open)
        if moment is not None and moment < self._alarm_at:
            self._silence()
            self._alarm, self._alarm_at = asyncio.create_task(self._ring(moment)), moment

    async def _work(self, host: str, order: FetchOrder) -> None:
        """One slot: goes from order to order while there are some that may be read now."""
        try:
            while True:
                try:
                    asked = await self._handle(host, order)
                finally:
                    self.slots.leave(host)
                if asked:
                    self._fetcher.expect(host, self._queue.next_read(host) - self._clock.monotonic())
                else:
                    await asyncio.sleep(0)  # thousands of refused orders in a row must not stop the loop
                job = self._pop() if self._running and self._may_read() else None
                if job is None:
                    break
                host, order = job
                self._fill()  # the host that was just freed may be due before anything the alarm knows of
        except Exception as error:
            self._error = self._error or error
            self.stop()
        finally:
            self.slots.in_flight -= 1
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
        state = self._robots.get(origin, now) if order.page < POST else NO_RULES
        ready_at = self._politeness.host_ready(host)
        if state is not None and (refusal := state.refusal(order.url)):
            self._refuse(host, order, state, refusal, ready_at)
            return False
        if order.page == POST and not self._posts.waits(order):
            self._posts.take(order)
            self._queue.release(host, ready_at)
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
        if turn > now:
            self._queue.give_back(self._unread.pop(host), host, turn)
            return False
        if state is None:
            await self._read_robots(host, origin, address)
        else:  # the order may have been raised
            await self._read_page(host, self._unread.pop(host), address, state)
        return True

    async def _read_robots(self, host: str, origin: str, address: str) -> None:
        self._politeness.begin(host)
        url = f"{origin}/robots.txt"
        answer = await self._reads.answer(url, self._fetcher.fetch_robots(url))
        now = self._clock.monotonic()
        hop = self._hops.follow(answer, origin)
        state = await self._robots.learn_long(origin, answer, now) if hop is None else NO_RULES
        self.counters.robots_reads += 1
        self.counters.received[answer.coding] += answer.bytes
        ready_at = self._leave(host, address, answer, state, now, failed=state.failures > 0)
        order = self._unread.pop(host, None)
        if order is None:  # dropped meanwhile
            self._queue.release(host, ready_at)
        elif refusal := state.refusal(order.url):
            self._refuse(host, order, state, refusal, ready_at)
        else:
            if hop is not None and authority(hop.url) != host:
                ready_at = max(ready_at, now + self._hops.waits(origin))
            self._queue.give_back(order, host, ready_at)
        if hop is not None:
            self._queue.put_first(hop, authority(hop.url))

    async def _read_hop(self, host: str, order: FetchOrder, address: str) -> None:
        """A robots.txt that was redirected here, from this host or another one. This host's own delay goes on."""
        own = self._robots.get(origin_of(order.url), self._clock.monotonic()) or NO_RULES
        self._politeness.begin(host, own.rules.crawl_delay)
        answer = await self._reads.answer(order.url, self._fetcher.fetch_robots(order.url))
        now = self._clock.monotonic()
        failed = bool(answer.error) and POLICIES[answer.error].host_wide
        origin = self._hops.origin_of(order)
        home = authority(origin + "/")
        hop = self._hops.follow(answer, origin)
        state = NO_RULES
        if hop is None:
            status, answer.status = answer.status, answer.status or 302  # the site did answer: it sent us here
            state = await self._robots.learn_long(origin, answer, now)
            answer.status = status
            self._hops.end(origin)
        self._queue.release(host, self._leave(host, address, answer, state if host == home else own, now, failed))
        if hop is None and host != home and (delay := state.rules.crawl_delay):
            self._queue.postpone(home, self._politeness.slow_down(home, now, delay))
        self.counters.robots_reads += 1
        self.counters.received[answer.coding] += answer.bytes
        if hop is not None:
            self._queue.put_first(hop, authority(hop.url))

    async def _send(self, host: str, order: FetchOrder, address: str) -> None:
        """A request that is no read: to a hub."""
        parcel = self._posts.take(order)
        state = self._robots.get(origin_of(order.url), self._clock.monotonic()) or NO_RULES
        self._politeness.begin(host, state.rules.crawl_delay)
        answer = await self._reads.answer(parcel.url, self._fetcher.post(parcel.url, parcel.body, parcel.headers))
        now = self._clock.monotonic()
        failed = bool(answer.error) and POLICIES[answer.error].host_wide
        ready_at = self._leave(host, address, answer, state, now, failed)
        self._queue.release(host, ready_at)
        parcel.settle(answer, max(ready_at - now, 0.0))

    async def _read_page(self, host: str, order: FetchOrder, address: str, state: RobotsState) -> None:
        if order.page >= POST:
            await (self._read_hop if order.page == HOP else self._send)(host, order, address)
            return
        if state.rules.refused:
            order = replace(order, refused=state.rules.refused)
        self._politeness.begin(host, state.rules.crawl_delay)
        answer = await self._reads.answer(order.url, self._fetcher.fetch(order))
        now = self._clock.monotonic()
        failed = bool(answer.error) and POLICIES[answer.error].host_wide
        if challenged := answer.error == "challenge" and answer.vendor != EMPTY:
            answer.retry_after = max(answer.retry_after, challenge_wait(self._politeness.failures(host)))
        failed &= challenged or answer.error != "challenge"  # an empty one is its page's alone
        ready_at = self._leave(host, address, answer, state, now, failed)
        if answer.status and not failed:
            self.slots.answered(host, answer.duration)
        self._queue.release(host, ready_at)
        self.counters.received[answer.coding] += answer.bytes
        self.counters.reads += answer.status > 0 and not order.probe
        self._tell(host, order, answer, ready_at - now)
        if challenged:
            self._report_challenged(host, answer.vendor, ready_at - now)

    def _report_challenged(self, host: str, vendor: str, wait: float) -> None:
        """Report all orders of a host whose reads have not begun: it is left alone for `wait` seconds."""
        answer = Answer(self._clock.time(), error="challenge", vendor=vendor)
        for order in self.drop(host):
            self._tell(host, order, answer, wait)

    async def _address(self, url: str, asks: bool) -> str:
        """The address whose turn is waited for; empty: none, or no floor. asks: a name server, as is allowed."""
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
                now = self._clock.monotonic()
                self._lookups.ended(now - began, now)
        return address if floor else ""

    def _refuse(self, host: str, order: FetchOrder, state: RobotsState, kind: str, ready_at: float) -> None:
        """Report an order that may not be read; where that is temporary, not before robots.txt is asked again."""
        wall, now = self._clock.time(), self._clock.monotonic()
        self.counters.refused += 1
        self._queue.release(host, ready_at)
        answer = Answer(wall, wall, error=kind, detail=state.detail, retry_after=max(state.fresh_until - now, 0.0))
        if state.rules.refused:
            order = replace(order, refused=state.rules.refused)
        self._tell(host, order, answer, ready_at - now)

    def _leave(self, host: str, address: str, answer: Answer, state: RobotsState, now: float, failed: bool) -> float:
        """A read ended: the moment of the host's next one. Where nobody was contacted, nobody has to be spared."""
        if answer.error and not answer.status and POLICIES[answer.error].unsent:
            return self._politeness.unsent(host, address, now)
        if answer.address != address:
            self._politeness.servers.touched(host, answer.address, now)
        if failed and not answer.error.startswith(("http-", "dns-")):
            self.slots.failed(host)
        unknown = state is NO_RULES or state.failures > 0
        delay = self._politeness.remembered_gap(host) if unknown else state.rules.crawl_delay
        ended = min(answer.received_at or now, now)  # the host need not wait while we worked on what it sent
        return self._politeness.finished(host, address, ended, answer.duration, failed, answer.retry_after, delay)

    def _tell(self, host: str, order: FetchOrder, answer: Answer, host_wait: float) -> None:
        """The order's one report; its host may be read again `host_wait` seconds after the end of the read."""
        if answer.error and (answer.status or answer.error != "challenge"):
            self.counters.errors[EMPTY if answer.vendor == EMPTY else answer.error] += 1
        if answer.error == "challenge":
            self.counters.challenges["answered" if answer.status else "spared", answer.vendor] += 1
        failures = self._politeness.failures(host)
        sitemaps = self._robots.untold(origin_of(order.url))
        report = report_of(order, answer, host_wait=max(host_wait, 0.0), host_failures=failures, sitemaps=sitemaps)
        if answer.error and not report.error:
            self.counters.cut[answer.error] += 1
        self._on_report(report, answer)
