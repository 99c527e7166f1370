"""The belief in a change rate: numbers computed elsewhere, the formula by a loop of its own, inverses, priors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.rate_belief import (
    NODES,
    START,
    RatePrior,
    chance_days,
    ln_prior,
    quiet,
    rate,
    shares,
    shares_of_many,
    unread,
)
from xyro.refresh.rate_sums import RateSums

HOUR = 1 / 24
VECTORS = [  # sums, rate a day, quiet for an hour, for a day
    ((0, 0, 0), 0.284209, None, 0.781549),
    ((0, 1, 1 / 144), 38.362333, 0.565058, 0.153416),
    ((1, 0, 0), 0.099291, 0.993546, 0.877378),
    ((10, 0, 0), 0.031996, 0.998192, 0.958724),
    ((0, 10, 10 / 144), 1318.946, 0.000059, 0.0),
    ((0.05, 10, 10 / 144), 109.141515, 0.023904, 0.0),
    ((5, 2, 3), 0.245815, 0.988569, 0.771552),
    ((300, 2, 60), 0.007663, 0.999653, 0.991707),
    ((0, 5, 5), 6.778714, 0.777450, 0.087951),
    ((2, 30, 10), 5.163930, 0.805340, 0.009048),
]
SOME = st.floats(1e-6, 1e4)
SUMS = st.builds(RateSums, st.one_of(st.just(0.0), SOME), st.floats(1e-3, 100.0), st.floats(1e-6, 1e3))
PRIORS = st.builds(RatePrior.fit, st.floats(-9.0, 12.0), st.floats(0.1, 5.0))


def by_loop(sums: RateSums, prior: RatePrior, days: float) -> tuple[float, float]:
    """(rate, quiet over `days`), one node after the other."""
    weights = []
    for half in range(-24, 33):
        rate_of_node = 2.0 ** (half / 2)
        z = (math.log(rate_of_node) - prior.mean) / prior.sigma
        power = -6.5 * math.log(1.0 + z * z / 12.0) - rate_of_node * sums.quiet_days
        if sums.changes:
            power += sums.changes * math.log(-math.expm1(-rate_of_node * sums.change_days / sums.changes))
        weights.append((rate_of_node, power))
    most = max(power for _, power in weights)
    shares = [(rate_of_node, math.exp(power - most)) for rate_of_node, power in weights]
    whole = sum(share for _, share in shares)
    root = sum(share * math.sqrt(rate_of_node) for rate_of_node, share in shares) / whole
    return root * root, sum(share * math.exp(-rate_of_node * days) for rate_of_node, share in shares) / whole


@pytest.mark.parametrize(("sums", "changes_a_day", "hour", "day"), VECTORS)
def test_rates_and_chances_are_those_computed_elsewhere(sums, changes_a_day, hour, day):
    belief = shares(RateSums(*sums), START)
    assert float(rate(belief)) == pytest.approx(changes_a_day, rel=1e-6, abs=1e-6)
    assert hour is None or float(quiet(belief, HOUR)) == pytest.approx(hour, abs=1e-6)
    assert float(quiet(belief, 1.0)) == pytest.approx(day, abs=1e-6)


@given(SUMS, PRIORS, st.floats(0.0, 1000.0))
def test_the_belief_is_its_formula(sums, prior, days):
    belief = shares(sums, prior)
    expected_rate, expected_quiet = by_loop(sums, prior, days)
    assert belief.shape == (NODES,)
    assert float(belief.sum()) == pytest.approx(1.0)
    assert float(rate(belief)) == pytest.approx(expected_rate, rel=1e-9)
    assert float(quiet(belief, days)) == pytest.approx(expected_quiet, rel=1e-9, abs=1e-30)


@given(st.lists(st.tuples(st.one_of(st.just(RateSums()), SUMS), PRIORS), max_size=6), SOME)
def test_many_pages_at_once_are_each_page_alone(pages, days):
    rows = np.array([sums for sums, _ in pages]).reshape(-1, 3)
    many = shares_of_many(rows, [prior.code for _, prior in pages])
    alone = [shares(sums, prior) for sums, prior in pages]
    assert many == pytest.approx(np.array(alone).reshape(-1, NODES), rel=1e-9, abs=1e-30)
    assert rate(many) == pytest.approx([float(rate(belief)) for belief in alone], rel=1e-9)
    assert quiet(many, np.full(len(pages), days)) == pytest.approx([float(quiet(belief, days)) for belief in alone])


@given(SUMS, PRIORS, st.floats(1e-6, 1.0 - 1e-6))
def test_the_time_of_a_chance_is_the_inverse_of_quiet(sums, prior, chance):
    belief = shares(sums, prior)
    days = chance_days(belief, chance)
    assert 1.0 - float(quiet(belief, days)) == pytest.approx(chance, rel=1e-6, abs=1e-15)
    assert float(chance_days(np.stack([belief, belief]), chance)[1]) == float(days)


def test_no_chance_is_reached_at_once_and_certainty_never():
    assert float(chance_days(unread(START), 0.0)) == 0.0
    assert chance_days(np.stack([unread(START)] * 3), 1.0).tolist() == [math.inf] * 3


@given(PRIORS)
def test_a_prior_is_kept_as_a_small_number(prior):
    assert RatePrior.decode(prior.code) == prior
    assert abs(prior.code) < 2**17
    assert shares(RateSums(), prior) == pytest.approx(unread(prior))


def test_a_prior_is_fitted_within_bounds():
    assert (RatePrior().mean, RatePrior().sigma) == (math.log(0.1), 1.8)
    assert RatePrior().code == 0
    assert RatePrior.fit(1.0, 0.01).sigma == pytest.approx(0.5, abs=1 / 64)
    assert RatePrior.fit(1.0, 99.0).sigma == pytest.approx(3.0, abs=1 / 64)
    assert RatePrior.fit(1.0, 1.0).mean == pytest.approx(1.0, abs=1 / 64)
    assert ln_prior(RatePrior.fit(3.0, 1.0)).argmax() == round((3.0 / math.log(2.0) + 12) * 2)
