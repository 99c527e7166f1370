"""The standing of a page of which contents are kept: what the index says of it beside them, anew with each read of it.

Also with reads that keep nothing (a 304 where only texts are kept, a 404): so `checked_at`, `importance` and `stale` of
kept contents are those of the last read, and nobody has to ask the crawl for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from xyro.metadata.states import State
from xyro.metadata.visits import GONE
from xyro.refresh.rate_belief import Onset, PageBelief, RatePrior
from xyro.refresh.rate_sums import RateSums
from xyro.service.views.staleness import THERE, staleness

if TYPE_CHECKING:
    from xyro.metadata.rows import RefreshRow
    from xyro.wire.ids import PageId


class PageStanding(NamedTuple):
    """As of the last read."""

    importance: float
    """mean 1 over all known pages"""
    rate: float
    """changes a day"""
    checked: float
    """when it began, seconds since 1970; 0: this was none"""
    refused: int
    """uses that its robots.txt refuses (wire/uses.py)"""
    belief: bytes
    """packed; empty where the page is not there"""
    gone: str
    """why it shows its text no more (gone_reason); empty where it does"""

    @classmethod
    def of_row(cls, row: RefreshRow, state: int, importance: float, checked: float, refused: int) -> PageStanding:
        reason = gone_reason(state == State.DEAD, row.error, row.status)
        return cls(importance, row.rate, checked, refused, packed_belief(row, state), reason)


def write_standings(index: sqlite3.Connection, standings: Mapping[PageId, PageStanding]) -> None:
    """Write those of pages of which something is kept, within a transaction."""
    index.executemany(
        "UPDATE pages SET importance = ?, rate = ?, checked = max(checked, ?) WHERE page = ?",
        ((each.importance, each.rate, each.checked, page) for page, each in standings.items()),
    )
    for table in ("beliefs", "refusals", "gone"):
        index.executemany(f"DELETE FROM {table} WHERE page = ?", ((page,) for page in standings))  # noqa: S608
    index.executemany(
        "INSERT INTO beliefs SELECT page, ? FROM pages WHERE page = ?",
        ((each.belief, page) for page, each in standings.items() if each.belief),
    )
    index.executemany(
        "INSERT INTO refusals SELECT page, ? FROM pages WHERE page = ?",
        ((each.refused, page) for page, each in standings.items() if each.refused),
    )
    index.executemany(
        "INSERT INTO gone SELECT page, ? FROM pages WHERE page = ?",
        ((each.gone, page) for page, each in standings.items() if each.gone),
    )


def gone_reason(dead: bool, error: str, status: int) -> str:
    """Why a page shows its text no more: its class of failure, or that it has `moved`; empty where it does. dead: two
    reads, long enough apart, found it gone."""
    if dead or error in GONE:
        return error or "dead"
    return "moved" if status // 100 == 3 and status != 304 else ""


def kept_stale(belief: bytes | None, checked: float, now: float) -> float | None:
    """`stale` of the text that is kept of a page (service/views/staleness.py)."""
    return round(staleness(_unpack(belief), checked, now), 6) if belief and now else None


def packed_belief(row: RefreshRow, state: int) -> bytes:
    """The belief about a page in this state, as the index has it; empty where it is not there."""
    if not row.last_read or state not in THERE:
        return b""
    belief = row.belief
    onset = (belief.onset.chance, *belief.onset.sums) if belief.onset is not None else ()
    return msgspec.msgpack.encode((belief.prior.code, belief.sums, onset))


def _unpack(packed: bytes) -> PageBelief:
    prior, sums, onset = msgspec.msgpack.decode(packed)
    fork = Onset(onset[0], RateSums(*onset[1:])) if onset else None
    return PageBelief(RateSums(*sums), RatePrior.decode(prior), fork)
