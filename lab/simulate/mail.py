"""The bus of a life: what goes between partitions comes late, and again, as over a network.

Transfers of cash and their acknowledgements are delayed, each pair of partitions for itself; copies of them, and of
reports, come at any later time, so after what was sent after them. Nothing is lost but by a crash.
"""

from __future__ import annotations

import random

from xyro.lab.simulate.faults import Faults
from xyro.lab.simulate.virtual_loop import GRAIN, VirtualLoop
from xyro.lab.simulate.witness import CrawlWitness
from xyro.wire import topics
from xyro.wire.bus import LocalBus
from xyro.wire.codec import decode, encode
from xyro.wire.messages import Ack, CashTransfer, Message, PageReport


class Mail(LocalBus):
    """`delay`: most seconds that a transfer takes; `doubles`: share of the messages that come twice."""

    def __init__(
        self,
        loop: VirtualLoop,
        draw: random.Random,
        faults: Faults,
        witness: CrawlWitness,
        delay: float,
        doubles: float,
    ) -> None:
        super().__init__()
        self._loop = loop
        self._draw = draw
        self._faults = faults
        self._witness = witness
        self._delay = delay
        self._doubles = doubles
        self._due: dict[tuple[int, int], float] = {}
        """(source, target) -> when its last message arrives"""

    def post(self, topic: str, message: Message) -> None:
        self._faults.reach(f"post.{topic.partition('.')[0]}")
        self._witness.note_post(topic, message)
        copy = decode(encode(message)) if topic != topics.ORDERS else message
        if isinstance(message, CashTransfer | Ack):
            channel = (message.source, message.target)
            due = max(self._due.get(channel, 0.0) + GRAIN, self._loop.now + self._delay * self._draw.random() ** 3)
            self._due[channel] = due
            self._loop.call_at(due, self._arrive, topic, copy)
        else:
            super().post(topic, copy)
        if isinstance(message, CashTransfer | Ack | PageReport) and self._draw.random() < self._doubles:
            again = max(self._due.values(), default=0.0) - self._loop.now + self._draw.expovariate(1.0)
            self._loop.call_later(again, self._arrive, topic, copy)

    def _arrive(self, topic: str, message: Message) -> None:
        if not self._closed:
            super().post(topic, message)
