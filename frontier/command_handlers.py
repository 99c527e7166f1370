"""Applies commands within a commit group of one partition: each type of command has one handler.

Before: the partition's loop gathered them (batch.py). Next: their answers leave when the commit group is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from xyro.wire.commands import Command, CommandAnswer, answer

C = TypeVar("C", bound=Command)


class CommandHandlers:
    """The handlers of one partition. The core and the plug-ins register theirs."""

    def __init__(self) -> None:
        self._handlers: dict[type[Command], Callable[[Any], object]] = {}

    def handle(self, command: type[C], handler: Callable[[C], object]) -> None:
        """Apply commands of a type with `handler`, whose result MessagePack must be able to hold.

        A handler that raises ends the crawl: half of its commit group is in memory.
        """
        self._handlers[command] = handler

    def apply(self, commands: Iterable[Command]) -> list[CommandAnswer]:
        """Apply commands in order; the answers of those that somebody waits for."""
        answers = []
        for command in commands:
            handler = self._handlers.get(type(command))
            if handler is not None:
                result = handler(command)
                if command.request:
                    answers.append(answer(command.request, result))
            elif command.request:
                answers.append(
                    CommandAnswer(command.request, f"{type(command).__name__}: this crawl has no handler for it")
                )
        return answers
