"""Reports for `xyro status` how fresh a crawl is, from the meters of all partitions (frontier/freshness.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.frontier.freshness import together
from xyro.refresh.calibration import Calibration
from xyro.refresh.delays import Delays, summary
from xyro.refresh.expected import Expected
from xyro.refresh.meter import AuditFindings, Headline, headline

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


def freshness_report(frontiers: Sequence[Frontier], now: float) -> dict[str, Any]:
    """`xyro status`: how fresh all is now (by the model as its reads and audits correct it, and by the model alone),
    how often changes came beside how often they were expected, how fresh audits found it, delays, bandwidth."""
    whole, detection, discovery = Expected(), Delays(), Delays()
    for meter in (frontier.freshness for frontier in frontiers):
        whole.merge(meter.expected)
        detection.merge(meter.detection.all)
        discovery.merge(meter.discovery.all)
    seen = together([(frontier.freshness.audits, frontier.freshness.expected.importance) for frontier in frontiers])
    model, kappa = whole.freshness(now), calibration_of(frontiers)
    found = None if model is None else headline(kappa.fresh(model), seen)
    return {
        "freshness": _rounded(found.freshness if found is not None else None),
        "freshness_model": _rounded(model),
        "changes_over_believed": _rounded(kappa.kappa if kappa.believed else None),
        "missed_changes": _rounded(whole.obsolescence(now)),
        "audit": _audited(frontiers, seen, found, now),
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


def calibration_of(frontiers: Sequence[Frontier]) -> Calibration:
    """Merge the calibrations of all partitions; a copy."""
    whole = Calibration()
    for frontier in frontiers:
        whole.merge(frontier.freshness.calibration)
    return whole


def _audited(frontiers: Sequence[Frontier], seen: AuditFindings, now_is: Headline | None, now: float) -> dict[str, Any]:
    """Return the field `audit`: mean freshness over the last `over_s` seconds, its 99 % interval (widened by what the
    model has moved since, so that it holds the freshness of now, too); what the calibrated model expected of the same
    pages; audits that count, and those ever whose read failed."""
    bounds = (now_is.low, now_is.high) if now_is is not None else (seen.low, seen.high)
    low, high = bounds if seen.audits else (None, None)
    return {
        "freshness": _rounded(seen.freshness),
        "low": _rounded(low),
        "high": _rounded(high),
        "expected": _rounded(seen.expected),
        "audits": seen.audits,
        "missed": sum(frontier.freshness.audits.missed for frontier in frontiers),
        "over_s": round(max(0.0, now - seen.since)) if seen.audits else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
