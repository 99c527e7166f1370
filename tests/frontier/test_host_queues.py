"""HostQueues before full hosts: the most overdue first, of equal ones the first that came; nothing is lost or served
twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.frontier.leases import HostQueues
from xyro.refresh.due import OverduePages

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 3)),
        st.tuples(st.just("take"), st.lists(st.integers(0, 3), min_size=4, max_size=4)),
    ),
    max_size=60,
)


NOW = 1000.0


def taken(lines, leased, most=3, valid=lambda page, since: True):
    """Hosts have `most` places; each page that is yielded takes one."""
    leased = np.array(leased, np.int32)
    found = []

    def claim(host):
        return leased[host] < most

    for page in lines.take(np.array(leased) < most, NOW, valid, claim):
        leased[page // 1000] += 1
        found.append(page)
    return found


@given(STEPS)
def test_each_line_is_served_in_its_order_as_far_as_there_is_room(steps):
    lines, waiting, number = HostQueues(), {host: [] for host in range(4)}, 0
    for deed, what in steps:
        if deed == "put":
            number += 1
            lines.put(what, what * 1000 + number, 5)
            waiting[what].append(what * 1000 + number)
        else:
            expected = {host: waiting[host][: max(3 - what[host], 0)] for host in waiting}
            found = taken(lines, what)
            assert {host: [page for page in found if page // 1000 == host] for host in waiting} == expected
            waiting = {host: waiting[host][len(expected[host]) :] for host in waiting}
        assert lines.pages() == sum(map(len, waiting.values()))
        assert [host in lines for host in range(4)] == [bool(waiting[host]) for host in range(4)]
        assert len(lines) == sum(map(bool, waiting.values()))


def test_a_page_that_is_not_wanted_any_more_takes_no_place():
    lines = HostQueues()
    for page in range(10):
        lines.put(0, page, 5)
    assert taken(lines, [0], valid=lambda page, since: page % 2 == 1) == [1, 3, 5]
    assert lines.pages() in (3, 4)
    assert taken(lines, [2], valid=lambda page, since: page % 2 == 1) == [7]
    assert taken(lines, [2], valid=lambda page, since: False) == [] and not lines


@given(st.integers(1, 4), st.integers(1, 12))
def test_where_places_are_too_few_for_all_hosts_each_gets_its_turn(places, turns):
    """Each host has room and an endless line, but there are only so many places a turn."""
    lines, served = HostQueues(), []
    for page in range(50):
        for host in range(5):
            lines.put(host, 1000 * host + page, 5)
    for _ in range(turns):
        left = list(range(places))
        for page in lines.take(np.ones(5, np.bool_), NOW, lambda page, since: True, lambda host, left=left: bool(left)):
            left.pop()
            served.append(page // 1000)
    counts = [served.count(host) for host in range(5)]
    assert sum(counts) == turns * places and max(counts) - min(counts) <= places


def test_of_a_host_that_waits_the_page_of_whose_interval_most_is_over_is_served_first():
    lines = HostQueues()
    for page in range(900):
        lines.put(0, page, 1, 900.0)
    lines.put(0, 999, 990, 2.0)
    assert taken(lines, [2]) == [999]
    assert taken(lines, [2]) == [0]


def test_a_host_for_which_a_million_wait_is_told_and_loses_none(monkeypatch):
    monkeypatch.setattr(OverduePages, "LIMIT", 5)
    lines, full = HostQueues(), []
    for page in range(7):
        full.append(lines.is_full(0))
        lines.put(0, page, 1)
    assert full == [False] * 5 + [True] * 2 and lines.pages() == 7 and not lines.is_full(1)
