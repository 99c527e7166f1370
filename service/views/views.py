"""Shows a crawl at one commit boundary: the rows of export, top, why and audit, from a copy of the columns.

A View is cheap to take (columns are copied, the store is pinned), then read at leisure while the crawl goes on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.columns import reserve
from xyro.metadata.documents import Archive, DocumentRow, VersionRow, unpack_document
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import KIND_MASK, KIND_SHIFT, LEASED, NAMES, WANTED, State
from xyro.opic.focus import CLASSES, FocusedPage
from xyro.opic.page_parts import greatest, in_parts, parts
from xyro.service.views import claim_evidence
from xyro.service.views.host_standing import HostStanding
from xyro.service.views.importance_bounds import ImportanceBounds
from xyro.service.views.staleness import THERE, stale_of, staleness
from xyro.wire.ids import LocalPage, PageId, local_pages
from xyro.wire.messages import Kind, Verdict
from xyro.wire.text import stamp
from xyro.wire.urls import authority
from xyro.wire.uses import names_of

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

_NOTHING = RefreshRow()
_AGAIN = (*THERE, State.FAILED, State.DISALLOWED)
"""states in which `due` is the next read"""
NO_SITE: dict[str, None] = dict.fromkeys(("site_rank", "external_inflow", "measured_inflow", "internal_share"))


def verdict_name(verdict: Verdict) -> str:
    """valid, invalid, unvalidated, no-grammar"""
    return verdict.name.lower().replace("_", "-")


class View:
    """One partition. `importance` is as if every page were spent now, not yet normalised over the partitions.

    Columns are those of the crawl itself, good while it stands still; copied, they are of one moment, in some 40 bytes
    a page.
    """

    def __init__(self, frontier: Frontier, now: float, copied: bool = True) -> None:
        """now: seconds since 1970; 0 where nobody asks how stale pages are."""
        self.frontier = frontier
        self.now = now
        self.partition = frontier.partition
        self.scope = frontier.scope
        self.settings = frontier.settings
        self.store = frontier.partition.store.snapshot()
        columns, n = frontier.columns, frontier.columns.n
        keep: Callable[[NDArray[Any]], NDArray[Any]] = _copied if copied else np.asarray
        self.n = n
        self.state: NDArray[np.uint8] = keep(columns["state"][:n])
        self.flags: NDArray[np.uint32] = keep(columns["flags"][:n])
        self.host: NDArray[np.uint32] = keep(columns["host"][:n])
        self.depth: NDArray[np.uint8] = keep(columns["depth"][:n])
        self.due: NDArray[np.uint32] = keep(columns["due"][:n])
        self.keys: NDArray[np.int64] = keep(columns["cash"][:n])
        self.mass = frontier.importance_error.mass.total(n)
        self.known_pages = frontier.ledger.known_pages
        if copied:
            _ = self.importance, self.cash
        self.bounds = ImportanceBounds(frontier, self.importance_of, self.mass, n, copied)
        self.inflow = frontier.ledger.inflow_of_hosts()
        self.spread = frontier.scheduler.bandwidth.spread.dump()
        self.foreign = frontier.ledger.foreign
        self.hosts = len(frontier.partition.hosts)
        self.waiting: NDArray[np.int32] = frontier.partition.hosts.waiting[: self.hosts].copy()
        self.leased: NDArray[np.int32] = frontier.partition.hosts.leased[: self.hosts].copy()
        self.pot = frontier.ledger.virtual.balance
        self.excess = frontier.ledger.excess
        virtual = frontier.ledger.virtual
        counts = virtual.counts[1:] if isinstance(virtual, FocusedPage) else [0] * (CLASSES - 1)
        self.counts: list[int] | None = None if frontier.hooks.renew else counts
        """pages of class 1, 2 ... as the virtual page counts them; None where the next turn makes the classes anew"""
        self.by_class = frontier.ledger.terms.by_class
        self.sent = dict(frontier.outbox.sent)
        self.told_pages = {source: counts.pages for source, counts in frontier.outbox.elsewhere.items()}

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """Pages that are no entries for those of other partitions."""
        own: NDArray[np.bool_] = self.state != State.FOREIGN
        return own

    @cached_property
    def importance(self) -> NDArray[np.float64]:
        """Importance of all pages."""
        return in_parts(self.frontier.ledger.importance, self.n)

    @cached_property
    def cash(self) -> NDArray[np.int64]:
        """Effective cash of all pages; of those of other partitions what waits for them (outbox.py)."""
        return np.where(self.own, self.frontier.ledger.effective(slice(0, self.n)), self.keys)

    def importance_of(self, pages: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Importance of some pages."""
        whole = self.__dict__.get("importance")
        return self.frontier.ledger.importance(pages) if whole is None else whole[pages]

    def importance_at(self, page: LocalPage) -> float:
        """Importance of a page."""
        return float(self.importance_of(slice(page, page + 1))[0])

    def cash_at(self, page: LocalPage) -> int:
        """Effective cash of a page."""
        if "cash" in self.__dict__:
            return int(self.cash[page])
        here = slice(page, page + 1)
        return int(self.frontier.ledger.effective(here)[0]) if self.state[page] != State.FOREIGN else 0

    def close(self) -> None:
        """Let go of the pinned store, and of the copies: nobody collects a ring of them soon."""
        self.store.close()
        self.__dict__.pop("bounds", None)

    def row(self, page: LocalPage) -> RefreshRow:
        found = self.store.get(rows.REFRESH.key(page))
        return rows.unpack_refresh(found) if found else _NOTHING

    @property
    def archive(self) -> Archive:
        """The repository of documents as of this boundary."""
        return Archive(self.store.get)

    def documents(self) -> Iterator[tuple[LocalPage, DocumentRow, VersionRow]]:
        """(page, its versions, the latest one) of every document, by page."""
        archive = self.archive
        for key, value in self.store.scan(rows.DOCUMENT.prefix):
            page, head = rows.DOCUMENT.split(key), unpack_document(value)
            yield page, head, archive.there(page, head.last)

    def url(self, page: LocalPage) -> str:
        return rows.unpack_map(self.store.get(rows.MAP.key(page)) or b"")

    def children(self, page: LocalPage) -> NDArray[np.uint32] | None:
        found = self.store.get(rows.LINK.key(page))
        return None if found is None else rows.unpack_links(found)

    def state_name(self, page: LocalPage) -> str:
        """Return the word that people see."""
        state = State(int(self.state[page]))
        clock = self.partition.hosts.clocks.get(int(self.host[page]))
        if clock is not None and clock.hold == "blocked":
            return "blocked"
        if self.flags[page] & LEASED:
            return "leased"
        return "queued" if self.flags[page] & WANTED else NAMES[state]

    def describe(self, page: LocalPage, mean: float) -> dict[str, Any]:
        """A page as it is stored, with the dates that hold while it is refreshed. mean: importance over all known
        pages."""
        row, url = self.row(page), self.url(page)
        kind = Kind((int(self.flags[page]) & KIND_MASK) >> KIND_SHIFT)
        children = self.children(page)
        due = int(self.due[page])
        regular = self.state[page] in THERE and due
        return {
            "id": self.partition.id_of(page),
            "url": url,
            "host": authority(url),
            "kind": None if kind is Kind.UNKNOWN else kind.name,
            "http_status": row.status or None,
            "state": self.state_name(page),
            "error": row.error or self.why_out(page, url),
            "depth": int(self.depth[page]),
            "importance": round(self.importance_at(page) / mean, 6),
            **self.bounds.fields(page, mean, row.marks, row.last_read),
            "cash": self.cash_at(page),
            "change_rate": round(row.rate, 6) if row.reads else None,
            "rate_from": rate_source(row),
            "stale": self.stale(page, row),
            "interval_s": max(0, due - row.last_read) if regular and row.last_read else None,
            "first_seen": stamp(rows.first_seen(self.store.get(rows.MAP.key(page)) or b"")),
            "first_read": stamp(row.first_read),
            "last_read": stamp(row.last_read),
            "last_change": stamp(row.last_change if row.reads else 0),
            "next_read": stamp(due) if self.state[page] in _AGAIN else None,
            "reads": row.reads,
            "changes": row.changes,
            "out_links": None if children is None else len(children),
            "signature": row.signature.hex() or None,
            "refused": ",".join(names_of(row.refused)) or None,
        }

    def describe_now(self, page: LocalPage, mean: float) -> dict[str, Any]:
        """The same row for `export pages`, `top` and `why`: a crawl that reads nothing again, or does not run, has no
        next reads."""
        row = self.describe(page, mean)
        return row if self.frontier.scheduler.schedule.refreshing else {**row, "interval_s": None, "next_read": None}

    def describe_document(self, page: LocalPage, head: DocumentRow, row: VersionRow, mean: float) -> dict[str, Any]:
        """One row of `export documents`: the latest version of a page."""
        refresh = self.row(page)
        return {
            "id": self.partition.id_of(page),
            "url": self.url(page),
            "kind": row.kind.name,
            "format": row.format or None,
            "version": head.last,
            "versions": head.last - head.first + 1,
            "read_at": stamp(row.read_at),
            "verdict": verdict_name(row.verdict),
            "problems": "\n".join(row.problems) or None,
            "dtd": row.grammars[0] if row.grammars else None,
            "public_id": row.public_id or None,
            "root": row.root or None,
            "size": row.size,
            "depth": row.depth,
            "elements": row.elements,
            "tags": row.tags,
            "parts": len(row.parts),
            "changed": row.changed if row.changed >= 0 else None,
            "digest": row.digest.hex(),
            "mime": row.mime or None,
            "charset": row.charset or None,
            "importance": round(self.importance_at(page) / mean, 6),
            "change_rate": round(refresh.rate, 6) if refresh.reads else None,
            "rate_from": rate_source(refresh),
            "stale": self.stale(page, refresh),
            "refused": ",".join(names_of(refresh.refused)) or None,
        }

    def stale(self, page: LocalPage, row: RefreshRow) -> float | None:
        """Return the probability that a page has changed since it was read; None where it was not, or is not there."""
        return stale_of(int(self.state[page]), row, self.now)

    def why_out(self, page: LocalPage, url: str) -> str | None:
        if self.state[page] not in (State.OUT, State.BLOCKED):
            return None
        scope = self.frontier.scope
        return scope.why_refused(url) or scope.why_out(url, int(self.depth[page])) or None


