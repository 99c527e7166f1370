"""Whatever bandwidth is free, no page is read again before its least chance of a change, nor before min_interval."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import MemoryStore, in_memory_partition
from tests.frontier.test_deadlines import edit
from tests.frontier.test_revisits import FAST, SLOW, crawl_of, read_for
from xyro.configs.load import SERVE, load
from xyro.configs.schema import RefreshSettings, Settings
from xyro.frontier.bandwidth import DAY, Bandwidth
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.metadata.rows import RefreshRow
from xyro.refresh.policy import SCATTER, Policy, Rules
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.wire.ids import LocalPage

FREE = {"bandwidth": "1000/s", "max_interval": 1e7}
"""so much that every page could be read each second"""


@given(st.floats(0.0, 1e3), st.floats(0.0, 100.0), st.floats(1e-3, 10.0), st.floats(0.001, 0.99))
def test_the_soonest_read_is_when_the_belief_says_so(quiet_days, changes, change_days, chance):
    belief = PageBelief(RateSums(quiet_days, changes, change_days), START)
    days, term = Rules(least_chance=chance).soonest(belief.rate(), belief)
    assert term == "chance"
    assert 1.0 - belief.quiet(days) == pytest.approx(chance, rel=1e-6)
    assert Rules(least_chance=chance).soonest(2.0)[0] == pytest.approx(-math.log1p(-chance) / 2.0), "a known rate"


@given(
    st.floats(0.0, 1e3),
    st.floats(0.0, 100.0),
    st.sampled_from([0.0, 0.01, 0.1, 0.9]),
    st.floats(0.0, 1.0, allow_subnormal=False),
    st.floats(1.0, 100.0),
    st.sampled_from([0.5, 0.999, 1.001, 2.0]),
)
def test_a_time_is_reached_from_the_soonest_on(quiet_days, changes, chance, floor, ceiling, part):
    belief = PageBelief(RateSums(quiet_days, changes, 1.0), START)
    rules = Rules(least_chance=chance, floor=floor, ceiling=ceiling)
    for known in (belief, None):
        days = part * rules.soonest(0.3, known)[0]
        assert rules.reached(0.3, days, known) == (part > 1.0 or not days)


def test_a_page_is_early_in_the_second_of_its_read_but_not_for_a_clock_that_was_set_back():
    bandwidth = Bandwidth(RefreshSettings(least_chance=0.1))
    row = RefreshRow(last_read=1_000, quiet_days=30.0, weight=0.1)
    early = {now: bandwidth.is_early(0, row, now) for now in (900.0, 999.5, 1_000.0, 1_001.0, 1_000.0 + 100 * DAY)}
    assert list(early.values()) == [False, True, True, True, False]


def test_without_a_least_chance_nothing_waits_and_what_never_changes_waits_for_ever():
    assert Rules().soonest(0.3, PageBelief(RateSums(), START)) == (0.0, "floor")
    assert Rules(least_chance=0.1).soonest(0.0)[0] == math.inf


def test_rules_of_many_pages_are_those_of_one_with_the_mean_scatter():
    rules = Rules(Policy(), floor=0.01, ceiling=100.0, least_chance=0.1)
    rates = np.array([1e-6, 0.01, 1.0, 500.0])
    found = rules.intervals(np.ones(4), rates, 1e-9)
    assert found.tolist() == pytest.approx([100.0, *(0.10536 * (1 + SCATTER / 2) / rates[1:3]), 0.01], rel=1e-4)
    assert [rules.one_interval(1.0, rate, 1e-9)[1] for rate in rates.tolist()] == ["chance"] * 3 + ["floor"]
    assert rules.one_interval(1.0, 1.0, 1.0)[1] == "policy", "where bandwidth is scarce it changes nothing"
    with pytest.raises(ValueError, match="least_chance"):
        Rules(least_chance=1.0)


def test_the_plan_foretells_the_reads_that_beliefs_ask_for():
    """A static crawl whose pages were quiet for 1 to 300 days: reads counted date by date, and those of the outlook."""
    settings = RefreshSettings(bandwidth="1000/s", least_chance=0.1, min_interval=0.0, audit=0.0)
    bandwidth, rng = Bandwidth(settings), np.random.default_rng(1)
    beliefs = [PageBelief(RateSums(quiet, 0.0, 0.0), START) for quiet in np.exp(rng.uniform(0.0, 5.7, 300)).tolist()]
    for belief in beliefs:
        bandwidth.replace(LocalPage(0), None, 1.0, belief.rate())
    bandwidth.renew(0.0)
    assert bandwidth.outlook().reads_per_day > 0.0
    by_rates, days, reads = bandwidth.outlook().reads_per_day, 200.0, 0
    due = [(rng.random(), number) for number in range(len(beliefs))]
    heapq.heapify(due)
    while due[0][0] < days:
        now, number = heapq.heappop(due)
        interval = bandwidth.interval(1.0, beliefs[number].rate(), beliefs[number])
        bandwidth.dated(interval, beliefs[number].rate())
        heapq.heappush(due, (now + interval.seconds / DAY * (1.0 + SCATTER * rng.random()), number))
        reads += 1
    assert bandwidth.outlook().reads_per_day == pytest.approx(reads / days, rel=0.04)
    assert by_rates < 0.9 * reads / days, "what rates alone foretell"
    again = Bandwidth(settings)
    again.load(bandwidth.dump(), in_memory_partition(MemoryStore(), 0, 1))
    assert again.population.chance_waits == bandwidth.population.chance_waits, "it lasts over a restart"


@pytest.mark.long
def test_pages_that_do_not_change_are_read_ever_more_seldom():
    crawl = crawl_of(**FREE, min_interval=0.0, least_chance=0.1, time_unit=1800)
    first = read_for(crawl, 4.0).total()
    later = read_for(crawl, 4.0).total()
    assert 2 * len(SLOW + FAST) <= first <= 6 * len(SLOW + FAST)
    assert later < 0.6 * first


@pytest.mark.long
def test_pages_dated_anew_keep_their_dates_apart():
    """A recount puts a page that waits for its chance where its read had put it, not all of one belief on one date."""
    crawl = crawl_of(**FREE, min_interval=0.0, least_chance=0.1, time_unit=60)
    read_for(crawl, 1.0)
    frontier = crawl.frontier
    schedule, due = frontier.scheduler.schedule, frontier.columns["due"]
    while schedule.recount is not None:
        crawl.turn()
    pages = [crawl.page(url)[1] for url in SLOW]
    before = due[pages].tolist()
    edit(crawl, lambda frontier: frontier.scheduler.schedule._count_anew())
    while schedule.recount is not None:
        crawl.turn()
    rows = [frontier.partition.row(page) for page in pages]
    waits = np.array([int(due[page]) - row.last_read for page, row in zip(pages, rows, strict=True)])
    chances = np.array([row.belief.chance_days(0.1) * DAY for row in rows])
    assert due[pages].tolist() == pytest.approx(before, abs=120.0)
    assert (waits > 0.99 * chances).all() and waits.max() / chances.max() > 1.3, waits / chances


def test_pages_that_were_met_together_drift_apart():
    """32 pages read within an hour that never change: each week has fewer reads than the one before, none a wave."""
    bandwidth = Bandwidth(RefreshSettings(bandwidth="1000/s", least_chance=0.1, min_interval=600.0, audit=0.0))
    days = [0] * 35
    bandwidth.replace(LocalPage(0), None, 1.0, 0.1)
    bandwidth.renew(0.0)
    for number in range(32):
        page, t, belief, reads = LocalPage(number), 0.001 * number, PageBelief(RateSums(), START), 0
        while t < len(days):
            days[int(t)] += 1
            wait = bandwidth.wait(bandwidth.interval(1.0, belief.rate(), belief), page, reads) / DAY
            t, belief, reads = t + wait, belief.after(wait, False, None), reads + 1
    weeks = [sum(days[start : start + 7]) for start in range(0, len(days), 7)]
    assert days[0] <= 3 * 32 and max(days[2:]) < 32
    assert all(later < earlier for earlier, later in itertools.pairwise(weeks)), weeks


def test_no_page_is_read_before_its_min_interval_though_bandwidth_is_free():
    crawl = crawl_of(**FREE, min_interval=DAY / 4, time_unit=600)
    reads = read_for(crawl, 2.0)
    assert max(reads.values()) <= 8
    assert reads.total() >= 5 * len(SLOW + FAST), "and what is due is read"


def test_a_daemon_begins_with_both_and_any_file_replaces_them(tmp_path):
    refresh = load((SERVE,)).refresh
    assert (refresh.least_chance, refresh.min_interval) == (0.1, 600.0)
    own = tmp_path / "own.toml"
    own.write_text("[refresh]\nmin_interval = 60.0\n")
    refresh = load((SERVE, own)).refresh
    assert (refresh.least_chance, refresh.min_interval) == (0.1, 60.0)
    assert load((), {}).refresh.least_chance == load((), {}).refresh.min_interval == 0.0


@pytest.mark.parametrize("bound", [{"least_chance": 0.1}, {"min_interval": 60.0}])
def test_a_bounded_crawl_reads_nothing_before_its_date_where_somebody_set_a_bound(bound):
    for refresh, ahead in ((bound, False), ({}, True)):
        settings = Settings(refresh=RefreshSettings(**refresh))
        partition, scope = in_memory_partition(MemoryStore(), 0, 1), Scope(settings.crawl, settings.rules)
        frontier = Frontier(partition, scope, settings, refreshing=True, ahead=True)
        assert (frontier.scheduler.schedule.ahead is not None) is ahead
