"""Takes the figures of one partition for `xyro status`; summary.py and freshness_report.py bring those of all together.

A PartitionStatus holds values alone, copied at one moment: nothing of it leads back to the partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from xyro.metadata.documents import Archive, CountsRow
from xyro.metadata.states import State
from xyro.opic.page_parts import parts
from xyro.refresh.calibration import Calibration
from xyro.refresh.dated_pages import PageTotals
from xyro.refresh.delays import Delays
from xyro.refresh.expected import Expected
from xyro.refresh.meter import AuditPart
from xyro.service.views.claim_evidence import count_doubted_hosts
from xyro.service.views.troubles import Troubles, partition_troubles
from xyro.service.views.wait_reasons import part_fates, waits_for
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier


class PartitionStatus(Struct, frozen=True):
    """The figures of one partition."""

    number: int
    known: int
    reads: int
    read_rate: float
    """reads a second, lately"""
    states: tuple[int, ...]
    """pages by the number of their state"""
    hosts: int
    doubted_hosts: int
    held_hosts: Mapping[str, int]
    """hosts that a person holds, by how"""
    waiting_links: int
    """links in scope that wait for the standing of their hosts"""
    challenged_hosts: Mapping[str, int]
    """hosts that show a challenge in place of their pages, by vendor"""
    waiting_loads: int
    waits: Mapping[str, int]
    """loads by the state of the part that they wait for, of parts that this partition has"""
    foreign_waits: Mapping[str, int]
    """loads by the URL of the part that they wait for, of parts of other partitions"""
    part_fates: Mapping[str, str]
    """states of the parts that others wait for, by URL"""
    documents: CountsRow
    turnovers: float
    spends: int
    scope: str
    stale_reports: int
    expected: Expected
    totals: PageTotals
    calibration: Calibration
    detection: Delays
    discovery: Delays
    audits: AuditPart
    missed_audits: int
    dated: int
    planned: float
    """reads a second that refresh plans with; 0 where nothing is read again, as in a stopped crawl"""
    promised: float
    spent: float
    refreshed_pages: int
    late_cost: float
    troubles: Troubles
    extensions: dict[str, Any]
    """figures of plug-ins, by their key (`hooks.status`)"""


def partition_status(frontier: Frontier, now: float, asked: Iterable[str] = ()) -> PartitionStatus:
    """Take the figures of a partition. asked: URLs of its parts that loads of other partitions wait for."""
    partition, scheduler, freshness = frontier.partition, frontier.scheduler, frontier.freshness
    waits, foreign_waits = waits_for(frontier)
    totals = PageTotals()
    totals.merge(freshness.totals)
    calibration = Calibration()
    calibration.merge(freshness.calibration)
    return PartitionStatus(
        number=partition.number,
        known=frontier.ledger.known_pages,
        reads=frontier.reads,
        read_rate=scheduler.bandwidth.meter.rate(now),
        states=count_states(frontier),
        hosts=len(partition.hosts)
        if frontier.partitions == 1
        else sum(_is_own(frontier, name) for name in partition.hosts.names),
        doubted_hosts=count_doubted_hosts(frontier),
        held_hosts=Counter(
            row.hold for row in partition.hosts.clocks.values() if row.hold and _is_own(frontier, row.name)
        ),
        waiting_links=frontier.pages.waiting_links.links(),
        challenged_hosts=Counter(mask.vendor for mask in partition.hosts.masks.values() if mask.vendor),
        waiting_loads=len(frontier.loads.waits),
        waits=waits,
        foreign_waits=foreign_waits,
        part_fates=part_fates(frontier, asked),
        documents=Archive(partition.get).counts(),
        turnovers=frontier.ledger.clock.turnovers,
        spends=frontier.ledger.spends,
        scope=frontier.scope.mode,
        stale_reports=frontier.stale,
        expected=freshness.expectation(now),
        totals=totals,
        calibration=calibration,
        detection=freshness.detection.all,
        discovery=freshness.discovery.all,
        audits=freshness.audits.window.whole,
        missed_audits=freshness.audits.missed,
        dated=len(scheduler.due_queue.folders) + len(scheduler.due_queue.overdue),
        planned=scheduler.bandwidth.reads_per_second if scheduler.schedule.refreshing else 0.0,
        promised=scheduler.bandwidth.deadline_reads.rate(now),
        spent=freshness.spent.rate(now),
        refreshed_pages=scheduler.bandwidth.population.pages,
        late_cost=scheduler.settings.refresh.late_cost,
        troubles=partition_troubles(frontier, now),
        extensions={key: figures(now) for key, figures in frontier.hooks.status.items()},
    )


def foreign_parts(frontier: Frontier) -> Iterator[str]:
    """URLs of the parts of other partitions that loads of this one wait for."""
    partition = frontier.partition
    return (partition.url(need) for need in frontier.loads.needed if partition.states[need] == State.FOREIGN)


def count_states(frontier: Frontier) -> tuple[int, ...]:
    """Count pages by the number of their state."""
    states, count = frontier.columns["state"], len(State)
    counts = (np.bincount(states[part], minlength=count)[:count] for part in parts(frontier.columns.n))
    return tuple(sum(counts, np.zeros(count, np.int64)).tolist())


def _is_own(frontier: Frontier, name: str) -> bool:
    """Tell whether a host (host[:port]) is one of this partition: it also knows hosts that its pages link to."""
    owner = partition_of(host_of(f"http://{name}/"), frontier.partitions) if frontier.partitions > 1 else 0
    return owner == frontier.partition.number
