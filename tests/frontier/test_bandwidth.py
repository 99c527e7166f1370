"""How often pages are read: the bandwidth is spent to the read, counts stay exact, and every setting may change."""

from __future__ import annotations

import collections

import msgspec
import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, in_memory_partition, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings, StoreSettings
from xyro.frontier import redating
from xyro.frontier.bandwidth import DAY, Bandwidth, Gamma, parse_bandwidth
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import State
from xyro.refresh.policy import Spread
from xyro.refresh.population import Population
from xyro.refresh.sharing import Capacity

PAGES = [url(host, page) for host in range(10) for page in range(1, 21)]


class Web:
    """Pages that change by a Poisson process each, driven by the jumps of a crawl's clock."""

    def __init__(self, seed=3, **refresh):
        options = {"time_unit": 600, "audit": 0.0} | refresh
        chosen = Settings(
            CrawlSettings(scope="any"), store=StoreSettings(leases_per_host=200), refresh=RefreshSettings(**options)
        )
        self.crawl = Crawl.in_memory(settings=chosen, refreshing=True)
        self.random = np.random.default_rng(seed)
        rates = np.exp(self.random.normal(np.log(0.1), 1.5, len(PAGES)))
        self.rate = dict(zip(PAGES, rates.tolist(), strict=True))
        self.seen = collections.defaultdict(lambda: (START, 0))
        self.reads = collections.Counter()
        self.crawl.submit(url(0))

    def answer(self, order):
        crawl = self.crawl
        then, version = self.seen[order.url]
        version += self.random.poisson(self.rate.get(order.url, 0.1) * (crawl.now - then) / DAY) > 0
        self.seen[order.url] = crawl.now, version
        links = PAGES if order.url == url(0) else [PAGES[(order.page * 7 + k * k) % len(PAGES)] for k in range(8)]
        crawl.answer(order, links, signature=(order.page * 1000 + version).to_bytes(16, "big"))

    def run(self, days):
        """Reads of each day."""
        end, per_day, crawl = self.crawl.now + days * DAY, collections.Counter(), self.crawl
        begin = crawl.now
        while crawl.now < end:
            for order in crawl.turn():
                self.answer(order)
                self.reads[order.url] += 1
                per_day[int((crawl.now - begin) // DAY)] += 1
            if not crawl.pending[0]:
                crawl.now = max(crawl.now + 0.01, min(crawl.frontier.scheduler.next_time(), end))
        return [per_day[day] for day in range(days)]


def recomputed(crawl):
    """S and population from the rows."""
    frontier, n = crawl.frontier, crawl.frontier.columns.n
    found = [frontier.partition.row(page) for page in range(n)]
    held = [row for row in found if row is not None and row.weight]
    weights, rates = np.array([row.weight for row in held]), np.array([row.rate for row in held])
    return Spread.from_weights(weights).dump(), Population.from_pages(weights, rates)


def assert_exact(crawl):
    bandwidth = crawl.frontier.scheduler.bandwidth
    spread, population = recomputed(crawl)
    assert bandwidth.spread.dump() == spread and bandwidth.population == population
    assert bandwidth.population.pages == population.pages


def reborn(web, **refresh):
    """The same crawl, opened anew with other settings."""
    crawl = web.crawl
    chosen = msgspec.structs.replace(crawl.settings, refresh=msgspec.structs.replace(crawl.settings.refresh, **refresh))
    store = crawl.frontier.partition.store
    web.crawl = Crawl([in_memory_partition(store, 0, 1)], chosen, refreshing=True, now=crawl.now)
    web.crawl.pending[0].clear()
    return web.crawl


# Spending


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        {"policy": "obsolescence"},
        {"policy": "mixed", "alpha": 0.3},
        {"policy": "freshness", "max_interval": 5 * DAY},
        {"policy": "obsolescence", "min_interval": 3600.0},
    ],
)
def test_each_policy_spends_the_bandwidth_every_day(policy):
    web = Web(bandwidth="100/day", **policy)
    days = web.run(3)
    assert all(99 <= reads <= 101 for reads in days[1:]), days
    assert_exact(web.crawl)
    assert web.crawl.audit()["violations"] == []


