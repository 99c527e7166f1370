"""Reports for `xyro status` how fresh a crawl is, from the figures of all partitions (frontier/freshness.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xyro.refresh.calibration import Calibration
from xyro.refresh.dated_pages import PageTotals
from xyro.refresh.delays import Delays, summary
from xyro.refresh.expected import Expected
from xyro.refresh.meter import AuditFindings, combined, shifted
from xyro.service.views.partition_status import PartitionStatus


def freshness_report(parts: Sequence[PartitionStatus], now: float) -> dict[str, Any]:
    """`xyro status`: how fresh all is now (by the model as its reads and audits correct it, with the interval that is
    to hold 95 of 100 such moments, and by the model alone; None: not known), what that rests on (changes that reads
    so far were expected to show), how often changes came beside how often they were expected, how fresh audits found
    it, delays, bandwidth."""
    whole, totals, detection, discovery = Expected(), PageTotals(), Delays(), Delays()
    for part in parts:
        whole.merge(part.expected)
        totals.merge(part.totals)
        detection.merge(part.detection)
        discovery.merge(part.discovery)
    seen = combined((part.audits, part.totals.importance) for part in parts)
    model, kappa = whole.freshness(now), calibration_of(part.calibration for part in parts)
    stale = whole.stale(now)
    found = None if model is None else shifted(kappa.headline(stale, whole.importance), seen)
    if found is not None and found.low <= 0.0 and found.high >= 1.0:
        found = None  # it may be anything: no read has shown yet what the model is worth
    return {
        "freshness": _rounded(found.freshness if found is not None else None),
        "freshness_low": _rounded(found.low if found is not None else None),
        "freshness_high": _rounded(found.high if found is not None else None),
        "freshness_evidence": round(kappa.whole.changes, 2),
        "freshness_model": _rounded(model),
        "changes_over_believed": _rounded(kappa.kappa if kappa.whole.believed else None),
        "missed_changes": _rounded(totals.obsolescence(now)),
        "audit": _audited(parts, seen, now),
        "execution": _found_by(parts),
        "detection_delay": summary(detection),
        "discovery_delay": summary(discovery),
        "refresh_per_second": {
            "planned": _rounded(sum(part.planned for part in parts)),
            "promised": _rounded(sum(part.promised for part in parts)),
            "spent": _rounded(sum(part.spent for part in parts)),
        },
    }


def _found_by(parts: Sequence[PartitionStatus]) -> dict[str, Any]:
    """Return the field `execution`: due pages are found in folders by date; `dated` counts the pages in them."""
    return {"by": "folders", "dated": sum(part.dated for part in parts)}


def calibration_of(parts: Iterable[Calibration]) -> Calibration:
    """Merge the calibrations of all partitions; a copy."""
    whole = Calibration()
    for part in parts:
        whole.merge(part)
    return whole


def _audited(parts: Sequence[PartitionStatus], seen: AuditFindings, now: float) -> dict[str, Any]:
    """Return the field `audit`: mean freshness over the last `over_s` seconds, its 99 % interval; what the calibrated
    model expected of the same pages; audits that count, and those ever whose read failed."""
    return {
        "freshness": _rounded(seen.freshness),
        "low": _rounded(seen.low if seen.audits else None),
        "high": _rounded(seen.high if seen.audits else None),
        "expected": _rounded(seen.expected),
        "audits": seen.audits,
        "missed": sum(part.missed_audits for part in parts),
        "over_s": round(max(0.0, now - seen.since)) if seen.audits else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
