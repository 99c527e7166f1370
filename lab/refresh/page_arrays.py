"""The pages as a rule sees them at a tick, and the two methods of a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.change_signals import SignalsHeard
from xyro.lab.refresh.expected_gains import GainTable
from xyro.lab.refresh.selection import HostCap
from xyro.lab.refresh.world import Ids, Reals

Bools = NDArray[np.bool_]
DAY = 86_400.0
TICK = 21_600
"""seconds from one choice to the next: the 6 h of the prototype"""


@dataclass(slots=True)
class PageArrays:
    """The pages that are there, as a rule sees them: arrays over pages 0..n-1, days and float32."""

    importance: NDArray[np.float32]
    rate: NDArray[np.float32]
    read_at: NDArray[np.uint32]
    """seconds"""
    now: int
    """seconds"""
    belief: Callable[[], GainTable | None] = lambda: None
    """what reads gain by the beliefs of which the rates are a number each; None: they are known"""
    tick: int = TICK
    """seconds from one choice to the next"""
    signals: SignalsHeard | None = None
    """of changes; None: nobody sends any"""
    hosts: HostCap | None = None
    """what hosts allow; None: all"""

    @property
    def age(self) -> Reals:
        """Days since the last read of each page."""
        found: Reals = (self.now - self.read_at.astype(np.float64)) / DAY
        return found


class Rule(Protocol):
    def choose(self, view: PageArrays, limit: int) -> Ids:
        """Return at most `limit` pages, each once."""
        ...

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """Take the result of reads of these pages; now in days."""
        ...
