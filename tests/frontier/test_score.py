"""Scores by hand."""

import numpy as np
import pytest

from xyro.frontier.discovery import SCALE, scores
from xyro.frontier.ledger import FLOOR
from xyro.opic.cash import UNIT


@pytest.mark.parametrize(
    ("linked", "folder", "host", "score"),
    [
        (0.0, 0, 0, 1 / 16),
        (1.0, 0, 0, 17 / 16),
        (1.0, 8, 0, 17 / 16 / 2**0.5),
        (1.0, 24, 3, 17 / 16 / 4),
        (0.4375, 0, 99, 0.05),
        (15 / 16, 792, 9_999, 0.001),
    ],
)
def test_scores_by_hand(linked, folder, host, score):
    units = np.array([round(linked * UNIT) + FLOOR])
    found = scores(units, np.array([folder], np.uint32), np.array([host], np.uint32))
    assert found[0] / SCALE / UNIT == pytest.approx(score, rel=1e-6)


def test_long_lists_still_tell_their_pages_apart():
    crowded = np.full(2, 60_000, np.uint32), np.full(2, 2**32 - 1, np.uint32)
    poor, rich = scores(np.array([FLOOR, FLOOR + 64]), *crowded)
    assert 0 < poor < rich
