"""Folders of due pages: nothing lost, nothing twice, oldest unit first."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from xyro.refresh.due import CHOICE_LASTS, CHOSEN, HASTE, DueFolders, OverduePages

LAST = 2**32 - 1


def ids(*pages: int) -> np.ndarray:
    return np.array(pages, dtype=np.uint32)


def test_a_page_is_popped_once_its_time_unit_has_begun():
    folders = DueFolders(60)
    folders.put(7, 125)
    assert folders.next_due() == 120
    assert folders.pop(119).tolist() == []
    assert len(folders) == 1
    assert folders.pop(120).tolist() == [7]
    assert folders.pop(LAST).tolist() == []
    assert folders.next_due() is None
    assert len(folders) == 0


def test_oldest_unit_first_and_first_in_first_out_within():
    folders = DueFolders(10)
    folders.add(ids(1, 2, 3, 4, 5), ids(25, 5, 21, 9, 105))
    folders.put(6, 0)
    assert folders.pop(50).tolist() == [2, 4, 6, 1, 3]
    assert folders.next_due() == 100


def test_most_bounds_a_pop_and_the_rest_stays():
    folders = DueFolders(10)
    folders.add(np.arange(100, dtype=np.uint32), np.repeat(ids(5, 15), 50))
    assert folders.pop(20, limit=0).tolist() == []
    assert folders.pop(20, limit=30).tolist() == list(range(30))
    folders.put(1000, 5)  # behind those that waited longer in its unit, before the next unit
    assert folders.pop(20, limit=30).tolist() == [*range(30, 50), 1000, *range(50, 59)]
    assert len(folders) == 41
    assert folders.pop(20).tolist() == list(range(59, 100))


def test_a_page_put_back_at_once_does_not_starve_the_others_of_its_unit():
    folders = DueFolders(60)
    folders.add(np.arange(50, dtype=np.uint32), np.zeros(50, dtype=np.uint32))
    seen = set()
    for _ in range(50):
        page = int(folders.pop(0, limit=1)[0])
        seen.add(page)
        folders.put(page, 30)
    assert seen == set(range(50))


def test_the_edges_of_32_bits():
    folders = DueFolders(1)
    folders.add(ids(0, LAST), ids(LAST, 0))
    assert folders.pop(0).tolist() == [LAST]
    assert folders.next_due() == LAST
    assert folders.pop(LAST).tolist() == [0]


def test_what_does_not_fit_is_refused_and_changes_nothing():
    folders = DueFolders(60)
    with pytest.raises(ValueError, match="time unit"):
        DueFolders(0)
    with pytest.raises(ValueError, match="due times"):
        folders.add(ids(1, 2), ids(1))
    for page, due in ((-1, 0), (LAST + 1, 0), (0, -1), (0, LAST + 1)):
        with pytest.raises(ValueError, match="32-bit"):
            folders.put(page, due)
    folders.add(ids(), ids())
    assert len(folders) == 0
    assert folders.pop(LAST).tolist() == []


@given(
    st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=200),
    st.sampled_from([1, 60, 3600, 86_400]),
    st.integers(0, LAST),
)
def test_one_by_one_and_all_at_once_are_the_same(entries, unit, now):
    singly, together = DueFolders(unit), DueFolders(unit)
    for page, due in entries:
        singly.put(page, due)
    together.add(ids(*(e[0] for e in entries)), ids(*(e[1] for e in entries)))
    assert len(singly) == len(together) == len(entries)
    assert singly.next_due() == together.next_due()
    expected = sorted((due // unit, place) for place, (_, due) in enumerate(entries) if due // unit <= now // unit)
    popped = [entries[place][0] for _, place in expected]
    assert singly.pop(now).tolist() == together.pop(now).tolist() == popped
    assert len(singly) == len(entries) - len(popped)


class Folders(RuleBasedStateMachine):
    """Against a plain sorted list."""

    def __init__(self) -> None:
        super().__init__()
        self.folders, self.model, self.arrivals = DueFolders(10), [], 0

    @rule(entries=st.lists(st.tuples(st.integers(0, LAST), st.integers(0, 200)), max_size=20))
    def add(self, entries):
        self.folders.add(ids(*(e[0] for e in entries)), ids(*(e[1] for e in entries)))
        for page, due in entries:
            self._model(page, due)

    @rule(page=st.integers(0, LAST), due=st.integers(0, 200))
    def put(self, page, due):
        self.folders.put(page, due)
        self._model(page, due)

    def _model(self, page, due):
        self.arrivals += 1
        self.model.append((due // 10, self.arrivals, page))
        self.model.sort()

    @rule(now=st.integers(0, 250), most=st.one_of(st.none(), st.integers(0, 30)))
    def pop(self, now, most):
        begun = [entry for entry in self.model if entry[0] <= now // 10][:most]
        assert self.folders.pop(now, most).tolist() == [page for _, _, page in begun]
        self.model = self.model[len(begun) :]

    @invariant()
    def agree(self):
        assert len(self.folders) == len(self.model)
        assert self.folders.next_due() == (self.model[0][0] * 10 if self.model else None)


TestAgainstAPlainList = Folders.TestCase


@pytest.mark.parametrize("singly", [True, False])
def test_large_folders_take_at_most_five_bytes_a_page(singly):
    pages = np.arange(200_000, dtype=np.uint32)
    due = (pages % 20) * 3600
    folders = DueFolders(3600)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    if singly:
        for page, when in zip(range(200_000), due.tolist(), strict=True):
            folders.put(page, when)
    else:
        folders.add(pages, due.astype(np.uint32))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used <= 5 * len(pages)


def test_memory_of_what_was_popped_is_given_back():
    folders = DueFolders(3600)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    folders.add(np.arange(200_000, dtype=np.uint32), np.zeros(200_000, dtype=np.uint32))
    for _ in range(190):
        folders.pop(0, limit=1000)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(folders) == 10_000
    assert used <= 200_000


def test_the_page_of_whose_interval_most_is_over_is_taken_first():
    overdue = OverduePages()
    for page, last_read, interval in ((1, 1, 100.0), (2, 905, 10.0), (3, 1, 400.0)):
        overdue.put(page, last_read, interval)
    assert [overdue.take(1000.0) for _ in range(4)] == [1, 2, 3, None]
    assert len(overdue) == 0


def test_pages_of_equal_claim_come_as_they_were_put_and_none_is_lost():
    overdue = OverduePages()
    for page in range(3 * CHOSEN):
        overdue.put(page, 1, 50.0)
    assert [overdue.take(100.0 + page / 100) for page in range(3 * CHOSEN)] == list(range(3 * CHOSEN))
    assert overdue.take(200.0) is None


def test_who_comes_later_with_a_short_interval_is_seen_within_a_minute():
    overdue = OverduePages()
    for page in range(10):
        overdue.put(page, 1, 10_000.0)
    assert overdue.take(20_000.0) == 0
    overdue.put(99, 19_990, 2.0)
    assert overdue.take(20_001.0) == 1
    assert overdue.take(20_000.0 + CHOICE_LASTS) == 99
    assert len(overdue) == 8 and {overdue.take(20_100.0) for _ in range(8)} == set(range(2, 10))


def test_every_second_page_is_one_whose_change_is_known():
    overdue = OverduePages()
    for page in range(4):
        overdue.put(page, 1, 10.0 + page)
        overdue.put(100 + page, HASTE, 3600.0)
    overdue.put(104, HASTE, 1.0)
    assert [overdue.take(1000.0) for _ in range(9)] == [100, 0, 101, 1, 102, 2, 103, 3, 104]


def test_numbers_beyond_all_times_are_kept_in_bounds():
    overdue = OverduePages()
    overdue.put(7, -5, math.inf)
    overdue.put(8, 1 << 40, 1e300)
    assert {overdue.take(1e9), overdue.take(1e9)} == {7, 8}
