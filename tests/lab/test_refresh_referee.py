"""The rules of others and the harder worlds, each against a simulation that knows no formula of theirs."""

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest

from xyro.lab.refresh.change_signals import SignalQuality
from xyro.lab.refresh.compared_policies import FADING, Compared
from xyro.lab.refresh.copies import Copies
from xyro.lab.refresh.expected_gains import LN_AGES, GainTable, ln_gains
from xyro.lab.refresh.greedy_ncis import GreedyNcis, crawl_value
from xyro.lab.refresh.hard_worlds import HARD, HOST_SHARE, QUALITIES, signals_of
from xyro.lab.refresh.mirror_sync import ETA, MirrorSync, descend
from xyro.lab.refresh.page_arrays import DAY, TICK, PageArrays
from xyro.lab.refresh.rates import Estimator, TrueRates
from xyro.lab.refresh.rules import rule
from xyro.lab.refresh.selection import HostCap, least
from xyro.lab.refresh.sim import simulate
from xyro.lab.refresh.world import COMPUTED, of_events
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums

# A referee of the referee: events one after another, in plain Python, no array, no formula of a policy


class Referee:
    """Pages change and are read at moments of a heap; a copy is as many changes behind as came since its read."""

    def __init__(self, seed, pages, days, burn):
        self.random = np.random.default_rng(seed)
        self.days, self.burn = days, burn
        self.rate = [math.exp(x) for x in self.random.normal(math.log(1 / 10), 1.5, pages)]
        self.weight = [1.0 / (1 + i % 20) for i in range(pages)]
        self.behind, self.read_at, self.changes = [0] * pages, [0.0] * pages, [[] for _ in range(pages)]
        self.stale = self.missed = self.clock = 0.0
        self.events = []
        for page, pace in enumerate(self.rate):
            moment = self.random.exponential(1 / pace)
            while moment < days:
                self.changes[page].append(moment)
                heapq.heappush(self.events, (moment, 0, page))
                moment += self.random.exponential(1 / pace)

    def pass_to(self, moment):
        """Add what the copies are behind from the last event to this one."""
        span = max(moment - max(self.clock, self.burn), 0.0)
        if span:
            self.stale += span * sum(w for w, b in zip(self.weight, self.behind, strict=True) if b)
            self.missed += span * sum(w * b for w, b in zip(self.weight, self.behind, strict=True))
        self.clock = moment

    def run(self, reads_a_tick, value):
        """Read the pages of the greatest value(weight, rate, age) every six hours."""
        for tick in range(1, int(self.days * 4) + 1):
            heapq.heappush(self.events, (tick / 4.0, 1, reads_a_tick))
        while self.events:
            moment, kind, number = heapq.heappop(self.events)
            self.pass_to(moment)
            if kind == 0:
                self.behind[number] += 1
                continue
            ages = [moment - at for at in self.read_at]
            ranked = sorted(range(len(ages)), key=lambda p: -value(self.weight[p], self.rate[p], ages[p]))
            for page in ranked[:number]:
                self.read_at[page], self.behind[page] = moment, 0
        whole = (self.days - self.burn) * sum(self.weight)
        return 1.0 - self.stale / whole, self.missed / whole


