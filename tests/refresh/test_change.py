"""Which dates of change are believed."""

from __future__ import annotations

import math

import pytest

from xyro.refresh.change import usable_last_modified
from xyro.refresh.rate_sums import DAY

NOW = 1_760_000_000.0


@pytest.mark.parametrize(
    ("modified", "changed_after", "age_days"),
    [
        (NOW - 10 * DAY, None, 10.0),
        (NOW - 10 * DAY, NOW - 11 * DAY, 10.0),
        (NOW - 10 * DAY, NOW - 9 * DAY, None),  # older than a change we saw
        (NOW + 1.0, None, None),  # the future
        (NOW, None, None),  # "now"
        (NOW - 59.0, None, None),
        (NOW - 60.0, None, 60.0 / DAY),
        (None, None, None),
        (0.0, None, None),
        (-62_135_596_800.0, None, None),  # year 0001
        (315_532_800.0, None, None),  # 1980-01-01
        (631_152_000.0, None, (NOW - 631_152_000.0) / DAY),
        (math.nan, None, None),
        (math.inf, None, None),
    ],
)
def test_which_last_modified_is_trusted(modified, changed_after, age_days):
    assert usable_last_modified(modified, NOW, changed_after) == (None if age_days is None else pytest.approx(age_days))
