"""Sums up a crawl for `xyro status`, running or stopped, from the figures of its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from xyro.metadata.states import NAMES
from xyro.service.views.partition_status import PartitionStatus
from xyro.service.views.troubles import trouble_fields
from xyro.service.views.wait_reasons import waiting_for


def summary(parts: Sequence[PartitionStatus]) -> dict[str, Any]:
    """Combine what columns and counters hold; service/node/status.py adds the numbers of a running crawl."""
    return {
        "known": sum(part.known for part in parts),
        "reads": sum(part.reads for part in parts),
        "states": states(part.states for part in parts),
        "hosts": sum(part.hosts for part in parts),
        "doubted_hosts": sum(part.doubted_hosts for part in parts),
        "held_hosts": _count_holds(parts),
        "challenged_hosts": _count_challenges(parts),
        "partitions": len(parts),
        "waiting_links": sum(part.waiting_links for part in parts),
        "waiting_loads": sum(part.waiting_loads for part in parts),
        "waiting_for": waiting_for(
            [(part.waits, part.foreign_waits) for part in parts],
            {url: fate for part in parts for url, fate in part.part_fates.items()},
        ),
        **_documents(parts),
        **trouble_fields(part.troubles for part in parts),
        "turnovers": round(parts[0].turnovers, 3) if parts else 0.0,
        "spends": sum(part.spends for part in parts),
        "scope": parts[0].scope if parts else "",
    }


def states(counts: Iterable[Sequence[int]]) -> dict[str, int]:
    """Count pages by the name of their state; counts: of each partition, by its number (count_states)."""
    named: dict[str, int] = {}
    totals = [sum(column) for column in zip(*counts, strict=True)]
    for state, name in NAMES.items():
        named[name] = named.get(name, 0) + (totals[state] if totals else 0)
    return named


def _count_challenges(parts: Sequence[PartitionStatus]) -> dict[str, int]:
    """Hosts that show a challenge in place of their pages, by vendor, most first."""
    vendors = Counter[str]()
    for part in parts:
        vendors.update(part.challenged_hosts)
    return dict(vendors.most_common())


def _count_holds(parts: Sequence[PartitionStatus]) -> dict[str, int]:
    """Count the hosts that a person paused or blocked, by state."""
    holds: Counter[str] = Counter()
    for part in parts:
        holds.update(part.held_hosts)
    return dict(sorted(holds.items()))


def _documents(parts: Sequence[PartitionStatus]) -> dict[str, Any]:
    """Counters of the repository: kept with it, so nothing is scanned. Means are over the latest versions."""
    counts = [part.documents for part in parts]
    kinds: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for count in counts:
        kinds.update(count.by_kind)
        verdicts.update(count.by_verdict)
    documents = max(1, sum(kinds.values()))
    return {
        "documents": dict(sorted(kinds.items(), reverse=True)),
        "validity": {name.lower().replace("_", "-"): count for name, count in sorted(verdicts.items(), reverse=True)},
        "versions": sum(count.versions for count in counts),
        "bodies": sum(count.bodies for count in counts),
        "bodies_bytes": sum(count.packed for count in counts),
        "mean_size": round(sum(count.size for count in counts) / documents),
        "mean_depth": round(sum(count.depth for count in counts) / documents, 2),
    }
