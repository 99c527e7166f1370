"""Selectors: each picks distinct pages of the right kind; the sweep's threshold finds its target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic import fast, names
from xyro.opic.buckets import Buckets, Levels
from xyro.opic.cash import UNIT
from xyro.opic.choose import Cycle, Greedy, Held, Random, Sweep, afford
from xyro.opic.graph import standard
from xyro.opic.names import CRAWLED
from xyro.opic.simulate import World, advance

cash_of = st.lists(st.integers(0, 2**40), min_size=1, max_size=80)


@given(cash_of, st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_greedy_picks_the_richest_after_any_changes(cash, scalar, changes):
    keys = np.array(cash) - scalar
    greedy = Greedy(keys)
    for page, amount in changes:
        page %= keys.size
        keys[page] = amount - scalar
        greedy.changed(Held(keys, scalar), np.array([page, page]))
        assert keys[greedy.pick(Held(keys, scalar), 1)[0]] == keys.max()


@given(cash_of, st.integers(1, 10))
def test_greedy_in_batches_picks_the_richest_few(cash, most):
    keys = np.array(cash)
    picked = Greedy(keys).pick(Held(keys, 0), most)
    assert sorted(keys[picked]) == sorted(cash)[-most:] and len(set(picked.tolist())) == picked.size


@given(cash_of, st.lists(st.tuples(st.integers(0, 79), st.integers(0, 2**40)), max_size=30))
def test_buckets_pick_within_a_factor_of_two_of_the_richest(cash, changes):
    keys = np.array(cash)
    buckets = Buckets(keys, 0)
    for page, amount in [(0, cash[0]), *changes]:
        keys[page % keys.size] = amount
        buckets.changed(Held(keys, 0), np.array([page % keys.size]))
        picked = buckets.pick(Held(keys, 0), 3)
        richest = np.sort(keys)[-min(3, keys.size) :]
        assert len(set(picked.tolist())) == min(3, keys.size)
        assert (np.sort(keys[picked]) * 2 >= richest).all()
        buckets.changed(Held(keys, 0), picked)


def test_buckets_are_rebuilt_when_the_scalar_has_lifted_all():
    keys = np.array([-1000, 10, 0, 0])
    buckets = Buckets(keys, 1000)
    for _ in range(10):
        buckets.changed(Held(keys, 1000), buckets.pick(Held(keys, 1000), 1))
    assert buckets.level.tolist() == [0, 10, 10, 10]


def test_cycle_visits_all_in_turn():
    turn, keys = Cycle(), np.zeros(7, np.int64)
    picked = np.concatenate([turn.pick(Held(keys, 0), 3) for _ in range(5)])
    assert picked.tolist() == [*range(7), *range(6)]


def test_random_draws_everybody_alike():
    draw, keys = Random(7), np.zeros(10, np.int64)
    counts = np.bincount(np.concatenate([draw.pick(Held(keys, 0), 1) for _ in range(5000)]), minlength=10)
    assert abs(counts - 500).max() < 5 * 500**0.5


def test_a_sweep_walks_the_column_in_slices():
    sweep = Sweep()
    assert [sweep.chunk(10, 4) for _ in range(4)] == [(0, 4), (4, 8), (8, 10), (0, 4)]
    assert sweep.chunk(3, 4) == (0, 3)  # a shorter column than before
    assert sweep.chunk(0, 4) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_slices_of_a_growing_column_join_up(steps):
    sweep, n, expected = Sweep(), 1, 0
    for more, most in steps:
        n += more
        start, stop = sweep.chunk(n, most)
        assert start == expected and 0 <= stop - start <= most and stop <= n
        expected = stop % n


@pytest.mark.parametrize("target", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("theta", [1.0, 1e12])
def test_theta_finds_the_share_it_aims_at(target, theta):
    cash = np.random.default_rng(0).exponential(UNIT, 20_000).astype(np.int64)
    sweep, shares = Sweep(theta=theta, target=target), []
    for _ in range(4000):
        start, stop = sweep.chunk(cash.size, 100)
        sweep.adapt(stop - start, int((cash[start:stop] >= sweep.theta).sum()))
        shares.append(np.mean(cash >= sweep.theta))
    assert np.mean(shares[1000:]) == pytest.approx(target, rel=0.15)


def test_theta_waits_for_a_64th_of_the_column():
    sweep = Sweep(theta=100.0)
    sweep.chunk(6400, 99)
    sweep.adapt(99, 0)
    assert sweep.theta == 100
    sweep.adapt(1, 0)
    assert sweep.theta == 50 and sweep.scanned == 0


@given(cash_of, st.integers(1, 8), st.integers(0, 1000))
def test_a_sweep_picks_rich_pages_even_where_all_are_poor(cash, most, scalar):
    keys = np.array(cash) - scalar
    sweep = Sweep(theta=2.0**45)
    picked = sweep.pick(Held(np.maximum(keys, 1 - scalar), scalar), most)
    assert 0 < picked.size <= most and len(set(picked.tolist())) == picked.size


def test_a_sweep_survives_a_dump():
    sweep = Sweep(theta=0.1 + 0.2, target=0.05)
    sweep.chunk(100, 30)
    sweep.adapt(1, 1)
    assert Sweep.load(sweep.dump()) == sweep


# What a crawl asks of them


class Some(Held):
    """A crawl's pages: every third costs nothing, every fourth may not spend; 40 are looked at."""

    scan = 40

    def cost(self, pages):
        return np.where(pages % 4 == 3, -1, np.where(pages % 3 == 0, 0, 1)).astype(np.int8)


