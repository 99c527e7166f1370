"""Whom to believe: liars lose their weight within some tens of claims, honest hosts gain it, nobody flutters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xyro.refresh.evidence import claimed_outcome, outcome
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.trust import MEMORY, PRIORS, Source, Trust, plausible

NOW = 1_760_000_000.0
DAY = 86_400.0
probabilities = st.floats(0.0, 1.0)


def claims(rng: np.random.Generator, count: int, chance: float, lying: bool) -> Trust:
    """A host that claims changes of pages which change by chance within an interval; an honest one when they did."""
    trust = Trust()
    for _ in range(count):
        changed = bool(rng.random() < chance) if lying else bool(rng.random() < 0.99)
        trust.changed(Source.SITEMAP, changed, chance)
    return trust


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.3])
def test_a_lying_publisher_loses_its_weight_and_an_honest_one_gains_it(chance):
    rng = np.random.default_rng(5)
    liars = [claims(rng, 30, chance, lying=True).weight(Source.SITEMAP) for _ in range(100)]
    honest = [claims(rng, 30, chance, lying=False).weight(Source.SITEMAP) for _ in range(100)]
    later = [claims(rng, 80, chance, lying=True).weight(Source.SITEMAP) for _ in range(100)]
    assert np.mean(liars) < 0.07 + 0.35 * chance < Trust().weight(Source.SITEMAP)
    assert np.mean(later) < 0.05 + 0.3 * chance
    assert np.quantile(honest, 0.05) > 0.7


def test_claims_of_pages_that_change_anyway_earn_nothing():
    before = Trust().weight(Source.SITEMAP)
    trust = Trust()
    for _ in range(200):
        trust.changed(Source.SITEMAP, True, 0.999)
    assert trust.weight(Source.SITEMAP) == pytest.approx(before, abs=0.05)


def test_a_host_that_turns_liar_is_found_out_and_one_that_reforms_is_heard_again():
    trust = Trust()
    for _ in range(1000):
        trust.changed(Source.FEED, True, 0.1)
    assert trust.weight(Source.FEED) > 0.9
    falls = 0
    while trust.weight(Source.FEED) > 0.5:
        trust.changed(Source.FEED, False, 0.1)
        falls += 1
    rises = 0
    for _ in range(1000):
        trust.changed(Source.FEED, False, 0.1)
    while trust.weight(Source.FEED) < 0.5:
        trust.changed(Source.FEED, True, 0.1)
        rises += 1
    assert falls <= 40
    assert rises <= 80


@pytest.mark.parametrize(("said", "true"), [(24.0, 0.02), (1 / 365, 1.0)])
def test_a_template_s_changefreq_loses_and_a_true_one_gains(said, true):
    rng = np.random.default_rng(7)
    false, right = Trust(), Trust()
    for _ in range(40):
        tau = rng.exponential(4.0)
        changed = bool(rng.random() < -math.expm1(-true * tau))
        alone = outcome(PageBelief(RateSums(), START), tau, changed)
        false.settle(Source.RATE, claimed_outcome(said, tau, changed), alone)
        right.settle(Source.RATE, claimed_outcome(true, tau, changed), alone)
    assert false.weight(Source.RATE) < 0.12
    assert right.weight(Source.RATE) > 2 * false.weight(Source.RATE)
    assert right.weight(Source.RATE) > Trust().weight(Source.RATE)


def test_a_lying_last_modified_is_doubted_soon_and_believed_again_late():
    trust = Trust()
    doubted = next(n for n in range(1, 100) if trust.dated(False) or trust.doubted)
    assert 3 <= doubted <= 12
    for _ in range(50):
        trust.dated(False)
    restored = next(n for n in range(1, 1000) if trust.dated(True) or not trust.doubted)
    assert 10 <= restored <= 100


def test_doubt_does_not_flutter():
    """A host half of whose dates show that they are wrong changes its standing seldom."""
    rng = np.random.default_rng(8)
    trust, moves, before = Trust(), 0, False
    for _ in range(2000):
        trust.dated(bool(rng.random() < 0.5))
        moves += trust.doubted is not before
        before = trust.doubted
    assert moves <= 20


@pytest.mark.parametrize(
    ("modified", "changed", "expected"),
    [
        (NOW + 5.0, None, False),  # the future
        (NOW - 1.0, None, False),  # now
        (NOW - 1.0, False, False),
        (NOW - 10.0, False, False),
        (NOW - 10.0, True, None),  # just published, or always now
        (NOW - 10.0, None, None),  # a site that was made a moment ago
        (NOW - 5 * DAY, False, True),  # a read in the second of the change
        (NOW - 30 * DAY, True, False),  # older than a change that we saw
        (NOW - 1 * DAY, True, True),
        (NOW - 1 * DAY, False, False),  # tells of a change that was none
        (NOW - 30 * DAY, False, True),
        (NOW - 30 * DAY, None, None),  # a first read: nothing to hold it against
    ],
)
def test_what_a_last_modified_shows_of_itself(modified, changed, expected):
    last_read = 0.0 if changed is None else NOW - 5 * DAY
    assert plausible(modified, NOW, changed, last_read, 60.0) is expected


@given(st.lists(st.tuples(st.sampled_from(Source), probabilities, probabilities), max_size=60))
def test_trust_stays_a_share_and_what_is_stored_comes_back(settled):
    trust = Trust()
    for source, if_true, by_chance in settled:
        trust.settle(source, if_true, by_chance)
    for source in Source:
        assert 0.0 < trust.weight(source) < 1.0
        assert sum(trust.counts[2 * source : 2 * source + 2]) <= MEMORY + 1e-9
    again = Trust.load(trust.dump())
    assert (again.doubted, again.claims) == (trust.doubted, trust.claims)
    assert again.counts == pytest.approx(trust.counts, rel=1e-6, abs=1e-6)
    assert len(trust.dump()) <= 5 + 8 * len(Source)


@given(st.binary(max_size=80))
@example(b"\0" * 11 + b"\x81\x7f")  # not a number
def test_any_bytes_load_as_some_trust(data):
    trust = Trust.load(data)
    assert all(0.0 < trust.weight(source) < 1.0 for source in Source)


@pytest.mark.parametrize("impossible", [(0.0, 0.0), (math.nan, 0.5), (math.inf, 0.1)])
def test_an_outcome_that_is_impossible_either_way_teaches_nothing(impossible):
    trust = Trust()
    trust.settle(Source.CACHE, *impossible)
    assert trust == Trust()
    assert trust.words() == {}
    assert len(PRIORS) == len(Source)
