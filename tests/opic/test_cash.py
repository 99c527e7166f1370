"""Integer cash: shares conserve to the unit and follow the remainder rule; the virtual page's books always balance."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.opic.cash import LINK, UNIT, Tolls, VirtualPage, credit, seeds_of, shares, teleport

pages = st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 40), st.integers(0, 2**64 - 1)), max_size=30)


def split(cash, degrees, seeds, damping=0.85):
    indptr = np.cumsum([0, *degrees])
    return shares(np.array(cash, np.int64), indptr, np.array(seeds, np.uint64), damping)


def one_by_one(cash, degree, seed, damping):
    """The rule of opic/cash.py in Python's exact integers, one page at a time."""
    if degree == 0:
        return cash, []
    weight = round((1 - damping) * 2**31)
    virtual = cash * weight // 2**31
    each, odd = divmod(cash - virtual, degree)
    amounts = [each] * degree
    for k in range(odd):
        amounts[(seed + k) % degree] += 1
    return virtual, amounts


@given(pages, st.sampled_from([0.0, 0.5, 0.85, 0.999, 1.0]))
def test_shares_are_the_rule_page_by_page(rows, damping):
    cash, degrees, seeds = zip(*rows, strict=True) if rows else ((), (), ())
    virtual, amounts = split(cash, degrees, [s % max(d, 1) for s, d in zip(seeds, degrees, strict=True)], damping)
    expected = [one_by_one(c, d, s % max(d, 1), damping) for c, d, s in rows]
    assert virtual.tolist() == [v for v, _ in expected]
    assert amounts.tolist() == [a for _, row in expected for a in row]


@given(pages)
def test_every_page_spends_exactly_what_it_holds(rows):
    cash, degrees, seeds = zip(*rows, strict=True) if rows else ((), (), ())
    virtual, amounts = split(cash, degrees, seeds)
    ends = np.cumsum([0, *degrees])
    for i, held in enumerate(cash):
        given_away = amounts[ends[i] : ends[i + 1]]
        assert int(virtual[i]) + sum(given_away.tolist()) == held
        assert degrees[i] == 0 or given_away.max() - given_away.min() <= 1


def test_large_seeds_are_reduced_modulo_the_degree():
    assert split([UNIT + 3], [7], [2**64 - 1])[1].tolist() == split([UNIT + 3], [7], [(2**64 - 1) % 7])[1].tolist()


@given(st.integers(0, 2**63 - 1), st.floats(0, 1))
def test_the_virtual_share_is_a_floor_within_the_rational_of_the_damping(cash, damping):
    virtual = int(teleport(np.array([cash]), damping)[0])
    weight = Fraction(round((1 - damping) * 2**31), 2**31)
    assert virtual == int(cash * weight)
    assert abs(weight - (1 - Fraction(damping))) <= Fraction(1, 2**32) + Fraction(1, 2**52)


def test_no_link_is_favoured_over_many_visits():
    visits = np.arange(20_000)
    seeds = seeds_of(np.full(visits.size, 7), visits)
    _, amounts = shares(np.full(visits.size, 3), np.arange(visits.size + 1) * 10, seeds, damping=1.0)
    got = amounts.reshape(-1, 10).sum(axis=0)
    assert got.sum() == 60_000 and abs(got - 6000).max() < 5 * 6000**0.5


def test_seeds_depend_on_page_and_visit_only():
    first = seeds_of(np.array([1, 2, 2**32 + 1]), np.array([0, 0, 5]))
    assert first.tolist() == seeds_of(np.array([1, 2, 2**32 + 1]), np.array([0, 0, 5])).tolist()
    assert len(set(seeds_of(np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100)).tolist())) == 10_000


@pytest.mark.parametrize(
    ("cash", "indptr", "damping"),
    [([-1], [0, 1], 0.85), ([1, 2], [0, 1], 0.85), ([1], [0, 1], 1.1), ([1], [0, 1], -0.1)],
)
def test_bad_input_is_refused(cash, indptr, damping):
    with pytest.raises(ValueError):
        shares(np.array(cash), np.array(indptr), np.zeros(len(cash), np.uint64), damping)


