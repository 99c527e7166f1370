"""A daemon that has no bandwidth proposes one in its log, once; `status` says what bounds what."""

import asyncio
import logging

import numpy as np
import pytest

from xyro.configs.load import load
from xyro.configs.schema import RefreshSettings
from xyro.refresh.population import Population
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.progress import PLAIN, offer
from xyro.service.node.status import running
from xyro.service.views.forecast import ENOUGH, PlanQuestion, forecast, proposal
from xyro.wire.clock import ManualClock

PAGES = Population.from_pages(np.full(1000, 1.0), np.geomspace(1e-3, 10.0, 1000))


def test_the_proposal_is_where_twice_the_bandwidth_gains_little():
    settings = RefreshSettings()
    row = proposal(PAGES, settings)
    once, twice = (
        forecast(PAGES, settings, PlanQuestion(bandwidth=f"{times * row['reads_per_day']}/day"))[0]["freshness"]
        for times in (1.0, 2.0)
    )
    assert once == pytest.approx(row["freshness"], abs=1e-3) and twice - once < ENOUGH
    half = forecast(PAGES, settings, PlanQuestion(bandwidth=f"{row['reads_per_day'] / 2}/day"))[0]["freshness"]
    assert once - half >= ENOUGH


@pytest.mark.parametrize(("bandwidth", "offers"), [(0.0, 1), ("100/day", 0)])
def test_a_daemon_offers_a_bandwidth_once_if_none_is_set(tmp_path, caplog, bandwidth, offers):
    async def scene():
        clock = ManualClock(1.7e9)
        settings = load((), {}, {"fetch.only_net": ("127.0.0.0/8",), "refresh.bandwidth": bandwidth})
        data = DataDir.open(tmp_path / "data", make=True)
        node = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock)
        try:
            node.start()
            node.frontiers[0].scheduler.bandwidth.population.merge(PAGES)
            task = asyncio.create_task(offer(node))
            for _ in range(4):
                await asyncio.sleep(0.01)
                clock.advance(PLAIN)
            await asyncio.wait_for(task, 5.0)
            return running(node)
        finally:
            await node.stop()
            data.close()

    with caplog.at_level(logging.INFO, "xyro"):
        status = asyncio.run(scene())
    assert sum("proposes" in record.getMessage() for record in caplog.records) == offers
    assert status["gamma"] == 50.0 and status["bounded_by"]["discovery"] == "politeness, gamma"
    assert ("bandwidth 100/day" in status["bounded_by"]["refresh"]) is (not offers)