@pytest.mark.long
def test_floors_leave_their_bandwidth_to_others_and_too_much_of_it_is_left_unspent():
    web = Web(bandwidth="200/day", min_interval=2 * DAY)
    days = web.run(6)
    most = (
        len(web.crawl.frontier.scheduler.bandwidth.population.bins.pages)
        and web.crawl.frontier.scheduler.bandwidth.population.pages / 2
    )
    assert web.crawl.frontier.scheduler.bandwidth.multiplier == 0.0, "every page is at its floor"
    assert sum(days[2:]) <= 4 * most + len(PAGES)
    assert max(web.reads.values()) <= 1 + 6 / 2 + 1


def test_ceilings_that_take_more_than_there_is_are_kept_late_but_the_bandwidth_holds():
    web = Web(bandwidth="50/day", max_interval=2 * DAY)
    days = web.run(6)
    assert days[1] <= 10 and all(49 <= reads <= 51 for reads in days[3:]), days


@pytest.mark.long
def test_intervals_follow_the_law_over_many_days():
    """Reads of a page go with sqrt(r lambda) (P1 eq. 22): by the belief that the crawl has come to."""
    web = Web(bandwidth="150/day")
    web.run(3)
    web.reads.clear()
    web.run(5)
    frontier, bandwidth = web.crawl.frontier, web.crawl.frontier.scheduler.bandwidth
    rows = {one: frontier.partition.row(web.crawl.page(one)[1]) for one in PAGES}
    heavy = sorted(PAGES, key=lambda one: -rows[one].weight)
    hot, cold = (sum(web.reads[one] for one in part) for part in (heavy[:60], heavy[-60:]))
    expected = [
        sum(DAY / bandwidth.of_row(0, rows[one]).seconds for one in part) * 5 for part in (heavy[:60], heavy[-60:])
    ]
    assert hot == pytest.approx(expected[0], rel=0.25) and hot > 2 * cold


# Switches


@pytest.mark.long
@pytest.mark.parametrize("policy", ["freshness", "mixed"])
def test_a_switch_while_running_dates_all_pages_anew_in_slices(monkeypatch, policy):
    monkeypatch.setattr(redating, "ROWS", 37)
    web = Web(bandwidth="100/day", max_interval=50 * DAY)
    web.run(3)
    crawl, scheduler = web.crawl, web.crawl.frontier.scheduler
    chosen = msgspec.structs.replace(crawl.settings.refresh, policy=policy, bandwidth="150/day")
    scheduler.reconfigure(msgspec.structs.replace(crawl.settings, refresh=chosen))
    assert scheduler.schedule.recount is not None and scheduler.next_time() == 0.0
    for _ in range(4):
        for order in crawl.turn():
            web.answer(order)
        assert_exact(crawl)
    while scheduler.schedule.recount is not None:
        crawl.turn()
    assert scheduler.bandwidth.rules.policy.name == policy
    due = crawl.frontier.columns["due"]
    for one in PAGES:
        page = crawl.page(one)[1]
        row = crawl.frontier.partition.row(page)
        wait = min(scheduler.bandwidth.of_row(page, row).seconds, 50 * DAY)
        assert int(due[page]) - row.last_read == pytest.approx(wait, rel=0.06, abs=2.0)
    assert_exact(crawl)
    assert all(148 <= reads <= 152 for reads in web.run(2)[1:])


def test_min_importance_takes_pages_out_of_the_plan_and_brings_them_back():
    web = Web(bandwidth="100/day")
    web.run(2)
    crawl, scheduler = web.crawl, web.crawl.frontier.scheduler
    before = scheduler.bandwidth.population.pages
    for least, fewer in ((1.0, True), (0.0, False)):
        chosen = msgspec.structs.replace(crawl.settings.refresh, min_importance=least)
        scheduler.reconfigure(msgspec.structs.replace(crawl.settings, refresh=chosen))
        while scheduler.schedule.recount is not None:
            crawl.turn()
        assert (scheduler.bandwidth.population.pages < before) == fewer
        assert_exact(crawl)


