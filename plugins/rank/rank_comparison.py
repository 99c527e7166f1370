"""Compares two vectors of importances: their distance, and how alike their orders are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def compare(found: Floats, truth: Floats) -> dict[str, float | None]:
    """{"error", "error_top10": mean of |found - truth| / truth in per cent, over all pages and the tenth of the highest
    truth (P2 section 5); "spearman"}, of float64[n] each, scaled to mean 1. Nulls where nothing can be said."""
    both = truth > 0
    if not both.any() or not found.any():
        return {"error": None, "error_top10": None, "spearman": None}
    found, truth = found / found.mean(), truth / truth.mean()
    off = np.abs(found[both] - truth[both]) / truth[both]
    best = np.argsort(-truth[both], kind="stable")[: max(1, int(both.sum()) // 10)]
    return {
        "error": round(100 * float(off.mean()), 4),
        "error_top10": round(100 * float(off[best].mean()), 4),
        "spearman": spearman(found, truth),
    }


def spearman(a: Floats, b: Floats) -> float | None:
    """Rank correlation, ties at the mean of their places; None where one is the same everywhere."""
    places = [_places(column) for column in (a, b)]
    if len(a) < 2 or any(np.ptp(place) == 0 for place in places):
        return None
    return round(float(np.corrcoef(places[0], places[1])[0, 1]), 6)


def _places(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    mean: Floats = (ends - (count - 1) / 2)[place]
    return mean
