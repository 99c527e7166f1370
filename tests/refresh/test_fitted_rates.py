"""Distributions of rates fitted to what reads showed: beside worlds whose law is known, and beside the likelihood."""

import numpy as np
import pytest

from xyro.refresh.fitted_rates import FOLDERS, FittedRates
from xyro.refresh.rate_belief import NODES, RATES, START, Onset, PageBelief, RatePrior, ln_likelihood, unread
from xyro.refresh.rate_sums import RateSums

NOTHING = PageBelief(RateSums(), START)


def watched(rng, rates, reads, days):
    """Pages of these rates read so often, so many days apart."""
    found = []
    for rate in rates:
        belief = NOTHING
        for _ in range(reads):
            belief = belief.after(days, bool(rng.random() < -np.expm1(-rate * days)), None)
        found.append(PageBelief(belief.sums, START))
    return found


def settled(beliefs, folders, fits=20):
    fitted = FittedRates()
    for _ in range(fits):
        fitted.fit(beliefs, folders)
    return fitted


def test_nothing_shown_leaves_the_prior_of_a_new_crawl():
    fitted = FittedRates()
    assert fitted.fit([NOTHING] * 9, [1] * 9) == 0 and fitted.fit([], []) == 0
    assert fitted.shares([NOTHING], [1])[0] == pytest.approx(unread(START), abs=1e-9)
    assert fitted.shares([], []).shape == (0, NODES)


def test_two_kinds_of_pages_in_one_folder_are_two():
    """A hundredth of the pages changes every hour, the rest once a year: of a page of which nothing was shown the
    chance to change within a day is near one in a hundred, where a prior of one hump says a third and more."""
    rng = np.random.default_rng(1)
    beliefs = watched(rng, [24.0] * 10 + [1 / 365] * 990, 3, 2.0)
    fitted = settled(beliefs, [7] * 1000)
    changes = float(fitted.shares([NOTHING], [7])[0] @ -np.expm1(-RATES))
    assert 0.008 < changes < 0.03
    fast = fitted.shares(beliefs[:10], [7] * 10)
    assert fast[:, RATES > 1.0].sum(axis=1).min() > 0.99


def test_folders_are_told_apart_and_one_that_was_not_read_again_is_as_all():
    rng = np.random.default_rng(2)
    beliefs = watched(rng, [2.0] * 100 + [0.01] * 100, 4, 1.0)
    fitted = settled(beliefs, [1] * 100 + [2] * 100)
    fast, slow, other = (float(fitted.shares([NOTHING], [slot])[0] @ -np.expm1(-RATES)) for slot in (1, 2, 3))
    assert fast > 0.75 and slow < 0.06 and other == pytest.approx((fast + slow) / 2, abs=0.1)


def test_no_other_distribution_is_much_likelier():
    """Kiefer and Wolfowitz' condition: at the greatest likelihood no rate has a mean likelihood ratio above 1. Here it
    is drawn by some pages, so it holds to within their share."""
    rng = np.random.default_rng(3)
    beliefs = watched(rng, np.exp(rng.normal(-2.0, 1.5, 400)), 3, 1.5)
    fitted = settled(beliefs, [1] * 400, fits=40)
    likely = np.exp(ln_likelihood(np.array([belief.sums for belief in beliefs])))
    ratio = (likely / (likely @ fitted.whole)[:, None]).mean(axis=0)
    assert ratio.max() < 1.02 and ratio @ fitted.whole == pytest.approx(1.0)


def test_what_is_expected_is_what_comes():
    """Rates drawn from a law of two humps: of pages read once more, a day later, as many are fresh as the fit says."""
    rng = np.random.default_rng(4)
    rates = np.where(rng.random(4000) < 0.3, 3.0, 0.02)
    seen = rng.random(4000) < 0.4
    beliefs = [PageBelief(each.sums if shown else RateSums(), START)
               for each, shown in zip(watched(rng, rates, 2, 1.0), seen, strict=True)]  # fmt: skip
    shares = settled(beliefs, [1] * 4000).shares(beliefs, [1] * 4000)
    assert (shares @ np.exp(-RATES)).mean() == pytest.approx(np.exp(-rates).mean(), abs=0.033)  # 3 sigma


def test_a_rate_in_doubt_is_half_believed():
    since = RateSums(0.0, 3.0, 0.1)
    forked = PageBelief(RateSums(200.0, 1.0, 50.0), START, Onset(0.5, since))
    shares = FittedRates().shares([forked, forked._replace(onset=None)], [1, 1])
    wide = PageBelief(since, RatePrior(START.mean_steps, START.renewed.sigma_steps)).shares()
    assert shares[0] == pytest.approx(0.5 * shares[1] + 0.5 * wide)


def test_few_folders_are_kept_and_a_restart_knows_them():
    rng = np.random.default_rng(5)
    folders = [slot for slot in range(60) for _ in range(4 + slot)]
    fitted = settled(watched(rng, rng.lognormal(-2, 1, len(folders)), 2, 1.0), folders, fits=1)
    assert sorted(fitted.folders) == list(range(60 - FOLDERS, 60))
    again = FittedRates.load(fitted.dump())
    assert again.whole == pytest.approx(fitted.whole, abs=1e-3) and again.folders.keys() == fitted.folders.keys()
    assert FittedRates.load(again.dump()).whole == pytest.approx(again.whole, abs=1e-6)
