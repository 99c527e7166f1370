"""`xyro status` of a running crawl: the summary, and what is happening now."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from xyro.service.views.freshness_report import freshness_report
from xyro.service.views.summary import summary
from xyro.wire.messages import Priority

if TYPE_CHECKING:
    from xyro.service.node.node import Node

TEN_MINUTES = 600.0


def running(node: Node, plugins: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The summary of all nodes with queue, speed and memory; `plugins`: the fields that plug-ins add."""
    elapsed = max(node.clock.monotonic() - node.started, 1e-9)
    counts = node.queue.counts()
    return {
        **summary(node.frontiers),
        **freshness_report(node.frontiers, node.clock.time()),
        "running": True,
        **plugins,
        "seconds": round(elapsed, 1),
        "reads_this_run": node.reads,
        "pages_per_second": round(_speed(node, elapsed), 2),
        "queue": {priority.name.lower(): counts[priority] for priority in Priority},
        "in_flight": node.pool.in_flight,
        "leased": node.leased,
        "robots_reads": node.pool.counters.robots_reads,
        "bytes": node.pool.counters.bytes,
        "errors": dict(node.errors),
        "stale_reports": sum(frontier.stale for frontier in node.frontiers),
        "max_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _speed(node: Node, elapsed: float) -> float:
    """Reads a second over the last ten minutes, or since the start."""
    if elapsed < TEN_MINUTES or node.settings.refresh.bandwidth:  # then the bandwidth is what was set
        return node.reads / elapsed
    return sum(frontier.scheduler.bandwidth.meter.rate(node.clock.time()) for frontier in node.frontiers)