def rate_source(row: RefreshRow) -> str | None:
    """Say whose changes a page's rate rests on: its own ("reads"), or those of "others" like it while no read has shown
    any of its own; None: it has no rate."""
    return None if not row.reads else "reads" if row.shown else "others"


def _copied(column: NDArray[Any]) -> NDArray[Any]:
    """A copy in memory of its own: what a thread frees otherwise stays with the process."""
    found: NDArray[Any] = reserve(column.dtype, max(len(column), 1))[: len(column)]
    found[:] = column
    return found


class Views:
    """All partitions of a crawl at one commit boundary."""

    def __init__(self, views: list[View]) -> None:
        """views: of each partition, in their order, all of one moment."""
        self.views = views
        self.scope = views[0].scope
        self.settings = views[0].settings
        self.by_number = {view.partition.number: view for view in views}
        self.known_pages = sum(view.known_pages for view in views)
        self.importance_total = total = sum(view.mass.own for view in views)
        self.mean = total / self.known_pages if self.known_pages and total > 0 else 1.0

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        for view in self.views:
            view.close()

    def pages(self) -> Iterator[dict[str, Any]]:
        """Rows of all known pages, by id."""
        for view in self.views:
            for part in parts(view.n):
                for page in local_pages(np.flatnonzero(view.own[part]) + part.start):
                    yield view.describe_now(page, self.mean)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Rows of all documents in the repository, by id: the latest version of each."""
        for view in self.views:
            for page, head, row in view.documents():
                yield view.describe_document(page, head, row, self.mean)

    def links(self) -> Iterator[dict[str, Any]]:
        """One row a stored link: ids and URLs of both ends; `stale`: the page that has it, since it showed the link."""
        for view in self.views:
            for key, value in view.store.scan(rows.LINK.prefix):
                page = rows.LINK.split(key)
                source, stale = view.url(page), view.stale(page, view.row(page))
                for child in local_pages(rows.unpack_links(value)):
                    target = view.url(child)
                    number = view.partition.id_of(child) if view.own[child] else self.find(target)
                    yield {
                        "source": view.partition.id_of(page),
                        "target": number,
                        "source_url": source,
                        "target_url": target,
                        "stale": stale,
                    }

    def hosts(self, site: Callable[[str], Mapping[str, Any]] = lambda name: NO_SITE) -> Iterator[dict[str, Any]]:
        """One row a host: its pages by state, its share of importance, its importance as a site, what politeness and
        people say of it. site: SiteRanking.row_by_name, which takes a pass over all links."""
        for view in self.views:
            hosts, standing = view.partition.hosts, HostStanding(view.frontier)
            count = len(hosts)
            own, host = view.own, view.host

            def per_host(chosen: NDArray[np.bool_], host: NDArray[np.uint32] = host, count: int = count) -> Any:
                return np.bincount(host[chosen], minlength=count)

            pages, read = per_host(own), per_host(view.state == State.READ)
            in_scope = per_host(own & (view.state != State.OUT) & (view.state != State.BLOCKED))
            unread, failed = per_host(view.state == State.UNREAD), per_host(np.isin(view.state, (2, 3, 4)))
            flow = np.bincount(host[own], weights=view.importance[own], minlength=count) / self.mean
            for number in np.flatnonzero(pages).tolist():
                row = hosts.row(number)
                yield {
                    "host": row.name,
                    "pages": int(pages[number]),
                    "in_scope": int(in_scope[number]),
                    "read": int(read[number]),
                    "unread": int(unread[number]),
                    "errors": int(failed[number]),
                    "importance": round(float(flow[number]), 6),
                    **site(row.name),
                    "failures": row.failures,
                    "next_read": stamp(row.next_at),
                    "held": row.hold or None,
                    "challenge": row.masks[0].vendor or None if row.masks else None,
                    "challenges": row.masks[0].times if row.masks else 0,
                    **claim_evidence.claim_fields(hosts, number),
                    **standing.fields(number),
                }

    def top(self, count: int, by: str, now: float) -> list[dict[str, Any]]:
        """The first `count` pages by importance (of all, or of those "read"), cash, importance x stale
        ("stale"), or growth that is not chance ("rising": relative, a turnover of the OPIC clock)."""
        scored: list[tuple[float, LocalPage, View]] = []
        for view in self.views:
            if by == "stale":
                best = self._stalest(view, count, now)
            elif by == "rising":
                rises = ((rise.growth, rise.page) for rise in view.bounds.rising(view.store) if view.own[rise.page])
                best = heapq.nlargest(count, rises)
            else:
                best = [(score, page) for page, score in self._greatest(view, count, by)]
            scored.extend((score, page, view) for score, page in best)
        scored.sort(key=lambda row: -row[0])
        return [
            {**view.describe_now(page, self.mean), "score": round(score, 6)} for score, page, view in scored[:count]
        ]

    def _greatest(self, view: View, count: int, by: str = "importance") -> Iterator[tuple[LocalPage, float]]:
        """The first pages of a partition by importance, all or those read, or by cash."""

        def score(pages: slice) -> NDArray[np.float64]:
            values = view.cash[pages].astype(float) if by == "cash" else view.importance_of(pages) / self.mean
            states = view.state[pages]
            return np.where(np.isin(states, THERE) if by == "read" else states != State.FOREIGN, values, np.nan)

        pages, scores = greatest(score, view.n, count)
        return zip(local_pages(pages), scores.tolist(), strict=True)

    def _stalest(self, view: View, count: int, now: float) -> list[tuple[float, LocalPage]]:
        """Score and page of the `count` stalest. No page scores more than its importance: few rows have to be read."""
        best: list[tuple[float, LocalPage]] = []
        for page, importance in self._descending(view):
            if count <= 0 or (len(best) == count and importance <= best[0][0]):
                break
            if view.state[page] != State.READ:
                continue
            row = view.row(page)
            score = importance * staleness(row.belief, row.last_read, now)
            if len(best) < count:
                heapq.heappush(best, (score, page))
            else:
                heapq.heappushpop(best, (score, page))
        return best

    def _descending(self, view: View) -> Iterator[tuple[LocalPage, float]]:
        """Pages and importances, the greatest first: few are asked for, so more and more are chosen at once."""
        found, wanted = 0, 1 << 14
        while found < view.n:
            chosen = list(self._greatest(view, wanted))
            yield from chosen[found:]
            if len(chosen) < wanted:
                return
            found, wanted = wanted, 8 * wanted

    def find(self, url: str) -> PageId | None:
        """The page id of a URL, None where it is not known."""
        for view in self.views:
            page = view.partition.url_index.find_one(url)
            if 0 <= page < view.n and view.state[page] != State.FOREIGN:  # not `own`: O(1)
                return view.partition.id_of(page)
        return None
