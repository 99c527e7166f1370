"""The purse: what is spent is what arrives; the sweep; the clock; state to and fro."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.frontier.ledger import Purse
from xyro.metadata.hot import Columns
from xyro.metadata.states import COLUMNS, DANGLING, State
from xyro.opic.cash import UNIT
from xyro.opic.importance import TICKS

FEW = 1 << 12


def purse_of(n=0, state=State.READ, target=0.1, window=16.0):
    columns = Columns(COLUMNS, FEW)
    purse = Purse(columns, 0, 0.85, window, target)
    born(purse, n, state)
    return purse


def born(purse, count, state=State.READ, foreign=False):
    """`count` new pages, as a commit group makes them."""
    first = purse.columns.grow(count)
    purse.columns["state"][first : purse.columns.n] = State.FOREIGN if foreign else state
    purse.mint(first, np.full(count, foreign))
    purse.spend([], [], first, 1)
    purse.virtual.pay(purse.known)
    return np.arange(first, purse.columns.n)


def total(purse):
    """Cash of all pages of this partition, the virtual page, and what lies on FOREIGN entries."""
    n = purse.columns.n
    foreign = purse.columns["state"][:n] == State.FOREIGN
    own = purse.columns["cash"][:n][~foreign].sum() + purse.virtual.scalar * int((~foreign).sum())
    return int(own) + int(purse.columns["cash"][:n][foreign].sum()) + purse.virtual.held


GROUPS = st.lists(
    st.tuples(
        st.integers(0, 6),  # pages born
        st.lists(st.tuples(st.integers(0, 99), st.lists(st.integers(0, 99), max_size=6, unique=True)), max_size=5),
    ),
    max_size=20,
)


@settings(max_examples=80)
@given(GROUPS)
def test_spending_moves_cash_and_makes_none(groups):
    purse = purse_of(3)
    for turn, (count, spends) in enumerate(groups):
        first = purse.columns.n
        purse.columns.grow(count)
        foreign = np.arange(count) % 3 == 2
        purse.columns["state"][first : first + count] = np.where(foreign, State.FOREIGN, State.READ)
        purse.mint(first, foreign)
        n = purse.columns.n
        own = np.flatnonzero(purse.columns["state"][:n] != State.FOREIGN)
        pages = list(dict.fromkeys(int(own[page % len(own)]) for page, _ in spends))
        links = [np.unique(np.array(children, np.int64) % n) for _, children in spends][: len(pages)]
        held = int(purse.effective(np.array(pages, np.int64)).sum())
        spent = purse.spent
        purse.spend(pages, links, first, turn)
        assert purse.spent - spent == held
        purse.virtual.pay(purse.known)
        assert total(purse) == UNIT * purse.known
        assert (purse.effective(own) >= 0).all()
        assert (purse.columns["cash"][:n][purse.columns["state"][:n] == State.FOREIGN] >= 0).all()


def test_new_pages_hold_nothing_and_bring_a_pages_worth():
    purse = purse_of(10)
    assert purse.virtual.scalar == UNIT, "the pot was paid to all alike"
    assert purse.effective(slice(0, 10)).tolist() == [UNIT] * 10
    new = born(purse, 1)
    assert (purse.known, total(purse)) == (11, 11 * UNIT)
    assert np.signbit(purse.columns["flow"][new]).all(), "never measured"


def test_foreign_entries_are_not_known_pages():
    purse = purse_of(4)
    entries = born(purse, 3, foreign=True)
    assert (purse.known, purse.foreign, total(purse)) == (4, 3, 4 * UNIT)
    assert not purse.columns["cash"][entries].any()


def test_pages_without_links_pay_the_virtual_page():
    purse = purse_of(2)
    purse.spend([0, 1], [np.empty(0, np.uint32)] * 2, 2, 1)
    assert purse.virtual.pot == 2 * UNIT and not purse.effective(slice(0, 2)).any()


def test_a_replay_draws_the_same_remainders():
    one, two, other = purse_of(8), purse_of(8), purse_of(8)
    links = [np.array([1, 2, 3]), np.array([0, 4, 5, 6, 7])]
    for purse, turn in ((one, 5), (two, 5), (other, 6)):
        purse.spend([0, 1], links, 8, turn)
    assert one.columns["cash"][:8].tolist() == two.columns["cash"][:8].tolist() != other.columns["cash"][:8].tolist()


# The clock


def test_a_turnover_is_all_cash_spent_once():
    purse = purse_of(5)
    for page in range(5):
        purse.columns["cash"][page] = UNIT - purse.virtual.scalar
    purse.spend(range(5), [np.empty(0, np.uint32)] * 5, 5, 1)
    assert purse.clock.ticks == TICKS
    assert (purse.columns["clock"][:5] == 0).all(), "spent before the clock went on"


def test_what_others_spend_moves_the_clock_once():
    purse = purse_of(5)
    purse.heard(5 * UNIT, 5)
    assert purse.known_everywhere == 10 and purse.clock.ticks == TICKS // 2
    purse.heard(5 * UNIT, 5)
    purse.heard(3 * UNIT, 4)
    assert purse.clock.ticks == TICKS // 2 and purse.known_everywhere == 10, "old news are no news"


# The sweep


def rich_purse(states, cash):
    """Pages of these states with so much cash above the others."""
    purse = purse_of(0)
    purse.columns.grow(len(states))
    purse.columns["state"][: len(states)] = states
    purse.columns["cash"][: len(cash)] = cash
    purse.select.theta = 100.0
    return purse


def swept(purse, free):
    """One whole turn of the column."""
    read, dangling = [], []
    for _ in range(100):
        found = purse.rich(free)
        read += found[0].tolist()
        dangling += found[1].tolist()
        if purse.select.pointer == 0:
            break
    return read, dangling


def test_the_sweep_finds_rich_pages_that_can_spend_by_themselves():
    states = [State.READ, State.UNREAD, State.ERROR, *DANGLING, State.FOREIGN, State.READ]
    purse = rich_purse(states, [1000] * (len(states) - 1) + [10])
    read, dangling = swept(purse, 5)
    assert read == [0]
    assert dangling == [i for i, state in enumerate(states) if state in DANGLING]


def test_pages_whose_report_may_be_in_this_group_are_left_alone():
    purse = rich_purse([State.READ, State.READ, State.FAILED], [1000] * 3)
    read, dangling = purse.rich(5, np.array([0, 2]))
    assert (read.tolist(), dangling.tolist()) == ([1], [])


@pytest.mark.parametrize("free", [0, 1, 3])
def test_no_more_read_pages_than_are_free_and_none_is_passed_over(free):
    purse = rich_purse([State.READ, State.FAILED] * 40, [1000] * 80)
    purse.select.target = 1.0
    met = []
    for _ in range(300):
        read, dangling = purse.rich(free)
        assert len(read) <= free
        met += [*read.tolist(), *dangling.tolist()]
        purse.columns["cash"][[*read, *dangling]] = 0
        purse.select.theta = 100.0
    assert len(met) == len(set(met))
    assert sorted(met) == list(range(0 if free else 1, 80, 1 if free else 2)), "dangling ones cost no share of reads"


def test_an_empty_partition_can_be_swept():
    purse = purse_of(0)
    assert [found.tolist() for found in purse.rich(5)] == [[], []]


# State


def test_what_is_dumped_is_loaded():
    purse = purse_of(6)
    born(purse, 2, foreign=True)
    purse.spend([0, 1], [np.array([2, 3]), np.array([7])], 8, 3)
    purse.heard(12345, 6)
    purse.rich(2)
    purse.window.grew(8, purse.clock.ticks)
    again = Purse(purse.columns, 0, 0.85, 16.0, 0.1)
    again.load(purse.dump())
    assert again.dump() == purse.dump()
    assert again.importance(slice(0, 6)).tolist() == purse.importance(slice(0, 6)).tolist()


def test_the_settings_of_now_beat_those_of_the_dump():
    old = purse_of(3, window=16.0, target=0.1)
    new = Purse(old.columns, 0, 0.85, 2.0, 0.5)
    new.load(old.dump())
    assert (new.select.target, new.window.least, new.window.most) == (0.5, 2.0, 2.0)
