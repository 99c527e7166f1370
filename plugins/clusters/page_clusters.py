"""The clusters of the settings, over all partitions of the process: their members, and when they are read together.

A page belongs to the first cluster that names it. They are found again at each start (frontier/watch.py);
rounds, dates and what was late are stored with partition 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.configs.schema import ClusterTable as Settings
from xyro.frontier.batch import Settled
from xyro.frontier.watch import Watch, scan
from xyro.metadata.states import State
from xyro.refresh.clusters import Aligned, Cluster
from xyro.wire.errors import InputError
from xyro.wire.ids import LocalPage, PageId, local_page, owner_of
from xyro.wire.messages import Priority, Submit
from xyro.wire.text import stamp
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PageClusters:
    """Takes part in the turns of all nodes (frontier/hooks.py): `joint` where a page is dated, `read` after it was."""

    def __init__(self, tables: Sequence[Settings], frontiers: Sequence[Frontier], fold_slashes: bool = True) -> None:
        """InputError: two of a name, or a URL that is none."""
        self.clusters = [Cluster(table.name, table.window) for table in tables]
        if len({cluster.name for cluster in self.clusters}) < len(self.clusters):
            raise InputError("settings: [[clusters]]: two of the same name: rename one")
        self._nodes = frontiers
        self.watch = Watch(frontiers, self.join)
        self._of_target: dict[str, Cluster] = {}
        self._of_page: dict[PageId, Cluster] = {}
        for table, cluster in zip(tables, self.clusters, strict=True):
            for target in (*(canonical(url, fold_slashes=fold_slashes) for url in table.urls), *table.patterns):
                if self._of_target.setdefault(target, cluster) is cluster:
                    self.watch.add(target)
        for frontier in frontiers:
            frontier.hooks.basis.append(self.joint)
            frontier.hooks.settled.append(partial(self._settled, frontier))
            frontier.hooks.why.append(partial(self._why, frontier))
        frontiers[0].hooks.keep("clusters", self.dump)

    def recover(self) -> None:
        """Once all nodes have recovered: find the pages of the targets, then go on with the rounds that were stored."""
        for frontier in self._nodes:
            for target, page in scan(frontier.partition, self.watch.targets):
                self.watch.take(target, page)
        self.load(self._nodes[0].hooks.stored.get("clusters", {}))

    async def run(self) -> None:
        """Nothing to do beside the turns."""

    def status(self) -> dict[str, Any]:
        """The field `clusters` of `xyro status`."""
        return {"clusters": [cluster.report() for cluster in self.clusters]}

    def join(self, target: str, page: PageId) -> None:
        """A page that a target stands for."""
        cluster = self._of_target.get(target)
        if cluster is not None and page not in self._of_page:
            self._of_page[page] = cluster
            cluster.join(page)

    def cluster_of(self, page: PageId) -> Cluster | None:
        """The page's cluster."""
        return self._of_page.get(page)

    def url(self, page: PageId) -> str:
        return self._nodes[owner_of(page)].partition.url(local_page(page))

    def joint(self, page: PageId, importance: float, rate: float) -> tuple[float, float]:
        """(importance, rate) by which a page that was just read is dated; its own where it is in no cluster."""
        cluster = self._of_page.get(page)
        return (importance, rate) if cluster is None else cluster.joint(page, importance, rate)

    def read(self, page: PageId, now: float, due: int) -> Aligned | None:
        """A page was read and dated; when its cluster is due, and whom to call. None: it is in no cluster."""
        cluster = self._of_page.get(page)
        return None if cluster is None else cluster.read(page, now, due)

    def _settled(self, frontier: Frontier, settled: Sequence[Settled], now: float) -> None:
        """Members that were read bring the others along."""
        id_of, schedule = frontier.partition.id_of, frontier.scheduler.schedule
        for member in settled:
            if member.visit.state is State.READ:
                due = int(frontier.columns["due"][member.page])
                aligned = self.read(id_of(member.page), now, due)
                if aligned is not None:
                    if aligned.due and aligned.due != due:
                        schedule.put_due(member.page, aligned.due)
                    self._call(frontier, aligned.call)

    def _call(self, frontier: Frontier, pages: Sequence[PageId]) -> None:
        """Order pages, wherever they live."""
        number, states = frontier.partition.number, frontier.partition.states
        own = [local_page(page) for page in pages if owner_of(page) == number]
        readable = [page for page in own if states[page] in (State.READ, State.UNREAD)]
        frontier.requests.order(readable, Priority.ORDERED)
        if others := tuple(self.url(page) for page in pages if owner_of(page) != number):
            frontier.requests.order_elsewhere(Submit(others, Priority.ORDERED, seed=False))

    def _why(self, frontier: Frontier, page: LocalPage, now: float) -> list[str]:
        cluster = self.cluster_of(frontier.partition.id_of(page))
        if cluster is None:
            return []
        return [
            f"It is in cluster {cluster.name} of {len(cluster.members):,} pages (importance {cluster.importance:.3g}, "
            f"{cluster.rate:.3g} changes a day), read together: the last round took {cluster.spread:.1f} s of the "
            f"window's {cluster.window:g}, the next is due {stamp(cluster.due)}."
        ]

    def dump(self) -> dict[str, list[float]]:
        return {cluster.name: cluster.dump() for cluster in self.clusters}

    def load(self, state: Mapping[str, list[float]]) -> None:
        """After a restart, when all members have joined."""
        for cluster in self.clusters:
            if cluster.name in state:
                cluster.load(state[cluster.name], self._read(cluster))

    def _read(self, cluster: Cluster) -> dict[PageId, tuple[float, float, float]]:
        """Members that were read -> (importance, rate, when)."""
        found = dict[PageId, tuple[float, float, float]]()
        for page in cluster.members:
            row = self._nodes[owner_of(page)].partition.row(local_page(page))
            if row is not None and row.reads and row.rate:
                importance = row.marks[-1].importance if row.marks else 1.0
                found[page] = importance, row.rate, float(row.last_read)
        return found
