"""`xyro status` of a running crawl: the figures of its partitions, and what is happening now."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.service.node.crawl_views import status_fields
from xyro.service.node.recent_figures import disk_free
from xyro.service.views.extensions import ViewExtension
from xyro.service.views.partition_status import PartitionStatus
from xyro.wire.durations import span
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
        "bounded_by": bounds(node.settings),
        "seconds": round(elapsed, 1),
        "reads_this_run": node.reads,
        "pages_per_second": round(_speed(node, parts, elapsed), 2),
        "queue": {priority.name.lower(): counts[priority] for priority in Priority},
        "in_flight": node.pool.in_flight,
        "leased": node.leased,
        "robots_reads": node.pool.counters.robots_reads,
        "bytes": node.pool.counters.bytes,
        "errors": dict(node.errors),
        "cut_short": dict(sorted(node.pool.counters.cut.items())),
        "textless": node.services.textless,
        "recent_reads": node.recent.reads(node.reads),
        "recent_errors": node.recent.errors(node.errors),
        "work": _work(node),
        "bandwidth": _outlook(node),
        "stale_reports": sum(part.stale_reports for part in parts),
        "max_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    return status_fields(parts, extensions, now, live)


def _work(node: Node) -> dict[str, Any]:
    """The things of this machine that may hold reads up; seconds, bytes, shares of a core."""
    waits = node.waits_since
    return {
        "connections": node.settings.fetch.concurrency,
        "full": not node.may_read(),
        "paused_orders": node.queue.paused_orders(),
        "cpu": round(node.recent.processor(), 3),
        "commit_waits": 0.0 if waits is None else round(node.clock.monotonic() - waits, 1),
        "disk_free": disk_free(node.data.path),
        "clock_step": round(node.recent.clock_step, 1),
        "readers_lost": node.fetch_loop.reader.lost(TEN_MINUTES),
        "slow_lookups": node.pool.slow_lookups(TEN_MINUTES),
        "proxies": node.services.failed_proxies,
    }


def _outlook(node: Node) -> dict[str, Any]:
    """The bandwidth that is set beside the one that `plan` would propose."""
    if not node.has_partitions:
        return {}
    views = node.crawl_views
    return node.recent.outlook(
        views.refreshed_pages, partial(views.plan_part, node.clock.time()), node.settings.refresh
    )


def bounds(settings: Settings) -> dict[str, str]:
    """Say what bounds the reads of new pages and those of known ones: `bandwidth` the latter, or both if asked to."""
    refresh = settings.refresh
    refreshes = [f"bandwidth {refresh.bandwidth}" if refresh.bandwidth else "politeness, gamma"]
    if refresh.least_chance:
        refreshes.append(f"least_chance {refresh.least_chance:g}")
    if refresh.min_interval:
        refreshes.append(f"min_interval {span(refresh.min_interval)}")
    covers_all = refresh.bandwidth and refresh.bandwidth_covers == "all"
    return {
        "discovery": f"bandwidth {refresh.bandwidth}, gamma" if covers_all else "politeness, gamma",
        "refresh": ", ".join(refreshes),
    }


def _speed(node: Node, parts: Sequence[PartitionStatus], elapsed: float) -> float:
    """Reads a second over the last ten minutes, or since the start."""
    if elapsed < TEN_MINUTES or node.settings.refresh.bandwidth:  # then the bandwidth is what was set
        return node.reads / elapsed
    return sum(part.read_rate for part in parts)
