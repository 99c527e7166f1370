"""Cash over links, told from the key of a page and the scalar at its birth."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import BIRTHS_A_ROW, GRAIN, UNIT, Births, VirtualPage


def table(*entries):
    births = Births()
    for first, *scalars in entries:
        births.note(first, np.array(scalars))
    return births


def reloaded(births, stored):
    stored.update(births.changes())
    return Births.load([stored[chunk] for chunk in sorted(stored)])


def test_a_page_has_the_scalar_of_the_last_entry_before_it():
    births = table((0, 0), (10, 1000), (12, 5000))
    assert births.scalars(np.array([0, 9, 10, 11, 12, 99])).tolist() == [0, 0, 1000, 1000, 5000, 5000]
    assert births.scalars(np.array([11])).tolist() == [1000] and births.scalars(np.empty(0, np.int64)).tolist() == []


def test_the_table_grows_by_a_grain_and_not_by_a_page():
    births = table(*((page, page) for page in range(0, 20 * GRAIN, 4)))
    assert len(births) == 20
    pages = np.arange(0, 20 * GRAIN, 4)
    assert (pages - births.scalars(pages)).min() >= 0 and (pages - births.scalars(pages)).max() < GRAIN


def test_without_entries_nothing_was_paid():
    assert Births().scalars(np.arange(3)).tolist() == [0, 0, 0]


def test_classes_have_scalars_of_their_own_and_begin_with_what_all_were_paid():
    births = table((0, 0), (5, 3000))
    births.note(8, np.array([10_000, 0, 40_000]))
    pages, classes = np.array([0, 5, 5, 8, 9]), np.array([0, 0, 1, 2, 1])
    # a page of 5 that moved from class 0 to 1 when they came had its key raised by 10,000 - 0
    assert births.scalars(pages, classes).tolist() == [0, 3000, 3000 - 10_000, 40_000, 0]
    births.reshape(np.array([12_000]))
    assert births.scalars(np.array([5, 8])).tolist() == [3000, 10_000]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3 * GRAIN)), max_size=3 * BIRTHS_A_ROW))
def test_what_is_stored_is_found_again_whenever_it_is_loaded(steps):
    births, stored, first, scalar = Births(), {}, 0, 0
    for number, (pages, paid) in enumerate(steps):
        births.note(first, np.array([scalar]))
        first, scalar = first + pages, scalar + paid
        if number % 50 == 0:
            births = reloaded(births, stored)
    pages = np.arange(first)
    assert reloaded(births, stored).scalars(pages).tolist() == births.scalars(pages).tolist()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(0, UNIT)), min_size=1, max_size=60), st.data())
def test_key_and_scalar_at_birth_are_the_cash_of_links(steps, data):
    """Held against a sum kept page by page: pages are born, paid by all and by links."""
    virtual, births, keys, linked = VirtualPage(), Births(), [], []
    for born, count, units in steps:
        if born:
            births.note(len(keys), np.array([virtual.scalar]))
            keys += [-virtual.scalar] * count
            linked += [0] * count
            virtual.mint(count)
        elif keys:
            page = data.draw(st.integers(0, len(keys) - 1))
            keys[page] += units
            linked[page] += units
        virtual.pay(len(keys))
    found = np.array(keys, np.int64) + births.scalars(np.arange(len(keys)))
    missing = np.array(linked, np.int64) - found
    assert not len(keys) or (missing.min() >= 0 and missing.max() < GRAIN)
