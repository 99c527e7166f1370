"""Reports for `xyro status` how fresh a crawl is, from the meters of all partitions (frontier/freshness.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.frontier.freshness import together
from xyro.refresh.delays import Delays, summary
from xyro.refresh.expected import Expected
from xyro.refresh.meter import AuditFindings, calibrated

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


def freshness_report(frontiers: Sequence[Frontier], now: float) -> dict[str, Any]:
    """`xyro status`: how fresh all is now (by the model as audits correct it, and by the model alone), how fresh audits
    found it, delays, bandwidth."""
    whole, detection, discovery = Expected(), Delays(), Delays()
    for meter in (frontier.freshness for frontier in frontiers):
        whole.merge(meter.expected)
        detection.merge(meter.detection.all)
        discovery.merge(meter.discovery.all)
    seen = together([(frontier.freshness.audits, frontier.freshness.expected.importance) for frontier in frontiers])
    model = whole.freshness(now)
    return {
        "freshness": _rounded(None if model is None else calibrated(model, seen)),
        "freshness_model": _rounded(model),
        "missed_changes": _rounded(whole.obsolescence(now)),
        "audit": _audited(frontiers, seen, now),
        "execution": _found_by(frontiers),
        "detection_delay": summary(detection),
        "discovery_delay": summary(discovery),
        "refresh_per_second": {
            "planned": _rounded(sum(frontier.scheduler.bandwidth.reads_per_second for frontier in frontiers)),
            "promised": _rounded(sum(frontier.scheduler.bandwidth.promised.rate(now) for frontier in frontiers)),
            "spent": _rounded(sum(frontier.freshness.spent.rate(now) for frontier in frontiers)),
        },
    }


def _found_by(frontiers: Sequence[Frontier]) -> dict[str, Any]:
    """Return the field `execution`: due pages are found in folders by date; `dated` counts the pages in them."""
    return {"by": "folders", "dated": sum(len(frontier.scheduler.due_queue.folders) for frontier in frontiers)}


def _audited(frontiers: Sequence[Frontier], seen: AuditFindings, now: float) -> dict[str, Any]:
    """Return the field `audit`: mean freshness over the last `over_s` seconds, its 99 % interval; what the model
    expected
    of the same pages; audits that count, and those ever whose read failed."""
    return {
        "freshness": _rounded(seen.freshness),
        "low": _rounded(seen.low if seen.audits else None),
        "high": _rounded(seen.high if seen.audits else None),
        "expected": _rounded(seen.expected),
        "audits": seen.audits,
        "missed": sum(frontier.freshness.audits.missed for frontier in frontiers),
        "over_s": round(max(0.0, now - seen.since)) if seen.audits else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
