"""What is predicted of a daemon: both executions against known answers, what dates, lists and a late start add."""

import math

import numpy as np
import pytest

from xyro.lab.refresh.executions import LONGEST, Filing, RecountMoment, execution_of
from xyro.lab.refresh.live import Live
from xyro.lab.refresh.page_arrays import PageArrays
from xyro.lab.refresh.prediction import CrawlHistory, Dated, Hearing, Listing, RefreshPlan, predicted
from xyro.lab.refresh.world import of_events
from xyro.lab.web.shape import ORIGIN
from xyro.lab.web.web import Web
from xyro.refresh.policy import Policy, spent
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.trust import Source

DAY = 86_400
P1 = Policy("obsolescence")


def poisson(n, rate, days, burn, seed=1):
    """n pages of one change rate, importance 1."""
    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(n), rng.poisson(rate * days, n))
    return of_events(np.ones(n), np.full(n, rate), page, days * rng.random(len(page)), days, burn)


def history_of(world, listings=()):
    return CrawlHistory(world, np.full(world.n, np.nan), listings, world.importance)


@pytest.mark.long
@pytest.mark.parametrize("execution", ["folders", "scan"])
@pytest.mark.parametrize("policy", ["obsolescence", "mixed", "uniform"])
def test_pages_all_alike_are_read_in_turn(execution, policy):
    """Each every 1 / B days: fresh (1 - e^-x) / x of the time, x = rate / B, and every read that is allowed is made."""
    world = poisson(800, 0.25, 40.0, 16.0)
    score = predicted(history_of(world), RefreshPlan(Policy(policy, 1.0, 1.0), execution, 0.5, 3600), true_rates=True)
    assert score.freshness == pytest.approx(-math.expm1(-0.5) / 0.5, abs=0.01)
    assert score.reads == score.allowed == pytest.approx(0.5 * 800 * 24, abs=20)


@pytest.fixture(scope="module")
def uneven():
    rng = np.random.default_rng(3)
    n, days = 400, 60.0
    rate, importance = np.exp(rng.normal(-2.0, 1.0, n)), rng.exponential(1.0, n) + 0.05
    page = np.repeat(np.arange(n), rng.poisson(rate * days))
    return of_events(importance / importance.mean(), rate, page, days * rng.random(len(page)), days, 30.0)


@pytest.mark.long
def test_both_executions_come_to_the_same(uneven):
    """Once the mean interval has passed several times; at first the dates of the beginning stand in the folders."""
    scores = [
        predicted(history_of(uneven), RefreshPlan(P1, name, 0.5, 7200), true_rates=True) for name in ("folders", "scan")
    ]
    assert scores[0].freshness == pytest.approx(scores[1].freshness, abs=0.01)
    assert scores[0].obsolescence == pytest.approx(scores[1].obsolescence, rel=0.05)


@pytest.mark.long
def test_learning_costs_and_knowing_gains(uneven):
    plan = RefreshPlan(P1, "folders", 0.5, 7200)
    learned, known = predicted(history_of(uneven), plan), predicted(history_of(uneven), plan, true_rates=True)
    assert 0.0 < known.freshness - learned.freshness < 0.1


def view_of(importance, rate, read_at, now):
    return PageArrays(importance.astype(np.float32), rate.astype(np.float32), (read_at * DAY).astype(np.uint32), now)


def test_filing_solves_the_multiplier_and_takes_the_earliest_dates():
    rng = np.random.default_rng(1)
    importance, rate = rng.exponential(1.0, 300) + 0.01, rng.exponential(0.3, 300) + 0.001
    filing = Filing(P1, 0.2, 1200, importance)
    view = view_of(importance, rate, np.zeros(300), 0)
    chosen = filing.choose(view, 10, np.zeros(300, bool))
    dates = np.minimum(P1.interval(view.importance, view.rate, filing.multiplier), LONGEST)
    assert spent(dates) == pytest.approx(0.2 * 300, rel=1e-3)
    assert set(chosen.tolist()) == set(np.argsort(dates)[:10].tolist())


