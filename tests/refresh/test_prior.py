"""The prior learnt from the running population of ln lambda."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.change import DEFAULT_PRIOR, SETTLED, Prior, PriorLearner, update_many

rates = st.floats(1e-9, 1e6)


def test_it_finds_the_prior_of_a_known_population():
    learner = PriorLearner()
    for value in np.exp(np.random.default_rng(1).normal(math.log(0.1), 1.8, 20_000)):
        learner.replace("site", None, float(value))
    prior = learner.prior("site")
    assert (prior.a, prior.b) == pytest.approx((0.309, 1.168), rel=0.05)  # 4 standard errors of the sample


def test_a_key_answers_from_fifty_pages_on_before_that_all_pages_before_that_the_default():
    learner = PriorLearner()
    narrow = math.exp(0.3 * 0.5**2)  # pages all alike: sigma at its narrowest
    for _ in range(30):
        learner.replace("slow", None, 0.1)
    assert learner.prior("slow") is DEFAULT_PRIOR
    for _ in range(50):
        learner.replace("fast", None, 1.0)
    fast, everything = learner.prior("fast"), learner.prior("slow")
    assert fast.a / fast.b == pytest.approx(1.0 * narrow, rel=1e-3)
    sigma = math.log(10) * math.sqrt(30 * 50) / 80
    assert (everything.a, everything.b) == pytest.approx(
        (sigma**-2, sigma**-2 / (0.1 ** (30 / 80) * math.exp(0.3 * sigma**2))), rel=1e-3
    )
    assert learner.prior("never seen") == everything
    for _ in range(20):
        learner.replace("slow", None, 0.1)
    slow = learner.prior("slow")
    assert slow.a / slow.b == pytest.approx(0.1 * narrow, rel=1e-3)


@given(st.lists(st.tuples(st.sampled_from("abc"), rates, rates), max_size=60))
def test_replacing_leaves_what_was_never_there(pages):
    moved, fresh = PriorLearner(), PriorLearner()
    for key, old, _ in pages:
        moved.replace(key, None, old)
    for key, old, new in pages:
        moved.replace(key, old, new)
        fresh.replace(key, None, new)
    assert moved.dump() == fresh.dump()
    for key, _, new in pages:
        moved.replace(key, new, None)
    assert moved.dump() == {"whole": {"": [0, 0, 0]}, "keys": {key: [0, 0, 0] for key, _, _ in pages}}


@given(st.lists(st.tuples(st.text(max_size=5), st.floats(0, 1e30)), max_size=100))
def test_a_dump_is_plain_and_loads_as_it_was(pages):
    learner, other = PriorLearner(enough=3), PriorLearner(enough=3)
    for key, value in pages:
        learner.replace(key, None, value)
    other.load(json.loads(json.dumps(learner.dump())))
    assert other.dump() == learner.dump()
    assert all(other.prior(key) == learner.prior(key) for key, _ in pages)


def test_the_number_of_keys_is_bounded_and_pages_of_further_keys_still_count():
    learner = PriorLearner(most_keys=3)
    for host in range(100):
        learner.replace(f"host{host}", None, 1.0)
    assert len(learner.dump()["keys"]) == 3
    assert learner.dump()["whole"][""][0] == 100
    for host in range(100):
        learner.replace(f"host{host}", 1.0, None)
    assert {numbers[0] for numbers in learner.dump()["keys"].values()} == {0}
    assert learner.dump()["whole"][""] == [0, 0, 0]


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300, math.inf])
def test_extreme_rates_give_a_usable_prior(value):
    learner = PriorLearner(enough=1)
    learner.replace("x", None, value)
    assert isinstance(learner.prior("x"), Prior)


@pytest.mark.parametrize("sigma", [1.0, 1.8, 2.5])
def test_fed_with_its_own_estimates_it_neither_collapses_nor_runs_away(sigma):
    """The prior shapes the estimates that shape the prior: over 40 visits sigma must tend to the true one."""
    rng = np.random.default_rng(3)
    pages = 800
    true = np.exp(rng.normal(math.log(0.1), sigma, pages)).clip(1e-4, 100.0)
    learner = PriorLearner()
    a, b = np.full(pages, DEFAULT_PRIOR.a), np.full(pages, DEFAULT_PRIOR.b)
    for visit in range(1, 41):
        tau = rng.exponential(5.0, pages)
        changed = rng.random(pages) < -np.expm1(-true * tau)
        before = a / b
        a, b = update_many(a, b, tau, changed, np.full(pages, np.nan), learner.prior("x"))
        if visit >= SETTLED:
            for old, new in zip(before.tolist(), (a / b).tolist(), strict=True):
                learner.replace("x", None if visit == SETTLED else old, new)
    learnt = learner.prior("x").a ** -0.5
    assert learnt == pytest.approx(sigma, rel=0.2)
    assert np.sqrt(np.mean(np.log(a / b / true) ** 2)) < 0.45 * sigma
