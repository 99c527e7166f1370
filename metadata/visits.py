"""The meaning of a report for its page: its next state, the use of its cash, whether it changed. Pure.

the report says                         state        cash                       change rate learns
temporary failure                       ERROR        stays                      nothing
robots.txt forbids                      DISALLOWED   dangling                   nothing
address or port is never contacted      BLOCKED      dangling                   nothing
404, 410 or the host's soft 404         FAILED       dangling                   nothing
the same, confirm_dead s after one      DEAD         dangling                   nothing
a challenge                             (as it was: it says nothing of the page, frontier/impostors.py)
any other final failure                 FAILED       dangling                   nothing
redirect                                READ         spent over its target      whether the target changed
304, or the signature of the last read  READ         spent over stored links    no change
a new signature                         READ         spent over these links     a change (none at the first read)
no signature (half a body)              READ         spent over these links     nothing
body on its way to a loader             READ         stays for the LoadReport   as above
"""

from __future__ import annotations

import enum
import hashlib
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

import msgspec
import numpy as np
from msgspec import Struct

from xyro.metadata.columns import reserve
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import State
from xyro.refresh.rate_belief import PageBelief
from xyro.wire.ids import LocalPage
from xyro.wire.messages import Kind, PageReport

DAY = 86_400.0
CUT = {"length": "too-large", "ratio": "ratio-too-large", "disconnect": "truncated", "time": "truncated"}
"""failure class of a body that was kept though it is not whole, by the word for it (PageReport.truncated)"""
GONE = ("http-404", "http-410", "soft-404")
"""failure classes of a page that is not there"""
REFUSED = ("http-401", "http-403", "http-4xx")
"""failure classes by which a host may block us, and not the page"""
FORBIDDEN = ("robots-disallowed", "content-signal")
"""failure classes of what a robots.txt forbids: the page, or all that it would be read for"""
PLACES = 1 << 16
"""signatures that are remembered"""
BARE = 8
"""links of a page that may have lost most of them"""
_PRIME = 2**61 - 1
_ELSEWHERE = (302, 303, 307)
_NEVER = RefreshRow()


class Spend(enum.Enum):
    """The use of the page's cash with this report."""

    KEEP = "it stays on the page"
    LINKS = "spent over the links of the report"
    STORED = "spent over the stored links"


class Visit(Struct, frozen=True):
    """The meaning of one report."""

    state: State
    spend: Spend
    answered: bool
    """the web answered: the visit counts as a read"""
    changed: bool | None
    """against the last good read; None where it says nothing"""
    signature: bytes


def judge(report: PageReport, row: RefreshRow | None, confirm_dead: float = DAY) -> Visit:
    """Read the table above. `row` is the page's Refresh-Data from before, None for a page never settled.

    confirm_dead: seconds that must lie between two answers 404 or 410 before the page is dead.
    """
    old = row or _NEVER
    if report.error:
        state = _failed(report, old, confirm_dead)
        return Visit(state, Spend.KEEP, report.status > 0, None, old.signature)
    if report.status == 304:
        return Visit(State.READ, Spend.STORED, True, False, old.signature)
    signature = report.signature
    if report.location:
        signature = hashlib.md5(report.location.encode(), usedforsecurity=False).digest()
    if signature and signature == old.signature:
        return Visit(State.READ, Spend.STORED, True, False, signature)
    spend = Spend.KEEP if report.loading else Spend.LINKS
    changed = True if signature and old.signature else None
    return Visit(State.READ, spend, True, changed, signature or old.signature)


def _failed(report: PageReport, old: RefreshRow, confirm_dead: float) -> State:
    if not report.final:
        return State.ERROR
    if report.error in FORBIDDEN:
        return State.DISALLOWED
    if report.error in ("blocked-address", "blocked-port", "only-net"):
        return State.BLOCKED
    if report.error in GONE and old.gone_since and report.ended - old.gone_since >= confirm_dead:
        return State.DEAD
    return State.FAILED


def next_row(
    report: PageReport,
    visit: Visit,
    row: RefreshRow | None,
    belief: PageBelief,
    rate: float,
    weight: float,
    fault: str | None = None,
) -> RefreshRow:
    """Refresh-Data after the report. `belief`, `rate`: after it; `weight`: as it now stands in S.

    fault: what the loader said against the body; None: nothing yet, or it was not asked since the stored one stands.
    """
    old = row or _NEVER
    gone = report.error in GONE
    if not visit.answered or visit.state is not State.READ:
        return _unread_row(report, visit, old, belief, rate, weight, gone, fault)
    if fault is None and visit.spend is Spend.STORED:
        fault = old.fault
    fault = fault or CUT.get(report.truncated, "")
    ended = int(report.ended)
    fresh = report.status != 304
    return RefreshRow(
        first_read=min(old.first_read or ended, ended),  # the clock may have been set back
        last_read=ended,
        last_change=ended if visit.changed or not old.last_read else old.last_change,
        signature=visit.signature,
        reads=old.reads + 1,
        changes=old.changes + (visit.changed is True),
        last_modified=report.last_modified or (old.last_modified if not fresh else ""),
        etag=report.etag or (old.etag if not fresh else ""),
        quiet_days=belief.sums.quiet_days,
        change_days=belief.sums.change_days,
        change_sum=belief.sums.changes,
        rate=rate,
        prior=belief.prior.code,
        onset=() if belief.onset is None else (belief.onset.chance, *belief.onset.sums),
        weight=weight,
        kind=report.kind if fresh else old.kind,
        status=report.status,
        error=fault,
        mime=report.mime if fresh else old.mime,
        size=report.size if fresh else old.size,
        charset=report.charset if fresh else old.charset,
        location=report.location,
        noindex=report.noindex if fresh else old.noindex,
        epoch=report.epoch,
        fault=fault,
        refused=report.refused,
    )