def test_credit_adds_up_repeated_targets():
    keys = np.array([5, -3, 0])
    credit(keys, np.array([0, 2, 0, 0]), np.array([1, 7, 2, 3]))
    assert keys.tolist() == [11, -3, 7]


def test_the_virtual_page_waits_until_it_holds_a_thousandth():
    virtual = VirtualPage()
    virtual.receive(UNIT * 3 - 1)
    assert virtual.pay(3000) == 0 and virtual.balance == UNIT * 3 - 1
    virtual.receive(1)
    assert virtual.pay(3000) == UNIT * 3 // 3000
    assert virtual.balance == UNIT * 3 % 3000 and virtual.scalar == UNIT * 3 // 3000


def test_nobody_is_paid_where_nobody_is():
    virtual = VirtualPage(pot=5)
    assert virtual.pay(0) == 0 and virtual.split([0, 0]) == [0, 0] and virtual.settle(0) == 0 and virtual.balance == 5


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 10**7)), max_size=40)


@given(steps)
def test_partitions_hold_minted_cash_to_the_unit(moves):
    """Four partitions mint, spend into their pots, send them to partition 0, which shares them out."""
    parts = [VirtualPage() for _ in range(4)]
    known, cash = [0] * 4, [0] * 4  # cash: sum of keys + scalars
    for where, minted, spent in moves:
        parts[where].mint(minted)
        known[where] += minted
        spending = min(spent, cash[where])
        cash[where] -= spending
        parts[where].receive(spending)
        for part in parts[1:]:
            parts[0].receive(part.take())
        for q, units in enumerate(parts[0].split(known)):
            parts[q].deposit(units)
            cash[q] += parts[q].settle(known[q]) * known[q]
            assert parts[q].account < max(known[q], 1)
        assert sum(cash) + sum(part.balance for part in parts) == UNIT * sum(known)
        assert parts[0].pot < 4


def test_equal_partitions_are_paid_alike():
    virtual = VirtualPage()
    virtual.receive(1003)
    assert virtual.split([10, 10, 0, 20]) == [250, 250, 0, 501] and virtual.pot == 2


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.integers(0, 2**60))
def test_the_virtual_page_survives_a_dump(pot, account, scalar):
    state = VirtualPage(pot, account, scalar).dump()
    assert VirtualPage.load(state).dump() == state == {"pot": pot, "account": account, "scalar": scalar}


def test_negative_units_are_refused():
    for call in (VirtualPage().receive, VirtualPage().mint, VirtualPage().deposit):
        with pytest.raises(ValueError):
            call(-1)
    with pytest.raises(ValueError):
        VirtualPage(pot=-1)


# Small edges


@given(pages, st.sampled_from([0.001, 0.2, 1.0, 7.5, 1000.0]))
def test_a_small_edge_takes_its_share_beside_the_links(rows, edge):
    """f = w / (d + w), rounded to a rational over 2^31, then floored."""
    cash, degrees, seeds = zip(*rows, strict=True) if rows else ((), (), ())
    virtual, amounts = shares(
        np.array(cash, np.int64), np.cumsum([0, *degrees]), np.array(seeds, np.uint64), Tolls(0.85, edge)
    )
    assert [int(v) for v in virtual] == [
        int(c * Fraction(round(edge / (d + edge) * 2**31), 2**31)) if d else c
        for c, d in zip(cash, degrees, strict=True)
    ]
    assert int(virtual.sum(dtype=object)) + int(amounts.sum(dtype=object)) == sum(cash)


def test_a_page_with_few_links_pays_more():
    cash = np.full(3, UNIT * 10)
    virtual, _ = shares(cash, np.array([0, 1, 11, 120]), np.zeros(3, np.uint64), Tolls(edge=1.0))
    np.testing.assert_allclose(virtual / cash, [1 / 2, 1 / 11, 1 / 110], atol=1e-5)


@pytest.mark.parametrize("wrong", [(1.5, 0), (-0.1, 0), (0.85, -1), (0.85, float("inf")), (float("nan"), 0)])
def test_tolls_of_no_sense_are_refused(wrong):
    with pytest.raises(ValueError):
        Tolls(*wrong)


# Weighted links

