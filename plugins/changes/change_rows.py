"""The rows of the stream of changes: a change of a page, and how far a sink has come; and a change as people read it.

kind          the read showed                                                     signature
new           a page that is read for the first time, or is back after it was gone  of now
changed       another content than the last read                                  before and now
moved         a redirect, and it leads elsewhere than before                      before and now (of its target)
gone          404, 410 or the host's soft 404, of a page that was there           before
unrecorded    (no page: reads were made while `[changes] record` was off)         -
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from xyro.metadata.rows import RefreshRow, Row, reader
from xyro.service.views.staleness import REPLACED, stale_of
from xyro.wire.ids import LocalPage, join
from xyro.wire.text import stamp
from xyro.wire.urls import authority
from xyro.wire.uses import names_of


class ChangeKind(enum.IntEnum):
    """See the table above."""

    NEW = 1
    CHANGED = 2
    GONE = 3
    MOVED = 4
    UNRECORDED = 5


class ChangeRow(Row, frozen=True):
    """One change, under its number."""

    epoch: int
    """with partition and number it names this change alone: it rises when a copy of the data goes on"""
    kind: ChangeKind
    time: float
    """of the commit group, seconds since 1970; never less than that of the change before"""
    page: LocalPage = LocalPage(0)
    url: str = ""
    old: bytes = b""
    """signature before; empty where there was none"""
    new: bytes = b""
    """signature now; empty of a page that is gone"""
    importance: float = 0.0
    """mean 1 over all known pages, as of this read"""
    rate: float = 0.0
    """changes a day, as believed now"""
    status: int = 0
    target: str = ""
    """where a page that moved leads"""
    modified: int = 0
    """what Last-Modified says, seconds since 1970; 0 where it says nothing"""
    before: int = 0
    """the read before, seconds since 1970: the change came after it; 0 where there was none"""
    refused: int = 0
    """uses that its robots.txt refused when it was read (wire/uses.py)"""


class SinkRow(Row, frozen=True):
    """The progress of one sink."""

    cursor: str
    """up to here all was delivered, left out by its filter or by a gap, or is a dead letter (cursors.py)"""
    delivered: int = 0
    """changes"""
    gaps: int = 0
    """gap records that it was given"""
    missed: int = 0
    """changes that these left out"""
    dead: int = 0
    """changes that it refused for good"""
    file: int = 0
    """of a sink of files: number of the file that is written"""
    length: int = 0
    """its bytes that are whole"""
    dead_file: int = 0
    dead_length: int = 0


def stale_change(change: ChangeRow, row: RefreshRow, state: int, now: float) -> float | None:
    """`stale` of a line (service/views/staleness.py): the probability that the page shows something else by now than
    the read of this change. row, state: of the page now. None: the read showed none, or the page is not there now."""
    if change.kind in (ChangeKind.GONE, ChangeKind.UNRECORDED):
        return None
    return stale_of(state, row, now) if row.signature == change.new else REPLACED


unpack_change = reader(ChangeRow)
unpack_sink = reader(SinkRow)


def change_line(partition: int, number: int, row: ChangeRow, cursor: str, stale: float | None) -> dict[str, Any]:
    """The change as a line of `xyro changes`. cursor: where a reader who has it goes on."""
    kind = row.kind.name.lower()
    head = {"cursor": cursor, "partition": partition, "epoch": row.epoch, "number": number, "time": stamp(row.time)}
    if row.kind is ChangeKind.UNRECORDED:
        return {**head, "change": kind}
    return {
        **head,
        "change": kind,
        "page": join(partition, row.page),
        "url": row.url,
        "host": authority(row.url),
        "signature_old": row.old.hex() or None,
        "signature": row.new.hex() or None,
        "importance": round(row.importance, 6),
        "rate": round(row.rate, 6),
        "stale": stale,
        "text_changed": None,
        "text_diff": None,
        "status": row.status or None,
        "location": row.target or None,
        "modified": stamp(row.modified),
        "refused": ",".join(names_of(row.refused)) or None,
    }


def gap_line(partition: int, gap: Mapping[str, int], cursor: str) -> dict[str, Any]:
    """A gap as a line: changes `first` ... `last` were left out, since the stream has a bound of bytes."""
    return {"cursor": cursor, "partition": partition, "change": "gap", **gap, "count": gap["last"] - gap["first"] + 1}
