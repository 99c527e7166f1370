"""Priors learned from what is believed of the pages of a population."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.lab.refresh.rates import added
from xyro.refresh.rate_belief import (
    LN,
    START,
    PriorLearner,
    RatePopulation,
    RatePrior,
    codes,
    quantile,
    rate,
    shares,
    shares_of_many,
)
from xyro.refresh.rate_sums import RateSums

rates = st.floats(1e-9, 1e6)


def code(value: float) -> int:
    """The code of a page that is known to change so often."""
    node = np.zeros((1, len(LN)))
    node[0, np.abs(LN - math.log(value)).argmin()] = 1.0
    return codes(node)[0]


def test_a_code_says_the_moments_of_the_belief():
    belief = shares(RateSums(3.0, 2.0, 1.0), START)
    population = RatePopulation()
    population.shift(0, codes(belief[None, :])[0])
    mean, square = float(belief @ LN), float(belief @ (LN * LN))
    assert population.total / 512 == pytest.approx(mean, abs=1e-3)
    assert population.squares / 512 == pytest.approx(square, abs=1e-3)


def test_it_finds_the_prior_of_a_known_population():
    learner = PriorLearner()
    for value in np.exp(np.random.default_rng(1).normal(math.log(0.1), 1.8, 20_000)):
        learner.recount("site", 0, code(float(value)))
    prior = learner.prior("site")
    assert (prior.mean, prior.sigma) == pytest.approx((math.log(0.1), 1.8), abs=0.05)


def test_a_key_answers_from_fifty_pages_on_before_that_all_pages_before_that_the_default():
    learner = PriorLearner()
    for _ in range(30):
        learner.recount("slow", 0, code(0.125))
    assert learner.prior("slow") is START
    for _ in range(50):
        learner.recount("fast", 0, code(1.0))
    fast, everything = learner.prior("fast"), learner.prior("slow")
    assert (fast.mean, fast.sigma) == pytest.approx((0.0, 0.5), abs=1 / 64)
    mean, sigma = 30 / 80 * math.log(0.125), math.log(8) * math.sqrt(30 * 50) / 80
    assert (everything.mean, everything.sigma) == pytest.approx((mean, sigma), abs=1 / 60)
    assert learner.prior("never seen") == everything
    for _ in range(20):
        learner.recount("slow", 0, code(0.125))
    assert learner.prior("slow").mean == pytest.approx(math.log(0.125), abs=1 / 64)


@given(st.lists(st.tuples(st.sampled_from("abc"), rates, rates), max_size=60))
def test_replacing_leaves_what_was_never_there(pages):
    moved, fresh = PriorLearner(), PriorLearner()
    for key, old, _ in pages:
        moved.recount(key, 0, code(old))
    for key, old, new in pages:
        moved.recount(key, code(old), code(new))
        fresh.recount(key, 0, code(new))
    assert moved.dump() == fresh.dump()
    for key, _, new in pages:
        moved.recount(key, code(new), 0)
    assert moved.dump() == {"whole": {"": [0, 0, 0]}, "keys": {key: [0, 0, 0] for key, _, _ in pages}}


@given(st.lists(st.tuples(st.text(max_size=5), st.floats(1e-30, 1e30)), max_size=100))
def test_a_dump_is_plain_and_loads_as_it_was(pages):
    learner, other = PriorLearner(enough=3), PriorLearner(enough=3)
    for key, value in pages:
        learner.recount(key, 0, code(value))
    other.load(json.loads(json.dumps(learner.dump())))
    assert other.dump() == learner.dump()
    assert all(other.prior(key) == learner.prior(key) for key, _ in pages)
    assert RatePopulation.unpack(learner.whole.pack()) == learner.whole


def test_bytes_of_another_version_are_no_population():
    assert RatePopulation.unpack(bytes(24)) == RatePopulation.unpack(b"") == RatePopulation()
    assert RatePopulation().pack() == b""


def test_the_number_of_keys_is_bounded_and_pages_of_further_keys_still_count():
    learner = PriorLearner(most_keys=3)
    for host in range(100):
        learner.recount(f"host{host}", 0, code(1.0))
    assert len(learner.dump()["keys"]) == 3
    assert learner.dump()["whole"][""][0] == 100
    for host in range(100):
        learner.recount(f"host{host}", code(1.0), 0)
    assert {numbers[0] for numbers in learner.dump()["keys"].values()} == {0}
    assert learner.dump()["whole"][""] == [0, 0, 0]


def lived(mean: float, sigma: float, reads: int, seed: int = 3) -> tuple[RatePrior, float, float]:
    """Pages of a population read again and again, believed by the prior that they teach.

    -> the prior after that, and the error of ln of the rates in the end, by it and by the default.
    """
    rng = np.random.default_rng(seed)
    true = np.exp(rng.normal(mean, sigma, 800)).clip(2**-12, 2**13)
    learner, before = PriorLearner(), [0] * len(true)
    sums, taught = [RateSums()] * len(true), START
    for _ in range(reads):
        tau = rng.exponential(5.0, len(true))
        changed = rng.random(len(true)) < -np.expm1(-true * tau)
        sums = [s.after(t, c, None) for s, t, c in zip(sums, tau.tolist(), changed.tolist(), strict=True)]
        taught = learner.prior("x")
        now = codes(shares_of_many(np.array(sums), [taught.code] * len(true)))
        for old, new in zip(before, now, strict=True):
            learner.recount("x", old, new)
        before = now

    def error(prior: RatePrior) -> float:
        found = rate(shares_of_many(np.array(sums), [prior.code] * len(true)))
        return float(np.sqrt(np.mean(np.log(found / true) ** 2)))

    return taught, error(taught), error(START)


@pytest.mark.parametrize("sigma", [1.0, 1.8, 2.5])
def test_fed_with_its_own_beliefs_it_neither_collapses_nor_runs_away(sigma):
    """The prior shapes the beliefs that shape the prior: over 40 reads it must tend to the true one."""
    prior, error, _ = lived(math.log(0.1), sigma, 40)
    assert prior.sigma == pytest.approx(sigma, rel=0.2)
    assert prior.mean == pytest.approx(math.log(0.1), abs=0.4)
    assert error < 0.45 * sigma


@pytest.mark.parametrize(("mean", "reads", "share"), [(math.log(0.005), 5, 0.85), (math.log(2.0), 15, 0.97)])
def test_pages_unlike_the_default_teach_a_prior_that_knows_them_better(mean, reads, share):
    """Though each page alone says little: of the slow ones one in nine has changed at all, and nearly every read of a
    fast one shows a change."""
    prior, error, by_default = lived(mean, 0.7, reads)
    assert abs(prior.mean - mean) < 0.5 * abs(START.mean - mean)
    assert error < share * by_default


@pytest.mark.parametrize(("reads", "sd"), [(1, 1.5), (4, 1.5), (40, 1.5), (40, 0.7)])
def test_intervals_hold_the_rates_of_a_population_that_teaches_its_own_prior(reads, sd):
    """The 90 % intervals that `why` shows, after few reads and many; neither end is off for the other's sake."""
    rng, pages = np.random.default_rng(5), 1_500
    ln = rng.normal(-1.0, sd, pages)
    true, sums = np.exp(ln), np.zeros((pages, 3))
    for _ in range(reads):
        tau = np.clip(rng.exponential(1.0, pages) / true, 0.01, 20.0) if reads > 10 else np.full(pages, 2.0)
        changed = rng.random(pages) < -np.expm1(-true * tau)
        sums = added(sums, tau, changed, np.full(pages, np.nan), math.inf)
    prior = START
    for _ in range(12):
        found, population = shares_of_many(sums, [prior.code] * pages), RatePopulation()
        for number in codes(found):
            population.shift(0, number)
        prior = population.prior()
    low, high = (np.array([float(quantile(page, share)) for page in found]) for share in (0.05, 0.95))
    below, above = float(np.mean(true < low)), float(np.mean(true > high))
    assert 0.04 < below + above < 0.13
    assert max(below, above) < 0.075
