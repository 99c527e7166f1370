"""The gain of a read where the rate is in doubt, of many pages at every tick: read off a table a page.

The mean of V(l t) / l over the belief (refresh/doubt.py) is kept at AGES ages, four an octave, and read off between two
of them: within 1 % of the sum over the nodes, at a fiftieth of its time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.world import Reals
from xyro.refresh.inverse import lost_freshness
from xyro.refresh.rate_belief import RATES

STEPS = 4
"""ages an octave"""
YOUNGEST, OLDEST = -12, 14
"""ages from 2^-12 days (21 s) to 2^14 (45 years)"""
LN_AGES: Reals = np.linspace(YOUNGEST, OLDEST, (OLDEST - YOUNGEST) * STEPS + 1) * math.log(2.0)
AGES = len(LN_AGES)
_WIDTH = math.log(2.0) / STEPS
_GAINS: Reals = lost_freshness(RATES[:, None] * np.exp(LN_AGES)) / RATES[:, None]


def ln_gains(shares: NDArray[np.floating]) -> NDArray[np.float32]:
    """ln of the expected gain of pages at each of LN_AGES. shares: of the rates, a row a page."""
    found: NDArray[np.float32] = np.log(shares @ _GAINS).astype(np.float32)
    return found


class GainTable(NamedTuple):
    """The expected gains of some pages: float32[n, AGES]."""

    ln_gains: NDArray[np.float32]

    def gain(self, age: Reals) -> Reals:
        """Read the expected gain of each page off between two ages."""
        place = (np.log(np.maximum(age, 1e-9)) - LN_AGES[0]) / _WIDTH
        low = np.clip(place.astype(np.int64), 0, AGES - 2)
        part, page = place - low, np.arange(len(age))
        below, above = self.ln_gains[page, low], self.ln_gains[page, low + 1]
        found: Reals = np.exp(below + part * (above - below))
        return found
