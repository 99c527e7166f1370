"""Names the hosts and pages of a partition that something is wrong with, for `xyro status` and what it says is wrong.

Columns and tables in memory are looked through, and at most SAMPLE rows are read: nothing is counted while pages pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from xyro.metadata import rows
from xyro.metadata.hosts import FOLDERS
from xyro.metadata.states import FOLDER, State
from xyro.wire.ids import local_pages
from xyro.wire.text import stamp
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

SAMPLE = 32
"""pages whose rows are read for the classes of their failures: those that are tried again last"""
FEW = 5
"""hosts of a kind that are named"""
FAILURES = 2
"""of a host, in a row, from which on it is named"""


class HostTrouble(Struct, frozen=True):
    """A host that is left alone: paused or blocked by a person, challenged by its vendor, or failing."""

    kind: str
    host: str
    detail: str
    """vendor of a challenge, or number of failures"""
    unread: int
    until: str | None


class Troubles(Struct, frozen=True):
    """The troubles of one partition."""

    hosts: tuple[HostTrouble, ...]
    failed: Mapping[str, str]
    """failure class -> the URL of a page that failed so"""
    breeding: int
    """unread pages of patterns of poor standing"""
    breeder: str
    """the host of one of them"""


def partition_troubles(frontier: Frontier, now: float) -> Troubles:
    """Look a partition over."""
    breeding, breeder = _breeding(frontier)
    return Troubles(tuple(_first(_hosts(frontier, now))), _failed(frontier), breeding, breeder)


def trouble_fields(parts: Iterable[Troubles]) -> dict[str, Any]:
    """The fields `troubled_hosts`, `failed_pages` and `breeding` of a status, from all partitions."""
    found = list(parts)
    hosts = _first(trouble for part in found for trouble in part.hosts)
    return {
        "troubled_hosts": [
            {"kind": row.kind, "host": row.host, "detail": row.detail, "unread": row.unread, "until": row.until}
            for row in hosts
        ],
        "failed_pages": {name: url for part in found for name, url in part.failed.items()},
        "breeding": {
            "unread": sum(part.breeding for part in found),
            "host": max(found, key=lambda part: part.breeding).breeder if found else "",
        },
    }


def _first(troubles: Iterable[HostTrouble]) -> list[HostTrouble]:
    """The FEW of each kind with most unread pages."""
    every = list(troubles)
    kinds = dict.fromkeys(trouble.kind for trouble in every)
    return [
        each
        for kind in kinds
        for each in nlargest(FEW, (trouble for trouble in every if trouble.kind == kind), key=lambda row: row.unread)
    ]


def _hosts(frontier: Frontier, now: float) -> Iterator[HostTrouble]:
    hosts = frontier.partition.hosts
    for number, mask in hosts.masks.items():
        if mask.vendor and mask.until > now:
            unread = int(hosts.waiting[number])
            yield HostTrouble("challenged", hosts.names[number], mask.vendor, unread, stamp(mask.until))
    for number, row in hosts.clocks.items():
        unread = int(hosts.waiting[number])
        if row.hold:
            yield HostTrouble(row.hold, row.name, "", unread, None)
        elif row.failures >= FAILURES and row.next_at > now and unread:
            yield HostTrouble("failing", row.name, str(row.failures), unread, stamp(row.next_at))


def _failed(frontier: Frontier) -> dict[str, str]:
    """Failure classes of the pages that are tried again last, each with a URL."""
    columns, n = frontier.columns, frontier.columns.n
    state = columns["state"][:n]
    pages = np.flatnonzero((state == State.ERROR) | (state == State.FAILED))
    if len(pages) > SAMPLE:
        due = columns["due"][:n][pages]
        pages = pages[np.argpartition(due, len(pages) - SAMPLE)[-SAMPLE:]]
    found: dict[str, str] = {}
    for page in local_pages(pages):
        packed = frontier.partition.get(rows.REFRESH.key(page))
        if packed and (error := rows.unpack_refresh(packed).error):
            found.setdefault(error, frontier.partition.url(page))
    return found


def _breeding(frontier: Frontier) -> tuple[int, str]:
    """Unread pages of patterns of poor standing, and the host of one."""
    standing = frontier.partition.standing
    if not standing.any_poor:
        return 0, ""
    poor = standing.poor_slots(np.arange(FOLDERS, dtype=np.uint16))
    if not poor.any():
        return 0, ""
    columns, n = frontier.columns, frontier.columns.n
    pages = np.flatnonzero(poor[columns[FOLDER][:n]] & (columns["state"][:n] == State.UNREAD))
    if not len(pages):
        return 0, ""
    return len(pages), authority(frontier.partition.url(local_pages(pages[-1:])[0]))
