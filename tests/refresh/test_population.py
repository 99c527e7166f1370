"""The sketch beside the pages themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.refresh.compared_policies import Compared
from xyro.refresh.policy import Policy, Rules, freshness, multiplier, spent
from xyro.refresh.population import Population

POLICIES = [Policy(), Policy("mixed", 0.3, 1.0), Policy("freshness"), Compared("kolobov"), Policy("uniform")]
NUMBERS = st.floats(1e-9, 1e9)
RULES = Rules(Policy(), floor=1.0, ceiling=90.0)
PAGES = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30)


def pages(n=20_000, seed=1):
    rng = np.random.default_rng(seed)
    r = rng.pareto(1.2, n) + 0.1
    return r / r.mean(), rng.lognormal(math.log(1 / 30), 2, n)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("bounds", [{}, {"floor": 1.0, "ceiling": 90.0, "hopeless": 0.1}])
def test_it_spends_the_bandwidth_and_foretells_freshness_as_the_pages_do(policy, bounds):
    r, lam = pages()
    sketch, rules = Population.from_pages(np.sqrt(r * lam), lam), Rules(policy, **bounds)
    assert sketch.scale() == pytest.approx(1.0, rel=5e-3)
    for share in (0.05, 0.2, 1.0):
        reads = share * len(r)
        exact = multiplier(r, lam, reads, rules)
        if not 0.0 < exact < math.inf:
            continue
        assert spent(rules.intervals(r, lam, sketch.multiplier(reads, rules))) == pytest.approx(reads, rel=6e-3)
        t = rules.intervals(r, lam, exact)
        read = np.isfinite(t)
        truth = (r[read] * freshness(lam[read], t[read])).sum() / r.sum()
        outlook = sketch.outlook(reads, rules)
        assert outlook.freshness == pytest.approx(truth, abs=2e-3)
        assert outlook.reads_per_day == pytest.approx(reads, rel=1e-6)
        assert outlook.never == pytest.approx((~read).mean(), abs=5e-3)
        if read.all():
            assert outlook.obsolescence == pytest.approx((0.5 * r * lam * t).sum() / r.sum(), rel=0.03)


@pytest.mark.parametrize("policy", POLICIES[:3], ids=str)
def test_the_bandwidth_that_a_target_needs_reaches_it(policy):
    r, lam = pages()
    sketch = Population.from_pages(np.sqrt(r * lam), lam)
    for target in (0.5, 0.9):
        needed = sketch.needed(target, Rules(policy))
        assert sketch.outlook(needed, Rules(policy)).freshness == pytest.approx(target, abs=1e-4)
    assert sketch.needed(0.99, Rules(policy, floor=30.0)) == math.inf
    with pytest.raises(ValueError, match="target"):
        sketch.needed(1.0, Rules(policy))


@settings(deadline=None)
@given(PAGES, PAGES, st.randoms())
def test_only_what_is_counts_not_how_it_came_to_be(held, gone, random):
    sketch = Population()
    moves = [(page, 1) for page in [*held, *gone]]
    random.shuffle(moves)
    for page, sign in [*moves, *((page, -1) for page in gone)]:
        sketch.add(*page, sign)
    weights, rates = (np.array(column) for column in (zip(*held, strict=True) if held else ((), ())))
    assert sketch == Population.from_pages(np.asarray(weights, float), np.asarray(rates, float))
    assert sketch.pages == len(held)


@given(PAGES, PAGES)
def test_dumped_loaded_and_merged(first, second):
    one, two, both = Population(), Population(), Population()
    for page in first:
        one.add(*page)
        both.add(*page)
    for page in second:
        two.replace(0.0, 0.0, *page)
        both.add(*page)
    again = Population.load(one.dump())
    assert again == one and again.pages == one.pages
    joined = again.joined(two)
    assert again == one and joined.pages == both.pages
    for tell in (
        Population.scale,
        lambda sketch: sketch.spends(1.0, RULES),
        lambda sketch: sketch.multiplier(2.0, RULES),
    ):
        assert tell(joined) == pytest.approx(tell(both), rel=1e-6)
    again.merge(two)
    assert again == both and again.pages == both.pages


def test_pages_without_weight_or_rate_are_not_in_it():
    sketch = Population()
    sketch.add(0.0, 1.0)
    sketch.replace(0.0, 0.0, 1.0, 0.0)
    assert sketch.pages == 0 == Population.from_pages(np.array([0.0, 1.0]), np.array([1.0, 0.0])).pages
    outlook = sketch.outlook(10.0, Rules())
    assert (outlook.freshness, outlook.never, sketch.multiplier(10.0, Rules())) == (1.0, 0.0, math.inf)
    assert sketch.needed(0.9, Rules()) == 0.0
