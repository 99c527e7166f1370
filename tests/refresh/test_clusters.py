"""Clusters: sums, one date for all members, rounds with their spread."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.clusters import Cluster


def test_sums_and_what_each_member_is_dated_by():
    cluster = Cluster("c", 60.0)
    for page in (1, 2):
        cluster.join(page)
    assert cluster.joint(1, 3.0, 0.5) == (3.0, 0.5)
    assert cluster.joint(2, 1.0, 1.5) == (2.0, 2.0)
    assert (cluster.importance, cluster.rate) == (4.0, 2.0)
    # P1's weight sqrt(r lambda) of n members adds up to that of one document read at n times the cost
    assert 2 * math.sqrt(2.0 * 2.0) == pytest.approx(math.sqrt(2 * 4.0 * 2.0))


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 10), st.floats(0, 10)), max_size=40))
def test_the_sums_are_those_of_the_members_as_last_weighed(reads):
    cluster, last = Cluster("c", 60.0), {}
    for page in range(6):
        cluster.join(page)
    for page, importance, rate in reads:
        shared, joint_rate = cluster.joint(page, importance, rate)
        last[page] = (importance, rate)
        weighed = [pair for pair in last.values() if pair[1] > 0.0]
        assert cluster.importance == pytest.approx(sum(r for r, _ in weighed), abs=1e-9)
        assert joint_rate == pytest.approx(sum(rate for _, rate in weighed), abs=1e-9)
        assert shared == pytest.approx(cluster.importance / max(1, len(weighed)))
    for page in range(6):
        cluster.leave(page)
    assert cluster.importance == pytest.approx(0.0, abs=1e-9) and not cluster.members


def test_a_round_calls_all_gives_one_date_and_tells_its_spread():
    cluster = Cluster("c", 60.0)
    for page in (1, 2, 3):
        cluster.join(page)
    assert cluster.read(1, 1_000.0, 2_000) == (2_000, (2, 3))
    assert not cluster.whole
    assert cluster.read(2, 1_010.0, 2_345) == (2_000, ())
    assert cluster.read(1, 1_020.0, 9_999) == (2_000, ())  # somebody ordered it again
    assert cluster.read(3, 1_030.0, 2_500) == (2_000, ())
    assert cluster.whole and cluster.spread == 30.0
    assert cluster.read(2, 2_001.0, 3_000) == (3_000, (1, 3))
    assert (cluster.late_rounds, cluster.worst, cluster.round) == (0, 30.0, 2)


def test_a_round_that_was_too_slow_or_never_whole_is_late():
    cluster = Cluster("c", 5.0)
    for page in (1, 2):
        cluster.join(page)
    cluster.read(1, 0.0, 100)
    cluster.read(2, 50.0, 100)
    cluster.read(1, 100.0, 200)
    assert cluster.late_rounds == 1
    cluster.read(1, 200.0, 300)
    assert cluster.late_rounds == 2 and cluster.report()["worst_spread_s"] == 50.0


def test_a_restart_goes_on_with_the_round():
    cluster = Cluster("c", 60.0)
    for page in (1, 2):
        cluster.join(page)
        cluster.joint(page, 2.0, 1.0)
    cluster.read(1, 1_000.0, 2_000)
    again = Cluster("c", 60.0)
    again.load(cluster.dump(), {1: (2.0, 1.0, 1_000.0), 2: (2.0, 1.0, 500.0)})
    assert (again.importance, again.rate, again.due) == (4.0, 2.0, 2_000)
    assert not again.whole
    assert again.read(2, 1_040.0, 2_500) == (2_000, ())
    assert again.whole and again.spread == 40.0