heavy = st.lists(
    st.tuples(st.integers(0, 2**62), st.lists(st.integers(0, 5 * LINK), max_size=12), st.integers(0, 2**64 - 1)),
    max_size=20,
)


def by_weight(cash, weights, seed, tolls=0.85):
    return shares(np.array([cash]), np.array([0, len(weights)]), np.array([seed], np.uint64), tolls, np.array(weights))


@given(heavy, st.sampled_from([0.0, 0.85, 1.0]), st.sampled_from([0.0, 1.0]))
def test_weighted_links_get_their_share_rounded_down_or_up(rows, damping, edge):
    """Beside exact fractions: within one unit of R q / Q, nothing for weight 0, all of R in all."""
    cash = np.array([c for c, _, _ in rows], np.int64)
    weights = np.array([w for _, row, _ in rows for w in row], np.int64)
    indptr = np.cumsum([0, *(len(row) for _, row, _ in rows)])
    virtual, amounts = shares(cash, indptr, np.array([s for *_, s in rows], np.uint64), Tolls(damping, edge), weights)
    for i, (held, row, _) in enumerate(rows):
        got, total = amounts[indptr[i] : indptr[i + 1]].tolist(), sum(row)
        assert int(virtual[i]) + sum(got) == held
        if not total:
            assert int(virtual[i]) == held
        for units, weight in zip(got, row, strict=True):
            exact = Fraction((held - int(virtual[i])) * weight, max(total, 1))
            assert int(exact) <= units <= int(exact) + (exact.denominator > 1)


def test_ordinary_links_pay_the_toll_that_unweighted_ones_pay():
    for tolls in (0.85, Tolls(edge=2.0)):
        plain = shares(np.array([UNIT]), np.array([0, 7]), np.zeros(1, np.uint64), tolls)
        weighted = by_weight(UNIT, [LINK] * 7, 0, tolls)
        assert plain[0].tolist() == weighted[0].tolist()
        assert abs(plain[1] - weighted[1]).max() <= 1


def test_no_weighted_link_is_favoured_over_many_visits():
    visits = np.arange(20_000)
    weights = np.tile([500, 0, 1000, 250], visits.size)
    seeds = seeds_of(np.full(visits.size, 7), visits)
    _, amounts = shares(np.full(visits.size, 3), np.arange(visits.size + 1) * 4, seeds, 1.0, weights)
    got = amounts.reshape(-1, 4).sum(axis=0)
    expected = np.array([500, 0, 1000, 250]) / 1750 * 60_000
    assert got.sum() == 60_000 and got[1] == 0 and abs(got - expected).max() < 5 * 60_000**0.5


@given(heavy, st.booleans(), st.sampled_from([0.0, 1.0]))
def test_a_low_voice_keeps_cash_from_the_links(rows, weighted, edge):
    """Beside exact fractions; the voice is the seed modulo 1001, in thousandths."""
    cash, voices = np.array([c for c, _, _ in rows], np.int64), np.array([s % (LINK + 1) for *_, s in rows], np.int64)
    weights = np.array([w for _, row, _ in rows for w in row], np.int64) if weighted else None
    indptr = np.cumsum([0, *(len(row) for _, row, _ in rows)])
    seeds = np.array([s for *_, s in rows], np.uint64)
    virtual, amounts = shares(cash, indptr, seeds, Tolls(0.85, edge), weights, voices)
    for i, (held, row, seed) in enumerate(rows):
        total = sum(row) if weighted else len(row) * LINK
        assert int(virtual[i]) + sum(amounts[indptr[i] : indptr[i + 1]].tolist()) == held
        voice = Fraction(seed % (LINK + 1), LINK)
        if edge:
            along = voice * total / LINK / (voice * total / LINK + 1) * held
        else:
            along = voice * (held - int(held * Fraction(round(0.15 * 2**31), 2**31))) if total else 0
        assert abs(held - int(virtual[i]) - along) <= (1 if not edge else 1 + Fraction(held, 2**31))


@pytest.mark.parametrize("weights", [[1], [1, -1], [2**30, 2**30]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError):
        shares(np.array([UNIT]), np.array([0, 2]), np.zeros(1, np.uint64), 0.85, np.array(weights))
