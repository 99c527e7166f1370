"""Applies commands within a commit group of one partition: each type of command has one handler.

Before: the partition's loop gathered them (batch.py). Next: their answers leave when the commit group is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from xyro.wire.commands import Command, CommandAnswer, answer
from xyro.wire.questions import Question

C = TypeVar("C", bound=Command)
REMEMBERED = 4096
"""last requests whose answers are remembered: a sender that got none asks again"""


class CommandHandlers:
    """The handlers of one partition. The core and the plug-ins register theirs."""

    def __init__(self) -> None:
        self._handlers: dict[type[Command], Callable[[Any], object]] = {}
        self._answers: dict[int, CommandAnswer] = {}

    def handle(self, command: type[C], handler: Callable[[C], object]) -> None:
        """Apply commands of a type with `handler`, whose result MessagePack must be able to hold.

        A handler that raises ends the crawl: half of its commit group is in memory.
        """
        self._handlers[command] = handler

    def apply(self, commands: Iterable[Command]) -> list[CommandAnswer]:
        """Apply commands in order; the answers of those that somebody waits for."""
        answers = []
        for command in commands:
            again = isinstance(command, Question)  # it changes nothing: its answer is of now, and may be large
            done = self._apply(command) if again else self.once(command.request, partial(self._apply, command))
            if done is not None:
                answers.append(done)
        return answers

    def once(self, request: int, change: Callable[[], CommandAnswer | None]) -> CommandAnswer | None:
        """Make the change of a request, unless this repeats one that was answered: the answer, None if nobody waits."""
        if not request:
            return change()
        done = self._answers.get(request)
        if done is None and (done := change()) is not None:
            self._answers[request] = done
            if len(self._answers) > REMEMBERED:
                del self._answers[next(iter(self._answers))]
        return done

    def _apply(self, command: Command) -> CommandAnswer | None:
        request, handler = command.request, self._handlers.get(type(command))
        if handler is not None:
            result = handler(command)
            return answer(request, result) if request else None
        error = f"{type(command).__name__}: this crawl has no handler for it"
        return CommandAnswer(request, error) if request else None
