"""Messages to partitions of other nodes that nobody would send again: sent until their partition has answered.

Between the partitions of one process a message that was posted is there. What plug-ins post to other partitions, and
the parts of documents that one partition wants from another, rely on that; over a broker they get a request number, are
sent again until the answer says that they are on disk, and the receiver applies each once (command_handlers.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from xyro.service.node.command_sender import LATEST, SOONEST
from xyro.wire.commands import NODE_SHIFT, Command, CommandAnswer
from xyro.wire.messages import Message, Submit

ERRANDS = 65_536
"""messages that wait for their answers; what comes beyond that is sent once"""
_HALF = 1 << NODE_SHIFT - 1
"""request numbers of a node from here on are the courier's, those below its command sender's"""


@dataclass(slots=True)
class _Errand:
    topic: str
    message: Message
    due_at: float
    """monotonic: when it is sent again"""
    wait: float


class Courier:
    """The errands of one node."""

    def __init__(self, node: int, now: float) -> None:
        """now: wall clock; numbers of before a restart do not come again."""
        first = int(now) % (_HALF >> 1)
        self._numbers = itertools.count((node << NODE_SHIFT) + _HALF + first)
        self._errands: dict[int, _Errand] = {}

    def take(self, topic: str, message: Message, now: float) -> Message:
        """The message as it is to be sent: where nobody waits for its answer, with a number under which we do."""
        if not isinstance(message, Command | Submit) or message.request or len(self._errands) >= ERRANDS:
            return message
        number = next(self._numbers)
        numbered = replace(message, request=number)
        self._errands[number] = _Errand(topic, numbered, now + SOONEST, SOONEST)
        return numbered

    def settle(self, answer: CommandAnswer) -> bool:
        """Was this the answer of an errand? It is done, whatever the answer is."""
        self._errands.pop(answer.request, None)
        return answer.request & (_HALF * 2 - 1) >= _HALF

    def due(self, now: float) -> Iterator[tuple[str, Message]]:
        """Yield the messages that had no answer in time."""
        for errand in self._errands.values():
            if errand.due_at <= now:
                errand.wait = min(2.0 * errand.wait, LATEST)
                errand.due_at = now + errand.wait
                yield errand.topic, errand.message

    def __len__(self) -> int:
        return len(self._errands)
