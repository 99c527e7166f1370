"""Reports promises for `xyro status`: what was promised, what became of it, what lateness costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from xyro.metadata import rows
from xyro.plugins.publish.promises import promises_of
from xyro.plugins.publish.publication_rows import stored
from xyro.plugins.publish.publishing import publications_told
from xyro.plugins.publish.stored_rows import unpack_topic
from xyro.plugins.publish.subscribed import subscriptions_told
from xyro.refresh.clusters import Cluster
from xyro.refresh.expected import Expected
from xyro.refresh.lateness import ON_TIME, cost
from xyro.refresh.subscriptions import Subscriptions

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


def costs(frontiers: Sequence[Frontier], readers: Subscriptions, now: float) -> dict[str, Any]:
    """Compute what the collection costs its readers now (refresh/lateness.py), in missed changes a page."""
    whole = Expected()
    for frontier in frontiers:
        whole.merge(frontier.freshness.expected)
    missed = whole.obsolescence(now)
    if missed is None:
        return {"cost": None}
    pages = sum(frontier.scheduler.bandwidth.population.pages for frontier in frontiers)
    gamma = frontiers[0].scheduler.settings.refresh.late_cost
    late = reduce(add, (promises_of(frontier).publications.overdue(now) for frontier in frontiers), ON_TIME)
    found = cost(missed, pages, gamma, late, readers.late(now))
    terms = {"missed_changes": found.missed_changes, "late_publications": found.publications,
             "late_subscriptions": found.subscriptions, "total": found.total}  # fmt: skip
    return {"cost": {name: round(value, 4) for name, value in terms.items()}}


def stopped(frontiers: Sequence[Frontier], now: float) -> dict[str, Any]:
    """Report the promises of a stopped crawl.

    Which pages are overdue for a notice is not stored: a start finds it out.
    """
    partition, state = frontiers[0].partition, frontiers[0].hooks.stored
    readers = Subscriptions()
    readers.load(state.get("subscriptions", {}))
    return {
        "published": publications_told([promises_of(frontier).publications for frontier in frontiers], now),
        "subscribed": subscriptions_told(sum(1 for _ in stored(partition)), readers),
        **costs(frontiers, readers, now),
        **_clusters(state.get("clusters", {})),
        **_websub(unpack_topic(value).state for _, value in partition.scan(rows.TOPIC.prefix)),
    }


def _clusters(state: Mapping[str, list[float]]) -> dict[str, Any]:
    """Report the stored figures of the clusters; their members are found again when a crawl starts."""
    found = []
    for name, figures in state.items():
        cluster = Cluster(name, 0.0)
        cluster.load(figures, {})
        status = cluster.report()
        found.append({field: status[field] for field in ("name", "due", "spread_s", "late_rounds", "worst_spread_s")})
    return {"clusters": found} if found else {}


def _websub(states: Iterable[str]) -> dict[str, Any]:
    counts = Counter(states)
    return {"websub": {"topics": counts.total(), "active": counts["active"]}} if counts else {}
