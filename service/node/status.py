"""`xyro status` of a running crawl: the figures of its partitions, and what is happening now."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xyro.service.node.crawl_views import status_fields
from xyro.service.views.extensions import ViewExtension
from xyro.service.views.partition_status import PartitionStatus
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.service.node.node import Node

TEN_MINUTES = 600.0


def running(node: Node, extensions: Sequence[ViewExtension] = ()) -> dict[str, Any]:
    """The summary of all partitions, the fields of plug-ins, queue, speed and memory."""
    now = node.clock.time()
    parts = node.crawl_views.statuses(now)
    elapsed = max(node.clock.monotonic() - node.started, 1e-9)
    counts = node.queue.counts()
    live = {
        "gamma": round(node.gamma(), 1),
        "bounded_by": _bounds(node.settings),
        "seconds": round(elapsed, 1),
        "reads_this_run": node.reads,
        "pages_per_second": round(_speed(node, parts, elapsed), 2),
        "queue": {priority.name.lower(): counts[priority] for priority in Priority},
        "in_flight": node.pool.in_flight,
        "leased": node.leased,
        "robots_reads": node.pool.counters.robots_reads,
        "bytes": node.pool.counters.bytes,
        "errors": dict(node.errors),
        "stale_reports": sum(part.stale_reports for part in parts),
        "max_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    return status_fields(parts, extensions, now, live)


def _bounds(settings: Settings) -> dict[str, str]:
    """Say what bounds the reads of new pages and those of known ones: `bandwidth` bounds only the latter."""
    refresh = settings.refresh
    bounds = [f"bandwidth {refresh.bandwidth}" if refresh.bandwidth else "politeness, gamma"]
    if refresh.least_chance:
        bounds.append(f"least_chance {refresh.least_chance:g}")
    if refresh.min_interval:
        bounds.append(f"min_interval {refresh.min_interval:g} s")
    return {"discovery": "politeness, gamma", "refresh": ", ".join(bounds)}


def _speed(node: Node, parts: Sequence[PartitionStatus], elapsed: float) -> float:
    """Reads a second over the last ten minutes, or since the start."""
    if elapsed < TEN_MINUTES or node.settings.refresh.bandwidth:  # then the bandwidth is what was set
        return node.reads / elapsed
    return sum(part.read_rate for part in parts)
