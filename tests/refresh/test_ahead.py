"""The virtual clock: shares of the reads are those of the weights, whatever the speed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.ahead import LONGEST, MEAN, Ahead


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


def test_pages_of_a_host_that_is_read_apart_keep_their_proportions():
    """Three in four reads are of host 1 alone; its clock runs ahead, and what is popped of all hosts is not held up."""
    ahead, weights = Ahead(), [0.2, 0.5, 1.0, 2.0, 8.0] * 20
    mean, counts = sum(weights) / len(weights), np.zeros(2 * len(weights), int)
    for page, weight in enumerate(weights + weights):
        ahead.put(page, weight, mean, page // len(weights))
    for turn in range(40_000):
        for page in ahead.pop_of(1, 1) if turn % 4 else ahead.pop(1):
            counts[page] += 1
            ahead.put(page, weights[page % len(weights)], mean, page // len(weights))
    assert len(ahead) == len(counts) and 0 in ahead and 1 in ahead and 2 not in ahead
    for half in (counts[: len(weights)], counts[len(weights) :]):
        wanted = half.sum() * np.array(weights) / sum(weights)
        assert np.abs(half / wanted - 1).max() < 0.1
    assert counts[len(weights) :].sum() >= 30_000
    assert ahead.pop_of(2, 5) == []


def test_a_host_that_was_read_apart_goes_on_like_the_others():
    """Its clock gained a lead of dozens of rounds; were that paid back, its pages would stay unread until then."""
    ahead, counts = Ahead(), np.zeros(40, int)
    for page in range(40):
        ahead.put(page, 1.0, 1.0, page // 20)
    for _ in range(2_000):
        for page in ahead.pop_of(1, 1):
            ahead.put(page, 1.0, 1.0, 1)
    for _ in range(400):
        for page in ahead.pop(1):
            counts[page] += 1
            ahead.put(page, 1.0, 1.0, page // 20)
    assert np.abs(counts - 10).max() <= 1


def test_a_page_dated_anew_at_a_host_has_one_turn_only():
    ahead = Ahead()
    for wait in (30, 10, 20):
        ahead.put_after(7, wait, host=3)
    ahead.put_after(8, 15, host=3)
    assert ahead.pop_of(3, 1) == [8] and ahead.pop(5) == [7] and len(ahead) == 0 and 3 not in ahead
