"""The audit: unbiased whatever the choice costs; its interval covers the truth whether the model is right or not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refresh.meter import BLOCK, PARTS, WINDOW, Blocks, Window, found, wilson

PAGES = 300
DAYS = 60.0


def test_wilson_as_in_the_textbook():
    low, high = wilson(0.8, 10)  # R: prop.test(8, 10, correct=FALSE)
    assert (low, high) == (pytest.approx(0.4901625, abs=1e-5), pytest.approx(0.9433178, abs=1e-5))
    assert wilson(0.0, 20)[0] == 0.0 and wilson(1.0, 20)[1] == pytest.approx(1.0) and wilson(1.0, 20)[0] > 0.8
    assert wilson(0.3, 0.0) == (0.0, 1.0)


@given(st.floats(0, 1), st.floats(0.5, 1e6))
def test_wilson_holds_what_was_seen(share, coins):
    low, high = wilson(share, coins)
    assert 0.0 <= low <= share + 1e-9 and share - 1e-9 <= high <= 1.0


def test_the_window_forgets_by_parts_and_stays_small():
    window = Window()
    for i in range(3 * WINDOW):
        window.add(i >= 2 * WINDOW, 0.5, 1.0, float(i))
    whole = window.whole
    assert whole.audits == WINDOW and whole.fresh == WINDOW and whole.since == 2.0 * WINDOW
    assert len(window.parts) == PARTS and whole.expected == 0.5 * WINDOW
    window.add(False, 0.5, 1.0, 3.0 * WINDOW)
    assert WINDOW - WINDOW // PARTS < window.whole.audits <= WINDOW
    assert Window.load(window.dump()) == window


def test_nothing_is_said_before_the_first_audit():
    assert found([]).freshness is None and found([(Window(), 3.0)]).freshness is None


def test_partitions_count_by_their_importance():
    one, other = Window(), Window()
    for i in range(400):
        one.add(True, 1.0, 1.0, 5.0)
        other.add(i % 2 == 0, 0.5, 1.0, 3.0)
    seen = found([(one, 3.0), (other, 1.0)])
    assert seen.freshness == pytest.approx(0.875) and seen.expected == pytest.approx(0.875)
    assert seen.audits == 800 and seen.since == 3.0 and seen.low < 0.875 < seen.high
    lone = found([(one, 3.0), (Window(), 1.0)])
    assert lone.freshness == 1.0


def test_equal_weights_are_so_many_coins_and_unequal_ones_are_fewer():
    even, uneven = Window(), Window()
    for i in range(300):
        even.add(i % 3 > 0, 0.5, 2.0, 0.0)
        uneven.add(i % 3 > 0, 0.5, 5.0 if i % 7 == 0 else 0.5, 0.0)
    assert found([(even, 1.0)])[1:3] == pytest.approx(wilson(2 / 3, 300))
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


@pytest.mark.parametrize("kind", ["poisson", "periodic", "bursts"])
def test_the_interval_covers_the_truth_in_nine_of_ten_checks(kind):
    rng = np.random.default_rng(7)
    covered, errors = 0, []
    for _ in range(100):
        audits = int(rng.choice([40, 150, 400]))
        times = np.sort(rng.uniform(DAYS / 2, DAYS, audits))
        importance, fresh = world(kind, rng, times)
        truth = float((importance @ fresh).mean() / importance.sum())
        window, blocks = Window(), looked(importance)
        for i, now in enumerate(times.tolist()):
            one = draw(blocks, importance, rng)
            window.add(bool(fresh[one.page, i]), 0.5, one.weight, now)
        seen = found([(window, 1.0)])
        covered += seen.low <= truth <= seen.high
        errors.append(seen.freshness - truth)
    assert covered >= 90
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 10  # no bias
