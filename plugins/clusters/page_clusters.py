"""The clusters of the settings in one partition: the members that live here, and when they are read together.

A page belongs to the first cluster that names it. Members are found again at each start (frontier/targets.py). The
home partition has the rounds of each cluster: the others tell it of their members and of each read, and are told dates,
whom to call, and the cluster's importance and rate, by which they date their members until they hear more
(cluster_messages.py). Rounds, dates and what was late are stored with the home partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xyro.configs.schema import ClusterTable as Settings
from xyro.frontier.batch import Settled
from xyro.frontier.targets import MOST_PAGES, Targets, scan
from xyro.metadata.states import State
from xyro.plugins.clusters.cluster_messages import ClusterMembers, ClusterReads, ClusterRound
from xyro.refresh.clusters import Cluster
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME, LocalPage, PageId, join, local_page, owner_of, page_range
from xyro.wire.messages import Priority
from xyro.wire.text import figure, stamp
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PageClusters:
    """Takes part in the turns of a partition: `joint` where a page is dated, `_settled` after it was.

    In the home partition a cluster has all members; elsewhere those of the partition, with the sums of the whole.
    """

    def __init__(self, frontier: Frontier, tables: Sequence[Settings], fold_slashes: bool = True) -> None:
        """InputError: two of a name, or a URL that is none."""
        targets = cluster_targets(tables, fold_slashes)
        self.clusters = [Cluster(table.name, table.window) for table in tables]
        self.frontier = frontier
        self.targets = Targets()
        self._number = frontier.partition.number
        self._home = self._number == HOME
        self._of_target: dict[str, int] = {}
        self._of_page: dict[PageId, int] = {}
        self._found: Counter[str] = Counter()
        """pages of each target"""
        self._sizes = [0] * len(tables)
        """members of each cluster, as the home partition told"""
        for number, target in targets:
            if self._of_target.setdefault(target, number) == number:
                self.targets.add(target)
        hooks = frontier.hooks
        hooks.recover.append(self._recover)
        hooks.born.append(self._born)
        hooks.basis.append(self.joint)
        hooks.settled.append(self._settled)
        hooks.why.append(self._why)
        if self._home:
            hooks.keep("clusters", self.dump)
            hooks.status["clusters"] = lambda now: [cluster.report() for cluster in self.clusters]
            frontier.commands.handle(ClusterMembers, self._meet)
            frontier.commands.handle(ClusterReads, self._hear)
        else:
            frontier.commands.handle(ClusterRound, self._follow)

    async def run(self) -> None:
        """Nothing to do beside the turns."""

    # -- members -------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Find the pages of the targets, then go on with the rounds that were stored."""
        found = [page for target, page in scan(self.frontier.partition, self.targets) if self._join(target, page)]
        if self._home:
            self.load(self.frontier.hooks.stored.get("clusters", {}))
        else:
            self._tell_members(found)

    def _born(self, first: LocalPage, urls: Sequence[str]) -> None:
        """New pages; those of other partitions are for these to tell of."""
        states, found = self.frontier.partition.states, []
        for page, url in zip(page_range(first, len(urls)), urls, strict=True):
            if states[page] != State.FOREIGN:
                found += [page for target in self.targets.names(url) if self._join(target, page)]
        if found and not self._home:
            self._tell_members(found)

    def _join(self, target: str, page: LocalPage) -> bool:
        """Take a page that a target stands for into its cluster; tell whether it is new there."""
        number, page_id = self._of_target[target], self.frontier.partition.id_of(page)
        if page_id in self._of_page or self._found[target] >= MOST_PAGES:
            return False
        self._found[target] += 1
        self._of_page[page_id] = number
        self.clusters[number].join(page_id)
        return True

    def _tell_members(self, pages: Sequence[LocalPage]) -> None:
        parts: dict[int, list[LocalPage]] = {}
        for page in pages:
            parts.setdefault(self._of_page[join(self._number, page)], []).append(page)
        for number, part in parts.items():
            past = [self._last_read(page) for page in part]
            importances, rates, reads = zip(*past, strict=True)
            members = ClusterMembers(0, self._number, number, tuple(part), importances, rates, reads)
            self.frontier.hooks.post(HOME, members)

    def _last_read(self, page: LocalPage) -> tuple[float, float, float]:
        """(importance, rate, when) of a page's last read; zeros if there was none."""
        row = self.frontier.partition.row(page)
        if row is None or not row.reads or not row.rate:
            return 0.0, 0.0, 0.0
        return (row.marks[-1].importance if row.marks else 1.0), row.rate, float(row.last_read)

    # -- reads ---------------------------------------------------------------------------------------------------

    def joint(self, page: PageId, importance: float, rate: float) -> tuple[float, float]:
        """(importance, rate) by which a page that was just read is dated; its own where it is in no cluster."""
        number = self._of_page.get(page)
        return (importance, rate) if number is None else self.clusters[number].joint(page, importance, rate)

    def _settled(self, settled: Sequence[Settled], now: float) -> None:
        """Members that were read bring the others along."""
        reads: dict[int, list[tuple[LocalPage, float, float, int]]] = {}
        for order in settled:
            number = self._of_page.get(join(self._number, order.page))
            if number is not None and order.visit.state is State.READ:
                due = int(self.frontier.columns["due"][order.page])
                if self._home:
                    self._align(number, join(HOME, order.page), now, due)
                else:
                    importance, rate = self.clusters[number].share(join(self._number, order.page))
                    reads.setdefault(number, []).append((order.page, importance, rate, due))
        for number, part in reads.items():
            pages, importances, rates, dues = zip(*part, strict=True)
            found = ClusterReads(0, self._number, number, pages, importances, rates, dues, now)
            self.frontier.hooks.post(HOME, found)

    def _align(self, number: int, page: PageId, now: float, due: int) -> None:
        """A member was read, wherever it lives: give it the cluster's date, and call the others if a round begins."""
        cluster = self.clusters[number]
        aligned = cluster.read(page, now, due)
        owner, dated = owner_of(page), bool(aligned.due and aligned.due != due)
        parts: dict[int, list[LocalPage]] = {owner: []}
        for other in aligned.call:
            parts.setdefault(owner_of(other), []).append(local_page(other))
        for partition, call in parts.items():
            own = (local_page(page),) if dated and owner == partition else ()
            if partition == HOME:
                self._date(own, aligned.due)
                self._order(call)
            else:
                sums = cluster.importance, cluster.rate, cluster.weighed, len(cluster.members)
                times = cluster.due, cluster.first, cluster.last
                self.frontier.hooks.post(partition, ClusterRound(0, number, own, tuple(call), *sums, *times))

    def _date(self, pages: Sequence[LocalPage], due: int) -> None:
        for page in pages:
            self.frontier.scheduler.schedule.put_due(page, due)

    def _order(self, pages: Sequence[LocalPage]) -> None:
        states = self.frontier.partition.states
        readable = [page for page in pages if states[page] in (State.READ, State.UNREAD)]
        self.frontier.requests.order(readable, Priority.ORDERED)

    # -- messages ------------------------------------------------------------------------------------------------

    def _meet(self, command: ClusterMembers) -> None:
        """Members of another partition, as it found them."""
        cluster = self.clusters[command.cluster]
        facts = zip(command.pages, command.importances, command.rates, command.reads, strict=True)
        for page, importance, rate, last_read in facts:
            member = join(command.partition, page)
            cluster.join(member)
            if last_read:
                cluster.restore(member, importance, rate, last_read)

    def _hear(self, command: ClusterReads) -> None:
        """Members of another partition were read."""
        cluster = self.clusters[command.cluster]
        facts = zip(command.pages, command.importances, command.rates, command.dues, strict=True)
        for page, importance, rate, due in facts:
            member = join(command.partition, page)
            cluster.join(member)
            cluster.joint(member, importance, rate)
            self._align(command.cluster, member, command.read_at, due)

    def _follow(self, command: ClusterRound) -> None:
        """The home partition gives members a date, and calls others."""
        cluster = self.clusters[command.cluster]
        cluster.importance, cluster.rate, cluster.weighed = command.importance, command.rate, command.weighed
        cluster.due, cluster.first, cluster.last = command.due, command.first, command.last
        self._sizes[command.cluster] = command.size
        self._date(command.dated, command.due)
        self._order(command.call)

    # -- looks and state -----------------------------------------------------------------------------------------

    def _why(self, page: LocalPage, now: float) -> list[str]:
        number = self._of_page.get(join(self._number, page))
        if number is None:
            return []
        cluster = self.clusters[number]
        size = len(cluster.members) if self._home else self._sizes[number]
        return [
            f"It is in cluster {cluster.name} of {size:,} pages (importance {cluster.importance:.3g}, "
            f"{figure(cluster.rate)} changes a day), read together: the last round took {cluster.spread:.1f} s of the "
            f"window's {cluster.window:g}, the next is due {stamp(cluster.due)}."
        ]

    def dump(self) -> dict[str, list[float]]:
        return {cluster.name: cluster.dump() for cluster in self.clusters}

    def load(self, state: Mapping[str, list[float]]) -> None:
        """After a restart, when the members of this partition have joined."""
        for cluster in self.clusters:
            if cluster.name in state:
                cluster.load(state[cluster.name], self._reads(cluster))

    def _reads(self, cluster: Cluster) -> dict[PageId, tuple[float, float, float]]:
        """Members that were read -> (importance, rate, when)."""
        past = {page: self._last_read(local_page(page)) for page in cluster.members}
        return {page: read for page, read in past.items() if read[2]}


def cluster_targets(tables: Sequence[Settings], fold_slashes: bool) -> list[tuple[int, str]]:
    """The URLs and patterns of clusters, each with the number of its cluster. InputError: two clusters of a name, or a
    URL that is none."""
    if len({table.name for table in tables}) < len(tables):
        raise InputError("settings: [[clusters]]: two of the same name: rename one")
    return [
        (number, target)
        for number, table in enumerate(tables)
        for target in (*(canonical(url, fold_slashes=fold_slashes) for url in table.urls), *table.patterns)
    ]
