"""Gathers the views of all partitions of a process; only the wiring of a running or a stopped crawl makes it.

What it hands on are copies of one moment (views.py, partition_status.py): nobody behind it reaches a partition. In
a cluster these would come from each node by messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from xyro.refresh.plan_part import PlanPart
from xyro.service.views.extensions import ViewExtension
from xyro.service.views.freshness_report import freshness_report
from xyro.service.views.limits import limits
from xyro.service.views.partition_status import PartitionStatus, count_states, foreign_parts, partition_status
from xyro.service.views.summary import states, summary
from xyro.service.views.views import View, Views
from xyro.wire.errors import InputError
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.configs.schema import RefreshSettings
    from xyro.frontier.frontier import Frontier


class CrawlViews:
    """The views of one process. Call between two turns; of one commit boundary where that is held."""

    def __init__(self, frontiers: Sequence[Frontier], stopped: bool = False) -> None:
        """stopped: nothing changes while they are looked at."""
        self._frontiers = frontiers
        self._stopped = stopped

    def views(self, now: float = 0.0, copied: bool = True, only: Collection[int] | None = None) -> Views:
        """The pages. now: seconds since 1970; without it no page says how stale it is. Close it (`with`). copied: they
        may be read when the crawl goes on, which costs O(pages). only: the partitions to look at, None for all.

        InputError: no partition is here (a node of a cluster that has none yet)."""
        chosen = [each for each in self._frontiers if only is None or each.partition.number in only]
        if not chosen:
            raise InputError("no partition is here yet")
        return Views([View(frontier, now, copied and not self._stopped) for frontier in chosen])

    def statuses(self, now: float) -> list[PartitionStatus]:
        """The figures of each partition. now: seconds since 1970."""
        asked: dict[int, set[str]] = {}
        for frontier in self._frontiers:
            for url in foreign_parts(frontier):
                asked.setdefault(partition_of(host_of(url), frontier.partitions), set()).add(url)
        return [partition_status(each, now, asked.get(each.partition.number, ())) for each in self._frontiers]

    def states(self) -> dict[str, int]:
        """Count pages by the name of their state."""
        return states(count_states(frontier) for frontier in self._frontiers)

    def plan_part(self, now: float) -> PlanPart:
        """Return what `xyro plan` computes from, as of now."""
        return PlanPart.merged(
            PlanPart(
                each.scheduler.bandwidth.population,
                each.freshness.calibration,
                each.freshness.expectation(now),
                each.scheduler.most_reads,
            )
            for each in self._frontiers
        )

    @property
    def refreshed_pages(self) -> int:
        """Count the pages that are read again."""
        return sum(each.scheduler.bandwidth.population.pages for each in self._frontiers)

    @property
    def refresh(self) -> RefreshSettings:
        """The settings by which pages are refreshed."""
        return self._frontiers[0].scheduler.settings.refresh

    def stopped_status(self, extensions: Sequence[ViewExtension], now: float) -> dict[str, Any]:
        """The fields of `xyro status` of a stopped crawl."""
        parts = self.statuses(now)
        for part, frontier in zip(parts, self._frontiers, strict=True):
            for extension in extensions:
                part.extensions.update(extension.stored(frontier) if extension.stored else {})
        return status_fields(parts, extensions, now)


def status_fields(
    parts: Sequence[PartitionStatus],
    extensions: Sequence[ViewExtension],
    now: float,
    running: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The fields of `xyro status`, with those of plug-ins, and of what is happening now where it runs."""
    fields = {**summary(parts), **freshness_report(parts, now), "running": running is not None}
    for extension in extensions:
        if extension.status is not None:
            fields |= extension.status(parts, now)
    fields |= running or {}
    return {"limits": limits(fields), **fields}
