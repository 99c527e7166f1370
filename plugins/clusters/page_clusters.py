"""The clusters of the settings, over all partitions of the process: who belongs, and when they are read together.

A page belongs to the first cluster that names it. Which pages those are is found again at each start (watch.py);
rounds, dates and what was late are stored with partition 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xyro.configs.schema import Cluster as Settings
from xyro.frontier.seams import Node
from xyro.plugins.publish.watch import Watch
from xyro.refresh.clusters import Aligned, Cluster
from xyro.wire.errors import InputError
from xyro.wire.urls import canonical


class Clustered:
    """`joint` where a page is dated (frontier/dating.py), `read` after it was."""

    def __init__(
        self, tables: Sequence[Settings], nodes: Sequence[Node], watch: Watch, fold_slashes: bool = True
    ) -> None:
        """InputError: two of a name, or a URL that is none."""
        self.clusters = [Cluster(table.name, table.window) for table in tables]
        if len({cluster.name for cluster in self.clusters}) < len(self.clusters):
            raise InputError("settings: [[clusters]]: two of the same name: rename one")
        self._nodes = nodes
        self._of_target: dict[str, Cluster] = {}
        self._of_page: dict[int, Cluster] = {}
        for table, cluster in zip(tables, self.clusters, strict=True):
            for target in (*(canonical(url, fold_slashes=fold_slashes) for url in table.urls), *table.patterns):
                if self._of_target.setdefault(target, cluster) is cluster:
                    watch.add(target)

    def join(self, target: str, page: int) -> None:
        """A page that a target stands for."""
        cluster = self._of_target.get(target)
        if cluster is not None and page not in self._of_page:
            self._of_page[page] = cluster
            cluster.join(page)

    def of(self, page: int) -> Cluster | None:
        """The page's cluster."""
        return self._of_page.get(page)

    def url(self, page: int) -> str:
        return self._nodes[page >> 32].partition.url(page & 0xFFFF_FFFF)

    def joint(self, page: int, importance: float, rate: float) -> tuple[float, float]:
        """(importance, rate) by which a page that was just read is dated; its own where it is in no cluster."""
        cluster = self._of_page.get(page)
        return (importance, rate) if cluster is None else cluster.joint(page, importance, rate)

    def read(self, page: int, now: float, due: int) -> Aligned | None:
        """A page was read and dated; when its cluster is due, and whom to call. None: it is in no cluster."""
        cluster = self._of_page.get(page)
        return None if cluster is None else cluster.read(page, now, due)

    def dump(self) -> dict[str, list[float]]:
        return {cluster.name: cluster.dump() for cluster in self.clusters}

    def load(self, state: Mapping[str, list[float]]) -> None:
        """After a restart, when all members have joined."""
        for cluster in self.clusters:
            if cluster.name in state:
                cluster.load(state[cluster.name], self._read(cluster))

    def _read(self, cluster: Cluster) -> dict[int, tuple[float, float, float]]:
        """Members that were read -> (importance, rate, when)."""
        found = {}
        for page in cluster.members:
            row = self._nodes[page >> 32].partition.row(page & 0xFFFF_FFFF)
            if row is not None and row.reads and row.rate:
                importance = row.marks[-1].importance if row.marks else 1.0
                found[page] = importance, row.rate, float(row.last_read)
        return found
