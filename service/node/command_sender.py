"""Sends commands to partitions and waits for their answers, wherever the partitions live.

A request has a number; the partition's answer carries it back when the commit group is on disk. What carries them may
lose either: a request without an answer is sent again, and a repeated one is answered without being applied again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from xyro.wire import topics
from xyro.wire.bus import Bus
from xyro.wire.clock import Clock
from xyro.wire.commands import NODE_SHIFT, Command, CommandAnswer
from xyro.wire.errors import MachineError
from xyro.wire.messages import Message, Submit
from xyro.wire.urls import host_of, partition_of

ANSWERS_AT_ONCE = 1024
SOONEST, LATEST = 2.0, 30.0
"""seconds until a request without an answer is sent again; doubles each time"""
SUBMIT_URLS = 10_000
"""most URLs in one Submit"""
LOOK = 5.0
"""seconds for partitions to take URLs, until it is asked whether they are there at all"""
Absent = Callable[[Collection[int], float], Awaitable[Mapping[int, str]]]


def parts_of(submit: Submit, partitions: int) -> Iterator[tuple[int, Submit]]:
    """(partition, Submit of the URLs that belong to it), at most SUBMIT_URLS in each. The parts have no request."""
    parts: dict[int, list[str]] = {}
    for url in submit.urls:
        parts.setdefault(partition_of(host_of(url), partitions), []).append(url)
    for partition, urls in parts.items():
        for start in range(0, len(urls), SUBMIT_URLS):
            yield partition, Submit(tuple(urls[start : start + SUBMIT_URLS]), submit.priority, submit.seed)


def _unheeded(future: asyncio.Future[Any]) -> None:
    """Take the error of a request for which nobody waits."""
    if not future.cancelled():
        future.exception()


def _numbered(part: Submit, request: int) -> Submit:
    return replace(part, request=request)


class PendingRequest(Struct):
    """One that waits for its answer."""

    partition: int
    message: Command | Submit
    future: asyncio.Future[Any]
    at: float
    """monotonic: when it is sent again"""
    wait: float = SOONEST


class CommandSender:
    """The requests of one node that wait for an answer.

    `posted`: called with the number of a partition after a command was posted to it: somebody waits there.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        partitions: int,
        posted: Callable[[int], None] = lambda partition: None,
        node: int = 0,
    ) -> None:
        self.bus = bus
        self._clock = clock
        self.partitions = partitions
        self._posted = posted
        self._topic = topics.answers(node)
        first = int(clock.time()) % (1 << NODE_SHIFT - 1)  # not those of before a restart: partitions remember answers
        self._numbers = itertools.count((node << NODE_SHIFT) + 1 + first)
        self._waiting: dict[int, PendingRequest] = {}
        self._error: BaseException | None = None
        """a partition has failed: no answer will come"""

    async def send(self, partition: int, command: Callable[[int], Command]) -> Any:
        """Post the command that `command` makes of a request number; its result, when it is on disk.

        MachineError: it could not be written, or the partition does not know the command.
        """
        return await self._ask(partition, command)

    async def submit(self, submit: Submit, absent: Absent | None = None) -> dict[int, str]:
        """Hand URLs over to the partitions they belong to; return when they are on disk. MachineError: as `send`.

        absent: asked again and again about partitions that have not answered, and for how many seconds; of those that
        it names nothing more is expected. -> these, each with its sentence.
        """
        parts, began, gone = parts_of(submit, self.partitions), self._clock.monotonic(), dict[int, str]()
        pending = {self._ask(partition, partial(_numbered, part)): partition for partition, part in parts}
        try:
            while pending:
                patience = None if absent is None else LOOK
                done, _ = await asyncio.wait(pending, timeout=patience, return_when=asyncio.FIRST_EXCEPTION)
                for future in done:
                    del pending[future]
                    future.result()
                if pending and absent is not None:
                    gone |= await absent({*pending.values()}, self._clock.monotonic() - began)
                    for future in [future for future, partition in pending.items() if partition in gone]:
                        del pending[future]
                        future.cancel()
        finally:
            for future in pending:
                future.add_done_callback(_unheeded)
                future.cancel()
        return gone

    def widen(self, seeds: Sequence[str]) -> None:
        """Let all partitions have seeds of other partitions: they widen the scope there, too. Nobody waits for that; a
        partition that is away has them when it answers."""
        for start in range(0, len(seeds), SUBMIT_URLS):
            part = Submit(tuple(seeds[start : start + SUBMIT_URLS]))
            for partition in range(self.partitions):
                self._ask(partition, partial(_numbered, part)).add_done_callback(_unheeded)

    def post(self, partition: int, command: Command) -> None:
        """Post a command that nobody waits for."""
        self.bus.post(topics.pages(partition), command)

    def _ask(self, partition: int, message: Callable[[int], Command | Submit]) -> asyncio.Future[Any]:
        if self._error is not None:
            raise self._error
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        request = PendingRequest(partition, message(number), future, self._clock.monotonic() + SOONEST)
        self._waiting[number] = request
        self._post(request)
        return future

    def _post(self, request: PendingRequest) -> None:
        self.bus.post(topics.pages(request.partition), request.message)
        self._posted(request.partition)

    async def run(self) -> None:
        """Take answers from the bus until it closes."""
        messages: list[Message] | None = []
        while messages is not None:
            for message in messages:
                if isinstance(message, CommandAnswer):
                    self._settle(message)
            self._repeat()
            messages = await self._received()

    async def _received(self) -> list[Message] | None:
        """Wait at most SOONEST seconds for answers; None: the bus is closed."""
        try:
            async with asyncio.timeout(SOONEST):
                return await self.bus.receive(self._topic, ANSWERS_AT_ONCE) or None
        except TimeoutError:
            return []

    def _repeat(self) -> None:
        """Send what had no answer in time again."""
        now = self._clock.monotonic()
        self._waiting = {number: each for number, each in self._waiting.items() if not each.future.done()}
        for request in self._waiting.values():
            if request.at <= now:
                request.wait = min(2.0 * request.wait, LATEST)
                request.at = now + request.wait
                self._post(request)

    def _settle(self, answer: CommandAnswer) -> None:
        request = self._waiting.pop(answer.request, None)
        if request is None or request.future.done():  # whoever asked has gone away
            return
        future = request.future
        if answer.error:
            future.set_exception(MachineError(answer.error))
        else:
            future.set_result(answer.result())

    async def finish(self) -> None:
        """Take the answers that are there; whoever waits for another one is told that the crawl has stopped."""
        if waiting := self.bus.waiting(self._topic):
            for message in await self.bus.receive(self._topic, waiting):
                if isinstance(message, CommandAnswer):
                    self._settle(message)
        self.fail(MachineError("the crawl has stopped"))

    def fail(self, error: BaseException) -> None:
        """No answer will come any more: every request fails of `error`, those under way and those to come."""
        self._error = self._error or error
        for request in self._waiting.values():
            if not request.future.done():
                request.future.set_exception(self._error)
                request.future.exception()  # somebody may have stopped waiting: that is no error of its own
        self._waiting.clear()
