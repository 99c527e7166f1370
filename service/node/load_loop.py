"""The load loop gives bodies to the loader, and posts the loader's reports and each page's own to its partition.

The reports of a body are posted before its PageReport, so a page and its links are applied in one commit group.

Small bodies are parsed where they arrive (a millisecond), big ones in a thread of their own, so that a sitemap of
50,000 URLs does not stop the event loop; and so is what may name a grammar: a hostile one takes 0.4 s. Either way one
at a time and in order: the loader is not made for two threads. The thread rests between two pieces of a body while
pages are read and little waits to be parsed: Python runs one thread at a time, and a host that is read as fast as it
answers had two thirds of its reads for the three seconds that a full sitemap took.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING

from xyro.loader.library import Resumed, StoredPart
from xyro.wire import topics
from xyro.wire.bus import Bus
from xyro.wire.clock import Clock
from xyro.wire.ids import PageId, owner_of
from xyro.wire.messages import Document, Kind, LoadReport, LoadState, PageReport, XmlPage

if TYPE_CHECKING:
    from xyro.loader.intake import Intake

BIG = 200_000
"""bytes of a body from which on it is parsed in the thread: about 10 ms"""
CROWDED = 2_000
"""reports that wait for a partition while documents whose parts came are held back: their bodies go along, packed"""
FULL = 64 << 20
"""bytes of bodies that wait to be parsed, from which on nothing more is read: the network can bring XML faster than one
thread parses it, and a packed body is 200 times what it cost its server"""
OTHERS = 8
"""times as long as a piece of a body took the thread rests, where nothing else waits to be parsed; the more waits, the
less"""
MUCH = FULL // 4
"""bytes of bodies that wait, from which on it never rests"""
PAUSE = 0.02
"""seconds until a partition that is behind is asked again"""
LoaderMessage = LoadReport | Document | XmlPage
Job = Callable[[], list[LoaderMessage]]
Then = Callable[[], None]


def _nothing() -> None:
    """No PageReport waits behind this job."""


class LoadLoop:
    """`signature_of(page)`: signature of the page's last body; `is_named(page)`: robots.txt names it as a sitemap."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        make_intake: Callable[[], Intake],
        signature_of: Callable[[PageId], bytes],
        is_named: Callable[[PageId], bool],
        stored: Callable[[PageReport], XmlPage | None] = lambda report: None,
        eased: Callable[[], None] = lambda: None,
        posted: Callable[[PageReport], None] = lambda report: None,
        is_reading: Callable[[], bool] = lambda: False,
    ) -> None:
        """`make_intake`: called at the first body, for many a crawl meets none. `is_reading`: pages are being read.

        `stored(report)`: the body of a document that did not change, where it is to be validated again. `eased`: called
        whenever there is less to parse. `posted`: called with each report after it was posted.
        """
        self.bus = bus
        self.clock = clock
        self._make_intake = make_intake
        self._signature_of = signature_of
        self._is_named = is_named
        self._stored = stored
        self._eased = eased
        self._posted = posted
        self._is_reading = is_reading
        self._began: float | None = None
        """monotonic: when the thread began, or went on after a rest; None: nothing is being parsed there"""
        self._closes = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="loader")
        self._queue: deque[tuple[Job, Then, int]] = deque()
        """the first is being parsed"""
        self.bytes_waiting = 0
        """bytes of bodies that wait to be parsed or are being parsed"""
        self.failed: Exception | None = None
        """what parsing in the thread failed of: our mistake, for nothing that the web sends raises"""
        self._task: asyncio.Task[None] | None = None
        self._going = False
        """`_go_on` is due"""
        self._closed = False
        self._topics: set[str] = set()
        """of partitions that reports were posted to"""

    @cached_property
    def intake(self) -> Intake:
        """The loader's."""
        intake = self._make_intake()
        intake.rest = self._rest
        return intake

    @property
    def _begun(self) -> bool:
        """There is an intake."""
        return "intake" in self.__dict__

    @property
    def quiet(self) -> bool:
        """Nothing is being parsed, and nothing waits but for parts."""
        return not self._queue and self._task is None and not (self._begun and self.intake.ready)

    @property
    def queued(self) -> int:
        """Jobs that are not done: reports that nobody has seen yet are among them."""
        return len(self._queue)

    def deliver(self, report: PageReport, body: bytes | None) -> None:
        """Post a page's report, past the loader if `body` (XML or a DTD) is to be loaded first. Never waits."""
        post = partial(self._post, report)
        if report.loading and body is not None and not self.is_known(report):
            self.take(_xml_page(report, body), post)
        elif (stored := self.again(report)) is not None:
            self.take(stored, post)
        else:
            self.settled(report, post)

    def _post(self, report: PageReport) -> None:
        self.bus.post(topics.pages(owner_of(report.page)), report)
        self._posted(report)

    def is_known(self, report: PageReport) -> bool:
        """The very body was loaded before and nobody waits for it: the stored links stand."""
        return (
            bool(report.signature)
            and report.signature == self._signature_of(report.page)
            and not self._misses(report.url)
        )

    def _misses(self, url: str) -> bool:
        """A document waits for the part `url`."""
        return self._begun and url in self.intake.missed_parts

    def again(self, report: PageReport) -> XmlPage | None:
        """The page did not change, but what it is judged by did: its stored body."""
        unchanged = not report.error and (report.status == 304 or (report.loading and self.is_known(report)))
        return self._stored(report) if unchanged else None

    def take(self, page: XmlPage, then: Then = _nothing) -> None:
        """Load one body, then call `then`. The body goes along where its load has to wait, for Status-Data."""

        def job() -> list[LoaderMessage]:
            messages = self.intake.take(page, self.clock.time(), named=self._is_named(page.page))
            waits = any(
                isinstance(message, LoadReport) and message.page == page.page and message.state is LoadState.WAITING
                for message in messages
            )
            return [page, *messages] if waits else [*messages]

        size = len(page.body)
        self._do(job, then, size, slow=size <= BIG and self.intake.may_take_long(page))

    def settled(self, report: PageReport, then: Then = _nothing) -> None:
        """An order ended without a body for the loader, then `then`: perhaps a document waited for it."""

        def job() -> list[LoaderMessage]:
            if report.url not in self.intake.missed_parts or (report.error and not report.final):
                return []
            if report.location:
                return [*self.intake.moved(report.url, report.location, self.clock.time())]
            if report.status == 304:
                return [*self.intake.unchanged(report.url, self.clock.time())]
            return [*self.intake.missing(report.url, self.clock.time())]

        if self._misses(report.url):  # else it need not wait for what is being parsed
            self._do(job, then, slow=self.intake.has_to_read(report.url))
        else:
            then()

    def missing(self, url: str) -> None:
        """The part `url` will not be read: a person has blocked its host."""
        slow = self.intake.has_to_read(url)
        self._do(lambda: [*self.intake.missing(url, self.clock.time())], _nothing, slow=slow)

    def resume(self, waits: Sequence[Resumed]) -> None:
        """Resume the loads that waited when the process before ended."""
        if waits:
            self._do(lambda: [*self.intake.resume(waits, self.clock.time())], _nothing)

    def leave(self, partition: int) -> None:
        """Forget the loads of a partition that wait: another node resumes them from its Status-Data."""

        def job() -> list[LoaderMessage]:
            self.intake.leave(partition)
            return []

        if self._begun:
            self._do(job, _nothing)

    def wanted(self, tell: Callable[[list[str]], None]) -> None:
        """Call `tell` with the parts that documents wait for, as soon as nothing is being parsed."""
        urls: list[str] = []

        def job() -> list[LoaderMessage]:
            urls.extend(self.intake.wanted())
            return []

        if self._begun and self.intake.waiting:
            self._do(job, lambda: tell(urls))

    def supply(self, url: str, part: StoredPart) -> None:
        """Another node knows of the part `url`."""
        slow = self.intake.has_to_read(url)
        self._do(lambda: [*self.intake.supply(url, part, self.clock.time())], _nothing, slow=slow)

    def expire(self) -> None:
        """Nothing waits for ever."""
        if self._begun and self.intake.waiting:
            self._do(lambda: [*self.intake.expire(self.clock.time())], _nothing, slow=True)

    def _go_on(self) -> None:
        """Documents whose parts came: some at a time, and no faster than the partitions take them."""
        loop = asyncio.get_running_loop()
        if self._closed:
            return
        if any(self.bus.waiting(topic) > CROWDED for topic in self._topics):
            loop.call_later(PAUSE, self._go_on)
        else:
            self._going = False
            self.expire()

    def _do(self, job: Job, then: Then, size: int = 0, *, slow: bool = False) -> None:
        """In order: at once if nothing is before it and it is short, else by the task. `slow`: it may not be."""
        if size <= BIG and not slow and self._task is None:
            self._tell(job(), then)
            return
        self._queue.append((job, then, size))
        self.bytes_waiting += size
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                job, then, size = self._queue[0]
                messages = await loop.run_in_executor(self._thread, self._aside, job)
                self._queue.popleft()
                self.bytes_waiting -= size
                self._tell(messages, then)
                self._eased()
        except Exception as error:  # reports are lost with it: whoever runs the crawl asks, and ends it
            self.failed = error
        finally:
            self._task = None

    def _aside(self, job: Job) -> list[LoaderMessage]:
        """In the thread."""
        self._began = self.clock.monotonic()
        try:
            return job()
        finally:
            self._began = None

    def _rest(self) -> None:
        """Between two pieces of a body: let the event loop have Python for itself, where pages are being read."""
        if self._began is None:
            return
        times = OTHERS * (1.0 - self.bytes_waiting / MUCH)
        if times > 0.0 and self._is_reading():
            self._closes.wait(times * (self.clock.monotonic() - self._began))
        self._began = self.clock.monotonic()

    def _tell(self, messages: list[LoaderMessage], then: Then) -> None:
        for message in messages:
            self.bus.post(topics.pages(owner_of(message.page)), message)
            self._topics.add(topics.pages(owner_of(message.page)))
        then()
        if self.intake.ready and not self._queue and not self._going:
            self._going = True
            asyncio.get_running_loop().call_soon(self._go_on)

    async def close(self, grace: float) -> None:
        """Parse what waits for at most `grace` seconds, finish the body that is being parsed, end the thread. What is
        left was never reported: it is read again."""
        self._closed = True
        self._closes.set()
        if self._task is not None:
            _, going = await asyncio.wait([self._task], timeout=grace)
            if going:
                while len(self._queue) > 1:
                    self.bytes_waiting -= self._queue.pop()[2]
                await asyncio.wait(going)
        self._thread.shutdown()
        if self._begun:
            self.intake.close()


def _xml_page(report: PageReport, body: bytes) -> XmlPage:
    return XmlPage(
        page=report.page,
        url=report.url,
        epoch=report.epoch,
        read_at=report.ended,
        kind=report.kind if report.kind is Kind.DTD else Kind.XML,
        mime=report.mime,
        charset=report.charset,
        body=body,
    )
