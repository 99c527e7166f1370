"""Sums of a page's visits: numbers computed elsewhere, forgetting, trusted ages, hopeless pages."""

import math

import pytest

from xyro.refresh.rate_sums import SHORTEST, RateSums

BEFORE = RateSums(1.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("changed", "age", "after"),
    [
        (True, None, (0.99, 2.98, 0.745)),
        (False, None, (1.24, 1.98, 0.495)),
        (True, 0.1, (1.09, 2.98, 0.495001)),
        (True, 0.3, (0.99, 2.98, 0.745)),  # older than the read before: it contradicts the visit
        (True, -0.1, (0.99, 2.98, 0.745)),
    ],
)
def test_a_read_changes_the_sums_as_computed_elsewhere(changed, age, after):
    assert BEFORE.after(0.25, changed, age) == pytest.approx(after, rel=1e-12)


def test_what_is_never_forgotten_is_counted():
    assert BEFORE.after(0.25, True, None, math.inf) == (1.0, 3.0, 0.75)
    assert BEFORE.after(0.25, False, None, 50.0) == pytest.approx((1.23, 1.96, 0.49))


def test_the_typical_interval_that_showed_a_change_is_the_geometric_mean():
    sums = RateSums()
    for days in (8.0, 1.0, 0.125, 0.5):
        sums = sums.after(days, True, None, math.inf)
    assert sums == pytest.approx((0.0, 4.0, 4.0 * (8.0 * 1.0 * 0.125 * 0.5) ** 0.25))


def test_no_time_between_two_reads_unlearns_nothing():
    assert RateSums().after(0.0, False, None) == (SHORTEST, 0.0, 0.0)
    assert RateSums().after(-5.0, True, None) == (0.0, 1.0, SHORTEST)


def test_a_date_weighs_as_much_as_it_is_trusted():
    assert BEFORE.dated(3.0, 0.5) == pytest.approx((2.5, 2.5, 0.5000005))


@pytest.mark.parametrize("changes", [1.0, 3.0, 40.0])
def test_the_hopeless_rate_explains_the_changes_half_as_well_as_the_fastest(changes):
    found = RateSums(0.0, changes, changes / 144).hopeless_rate
    assert (-math.expm1(-found / 144)) ** changes == pytest.approx(0.5)
    assert RateSums().hopeless_rate == 0.0


def test_a_cap_bounds_the_rate_of_a_page_whose_reads_nearly_all_showed_a_change():
    always, hardly, half = RateSums(0.0, 10.0, 0.5), RateSums(0.009, 10.0, 0.5), RateSums(0.011, 10.0, 0.5)
    assert always.capped(900.0, 5.0) == hardly.capped(900.0, 5.0) == pytest.approx(100.0)
    assert half.capped(900.0, 5.0) == 900.0, "a fifth of an interval was quiet"
    assert always.capped(60.0, 5.0) == 60.0
    assert always.capped(900.0, 0.0) == 900.0, "no cap"
    assert RateSums().capped(0.3, 5.0) == 0.3
