"""The virtual clock: shares of the reads are those of the weights, whatever the speed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.ahead import LONGEST, MEAN, REWIND, Ahead


def run(weights, reads, at_once):
    """How often each page is read when `at_once` reads are under way together."""
    ahead, mean = Ahead(), sum(weights) / len(weights)
    counts = np.zeros(len(weights), int)
    for page, weight in enumerate(weights):
        ahead.put(page, weight, mean)
    while counts.sum() < reads:
        pages = ahead.pop(at_once)
        assert len(set(pages)) == len(pages)
        for page in pages:
            counts[page] += 1
            ahead.put(page, weights[page], mean)
    return counts


def test_reads_are_shared_in_proportion_to_the_weights():
    weights = [0.2, 0.5, 1.0, 2.0, 8.0] * 40
    counts = run(weights, 40_000, at_once=8)
    wanted = 40_000 * np.array(weights) / sum(weights)
    assert np.abs(counts / wanted - 1).max() < 0.1


def test_a_page_without_weight_still_gets_its_turn():
    counts = run([0.0] + [1.0] * 9, 1500, at_once=1)
    assert counts[0] >= 1500 // 9 * MEAN // LONGEST


def test_a_page_dated_anew_has_one_turn_only():
    ahead = Ahead()
    ahead.put_after(7, 10)
    ahead.put_after(7, 20)
    ahead.put_after(8, 15)
    assert len(ahead) == 2
    assert ahead.pop(5) == [8, 7] and ahead.clock == 20 and len(ahead) == 0
    assert ahead.pop(5) == []


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 1000)), max_size=200), st.integers(1, 5))
def test_pops_come_in_order_of_their_turns(puts, most):
    ahead, due = Ahead(), {}
    for page, wait in puts:
        ahead.put_after(page, wait)
        due[page] = wait
    popped = []
    while found := ahead.pop(most):
        popped += found
    assert sorted(popped) == sorted(due) and [due[page] for page in popped] == sorted(due.values())


def test_a_crawl_may_go_on_for_ever():
    """Turns are 32 bits wide: a lone page without weight used them up in 16,382 reads, one with weight in a million."""
    ahead = Ahead()
    ahead.put(7, 0.0, 1.0)
    for _ in range(20_000):
        assert ahead.pop(1) == [7]
        ahead.put(7, 0.0, 1.0)


def test_a_clock_that_starts_over_keeps_whose_turn_it_is():
    ahead = Ahead()
    waits = {1: 900, 2: 100, 3: 2 * LONGEST, 4: 500, 5: 100}
    ahead.put_after(0, REWIND)
    assert ahead.pop(1) == [0] and ahead.clock == 0
    ahead.put_after(0, REWIND - 1)
    for page, wait in waits.items():
        ahead.put_after(page, REWIND - 1 + wait)
    assert ahead.pop(1) == [0] and ahead.clock == REWIND - 1
    assert ahead.pop(1) == [2] and ahead.clock == 0  # 5 is due at the same moment
    assert [ahead.pop(1) for _ in range(4)] == [[5], [4], [1], [3]]
    assert ahead.clock == 2 * LONGEST - 100 and not len(ahead) and ahead.pop(1) == []
