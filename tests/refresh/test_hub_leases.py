"""WebSub leases: renewed before they end, asked again after silence, bounded by reason."""

from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.hub_leases import (
    BACK_OFF,
    GRACE,
    LEASE,
    LEAST_LEASE,
    MOST_BACK_OFF,
    MOST_LEASE,
    PATIENCE,
    RETRY_DENIED,
    lease,
    next_asking,
    takes,
    unheard,
)


@given(st.floats(0, 1e9), st.floats(LEAST_LEASE, MOST_LEASE))
def test_a_lease_is_renewed_before_it_ends_with_time_for_a_second_try(begun, length):
    at = next_asking("active", 0.0, begun, begun + length, 0)
    assert begun <= at < begun + length


def test_when_the_hub_is_asked():
    assert next_asking("asked", 0.0, 0.0, 0.0, 0) == 0.0
    assert next_asking("asked", 50.0, 0.0, 0.0, 0) == 50.0 + PATIENCE
    assert next_asking("asked", 50.0, 0.0, 0.0, 1) == 50.0 + BACK_OFF
    assert next_asking("active", 50.0, 0.0, 100.0, 30) == 50.0 + MOST_BACK_OFF
    assert next_asking("denied", 0.0, 7.0, 0.0, 0) == 7.0 + RETRY_DENIED


def test_a_hub_that_says_yes_and_never_verifies_is_asked_ever_more_seldom():
    failures, waits = 0, []
    for _ in range(40):
        failures = unheard(failures, accepted=True)
        waits.append(next_asking("asked", 1e6, 0.0, 0.0, failures) - 1e6)
    assert waits[0] >= PATIENCE and waits == sorted(waits) and waits[-1] == MOST_BACK_OFF
    assert [unheard(n, accepted=False) for n in (0, 1, 40)] == [1, 2, 32]


def test_lease_seconds_of_a_hub_are_kept_within_reason():
    assert [lease(text) for text in ("", "-5", "1e9", "ten")] == [LEASE] * 4
    assert (lease("0"), lease("86400"), lease("9" * 40)) == (LEAST_LEASE, 86_400.0, MOST_LEASE)


def test_content_is_taken_while_the_lease_lasts():
    assert takes("active", 100.0, 99.0 + GRACE) and not takes("active", 100.0, 101.0 + GRACE)
    assert not takes("asked", 100.0, 0.0) and not takes("denied", 100.0, 0.0)
