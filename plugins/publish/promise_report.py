"""Reports promises for `xyro status`: what was promised, what became of it, what lateness costs.

Each partition tells its figures (`hooks.status`); here those of all partitions come together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from xyro.metadata import rows
from xyro.plugins.publish.publication_rows import stored
from xyro.plugins.publish.stored_rows import unpack_topic
from xyro.refresh.clusters import Cluster
from xyro.refresh.dated_pages import PageTotals
from xyro.refresh.lags import Lags
from xyro.refresh.lateness import ON_TIME, Late, cost
from xyro.refresh.publications import PUBLICATION_NUMBERS
from xyro.refresh.subscriptions import Subscriptions
from xyro.wire.ids import HOME

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier
    from xyro.service.views.partition_status import PartitionStatus

_FIELDS = ("clusters", "websub")
"""figures of the home partition that are shown as they are"""


def promise_status(parts: Sequence[PartitionStatus], now: float) -> dict[str, Any]:
    """The fields `published`, `subscribed`, `cost`, and where there are any `clusters` and `websub`."""
    home = next((part.extensions for part in parts if part.number == HOME), {})
    if "subscribed" not in home:  # a crawl without plug-ins
        return {}
    return {
        "published": publications(part.extensions["published"] for part in parts),
        "subscribed": _subscriptions(home["subscribed"], [part.extensions["notice_pages"] for part in parts]),
        "cost": costs(parts, now),
        **{field: home[field] for field in _FIELDS if field in home},
    }


def publications(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counters of some partitions' publications together (Promises.figures)."""
    totals: dict[str, Any] = dict.fromkeys(PUBLICATION_NUMBERS, 0)
    lags, waiting, overdue = Lags(), 0, 0
    for part in figures:
        waiting += part["waiting"]
        overdue += Late(*part["overdue"]).pages
        for name in totals:
            totals[name] += part["counts"][name]
        lags.counts = [a + b for a, b in zip(lags.counts, part["delays"], strict=True)]
    delays = {f"{name}_delay_s": value for name, value in lags.report().items()}
    return {**totals, "lateness": round(totals["lateness"], 1), "waiting": waiting, "overdue": overdue, **delays}


def _subscriptions(home: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counters of the subscriptions, with the lateness of their pages."""
    counts = home["counts"]
    return {
        "subscriptions": home["subscriptions"],
        **counts,
        "lateness": round(counts["lateness"] + sum(part["lateness"] for part in pages), 1),
        "overdue_pages": sum(part["pages"] for part in pages),
    }


def costs(parts: Sequence[PartitionStatus], now: float) -> dict[str, float] | None:
    """Compute what the collection costs its readers now (refresh/lateness.py), in missed changes a page."""
    whole = PageTotals()
    for part in parts:
        whole.merge(part.totals)
    missed = whole.obsolescence(now)
    if missed is None:
        return None
    pages, gamma = sum(part.refreshed_pages for part in parts), parts[0].late_cost
    late = {key: reduce(add, (Late(*part.extensions[key]["overdue"]) for part in parts), ON_TIME)
            for key in ("published", "notice_pages")}  # fmt: skip
    found = cost(missed, pages, gamma, late["published"], late["notice_pages"])
    terms = {"missed_changes": found.missed_changes, "late_publications": found.publications,
             "late_subscriptions": found.subscriptions, "total": found.total}  # fmt: skip
    return {name: round(value, 4) for name, value in terms.items()}


def stored_figures(frontier: Frontier) -> dict[str, Any]:
    """Figures of one partition of a stopped crawl that a running one's plug-ins would tell.

    Which pages are overdue for a notice is not stored: a start finds it out.
    """
    if frontier.partition.number != HOME:
        return {}
    state, subscriptions = frontier.hooks.stored, Subscriptions()
    subscriptions.load(state.get("subscriptions", {}))
    number = sum(1 for _ in stored(frontier.partition))
    return {
        "subscribed": {"subscriptions": number, "counts": subscriptions.dump()},
        **_clusters(state.get("clusters", {})),
        **_websub(unpack_topic(value).state for _, value in frontier.partition.scan(rows.TOPIC.prefix)),
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