def with_fault(row: RefreshRow, fault: str) -> RefreshRow:
    """The row of a page whose load has ended after its read was reported; a failed order since then stays told.

    A body that was cut stays so, whatever its loader could make of the rest.
    """
    fault = fault or (row.fault if row.fault in CUT.values() else "")
    return msgspec.structs.replace(row, fault=fault, error=fault or ("" if row.error == row.fault else row.error))


def _unread_row(
    report: PageReport,
    visit: Visit,
    old: RefreshRow,
    belief: PageBelief,
    rate: float,
    weight: float,
    gone: bool,
    fault: str | None,
) -> RefreshRow:
    """After a failure: what was known of the page's content stays, and when it was seen. One that is gone was seen."""
    ended = int(report.ended)
    return RefreshRow(
        first_read=min(old.first_read or ended, ended) if visit.answered else old.first_read,
        last_read=ended if gone else old.last_read,
        last_change=old.last_change,
        signature=old.signature,
        reads=old.reads + visit.answered,
        changes=old.changes,
        last_modified=old.last_modified,
        etag=old.etag,
        quiet_days=belief.sums.quiet_days,
        change_days=belief.sums.change_days,
        change_sum=belief.sums.changes,
        rate=rate,
        prior=belief.prior.code,
        onset=() if belief.onset is None else (belief.onset.chance, *belief.onset.sums),
        weight=weight,
        kind=old.kind if old.kind is not Kind.UNKNOWN else report.kind,
        status=report.status or old.status,
        error=fault or report.failure,
        failures=0 if report.final else old.failures + 1,
        gone_since=(old.gone_since or report.ended) if gone else 0.0,
        mime=old.mime or report.mime,
        size=old.size,
        charset=old.charset,
        location=old.location,
        noindex=old.noindex,
        epoch=report.epoch,
        fault=old.fault,
        refused=report.refused if report.error in FORBIDDEN else old.refused,
    )


@lru_cache(maxsize=256)
def http_date(text: str) -> float | None:
    """An HTTP date in seconds since 1970, None where it is not one. Without a zone it is UTC, wherever we are.

    A turn asks twice for each page, and the files of a release are of one second.
    """
    if not text:
        return None
    try:
        when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


class Sightings:
    """Signatures and skeletons that hosts showed lately, each with the page that did. A place holds the last one that
    fell there: memory is bounded, and what was overwritten costs nothing but evidence."""

    def __init__(self) -> None:
        self._keys = reserve(np.uint64, PLACES, scattered=True).data
        self._pages = reserve(np.uint32, PLACES, scattered=True).data

    def strange(
        self, host: int, page: LocalPage, report: PageReport, visit: Visit, row: RefreshRow | None
    ) -> LocalPage | None:
        """The page of the host that showed the same before, if this one shows it for the first time; the page itself,
        if it was read before and now shows hardly a link, is refused or sends elsewhere; None for ordinary pages."""
        read = row is not None and bool(row.signature)
        if report.error:
            return page if read and report.error in REFUSED else None
        if visit.changed is False or (report.kind is not Kind.HTML and not report.location):
            return None
        if report.location:
            elsewhere = read and report.status in _ELSEWHERE and row is not None and not row.location
            if not elsewhere:
                return None
        before = None
        for key in showings(report, row):
            other = self._note(host, key, page)
            before = before if other is None else other
        if before is not None:
            return before
        return page if visit.changed and (report.location or len(report.links.urls) <= BARE) else None

    def _note(self, host: int, key: bytes, page: LocalPage) -> LocalPage | None:
        """Return another page that showed this last; from now on this one did."""
        number = (int.from_bytes(key, "little") + host * 0x9E3779B97F4A7C15) % _PRIME
        place = number % PLACES
        other = LocalPage(self._pages[place]) if self._keys[place] == number else page
        self._keys[place], self._pages[place] = number, page
        return None if other == page else other


def showings(report: PageReport, row: RefreshRow | None) -> set[bytes]:
    """Return the keys by which an answer is known again at another URL: signature and skeleton; of a refusal its class,
    of a redirect its target without the query."""
    if report.error:
        return {f"{report.error} {report.vendor}".encode()}
    if report.location:
        target = report.location.partition("?")[0].encode("utf-8", "replace")
        return {hashlib.md5(target, usedforsecurity=False).digest()}
    if report.status == 304:
        return {row.signature} if row is not None and row.signature else set()
    return {key for key in (report.signature, report.skeleton) if key}
