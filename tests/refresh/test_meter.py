"""The audit: unbiased whatever the choice costs; its interval covers the truth whether the model is right or not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.calibration import Headline
from xyro.refresh.meter import (
    BLOCK,
    NOTHING,
    PARTS,
    RUN,
    WINDOW,
    AuditFindings,
    AuditWindow,
    Blocks,
    found,
    shifted,
    wilson,
)

PAGES = 300
DAYS, DAY = 60.0, 86_400.0
Z95 = 1.959964


def test_wilson_as_in_the_textbook():
    low, high = wilson(0.8, 10, Z95)  # R: prop.test(8, 10, correct=FALSE)
    assert (low, high) == (pytest.approx(0.4901625, abs=1e-5), pytest.approx(0.9433178, abs=1e-5))
    assert wilson(0.0, 20)[0] == 0.0 and wilson(1.0, 20)[1] == pytest.approx(1.0) and wilson(1.0, 20)[0] > 0.7
    assert wilson(0.3, 0.0) == (0.0, 1.0)


@given(st.floats(0, 1), st.floats(0.5, 1e6))
def test_wilson_holds_what_was_seen(share, coins):
    low, high = wilson(share, coins)
    assert 0.0 <= low <= share + 1e-9 and share - 1e-9 <= high <= 1.0


def test_the_window_forgets_by_parts_and_stays_small():
    window = AuditWindow()
    for i in range(3 * WINDOW):
        window.add(i >= 2 * WINDOW, 0.5, 1.0, float(i))
    whole, seen = window.whole, found([(window, 1.0)])
    assert whole.audits == WINDOW and whole.since == 2.0 * WINDOW and len(window.parts) == PARTS
    assert seen.freshness == pytest.approx(1.0) and seen.expected == pytest.approx(0.5)
    assert whole.weights**2 / whole.squares == pytest.approx(WINDOW, rel=0.02)
    window.add(False, 0.5, 1.0, 3.0 * WINDOW)
    assert WINDOW - WINDOW // PARTS < window.whole.audits <= WINDOW + RUN
    assert AuditWindow.load(window.dump()) == window


def test_a_window_of_an_older_version_is_taken_over_with_all_doubt():
    old = AuditWindow.load([[32, 32.0, 32.0, 30.0, 20.0, 100.0], [8, 8.0, 8.0, 4.0, 4.0, 200.0]])
    seen = found([(old, 1.0)])
    assert seen.audits == 40 and seen.freshness == pytest.approx(30 / 32, rel=0.01) and seen.since == 100.0
    assert seen.noise == pytest.approx(0.25 / 32, rel=0.03)
    for now in (300.0, 400.0):
        old.add(True, 0.9, 1.0, now)
    assert found([(old, 1.0)]).freshness == pytest.approx((2 * 30 / 32 + 2 * 4 / 8 + 2) / 6, abs=0.16)
    assert AuditWindow.load(old.dump()) == old and AuditWindow.load([]) == AuditWindow()


def test_audits_at_one_moment_count_alike_and_those_of_a_burst_as_the_time_they_stand_for():
    window = AuditWindow()
    for _ in range(40):
        window.add(True, 0.9, 1.0, 0.0)
    assert found([(window, 1.0)])[:3] == (pytest.approx(1.0), *map(pytest.approx, wilson(1.0, 40)))
    for hour in range(1, 41):
        window.add(hour % 2 == 0, 0.9, 1.0, 3600.0 * hour)
    assert found([(window, 1.0)]).freshness == pytest.approx(0.5, abs=0.06)  # not (40 + 20) / 80


def test_nothing_is_said_before_the_first_audit():
    assert found([]).freshness is None and found([(AuditWindow(), 3.0)]).freshness is None


def test_partitions_count_by_their_importance():
    one, other = AuditWindow(), AuditWindow()
    for i in range(400):
        one.add(True, 1.0, 1.0, 5.0)
        other.add(i % 2 == 0, 0.5, 1.0, 3.0)
    seen = found([(one, 3.0), (other, 1.0)])
    assert seen.freshness == pytest.approx(0.875) and seen.expected == pytest.approx(0.875)
    assert seen.audits == 800 and seen.since == 3.0 and seen.low < 0.875 < seen.high
    lone = found([(one, 3.0), (AuditWindow(), 1.0)])
    assert lone.freshness == 1.0


def test_equal_weights_are_so_many_coins_and_unequal_ones_are_fewer():
    even, uneven = AuditWindow(), AuditWindow()
    for i in range(300):
        even.add(i % 3 > 0, 0.5, 2.0, 0.0)
        uneven.add(i % 3 > 0, 0.5, 5.0 if i % 7 == 0 else 0.5, 0.0)
    assert found([(even, 1.0)])[1:3] == pytest.approx(wilson(2 / 3, 300), abs=2e-3)
    assert found([(uneven, 1.0)]).high - found([(uneven, 1.0)]).low > 1.2 * (
        wilson(2 / 3, 300)[1] - wilson(2 / 3, 300)[0]
    )


def looked(importance):
    blocks = Blocks()
    while not blocks.whole(len(importance)):
        block = blocks.behind(len(importance))
        blocks.look(block, part(importance, block))
    return blocks


def part(importance, block):
    return importance[block * BLOCK : (block + 1) * BLOCK]


def draw(blocks, importance, rng):
    block = blocks.block(rng.random())
    return None if block is None else blocks.page(block, part(importance, block), rng.random())


def test_pages_are_chosen_by_importance():
    rng = np.random.default_rng(5)
    importance = rng.pareto(1.5, 2 * BLOCK + 77)
    importance[::5] = 0.0
    blocks = looked(importance)
    chosen = [draw(blocks, importance, rng) for _ in range(20_000)]
    assert len(blocks) == 3 and all(importance[one.page] > 0 and one.weight == pytest.approx(1.0) for one in chosen)
    top = np.argsort(-importance)[:100]
    share = importance[top].sum() / importance.sum()
    hit = np.isin([one.page for one in chosen], top).mean()
    assert hit == pytest.approx(share, abs=4 * math.sqrt(share / 20_000))


def test_stale_sums_of_blocks_are_made_up_for_by_weights():
    """The first block's importance has grown tenfold since it was looked at, and its pages are the stale ones."""
    rng = np.random.default_rng(6)
    importance = rng.uniform(0.5, 1.5, 2 * BLOCK)
    now = importance.copy()
    now[:BLOCK] *= 10.0
    bits = []
    for _ in range(400):
        blocks = looked(importance)
        one = draw(blocks, now, rng)
        bits.append((one.weight, one.page >= BLOCK))
    weights, fresh = np.array(bits, float).T
    assert (weights * fresh).sum() / weights.sum() == pytest.approx(1 / 11, abs=0.025)
    assert fresh.mean() > 0.4  # as it would be without


