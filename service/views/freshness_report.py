"""Reports for `xyro status` how fresh a crawl is, from the meters of all partitions (frontier/freshness.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.frontier.freshness import together
from xyro.refresh.delays import Delays, told
from xyro.refresh.expected import Expected
from xyro.refresh.meter import Found, calibrated

if TYPE_CHECKING:
    from xyro.frontier.partition import PageNode


def freshness_report(nodes: Sequence[PageNode], now: float) -> dict[str, Any]:
    """`xyro status`: how fresh all is now (by the model as audits correct it, and by the model alone), how fresh audits
    found it, delays, bandwidth."""
    whole, detection, discovery = Expected(), Delays(), Delays()
    for meter in (node.freshness for node in nodes):
        whole.merge(meter.expected)
        detection.merge(meter.detection.all)
        discovery.merge(meter.discovery.all)
    seen = together([(node.freshness.audits, node.freshness.expected.importance) for node in nodes])
    model = whole.freshness(now)
    return {
        "freshness": _rounded(None if model is None else calibrated(model, seen)),
        "freshness_model": _rounded(model),
        "missed_changes": _rounded(whole.obsolescence(now)),
        "audit": _audited(nodes, seen, now),
        "execution": _found_by(nodes),
        "detection_delay": told(detection),
        "discovery_delay": told(discovery),
        "refresh_per_second": {
            "planned": _rounded(sum(node.scheduler.bandwidth.reads_per_second for node in nodes)),
            "promised": _rounded(sum(node.scheduler.bandwidth.promised.rate(now) for node in nodes)),
            "spent": _rounded(sum(node.freshness.spent.rate(now) for node in nodes)),
        },
    }


def _found_by(nodes: Sequence[PageNode]) -> dict[str, Any]:
    """Return the field `execution`: due pages are found in folders by date; `dated` counts the pages in them."""
    return {"by": "folders", "dated": sum(len(node.scheduler.due_queue.folders) for node in nodes)}


def _audited(nodes: Sequence[PageNode], seen: Found, now: float) -> dict[str, Any]:
    """Return the field `audit`: mean freshness over the last `over_s` seconds, its 99 % interval; what the model
    expected
    of the same pages; audits that count, and those ever whose read failed."""
    return {
        "freshness": _rounded(seen.freshness),
        "low": _rounded(seen.low if seen.audits else None),
        "high": _rounded(seen.high if seen.audits else None),
        "expected": _rounded(seen.expected),
        "audits": seen.audits,
        "missed": sum(node.freshness.audits.missed for node in nodes),
        "over_s": round(max(0.0, now - seen.since)) if seen.audits else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
