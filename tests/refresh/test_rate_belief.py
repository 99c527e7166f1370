"""The belief in a change rate: numbers computed elsewhere, the formula by a loop of its own, inverses, priors."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xyro.refresh.rate_belief import (
    NODES,
    START,
    Onset,
    PageBelief,
    RatePrior,
    chance_days,
    ln_prior,
    quiet,
    rate,
    shares,
    shares_of_many,
    shares_of_pages,
    unread,
)
from xyro.refresh.rate_sums import RateSums

HOUR = 1 / 24
VECTORS = [  # sums, rate a day, quiet for an hour, for a day
    ((0, 0, 0), 0.313959, 0.973425, 0.778637),
    ((0, 1, 1 / 144), 59.045080, 0.493400, 0.127824),
    ((1, 0, 0), 0.098503, 0.993571, 0.877941),
    ((10, 0, 0), 0.031577, 0.998205, 0.959036),
    ((0, 10, 10 / 144), 1132.030170, 0.000045, 0.0),
    ((0.05, 10, 10 / 144), 110.981538, 0.022539, 0.0),
    ((5, 2, 3), 0.245510, 0.988582, 0.771790),
    ((300, 2, 60), 0.007598, 0.999655, 0.991765),
    ((0, 5, 5), 8.234020, 0.756893, 0.082793),
    ((2, 30, 10), 5.177377, 0.804889, 0.008946),
]
WIDER = [  # the same of 57 nodes to 2^16 and 12 degrees of freedom, with which the formula was first computed
    ((0, 0, 0), 0.284209, 0.781549),
    ((0, 1, 1 / 144), 38.362333, 0.153416),
    ((0.05, 10, 10 / 144), 109.141515, 0.0),
    ((5, 2, 3), 0.245815, 0.771552),
    ((300, 2, 60), 0.007663, 0.991707),
    ((2, 30, 10), 5.163930, 0.009048),
]
SOME = st.floats(1e-6, 1e4)
SUMS = st.builds(RateSums, st.one_of(st.just(0.0), SOME), st.floats(1e-3, 100.0), st.floats(1e-6, 1e3))
PRIORS = st.builds(RatePrior.fit, st.floats(-9.0, 12.0), st.floats(0.1, 5.0))


def by_loop(sums: RateSums, prior: RatePrior, days: float, fastest: int = 13, nu: float = 9.0) -> tuple[float, float]:
    """(rate, quiet over `days`), one node after the other."""
    weights = []
    for half in range(-24, 2 * fastest + 1):
        rate_of_node = 2.0 ** (half / 2)
        z = (math.log(rate_of_node) - prior.mean) / prior.sigma
        power = -0.5 * (nu + 1.0) * math.log(1.0 + z * z / nu) - rate_of_node * sums.quiet_days
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


@pytest.mark.parametrize(("sums", "changes_a_day", "day"), WIDER)
def test_the_loop_is_the_formula_as_computed_elsewhere(sums, changes_a_day, day):
    assert by_loop(RateSums(*sums), START, 1.0, 16, 12.0) == pytest.approx((changes_a_day, day), rel=2e-6, abs=1e-6)


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


def forked(belief: PageBelief, days: float, changed: bool) -> tuple[float, float]:
    """(chance of a new rate, of what a read after `days` shows), by loops."""
    old = by_loop(belief.sums, belief.prior, days)[1]
    chance, since = belief.onset or (0.08 * (1.0 - math.exp(-days / 8.0)), RateSums())
    new = by_loop(since, RatePrior.fit(belief.prior.mean, 3.0), days)[1]
    if changed:
        old, new = 1.0 - old, 1.0 - new
    shown = chance * new + (1.0 - chance) * old
    return chance * new / shown, shown


def test_a_change_that_was_hardly_expected_forks_the_belief_by_bayes_rule():
    quiet_month = PageBelief(RateSums(30.0, 0.0, 0.0), START)
    expected, _ = forked(quiet_month, 3.0, True)
    belief = quiet_month.after(3.0, True, None, math.inf)
    assert belief.sums == (30.0, 1.0, 3.0)
    assert belief.onset is not None
    assert belief.onset.chance == pytest.approx(expected)
    assert belief.onset.sums == (0.0, 1.0, 3.0)
    expected, _ = forked(belief, 0.5, False)
    later = belief.after(0.5, False, None, math.inf)
    assert later.onset is not None
    assert later.onset.chance == pytest.approx(expected)
    assert later.onset.sums == (0.5, 1.0, 3.0)


def test_a_forked_belief_is_both_by_their_chances():
    belief = PageBelief(RateSums(30.0, 1.0, 3.0), START, Onset(0.25, RateSums(0.1, 2.0, 0.5)))
    new = shares(RateSums(0.1, 2.0, 0.5), RatePrior.fit(START.mean, 3.0))
    assert belief.shares() == pytest.approx(0.75 * shares(belief.sums, START) + 0.25 * new)
    plain = PageBelief(RateSums(1.0, 2.0, 3.0), START)
    assert shares_of_pages([plain, belief, plain]) == pytest.approx(
        np.stack([plain.shares(), belief.shares(), plain.shares()]), rel=1e-9, abs=1e-30
    )


def test_changes_soon_after_a_surprise_end_the_past():
    belief = PageBelief(RateSums(30.0, 0.0, 0.0), START).after(3.0, True, None)
    for _ in range(3):
        belief = belief.after(0.5, True, None)
    assert belief.onset is None
    assert belief.sums.quiet_days == 0.0
    assert belief.rate() > 2.0


def test_quiet_after_a_surprise_ends_the_doubt():
    belief, reads = PageBelief(RateSums(30.0, 0.0, 0.0), START).after(3.0, True, None), 0
    while belief.onset is not None:
        belief, reads = belief.after(3.0, False, None), reads + 1
    assert 1 < reads < 30
    assert belief.sums.quiet_days > 30.0
    assert belief.rate() < 0.1


def test_an_expected_change_does_not_fork_and_quiet_never_does():
    hourly = PageBelief(RateSums(0.6, 20.0, 0.8), START)
    assert hourly.after(1 / 24, True, None).onset is None
    assert PageBelief(RateSums(30.0, 0.0, 0.0), START).after(30.0, False, None).onset is None


@given(SUMS, PRIORS, st.floats(1e-6, 1.0 - 1e-6), st.one_of(st.none(), st.builds(Onset, st.floats(0.05, 0.9), SUMS)))
@example(RateSums(0.0, 1.0, 1.0), RatePrior.fit(0.0, 1.0), 0.5, Onset(0.5, RateSums(0.0, 36.0, 0.015625)))
def test_the_time_of_a_chance_of_one_page_is_the_inverse_of_quiet(sums, prior, chance, onset):
    belief = PageBelief(sums, prior, onset)
    assert 1.0 - float(quiet(belief.shares(), belief.chance_days(chance))) == pytest.approx(chance, rel=1e-6, abs=1e-15)
    assert (belief.chance_days(0.0), belief.chance_days(1.0)) == (0.0, math.inf)
