"""Describes evidence for why, export and status: habits, pending claims, what the claims of hosts were worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xyro.metadata.hosts import Hosts
from xyro.metadata.rows import RefreshRow
from xyro.refresh.periodic import unpack
from xyro.refresh.trust import Source, Trust
from xyro.wire.text import figure

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

COLUMNS: dict[str, type] = {"claims": int, "last_modified": str, "trust": str}
"""what `export hosts` says of a host's claims"""


def claim_fields(hosts: Hosts, number: int) -> dict[str, Any]:
    """Return COLUMNS of one host; nulls where it claimed nothing that a read has settled."""
    data = hosts.trust.get(number)
    if not data:
        return dict.fromkeys(COLUMNS)
    trust = Trust.load(data)
    words = ", ".join(f"{kind} {worth:.2f}" for kind, worth in trust.words().items())
    return {"claims": trust.claims, "last_modified": "doubted" if trust.doubted else "used", "trust": words}


def count_doubted_hosts(frontier: Frontier) -> int:
    """Count the hosts of a partition whose Last-Modified is not used."""
    return sum(Trust.load(data).doubted for data in frontier.partition.hosts.trust.values())


def evidence_sentences(row: RefreshRow, hosts: Hosts, host: int, stamp: Callable[[float], str | None]) -> list[str]:
    """Sentences for `why`: the page's habit, its host's Last-Modified, and claims that wait for its next read."""
    sentences: list[str] = []
    if (habit := unpack(row.diary).habit) is not None:
        sentences.append(
            f"It changes {habit}, as its last changes show: it is read just after, as far as its interval allows."
        )
    if Trust.load(hosts.trust.get(host, b"")).doubted:
        sentences.append("Its host's Last-Modified is not used: too many were shown to be wrong.")
    for claim in row.claims:
        trust = Trust.load(hosts.trust.get(claim.host, b"")).weight(Source(claim.source))
        claimed = f"it changes {figure(claim.rate)} times a day" if claim.rate else f"it changed at {stamp(claim.time)}"
        name = Source(claim.source).name.lower().replace("_", "-")
        sentences.append(f"Said of it ({name} of {hosts.names[claim.host]}): {claimed}; such claims weigh {trust:.2f}.")
    return sentences
