"""Claims, their orders and deadlines: who waits, who is counted late, and that nobody can starve the others."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xyro.refresh.publications import FEW, MOST_WAITING, Publication, Publications, borne_out, hastened


def claim(page, publisher="a", at=0.0, deadline=100.0, **more):
    return Publication(page, publisher, "changed", at, deadline, **more)


def test_the_earliest_deadline_first_and_a_page_past_it_before_all():
    publications = Publications()
    for page, deadline in ((1, 300.0), (2, -5.0), (3, 200.0)):
        publications.accept(claim(page, deadline=deadline))
    assert publications.release(10) == [2, 3, 1]
    assert publications.release(10) == []


def test_a_flood_of_one_publisher_leaves_the_others_their_turns():
    publications = Publications(share=4)
    for page in range(1_000):
        publications.accept(claim(page, "flood", deadline=page))
    publications.accept(claim(5_000, "b"))
    publications.accept(claim(5_001, "c"))
    first = publications.release(100)
    assert set(first) == {0, 1, 2, 3, 5_000, 5_001}
    assert first.index(5_000) < 3 and first.index(5_001) < 3
    assert not publications.waiting
    publications.settled(2, 1.0, True, True, False)
    assert publications.release(100) == [4]


def test_nothing_is_kept_of_a_publisher_whose_claims_are_settled():
    """One of them by the plan, while it waited."""
    publications = Publications(share=1)
    for page in (1, 2):
        publications.accept(claim(page))
    assert publications.release(9) == [1]
    for page in (2, 1):
        publications.settled(page, 1.0, True, True, False)
    assert publications.release(9) == [] and not publications._publishers and not publications._turns
    publications.accept(claim(3))
    assert publications.release(9) == [3]


def test_claims_that_hold_no_more_take_no_room():
    """Its share is out; pages are claimed and read by the plan, and one is claimed with less and less time."""
    publications = Publications(share=1)
    publications.accept(claim(1))
    assert publications.release(9) == [1]
    for step in range(5_000):
        publications.accept(claim(2, at=step, deadline=step + 100.0))
        publications.settled(2, step + 0.5, True, True, False)
        publications.accept(claim(3, at=step, deadline=9_000.0 - step))
    assert len(publications._publishers["a"].waiting) <= 2 * 3 + FEW
    publications.settled(1, 5_000.0, True, True, False)
    assert publications.release(9) == [3] and publications.deadline(3) == 4_001.0


def test_one_publisher_is_bounded():
    publications = Publications()
    assert publications.room("a") == MOST_WAITING
    publications.accept(claim(1))
    assert publications.room("a") == MOST_WAITING - 1 and publications.room("b") == MOST_WAITING


def test_reads_in_time_and_late_are_counted_with_their_cost():
    publications = Publications()
    for page in (1, 2, 3):
        publications.accept(claim(page, at=10.0, deadline=70.0))
    publications.release(9)
    assert publications.overdue(100.0) == (3, pytest.approx(90.0 / 3600))
    in_time = publications.settled(1, 40.0, True, True, False)
    late = publications.settled(2, 100.0, True, False, False)
    assert (in_time.delay, in_time.late) == (30.0, 0.0)
    assert (late.delay, late.late) == (90.0, 30.0)
    assert publications.settled(3, 100.0, False, None, True) is not None
    counts = publications.counts
    assert (counts.in_time, counts.late, counts.lost, counts.lateness) == (1, 1, 1, 30.0)
    assert (counts.true, counts.false, len(publications)) == (1, 1, 0)
    assert counts.delays.quantile(0.5) == pytest.approx(30.0, rel=0.1)
    assert Publications.dump(publications)["late"] == 1


def test_a_failure_for_now_keeps_it_and_frees_the_publishers_place():
    publications = Publications(share=1)
    publications.accept(claim(1, deadline=1.0))
    publications.accept(claim(2, deadline=2.0))
    assert publications.release(9) == [1]
    assert publications.settled(1, 5.0, False, None, False) is None
    assert publications.release(9) == [2]
    assert publications.settled(1, 50.0, True, True, False).late == 49.0


def test_a_later_claim_joins_the_earlier_one_with_the_stricter_deadline():
    publications = Publications()
    publications.accept(claim(1, at=0.0, deadline=100.0))
    kept = publications.accept(claim(1, at=50.0, deadline=60.0))
    assert (kept.time, kept.deadline, publications.counts.joined) == (0.0, 60.0, 1)
    assert publications.release(9) == [1]
    publications.accept(claim(1, at=55.0, deadline=20.0))
    assert publications.release(9) == []


def test_a_hastened_one_is_no_order_until_somebody_trusted_says_so():
    publications = Publications()
    publications.accept(claim(1, ordered=False))
    assert publications.release(9) == [] and publications.overdue(1e9) == (0, 0)
    publications.accept(claim(1, deadline=30.0))
    assert publications.release(9) == [1]


def test_counters_survive_a_restart():
    publications = Publications()
    publications.accept(claim(1, at=0.0, deadline=5.0))
    publications.release(1)
    publications.settled(1, 60.0, True, False, False)
    again = Publications()
    again.load(publications.dump())
    assert again.dump() == publications.dump()
    assert again.counts.delays.report() == publications.counts.delays.report()


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.floats(0, 1e6), st.booleans()), max_size=60),
    st.integers(1, 5),
)
@example([(0, "b", 1.0, True), (0, "a", 0.0, True), (0, "b", 0.0, True), (1, "a", 0.0, True)], 1)
def test_every_ordered_claim_is_released_once_and_shares_hold(said, share):
    publications = Publications(share=share)
    wanted = set()
    for page, publisher, deadline, ordered in said:
        number = page * 3 + "abc".index(publisher)
        publications.accept(claim(number, publisher, deadline=deadline, ordered=ordered))
        wanted |= {number} if ordered else set()
    seen = []
    while found := publications.release(7):
        for publisher in range(3):
            assert sum(page % 3 == publisher for page in publications._out) <= share
        seen += found
        for page in found:
            assert publications.settled(page, 0.0, True, None, False) is not None
    assert sorted(seen) == sorted(wanted)


@pytest.mark.parametrize(
    ("claimed", "seen", "changed", "status", "there", "true"),
    [
        ("changed", True, True, 200, True, True),
        ("changed", True, False, 304, True, False),
        ("changed", True, None, 200, True, None),
        ("changed", True, None, 404, True, True),
        ("changed", True, None, 404, False, False),
        ("changed", True, None, 200, False, True),
        ("changed", False, None, 200, True, None),
        ("changed", False, None, 404, True, False),
        ("new", False, None, 200, True, True),
        ("new", False, None, 404, True, False),
        ("new", True, False, 304, True, False),
    ],
)
def test_what_a_read_says_of_a_claim(claimed, seen, changed, status, there, true):
    assert borne_out(claimed, seen, changed, status, there) is true


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(-1, 2))
@example(67108865.7094691, 1.3581905290484428, 0.0)
def test_hastening_never_reads_later_nor_before_now(due, now, trust):
    at = hastened(due, now, trust)
    assert now <= at <= max(due, now)


def test_a_change_that_the_last_read_found_itself_is_no_lie():
    assert borne_out("changed", True, False, 200, True, news=True) is None
    assert borne_out("changed", True, True, 200, True, news=True) is True
    assert borne_out("changed", True, False, 200, True) is False


def test_a_read_that_had_begun_before_is_not_the_answer():
    publications = Publications()
    publications.accept(claim(1, at=100.0, deadline=160.0))
    assert publications.release(9) == [1]
    publications.accept(claim(1, at=130.0, deadline=190.0))  # said again while its order is out
    first = publications.settled(1, 135.0, True, False, True, begun=120.0)
    assert first is not None and (first.delay, publications.counts.false, 1 in publications.pages) == (35.0, 1, True)
    assert publications.release(9) == [1]
    said = publications.pages[1]
    assert (said.time, said.deadline) == (130.0, 190.0), "as long as it had at first, from when it was said last"
    outcome = publications.settled(1, 140.0, True, True, True, begun=130.0)
    assert outcome is not None and outcome.delay == 10.0 and len(publications) == 0
