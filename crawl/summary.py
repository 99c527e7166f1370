"""`xyro status`: a few numbers about a crawl, O(hosts + columns) to make, running or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crawl.page_node import PageNode
from metadata.states import NAMES, State


def summary(nodes: Sequence[PageNode]) -> dict[str, Any]:
    """What columns and counters say; times of a running crawl are added by `running`."""
    states = np.zeros(len(State), np.int64)
    for node in nodes:
        n = node.columns.n
        states += np.bincount(node.columns["state"][:n], minlength=len(State))[: len(State)]
    named: dict[str, int] = {}
    for state, name in NAMES.items():
        named[name] = named.get(name, 0) + int(states[state])
    return {
        "known": sum(node.purse.known for node in nodes),
        "reads": sum(node.reads for node in nodes),
        "states": named,
        "hosts": len({name for node in nodes for name in node.partition.hosts.names}),
        "partitions": len(nodes),
        "waiting_loads": sum(len(node.loads.waits) for node in nodes),
        "turnovers": round(nodes[0].purse.clock.turnovers, 3),
        "spends": sum(node.purse.spends for node in nodes),
        "scope": nodes[0].scope.mode,
    }
