"""Floors of servers: one read at a time and a rest after it, for addresses, networks and domains."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.server_floors import ServerFloors

IP = "192.0.2.1"


def test_an_address_is_read_by_one_at_a_time_and_rests_after_it() -> None:
    floors = ServerFloors(0.5)
    assert floors.claim("a", IP, 10.0) == 10.0
    assert floors.ready("a", IP) == math.inf
    assert floors.claim("b", IP, 10.0) > 10.0
    floors.leave("a", IP, 12.0)
    assert floors.ready("a", IP) == 12.5
    assert floors.claim("b", IP, 12.4) > 12.4
    assert floors.claim("b", IP, 12.5) == 12.5


def test_those_who_wait_for_an_address_get_different_turns() -> None:
    floors = ServerFloors(0.5)
    floors.claim("a", IP, 0.0)
    turns = [floors.claim("a", IP, 0.0) for _ in range(100)]
    assert turns == sorted(set(turns))
    assert all(b - a >= 0.5 - 1e-9 for a, b in itertools.pairwise(turns))
    assert turns[-1] == pytest.approx(50.0)


def test_other_delays_hold_from_the_end_of_the_read_under_way_on() -> None:
    floors = ServerFloors(0.5)
    floors.claim("a", IP, 0.0)
    floors.follow(1.5, 0.0, 0.0)
    assert floors.ready("b", IP) == math.inf, "the read goes on"
    floors.leave("a", IP, 1.0)
    assert floors.ready("b", IP) == 2.5
    floors.claim("a", IP, 3.0)
    floors.follow(0.0, 0.0, 0.0)
    floors.leave("a", IP, 4.0)
    floors.follow(0.5, 0.0, 0.0)
    assert floors.claim("b", IP, 4.0) == 4.0, "a kind that was switched off has forgotten its reader"


def test_a_turn_that_was_not_used_is_free_at_once() -> None:
    floors = ServerFloors(0.5, 1.0, 2.0)
    floors.claim("a", IP, 0.0)
    floors.unclaim("a", IP)
    assert floors.claim("a", IP, 0.0) == 0.0


def test_an_address_nobody_claimed_rests_too_and_keeps_the_turn_of_its_reader() -> None:
    floors = ServerFloors(0.5)
    floors.touched("a", IP, 7.0)
    assert floors.ready("a", IP) == 7.5
    floors.claim("b", IP, 8.0)
    floors.touched("a", IP, 9.0)
    assert floors.ready("b", IP) == math.inf


def test_without_an_address_or_a_floor_there_is_nothing_to_wait_for() -> None:
    assert ServerFloors(0.5).claim("a", "", 3.0) == 3.0
    off = ServerFloors(0.0)
    assert not off.active
    assert (off.claim("a", IP, 3.0), off.claim("a", IP, 3.0), len(off)) == (3.0, 3.0, 0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:DB8:1:2:0:0:0:1", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_an_ipv6_owner_has_one_floor_for_a_64(one: str, other: str, same: bool) -> None:
    floors = ServerFloors(0.5)
    assert floors.claim("a", one, 1.0) == 1.0
    assert (floors.claim("b", other, 1.0) > 1.0) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.254", True),
        ("192.0.2.1", "192.0.3.1", False),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", True),
        ("2001:db8:1:2::1", "2001:db8:2:2::1", False),
    ],
)
def test_a_network_has_a_floor_where_it_is_set(one: str, other: str, same: bool) -> None:
    floors = ServerFloors(0.0, net_delay=3.0)
    assert floors.claim("a", one, 1.0) == 1.0
    floors.leave("a", one, 2.0)
    assert (floors.ready("b", other) == 5.0) is same


def test_hosts_of_one_domain_on_one_address_wait_for_each_other_where_it_is_set() -> None:
    floors = ServerFloors(0.5, domain_delay=4.0)
    floors.claim("a.example.org:8080", IP, 0.0)
    floors.leave("a.example.org:8080", IP, 1.0)
    assert floors.ready("b.example.org", IP) == 5.0
    assert floors.ready("b.example.org", "192.0.2.7") == -math.inf
    assert floors.ready("other.test", IP) == 1.5


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0.0, 3.0)), max_size=60))
def test_no_two_reads_of_a_floor_overlap_or_follow_too_soon(steps: list[tuple[int, int, float]]) -> None:
    """An independent record of who read what when is compared with the delays, whatever the order of claims."""
    floors, now = ServerFloors(0.5, 1.0, 2.0), 0.0
    ended: dict[object, float] = {}
    for site, last, pause in steps:
        now += pause
        host, address = f"h{last}.site{site}.org", f"198.51.{site % 2}.{last}"
        if floors.claim(host, address, now) > now:
            continue
        for key, delay in ((address, 0.5), (site % 2, 1.0), ((site, address), 2.0)):
            assert now - ended.get(key, -math.inf) >= delay - 1e-9
            ended[key] = now + 0.25
        now += 0.25
        floors.leave(host, address, now)


def test_memory_is_bounded_by_the_floors_that_have_not_passed() -> None:
    floors = ServerFloors(0.5)
    for second in range(20_000):
        floors.claim("a", f"ip{second}", float(second))
        floors.leave("a", f"ip{second}", float(second))
    assert len(floors) <= 2 * 1_024
