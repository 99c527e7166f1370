"""A daemon that has no bandwidth proposes one in its log, once; `status` says what bounds what."""

import asyncio
import json
import logging
import math

import msgspec
import numpy as np
import pytest

from xyro.configs.load import load
from xyro.configs.schema import RefreshSettings
from xyro.refresh.plan_part import PlanPart
from xyro.refresh.population import Population
from xyro.service.cli.plan_command import plan_table
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.progress import PLAIN, offer
from xyro.service.node.status import bounds, running
from xyro.service.views.forecast import ENOUGH, PlanQuestion, forecast, proposal, report
from xyro.wire.clock import ManualClock

PAGES = PlanPart(Population.from_pages(np.full(1000, 1.0), np.geomspace(1e-3, 10.0, 1000)))


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


def test_what_is_proposed_for_a_target_reaches_it_or_nothing_is_proposed():
    reached = report(PAGES, RefreshSettings(), PlanQuestion(target=0.8), 0.0)
    assert reached["proposed"] == reached["rows"][0] and reached["proposed"]["freshness"] >= 0.8
    rare = RefreshSettings(min_interval=100 * 86400.0)
    missed = report(PAGES, rare, PlanQuestion(target=0.95), 0.0)
    most = forecast(PAGES, rare, PlanQuestion(bandwidth="1000000/s"))[0]["freshness"]
    assert missed["proposed"] is None and most < 0.95
    table = plan_table(missed)
    assert "no bandwidth gives 95.0%" in table and f"as often as [politeness], allow gives {most:.1%}" in table


def test_a_bandwidth_too_small_for_the_longest_interval_is_told_with_what_that_takes():
    often = RefreshSettings(max_interval=3600.0)
    few = forecast(PAGES, often, PlanQuestion(bandwidth="4/day"))[0]
    assert few["reads_per_day"] >= 24 * 1000 and few["freshness"] == proposal(PAGES, often)["freshness"]
    assert proposal(PAGES, often)["reads_per_day"] >= 24 * 1000
    assert "less bandwidth could not keep it" in plan_table(report(PAGES, often, PlanQuestion(), 0.0))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.0, "came as often as"), (0.97, "came as often as"), (0.804, "came only 0.8 times as often"),
     (1.42, "came 1.4 times as often")],
)  # fmt: skip
def test_how_often_changes_came_is_said_in_words(ratio, words):
    found = report(PAGES, RefreshSettings(), PlanQuestion(target=0.8), 0.0)
    assert words in plan_table({**found, "changes_over_believed": ratio})


@pytest.mark.parametrize(("bandwidth", "offers"), [(0.0, 1), ("100/day", 0)])
def test_a_daemon_offers_a_bandwidth_once_if_none_is_set(tmp_path, caplog, bandwidth, offers):
    async def scene():
        clock = ManualClock(1.7e9)
        settings = load((), {}, {"fetch.only_net": ("127.0.0.0/8",), "refresh.bandwidth": bandwidth})
        data = DataDir.open(tmp_path / "data", make=True)
        node = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock)
        try:
            node.start()
            node.frontiers[0].scheduler.bandwidth.population.merge(PAGES.pages)
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


def test_status_says_what_a_bandwidth_that_covers_new_pages_bounds():
    settings = load((), {}, {"refresh.bandwidth": "100/day", "refresh.bandwidth_covers": "all"})
    assert bounds(settings) == {"discovery": "bandwidth 100/day, gamma", "refresh": "bandwidth 100/day"}
    assert bounds(load((), {}, {"refresh.min_interval": "1h"}))["refresh"] == "politeness, gamma, min_interval 1h"


def test_rows_of_a_table_differ_and_it_says_where_more_bandwidth_changes_nothing():
    said = "more bandwidth would change nothing: so seldom do these pages change"
    for rate, policies, rows in ((1e-6, 1, 2), (1e-3, 2, 6)):
        still = PlanPart(Population.from_pages(np.full(32, 1.0), np.full(32, rate)))
        question = PlanQuestion(policies=("obsolescence", "mixed")[:policies])
        table = plan_table(report(still, RefreshSettings(), question, 0.0)).splitlines()
        shown = [line.split() for line in table if line.startswith(("obsolescence", "mixed"))]
        assert len(shown) == len({(row[0], row[3]) for row in shown}) == rows * policies
        assert table.count(said) == (policies if rate < 1e-3 else 0)
    busy = plan_table(report(PAGES, RefreshSettings(), PlanQuestion(), 0.0))
    assert busy.count("\nobsolescence") == 6 and said not in busy
    assert [line.split()[1] for line in busy.splitlines()[1:4]] == ["20", "50", "100"]


def test_a_plan_spends_no_more_reads_than_politeness_allows_of_the_hosts():
    slow = msgspec.structs.replace(PAGES, most_reads=20.0)
    settings = RefreshSettings(audit=0.0)
    free, bound = (forecast(part, settings, PlanQuestion(bandwidth="1000/day"))[0] for part in (PAGES, slow))
    same = forecast(PAGES, settings, PlanQuestion(bandwidth="20/day"))[0]
    assert bound["used_per_day"] <= 20.0 < free["used_per_day"]
    assert bound["freshness"] == same["freshness"] < free["freshness"] and bound["reads_per_day"] == 1000.0
    within = report(slow, settings, PlanQuestion(target=round(same["freshness"] - 0.02, 3)), 0.0)
    beyond = report(slow, settings, PlanQuestion(target=round(free["freshness"] - 0.02, 3)), 0.0)
    assert within["proposed"]["reads_per_day"] <= 20.0 and beyond["proposed"] is None
    assert "no bandwidth gives" in plan_table(beyond)
    table = plan_table(report(slow, settings, PlanQuestion(), 0.0))
    assert "politeness allows 20 reads of these hosts a day: more bandwidth would change nothing" in table
    assert proposal(slow, settings)["reads_per_day"] <= 2 * 20.0


def test_what_politeness_allows_of_several_parts_is_added_up_and_sent_to_other_nodes():
    slow = msgspec.structs.replace(PAGES, most_reads=20.0)
    assert PlanPart.load(json.loads(json.dumps(slow.dump()))).most_reads == 20.0
    assert PlanPart.merged([slow, slow]).most_reads == 40.0
    assert PlanPart.merged([slow, PAGES]).most_reads == PlanPart.load(PAGES.dump()).most_reads == math.inf
