"""The refresh benchmark: worlds, exact measures, rules and estimates, each against something known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.refresh import adaptive_schedules
from xyro.lab.refresh import rates as refresh_rates
from xyro.lab.refresh import world as refresh_world
from xyro.lab.refresh.adaptive_schedules import Scheduled
from xyro.lab.refresh.compared_policies import Compared
from xyro.lab.refresh.copies import Copies, CopyVisit
from xyro.lab.refresh.index_rules import Indexed, RandomRule
from xyro.lab.refresh.known import analytic
from xyro.lab.refresh.page_arrays import TICK, PageArrays
from xyro.lab.refresh.rates import Estimator, TrueRates
from xyro.lab.refresh.rules import NAMES, rule
from xyro.lab.refresh.sim import simulate
from xyro.lab.refresh.world import COMPUTED, DAYS, World, of_events
from xyro.refresh.policy import Policy
from xyro.refresh.rate_belief import START, PageBelief, RatePrior, rate, unread
from xyro.refresh.rate_sums import RateSums

DAY = 86_400


def even(n, rate, seed=1, days=DAYS, burn=60.0):
    """n pages alike: importance 1, Poisson changes."""
    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(n), rng.poisson(rate * days, n))
    return of_events(np.ones(n), np.full(n, rate), page, days * rng.random(len(page)), days, burn)


# Exact measures


def by_hand(changes, reads, burn, end):
    """(stale days, missed change-days) of one page after the burn-in, from each moment to the next."""
    moments = sorted({0.0, burn, end, *changes, *reads})
    stale = missed = 0.0
    for begin, after in itertools.pairwise(moments):
        last = max((read for read in reads if read <= begin), default=0.0)
        behind = sum(last < t <= begin for t in changes)
        if begin >= burn:
            stale += (after - begin) * (behind > 0)
            missed += (after - begin) * behind
    return stale, missed


MOMENTS = st.integers(1, 39).map(lambda tick: tick / 4.0)


@given(
    st.lists(st.lists(MOMENTS, max_size=8), min_size=1, max_size=4),
    st.dictionaries(MOMENTS, st.sets(st.integers(0, 3)), max_size=8),
    MOMENTS,
)
def test_stale_time_and_missed_changes_are_exact(changes, reads, burn):
    n = len(changes)
    page = np.array([i for i, times in enumerate(changes) for _ in times], np.int64)
    world = of_events(np.ones(n), np.ones(n), page, np.array([t for times in changes for t in times]), 10.0, burn)
    copies, begun = Copies(world), False
    for now in sorted({*reads, burn}):
        if now >= burn and not begun:
            copies.begin(burn)
            begun = True
        pages = np.array(sorted(p for p in reads.get(now, ()) if p < n), np.int64)
        before = copies.read_at[pages].copy()
        visit = copies.read(pages, now)
        for i, changed, tau, age, at in zip(pages, visit.changed, visit.tau, visit.age, before, strict=True):
            seen = [t for t in changes[i] if at < t <= now]
            assert changed == bool(seen)
            assert tau == now - at
            assert age == now - max(seen) if seen else math.isnan(age)
    copies.end(10.0)
    for i in range(n):
        mine = [now for now, pages in reads.items() if i in pages]
        wanted = by_hand(changes[i], mine, burn, 10.0)
        assert (copies.stale[i], copies.missed[i]) == pytest.approx(wanted, abs=1e-9)


def test_a_page_read_at_half_its_period_is_fresh_half_the_time():
    """Changes at day k + 1/4, reads at k + 1/2 and k + 1 (two of every four ticks): stale 1/4 of each day."""
    days = 20
    world = of_events(np.ones(1), np.ones(1), np.zeros(days, np.int64), np.arange(days) + 0.25, float(days), 8.0)
    score = simulate(world, rule("uniform", world.born, 1), TrueRates(world), 2.0)
    assert score.freshness == pytest.approx(0.75)
    assert score.obsolescence == pytest.approx(0.25)
    assert score.reads == score.allowed == 2 * 12 + 1  # the read at day 8 itself and that at day 20


def test_a_page_that_is_never_read_falls_behind():
    world = of_events(np.ones(1), np.ones(1), np.zeros(3, np.int64), np.array([1.0, 2.0, 3.0]), 4.0, 2.0)

    class Never:
        def choose(self, view, limit):
            return np.empty(0, np.int64)

        def learn(self, pages, now, changed):
            assert len(pages) == 0

    score = simulate(world, Never(), TrueRates(world), 1.0)
    assert score.freshness == 0.0
    assert score.obsolescence == pytest.approx((2 * 1 + 3 * 1) / 2)
    assert score.reads == 0
    assert score.allowed == 3


# Against the formulas


@pytest.mark.parametrize("bandwidth", [0.1, 1.0])
def test_uniform_reads_of_equal_pages_meet_the_formula(bandwidth):
    rate = 0.2
    score = simulate(even(2000, rate), rule("uniform", np.zeros(2000), 1), TrueRates(even(2000, rate)), bandwidth)
    x = rate / bandwidth
    # Which of the pages that are alike goes first is the processor's to say (numpy partitions by its vector units).
    assert score.freshness == pytest.approx(-math.expm1(-x) / x, rel=0.02)
    assert score.obsolescence == pytest.approx(x / 2, rel=0.03)


@pytest.mark.long
@pytest.mark.parametrize("name", ["uniform", "p1", "freshness", "mixed:0.3", "kolobov", "azar"])
def test_scans_with_known_rates_reach_what_exact_intervals_would(name):
    world = COMPUTED["poisson"](3000, 2)
    score = simulate(world, rule(name, world.born, 1), TrueRates(world), 0.2)
    assert score.freshness == pytest.approx(analytic(world, 0.2)[name]["freshness"], rel=0.02)
    assert score.reads == score.allowed


@pytest.mark.long
def test_the_freshness_index_is_the_freshest_and_p1_the_least_obsolete_when_rates_are_known():
    world = COMPUTED["poisson"](3000, 3)
    found = analytic(world, 0.2)
    assert max(found, key=lambda name: found[name]["freshness"]) == "freshness"
    finite = {name: row["obsolescence"] for name, row in found.items() if row["obsolescence"] is not None}
    assert min(finite, key=lambda name: finite[name]) == "p1"
    assert found["freshness"]["obsolescence"] is None  # it gives pages up
    assert found["freshness"]["never"] > 0.0
    assert all(row["share"] <= 1.0 + 1e-9 for row in found.values())


def test_poisson_reads_lose_against_even_ones():
    world = COMPUTED["poisson"](2000, 1)
    scores = {
        name: simulate(world, rule(name, world.born, 1), TrueRates(world), 0.2)
        for name in ("kolobov", "lambdacrawl", "azar", "azar-random")
    }
    assert scores["kolobov"].freshness > scores["lambdacrawl"].freshness + 0.02
    assert scores["azar"].freshness > scores["azar-random"].freshness + 0.02
    assert scores["lambdacrawl"].obsolescence > 1.5 * scores["kolobov"].obsolescence  # exactly 2 at equal rates


# Rules


def view(n, now_days, rate=None):
    rates = np.full(n, 0.1, np.float32) if rate is None else np.asarray(rate, np.float32)
    return PageArrays(np.ones(n, np.float32), rates, np.zeros(n, np.uint32), int(now_days * DAY))


def test_every_rule_chooses_pages_once_and_at_most_as_many_as_asked():
    for name in NAMES:
        chooser = rule(name, np.zeros(50), 1)
        for most in (1, 7, 50):
            pages = chooser.choose(view(50, 40.0), most)
            assert len(pages) == len(set(pages.tolist())) <= most
            assert set(pages.tolist()) <= set(range(50))


def test_nutch_shrinks_after_a_change_and_grows_without():
    interval, early = adaptive_schedules.nutch(
        np.array([10.0, 10.0, 360.0, 0.25]), np.zeros(4), np.array([1, 0, 0, 1], bool)
    )
    assert interval.tolist() == pytest.approx([8.0, 14.0, 365.0, TICK / DAY])
    assert not early.any()


def test_nutch_as_shipped_waits_as_long_as_the_last_change_is_ago():
    since, changed = np.array([0.0, 100.0]), np.array([True, False])
    interval, early = adaptive_schedules.nutch_shipped(np.array([10.0, 10.0]), since, changed)
    assert interval.tolist() == pytest.approx([8.0, 100.0])
    assert early.tolist() == pytest.approx([0.0, 30.0])


def test_stormcrawler_goes_half_way_to_an_hour():
    interval, _ = adaptive_schedules.stormcrawler(np.array([2.0, 2.0, 13.0]), np.zeros(3), np.array([1, 0, 0], bool))
    assert interval.tolist() == pytest.approx([1.0 + 1.0 / 48.0, 3.0, 14.0])


def test_a_schedule_reads_what_is_due_and_the_most_overdue_first():
    schedule = Scheduled(np.array([0.0, 2.0, 4.0, 40.0]), 30.0, adaptive_schedules.nutch_shipped)
    assert sorted(schedule.choose(view(4, 35.0), 9).tolist()) == [0, 1, 2]
    assert sorted(schedule.choose(view(4, 35.0), 2).tolist()) == [0, 1]
    assert schedule.choose(view(3, 10.0), 9).tolist() == []
    schedule.learn(np.array([0]), 35.0, np.array([True]))
    assert sorted(schedule.choose(view(4, 58.0), 9).tolist()) == [1, 2]  # page 0 is due at 35 + 24
    assert sorted(schedule.choose(view(4, 59.5), 9).tolist()) == [0, 1, 2]


def test_a_relative_schedule_reads_the_latest_for_its_interval_due_or_not():
    schedule = Scheduled(np.zeros(2), 8.0, adaptive_schedules.nutch, relative=True)
    schedule.learn(np.array([0]), 0.0, np.array([True]))  # 6.4 days; the other 8
    assert schedule.choose(view(2, 1.0), 1).tolist() == [0]


def test_random_reads_come_at_the_policys_rates():
    rates = np.array([0.05, 0.2, 0.8])
    random = RandomRule(Compared("kolobov"), np.random.default_rng(3))
    counts = np.zeros(3)
    for tick in range(6000):
        counts[random.choose(view(3, tick / 4.0, rates), 1)] += 1
    wanted = 1.0 / Compared("kolobov").interval(np.ones(3), rates, random._multiplier)
    assert wanted.sum() == pytest.approx(4.0, rel=0.01)  # one a tick
    assert counts / counts.sum() == pytest.approx(wanted / wanted.sum(), rel=0.06)


@pytest.mark.parametrize("name", ["", "best", "mixed", "mixed:", "mixed:-1", "mixed:nan", "mixed:x", "mixed:1e300"])
def test_there_is_no_such_rule(name):
    with pytest.raises(ValueError, match=r"policy|alpha"):
        rule(name, np.zeros(1), 1)


# Rates


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0.01, 100.0), st.integers(0, 3).map(lambda draw: not draw)), min_size=1, max_size=12),
    st.booleans(),
)
def test_rates_are_learned_as_the_crawler_learns_them(visits, dated):
    world = even(1, 0.1)
    learned = Estimator(20.0, dated).rates_for(world)
    belief = PageBelief(RateSums(), START)
    for tau, changed in visits:
        age = tau / 3.0 if changed else math.nan
        learned.learn(np.array([0]), CopyVisit(np.array([tau]), np.array([changed]), np.array([age])))
        belief = belief.after(tau, changed, age if dated and changed else None, 20.0)
    assert learned.now[0] == pytest.approx(belief.rate(), rel=1e-5)


def test_the_prior_comes_to_fit_the_pages():
    world = even(400, 2.0)
    learned = Estimator().rates_for(world)
    simulate(world, rule("uniform", world.born, 1), learned, 1.0)
    assert learned.prior.mean == pytest.approx(math.log(2.0), abs=0.2)
    assert np.median(learned.now) == pytest.approx(2.0, rel=0.2)


def test_a_new_page_starts_from_the_prior_of_its_day():
    learned = Estimator().rates_for(even(3, 0.1))
    learned.born(slice(0, 1))
    learned.prior = RatePrior.fit(2.0, 0.5)
    learned.born(slice(1, 3))
    expected = [float(rate(unread(START))), *[float(rate(unread(learned.prior)))] * 2]
    assert learned.now.tolist() == pytest.approx(expected)


def test_known_rates_stay():
    world = even(3, 0.1)
    known = TrueRates(world)
    known.learn(np.array([0]), CopyVisit(np.array([9.0]), np.array([True]), np.array([1.0])))
    known.born(slice(0, 3))
    assert known.now.tolist() == pytest.approx([0.1] * 3)


# Worlds


@pytest.mark.parametrize("name", COMPUTED)
def test_a_world_has_the_changes_it_says(name):
    world = COMPUTED[name](2000, 1)
    assert world.importance.mean() == pytest.approx(1.0)
    assert (np.diff(world.keys) >= 0.0).all()
    assert 0.0 < world.times.min() <= world.times.max() <= world.days
    assert len(world.times) == pytest.approx(world.rate.sum() * world.days, rel=0.06)
    assert np.log(world.rate).mean() == pytest.approx(math.log(1 / 30), abs=0.2)
    assert np.log(world.rate).std() == pytest.approx(2.0, abs=0.1)
    again = COMPUTED[name](2000, 1)
    assert np.array_equal(world.times, again.times)


def gaps(world: World):
    """Coefficient of variation of the gaps between changes of the busier pages: 1 for a Poisson process."""
    of_pages = [np.diff(world.times[world.indptr[i] : world.indptr[i + 1]]) for i in range(world.n)]
    return float(np.median([gap.std() / gap.mean() for gap in of_pages if len(gap) > 50]))


def test_worlds_differ_in_when_changes_come():
    assert gaps(COMPUTED["poisson"](1000, 1)) == pytest.approx(1.0, abs=0.1)
    assert gaps(COMPUTED["periodic"](1000, 1)) < 0.05
    assert gaps(COMPUTED["bursty"](1000, 1)) > 1.7


def test_important_pages_change_more_often_in_the_correlated_world():
    for name, rho in (("correlated", 0.5), ("poisson", 0.0)):
        world = COMPUTED[name](3000, 1)
        ranks = [np.argsort(np.argsort(values)) for values in (world.importance, world.rate)]
        # the ranks' correlation of a normal copula is 6/pi asin(rho / 2)
        assert np.corrcoef(*ranks)[0, 1] == pytest.approx(6 / math.pi * math.asin(rho / 2), abs=0.05)


def test_zipf_importance_is_one_over_the_rank():
    importance = np.sort(refresh_world.zipf(100, 7))[::-1]
    assert importance.mean() == pytest.approx(1.0)
    assert importance[0] / importance[9] == pytest.approx(10.0)


def test_estimates_are_refitted_from_enough_pages_only():
    learned = Estimator().rates_for(even(refresh_rates.ENOUGH - 1, 3.0))
    world = even(refresh_rates.ENOUGH - 1, 3.0)
    simulate(world, Indexed(Policy("uniform")), learned, 1.0)
    assert learned.prior == START


# Other executions


def test_filed_pages_are_read_at_the_intervals_of_their_policy():
    """P1's law on two kinds of pages, known rates: t ~ 1 / sqrt(lambda), spending the bandwidth."""
    rates = np.repeat([0.01, 0.16], 50)
    filed, read_at, reads = rule("p1:filed", np.zeros(100), 1), np.zeros(100, np.uint32), np.zeros(100)
    for tick in range(1, 1200):
        pages = filed.choose(PageArrays(np.ones(100, np.float32), rates.astype(np.float32), read_at, tick * TICK), 2)
        read_at[pages] = tick * TICK
        filed.learn(pages, tick * TICK / DAY, np.zeros(len(pages), bool))
        reads[pages] += 1
    assert reads[50:].sum() / reads[:50].sum() == pytest.approx(4.0, rel=0.1)
    assert reads.sum() == 2 * 1199


@pytest.mark.long
def test_doubt_repairs_what_a_wrong_prior_gives_up():
    world = COMPUTED["poisson"](1500, 1)
    fitted = RatePrior.fit(float(np.log(world.rate).mean()), float(np.log(world.rate).std()))
    wrong = RatePrior.fit(fitted.mean + math.log(10.0), fitted.sigma)
    fresh = {
        (name, prior is wrong): simulate(
            world, rule(name, world.born, 1), Estimator(prior=prior, refits=False).rates_for(world), 0.05
        ).freshness
        for name in ("freshness:mean", "freshness")
        for prior in (fitted, wrong)
    }
    assert fresh["freshness", True] > fresh["freshness:mean", True] + 0.03
    assert fresh["freshness", False] > 0.995 * fresh["freshness:mean", False]
