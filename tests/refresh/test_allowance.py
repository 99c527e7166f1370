"""Token buckets: what a name may do in an hour, and that many names cannot fill the memory."""

from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh import allowance
from xyro.refresh.allowance import HOUR, Allowance


def test_a_full_bucket_at_once_then_its_refill():
    bucket = Allowance(60, 1_000)
    assert bucket.take("a", 60, 0.0) == 0.0
    assert bucket.take("a", 1, 0.0) == HOUR / 60
    assert bucket.take("b", 60, 0.0) == 0.0
    assert bucket.take("a", 1, HOUR / 60) == 0.0


def test_all_together_are_bounded_and_a_refusal_takes_nothing():
    bucket = Allowance(60, 100)
    assert bucket.take("a", 60, 0.0) == 0.0
    assert bucket.take("b", 60, 0.0) > 0.0
    assert bucket.take("b", 40, 0.0) == 0.0
    assert bucket.take("c", 101, 1e9) == HOUR


def test_names_are_forgotten_and_new_ones_refused_while_there_are_too_many(monkeypatch):
    monkeypatch.setattr(allowance, "MOST_NAMES", 3)
    bucket = Allowance(10, 1e9)
    assert [bucket.take(name, 1, 0.0) for name in "abcd"] == [0.0, 0.0, 0.0, HOUR]
    assert bucket.take("a", 1, 0.0) == 0.0
    assert bucket.take("d", 1, HOUR) == 0.0 and len(bucket) == 1


@given(st.lists(st.tuples(st.floats(0, 600), st.integers(1, 30)), max_size=80))
def test_no_hour_gives_more_than_twice_the_allowance(steps):
    bucket, now, taken = Allowance(50, 1e9), 0.0, []
    for wait, amount in steps:
        now += wait
        if not bucket.take("a", amount, now):
            taken.append((now, amount))
    for start, _ in taken:
        assert sum(amount for at, amount in taken if start <= at <= start + HOUR) <= 100 + 1e-6
