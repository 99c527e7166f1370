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


def running(single: Node, plugins: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The summary of all nodes with queue, speed and memory; `plugins`: the fields that plug-ins add."""
    elapsed = max(single.clock.monotonic() - single.started, 1e-9)
    counts = single.queue.counts()
    return {
        **summary(single.frontiers),
        **freshness_report(single.frontiers, single.clock.time()),
        "running": True,
        **plugins,
        "seconds": round(elapsed, 1),
        "reads_this_run": single.reads,
        "pages_per_second": round(_speed(single, elapsed), 2),
        "queue": {priority.name.lower(): counts[priority] for priority in Priority},
        "in_flight": single.pool.in_flight,
        "leased": single.leased,
        "robots_reads": single.pool.counters.robots_reads,
        "bytes": single.pool.counters.bytes,
        "errors": dict(single.errors),
        "stale_reports": sum(frontier.stale for frontier in single.frontiers),
        "max_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _speed(single: Node, elapsed: float) -> float:
    """Reads a second over the last ten minutes, or since the start."""
    if elapsed < TEN_MINUTES or single.settings.refresh.bandwidth:  # then the meter says what was set
        return single.reads / elapsed
    return sum(frontier.scheduler.bandwidth.meter.rate(single.clock.time()) for frontier in single.frontiers)
