"""What lateness costs: nothing before a deadline, gamma an hour and page after it, in the unit of missed changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.awaited_pages import AwaitedPages
from xyro.refresh.lateness import HOUR, ON_TIME, Late, cost, late
from xyro.refresh.publications import Publication, Publications

TIMES = st.lists(st.floats(0, 1e6), max_size=20)


@given(TIMES, st.floats(0, 1e6))
def test_only_what_is_past_counts_and_by_the_hour(deadlines, now):
    found = late(deadlines, now)
    assert found.pages == sum(deadline < now for deadline in deadlines)
    assert found.hours * HOUR == pytest.approx(sum(max(now - deadline, 0.0) for deadline in deadlines), abs=1e-6)
    assert late(deadlines, 0.0) == ON_TIME
    more = late(deadlines, now + HOUR)
    assert more.hours >= found.hours + found.pages - 1e-6, "each late page costs one more an hour"


@given(TIMES, TIMES, st.floats(0, 1e6))
def test_partitions_add_up(one, other, now):
    both = late(one, now) + late(other, now)
    assert both.pages == late([*one, *other], now).pages
    assert both.hours == pytest.approx(late([*one, *other], now).hours)


def test_an_hour_late_costs_gamma_missed_changes_of_a_page():
    found = cost(0.5, 200, 3.0, Late(2, 4.0), Late(1, 10.0))
    assert found == (0.5, pytest.approx(3.0 * 4 / 200), pytest.approx(3.0 * 10 / 200))
    assert found.total == pytest.approx(0.5 + 3.0 * 14 / 200)
    assert cost(0.5, 200, 0.0, Late(2, 4.0), Late(1, 10.0)).total == 0.5
    assert cost(0.0, 0, 1.0, Late(1, 1.0), ON_TIME).total == 1.0


def test_publications_and_awaited_pages_tell_the_lateness_of_now():
    publications = Publications()
    publications.accept(Publication(1, "h", "changed", 0.0, HOUR))
    publications.accept(Publication(2, "h", "changed", 0.0, HOUR, ordered=False))
    assert publications.overdue(3 * HOUR) == (1, 2.0), "a claim that nobody trusts is no promise"
    assert publications.deadline(1) == HOUR and publications.deadline(2) == publications.deadline(3) == 0.0
    awaited = AwaitedPages()
    awaited.promise([5, 6], HOUR)
    assert awaited.deadline(5) == HOUR and awaited.late(3 * HOUR) == ON_TIME, "the notice will say which were missed"
    awaited.miss([5], HOUR)
    assert awaited.late(3 * HOUR) == (1, 2.0) and awaited.deadline(5) == HOUR
    awaited.read(5, 4 * HOUR)
    awaited.read(6, 4 * HOUR)
    assert awaited.late(5 * HOUR) == ON_TIME and not awaited.deadline(5) and not awaited.deadline(6)
    assert awaited.lateness == 3 * HOUR
