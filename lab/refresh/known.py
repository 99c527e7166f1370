"""The freshness that intervals give on Poisson pages with known rates, by integrals instead of a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from xyro.lab.refresh.rules import POLICIES
from xyro.lab.refresh.world import World
from xyro.refresh.policy import Rules, freshness, multiplier


def analytic(world: World, bandwidth: float) -> dict[str, dict[str, Any]]:
    """Return {policy: freshness, obsolescence, never (share of pages), share, staleness} by exact intervals, for which
    sum 1/t = B. share and staleness: over those of the optimum.

    obsolescence is None where a page that changes is never read.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, policy in POLICIES.items():
        mu = multiplier(world.importance, world.rate, bandwidth * world.n, Rules(policy))
        interval = policy.interval(world.importance, world.rate, mu)
        never = np.isinf(interval)
        fresh = np.where(never, 0.0, freshness(world.rate, np.where(never, 1.0, interval)))
        weighted = float((world.importance * fresh).sum() / world.importance.sum())
        behind = float((world.importance * 0.5 * world.rate * interval).sum() / world.importance.sum())
        missed = None if never.any() else behind
        found[name] = {"freshness": weighted, "obsolescence": missed, "never": float(never.mean())}
    best = found["freshness"]["freshness"]
    return {
        name: {
            **row,
            "share": row["freshness"] / best,
            "staleness": (1.0 - row["freshness"]) / (1.0 - best) if best < 1.0 else None,
        }
        for name, row in found.items()
    }
