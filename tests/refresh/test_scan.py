"""A scan chooses what sorting all pages would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refresh import scan
from refresh.policy import Policy
from refresh.scan import Scan

NOW = 1_700_000_000
POLICIES = [Policy(), Policy("mixed", 0.3, 1.0), Policy("freshness"), Policy("uniform"), Policy("kolobov")]


def columns(n, seed=1):
    rng = np.random.default_rng(seed)
    r = (rng.pareto(1.2, n) + 0.1).astype(np.float32)
    lam = rng.lognormal(-3.4, 2, n).astype(np.float32)
    return r, lam, (NOW - rng.integers(0, 30 * 86_400, n)).astype(np.uint32)


def index_of(policy, r, lam, at):
    age = (NOW - at.astype(np.int64)).astype(np.float32) * np.float32(1 / 86_400)
    return policy.index(r, lam, age).astype(np.float32)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("most", [1, 100, 5000, 99_999, 200_000])
def test_the_greatest_first(policy, most):
    r, lam, at = columns(100_000)
    chosen = Scan(policy).choose(r, lam, at, NOW, most)
    index = index_of(policy, r, lam, at)
    assert len(chosen) == len(set(chosen.tolist())) == min(most, 100_000)
    assert (np.diff(index[chosen]) <= 0).all()
    assert index[chosen].tolist() == np.sort(index)[::-1][: len(chosen)].tolist()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e3, width=32), st.floats(0, 1e3, width=32), st.integers(0, 2**32 - 1)), max_size=40
    ),
    st.integers(0, 50),
    st.sampled_from(POLICIES),
    st.integers(1, 16),
)
def test_any_columns_in_any_chunks(pages, most, policy, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK", chunk)
        patch.setattr(scan, "SAMPLE", 4)
        types = (np.float32, np.float32, np.uint32)
        r, lam, at = (np.array([page[k] for page in pages], kind) for k, kind in enumerate(types))
        chosen = Scan(policy).choose(r, lam, at, NOW, most)
    index = index_of(policy, r, lam, np.minimum(at, NOW))
    worth = np.sort(index[index >= np.finfo(np.float32).tiny])[::-1]
    assert index[chosen].tolist() == worth[:most].tolist()


def test_pages_that_are_not_refreshed_are_never_chosen():
    r, lam, at = columns(1000)
    lam[::2] = 0.0
    assert (Scan(Policy()).choose(r, lam, at, NOW, 1000) % 2 == 1).all()


def test_read_by_scan_the_bandwidth_is_shared_as_by_intervals():
    """The best 25 of 1,000 at each tick, for long: each page gets its share of t = K / sqrt(r lambda)."""
    r, lam, _ = columns(1000, seed=3)
    r, lam = np.clip(r, 0.3, 3), np.clip(lam, 0.05, 1.0)
    at, reads, tick = np.full(1000, NOW, np.uint32), np.zeros(1000), 8_640
    for turn in range(1, 6000):
        chosen = Scan(Policy()).choose(r, lam, at, NOW + turn * tick, 25)
        at[chosen] = NOW + turn * tick
        reads[chosen] += turn > 500
    weight = np.sqrt(r * lam)
    assert reads / reads.sum() == pytest.approx(weight / weight.sum(), rel=0.12)
