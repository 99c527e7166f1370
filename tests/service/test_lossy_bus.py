"""Messages between partitions are lost, repeated and reordered: the crawl heals while it runs, and nothing is counted
twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from tests.service.test_encoding_bus import crawl
from xyro.frontier import outbox
from xyro.lab.child import running
from xyro.service.node import command_sender
from xyro.wire.bus import EncodingBus, LocalBus
from xyro.wire.commands import Command, CommandAnswer
from xyro.wire.messages import Ack, CashTransfer, Message, Submit

PAGES, HOSTS = 250, 6


@pytest.fixture(scope="module")
def web():
    with running(pages=PAGES, hosts=HOSTS, seed=5) as found:
        yield found


class LossyBus(EncodingBus):
    """Loses, repeats and delays a share each of what would cross between nodes: cash, acknowledgements, requests with
    their answers."""

    def __init__(self, share: float, seed: int) -> None:
        super().__init__()
        self.share = share
        self.fates: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._late: set[asyncio.TimerHandle] = set()

    def post(self, topic: str, message: Message) -> None:
        crosses = isinstance(message, CashTransfer | Ack | CommandAnswer) or (
            isinstance(message, Submit | Command) and message.request
        )
        fate = self._random.random() / self.share if crosses and self.share else 3.0
        self.passed[type(message).__name__] += bool(crosses)
        if fate < 1.0:
            self.fates["lost"] += 1
        elif fate < 2.0:
            self.fates["repeated"] += 1
            super().post(topic, message)
            super().post(topic, message)
        elif fate < 3.0:
            self.fates["delayed"] += 1
            asyncio.get_running_loop().call_later(self._random.random() / 10, self._arrive, topic, message)
        else:
            super().post(topic, message)

    def _arrive(self, topic: str, message: Message) -> None:
        if not self._closed:
            super().post(topic, message)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.06, 0.12])
async def test_pages_links_and_cash_are_those_of_a_bus_that_loses_nothing(tmp_path, web, share, monkeypatch):
    monkeypatch.setattr(outbox, "SOONEST", 0.3)
    monkeypatch.setattr(command_sender, "SOONEST", 0.3)
    whole = await crawl(tmp_path / "whole", web, LocalBus(), 4)
    bus = LossyBus(share, seed=round(100 * share))
    torn = await crawl(tmp_path / "torn", web, bus, 4)
    assert min(bus.fates[fate] for fate in ("lost", "repeated", "delayed")) >= 3
    assert torn[:2] == whole[:2]
    assert torn[2]["ok"]
    assert torn[2]["cash_total"] == 65_536 * len(torn[0])