@pytest.mark.parametrize("name", CRAWLED)
@given(st.lists(st.integers(0, 2**40), max_size=80), st.integers(0, 2**30), st.integers(0, 9))
def test_a_pick_of_a_crawl_stays_within_its_allowance(name, cash, scalar, most):
    held, select = Some(np.array(cash, np.int64) - scalar, scalar), CRAWLED[name](None)
    for _ in range(4):
        picked = select.pick(held, most)
        costs = held.cost(picked)
        assert len(set(picked.tolist())) == picked.size and (costs >= 0).all() and costs.sum() <= most


@pytest.mark.parametrize("name", CRAWLED)
def test_a_crawls_every_page_with_cash_is_picked_in_the_end(name):
    cash = np.random.default_rng(4).integers(1, 50 * UNIT, 300)
    held, select, seen = Some(cash, 0), CRAWLED[name](None), set()
    for turn in range(4000):
        picked = select.pick(held, 1 + turn % 3)
        assert name == "random" or not seen.intersection(picked.tolist()), "it holds nothing any more"
        seen.update(picked[cash[picked] > 0].tolist())
        cash[picked] = 0
        select.changed(held, picked)
    assert seen == {page for page in range(300) if page % 4 != 3}


@pytest.mark.parametrize("name", CRAWLED)
def test_what_is_dumped_goes_on_as_if_it_had_never_stopped(name):
    """Cash moves, the virtual page pays, pages are born; then two go on, one of them from the dump."""
    rng = np.random.default_rng(8)
    cash, scalar, select = rng.integers(0, 9 * UNIT, 500), 0, CRAWLED[name](None)
    for turn in range(120):
        held = Some(cash - scalar, scalar)
        held.scan = 200
        again = CRAWLED[name](select.dump())
        picked = select.pick(held, turn % 5)
        assert again.pick(held, turn % 5).tolist() == picked.tolist()
        assert again.dump() == select.dump()
        cash[picked] = 0
        lucky = rng.integers(cash.size, size=20)
        np.add.at(cash, lucky, UNIT)
        select.changed(Some(cash - scalar, scalar), np.concatenate((picked, lucky)))
        cash, scalar = cash + 1000, scalar + 1000
        cash = np.concatenate((cash, np.zeros(turn % 3, np.int64)))


