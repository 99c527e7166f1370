"""How fresh a crawl is, for `xyro status`: the meters of all partitions (meter.py) together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crawl.page_node import PageNode
from crawl.turn.audits import together
from refresh.delays import Delays, told
from refresh.expected import Expected


def fresh_now(nodes: Sequence[PageNode], now: float) -> dict[str, Any]:
    """`xyro status`: freshness as the model expects it and as audits found it, delays, bandwidth."""
    whole, detection, discovery = Expected(), Delays(), Delays()
    for meter in (node.meter for node in nodes):
        whole.merge(meter.expected)
        detection.merge(meter.detection.all)
        discovery.merge(meter.discovery.all)
    return {
        "freshness": _rounded(whole.freshness(now)),
        "missed_changes": _rounded(whole.obsolescence(now)),
        "audit": _audited(nodes, now),
        "detection_delay": told(detection),
        "discovery_delay": told(discovery),
        "refresh_per_second": {
            "planned": _rounded(sum(node.planner.pace.bandwidth for node in nodes)),
            "spent": _rounded(sum(node.meter.spent.rate(now) for node in nodes)),
        },
    }


def _audited(nodes: Sequence[PageNode], now: float) -> dict[str, Any]:
    """What the audits found: mean freshness over the last `over_s` seconds, its 95 % interval; what the model expected
    of the same pages; audits that count, and those ever whose read failed."""
    seen = together([(node.meter.audits, node.meter.expected.importance) for node in nodes])
    return {
        "freshness": _rounded(seen.freshness),
        "low": _rounded(seen.low if seen.audits else None),
        "high": _rounded(seen.high if seen.audits else None),
        "expected": _rounded(seen.expected),
        "audits": seen.audits,
        "missed": sum(node.meter.audits.missed for node in nodes),
        "over_s": round(max(0.0, now - seen.since)) if seen.audits else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