def test_settings_changed_between_two_runs_date_all_pages_anew_and_others_do_not():
    web = Web(bandwidth="100/day")
    web.run(2)
    assert reborn(web).frontier.scheduler.schedule.recount is None
    assert_exact(web.crawl)
    crawl = reborn(web, policy="mixed")
    assert crawl.frontier.scheduler.schedule.recount is not None
    while crawl.frontier.scheduler.schedule.recount is not None:
        crawl.turn()
    assert_exact(crawl)
    assert reborn(web, policy="mixed").frontier.scheduler.schedule.recount is None


def test_a_directory_from_before_there_was_a_population_counts_it():
    web = Web(bandwidth="100/day")
    web.run(2)
    frontier = web.crawl.frontier
    old = frontier.dump() | {
        "planner": {k: v for k, v in frontier.scheduler.dump().items() if k in ("spread", "finder", "boot", "reads")}
    }
    partition = frontier.partition
    partition.begin()
    for cell, _ in list(partition.store.scan(b"p")):
        partition.delete(cell)
    commit = partition.seal({"node": old})
    partition.write(commit)
    partition.written(commit)
    crawl = reborn(web)
    scheduler = crawl.frontier.scheduler
    assert not scheduler.bandwidth.measured and scheduler.schedule.recount is not None
    row = crawl.frontier.partition.row(5)
    bandwidth = scheduler.bandwidth
    assert bandwidth.of_row(5, row).seconds == pytest.approx(
        bandwidth.spread.total / row.weight / bandwidth.reads_per_second
    )
    while scheduler.schedule.recount is not None:
        for order in crawl.turn():
            web.answer(order)
    assert scheduler.bandwidth.measured
    assert_exact(crawl)
    assert_exact(reborn(web))


def test_a_row_that_changes_while_its_order_is_out_stays_counted_exactly():
    web = Web(bandwidth="100/day")
    web.run(1)
    crawl = web.crawl
    while not crawl.orders:
        crawl.now += 600
        crawl.turn()
    page = next(iter(crawl.orders))
    partition, scheduler = crawl.frontier.partition, crawl.frontier.scheduler
    partition.begin()
    row = partition.row(page)
    scheduler.schedule.rewrite(page, row, msgspec.structs.replace(row, rate=row.rate * 9.0))
    scheduler.bandwidth.store(partition)
    commit = partition.seal({"node": crawl.frontier.dump()})
    partition.write(commit)
    partition.written(commit)
    web.answer(crawl.orders[page])
    crawl.turn()
    assert crawl.state(partition.url(page)) is State.READ
    assert_exact(crawl)


# Parts


@pytest.mark.parametrize(
    ("said", "means"),
    [(2.5, 2.5), (0, 0.0), ("10", 10.0), ("4000/day", 4000 / DAY), ("90 / min", 1.5), ("36/h", 0.01), ("3/s", 3.0)],
)
def test_a_bandwidth_has_a_unit(said, means):
    assert parse_bandwidth(said) == pytest.approx(means)


def test_partitions_share_a_bandwidth_that_is_set():
    assert Bandwidth(RefreshSettings(bandwidth=8.0, audit=0.0), 4).reads_per_second == 2.0


def test_capacity_holds_while_there_is_little_to_read():
    """Ten reads a second while much waits; then floors bind, and one a minute is made."""
    capacity = Capacity()
    for second in range(1200):
        capacity.count(float(second), 10, True)
    assert capacity.rate() == pytest.approx(10.0, rel=0.02)
    for minute in range(10_000):
        capacity.count(1200.0 + 60 * minute, 1, False)
    assert capacity.rate() == pytest.approx(10.0, rel=0.02)
    for second in range(700):
        capacity.count(1e6 + second, 3, True)
    assert capacity.rate() == pytest.approx(3.0, rel=0.05), "it follows what can be read"


def test_a_network_that_is_down_is_no_lack_of_capacity():
    capacity = Capacity()
    for second in range(1200):
        capacity.count(float(second), 10, True)
    for second in range(1200, 100_000):
        capacity.count(float(second), 0, True)
    assert capacity.rate() > 4.0


def test_what_was_never_busy_counts_by_its_best_time():
    capacity = Capacity()
    for second in range(60):
        capacity.count(float(second), 2, False)
    capacity.count(1e7, 0, False)
    assert capacity.rate() == pytest.approx(2.0, rel=0.11)


