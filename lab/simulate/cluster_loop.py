"""The loop of several processes: each callback belongs to a life, which may stand still or be gone."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

from xyro.lab.simulate.virtual_loop import NumberedTask, VirtualLoop
from xyro.wire.errors import MachineError

LIFE: ContextVar[int] = ContextVar("life", default=0)
"""the process that a callback, a task or a job belongs to; 0: none, it is the world's"""
ROUNDS = 200
"""of callbacks in which the tasks of a life that is gone end"""


class LifeTask(NumberedTask):
    """A task of a life."""

    def __init__(self, number: int, coro: Any, **more: Any) -> None:
        context = more.get("context")
        self.life = LIFE.get() if context is None else context.get(LIFE, 0)
        super().__init__(number, coro, **more)


class ClusterLoop(VirtualLoop):
    """`frozen`: lives whose callbacks wait until `thaw`; `gone`: those whose jobs do nothing any more."""

    def __init__(self, draw: random.Random, each_turn: Callable[[float], None], bound: int) -> None:
        super().__init__(0.0, draw, 0.2, lambda: 0.005 * draw.random(), each_turn, bound)
        self.frozen: set[int] = set()
        self.gone: set[int] = set()
        self._held: deque[asyncio.Handle] = deque()

    def _run_once(self) -> None:
        if not self._ready:
            self._jump()
        if self.frozen and self._ready[0]._context.get(LIFE, 0) in self.frozen:  # type: ignore[attr-defined]
            self._held.append(self._ready.popleft())
            return
        super()._run_once()

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        self._tasks += 1
        return LifeTask(self._tasks, coro, loop=loop, **more)

    def begin(self, life: int, coro: Any) -> asyncio.Task[Any]:
        """Run a coroutine as a process."""
        context = copy_context()
        context.run(LIFE.set, life)
        return self.create_task(coro, context=context)

    def thaw(self, life: int) -> None:
        """Let a life go on: what waited comes first, in its order."""
        self.frozen.discard(life)
        held, self._held = self._held, deque()
        for handle in held:
            frozen = handle._context.get(LIFE, 0) in self.frozen  # type: ignore[attr-defined]
            (self._held if frozen else self._ready).append(handle)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """As threads of this life, which others do not wait for, and which end with it."""
        life = LIFE.get()

        def work() -> Any:
            if life in self.gone:
                raise MachineError("the process is gone")
            return func(*args)

        return super().run_in_executor(executor, work)

    def _threads_of(self, executor: object) -> object:
        return id(executor), LIFE.get()

    async def end(self, life: int) -> None:
        """A life is gone, whatever its tasks do about it. Call in another one."""
        self.gone.add(life)
        self.thaw(life)
        for _ in range(ROUNDS):
            tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, LifeTask) and task.life == life]
            if not tasks:
                return
            for task in sorted(tasks, key=hash):
                task.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
        raise MachineError(f"{len(tasks)} tasks of a process that is gone go on, {tasks[0]}")
