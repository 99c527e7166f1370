"""An event loop whose time jumps: the same seed runs the same callbacks at the same moments, in the same order.

Nothing waits: when no callback is ready, time becomes that of the next timer. What is ready runs first come, first
served, as asyncio promises; what is free in life is drawn: how late a timer is, and who of several is first.
Threads do not exist: a job for an executor runs on the loop, one at a time per executor, after a drawn share of a drawn
delay, and its result comes when the rest has passed. Sockets do not exist either: connecting one is a network's work.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import random
import socket
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, NamedTuple, Protocol

from xyro.wire.errors import MachineError

GRAIN = 2.0**-20
"""seconds"""
LATEST = 0.02
"""seconds by which a timer may be late"""


class Stall(MachineError):
    """Nothing is ready and no timer runs, or a life takes more callbacks than any sound one."""


class SocketNetwork(Protocol):
    """The other end of every socket."""

    async def connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        """Connect a socket; OSError where nobody accepts."""

    def open(self, sock: socket.socket, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Return the transport of a connected socket."""


class _Job(NamedTuple):
    """A function for an executor, and the future of its result."""

    future: asyncio.Future[Any]
    work: Callable[[], Any]


class VirtualLoop(asyncio.BaseEventLoop):
    """`draw`: its own source of randomness. `jitter`: share of the timers that are late, by a drawn time.

    `job_delay()`: seconds that a job of an executor takes. `bound`: callbacks after which it is a Stall. `each_turn`:
    called before each callback, with the time.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool

    def __init__(
        self,
        start: float,
        draw: random.Random,
        jitter: float,
        job_delay: Callable[[], float],
        each_turn: Callable[[float], None],
        bound: int = 1_200_000,
    ) -> None:
        super().__init__()
        self.turns = 0
        """callbacks that were run"""
        self._now = math.ceil(start / GRAIN) * GRAIN
        self._draw = draw
        self._jitter = jitter
        self._job_delay = job_delay
        self._each_turn = each_turn
        self._bound = bound
        self._jobs: dict[object, deque[_Job]] = {}
        self._tasks = 0
        self._network: SocketNetwork | None = None
        self.set_task_factory(self._make_task)

    def attach(self, network: SocketNetwork) -> None:
        """Sockets connect through this network from now on."""
        self._network = network

    def time(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        """Seconds since the first life began."""
        return self._now

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Time passes in grains: sums of floats would else end a sleep just before its moment, for ever."""
        if delay > 0 and self._draw.random() < self._jitter:
            delay += LATEST * self._draw.random()
        ticks = max(math.ceil((self._now + delay) / GRAIN), math.floor(self._now / GRAIN) + 1) if delay > 0 else 0
        return self.call_at(ticks * GRAIN if ticks else self._now, callback, *args, context=context)

    # -- callbacks -----------------------------------------------------------------------------------------------

    def _write_to_self(self) -> None:
        """Nobody sleeps: `call_soon_threadsafe` needs to wake no one."""

    def _process_events(self, event_list: list[Any]) -> None:
        """No selector, no events."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when their time comes."""

    def _run_once(self) -> None:
        """One callback; time jumps where none is ready."""
        ready = self._ready
        if not ready:
            self._jump()
        handle = ready.popleft()
        if handle.cancelled():
            return
        self.turns += 1
        if self.turns > self._bound:
            raise Stall(f"{self._bound:,} callbacks, and no end at {self._now:.1f} s")
        self._each_turn(self._now)
        if not self._stopping:
            handle._run()

    def _jump(self) -> None:
        """Let time pass until the next timer; all that are due then become ready."""
        ready, timers = self._ready, self._scheduled
        while not ready:
            if not timers:
                self._each_turn(self._now)  # the last callback may have been the one of a crash
                raise Stall("nothing is ready and no timer runs")
            timer = heapq.heappop(timers)
            if not timer.cancelled():
                self._now = max(self._now, timer.when())
                ready.append(timer)
        while timers and timers[0].when() <= self._now:
            ready.append(heapq.heappop(timers))
        if len(ready) > 1 and self._jitter:
            self._draw.shuffle(ready)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        self._tasks += 1
        return NumberedTask(self._tasks, coro, loop=loop, **more)

    # -- threads -------------------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a job on the loop, after those that were given to the same executor before."""
        future = self.create_future()
        jobs = self._jobs.setdefault(self._threads_of(executor), deque())
        jobs.append(_Job(future, lambda: func(*args)))
        if len(jobs) == 1:
            self._begin_job(jobs)
        return future

    def _threads_of(self, executor: object) -> object:
        """Jobs of one of these run one after the other."""
        return id(executor)

    def _begin_job(self, jobs: deque[_Job]) -> None:
        delay = self._job_delay()
        before = delay * self._draw.random()
        self.call_later(before, self._run_job, jobs, delay - before)

    def _run_job(self, jobs: deque[_Job], after: float) -> None:
        result, error = None, None
        try:
            result = jobs[0].work()
        except Exception as caught:  # a crash passes: it is no Exception
            error = caught
        self.call_later(after, self._end_job, jobs, result, error)

    def _end_job(self, jobs: deque[_Job], result: Any, error: Exception | None) -> None:
        future = jobs.popleft().future
        if not future.cancelled():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        if jobs:
            self._begin_job(jobs)

    # -- sockets -------------------------------------------------------------------------------------------------

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        assert self._network is not None
        await self._network.connect(sock, address)

    async def create_connection(self, protocol_factory: Callable[[], Any], *_: Any, sock: Any = None, **__: Any) -> Any:
        assert self._network is not None and sock is not None
        protocol = protocol_factory()
        transport = self._network.open(sock, protocol)
        protocol.connection_made(transport)
        return transport, protocol

    # -- the end -------------------------------------------------------------------------------------------------

    def abandon(self, close: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """End every task, whatever it does about it: the process is gone, and nothing it does counts any more.

        close: what is to be done when all have ended.
        """
        self.set_exception_handler(lambda loop, context: None)
        events._set_running_loop(self)
        try:
            for _ in range(20):
                tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
                if not tasks:
                    break
                for task in sorted(tasks, key=hash):
                    task.cancel()
                self._drain()
            if close is not None:
                self.create_task(close())
                self._drain()
            for _ in range(20):  # what the ends of others began
                for task in sorted(asyncio.all_tasks(self), key=hash):
                    with contextlib.suppress(RuntimeError, BaseExceptionGroup):
                        task.get_coro().close()  # it awaits something on its way out, or its group tells of the end
                    task.cancel()
                self._drain()
        finally:
            events._set_running_loop(None)
        self.close()

    def _drain(self) -> None:
        """Run what is ready, without time passing."""
        for _ in range(100_000):
            if not self._ready:
                return
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory."""

    def __init__(self, number: int, coro: Any, **more: Any) -> None:
        self._number = number
        super().__init__(coro, **more)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other
