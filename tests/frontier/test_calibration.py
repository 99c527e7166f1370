"""What a read says of how long its page's copy was stale: against the truth of changes that come as they like."""

from email.utils import formatdate

import numpy as np
import pytest

from tests.frontier.rig import report
from xyro.frontier.freshness import _stale
from xyro.metadata.rows import PageClaim, RefreshRow
from xyro.refresh.change import DAY
from xyro.refresh.expected import fading
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, Priority

ORDER = FetchOrder(PageId(1), "http://a.example/", Priority.ORDERED, 1)
BEGIN = 1_700_000_000.0


def dated(when, read_at):
    return report(ORDER, read_at, last_modified=formatdate(when, usegmt=True))


@pytest.mark.parametrize("per_day", [0.02, 0.3, 3.0, 40.0])
def test_dates_tell_how_stale_copies_were_whether_changes_are_rare_or_many(per_day):
    """Pages read every day: the mean of what reads say is the true share of time that copies were stale."""
    rng = np.random.default_rng(7)
    days = 20_000
    changes = np.sort(rng.uniform(0, days, rng.poisson(per_day * days)))
    stale = seen = 0.0
    for day in range(1, days):
        here = changes[np.searchsorted(changes, day - 1) : np.searchsorted(changes, day)]
        if len(here):
            stale += day - here[0]
            found = dated(BEGIN + here[-1] * DAY, BEGIN + day * DAY)
            seen += _stale(found, RefreshRow(reads=1, last_read=int(BEGIN + (day - 1) * DAY)), 1.0, 1.0)
    assert seen == pytest.approx(stale, rel=0.06)


def test_an_announced_change_counts_since_its_date_and_an_undated_one_as_the_model_has_it():
    claim = PageClaim(1, 0, int(BEGIN + 0.75 * DAY))
    row = RefreshRow(reads=1, last_read=int(BEGIN), claims=(claim,))
    assert _stale(report(ORDER, BEGIN + DAY), row, 1.0, 0.4) == pytest.approx(0.25, abs=1e-4)
    assert _stale(report(ORDER, BEGIN + DAY), RefreshRow(reads=1, last_read=int(BEGIN)), 1.0, 0.4) == 0.4


@pytest.mark.parametrize("sums", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 10.0, 10 / 144), (5.0, 2.0, 3.0)])
@pytest.mark.parametrize("days", [1e-3, 1.0, 100.0])
def test_the_days_that_the_model_expects_are_its_integral(sums, days):
    belief = PageBelief(RateSums(*sums), START)
    grid = days * np.linspace(0.0, 1.0, 20_001) ** 3
    chances = 1.0 - np.exp(-grid[:, None] * 2.0 ** (np.arange(51) / 2 - 12)) @ belief.shares()
    assert fading(belief.shares(), days)[1] == pytest.approx(np.trapezoid(chances, grid), rel=1e-3)