def test_what_is_held_is_not_chosen_and_nothing_is_chosen_twice():
    importance, rate = np.ones(20), np.linspace(0.1, 2.0, 20)
    held = np.arange(20) >= 15
    for name in ("folders", "scan"):
        execution = execution_of(name, P1, 1.0, 1200, importance)
        chosen = execution.choose(view_of(importance, rate, np.zeros(20), DAY), 30, held)
        assert sorted(chosen.tolist()) == list(range(15))
        assert len(execution.choose(view_of(importance, rate, np.zeros(20), DAY), 0, held)) == 0


def test_a_grown_multiplier_puts_dates_off_and_a_smaller_one_does_not_draw_them_near():
    """As folders do: what was dated is asked again when its time comes, not before."""
    filing = Filing(P1, 1.0, 1200, np.ones(4))
    importance, rate, read_at = np.ones(4), np.array([0.5, 0.5, 0.5, 0.5]), np.zeros(4)
    nobody = np.zeros(4, bool)
    filing.choose(view_of(importance, rate, read_at, 0), 0, nobody)
    dated = filing._dates.copy()
    filing._bandwidth = 0.5
    filing.choose(view_of(importance, rate, read_at, DAY + DAY // 5), 4, nobody)
    later = filing._dates > dated + 0.5
    assert later.all(), "the dates of those that were looked at were put off"
    filing._bandwidth = 4.0
    before = filing._dates.copy()
    filing.choose(view_of(importance, rate, read_at, DAY + DAY // 3), 4, nobody)
    assert np.array_equal(filing._dates, before)


@pytest.mark.long
def test_in_folders_the_importance_of_the_first_read_stands_until_the_second(uneven):
    """A start that is all wrong costs for long; a scan asks for the importance of now, and does not mind."""
    rising = np.sort(uneven.importance)
    wrong = rising[::-1][np.argsort(np.argsort(uneven.importance))]
    blind = history_of(uneven)._replace(start=wrong)
    for name in ("folders", "scan"):
        plan = RefreshPlan(P1, name, 0.1, 7200)
        knowing, unknowing = predicted(history_of(uneven), plan).freshness, predicted(blind, plan).freshness
        assert unknowing < knowing if name == "folders" else unknowing == knowing


def test_a_recount_dates_all_pages_by_the_importance_it_found_and_a_read_by_the_true_one():
    """Pages of importance 1 that are dated as if the last two had 100 times that, then as if the first two had."""
    wrong, right = np.array([1.0, 1.0, 100.0, 100.0]), np.array([100.0, 100.0, 1.0, 1.0])
    filing = Filing(P1, 0.2, 1200, wrong, [RecountMoment(1.0, right)])
    importance, rate, nobody = np.ones(4), np.full(4, 0.1), np.zeros(4, bool)
    filing.choose(view_of(importance, rate, np.zeros(4), 0), 0, nobody)
    assert (filing._dates[2:] * 9 < filing._dates[:2]).all()
    filing.choose(view_of(importance, rate, np.zeros(4), DAY), 0, nobody)
    assert (filing._dates[:2] * 9 < filing._dates[2:]).all() and filing._importance.tolist() == right.tolist()
    filing.choose(view_of(importance, rate, np.array([0.0, 1.5, 0.0, 0.0]), 2 * DAY), 0, nobody)
    assert filing._importance.tolist() == [100.0, 1.0, 1.0, 1.0]


@pytest.mark.long
def test_recounts_repair_a_start_that_is_all_wrong(uneven):
    rising = np.sort(uneven.importance)
    blind = history_of(uneven)._replace(start=rising[::-1][np.argsort(np.argsort(uneven.importance))])
    mended = blind._replace(recounts=[RecountMoment(2.0, uneven.importance)])
    plan = RefreshPlan(P1, "folders", 0.1, 7200)
    never, once, knowing = (predicted(one, plan).freshness for one in (blind, mended, history_of(uneven)))
    assert never < once < knowing + 0.02


def test_no_such_execution():
    with pytest.raises(ValueError, match="folders or scan"):
        execution_of("heap", P1, 1.0, 1200, np.ones(1))


# What the daemon knows beside its reads


def test_a_dated_first_read_is_one_change_seen():
    ages = np.array([0.5, np.nan, 40.0])
    rates = Dated(3, ages)
    rates.born(slice(0, 3))
    wanted = [RateSums().dated(0.5), RateSums(), RateSums().dated(40.0)]
    assert rates.now.tolist() == pytest.approx([PageBelief(sums, START).rate() for sums in wanted], rel=1e-6)


def with_list(n=6):
    """Page 0 is a feed of the others, which change once, at day 2; it changes with them."""
    page, times = np.arange(n), np.full(n, 2.0)
    world = of_events(np.ones(n), np.full(n, 0.1), page, times, 20.0, 0.0)
    return world, Listing(0, 7, Source.FEED, np.arange(1, n))


def test_what_a_list_says_is_read_as_soon_as_its_host_is_trusted():
    world, listing = with_list()
    rule = Hearing(execution_of("scan", P1, 1.0, 1200, np.ones(6)), history_of(world, [listing]), audit=0.0)
    rates = np.full(world.n, 0.1, np.float32)
    rule.choose(PageArrays(world.importance.astype(np.float32), rates, np.zeros(world.n, np.uint32), 3 * DAY), 1)
    rule._chance = np.array([0.1])
    rule.learn(np.array([0]), 3.0, np.array([True]))
    planned = 0.0 + P1.one_interval(1.0, float(rates[1]), rule._execution.multiplier)
    assert rule._due[1:].tolist() == pytest.approx([min(planned, max(3.0, (planned + 3.0) / 2))] * 5), "trust is 1/2"
    before = rule._trust[7].weight(Source.FEED) if 7 in rule._trust else 0.5
    rule._due[1:] = 3.5
    chosen = rule.choose(PageArrays(world.importance.astype(np.float32), rates, np.zeros(6, np.uint32), 4 * DAY), 5)
    assert sorted(chosen.tolist()) == [1, 2, 3, 4, 5]
    rule.learn(chosen, 4.0, np.ones(5, bool))
    assert rule._trust[7].weight(Source.FEED) > before, "the claims came true"
    assert np.isinf(rule._due).all() and not any(rule._claims.values())


def test_a_list_that_did_not_change_or_tells_what_is_known_says_nothing():
    world, listing = with_list()
    for read_at, changed in ((3.0, True), (0.0, False)):
        rule = Hearing(execution_of("folders", P1, 1.0, 1200, np.ones(6)), history_of(world, [listing]), audit=0.0)
        rule._read_at[1:] = read_at
        rule._chance = np.array([0.1])
        rule.learn(np.array([0]), 4.0, np.array([changed]))
        assert np.isinf(rule._due).all()


@pytest.mark.long
@pytest.mark.parametrize("execution", ["folders", "scan"])
def test_lists_and_dates_make_a_daemon_fresher(execution):
    live = Live(Web(seed=2, pages=400, hosts=4, origin=ORIGIN))
    recorded = live.history(12.0, 4.0)
    assert len(recorded.listings) >= 3 * 4
    plan = RefreshPlan(P1, execution, 0.2, 3600)
    whole, deaf = predicted(recorded, plan), predicted(recorded._replace(listings=[]), plan)
    blind = predicted(history_of(recorded.world), plan)
    assert whole.freshness > deaf.freshness > blind.freshness - 0.01
    assert whole.reads == whole.allowed


def test_audits_take_their_share_by_importance_and_nothing_is_read_twice():
    """Page 0 has half of all importance: it is audited half of the time; it never changes, so no plan reads it."""
    n = 101
    world = of_events(np.r_[100.0, np.ones(n - 1)], np.r_[0.0, np.ones(n - 1)], np.zeros(0, int), np.zeros(0), 9.0, 0.0)
    execution = execution_of("scan", P1, 1.0, 1200, world.importance)
    rule, rates, read_at = Hearing(execution, history_of(world), 0.1), world.rate, np.zeros(n)
    mine = 0
    for turn in range(1, 201):
        chosen = rule.choose(view_of(world.importance, rates, read_at, turn * 3600), 20)
        assert len(chosen) == len(set(chosen.tolist())) <= 20
        mine += 0 in chosen
        rule.learn(chosen, turn / 24, np.zeros(len(chosen), bool))
        read_at[chosen] = turn / 24
    assert mine == pytest.approx(200 * (1 - 0.5**2), abs=30), "two audits a turn"