def test_where_nothing_can_be_audited_nothing_is_chosen():
    blocks = looked(np.zeros(10))
    assert blocks.block(0.3) is None and Blocks().block(0.0) is None
    gone = looked(np.ones(10))
    assert gone.page(0, np.zeros(10), 0.5) is None and gone.block(0.5) is None


def test_every_block_is_looked_at_again_in_its_turn():
    blocks = looked(np.ones(3 * BLOCK))
    assert [blocks.behind(3 * BLOCK) for _ in range(4)] == [1, 2, 0, 1]
    assert blocks.behind(3 * BLOCK + 1) == 3 and not blocks.whole(3 * BLOCK + 1)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_any_draw_is_of_a_page_that_counts(first, second):
    importance = np.array([0.0, 1e-300, 0.0, 7.0, 0.0])
    blocks = looked(importance)
    assert blocks.page(blocks.block(first), importance, second).page in (1, 3)


# -- the interval covers the truth ----------------------------------------------------------------------------------


def changes(kind, rate, rng):
    """Change times of one page over DAYS, by kinds of which the model knows only the first."""
    if kind == "poisson":
        return np.sort(rng.uniform(0, DAYS, rng.poisson(rate * DAYS)))
    if kind == "periodic":
        return np.arange(0.25, DAYS, max(round(1 / rate), 1))
    bursts = rng.uniform(0, DAYS, rng.poisson(rate * DAYS / 10))
    return np.sort((bursts[:, None] + rng.exponential(0.1, (len(bursts), 10))).ravel())


def world(kind, rng, times):
    """(importance, which pages are fresh at which times); pages are read as P1 dates them, each K / sqrt(r lambda)."""
    importance, rates = rng.pareto(1.2, PAGES) + 0.1, np.exp(rng.normal(math.log(0.1), 1.5, PAGES))
    intervals = np.clip(3.0 / np.sqrt(importance * rates), 0.1, 60.0)
    fresh = np.zeros((PAGES, len(times)), np.bool_)
    for page in range(PAGES):
        moments = changes(kind, rates[page], rng)
        last = np.concatenate([[-math.inf], moments])[np.searchsorted(moments, times, side="right")]
        fresh[page] = last <= times - (times - rng.uniform(0, intervals[page])) % intervals[page]
    return importance, fresh


@pytest.mark.long
def test_the_interval_covers_the_truth_as_often_as_it_says():
    """In 120 worlds, each audited 5 times: changes at any time, by the clock, and in bursts."""
    rng = np.random.default_rng(7)
    covered, errors = np.zeros(2), []
    for each in range(120):
        times = np.sort(rng.uniform(DAYS / 2, DAYS, (40, 150, 300)[each % 3]))
        importance, fresh = world(("poisson", "periodic", "bursts")[each % 4 % 3], rng, times)
        truth = float((importance @ fresh).mean() / importance.sum())
        blocks = looked(importance)
        for _ in range(5):
            window = AuditWindow()
            for i, now in enumerate(times.tolist()):
                one = draw(blocks, importance, rng)
                window.add(bool(fresh[one.page, i]), 0.5, one.weight, now * DAY)
            seen = found([(window, 1.0)])
            covered += holds(truth, seen.low, seen.high), holds(truth, *at95(window))
            errors.append(seen.freshness - truth)
    assert covered[0] >= 0.98 * 600 and covered[1] >= 0.93 * 600
    assert abs(np.mean(errors)) < 3 * np.std(errors) / math.sqrt(600)  # no bias


