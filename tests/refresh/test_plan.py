"""Choosing what to read next: held against the plainest way to say it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.sharing import CROWD, choose, crowd

CANDIDATES = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), max_size=40)
ROOM = st.lists(st.integers(0, 12), min_size=4, max_size=4)


def arrays(candidates):
    urgency = np.array([urgency for urgency, _ in candidates], np.int64)
    return urgency, np.array([host for _, host in candidates], np.uint32)


def plainly(candidates, room, most):
    """One after the other, the most urgent first, ties as given, as long as the host has room."""
    left, chosen = list(room), []
    for i in sorted(range(len(candidates)), key=lambda i: -candidates[i][0]):
        host = candidates[i][1]
        if left[host] and len(chosen) < most:
            left[host] -= 1
            chosen.append(i)
    return chosen


@given(CANDIDATES, ROOM, st.integers(0, 45))
def test_the_most_urgent_first_within_each_hosts_room(candidates, room, most):
    urgency, hosts = arrays(candidates)
    chosen = choose(urgency, hosts, np.array(room, np.int32), most)
    assert chosen.tolist() == plainly(candidates, room, most)
    assert len(chosen) <= most
    assert all(count <= room[host] for host, count in Counter(hosts[chosen].tolist()).items())


@given(CANDIDATES)
def test_with_room_for_all_it_only_sorts(candidates):
    urgency, hosts = arrays(candidates)
    room = np.full(4, 100, np.int32)
    chosen = choose(urgency, hosts, room, len(candidates) + 1)
    assert chosen.tolist() == plainly(candidates, room.tolist(), len(candidates))


def test_nothing_to_choose():
    none = np.empty(0, np.int64)
    assert choose(none, np.empty(0, np.uint32), np.zeros(0, np.int32), 5).tolist() == []
    assert choose(np.array([1]), np.array([0], np.uint32), np.array([1], np.int32), 0).tolist() == []


@given(st.lists(st.integers(0, 6), max_size=80), st.integers(0, 6))
def test_a_crowd_is_cut_to_the_most_urgent_in_the_order_given(urgency, wanted):
    most = CROWD * max(wanted, 1)
    best = sorted(sorted(range(len(urgency)), key=lambda i: (-urgency[i], i))[:most])
    assert crowd(np.array(urgency, np.int64), wanted).tolist() == best


@given(CANDIDATES, st.integers(1, 4))
def test_cutting_the_crowd_does_not_change_the_choice_of_one_host(candidates, most):
    urgency, _ = arrays(candidates)
    hosts = np.zeros(len(candidates), np.uint32)
    room = np.array([most], np.int32)
    near = crowd(urgency, most)
    assert near[choose(urgency[near], hosts[near], room, most)].tolist() == choose(urgency, hosts, room, most).tolist()
