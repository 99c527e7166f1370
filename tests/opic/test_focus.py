"""Classes at the virtual page: what is paid is what is held, in proportion to the weights; cash survives a move."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import UNIT, VirtualPage
from xyro.opic.focus import CLASSES, EQUAL, FocusedPage, Terms, weights_of

WEIGHTS = st.lists(st.integers(0, 12), min_size=CLASSES, max_size=CLASSES).filter(any)


def padded(*weights):
    return (*weights, *[weights[0]] * (CLASSES - len(weights)))


# Weights


def test_weights_are_in_lowest_terms_and_unread_pages_stand_beside_read_ones():
    assert weights_of([1.0, 5.0], 1.0) == padded(1, 1, 5, 5)
    assert weights_of([1.0, 0.0, 2.5], 3.0)[:6] == (2, 6, 0, 0, 5, 15)
    assert weights_of([0.0, 1.0], 1.0)[:4] == (0, 0, 1, 1) and weights_of([0.0, 1.0], 1.0)[4:] == (0,) * 12


@pytest.mark.parametrize("shares", [[1.0], [3.0] * 8, [0.0], [0.0] * 3])
def test_shares_that_make_no_difference_are_equal(shares):
    assert weights_of(shares, 1.0) == EQUAL
    assert not Terms(weights=weights_of(shares, 1.0)).by_class


@pytest.mark.parametrize(("shares", "unread"), [([], 1.0), ([1.0] * 9, 1.0), ([-1.0], 1.0), ([1.0], -1.0)])
def test_shares_of_no_sense_are_refused(shares, unread):
    with pytest.raises(ValueError):
        weights_of(shares, unread)


# Payouts


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 10**8)), max_size=20))
def test_equal_weights_pay_as_the_plain_virtual_page(steps):
    plain, focused = VirtualPage(), FocusedPage()
    for pages, units in steps:
        for page in (plain, focused):
            page.receive(units)
            page.pay(pages)
        assert focused.dump() == plain.dump()


@given(
    WEIGHTS,
    st.lists(st.integers(0, 30), min_size=CLASSES, max_size=CLASSES).filter(any),
    st.lists(st.integers(0, 10**7)),
)
def test_payouts_follow_the_weights_and_lose_nothing(weights, counts, incomes):
    page, known = FocusedPage(weights), sum(counts)
    page.recount(np.repeat(np.arange(CLASSES), counts))
    for units in incomes:
        page.deposit(units)
        before = page.scalar
        assert page.settle(known) == page.scalar - before == page.scalars[0] - before
    paid = int((page.scalars * np.array(counts)).sum())
    assert paid + page.balance == sum(incomes)
    total = page.weighted(known)
    if not total:  # nobody is to be paid, so all are
        weights, total = [1] * CLASSES, known
    level = Fraction(sum(incomes), total)
    for weight, scalar in zip(weights, page.scalars.tolist(), strict=True):
        assert weight * (level - 2) - 1 <= scalar <= weight * level
    assert page.account <= known + total


def test_small_payouts_keep_the_proportion():
    """A unit a page at a time, weights 3 : 7: no class loses its fractions."""
    page = FocusedPage(padded(3, 7))
    page.recount(np.array([0, 1]))
    for _ in range(10_000):
        page.deposit(1)
        page.settle(2)
    assert abs(page.scalars[0] - 3_000) <= 1 and abs(page.scalars[1] - 7_000) <= 2


def test_while_nobody_is_to_be_paid_all_are_and_then_only_the_focus():
    page = FocusedPage(padded(0, 0, 1))
    page.deposit(1000)
    assert page.weighted(4) == 0 and page.settle(4) == 250
    keys = page.joined(np.array([2]))
    page.deposit(500)
    assert page.settle(5) == 0 and (keys + page.scalars[2]).tolist() == [500] and page.balance == 0


def test_an_uneven_account_waits_until_it_reaches_a_unit():
    page = FocusedPage(padded(1, 100))
    page.recount(np.array([1, 1]))
    page.deposit(1)
    assert page.settle(3) == 0 and page.balance == 1
    assert page.settle(0) == 0, "no pages at all"


# Moves

moves = st.lists(
    st.tuples(
        st.integers(0, 8),  # pages born
        st.lists(st.tuples(st.integers(0, 99), st.integers(0, CLASSES - 1)), max_size=6),  # page, its class from now on
        st.integers(0, 99),  # who spends all to the virtual page
    ),
    max_size=25,
)


@given(WEIGHTS, moves)
def test_cash_is_conserved_under_births_moves_and_payouts(weights, steps):
    page = FocusedPage(weights)
    keys, classes = np.empty(0, np.int64), np.empty(0, np.int64)
    for turn, (born, changes, spender) in enumerate(steps):
        new = (np.arange(born) * 7 + turn) % CLASSES
        keys, classes = np.concatenate((keys, page.joined(new))), np.concatenate((classes, new))
        page.mint(born)
        n = keys.size
        if not n:
            continue
        cash = keys + page.scalars[classes]
        assert (cash >= 0).all() and int(cash.sum()) + page.balance == UNIT * n
        goals = {number % n: to for number, to in changes}
        who, to = np.array(list(goals), np.int64), np.array(list(goals.values()), np.int64)
        keys[who] += page.moved(classes[who], to)
        classes[who] = to
        assert (keys + page.scalars[classes] == cash).all(), "a move leaves cash alone"
        assert page.counts[1:] == np.bincount(classes, minlength=CLASSES)[1:].tolist()
        page.receive(int(cash[spender % n]))
        keys[spender % n] -= cash[spender % n]
        page.pay(n)
    assert int((keys + page.scalars[classes]).sum()) + page.balance == UNIT * keys.size


parts_of = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, CLASSES - 1), st.integers(0, 10**7))


@given(st.lists(parts_of, max_size=30), WEIGHTS)
def test_partitions_share_by_weighted_pages_to_the_unit(steps, weights):
    parts, classes = [FocusedPage(weights) for _ in range(4)], [np.empty(0, np.int64) for _ in range(4)]
    keys = [np.empty(0, np.int64) for _ in range(4)]
    for where, born, kind, spent in steps:
        new = np.full(born, kind)
        keys[where] = np.concatenate((keys[where], parts[where].joined(new)))
        classes[where] = np.concatenate((classes[where], new))
        parts[where].mint(born)
        held = keys[where] + parts[where].scalars[classes[where]]
        if held.size:
            paying = min(spent, int(held[0]))
            keys[where][0] -= paying
            parts[where].receive(paying)
        for part in parts[1:]:
            parts[0].receive(part.take())
        known = [key.size for key in keys]
        counts = [part.weighted(n) for part, n in zip(parts, known, strict=True)]
        for q, units in enumerate(parts[0].split(counts if any(counts) else known)):
            parts[q].deposit(units)
            parts[q].settle(known[q])
        cash = sum(int((k + p.scalars[c]).sum()) for k, p, c in zip(keys, parts, classes, strict=True))
        assert cash + sum(part.balance for part in parts) == UNIT * sum(known)


# State


@given(WEIGHTS, st.lists(st.integers(0, 10**6), max_size=8))
def test_what_is_dumped_is_restored(weights, incomes):
    page = FocusedPage(weights)
    classes = np.arange(40) % CLASSES
    page.recount(classes)
    for units in incomes:
        page.receive(units)
        page.pay(40)
    again = FocusedPage.restore(page.dump(), weights)
    again.recount(classes)
    for one in (page, again):
        one.deposit(12_345)
        one.settle(40)
    assert again.dump() == page.dump() and again.scalars.tolist() == page.scalars.tolist()


def test_a_plain_virtual_page_becomes_a_focused_one_and_back():
    plain = VirtualPage(pot=5, account=6, scalar=700)
    focused = FocusedPage.over(plain, padded(1, 1, 4))
    assert (focused.balance, focused.scalar, focused.scalars[0]) == (11, 700, 700)
    assert FocusedPage.restore(plain.dump(), EQUAL).dump() == plain.dump()


def test_other_weights_on_a_resume_keep_every_unit():
    page = FocusedPage(padded(3, 7))
    page.recount(np.array([0, 1, 1]))
    page.deposit(1001)
    page.settle(3)
    again = FocusedPage.restore(page.dump(), padded(2, 9))
    again.recount(np.array([0, 1, 1]))
    paid = page.scalars[:2] @ [1, 2]
    assert again.balance + paid == 1001 and again.rests == [0] * CLASSES
    again.deposit(10**6)
    again.settle(3)
    assert again.balance + again.scalars[:2] @ [1, 2] == 1001 + 10**6


@pytest.mark.parametrize("weights", [(1,) * 15, (0,) * 16, (-1, *[1] * 15)])
def test_weights_of_no_sense_are_refused(weights):
    with pytest.raises(ValueError):
        FocusedPage(weights)
