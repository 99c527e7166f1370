"""Seconds from a promise to its keeping, counted per quarter octave from 1/16 s to two years: a few hundred bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

LEAST = 1 / 16
"""seconds: shorter lags count as this"""
STEPS_AN_OCTAVE = 4
STEPS = 120
"""2^(120 / 4) x 1/16 s is about two years"""


class Lags:
    """Quantiles are the geometric middle of their step: within 9 % (2^(1/8)) of the true ones."""

    def __init__(self) -> None:
        self.counts = [0] * STEPS

    def __len__(self) -> int:
        return sum(self.counts)

    def add(self, seconds: float) -> None:
        """Count a lag; a negative one (clocks differ) counts as none."""
        octaves = math.log2(max(seconds, LEAST) / LEAST)
        self.counts[min(int(octaves * STEPS_AN_OCTAVE), STEPS - 1)] += 1

    def quantile(self, share: float) -> float | None:
        """Seconds that `share` (0..1) of the lags do not exceed; None before the first one."""
        total, seen = len(self), 0
        wanted = max(1, math.ceil(share * total))
        for step, count in enumerate(self.counts):
            seen += count
            if total and seen >= wanted:
                return float(LEAST * 2.0 ** ((step + 0.5) / STEPS_AN_OCTAVE))
        return None

    def dump(self) -> list[list[int]]:
        """[step, count] of the steps that are not empty."""
        return [[step, count] for step, count in enumerate(self.counts) if count]

    @classmethod
    def load(cls, state: Sequence[Sequence[int]]) -> Lags:
        lags = cls()
        for step, count in state:
            lags.counts[step] = count
        return lags

    def report(self) -> Mapping[str, float | None]:
        """Median and 90th percentile in seconds, for people."""
        return {"median": _short(self.quantile(0.5)), "p90": _short(self.quantile(0.9))}


def _short(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3 if seconds < 10 else 1)