VALUES = {
    "uniform": lambda w, rate, age: age,
    "p1": lambda w, rate, age: w * rate * age * age,
    "freshness": lambda w, rate, age: w / rate * (1 - math.exp(-rate * age) - rate * age * math.exp(-rate * age)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_simulation_event_by_event_scores_as_the_referee_does(name):
    plain = Referee(3, 100, 60.0, 20.0)
    page = np.array([p for p, times in enumerate(plain.changes) for _ in times])
    times = np.array([t for moments in plain.changes for t in moments])
    world = of_events(np.array(plain.weight), np.array(plain.rate), page, times, 60.0, 20.0)
    fresh, missed = plain.run(5, VALUES[name])
    score = simulate(world, rule(name, world.born, 1), TrueRates(world), 0.2)
    # pages read at the same tick tie for ever under `uniform`: which of them goes first is open
    assert score.freshness == pytest.approx(fresh, abs=0.015 if name == "uniform" else 0.004)
    assert score.obsolescence == pytest.approx(missed, rel=0.06 if name == "uniform" else 0.03)


# GREEDY-NCIS


def simulated_value(iota, alpha, gamma, false_share, seed=1, runs=40_000):
    """w - e^(-alpha iota) psi by cycles drawn one by one."""
    random, beta = np.random.default_rng(seed), -math.log(false_share) / alpha
    ends, fresh = 0.0, 0.0
    for _ in range(runs):
        moment, shown, change = 0.0, 0.0, random.exponential(1 / alpha)  # the first unsignalled change
        while True:
            gap = random.exponential(1 / gamma)
            if shown + gap >= iota:
                moment += iota - shown
                break
            moment, shown = moment + gap, shown + gap
            if random.random() > false_share:
                change = min(change, moment)
            if shown + beta >= iota:
                break
            shown += beta
        ends, fresh = ends + moment, fresh + min(change, moment)
    return fresh / runs - math.exp(-alpha * iota) * ends / runs


@pytest.mark.parametrize(("alpha", "gamma", "false_share"), [(0.1, 0.5, 0.1), (0.3, 0.2, 0.5), (0.05, 1.0, 0.8)])
@pytest.mark.parametrize("iota", [2.0, 9.0])
def test_the_crawl_value_is_that_of_drawn_cycles(alpha, gamma, false_share, iota):
    found = crawl_value(np.array([iota]), np.array([alpha]), np.array([gamma]), false_share, 40)[0]
    assert found == pytest.approx(simulated_value(iota, alpha, gamma, false_share), abs=0.012 / alpha)
    assert crawl_value(np.array([iota]), np.array([alpha]), np.array([gamma]), false_share)[0] == pytest.approx(
        found, rel=0.05
    )


def test_without_signals_the_crawl_value_is_the_freshness_index():
    age, rates = np.array([0.1, 1.0, 30.0]), np.array([0.5, 2.0, 0.01])
    x = rates * age
    expected = (1.0 - (1.0 + x) * np.exp(-x)) / rates
    assert crawl_value(age, rates, np.zeros(3), 0.5) == pytest.approx(expected, rel=1e-9)


def test_signals_have_the_precision_and_recall_that_they_say():
    world = COMPUTED["poisson"](3000, 2)
    for quality in QUALITIES.values():
        signals = signals_of(world, quality, 1)
        true = np.isin(signals.times, world.times)
        assert true.mean() == pytest.approx(quality.precision, abs=0.02)
        assert true.sum() / len(world.times) == pytest.approx(quality.recall, abs=0.02)
        assert (np.diff(signals.times) >= 0.0).all()


@pytest.mark.long
def test_greedy_ncis_learns_how_good_signals_are_and_gains_by_them():
    world = HARD["signals-good"](600, 3)
    greedy = GreedyNcis(world.n)
    score = simulate(world, greedy, Estimator().rates_for(world), 0.2)
    assert greedy.quality.precision == pytest.approx(0.9, abs=0.1)
    assert greedy.quality.recall == pytest.approx(0.8, abs=0.15)
    deaf = simulate(world, rule("freshness:mean", world.born, 1), Estimator().rates_for(world), 0.2)
    assert 1.0 - score.freshness < 0.8 * (1.0 - deaf.freshness)
    assert score.reads == score.allowed


@pytest.mark.long
def test_signals_of_no_worth_are_found_out():
    """Precision 2 %: nearly all signals are idle; finding that out costs two points of freshness at most."""
    world = COMPUTED["poisson"](600, 3)
    idle = replace(world, signals=signals_of(world, SignalQuality(0.02, 0.05), 1))
    greedy = GreedyNcis(world.n)
    score = simulate(idle, greedy, Estimator().rates_for(idle), 0.2)
    deaf = simulate(idle, rule("freshness:mean", world.born, 1), Estimator().rates_for(idle), 0.2)
    assert greedy.quality.precision < 0.5
    assert score.freshness > deaf.freshness - 0.02


def test_p1_hears_good_signals_and_misses_fewer_changes():
    world = HARD["signals-good"](600, 3)
    scores = [
        simulate(world, rule(name, world.born, 1), TrueRates(world), 0.2).obsolescence for name in ("p1:signals", "p1")
    ]
    assert scores[0] < 0.9 * scores[1]


# MirrorSync


def test_a_step_down_the_mirror_keeps_the_sum_and_moves_intervals_by_the_gradient():
    rates = np.array([0.1, 0.2, 0.4, 0.8])
    step = np.array([-3.0, 0.0, 0.5, 0.2])
    found = descend(rates, step, 0.01, 10.0)
    assert found.sum() == pytest.approx(rates.sum(), rel=1e-9)
    moved = 1.0 / found - 1.0 / rates - step
    assert moved == pytest.approx(np.full(4, moved[0]), abs=1e-6)  # one number nu for all
    bounded = descend(rates, np.array([-100.0, 0.0, 0.0, 500.0]), 0.05, 0.9)
    assert bounded[0] == pytest.approx(0.9)
    assert bounded[3] == pytest.approx(0.05)


def test_mirror_sync_learns_which_pages_are_worth_reads():
    """Half of the pages never change: after 600 mean intervals the others are read more often."""
    n, days = 40, 600.0
    rng = np.random.default_rng(2)
    page = np.repeat(np.arange(n), rng.poisson(0.5 * days, n) * (np.arange(n) % 2))
    rates = np.where(np.arange(n) % 2, 0.5, 1e-6)
    world = of_events(np.ones(n), rates, page, days * rng.random(len(page)), days, 400.0)
    mirror = MirrorSync(world.born, np.random.default_rng(1))
    score = simulate(world, mirror, TrueRates(world), 1.0)
    uniform = simulate(world, rule("uniform", world.born, 1), TrueRates(world), 1.0)
    assert score.freshness > uniform.freshness
    assert mirror._rates[1::2].sum() > 1.3 * mirror._rates[::2].sum()
    assert pytest.approx(1.3) == ETA * 100


# Learning to Crawl


def test_it_explores_evenly_and_then_commits_to_its_estimates():
    world = COMPUTED["poisson"](800, 4)
    learner = rule("learning-to-crawl", world.born, 1)
    score = simulate(world, learner, TrueRates(world), 1.0)
    estimates = learner._rates
    assert estimates is not None
    busy = (world.rate > 0.1) & (world.rate < 1.0)
    assert np.median(np.abs(np.log(estimates[busy] / world.rate[busy]))) < 0.5
    random = simulate(world, rule("azar-random", world.born, 1), TrueRates(world), 1.0)
    assert score.freshness == pytest.approx(random.freshness, abs=0.03)  # the same reads from the true rates


# Whittle


def test_the_whittle_index_is_the_price_at_which_two_intervals_are_worth_the_same():
    r, lam = 2.0, 0.7

    def waiting(days):
        return r * lam * (1.0 - math.exp(-FADING * days)) / FADING

    for age in (0.5, 3.0, 20.0):
        step = 1e-5
        price = waiting(age) - age * (waiting(age + step) - waiting(age - step)) / (2.0 * step)
        found = float(Compared("whittle").index(np.array(r), np.array(lam), np.array(age)))
        assert found / FADING == pytest.approx(price, rel=1e-5)
    level = Compared("whittle").index(np.array(r), np.array(lam), np.array(5.0))
    assert Compared("whittle").interval(np.array(r), np.array(lam), float(level)) == pytest.approx(5.0)


def test_interest_left_is_that_of_every_change_by_itself():
    rng = np.random.default_rng(5)
    page = np.sort(rng.integers(0, 5, 80))
    times = rng.uniform(0.0, 10.0, 80)
    world = replace(of_events(np.ones(5), np.ones(5), page, times, 10.0, 3.0), fading=0.7)
    copies, expected = Copies(world), np.zeros(5)
    read_at = np.zeros(5)
    for now in (1.0, 3.0, 4.5, 9.0):
        if now == 3.0:
            copies.begin(3.0)
            continue
        pages = rng.permutation(5)[:3]
        for p in pages.tolist():
            mine = world.times[world.indptr[p] : world.indptr[p + 1]]
            if now > 3.0:
                new = mine[(mine > max(read_at[p], 3.0)) & (mine <= now)]
                expected[p] += np.exp(-0.7 * (now - new)).sum()
            read_at[p] = now
        copies.read(pages, now)
    assert copies.caught == pytest.approx(expected)
    assert copies.published().sum() == (world.times > 3.0).sum()


def test_whittle_catches_the_most_interest_where_rates_are_known():
    world = HARD["ephemeral"](500, 2)
    caught = {
        name: simulate(world, rule(name, world.born, 1), TrueRates(world), 0.05).interest
        for name in ("whittle", "freshness", "p1", "uniform")
    }
    assert max(caught, key=caught.get) == "whittle"


# Hosts


@pytest.mark.long
def test_no_host_gets_more_than_its_share():
    world = HARD["polite"](600, 1)
    assert world.host_of is not None
    counts = []

    class Watched:
        def __init__(self, name):
            self.rule = rule(name, world.born, 1)

        def choose(self, view, limit):
            return self.rule.choose(view, limit)

        def learn(self, pages, now, changed):
            counts.append(np.bincount(world.host_of[pages]).max())
            self.rule.learn(pages, now, changed)

    for name in ("p1", "freshness", "nutch", "azar-random", "uniform"):
        simulate(world, Watched(name), Estimator().rates_for(world), 0.5)
    assert max(counts) == int(HOST_SHARE * 75)


def test_the_least_within_hosts_are_those_that_a_loop_would_take():
    rng = np.random.default_rng(1)
    for _ in range(50):
        values, hosts = rng.random(30), rng.integers(0, 4, 30)
        taken, wanted = [0] * 4, []
        for place in np.argsort(values):
            if taken[hosts[place]] < 3 and len(wanted) < 8:
                taken[hosts[place]] += 1
                wanted.append(int(place))
        assert least(values, 8, HostCap(hosts, 3)).tolist() == wanted


# Beliefs


def test_gains_by_the_table_are_those_of_the_sum_over_the_nodes():
    for sums in (RateSums(), RateSums(2.0, 3.0, 5.0), RateSums(0.0, 9.0, 0.1), RateSums(400.0, 0.0, 0.0)):
        belief = PageBelief(sums, START).shares()
        nodes = 2.0 ** np.arange(-12.0, 13.25, 0.5)
        for age in (0.01, 0.3, 5.0, 200.0):
            x = nodes * age
            by_nodes = float((belief * (-np.expm1(-x) - x * np.exp(-x)) / nodes).sum())
            assert GainTable(ln_gains(belief[None, :])).gain(np.array([age]))[0] == pytest.approx(by_nodes, rel=0.01)
    assert LN_AGES[0] < math.log(TICK / DAY)


def test_a_tick_may_be_an_hour():
    world = HARD["hot"](200, 1)
    hourly = simulate(world, rule("uniform", world.born, 1, 3600), TrueRates(world), 4.0, tick=3600)
    assert hourly.reads == hourly.allowed == pytest.approx(4.0 * 200 * 90, rel=0.01)
    view = PageArrays(np.ones(2, np.float32), np.ones(2, np.float32), np.zeros(2, np.uint32), DAY * 2)
    assert view.age.tolist() == [2.0, 2.0]
