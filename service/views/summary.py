"""Sums up a crawl for `xyro status`, running or stopped, in O(hosts + columns)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata.documents import Archive
from xyro.metadata.states import NAMES, State
from xyro.service.views.claim_evidence import count_doubted_hosts
from xyro.service.views.wait_reasons import waiting_for

if TYPE_CHECKING:
    from xyro.frontier.partition import PageNode


def summary(nodes: Sequence[PageNode]) -> dict[str, Any]:
    """Collect what columns and counters hold; service/node/status.py adds the numbers of a running crawl."""
    return {
        "known": sum(node.ledger.known_pages for node in nodes),
        "reads": sum(node.reads for node in nodes),
        "states": states(nodes),
        "hosts": len({name for node in nodes for name in node.partition.hosts.names}),
        "doubted_hosts": count_doubted_hosts(nodes),
        "held_hosts": _count_holds(nodes),
        "partitions": len(nodes),
        "waiting_loads": sum(len(node.loads.waits) for node in nodes),
        "waiting_for": waiting_for(nodes),
        **_documents(nodes),
        "turnovers": round(nodes[0].ledger.clock.turnovers, 3),
        "spends": sum(node.ledger.spends for node in nodes),
        "scope": nodes[0].scope.mode,
    }


def states(nodes: Sequence[PageNode]) -> dict[str, int]:
    """Count pages by the name of their state."""
    counts = np.zeros(len(State), np.int64)
    for node in nodes:
        n = node.columns.n
        counts += np.bincount(node.columns["state"][:n], minlength=len(State))[: len(State)]
    named: dict[str, int] = {}
    for state, name in NAMES.items():
        named[name] = named.get(name, 0) + int(counts[state])
    return named


def _count_holds(nodes: Sequence[PageNode]) -> dict[str, int]:
    """Count the hosts that a person paused or blocked, by state."""
    holds = {row.name: row.held for node in nodes for row in node.partition.hosts.clocks.values() if row.held}
    return dict(sorted(Counter(holds.values()).items()))


def _documents(nodes: Sequence[PageNode]) -> dict[str, Any]:
    """Counters of the repository: kept with it, so nothing is scanned. Means are over the latest versions."""
    counts = [Archive(node.partition.get).counts() for node in nodes]
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