def at95(window):
    """The same with a confidence of 95 %."""
    whole = window.whole
    share = whole.fresh / whole.weights
    coins = share * (1 - share) / whole.spread(share) if 0 < share < 1 else whole.weights**2 / whole.squares
    return wilson(share, coins, Z95)


def holds(truth, low, high):
    return low <= truth <= high


def uneven(rng, audits):
    """(times of audits, share of importance that is fresh at any time): the more is read, the fresher all is, and the
    more is audited: a first read of everything, then days that are busy and days that are not."""
    pace = np.array([4.0, 1.0, 3.0, 0.5, 2.0])
    day = rng.choice(5, audits, p=pace / pace.sum())
    times = np.sort(day + rng.random(audits))
    return times, lambda t: 0.55 + 0.1 * pace[np.minimum(t.astype(int), 4)]


@pytest.mark.parametrize("seed", range(3))
def test_audits_that_come_in_bursts_estimate_the_mean_over_time(seed):
    """200 crawls of 512 audits: the share of fresh ones is 4 points too high; weighed by time it is not."""
    rng = np.random.default_rng(seed)
    covered, errors, plain = np.zeros(2), [], []
    for _ in range(200):
        times, share = uneven(rng, 512)
        bits = rng.random(512) < share(times)
        window = AuditWindow()
        for now, fresh in zip(times.tolist(), bits.tolist(), strict=True):
            window.add(fresh, 0.7, 1.0, now * DAY)
        truth = 0.55 + 0.1 * 10.5 / 5
        seen = found([(window, 1.0)])
        covered += holds(truth, seen.low, seen.high), holds(truth, *at95(window))
        errors.append(seen.freshness - truth)
        plain.append(bits.mean() - truth)
    assert np.mean(plain) > 0.03
    assert abs(np.mean(errors)) < 0.006 and covered[0] >= 0.97 * 200 and covered[1] >= 0.93 * 200


def test_who_looks_fifty_times_over_a_few_windows_sees_it_hold_in_forty_five():
    """Looks share audits, so misses come in bunches: why the interval is one of 99 %, not of 95 %."""
    rng, kept = np.random.default_rng(11), np.zeros(2)
    for _ in range(400):
        ones = np.concatenate(([0], np.cumsum(rng.random(2400) < 0.86)))
        looks = np.linspace(800, 2400, 51)[1:].astype(int)
        share = (ones[looks] - ones[looks - WINDOW]) / WINDOW
        for k, z in enumerate((Z95, 2.575829)):
            kept[k] += sum(holds(0.86, *wilson(one, WINDOW, z)) for one in share.tolist()) >= 45
    assert kept[0] < 0.88 * 400 < 0.94 * 400 < kept[1]


# -- the model, as audits correct it --------------------------------------------------------------------------------


shares = st.floats(0.0, 1.0)


@given(shares, shares, shares, shares, st.floats(1e-9, 1.0))
def test_a_shift_keeps_order_and_bounds(model, other, freshness, expected, noise):
    seen = AuditFindings(freshness, 0.0, 1.0, expected, noise, 9, 0.0)
    low, high = sorted((model, other))
    found = [shifted(Headline(fresh, 0.5 * fresh, 0.5 + 0.5 * fresh), seen) for fresh in (low, high)]
    assert 0.0 <= found[0].freshness <= found[1].freshness <= 1.0
    assert all(one.low <= one.freshness <= one.high for one in found)
    assert (found[0].freshness - low) * (freshness - expected) >= -1e-5
    assert shifted(Headline(model, 0.0, 1.0), NOTHING) == Headline(model, 0.0, 1.0)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_where_audits_leave_no_doubt_the_model_is_what_they_found(expected, freshness):
    model = Headline(expected, expected, expected)
    sure = shifted(model, AuditFindings(freshness, 0.0, 1.0, expected, 0.0, 9, 0.0))
    assert sure.freshness == pytest.approx(freshness) and sure.low <= sure.freshness <= sure.high
    assert shifted(model, AuditFindings(freshness, 0.0, 1.0, expected, 1e6, 9, 0.0)) == model


@pytest.mark.parametrize(("off", "worst"), [(0.0, 0.005), (-0.03, 0.03), (-0.12, 0.09)])
def test_a_model_that_is_far_off_is_put_right_and_one_that_is_right_stays(off, worst):
    """Root mean square error after 512 audits, over 60 crawls."""
    rng, errors = np.random.default_rng(5), []
    for _ in range(60):
        true = rng.beta(4, 0.8, 512)
        model = np.clip(true + off, 0.01, 1.0)
        window = AuditWindow()
        for i, (p, m) in enumerate(zip(true.tolist(), model.tolist(), strict=True)):
            window.add(bool(rng.random() < p), m, 1.0, float(i))
        fresh = 4 / 4.8 + off
        errors.append(shifted(Headline(fresh, fresh, fresh), found([(window, 1.0)])).freshness - 4 / 4.8)
    assert math.sqrt(np.mean(np.square(errors))) < worst