@pytest.mark.parametrize("name", ["greedy", "buckets"])
def test_the_richest_that_may_spend_come_first(name):
    cash = np.random.default_rng(5).integers(1, 2**30, 400)
    picked = CRAWLED[name](None).pick(Some(cash, 0), 5)
    able = np.array([page for page in range(400) if page % 4 != 3 and page not in picked])
    limit = cash[able][able % 3 > 0].max()
    assert (np.floor(np.log2(cash[picked])) >= np.floor(np.log2(limit))).all()
    assert name == "buckets" or cash[picked].min() > limit


@given(cash_of, st.integers(1, 3))
def test_levels_pick_within_a_factor_of_two_of_the_richest(cash, most):
    keys, levels = np.maximum(np.array(cash), 1), Levels()
    for _ in range(6):
        held = Held(keys, 0)
        picked = levels.pick(held, most)
        assert (keys[picked] * 2 >= np.sort(keys)[-min(most, keys.size) :].min()).all() and 0 < picked.size <= most
        keys[picked] = 1
        levels.changed(held, picked)


def test_levels_hear_of_what_the_virtual_page_paid_all():
    keys, levels = np.full(100, -1000), Levels()
    assert levels.pick(Held(keys, 1000), 5).size == 0, "nobody holds anything"
    assert levels.pick(Held(keys, 1500), 5).size == 5


def test_nobody_is_picked_where_there_is_nobody():
    for make in CRAWLED.values():
        assert make(None).pick(Some(np.zeros(0, np.int64), 0), 3).size == 0


@pytest.mark.parametrize("name", names.SELECTORS)
@pytest.mark.parametrize("pages", [0, 1, 70])
def test_a_pick_ends_where_nobody_holds_cash(name, pages):
    """Before, a sweep looked for ever; the others give pages without cash, or none."""
    held = Held(np.full(pages, -5), 5)
    for most in (1, 3):
        picked = names.selector(name, held.keys, np.random.default_rng(1)).pick(held, most)
        assert picked.size <= min(most, pages) and np.isin(picked, np.arange(pages)).all()
        assert name != "sweep" or not picked.size


@given(cash_of, st.floats(1, 2**50), st.integers(0, 90), st.integers(1, 5))
def test_a_sweep_finds_the_last_unit(cash, theta, pointer, most):
    cash = np.array(cash) // 2**39  # mostly 0 and 1
    picked = Sweep(theta=theta, pointer=pointer).pick(Held(cash - 7, 7), most)
    assert (cash[picked] > 0).all() and (picked.size > 0) == cash.any() and picked.size <= most


def test_a_sweep_ends_where_nobody_may_spend():
    class Shut(Held):
        def cost(self, pages):
            return np.full(pages.size, -1, np.int8)

    assert Sweep().pick(Shut(np.full(200, UNIT), 0), 3).size == 0


@pytest.mark.parametrize("read", [advance, fast.advance])
def test_a_world_without_cash_is_not_read(read):
    world = World(standard(50, np.random.default_rng(2)))
    world.keys[:] = 0
    assert read(world, Sweep(), 10).pages.size == 0


def test_affording():
    pages, costs = np.array([9, 8, 7, 6, 5, 4]), np.array([1, 0, -1, 1, 0, 1], np.int8)
    assert [found.tolist() for found in afford(pages, costs, 0)[:1]] == [[8, 5]]
    for most, kept, left in ((1, [9, 8], 6), (2, [9, 8, 6, 5], 4), (3, [9, 8, 6, 5, 4], -1)):
        found = afford(pages, costs, most)
        assert (found[0].tolist(), found[1]) == (kept, left)


def test_a_world_is_spent_by_levels_as_well_as_by_stacks():
    world = World(standard(300, np.random.default_rng(2)))
    log = advance(world, Levels(), 900)
    assert world.total == UNIT * 300 and log.pages.size == 900 and (world.visits > 0).mean() > 0.5
