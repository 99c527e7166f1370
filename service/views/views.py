"""Shows a crawl at one commit boundary: the rows of export, top, why and audit, from a copy of the columns.

A View is cheap to take (columns are copied, the store is pinned), then read at leisure while the crawl goes on.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.documents import Archive, DocumentRow, VersionRow, unpack_document
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import KIND_MASK, KIND_SHIFT, LEASED, NAMES, WANTED, State
from xyro.opic.focus import CLASSES, FocusedPage
from xyro.service.views import claim_evidence
from xyro.service.views.importance_bounds import ImportanceBounds
from xyro.wire.ids import LocalPage, PageId, local_pages
from xyro.wire.messages import Kind, Verdict
from xyro.wire.text import stamp
from xyro.wire.urls import authority

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

_NOTHING = RefreshRow()
_REGULAR = (State.READ, State.ERROR)
_AGAIN = (*_REGULAR, State.FAILED, State.DISALLOWED)
"""states in which `due` is the next read"""
NO_SITE: dict[str, None] = dict.fromkeys(("site_rank", "external_inflow", "measured_inflow", "internal_share"))


def verdict_name(verdict: Verdict) -> str:
    """valid, invalid, unvalidated, no-grammar"""
    return verdict.name.lower().replace("_", "-")


class View:
    """One partition. `importance` is as if every page were spent now, not yet normalised over the partitions."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.partition = frontier.partition
        self.scope = frontier.scope
        self.settings = frontier.settings
        self.store = frontier.partition.store.snapshot()
        columns, n = frontier.columns, frontier.columns.n
        self.n = n
        self.state: NDArray[np.uint8] = columns["state"][:n].copy()
        self.flags: NDArray[np.uint32] = columns["flags"][:n].copy()
        self.host: NDArray[np.uint32] = columns["host"][:n].copy()
        self.depth: NDArray[np.uint8] = columns["depth"][:n].copy()
        self.due: NDArray[np.uint32] = columns["due"][:n].copy()
        self.cash: NDArray[np.int64] = frontier.ledger.effective(slice(0, n)).copy()
        self.keys: NDArray[np.int64] = columns["cash"][:n].copy()
        self.importance: NDArray[np.float64] = frontier.ledger.importance(slice(0, n))
        self.bounds = ImportanceBounds(frontier, self.importance)
        self.inflow = frontier.ledger.inflow_of_hosts()
        self.own: NDArray[np.bool_] = self.state != State.FOREIGN
        self.cash[~self.own] = 0
        self.spread = frontier.scheduler.bandwidth.spread.dump()
        self.foreign = frontier.ledger.foreign
        self.hosts = len(frontier.partition.hosts)
        self.waiting: NDArray[np.int32] = frontier.partition.hosts.waiting[: self.hosts].copy()
        self.leased: NDArray[np.int32] = frontier.partition.hosts.leased[: self.hosts].copy()
        self.pot = frontier.ledger.virtual.balance
        virtual = frontier.ledger.virtual
        counts = virtual.counts[1:] if isinstance(virtual, FocusedPage) else [0] * (CLASSES - 1)
        self.counts: list[int] | None = None if frontier.hooks.renew else counts
        """pages of class 1, 2 ... as the virtual page counts them; None where the next turn makes the classes anew"""
        self.by_class = frontier.ledger.terms.by_class
        self.sent = dict(frontier.outbox.sent)

    def close(self) -> None:
        """Let go of the pinned store."""
        self.store.close()

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
        """One row of `export pages`. mean: importance over all known pages."""
        row, url = self.row(page), self.url(page)
        kind = Kind((int(self.flags[page]) & KIND_MASK) >> KIND_SHIFT)
        children = self.children(page)
        due = int(self.due[page])
        regular = self.state[page] in _REGULAR and due
        return {
            "id": self.partition.id_of(page),
            "url": url,
            "host": authority(url),
            "kind": None if kind is Kind.UNKNOWN else kind.name,
            "http_status": row.status or None,
            "state": self.state_name(page),
            "error": row.error or self.why_out(page, url),
            "depth": int(self.depth[page]),
            "importance": round(float(self.importance[page]) / mean, 6),
            **self.bounds.fields(page, mean, row.marks, row.last_read),
            "cash": int(self.cash[page]),
            "change_rate": round(row.rate, 6) if row.reads else None,
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
        }

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
            "importance": round(float(self.importance[page]) / mean, 6),
            "change_rate": round(refresh.rate, 6) if refresh.reads else None,
        }

    def why_out(self, page: LocalPage, url: str) -> str | None:
        if self.state[page] not in (State.OUT, State.BLOCKED):
            return None
        scope = self.frontier.scope
        return scope.why_refused(url) or scope.why_out(url, int(self.depth[page])) or None