# Gamma


def a_bandwidth(bandwidth, pages=1000):
    bandwidth = Bandwidth(RefreshSettings(bandwidth=bandwidth))
    for page in range(pages):
        bandwidth.replace(page, None, 0.1 + page / pages, 0.1)
    bandwidth.renew(START)
    return bandwidth


def test_gamma_follows_a_schedule():
    sharing = Gamma(RefreshSettings(gamma_schedule=((0, 90), (1000, 20))))
    told = []
    for step, reads in enumerate((0, 500, 1000, 10**9)):
        sharing.renew(START + 10 * step, reads, a_bandwidth(1.0, 3))
        told.append(sharing.percent)
    assert told == [90, 55, 20, 20]


@pytest.mark.parametrize("back", [0.0, DAY, 3000 * DAY])
def test_gamma_goes_on_when_the_clock_is_set_back(back):
    target = Gamma(RefreshSettings(gamma=50.0, target_freshness=0.8))
    auto = Gamma(RefreshSettings(gamma="auto"))
    for sharing in (target, auto):
        sharing.renew(START, 0, a_bandwidth(0.01, 3))
        sharing.hear(1.0, START)
    before = target.percent
    target.renew(START - back + 300.0, 0, a_bandwidth(0.01, 3))
    assert target.percent != before
    assert not auto.seeks(START + 1.0) and auto.seeks(START - back + 5.0)


def test_gamma_auto_gives_discovery_what_refresh_does_not_want_at_the_margin():
    sharing, bandwidth = Gamma(RefreshSettings(gamma="auto")), a_bandwidth(0.01)
    wanted = {}
    for step, margin in enumerate((bandwidth.multiplier * 4.0, bandwidth.multiplier, bandwidth.multiplier / 4.0)):
        sharing.margin = margin
        sharing.renew(START + 10 * step, 0, bandwidth)
        wanted[margin] = sharing.percent
    rich, even, poor = wanted.values()
    assert rich == pytest.approx(50.0, abs=0.5), "at four times the multiplier P1's law reads half as often"
    assert even == poor == 1.0


def test_a_target_moves_gamma_until_refresh_has_what_it_needs():
    measured: list[float | None] = [None]
    sharing = Gamma(RefreshSettings(gamma=50.0, target_freshness=0.8), lambda: measured[0])
    bandwidth = a_bandwidth(1000 * 0.4 / DAY)
    for step in range(400):
        sharing.renew(START + 300 * step, 0, bandwidth)
        bandwidth.share = sharing.refresh_share(contested=True, own=True)
        bandwidth.renew(START + 300 * step)
    assert bandwidth.outlook().freshness == pytest.approx(0.8, abs=0.01)
    measured[0] = 0.1
    for step in range(400, 450):
        sharing.renew(START + 300 * step, 0, bandwidth)
    assert sharing.percent == 1.0, "who measures is believed"


def test_unread_pages_compete_by_the_same_index():
    """Few pages at a time: pages met long ago, beside a bandwidth that reads pages rarely, are worth all of it."""
    told = {}
    for bandwidth in ("1/day", "100000/day"):
        web = Web(gamma="auto", bandwidth=bandwidth)
        crawl = web.crawl
        for _ in range(12):
            crawl.room = 3
            for order in crawl.turn():
                web.answer(order)
            crawl.now += 20_000.0
        assert crawl.frontier.scheduler.unread and crawl.frontier.scheduler.gamma.margin > 0.0
        told[bandwidth] = crawl.frontier.scheduler.gamma.percent
    assert told["1/day"] < 50.0 < told["100000/day"]


def test_a_page_that_never_changes_fast_enough_to_be_kept_is_hopeless():
    bandwidth = Bandwidth(RefreshSettings(bandwidth=1.0, min_interval=3600.0, hopeless=0.1, hopeless_interval=5 * DAY))
    row = RefreshRow(last_read=1, reads=9, quiet_days=1.0, change_sum=99.0, change_days=0.2, rate=500.0, weight=20.0)
    bandwidth.replace(0, None, row.weight, row.rate)
    bandwidth.renew(START)
    assert bandwidth.of_row(0, row) == (5 * DAY, "hopeless")
