"""Numbers of many pages, a part at a time, are those of all at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic import page_parts as module
from xyro.opic.page_parts import Mass, RunningMass, greatest, in_parts, parts


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "PART", 8)
    monkeypatch.setattr(module, "TURN_PART", 4)


@given(st.lists(st.one_of(st.integers(0, 5), st.just(float("nan"))), max_size=60), st.integers(0, 70))
def test_the_greatest_are_those_of_a_stable_sort(values, wanted):
    array = np.array(values, float)
    pages, best = greatest(lambda part: array[part], len(array), wanted)
    expected = sorted((page for page in range(len(array)) if not np.isnan(array[page])), key=lambda page: -array[page])
    assert pages.tolist() == expected[:wanted] and best.tolist() == array[expected[:wanted]].tolist()


def test_parts_cover_everything_once():
    assert [(part.start, part.stop) for part in parts(7, 3)] == [(0, 3), (3, 6), (6, 7)] and not list(parts(0))
    assert in_parts(lambda part: np.arange(part.start, part.stop) / 2, 100_000)[-1] == 49_999.5


def test_the_mass_is_exact_while_nothing_changes_and_a_round_old_at_most():
    values = np.arange(30.0)
    measured = []

    def measure(part):
        measured.append(part.stop - part.start)
        return Mass(values[part].sum(), values[part].sum() + 1, float((values[part] > 0).sum()))

    mass = RunningMass(measure)
    assert mass.total(8).own == 28.0, "few pages are measured each time"
    assert mass.total(30).own == values.sum() and max(measured) == 8
    measured.clear()
    values += 1.0
    for _ in range(8):
        mass.step(30)
        assert mass.total(30).own <= values.sum()
    assert mass.total(30).own == values.sum() and measured == [4, 4, 4, 4, 4, 4, 4, 2], "nothing but a part a step"
    again = RunningMass(measure)
    again.load(mass.dump())
    measured.clear()
    assert again.total(30).own == values.sum() and not measured
    again.step(30)
    assert len(measured) == 1


def test_a_round_ends_with_the_last_page_also_while_pages_become_known():
    mass = RunningMass(lambda part: Mass(part.stop - part.start, 0.0, 0.0))
    stored = [mass.step(count) for count in (9, 10, 13, 14, 14)]
    assert stored == [True, False, True, True, False] and mass.total(14).own == 14


def test_a_look_after_growth_by_several_parts_a_turn_measures_nothing():
    """10 million pages took 140 ms of the event loop at the first look after a restart."""
    measured = []

    def measure(part):
        measured.append(part)
        return Mass(part.stop - part.start, 0.0, 0.0)

    mass, dump = RunningMass(measure), [0]
    for count in range(12, 1_000, 12):
        measured.clear()
        dump = mass.dump() if mass.step(count) else dump
        assert len(measured) <= 4, "those that are new, and one"
    again = RunningMass(measure)
    for found in (mass, again):
        again.load(dump)
        measured.clear()
        assert found.total(count).own == count and not measured