class Views:
    """All partitions of a crawl at one commit boundary."""

    def __init__(self, views: list[View]) -> None:
        """views: of each partition, in their order, all of one moment."""
        self.views = views
        self.scope = views[0].scope
        self.settings = views[0].settings
        known_pages = sum(int(view.own.sum()) for view in self.views)
        total = sum(float(view.importance[view.own].sum()) for view in self.views)
        self.known_pages = known_pages
        self.mean = total / known_pages if known_pages and total > 0 else 1.0

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        for view in self.views:
            view.close()

    def pages(self) -> Iterator[dict[str, Any]]:
        """Rows of all known pages, by id."""
        for view in self.views:
            for page in local_pages(np.flatnonzero(view.own)):
                yield view.describe(page, self.mean)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Rows of all documents in the repository, by id: the latest version of each."""
        for view in self.views:
            for page, head, row in view.documents():
                yield view.describe_document(page, head, row, self.mean)

    def links(self) -> Iterator[dict[str, Any]]:
        """One row a stored link: ids and URLs of both ends."""
        for view in self.views:
            for key, value in view.store.scan(rows.LINK.prefix):
                page = rows.LINK.split(key)
                source = view.url(page)
                for child in local_pages(rows.unpack_links(value)):
                    target = view.url(child)
                    number = view.partition.id_of(child) if view.own[child] else self.find(target)
                    yield {
                        "source": view.partition.id_of(page),
                        "target": number,
                        "source_url": source,
                        "target_url": target,
                    }

    def hosts(self, site: Callable[[str], Mapping[str, Any]] = lambda name: NO_SITE) -> Iterator[dict[str, Any]]:
        """One row a host: its pages by state, its share of importance, its importance as a site, what politeness and
        people say of it. site: SiteRanking.row_by_name, which takes a pass over all links."""
        for view in self.views:
            hosts = view.partition.hosts
            count = len(hosts)
            own, host = view.own, view.host

            def per_host(chosen: NDArray[np.bool_], host: NDArray[np.uint32] = host, count: int = count) -> Any:
                return np.bincount(host[chosen], minlength=count)

            pages, read = per_host(own), per_host(view.state == State.READ)
            unread, failed = per_host(view.state == State.UNREAD), per_host(np.isin(view.state, (2, 3, 4)))
            flow = np.bincount(host[own], weights=view.importance[own], minlength=count) / self.mean
            for number in np.flatnonzero(pages).tolist():
                row = hosts.row(number)
                yield {
                    "host": row.name,
                    "pages": int(pages[number]),
                    "read": int(read[number]),
                    "unread": int(unread[number]),
                    "errors": int(failed[number]),
                    "importance": round(float(flow[number]), 6),
                    **site(row.name),
                    "failures": row.failures,
                    "next_read": stamp(row.next_at),
                    "held": row.hold or None,
                    **claim_evidence.claim_fields(hosts, number),
                }

    def top(self, count: int, by: str, now: float) -> list[dict[str, Any]]:
        """The first `count` pages by importance, cash, staleness (importance x expected changes missed), or
        growth that is not chance ("rising": relative, a turnover of the OPIC clock)."""
        scored: list[tuple[float, LocalPage, View]] = []
        for view in self.views:
            if by == "stale":
                best = self._stalest(view, count, now)
            elif by == "rising":
                rises = ((rise.growth, rise.page) for rise in view.bounds.rising(view.store) if view.own[rise.page])
                best = heapq.nlargest(count, rises)
            else:
                score = view.cash.astype(np.float64) if by == "cash" else view.importance / self.mean
                pages = np.flatnonzero(view.own)
                pages = pages[np.argsort(-score[pages], kind="stable")[:count]]
                best = list(zip(score[pages].tolist(), local_pages(pages), strict=True))
            scored.extend((score, page, view) for score, page in best)
        scored.sort(key=lambda row: -row[0])
        return [{**view.describe(page, self.mean), "score": round(score, 6)} for score, page, view in scored[:count]]

    def _stalest(self, view: View, count: int, now: float) -> list[tuple[float, LocalPage]]:
        """Score and page of the `count` stalest. No page scores more than its importance: few rows have to be read."""
        importance = view.importance / self.mean
        pages = np.flatnonzero(view.state == State.READ)
        best: list[tuple[float, LocalPage]] = []
        for page in local_pages(pages[np.argsort(-importance[pages], kind="stable")]):
            if count <= 0 or (len(best) == count and importance[page] <= best[0][0]):
                break
            row = view.row(page)
            age = max(0.0, now - row.last_read) / 86_400.0
            score = float(importance[page]) * -math.expm1(-row.rate * age)
            if len(best) < count:
                heapq.heappush(best, (score, page))
            else:
                heapq.heappushpop(best, (score, page))
        return best

    def find(self, url: str) -> PageId | None:
        """The page id of a URL, None where it is not known."""
        for view in self.views:
            page = view.partition.url_index.find_one(url)
            if 0 <= page < view.n and view.own[page]:
                return view.partition.id_of(page)
        return None
