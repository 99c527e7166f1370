"""The table of loads that wait: every rule of its prose, then random histories against a plain model."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from xyro.loader.waiting import TABLE, Event, Waiting, WaitState

PARTS = st.sampled_from("pqrst")


def test_parts_in_any_order() -> None:
    for order in ("pq", "qp"):
        table: Waiting[int] = Waiting()
        table.hold(1, "pq", 10.0)
        table.arrived(order[0])
        assert (table.take(), order[0] in table.missed, order[1] in table.missed) == (None, False, True)
        table.arrived(order[1])
        assert table.take() == (1, WaitState.READY)
        assert len(table) == 0


def test_one_part_of_many_loads() -> None:
    table: Waiting[int] = Waiting()
    for key in range(5):
        table.hold(key, "p", 10.0)
    table.arrived("p")
    assert (len(table), table.ready) == (5, 5)
    assert [table.take() for _ in range(6)] == [(key, WaitState.READY) for key in range(5)] + [None]


def test_a_lost_part_ends_the_load_at_once() -> None:
    table: Waiting[int] = Waiting()
    table.hold(1, "pq", 10.0)
    table.hold(2, "q", 10.0)
    table.lost("p")
    assert table.take() == (1, WaitState.ENDING)
    assert table.take() is None
    table.arrived("q")
    assert table.take() == (2, WaitState.READY)


def test_nothing_waits_for_ever() -> None:
    table: Waiting[int] = Waiting()
    table.hold(1, "p", 10.0)
    table.hold(2, "p", 11.0)
    table.expire(9.9)
    assert table.take() is None
    table.expire(10.0)
    assert table.take() == (1, WaitState.ENDING)
    table.expire(1e9)
    assert table.take() == (2, WaitState.ENDING)
    assert "p" not in table.missed


def test_ready_but_late_is_ending() -> None:
    table: Waiting[int] = Waiting()
    table.hold(1, "p", 10.0)
    table.arrived("p")
    table.expire(10.0)
    assert table.take() == (1, WaitState.ENDING)


def test_held_again_the_old_deadline_is_void() -> None:
    table: Waiting[int] = Waiting()
    table.hold(1, "p", 10.0)
    table.hold(1, "q", 20.0)
    assert ("p" in table.missed, len(table)) == (False, 1)
    table.expire(15.0)
    assert table.take() is None
    table.expire(20.0)
    assert table.take() == (1, WaitState.ENDING)


def test_holding_again_and_again_takes_no_room() -> None:
    table: Waiting[int] = Waiting()
    for i in range(10_000):
        table.hold(1, "p", 10.0 + i)
    assert len(table._deadlines) < 200


def test_the_table_has_every_possible_pair_and_no_way_back() -> None:
    assert {(before, event) for before, event in product(WaitState, Event) if (before, event) in TABLE} == {
        *((WaitState.WAITING, event) for event in Event),
        (WaitState.READY, Event.LATE),
        (WaitState.ENDING, Event.LATE),
    }
    rank = {WaitState.WAITING: 0, WaitState.READY: 1, WaitState.ENDING: 2}
    assert all(rank[after] >= rank[before] for (before, _), after in TABLE.items())


@pytest.mark.parametrize("event", ["arrived", "lost"])
def test_news_of_parts_that_no_one_wants(event: str) -> None:
    table: Waiting[int] = Waiting()
    getattr(table, event)("p")
    table.drop(1)
    table.hurry(1)
    assert (table.take(), len(table)) == (None, 0)


class History(RuleBasedStateMachine):
    """Random events; the model keeps (missing, deadline, state) and searches through all loads."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Waiting[int] = Waiting()
        self.model: dict[int, tuple[set[str], float, WaitState]] = {}
        self.now = 0.0

    def _become(self, key: int, state: WaitState, missing: set[str] | None = None) -> None:
        self.model[key] = (missing or set(), self.model[key][1], state)

    @rule(key=st.integers(0, 5), needs=st.sets(PARTS, min_size=1), patience=st.integers(1, 20))
    def hold(self, key: int, needs: set[str], patience: int) -> None:
        self.table.hold(key, needs, self.now + patience)
        self.model[key] = (set(needs), self.now + patience, WaitState.WAITING)

    @rule(key=st.integers(0, 5))
    def drop(self, key: int) -> None:
        self.table.drop(key)
        self.model.pop(key, None)

    @rule(part=PARTS)
    def arrived(self, part: str) -> None:
        self.table.arrived(part)
        for key, (missing, _, _) in list(self.model.items()):
            if part in missing:
                left = missing - {part}
                self._become(key, WaitState.WAITING if left else WaitState.READY, left)

    @rule(part=PARTS)
    def lost(self, part: str) -> None:
        self.table.lost(part)
        for key, (missing, _, _) in list(self.model.items()):
            if part in missing:
                self._become(key, WaitState.ENDING)

    @rule(seconds=st.integers(0, 10))
    def expire(self, seconds: int) -> None:
        self.now += seconds
        self.table.expire(self.now)
        for key, (_, deadline, _) in list(self.model.items()):
            if deadline <= self.now:
                self._become(key, WaitState.ENDING)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def hurry(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.table.hurry(key)
        self._become(key, WaitState.ENDING)

    @rule()
    def take(self) -> None:
        taken = self.table.take()
        if taken is None:
            assert all(state is WaitState.WAITING for _, _, state in self.model.values())
        else:
            assert self.model.pop(taken[0])[2] is taken[1] is not WaitState.WAITING

    @invariant()
    def agrees(self) -> None:
        assert len(self.table) == len(self.model)
        assert self.table.ready == sum(state is not WaitState.WAITING for _, _, state in self.model.values())
        missed = {part for needs, _, _ in self.model.values() for part in needs}
        assert self.table.missed == missed
        assert all(deadline > self.now or state is WaitState.ENDING for _, deadline, state in self.model.values())


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
