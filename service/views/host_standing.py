"""Tells the standing of hosts: what the crawl has granted them, and what waits for want of it (metadata/hosts.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata.hosts import POOR, PRICE, QUERIES
from xyro.metadata.states import FOLDER, State
from xyro.wire.ids import LocalPage
from xyro.wire.text import printable
from xyro.wire.urls import fits

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

HOST_STANDING: dict[str, type] = {
    "orders": int,
    "most_unread": int,
    "poor": int,
    "credit": float,
    "introduced": int,
    "waiting": int,
    "site": str,
}
"""fields of a host's row"""
TABLE = {
    "host": 40,
    "read": 9,
    "orders": 9,
    "unread": 9,
    "most_unread": 13,
    "poor": 7,
    "credit": 11,
    "introduced": 12,
    "waiting": 9,
    "failures": 10,
    "site": 20,
}
"""columns of `xyro hosts`, and their widths"""
MOST_PAGES = 256
"""pages whose waiting links are looked through for a URL: some milliseconds each"""


class HostStanding:
    """The standing of the hosts of one partition, by their numbers."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        hosts_of = frontier.partition.hosts_of
        self._sites = frontier.settings.sites
        self._waiting: Counter[int] = Counter()
        for page, count in frontier.ledger.withheld.items():
            self._waiting[hosts_of[page]] += count
        columns, n = frontier.columns, frontier.columns.n
        unread = np.flatnonzero(columns["state"][:n] == State.UNREAD)
        poor = unread[frontier.partition.standing.poor(unread)]
        self._poor = np.bincount(columns["host"][poor], minlength=len(frontier.partition.hosts))

    def fields(self, host: int) -> dict[str, Any]:
        """`orders` of its unread pages so far; `most_unread` pages that it may have; `poor` ones now; new hosts for
        which its domain has `credit`, and which it `introduced`; `waiting` links that its pages show; the [[sites]]
        entry that holds."""
        frontier, waiting_links = self.frontier, self.frontier.pages.waiting_links
        name = frontier.partition.hosts.names[host]
        credit, _, introduced = frontier.partition.introductions.state(frontier.partition.hosts.domain(host))
        return {
            "orders": frontier.partition.standing.of_host(host),
            "most_unread": waiting_links.most_unread(host),
            "poor": int(self._poor[host]),
            "credit": round(credit / PRICE, 1),
            "introduced": introduced,
            "waiting": self._waiting[host],
            "site": next((site.host for site in self._sites if fits(name, site.host)), None),
        }


def shown_by(frontier: Frontier, url: str) -> str | None:
    """Return the URL of a page with a waiting link to `url`, None where there is none among the first MOST_PAGES."""
    for page in islice(frontier.ledger.withheld, MOST_PAGES):
        if url in frontier.pages.waiting_links.stored(page):
            return frontier.partition.url(page)
    return None


def waiting_sentences(frontier: Frontier, page: LocalPage) -> Iterator[str]:
    """Sentences for `why` of a page of a pattern that breeds, or of whose links some wait."""
    waiting_links = frontier.pages.waiting_links
    standing = frontier.partition.standing
    if standing.is_poor(page):
        query = frontier.columns[FOLDER][page] >= QUERIES
        which = "Its pattern (a path with a query)" if query else "Its folder"
        proof = "" if query else ", and made such pages for a name that nobody can have made"
        spent = "" if standing.poor_reads >= 1 else ", and have had them for now"
        yield (
            f"{which} breeds: its pages are met on each other, hardly elsewhere{proof}. All such patterns together get "
            f"{POOR:.0%} of the reads{spent}."
        )
    if count := frontier.ledger.withheld.get(page, 0):
        credit = frontier.partition.introductions.state(waiting_links.domain_of(page))[0] / PRICE
        yield (
            f"{count:,} of its links wait: they lead to hosts with as many unread pages as they may have, or to hosts "
            f"that nobody knows, of which its domain may introduce {credit:.0f} more (`xyro hosts`), or they are more "
            "than one turn looks at."
        )


def first_hosts(rows: Iterable[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """The rows of the hosts that wait most, then of those with most orders."""
    first = nlargest(count, rows, key=lambda row: (row["waiting"], row["orders"]))
    return [{name: row[name] for name in TABLE} for row in first]


def hosts_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as text, a line each."""
    lines = ["".join(f"{name:>{width}}" for name, width in TABLE.items())]
    for row in rows:
        site = printable(str(row["site"] or "-"), TABLE["site"] - 1)
        values = {**row, "host": printable(str(row["host"]), TABLE["host"] - 1), "site": site}
        lines.append("".join(f"{values[name]:>{width}}" for name, width in TABLE.items()))
    return "\n".join(lines)
