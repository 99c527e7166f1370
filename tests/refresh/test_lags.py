"""Lags: quantiles within a step of the true ones, whatever was counted."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xyro.refresh.lags import LEAST, Lags


@given(st.lists(st.floats(LEAST, 1e7), min_size=1, max_size=200), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_quantiles_are_within_nine_percent(delays, share):
    lags = Lags()
    for delay in delays:
        lags.add(delay)
    true = float(np.quantile(delays, share, method="inverted_cdf"))
    assert abs(math.log2(lags.quantile(share) / true)) <= 1 / 8 + 1e-9
    assert Lags.load(lags.dump()).counts == lags.counts
    assert len(lags) == len(delays)


def test_none_before_the_first_and_bounded_at_the_ends():
    lags = Lags()
    assert lags.quantile(0.5) is None and lags.report() == {"median": None, "p90": None}
    lags.add(-5.0)
    lags.add(1e30)
    assert lags.quantile(0.1) < 0.1 and lags.quantile(1.0) > 3e7
