"""The ledger: what is spent is what arrives; the sweep; the clock; state to and fro."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.frontier.ledger import PLAIN, Ledger, Spending
from xyro.metadata.columns import Columns
from xyro.metadata.states import COLUMNS, DANGLING, OPTIONAL, State
from xyro.opic.cash import UNIT
from xyro.opic.contest import LADDER
from xyro.opic.focus import Terms, weights_of
from xyro.opic.importance import TICKS
from xyro.opic.sweep import Sweep
from xyro.wire.ids import LocalPage

FEW = 1 << 12


def ledger_of(n=0, state=State.READ, target=0.1, window=16.0, terms=PLAIN):
    columns = Columns(COLUMNS, FEW, optional=OPTIONAL)
    ledger = Ledger(columns, 0, 0.85, window, target, terms)
    born(ledger, n, state)
    return ledger


def born(ledger, count, state=State.READ, foreign=False):
    """`count` new pages, as a commit group makes them."""
    first = ledger.columns.grow(count)
    ledger.columns["state"][first : ledger.columns.n] = State.FOREIGN if foreign else state
    ledger.mint(first, np.full(count, foreign))
    ledger.spend([], [], first, 1)
    ledger.virtual.pay(ledger.known_pages)
    return np.arange(first, ledger.columns.n)


def total(ledger):
    """Cash of all pages of this partition, the virtual page, and what lies on FOREIGN entries."""
    n = ledger.columns.n
    foreign = ledger.columns["state"][:n] == State.FOREIGN
    own = ledger.columns["cash"][:n][~foreign].sum() + ledger.virtual.scalar * int((~foreign).sum())
    return int(own) + int(ledger.columns["cash"][:n][foreign].sum()) + ledger.virtual.balance


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
    ledger = ledger_of(3)
    for turn, (count, spends) in enumerate(groups):
        first = ledger.columns.n
        ledger.columns.grow(count)
        foreign = np.arange(count) % 3 == 2
        ledger.columns["state"][first : first + count] = np.where(foreign, State.FOREIGN, State.READ)
        ledger.mint(first, foreign)
        n = ledger.columns.n
        own = np.flatnonzero(ledger.columns["state"][:n] != State.FOREIGN)
        pages = list(dict.fromkeys(int(own[page % len(own)]) for page, _ in spends))
        links = [np.unique(np.array(children, np.int64) % n) for _, children in spends][: len(pages)]
        held = int(ledger.effective(np.array(pages, np.int64)).sum())
        spent = ledger.spent
        ledger.spend(pages, links, first, turn)
        assert ledger.spent - spent == held
        ledger.virtual.pay(ledger.known_pages)
        assert total(ledger) == UNIT * ledger.known_pages
        assert (ledger.effective(own) >= 0).all()
        assert (ledger.columns["cash"][:n][ledger.columns["state"][:n] == State.FOREIGN] >= 0).all()


def test_new_pages_hold_nothing_and_bring_a_pages_worth():
    ledger = ledger_of(10)
    assert ledger.virtual.scalar == UNIT, "the pot was paid to all alike"
    assert ledger.effective(slice(0, 10)).tolist() == [UNIT] * 10
    new = born(ledger, 1)
    assert (ledger.known_pages, total(ledger)) == (11, 11 * UNIT)
    assert np.signbit(ledger.columns["flow"][new]).all(), "never measured"


def test_foreign_entries_are_not_known_pages():
    ledger = ledger_of(4)
    entries = born(ledger, 3, foreign=True)
    assert (ledger.known_pages, ledger.foreign, total(ledger)) == (4, 3, 4 * UNIT)
    assert not ledger.columns["cash"][entries].any()


def test_pages_without_links_pay_the_virtual_page():
    ledger = ledger_of(2)
    ledger.spend([0, 1], [np.empty(0, np.uint32)] * 2, 2, 1)
    assert ledger.virtual.pot == 2 * UNIT and not ledger.effective(slice(0, 2)).any()


def test_dangling_pages_beside_others_spend_as_pages_without_links_do():
    one, other = ledger_of(8), ledger_of(8)
    links, none = [np.array([1, 2, 3], np.uint32)], np.empty(0, np.uint32)
    one.spend([0, 5, 6], [*links, none, none], 8, 1)
    other.spend([0], links, 8, 1, np.array([5, 6]))
    assert other.columns["cash"][:8].tolist() == one.columns["cash"][:8].tolist()
    assert (other.virtual.pot, other.spends, other.clock.ticks) == (one.virtual.pot, 3, one.clock.ticks)
    assert other.virtual.pot >= 2 * UNIT


def test_a_dangling_page_whose_load_ends_spends_once():
    spending = Spending()
    spending.dangling = np.array([3, 5, 7])
    spending.over_urls(LocalPage(1), ["http://a/"])
    spending.loads = True
    spending.over_urls(LocalPage(5), ["http://b/"])
    spending.over_urls(LocalPage(1), ["http://c/"])
    assert (spending.pages, spending.dangling.tolist()) == ([1, 5], [3, 7])


def test_a_replay_draws_the_same_remainders():
    one, two, other = ledger_of(8), ledger_of(8), ledger_of(8)
    links = [np.array([1, 2, 3]), np.array([0, 4, 5, 6, 7])]
    for ledger, turn in ((one, 5), (two, 5), (other, 6)):
        ledger.spend([0, 1], links, 8, turn)
    assert one.columns["cash"][:8].tolist() == two.columns["cash"][:8].tolist() != other.columns["cash"][:8].tolist()


# The clock


def test_a_turnover_is_all_cash_spent_once():
    ledger = ledger_of(5)
    for page in range(5):
        ledger.columns["cash"][page] = UNIT - ledger.virtual.scalar
    ledger.spend(range(5), [np.empty(0, np.uint32)] * 5, 5, 1)
    assert ledger.clock.ticks == TICKS
    assert (ledger.columns["clock"][:5] == 0).all(), "spent before the clock went on"


def test_what_others_spend_moves_the_clock_once():
    ledger = ledger_of(5)
    ledger.count_elsewhere(5 * UNIT, 5)
    assert ledger.known_everywhere == 10 and ledger.clock.ticks == TICKS // 2
    ledger.count_elsewhere(5 * UNIT, 5)
    ledger.count_elsewhere(3 * UNIT, 4)
    assert ledger.clock.ticks == TICKS // 2 and ledger.known_everywhere == 10, "old news are no news"


# The sweep


def rich_ledger(states, cash):
    """Pages of these states with so much cash above the others."""
    ledger = ledger_of(0)
    ledger.columns.grow(len(states))
    ledger.columns["state"][: len(states)] = states
    ledger.columns["cash"][: len(cash)] = cash
    ledger.sweep.theta = 100.0
    return ledger


def swept(ledger, free):
    """One whole turn of the column."""
    read, dangling = [], []
    for _ in range(100):
        found = ledger.rich(free)
        read += found[0].tolist()
        dangling += found[1].tolist()
        if ledger.sweep.pointer == 0:
            break
    return read, dangling


def test_the_sweep_finds_rich_pages_that_can_spend_by_themselves():
    states = [State.READ, State.UNREAD, State.ERROR, *DANGLING, State.FOREIGN, State.READ]
    ledger = rich_ledger(states, [1000] * (len(states) - 1) + [10])
    read, dangling = swept(ledger, 5)
    assert read == [0]
    assert dangling == [i for i, state in enumerate(states) if state in DANGLING]


def test_pages_whose_report_may_be_in_this_group_are_left_alone():
    ledger = rich_ledger([State.READ, State.READ, State.FAILED], [1000] * 3)
    read, dangling = ledger.rich(5, np.array([0, 2]))
    assert (read.tolist(), dangling.tolist()) == ([1], [])


@pytest.mark.parametrize("free", [0, 1, 3])
def test_no_more_read_pages_than_are_free_and_none_is_passed_over(free):
    ledger = rich_ledger([State.READ, State.FAILED] * 40, [1000] * 80)
    ledger.sweep.target = 1.0
    met = []
    for _ in range(300):
        read, dangling = ledger.rich(free)
        assert len(read) <= free
        met += [*read.tolist(), *dangling.tolist()]
        ledger.columns["cash"][[*read, *dangling]] = 0
        ledger.sweep.theta = 100.0
    assert len(met) == len(set(met))
    assert sorted(met) == list(range(0 if free else 1, 80, 1 if free else 2)), "dangling ones cost no share of reads"


def test_an_empty_partition_can_be_swept():
    ledger = ledger_of(0)
    assert [found.tolist() for found in ledger.rich(5)] == [[], []]


# State


def test_what_is_dumped_is_loaded():
    ledger = ledger_of(6)
    born(ledger, 2, foreign=True)
    ledger.spend([0, 1], [np.array([2, 3]), np.array([7])], 8, 3)
    ledger.count_elsewhere(12345, 6)
    ledger.rich(2)
    ledger.window.grew(8, ledger.clock.ticks)
    again = Ledger(ledger.columns, 0, 0.85, 16.0, 0.1)
    again.load(ledger.dump())
    assert again.dump() == ledger.dump()
    assert again.importance(slice(0, 6)).tolist() == ledger.importance(slice(0, 6)).tolist()


def test_the_settings_of_now_beat_those_of_the_dump():
    old = ledger_of(3, window=16.0, target=0.1)
    new = Ledger(old.columns, 0, 0.85, 2.0, 0.5)
    new.load(old.dump())
    assert (new.sweep.target, new.window.least, new.window.longest) == (0.5, 2.0, 2.0)


@pytest.mark.parametrize("name", ["sweep", "greedy"])
def test_a_dump_of_when_there_were_other_selectors_is_loaded(name):
    ledger = ledger_of(6)
    ledger.rich(2)
    state = ledger.dump()
    sweep = state.pop("sweep")
    again = Ledger(ledger.columns, 0, 0.85, 16.0, 0.1)
    again.load({**state, "select": {"name": "sweep", **sweep} if name == "sweep" else {"name": name}})
    assert again.dump() == {**state, "sweep": sweep if name == "sweep" else Sweep().dump()}


def test_measures_of_a_history_that_went_leave_the_columns():
    columns = Columns(COLUMNS, FEW, optional=OPTIONAL)
    columns.add("slots", np.dtype((np.float32, (2, 8))))
    Ledger(columns, 0, 0.85, 16.0, 0.1)
    assert "slots" not in columns


# Classes at the virtual page


def test_classes_of_unlike_weight_keep_the_cash_and_are_restored():
    terms = Terms(weights=weights_of([1.0, 5.0], 1.0))
    ledger = ledger_of(40, terms=terms)
    ledger.classify(np.arange(0, 40, 2), np.full(20, 2))
    turns(ledger, graph(40), 60)
    assert int(ledger.effective(slice(0, 40)).sum()) + ledger.virtual.balance == 40 * UNIT
    again = Ledger(ledger.columns, 0, 0.85, 16.0, 0.1, terms)
    again.load(ledger.dump())
    picks = [[found.tolist() for found in one.rich(5)] for one in (ledger, again)]
    assert picks[0] == picks[1] and picks[0][0]


def test_a_virtual_page_that_pays_all_alike_knows_no_classes():
    ledger = ledger_of(4)
    ledger.classify(np.arange(4), np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="all pages alike"):
        ledger.classify(np.arange(4), np.full(4, 2))


# The window T


def graph(n):
    rng = np.random.default_rng(11)
    return [np.unique(rng.integers(0, n // (1 + page % 3), 6)) for page in range(n)]


def turns(ledger, links, count):
    """Commit groups in which the pages that the sweep finds spend."""
    n = ledger.columns.n
    for turn in range(2, 2 + count):
        pages = np.concatenate(ledger.rich(5))
        ledger.spend(pages, [links[page] for page in pages], n, turn)
        ledger.virtual.pay(n)


def test_another_window_on_resume_is_that_of_a_crawl_begun_with_it():
    """Flow is stored, not history x T: nothing is converted."""
    one, other = ledger_of(60, window=2.0), ledger_of(60, window=2.0)
    turns(one, graph(60), 100)
    for name in COLUMNS:
        other.columns[name][:60] = one.columns[name][:60]
    other.load({**one.dump(), "window": {**one.window.dump(), "least": 4.0, "most": 16.0}})
    assert (other.window.least, other.window.longest) == (2.0, 2.0)
    np.testing.assert_array_equal(one.importance(slice(0, 60)), other.importance(slice(0, 60)))


def test_a_window_chosen_by_itself_changes_nothing_stored():
    ledger = ledger_of(60, window="auto")
    turns(ledger, graph(60), 300)
    chosen = ledger.window.longest
    assert 8 <= chosen <= LADDER[-1], "this web stands still"
    flow = ledger.columns["flow"][:60].tolist()
    fixed = Ledger(ledger.columns, 0, 0.85, 2.0, 0.1)
    fixed.load(ledger.dump())
    assert (fixed.window.least, fixed.window.longest) == (2.0, 2.0) and ledger.columns["flow"][:60].tolist() == flow
    again = Ledger(ledger.columns, 0, 0.85, "auto", 0.1)
    again.load(fixed.dump())
    assert again.window.longest == 16.0, "it was not chosen any more: from the beginning"
    again.load(ledger.dump())
    assert again.window.longest == chosen and again.dump() == ledger.dump()


def test_a_web_that_keeps_changing_gets_a_short_window():
    ledger, n = ledger_of(60, window="auto"), 60
    rng = np.random.default_rng(3)
    for turn in range(2, 900):
        if turn % 60 == 2:  # every seven turnovers; a window must foresee two
            pull = rng.pareto(1.0, n) + 0.05
            links = [rng.choice(n, 6, replace=False, p=pull / pull.sum()) for _ in range(n)]
        pages = np.concatenate(ledger.rich(5))
        ledger.spend(pages, [links[page] for page in pages], n, turn)
        ledger.virtual.pay(n)
        ledger.window.grew(n, ledger.clock.ticks)
    assert ledger.clock.ticks > 20 * TICKS and ledger.window.longest <= 4
