"""Of `xyro status`: what was promised, what became of it, what lateness costs; of a crawl that runs or is stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from crawl.publish.clustered import Clustered
from crawl.publish.publishing import publications_told
from crawl.publish.rows import stored
from crawl.publish.subscribed import subscriptions_told
from crawl.publish.watch import Watch, is_pattern, scan
from metadata import keys, rows
from refresh.expected import Expected
from refresh.lateness import ON_TIME, cost
from refresh.subscriptions import Subscriptions

if TYPE_CHECKING:
    from crawl.page_node import PageNode


def costs(nodes: Sequence[PageNode], readers: Subscriptions, now: float) -> dict[str, Any]:
    """What the collection costs its readers now (refresh/lateness.py), in missed changes a page."""
    whole = Expected()
    for node in nodes:
        whole.merge(node.meter.expected)
    missed = whole.obsolescence(now)
    if missed is None:
        return {"cost": None}
    pages = sum(node.planner.pace.population.pages for node in nodes)
    gamma = nodes[0].planner.settings.refresh.late_cost
    late = reduce(add, (node.promises.publications.overdue(now) for node in nodes), ON_TIME)
    found = cost(missed, pages, gamma, late, readers.late(now))
    terms = {"missed_changes": found.missed_changes, "late_publications": found.publications,
             "late_subscriptions": found.subscriptions, "total": found.total}  # fmt: skip
    return {"cost": {name: round(value, 4) for name, value in terms.items()}}


def stopped(nodes: Sequence[PageNode], now: float) -> dict[str, Any]:
    """`published`, `subscribed`, `cost`, `clusters`, `websub` as a running crawl tells them.

    Which pages are overdue for a notice is not stored: a start finds it out. Clusters with patterns take a scan of all
    URLs, 1-2 us each.
    """
    partition, kept = nodes[0].partition, nodes[0].promises.kept
    readers = Subscriptions()
    readers.load(kept.get("readers", {}))
    return {
        "published": publications_told([node.promises.publications for node in nodes], now),
        "subscribed": subscriptions_told(sum(1 for _ in stored(partition)), readers),
        **costs(nodes, readers, now),
        **_clusters(nodes, kept.get("clusters", {})),
        **_websub(rows.unpack_topic(value).state for _, value in partition.scan(keys.TOPIC.prefix)),
    }


def _clusters(nodes: Sequence[PageNode], state: dict[str, list[float]]) -> dict[str, Any]:
    tables = nodes[0].settings.clusters
    if not tables:
        return {}
    watch = Watch()
    clustered = Clustered(tables, nodes, watch)
    watch.told = clustered.join
    for node in nodes:
        if watch.patterns:
            for target, page in scan(node.partition, watch.targets):
                watch.take(target, page)
        for url in (url for table in tables for url in table.urls if not is_pattern(url)):
            if (page := node.partition.urls.find_one(url)) >= 0:
                watch.take(url, page + node.partition.base)
    clustered.load(state)
    return {"clusters": [cluster.told() for cluster in clustered.clusters]}


def _websub(states: Iterable[str]) -> dict[str, Any]:
    counts = Counter(states)
    return {"websub": {"topics": counts.total(), "active": counts["active"]}} if counts else {}
