"""The failure table: complete, consistent, and settled as its rules say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.failures import DAY, POLICIES, policy, settle

KINDS = [
    "dns-nxdomain",
    "dns-servfail",
    "dns-timeout",
    "connect-timeout",
    "connect-refused",
    "connect-failed",
    "tls",
    "first-byte-timeout",
    "header-timeout",
    "timeout",
    "slow-body",
    "disconnect",
    "closed-idle",
    "truncated",
    "too-large",
    "ratio-too-large",
    "headers-too-large",
    "bad-framing",
    "bad-status",
    "upgrade",
    "encoding",
    "unasked-206",
    "unasked-304",
    "challenge",
    "signature-asked",
    "soft-404",
    "blocked-address",
    "blocked-port",
    "only-net",
    "robots-disallowed",
    "content-signal",
    "robots-unreachable",
    "redirect-bad",
    "redirect-loop",
    "not-readable",
    "http-404",
    "http-410",
    "http-429",
    "http-401",
    "http-403",
    "http-4xx",
    "http-5xx",
    "url-too-long",
    "internal",
    "proxy-failed",
    "reader-lost",
    "poison",
]


def test_the_table_has_exactly_the_classes_the_fetcher_uses() -> None:
    assert sorted(POLICIES) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_policy_is_either_final_or_has_a_wait_and_retries(kind: str) -> None:
    rule = policy(kind)
    assert rule.final == (rule.wait == 0 and rule.retries == 0)
    assert not (rule.readable and not rule.final)
    assert not (rule.unsent and rule.host_wide)  # a host that was not contacted cannot have failed


def test_an_unknown_class_is_our_mistake() -> None:
    with pytest.raises(KeyError):
        policy("http-999")


@pytest.mark.parametrize(
    "kind", ["http-404", "http-410", "blocked-address", "only-net", "robots-disallowed", "truncated"]
)
def test_final_classes_are_never_retried(kind: str) -> None:
    assert settle(kind, 0, 1_000.0, retry_after=60.0) == (True, 0.0)


def test_nxdomain_gets_three_more_looks_spread_over_most_of_a_day() -> None:
    now, looks = 0.0, 0
    while not (settled := settle("dns-nxdomain", looks, now))[0]:
        now, looks = settled[1], looks + 1
    assert looks == 3
    assert 20 * 3600 <= now <= 24 * 3600


def test_robots_unreachable_is_retried_past_thirty_days() -> None:
    now = 0.0
    for attempt in range(policy("robots-unreachable").retries):
        now = settle("robots-unreachable", attempt, now)[1]
    assert now > 30 * DAY


def test_pages_behind_a_proxy_that_was_dead_for_a_week_follow_within_minutes() -> None:
    now = 0.0
    for attempt in range(8_000):
        final, then = settle("proxy-failed", attempt, now)
        assert (final, then - now <= 300.0) == (False, True)
        now = then
    assert now > 7 * DAY


def test_passing_failures_get_a_second_look_within_a_bounded_crawl() -> None:
    for kind in ("disconnect", "http-5xx", "http-429", "first-byte-timeout"):
        assert settle(kind, 0, 0.0)[1] <= 30.0


def test_a_dead_name_does_not_keep_a_bounded_crawl_waiting() -> None:
    assert settle("dns-nxdomain", 0, 0.0)[1] > 30.0


def test_retry_after_is_honoured_and_capped() -> None:
    assert settle("http-429", 0, 100.0, retry_after=500.0) == (False, 600.0)
    assert settle("http-429", 0, 0.0, retry_after=1e12) == (False, DAY)


@given(st.sampled_from(KINDS), st.integers(0, 10**6), st.floats(0, 2e9), st.floats(0, 1e13))
def test_a_retry_is_in_the_future_and_within_a_day(kind: str, attempt: int, now: float, retry_after: float) -> None:
    final, retry_at = settle(kind, attempt, now, retry_after)
    assert final == (policy(kind).final or attempt >= policy(kind).retries)
    if final:
        assert retry_at == 0.0
    else:
        assert math.isfinite(retry_at)
        assert now < retry_at <= now + DAY + 1e-3


@given(st.sampled_from(KINDS), st.integers(0, 30))
def test_waits_never_shrink(kind: str, attempt: int) -> None:
    (final, first), (later_final, second) = settle(kind, attempt, 0.0), settle(kind, attempt + 1, 0.0)
    assert later_final or (not final and second >= first)
