"""The prototype's numbers from other random numbers: these are the estimators that were measured."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from xyro.lab.refresh.estimators import mle, mle_last_modified
from xyro.lab.refresh.gamma_belief import Evidence, Prior, learn, update_many
from xyro.refresh.rate_sums import DAY

NEUTRAL = Prior(0.4, 0.8)
VISITS = (5, 10, 20, 50)
CHANGES = Path(__file__).parents[3] / "shared" / "data" / "changes"


def visits(rng: np.random.Generator, rate: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tau, changed, age of the last change), each (pages, count): lognormal intervals of mean 1 and cv 1.3."""
    sigma = math.sqrt(math.log(1 + 1.3**2))
    tau = rng.lognormal(-0.5 * sigma**2, sigma, (len(rate), count))
    age = rng.exponential(1.0, tau.shape) / rate[:, None]
    return tau, age <= tau, age


def learnt(tau, changed, age, prior, memory=math.inf, start=None) -> list[tuple[np.ndarray, np.ndarray]]:
    """(a, b) after each visit."""
    a, b = start or (np.full(len(tau), prior.a), np.full(len(tau), prior.b))
    trail = []
    for visit in range(tau.shape[1]):
        a, b = update_many(a, b, tau[:, visit], changed[:, visit], age[:, visit], prior, memory)
        trail.append((a, b))
    return trail


def rms(belief: tuple[np.ndarray, np.ndarray], rate: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.log(belief[0] / belief[1] / rate) ** 2)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "product", "censored"),
    [
        (0.1, (1.28, 1.11, 1.05, 1.02), (1.25, 1.10, 1.05, 1.02)),
        (1.0, (2.51, 1.18, 1.07, 1.03), (1.21, 1.09, 1.04, 1.02)),
        (3.0, (4.98, 2.12, 1.22, 1.05), (1.21, 1.10, 1.05, 1.02)),
    ],
)
def test_bias_of_the_batch_estimators(rate, product, censored):
    tau, changed, age = visits(np.random.default_rng(11), np.full(5000, rate), 50)
    for count, bits, dated in zip(VISITS, product, censored, strict=True):
        part = np.s_[:, :count]
        found = np.clip(mle(tau[part], changed[part]), 0.001, 50.0).mean() / rate
        assert found == pytest.approx(bits, rel=0.12)
        found = np.clip(mle_last_modified(tau[part], changed[part], age[part]), 0.001, 50.0).mean() / rate
        assert found == pytest.approx(dated, rel=0.05)


@pytest.mark.parametrize(
    ("rate", "bits", "dated"),
    [
        (0.01, (2.16, 1.59, 1.09, 0.78), (2.16, 1.59, 1.10, 0.79)),
        (0.1, (0.84, 0.82, 0.78, 0.53), (0.83, 0.82, 0.78, 0.52)),
        (0.3, (0.85, 0.73, 0.53, 0.32), (0.83, 0.72, 0.52, 0.31)),
        (1.0, (0.67, 0.49, 0.36, 0.22), (0.65, 0.46, 0.32, 0.20)),
        (3.0, (0.61, 0.42, 0.30, 0.20), (0.55, 0.38, 0.26, 0.16)),
        (10.0, (1.31, 1.01, 0.76, 0.50), (0.93, 0.60, 0.37, 0.19)),
    ],
)
def test_error_of_the_running_estimator(rate, bits, dated):
    rates = np.full(5000, rate)
    tau, changed, age = visits(np.random.default_rng(12), rates, 50)
    by_bits = learnt(tau, changed, np.full_like(age, np.nan), NEUTRAL)
    by_dates = learnt(tau, changed, age, NEUTRAL)
    assert [rms(by_bits[n - 1], rates) for n in VISITS] == pytest.approx(bits, rel=0.06)
    assert [rms(by_dates[n - 1], rates) for n in VISITS] == pytest.approx(dated, rel=0.06)


def population(rng: np.random.Generator, pages: int) -> np.ndarray:
    return rng.lognormal(math.log(0.1), 1.8, pages)


def test_error_over_a_population():
    rng = np.random.default_rng(13)
    rates = population(rng, 8000)
    tau, changed, age = visits(rng, rates, 50)
    nothing = np.full_like(age, np.nan)
    neutral, fitted = learnt(tau, changed, nothing, NEUTRAL), learnt(tau, changed, nothing, Prior())
    assert [rms(neutral[n - 1], rates) for n in VISITS] == pytest.approx([1.36, 1.09, 0.86, 0.64], rel=0.05)
    assert [rms(fitted[n - 1], rates) for n in VISITS] == pytest.approx([1.25, 1.04, 0.85, 0.66], rel=0.05)


@pytest.mark.parametrize(
    ("memory", "still", "jumped"),
    [
        (math.inf, 0.708, (1.98, 1.74, 1.46, 1.17)),
        (50.0, 0.707, (1.83, 1.56, 1.25, 0.93)),
        (25.0, 0.744, (1.71, 1.41, 1.09, 0.81)),
    ],
)
def test_forgetting_costs_nothing_while_rates_hold_and_follows_a_jump(memory, still, jumped):
    rng = np.random.default_rng(14)
    rates = population(rng, 6000)
    tau, changed, age = visits(rng, rates, 40)
    before = learnt(tau, changed, np.full_like(age, np.nan), Prior(), memory)[-1]
    assert rms(before, rates) == pytest.approx(still, rel=0.06)
    rates = rates * 10
    tau, changed, age = visits(rng, rates, 40)
    after = learnt(tau, changed, np.full_like(age, np.nan), Prior(), memory, before)
    assert [rms(after[n - 1], rates) for n in (5, 10, 20, 40)] == pytest.approx(jumped, rel=0.06)


def exact_mean(history: list[Evidence], prior: Prior, ln: np.ndarray) -> float:
    """Posterior mean of the rate by integration over ln lambda: P1 eq. 9 as a product, times the prior."""
    lam = np.exp(ln)
    density = prior.a * ln - prior.b * lam
    for tau, changed, _ in history:
        density += np.log(-np.expm1(-lam * tau)) if changed else -lam * tau
    weight = np.exp(density - density.max())
    return float((weight * lam).sum() / weight.sum())


@pytest.mark.skipif(not CHANGES.is_dir(), reason="change histories of ../shared/data are not here")
def test_on_real_change_histories_two_numbers_say_what_the_whole_history_says():
    """Real pages are bursty, not Poisson, and moment matching depends on the order of visits.

    It is off by a fraction of what the history leaves open anyway; most, and low, where all changes came first.
    """
    ln = np.linspace(-20.0, 8.0, 1200)
    off = []
    for file in sorted(CHANGES.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            pages = [json.loads(line)["events"] for line in lines]
        for events in [page for page in pages if len(page) >= 5][:25]:
            times = [when for when, _ in events]
            reads = np.arange(times[0], times[-1], 30 * DAY)
            touched = np.diff(np.searchsorted(times, reads, side="right")) > 0
            history = [Evidence(30.0, bool(changed)) for changed in touched]
            a, b = learn(history, memory=math.inf)
            deviation = a**-0.5  # of lambda, relative to its mean
            off.append(abs(math.log(a / b / exact_mean(history, Prior(), ln))) / deviation)
    assert len(off) >= 50
    assert np.median(off) < 0.1
    assert np.mean(off) < 0.25
    assert np.max(off) < 1.2
