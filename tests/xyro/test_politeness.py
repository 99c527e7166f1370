"""Floors of hosts and addresses: known delays, hostile numbers, bounded tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.politeness import DAY, Manners, Politeness

ANY = st.floats(allow_nan=True, allow_infinity=True)


def polite(**settings: float) -> Politeness:
    return Politeness(Manners(**settings))


def test_the_delay_is_counted_from_the_end_of_the_read() -> None:
    assert polite().finished("h", "", ended=100.0, duration=0.01) == 102.0


@pytest.mark.parametrize(("duration", "delay"), [(0.1, 2.0), (0.4, 2.0), (1.0, 5.0), (6.0, 30.0), (600.0, 30.0)])
def test_a_slow_host_is_spared_in_proportion_up_to_the_cap(duration: float, delay: float) -> None:
    assert polite().finished("h", "", 0.0, duration) == delay


@pytest.mark.parametrize(
    ("asked", "delay"),
    [(None, 2.0), (1.0, 2.0), (10.0, 10.0), (1e9, 300.0), (-1.0, 2.0), (math.nan, 2.0), (math.inf, 300.0)],
)
def test_crawl_delay_is_honoured_within_reason(asked: float | None, delay: float) -> None:
    assert polite().finished("h", "", 0.0, 0.0, crawl_delay=asked) == delay


@pytest.mark.parametrize(("asked", "delay"), [(60.0, 60.0), (1e12, DAY), (-5.0, 2.0), (math.nan, 2.0)])
def test_retry_after_is_clamped(asked: float, delay: float) -> None:
    assert polite().finished("h", "", 0.0, 0.0, retry_after=asked) == delay


def test_failures_in_a_row_double_the_wait_and_a_success_ends_that() -> None:
    politeness = polite(backoff_base=4.0, backoff_cap=60.0)
    waits = [politeness.finished("h", "", 0.0, 0.0, failed=True) for _ in range(7)]
    assert waits == [4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert politeness.failures("h") == 7
    assert politeness.finished("h", "", 0.0, 0.0) == 2.0
    assert politeness.failures("h") == 0
    assert politeness.finished("h", "", 0.0, 0.0, failed=True) == 4.0


def test_hosts_do_not_pay_for_each_other() -> None:
    politeness = polite()
    politeness.finished("a", "", 0.0, 0.0, failed=True)
    assert politeness.finished("b", "", 0.0, 0.0) == 2.0
    assert politeness.host_ready("c") == -math.inf


def test_fixed_delay_replaces_all_three_floors() -> None:
    politeness = Politeness(Manners.fixed(0.5))
    assert politeness.servers.claim("h", "1.2.3.4", 0.0) == 0.0
    assert politeness.finished("h", "1.2.3.4", 10.0, duration=100.0) == 10.5
    assert politeness.servers.ready("h", "1.2.3.4") == 10.5


def test_with_delay_zero_only_what_was_asked_for_remains() -> None:
    politeness = Politeness(Manners.fixed(0))
    assert politeness.finished("h", "1.2.3.4", 10.0, 3.0) == 10.0
    assert politeness.servers.ready("h", "1.2.3.4") == -math.inf
    assert len(politeness) == 0
    assert politeness.finished("h", "", 10.0, 0.0, crawl_delay=3.0) == 13.0
    assert politeness.finished("h", "", 10.0, 0.0, retry_after=7.0) == 17.0
    assert politeness.finished("h", "", 10.0, 0.0, failed=True) == 14.0


@pytest.mark.parametrize("name", ["min_delay", "factor", "ip_delay", "net_delay", "domain_delay", "backoff_cap"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_settings_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Manners(**{name: value})


def test_what_was_known_before_a_restart_holds_after_it() -> None:
    politeness = polite(backoff_base=4.0)
    politeness.restore("h", 50.0, failures=3)
    assert politeness.host_ready("h") == 50.0
    assert politeness.finished("h", "", 50.0, 0.0, failed=True) == 50.0 + 32.0
    politeness.restore("h", 60.0, failures=0)  # never earlier than what this process knows
    assert (politeness.host_ready("h"), politeness.failures("h")) == (82.0, 4)


def test_memory_is_bounded_by_the_floors_that_have_not_passed() -> None:
    politeness = polite()
    for second in range(20_000):
        politeness.servers.claim(f"h{second}", f"ip{second}", float(second))
        politeness.finished(f"h{second}", f"ip{second}", float(second), 0.0)
    assert len(politeness) <= 2 * 1_024
    assert politeness.host_ready("h19999") == 20_001.0


def test_failing_hosts_are_remembered_for_a_day_and_not_for_ever() -> None:
    politeness = polite(backoff_cap=4.0)
    politeness.finished("old", "", 0.0, 0.0, failed=True)
    for host in range(3_000):
        politeness.finished(f"a{host}", "", 1_000.0, 0.0, failed=True)
    assert politeness.failures("old") == 1
    for host in range(10_000):
        politeness.finished(f"b{host}", "", 2_000.0 + DAY, 0.0)
    assert politeness.failures("old") == 0


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 100), ANY, st.booleans(), ANY, st.none() | ANY), max_size=50
    )
)
def test_no_number_from_the_web_makes_a_host_hurry_or_sleep_for_ever(
    reads: list[tuple[str, float, float, bool, float, float | None]],
) -> None:
    politeness, now = polite(), 0.0
    for host, step, duration, failed, retry_after, crawl_delay in reads:
        now += step
        ready = politeness.finished(host, "", now, duration, failed, retry_after, crawl_delay)
        assert now + 2.0 <= ready <= now + DAY
        assert politeness.host_ready(host) == ready
