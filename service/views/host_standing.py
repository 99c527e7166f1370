"""Tells the standing of hosts: what the crawl has granted them, and what waits for want of it (metadata/hosts.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from xyro.metadata.hosts import POOR, PRICE, PROOF, QUERIES
from xyro.metadata.states import FOLDER, State
from xyro.wire.ids import LocalPage
from xyro.wire.sizes import sized
from xyro.wire.text import LEAST_ROOM, figure, middle_cut, printable
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
    "requests": int,
    "bytes": int,
    "seconds": float,
}
"""fields of a host's row"""
COLUMNS = {
    "read": "read",
    "orders": "orders",
    "unread": "unread",
    "most_unread": "most",
    "poor": "poor",
    "credit": "credit",
    "introduced": "brought",
    "waiting": "waiting",
    "failures": "fails",
}
"""numbers in a row of `xyro hosts`, and their headings"""
COSTS = ("bytes", "requests", "seconds")
"""what a host has cost so far, by which `xyro hosts --by` orders"""
TABLE = ("host", *COLUMNS, *COSTS, "held", "site")
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
        """`orders` given to pages of it that were unread then; `most_unread` pages that it may have; `poor` ones now;
        new hosts for which its domain has `credit`, and which it `introduced`; `waiting` links that its pages show; the
        [[sites]] entry that holds; `requests` for its pages, the `bytes` received and the `seconds` spent on them."""
        frontier, waiting_links = self.frontier, self.frontier.pages.waiting_links
        name = frontier.partition.hosts.names[host]
        cost = frontier.partition.costs.of_host(host)
        credit, _, introduced = frontier.partition.introductions.state(frontier.partition.hosts.domain(host))
        return {
            "orders": frontier.partition.standing.of_host(host),
            "most_unread": waiting_links.most_unread(host),
            "poor": int(self._poor[host]),
            "credit": round(credit / PRICE, 1),
            "introduced": introduced,
            "waiting": self._waiting[host],
            "site": next((site.host for site in self._sites if fits(name, site.host)), None),
            "requests": cost.requests,
            "bytes": cost.bytes,
            "seconds": round(cost.seconds, 3),
        }


def shown_by(frontier: Frontier, url: str) -> str | None:
    """Return the URL of a page with a waiting link to `url`, None where there is none among the first MOST_PAGES."""
    for page in islice(frontier.ledger.withheld, MOST_PAGES):
        if url in frontier.pages.waiting_links.stored(page):
            return frontier.partition.url(page)
    return None


def waiting_sentences(frontier: Frontier, page: LocalPage) -> Iterator[str]:
    """Sentences for `why` of a page of a pattern of poor standing, or of whose links some wait."""
    waiting_links = frontier.pages.waiting_links
    standing = frontier.partition.standing
    if standing.is_poor(page):
        slot = frontier.columns[FOLDER].item(page)
        query = slot >= QUERIES
        which = "Its pattern (a path with a query)" if query else "Its folder"
        proved = standing.bred.item(slot) >= PROOF
        proof = "and made such pages for a name that nobody can have made" if proved else "and lead on to more of them"
        proof = "" if query else f", {proof}"
        spent = "" if standing.poor_reads >= 1 else ", and have had them for now"
        fault = f"breeds: its pages are met on each other, hardly elsewhere{proof}"
        if standing.copied(np.array([slot], np.uint16))[0]:
            fault = "is worth little: almost all of its pages that were read show the same"
        yield (
            f"{which} {fault}. All such patterns together get "
            f"{POOR:.0%} of the reads{spent}. Where nothing else is left to read they are read, too: in a daemon one "
            "by one, ever more slowly."
        )
    if count := frontier.ledger.withheld.get(page, 0):
        credit = frontier.partition.introductions.state(waiting_links.domain_of(page))[0] / PRICE
        yield (
            f"{count:,} of its links wait: they lead to hosts with as many unread pages as they may have, or to hosts "
            f"that nobody knows, of which its domain may introduce {credit:.0f} more (`xyro hosts`), or they are more "
            "than one turn looks at."
        )


def first_hosts(rows: Iterable[Mapping[str, Any]], count: int, by: str = "waiting") -> list[dict[str, Any]]:
    """The rows of the hosts that wait most, then of those with most orders, or of those that cost most `by` one of
    COSTS; none whose pages are all out of scope and were never asked for."""
    crawled = (row for row in rows if row["in_scope"] or row["held"] or row["requests"])
    first = nlargest(count, crawled, key=lambda row: (row[by], row["orders"]))
    return [{name: row[name] for name in TABLE} for row in first]


def hosts_table(rows: Sequence[Mapping[str, Any]], width: int = 0, by: str = "waiting") -> str:
    """Rows as text, a line each; below it one where the host is paused or blocked, and one for its [[sites]] entry.
    by: one of COSTS shows what the hosts have cost. width: columns of the terminal, 0 = no bound; a name that does not
    fit is cut in the middle."""
    if not rows:
        return "No host in scope is known."
    if by in COSTS:
        heads: Sequence[str] = tuple(_COST_CELLS)
        cells = [[cell(row) for cell in _COST_CELLS.values()] for row in rows]
    else:
        heads = tuple(COLUMNS.values())
        cells = [[f"{row[name]:,.0f}" for name in COLUMNS] for row in rows]
    wide = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    names = [printable(str(row["host"]), 260) for row in rows]
    room = max(map(len, ("host", *names)))
    if width:
        room = min(room, max(width - sum(wide) - len(wide), LEAST_ROOM))

    def line(name: str, cells: Iterable[str]) -> str:
        numbers = " ".join(f"{cell:>{size}}" for cell, size in zip(cells, wide, strict=True))
        return f"{middle_cut(name, room):{room}} {numbers}"

    lines = [line("host", heads)]
    for name, row, numbers in zip(names, rows, cells, strict=True):
        lines.append(line(name, numbers))
        if row["held"]:
            lines.append(f"    {row['held']}: `xyro resume {printable(name, 260)}` lifts it")
        if row["site"]:
            lines.append(f"    [[sites]] {middle_cut(printable(str(row['site']), 260), 66)}")
    return "\n".join(lines)


_COST_CELLS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "received": lambda row: sized(row["bytes"]),
    "requests": lambda row: f"{row['requests']:,}",
    "seconds": lambda row: figure(row["seconds"]),
    "each": lambda row: sized(row["bytes"] / row["requests"]) if row["requests"] else "-",
    "s each": lambda row: figure(row["seconds"] / row["requests"], 2) if row["requests"] else "-",
    "read": lambda row: f"{row['read']:,}",
    "unread": lambda row: f"{row['unread']:,}",
}
"""headings of `xyro hosts --by bytes`, and what stands below them"""
