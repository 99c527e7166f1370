"""What `stale` says with priors of several shapes, beside the truth of a small world."""

from __future__ import annotations

import pytest

from xyro.lab.refresh.prior_shapes import trial


@pytest.fixture(scope="module")
def found():
    return {prior: trial(prior, 0.3, seed=0, pages=1000, days=40.0) for prior in ("true", "narrow")}


def test_the_true_prior_says_what_had_changed(found):
    assert found["true"].stale == pytest.approx(found["true"].changed, rel=0.05)


def test_pages_read_for_their_staleness_are_not_what_errs(found):
    """The same rule chooses the reads: with the true prior nothing is overstated, with a narrow one it is."""
    excess = {prior: row.stale / row.changed - 1.0 for prior, row in found.items()}
    assert excess["narrow"] > excess["true"] + 0.04 and excess["true"] < 0.01
