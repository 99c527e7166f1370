"""A scan chooses what sorting all pages would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.refresh import scan_execution
from xyro.lab.refresh.compared_policies import Compared
from xyro.lab.refresh.scan_execution import LATE, Scan, Shut
from xyro.refresh.policy import Policy, Rules, freshness, multiplier

NOW = 1_700_000_000
POLICIES = [Policy(), Policy("mixed", 0.3, 1.0), Policy("freshness"), Policy("uniform"), Compared("kolobov")]
DAY = 86_400


def columns(n, seed=1):
    rng = np.random.default_rng(seed)
    r = (rng.pareto(1.2, n) + 0.1).astype(np.float32)
    lam = rng.lognormal(-3.4, 2, n).astype(np.float32)
    return r, lam, (NOW - rng.integers(0, 30 * 86_400, n)).astype(np.uint32)


def index_of(policy, r, lam, at):
    """Of pages that are refreshed at all: of some importance, and some change."""
    age = (NOW - at.astype(np.int64)).astype(np.float32) * np.float32(1 / 86_400)
    return np.where((r > 0) & (lam > 0), policy.index(r, lam, age), 0).astype(np.float32)


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
        patch.setattr(scan_execution, "CHUNK", chunk)
        patch.setattr(scan_execution, "SAMPLE", 4)
        types = (np.float32, np.float32, np.uint32)
        r, lam, at = (np.array([page[k] for page in pages], kind) for k, kind in enumerate(types))
        chosen = Scan(policy).choose(r, lam, at, NOW, most)
    index = index_of(policy, r, lam, np.minimum(at, NOW))
    worth = np.sort(index[index >= np.finfo(np.float32).tiny])[::-1]
    assert index[chosen].tolist() == worth[:most].tolist()


@pytest.mark.parametrize("policy", [*POLICIES, Compared("proportional")], ids=str)
def test_pages_that_are_not_refreshed_are_never_chosen(policy):
    """Of no rate, never measured (a flow below 0), never read: whatever their age."""
    r, lam, at = columns(1000)
    lam[::4], at[::4] = 0.0, 0
    r[2::4] *= -1.0
    chosen = Scan(policy, ceiling=5.0).choose(r, lam, at, NOW, 1000)
    assert (chosen % 4 != 0).all()
    assert len(Scan(policy).choose(r, lam, at, NOW, 1000)) == 500


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_bounds_come_before_the_index(policy):
    r, lam, at = columns(20_000)
    age = (NOW - at.astype(np.int64)) / DAY
    scanner = Scan(policy, floor=3.0, ceiling=29.0)
    late = np.flatnonzero(age >= 29.0)
    chosen = scanner.choose(r, lam, at, NOW, len(late) + 500)
    assert set(chosen[: len(late)].tolist()) == set(late.tolist())
    assert (age[chosen] >= 3.0).all() and 0.0 < scanner.theta < LATE
    free = np.where((age >= 3.0) & (age < 29.0), index_of(policy, r, lam, at), 0)
    assert free[chosen[len(late) :]].tolist() == np.sort(free)[::-1][:500].tolist()
    assert len(scanner.choose(r, lam, at, NOW, 20_000)) == (age >= 3.0).sum() and scanner.theta == 0.0


def test_a_least_index_and_hosts_that_are_shut():
    r, lam, at = columns(50_000)
    host_of = (np.arange(50_000) % 10).astype(np.uint32)
    shut = Shut(np.array([False, True] * 5), host_of)
    index = index_of(Policy(), r, lam, at)
    least = float(np.sort(index)[-3000])
    chosen = Scan(Policy()).choose(r, lam, at, NOW, 50_000, least, shut)
    assert set(chosen.tolist()) == set(np.flatnonzero((index >= np.float32(least)) & (host_of % 2 == 0)).tolist())
    assert Scan(Policy()).choose(r, lam, at, NOW, 100, float(LATE)).tolist() == []


@pytest.mark.parametrize(
    "policy", [Policy(), Policy("mixed", 0.3, 1.0), Policy("freshness"), Compared("kolobov")], ids=str
)
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_both_executions_are_as_fresh(policy, share):
    """500 pages of known rates: the best at each tick, beside every page at its own water-filled interval."""
    r, lam, at = columns(500, seed=5)
    lam = np.clip(lam, 1e-3, 10)
    at[:] = NOW
    tick, most = DAY // 10, int(share * 50)
    rate, fresh, ticks = lam.astype(float), np.zeros(500), 1600
    scanner = Scan(policy)
    for turn in range(1, ticks + 1):
        now = NOW + turn * tick
        if turn > ticks // 2:
            age = (now - at.astype(float)) / DAY
            fresh += (np.exp(-rate * (age - 0.1)) - np.exp(-rate * age)) / rate / 0.1
        at[scanner.choose(r, lam, at, now, most)] = now
    scanned = r @ fresh / (ticks // 2) / r.sum()
    rules = Rules(policy)
    days = rules.intervals(r, rate, multiplier(r, rate, 10.0 * most, rules))
    filed = r @ np.where(np.isinf(days), 0.0, freshness(rate, np.where(np.isinf(days), 1.0, days))) / r.sum()
    assert scanned == pytest.approx(filed, abs=0.015)


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
