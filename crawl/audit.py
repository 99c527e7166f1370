"""`xyro audit`: every invariant of design.md section 3, checked on one commit boundary, from the stored rows.

The cash equation over all partitions, to the unit:

    sum of effective cash of known pages + virtual page + transfers that their receiver has not applied
        = 65,536 x known pages
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crawl.views import View, Views
from metadata import keys, links, rows
from metadata.states import LEASED, WANTED, State
from opic.cash import UNIT
from refresh.interval import Spread
from wire.codec import decode
from wire.messages import CashTransfer
from wire.urls import authority, host_of, partition_of

MOST = 50
"""violations told in full"""


def audit(views: Views) -> dict[str, Any]:
    """The report of `xyro audit --json`."""
    transfers = [transfer for view in views.views for transfer in _outbox(view)]
    in_flight = sum(_units(t) for t in transfers if not _applied(views, t))
    cash = sum(int(view.cash.sum()) for view in views.views)
    virtual = sum(view.pot for view in views.views)
    found = list(_violations(views, transfers))
    total, expected = cash + virtual + in_flight, UNIT * views.known
    if total != expected:
        found.insert(0, f"cash: {total:,} units where {expected:,} were minted ({total - expected:+,})")
    told = found[:MOST] + ([f"and {len(found) - MOST} more"] if len(found) > MOST else [])
    return {
        "ok": not found,
        "pages": views.known,
        "cash_total": total,
        "cash_expected": expected,
        "virtual": virtual,
        "in_flight": in_flight,
        "violations": told,
    }


def _outbox(view: View) -> Iterator[CashTransfer]:
    for _, value in view.store.scan(keys.OUTBOX.prefix):
        transfer = decode(value)
        assert isinstance(transfer, CashTransfer)
        yield transfer


def _units(transfer: CashTransfer) -> int:
    return transfer.virtual + sum(item.cash for item in transfer.items)


def _applied(views: Views, transfer: CashTransfer) -> bool:
    stored = views.views[transfer.target].store.get(keys.INBOX.key(transfer.source))
    return stored is not None and int.from_bytes(stored, "big") >= transfer.seq


def _violations(views: Views, transfers: list[CashTransfer]) -> Iterator[str]:
    for view in views.views:
        name = f"partition {view.partition.number}"
        for check in (_columns, _map, _refresh, _links, _wanted, _hosts, _waits):
            for violation in check(view):
                yield f"{name}: {violation}"
    yield from _sequences(transfers)


def _columns(view: View) -> Iterator[str]:
    """Hot columns are within their ranges."""
    if (view.cash < 0).any():
        yield f"page {int(np.flatnonzero(view.cash < 0)[0])} has less than no cash"
    foreign = ~view.own
    if view.keys[foreign].any():
        yield "cash lies on a page of another partition"
    if int(foreign.sum()) != view.foreign:
        yield f"{int(foreign.sum())} pages of other partitions, {view.foreign} were counted"
    if view.n and int(view.state.max()) > max(State):
        yield f"page {int(view.state.argmax())} is in no state"
    if not np.isfinite(view.importance).all() or (view.importance < 0).any():
        yield "an importance is negative or no number"


def _map(view: View) -> Iterator[str]:
    """Map-Data is dense; URL -> page and page -> URL are inverse; every page lives where its host does."""
    count = 0
    find = view.partition.urls.find_one
    partitions = view.partition.facts["partitions"]
    for key, value in view.store.scan(keys.MAP.prefix):
        page, url = keys.MAP.split(key), rows.unpack_map(value)
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
        if view.partition.hosts.names[view.host[page]] != authority(url):
            yield f"page {page} ({url}) is booked under host {view.partition.hosts.names[view.host[page]]}"
    if count != view.n:
        yield f"Map-Data has {count} pages, the columns {view.n}"


def _refresh(view: View) -> Iterator[str]:
    """A read page has its row, an unread one has none that says it was read; S is the sum of the weights."""
    weights, read = [], np.zeros(view.n, np.bool_)
    for key, value in view.store.scan(keys.REFRESH.prefix):
        page, row = keys.REFRESH.split(key), rows.unpack_refresh(value)
        weights.append(row.weight)
        if page >= view.n:
            yield f"Refresh-Data of page {page}, which does not exist"
            continue
        read[page] = row.reads > 0
        if row.changes > row.reads or row.first_read > row.last_read:
            yield f"page {page}: {row.changes} changes in {row.reads} reads, first {row.first_read}, last {row.last_read}"
    missing = (view.state == State.READ) & ~read
    if missing.any():
        yield f"page {int(np.flatnonzero(missing)[0])} is read but has no Refresh-Data"
    early = (view.state == State.UNREAD) & read
    if early.any():
        yield f"page {int(np.flatnonzero(early)[0])} was read but is unread"
    total = Spread.of(weights)
    if total.dump() != view.spread:
        yield f"S is {Spread.load(view.spread).total}, the weights add up to {total.total}"


def _links(view: View) -> Iterator[str]:
    """Children exist and are distinct."""
    for key, value in view.store.scan(keys.LINK.prefix):
        children = links.unpack(value).children
        if len(children) and int(children.max()) >= view.n:
            yield f"page {keys.LINK.split(key)} links to page {int(children.max())}, which does not exist"
        if len(np.unique(children)) != len(children):
            yield f"page {keys.LINK.split(key)} has a child twice"


def _wanted(view: View) -> Iterator[str]:
    """What people and loaders ordered is stored, and nothing else is."""
    stored = {keys.LEASE.split(key) for key, _ in view.store.scan(keys.LEASE.prefix)}
    marked = set(np.flatnonzero(view.flags & WANTED).tolist())
    for page in sorted(stored ^ marked)[:MOST]:
        yield f"page {page} is {'stored' if page in stored else 'marked'} as ordered, but not both"


def _hosts(view: View) -> Iterator[str]:
    """The counters of hosts are those of the columns."""
    hosts = view.partition.hosts
    waiting = (view.state == State.UNREAD) & (view.flags & LEASED == 0)
    counted = np.bincount(view.host[waiting], minlength=len(hosts.names))[: len(hosts.names)]
    wrong = np.flatnonzero(counted != view.waiting[: len(counted)])
    for number in wrong[:MOST].tolist():
        yield f"host {hosts.names[number]}: {counted[number]} pages wait, {view.waiting[number]} were counted"


def _waits(view: View) -> Iterator[str]:
    """Loads that wait do so for pages that exist."""
    for key, value in view.store.scan(keys.STATUS.prefix):
        page, needs = keys.STATUS.split(key), rows.unpack_wait(value).needs
        if page >= view.n or not needs or max(needs) >= view.n:
            yield f"the load of page {page} waits for {needs}"


def _sequences(transfers: list[CashTransfer]) -> Iterator[str]:
    """The outbox has no gaps."""
    last: dict[tuple[int, int], int] = {}
    for transfer in transfers:
        pair = transfer.source, transfer.target
        if pair in last and transfer.seq != last[pair] + 1:
            yield f"the outbox of partition {pair[0]} for {pair[1]} jumps from {last[pair]} to {transfer.seq}"
        last[pair] = transfer.seq
