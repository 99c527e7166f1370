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
    from xyro.frontier.frontier import Frontier


def summary(frontiers: Sequence[Frontier]) -> dict[str, Any]:
    """Collect what columns and counters hold; service/node/status.py adds the numbers of a running crawl."""
    return {
        "known": sum(frontier.ledger.known_pages for frontier in frontiers),
        "reads": sum(frontier.reads for frontier in frontiers),
        "states": states(frontiers),
        "hosts": len({name for frontier in frontiers for name in frontier.partition.hosts.names}),
        "doubted_hosts": count_doubted_hosts(frontiers),
        "held_hosts": _count_holds(frontiers),
        "partitions": len(frontiers),
        "waiting_loads": sum(len(frontier.loads.waits) for frontier in frontiers),
        "waiting_for": waiting_for(frontiers),
        **_documents(frontiers),
        "turnovers": round(frontiers[0].ledger.clock.turnovers, 3),
        "spends": sum(frontier.ledger.spends for frontier in frontiers),
        "scope": frontiers[0].scope.mode,
    }


def states(frontiers: Sequence[Frontier]) -> dict[str, int]:
    """Count pages by the name of their state."""
    counts = np.zeros(len(State), np.int64)
    for frontier in frontiers:
        n = frontier.columns.n
        counts += np.bincount(frontier.columns["state"][:n], minlength=len(State))[: len(State)]
    named: dict[str, int] = {}
    for state, name in NAMES.items():
        named[name] = named.get(name, 0) + int(counts[state])
    return named


def _count_holds(frontiers: Sequence[Frontier]) -> dict[str, int]:
    """Count the hosts that a person paused or blocked, by state."""
    holds = {
        row.name: row.hold for frontier in frontiers for row in frontier.partition.hosts.clocks.values() if row.hold
    }
    return dict(sorted(Counter(holds.values()).items()))


def _documents(frontiers: Sequence[Frontier]) -> dict[str, Any]:
    """Counters of the repository: kept with it, so nothing is scanned. Means are over the latest versions."""
    counts = [Archive(frontier.partition.get).counts() for frontier in frontiers]
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
