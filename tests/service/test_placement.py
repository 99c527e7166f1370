"""The placement: every change of owner raises the epoch, and moves even the counts, whatever nodes come and go."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from xyro.service.cluster.bucket import differences, encoded, epochs, set_epoch
from xyro.service.cluster.steering import adopted
from xyro.wire.placement import Member, Owner, Placement


def placement(owners: list[int], members: int, draining: tuple[int, ...] = ()) -> Placement:
    found = {str(n): Member(f"id{n}", "i", "h", n in draining) for n in range(1, members + 1)}
    return Placement("c", 7, {}, tuple(Owner(node, 1) for node in owners), found)


def settled(now: Placement, alive: list[int]) -> tuple[Placement, int]:
    """Make all moves that nodes want, each by its own; how many there were."""
    moves = 0
    while wanted := next(((n, m) for n in map(int, now.members) if (m := now.next_move(n, alive)) is not None), None):
        partition, target = wanted[1]
        now = now.planned(partition, target).moved(partition, target)
        moves += 1
        assert moves <= 1000, "moves go round in circles"
    return now, moves


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(1, n), min_size=1, max_size=64))))
def test_moves_even_the_counts_with_no_more_of_them_than_needed(drawn):
    members, owners = drawn
    begin = placement(owners, members)
    end, moves = settled(begin, list(range(1, members + 1)))
    counts = end.counts()
    assert max(counts.values()) - min(counts.values()) <= 1
    floor = len(owners) // members
    assert moves <= sum(max(0, count - floor) for count in begin.counts().values())
    for before, after in zip(begin.owners, end.owners, strict=True):
        assert after.epoch > before.epoch if after.node != before.node else after.epoch >= before.epoch


def test_a_node_that_drains_ends_with_nothing_and_one_that_is_away_gets_nothing():
    end, _ = settled(placement([1] * 16, 3, draining=(1,)), [1, 2])
    assert end.counts() == {1: 0, 2: 16, 3: 0}


def test_planned_moves_count_as_made():
    now = placement([1] * 4, 2)
    plans = []
    while (found := now.next_move(1, [1, 2])) is not None:
        plans.append(found)
        now = now.planned(*found)
    assert len(plans) == 2
    assert now.moves_of(1) == dict(plans)


def test_a_placement_is_stored_whole_and_without_the_buckets_revision():
    now = placement([1, 2], 2).planned(0, 2)
    stored = encoded(msgspec.structs.replace(now, revision=9))
    assert msgspec.json.decode(stored, type=Placement) == now


def test_settings_that_differ_are_named_with_both_values():
    found = list(differences({"crawl.scope": "any", "a.b": 1}, {"crawl.scope": "host", "a.b": 1}))
    assert found == ['crawl.scope is "any" here and "host" there']


def test_adopting_takes_the_highest_epoch_that_is_open_anywhere():
    old, new = placement([1, 1, 2], 2), placement([1, 1, 2], 2).moved(0, 2)
    new = msgspec.structs.replace(new, version=5)
    found = adopted([(old, 1, {0: 1, 1: 1}), (new, 2, {0: 2, 2: 1})])
    assert [(owner.node, owner.epoch) for owner in found.owners] == [(2, 2), (1, 1), (2, 1)]
    assert found.version == 6
    behind = adopted([(old, 2, {0: 3, 2: 1})])
    assert behind.owners[0] == Owner(2, 3)


def test_epochs_of_a_directory(tmp_path):
    for name in ("p0000", "p0007", "old"):
        (tmp_path / name).mkdir()
    set_epoch(tmp_path / "p0007", 12)
    assert epochs(tmp_path) == {0: 0, 7: 12}
