"""`xyro audit`: every invariant of the stored state, checked on one commit boundary, from the stored rows.

The cash equation over all partitions, to the unit:

    sum of effective cash of known pages + virtual page + transfers that their receiver has not applied
        = 65,536 x known pages + units that a restored partition paid out twice and has not taken back yet
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from xyro.frontier.outbox import HELD_FROM
from xyro.metadata import rows
from xyro.metadata.states import CLASS_MASK, CLASS_SHIFT, LEASED, WANTED, State
from xyro.opic.cash import UNIT
from xyro.opic.focus import CLASSES
from xyro.refresh.policy import Spread
from xyro.service.views.extensions import AuditCheck, ViewExtension
from xyro.service.views.views import View, Views
from xyro.wire.codec import decode
from xyro.wire.errors import CodecError, XyroError
from xyro.wire.ids import LocalPage
from xyro.wire.messages import CashTransfer
from xyro.wire.urls import authority, host_of, partition_of

MAX_LISTED = 50
"""violations that are listed; the others are counted"""


class PartitionAudit(msgspec.Struct):
    """The findings of an audit in some partitions, of one commit boundary; those of all together are an audit."""

    pages: int
    cash: int
    virtual: int
    violations: list[str]
    """of each partition by itself"""
    more: int
    """further ones"""
    transfers: list[tuple[int, int, int, int]]
    """(source, target, number, units) of the outboxes"""
    applied: list[tuple[int, int, int]]
    """(source, target, number) of the last transfer that a target has applied"""
    sent: list[tuple[int, int, int]]
    """(source, target, number) of the last one that a source has sent"""
    partitions: list[int] = []
    excess: int = 0
    """units that are too many since a partition was restored from a backup, and are still to be taken back"""
    counted: dict[int, int] = {}
    """partition -> its known pages, as it last told partition 0"""


def audit(views: Views, extensions: Sequence[ViewExtension] = ()) -> dict[str, Any]:
    """The report of `xyro audit --json`; the checks of the extensions are made after our own."""
    return combined_audit([audit_part(views.views, extensions)])


def audit_part(views: list[View], extensions: Sequence[ViewExtension] = ()) -> PartitionAudit:
    """Audit some partitions of a crawl, all of one commit boundary."""
    outbox = _Outbox(views)
    checks = (*CHECKS, *(extension.audit for extension in extensions if extension.audit is not None))
    found = _violations(views, checks, outbox)
    violations = list(islice(found, MAX_LISTED))
    return PartitionAudit(
        pages=sum(int(view.own.sum()) for view in views),
        cash=sum(int(view.cash.sum()) for view in views),
        virtual=sum(view.pot for view in views),
        violations=violations,
        more=sum(1 for _ in found),
        transfers=[(t.source, t.target, t.seq, _units(t)) for t in outbox.transfers],
        applied=[
            (rows.INBOX.split(key), view.partition.number, int.from_bytes(value, "big"))
            for view in views
            for key, value in view.store.scan(rows.INBOX.prefix)
        ],
        sent=[(view.partition.number, target, seq) for view in views for target, seq in view.sent.items()],
        partitions=[view.partition.number for view in views],
        excess=sum(view.excess for view in views),
        counted={source: pages for view in views for source, pages in view.told_pages.items()},
    )


def combined_audit(parts: Sequence[PartitionAudit], missing: Sequence[str] = ()) -> dict[str, Any]:
    """The report of all partitions; missing: sentences about those that did not answer."""
    applied = {(source, target): seq for part in parts for source, target, seq in part.applied}
    sent = {(source, target): seq for part in parts for source, target, seq in part.sent}
    transfers = [transfer for part in parts for transfer in part.transfers]
    in_flight = sum(units for source, target, seq, units in transfers if seq > applied.get((source, target), 0))
    pages, cash = sum(part.pages for part in parts), sum(part.cash for part in parts)
    virtual = sum(part.virtual for part in parts)
    excess = sum(part.excess for part in parts)
    total, expected = cash + virtual + in_flight, UNIT * pages + excess
    found: Iterator[str] = (each for part in parts for each in part.violations)
    if not missing:
        found = chain(found, _sequences(sent, transfers, applied))
        if total != expected:
            found = chain([f"cash: {total:,} units where {expected:,} were minted ({total - expected:+,})"], found)
    violations = list(islice(found, MAX_LISTED))
    if more := sum(1 for _ in found) + sum(part.more for part in parts):
        violations.append(f"and {more:,} more")
    return {
        "ok": not violations and not missing,
        **({"missing": list(missing)} if missing else {}),
        "pages": pages,
        "cash_total": total,
        "cash_expected": expected,
        "virtual": virtual,
        "in_flight": in_flight,
        **({"excess": excess} if excess else {}),
        "violations": violations,
    }


class _Outbox:
    """The stored transfers that are on their way between partitions, and a sentence for each damaged row."""

    def __init__(self, views: list[View]) -> None:
        self.transfers: list[CashTransfer] = []
        self.damage: list[str] = []
        for view in views:
            for key, value in view.store.scan(rows.OUTBOX.prefix):
                self._note(view.partition.number, rows.OUTBOX.split(key), value)

    def _note(self, source: int, key: tuple[int, int], value: bytes) -> None:
        try:
            transfer = decode(value)
        except CodecError as error:
            self.damage.append(f"partition {source}: transfer {key[1]} to {key[0]}: {error}")
            return
        if isinstance(transfer, CashTransfer) and (transfer.source, transfer.target, transfer.seq) == (source, *key):
            self.transfers.append(transfer)
        else:
            self.damage.append(f"partition {source}: under transfer {key[1]} to {key[0]} lies something else")


def _units(transfer: CashTransfer) -> int:
    return transfer.virtual + sum(item.cash for item in transfer.items)


def _violations(views: list[View], checks: Sequence[AuditCheck], outbox: _Outbox) -> Iterator[str]:
    for view in views:
        for check in checks:
            for violation in _readable(check, view):
                yield f"partition {view.partition.number}: {violation}"
    yield from outbox.damage


def _readable(check: AuditCheck, view: View) -> Iterator[str]:
    """The violations that a check finds; a row that cannot be read is one, and ends the check."""
    try:
        yield from check(view)
    except XyroError as error:
        yield str(error)


def _columns(view: View) -> Iterator[str]:
    """Hot columns are within their ranges."""
    if (view.cash < 0).any():
        yield f"page {int(np.flatnonzero(view.cash < 0)[0])} has less than no cash"
    foreign = ~view.own
    if view.keys[foreign].any() and view.store.get(HELD_FROM) is None:
        yield "cash lies on a page of another partition"
    if int(foreign.sum()) != view.foreign:
        yield f"{int(foreign.sum())} pages of other partitions, {view.foreign} were counted"
    if view.n and int(view.state.max()) > max(State):
        yield f"page {int(view.state.argmax())} is in no state"
    if view.n and int(view.host.max()) >= view.hosts:
        yield f"page {int(view.host.argmax())} is booked under host {int(view.host.max())}, which does not exist"
    if not np.isfinite(view.importance).all() or (view.importance < 0).any():
        yield "an importance is negative or no number"


def _classes(view: View) -> Iterator[str]:
    """The virtual page counts the pages of each class as the columns have them; odd classes are those of UNREAD."""
    if view.counts is None:
        return
    classes = (view.flags & CLASS_MASK) >> CLASS_SHIFT
    if classes[~view.own].any():
        yield "a page of another partition has a class"
    counted = np.bincount(classes[view.own], minlength=CLASSES)[1:].tolist()
    for number, (here, stored) in enumerate(zip(counted, view.counts, strict=True), 1):
        if here != stored:
            yield f"class {number} at the virtual page: {here} pages, {stored} were counted"
    wrong = view.own & (classes % 2 != (view.state == State.UNREAD)) if view.by_class else classes > 0
    if wrong.any():
        page = int(np.flatnonzero(wrong)[0])
        yield f"page {page} is in class {classes[page]} at the virtual page, which is none of its"


def _map(view: View) -> Iterator[str]:
    """Map-Data is dense; URL -> page and page -> URL are inverse; every page lives where its host does."""
    count = 0
    find, names = view.partition.url_index.find_one, view.partition.hosts.names
    partitions = view.partition.facts["partitions"]
    for key, value in view.store.scan(rows.MAP.prefix):
        page, url = rows.MAP.split(key), rows.unpack_map(value)
        if page >= view.n:
            continue  # minted after this boundary was drawn
        if page != count:
            yield f"Map-Data lacks page {count}"
            count = page
        count += 1
        if find(url) != page:
            yield f"page {page} ({url}) is not found by its URL"
        if view.own[page] and partition_of(host_of(url), partitions) != view.partition.number:
            yield f"page {page} ({url}) belongs to another partition"
        if view.host[page] < view.hosts and names[view.host[page]] != authority(url):
            yield f"page {page} ({url}) is booked under host {names[view.host[page]]}"
    if count != view.n:
        yield f"Map-Data has {count} pages, the columns {view.n}"


def _clashes(view: View) -> Iterator[str]:
    """The side table of clashes names pages of just these URLs."""
    for key, value in view.store.scan(rows.CLASH.prefix):
        url, page = rows.CLASH.split(key), LocalPage(int.from_bytes(value, "big"))
        if page >= view.n or view.url(page) != url:
            yield f"the clash {url} names page {page}, which is another one"


def _refresh(view: View) -> Iterator[str]:
    """A read page has its row, an unread one has none that says it was read; S is the sum of the weights."""
    weights, read = [], np.zeros(view.n, np.bool_)
    for key, value in view.store.scan(rows.REFRESH.prefix):
        page, row = rows.REFRESH.split(key), rows.unpack_refresh(value)
        weights.append(row.weight)
        if page >= view.n:
            yield f"Refresh-Data of page {page}, which does not exist"
            continue
        read[page] = row.reads > 0
        if row.changes > row.reads or row.first_read > row.last_read > 0:
            yield (
                f"page {page}: {row.changes} changes in {row.reads} reads, first {row.first_read}, last {row.last_read}"
            )
    missing = (view.state == State.READ) & ~read
    if missing.any():
        yield f"page {int(np.flatnonzero(missing)[0])} is read but has no Refresh-Data"
    early = (view.state == State.UNREAD) & read
    if early.any():
        yield f"page {int(np.flatnonzero(early)[0])} was read but is unread"
    total = Spread.from_weights(weights)
    if total.dump() != view.spread:
        yield f"S is {Spread.load(view.spread).total}, the weights add up to {total.total}"


def _links(view: View) -> Iterator[str]:
    """Parents and children exist, children are distinct."""
    for key, value in view.store.scan(rows.LINK.prefix):
        page, children = rows.LINK.split(key), rows.unpack_links(value)
        if page >= view.n:
            yield f"Link-Data of page {page}, which does not exist"
        if len(children) and int(children.max()) >= view.n:
            yield f"page {page} links to page {int(children.max())}, which does not exist"
        if len(np.unique(children)) != len(children):
            yield f"page {page} has a child twice"


def _orders(view: View) -> Iterator[str]:
    """Check that the pages marked as ordered are those with a stored order."""
    stored = {rows.WANTED.split(key) for key, _ in view.store.scan(rows.WANTED.prefix)}
    marked = set(np.flatnonzero(view.flags & WANTED).tolist())
    for page in sorted(stored ^ marked)[:MAX_LISTED]:
        yield f"page {page} is {'stored' if page in stored else 'marked'} as ordered, but not both"


def _hosts(view: View) -> Iterator[str]:
    """The counters of hosts are those of the columns."""
    leased = view.flags & LEASED != 0
    waiting = (view.state == State.UNREAD) & ~leased
    for pages, stored, condition in ((waiting, view.waiting, "wait"), (leased, view.leased, "are out")):
        counted = np.bincount(view.host[pages], minlength=view.hosts)[: view.hosts]
        for number in np.flatnonzero(counted != stored)[:MAX_LISTED].tolist():
            name = view.partition.hosts.names[number]
            yield f"host {name}: {counted[number]} pages {condition}, {stored[number]} were counted"


def _waits(view: View) -> Iterator[str]:
    """Loads that wait do so for pages that exist, of a read that was made; each has its body, and nothing else has."""
    with_body = {rows.WAITING.split(key) for key, _ in view.store.scan(rows.WAITING.prefix)}
    for key, value in view.store.scan(rows.STATUS.prefix):
        page, wait = rows.STATUS.split(key), rows.unpack_wait(value)
        if page >= view.n or not wait.needs or max(wait.needs) >= view.n:
            yield f"the load of page {page} waits for {wait.needs}"
            continue
        if wait.url != (url := view.url(page)):
            yield f"the load of page {page} ({url}) is one of {wait.url}"
        if wait.epoch > (epoch := view.row(page).epoch):
            yield f"the load of page {page} waits since read {wait.epoch}, the last one was {epoch}"
        if bool(wait.body) == (page in with_body):
            yield f"the load of page {page} waits {'with two bodies' if wait.body else 'without its body'}"
        with_body.discard(page)
    for page in sorted(with_body)[:MAX_LISTED]:
        yield f"page {page} has a body that waits, but no load does"


CHECKS: tuple[AuditCheck, ...] = (_columns, _classes, _map, _clashes, _refresh, _links, _orders, _hosts, _waits)
"""made in this order in each partition"""


def _sequences(
    sent: Mapping[tuple[int, int], int],
    transfers: Sequence[tuple[int, int, int, int]],
    applied: Mapping[tuple[int, int], int],
) -> Iterator[str]:
    """Check that every transfer sent was applied or lies in its outbox, and that none was applied that was not sent."""
    waiting: dict[tuple[int, int], set[int]] = {}
    for source, target, seq, _ in transfers:
        waiting.setdefault((source, target), set()).add(seq)
    for pair in sorted({*sent, *applied, *waiting}):
        last, done, out = sent.get(pair, 0), applied.get(pair, 0), waiting.get(pair, set())
        name = f"partition {pair[0]} to {pair[1]}"
        if done > last or max(out, default=0) > last:
            yield f"{name}: {last} transfers were sent, {max(done, *out, 0)} are there"
        lost = set(range(done + 1, last + 1)) - out
        if lost:
            yield f"{name}: transfer {min(lost)} is lost"
