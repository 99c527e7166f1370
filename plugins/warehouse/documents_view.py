"""Shows the repository of documents at one commit boundary: one document, all of them in an order, their DTDs."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from xyro.metadata import rows
from xyro.metadata.documents import Archive, VersionRow, unpacked
from xyro.service.views.staleness import REPLACED
from xyro.service.views.views import View, Views, verdict_name
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError
from xyro.wire.ids import LocalPage, PageId, local_page, owner_of, split
from xyro.wire.messages import Kind
from xyro.wire.moments import moment
from xyro.wire.text import stamp
from xyro.wire.urls import canonical

ORDERS = ("importance", "url", "date")
LISTED = 10
"""documents that are named of each DTD, if nobody asks for more"""


class Place(NamedTuple):
    """A document: where its page is."""

    view: View
    page: LocalPage


def find(views: Views, reference: str) -> Place:
    """Find the document of a URL, or of a page id. InputError: there is none."""
    number = PageId(int(reference)) if is_page_id(reference) else _page_by_url(views, reference)
    partition, page = owner_of(number), local_page(number)
    view = next((each for each in views.views if each.partition.number == partition), None)
    if view is None or page >= view.n:
        raise InputError(f"{reference}: no page has this id; `xyro export documents` lists them")
    if view.archive.head(page) is None:
        raise InputError(f"{reference}: no document of it is stored (`xyro why URL` says what became of the page)")
    return Place(view, page)


def is_page_id(reference: str) -> bool:
    """Tell a page id from a URL."""
    return reference.isascii() and reference.isdigit() and len(reference) < 20


def _page_by_url(views: Views, reference: str) -> PageId:
    url = canonical(reference, fold_slashes=views.scope.fold_slashes)
    number = views.find(url)
    if number is None:
        raise InputError(f"{url}: not known to this crawl; `xyro submit {url}` has it read")
    return number


def versions(views: Views, reference: str) -> list[dict[str, Any]]:
    """One row a version, oldest first. `until`: when the next one was read; `stale`: has the page changed since."""
    view, page = find(views, reference)
    listed: list[dict[str, Any]] = []
    for number, row in view.archive.versions(page):
        if listed:
            listed[-1]["until"] = stamp(row.read_at)
        listed.append(
            {
                "version": number,
                "read_at": stamp(row.read_at),
                "until": None,
                "verdict": verdict_name(row.verdict),
                "problems": list(row.problems),
                "size": row.size,
                "changed": row.changed if row.changed >= 0 else None,
                "elements": row.elements,
                "digest": row.digest.hex(),
                "stale": REPLACED,
            }
        )
    if listed:
        listed[-1]["stale"] = view.stale(page, view.row(page))
    return listed


def body(views: Views, reference: str, version: str = "", at: str = "") -> tuple[int, VersionRow, bytes]:
    """(number, row, bytes as they were read): of a version, of the one that held at a time, or of the latest."""
    number, row, packed = packed_body(views, reference, version, at)
    return number, row, unpacked(packed, row.size)


def packed_body(views: Views, reference: str, version: str = "", at: str = "") -> tuple[int, VersionRow, bytes]:
    """Find a version of a document like `body`, with its body as it is stored: 50 MB take 0.2 s to unpack."""
    view, page = find(views, reference)
    archive = view.archive
    head = archive.head(page)
    assert head is not None, "find has seen it"
    if version and at:
        raise InputError("--version and --at: name one of them")
    number = head.last
    if version:
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 11 else -1
        if not head.first <= number <= head.last:
            raise InputError(f"{reference}: has versions {head.first} to {head.last}, not {version}")
    if at:
        number = _version_at(reference, list(archive.versions(page)), at)
    row = archive.there(page, number)
    return number, row, archive.packed(row)


def _version_at(reference: str, versions: list[tuple[int, VersionRow]], text: str) -> int:
    """Find the version that was the newest at this time."""
    time = moment(text, "--at", SystemClock().time())
    numbers = [number for number, row in versions if row.read_at <= time]
    if not numbers:
        raise InputError(
            f"{reference}: nothing older than {stamp(versions[0][1].read_at)} (version {versions[0][0]}) is kept"
        )
    return numbers[-1]


# All documents


Chosen = tuple[PageId, float]
"""page id and importance"""


def chosen(views: Views, host: str, root: str, by: str) -> list[Chosen]:
    """The documents of `ranked`, in their order."""
    return [(number, worth) for _, number, worth in ranked(views, host, root, by)]


def ranked(views: Views, host: str, root: str, by: str) -> list[tuple[Any, PageId, float]]:
    """(rank, page id, importance) of the XML documents of a host (all, if it is ""), with this root element, in order.

    root: {namespace}name, or a name in whatever namespace; "": any. by: importance, most important first; url; date,
    newest first.
    """
    if by not in ORDERS:
        raise InputError(f"--by {by}: {', '.join(ORDERS)}")
    found: list[tuple[Any, PageId, float]] = []
    for view in views.views:
        number = view.partition.hosts.numbers.get(host, -1)
        for page in _pages(view, number if host else None):
            row = view.archive.latest(page)
            if row is not None and row.kind is Kind.XML and _rooted(row, root):
                worth = round(view.importance_at(page) / views.mean, 6)
                found.append((_rank(view, page, row, worth, by), view.partition.id_of(page), worth))
    found.sort()
    return found


def _pages(view: View, host: int | None) -> Iterator[LocalPage]:
    for key, _ in view.store.scan(rows.DOCUMENT.prefix):
        page = rows.DOCUMENT.split(key)
        if page < view.n and (host is None or view.host[page] == host):
            yield page


def _rooted(row: VersionRow, root: str) -> bool:
    return not root or row.root == root or row.root.rpartition("}")[2] == root


def _rank(view: View, page: LocalPage, row: VersionRow, worth: float, by: str) -> Any:
    if by == "url":
        return view.url(page)
    return -row.read_at if by == "date" else -worth


def bodies(views: Views, wanted: Iterable[Chosen]) -> Iterator[dict[str, Any]]:
    """Yield the latest version of each document for a query; skip documents that are gone."""
    for number, worth in wanted:
        owner, page = split(number)
        view = views.by_number[owner]
        found = body_of(view.archive, view.url, page)
        if found is not None:
            stale = view.stale(page, view.row(page))
            yield {"id": number, "importance": worth, "stale": stale, **found}


def body_of(archive: Archive, url_of: Callable[[LocalPage], str], page: LocalPage) -> dict[str, Any] | None:
    """Return the latest version of a document, its packed body in base64; None where there is none."""
    head = archive.head(page)
    if head is None:
        return None
    row = archive.there(page, head.last)
    return {
        "url": url_of(page),
        "version": head.last,
        "read_at": stamp(row.read_at),
        "charset": row.charset,
        "size": row.size,
        "packed": base64.b64encode(archive.packed(row)).decode(),
    }


# DTDs


def dtds(views: Views, limit: int = LISTED) -> Iterator[dict[str, Any]]:
    """DTDs and schemas, most used first: every one that a document names, and every DTD in the repository.

    `documents`: how many documents name it or were read with it; `used_by`: the first `limit` of them (0: all), most
    important first. 8 bytes of memory a use. The scan is done when this returns, the rows are made as they are taken.
    """
    return map(_listed, filter(_is_listed, grammars(views, limit)))


def merged_dtds(parts: Iterable[Iterable[dict[str, Any]]], limit: int) -> list[dict[str, Any]]:
    """The rows of `dtds` of a whole crawl out of the `grammars` of its nodes: users and DTD may lie on several."""
    found: dict[str, dict[str, Any]] = {}
    for row in (row for part in parts for row in part):
        whole = found.setdefault(row["url"], row)
        if whole is row:
            continue
        stored = row if row["id"] is not None else whole
        users = sorted([*whole["used_by"], *row["used_by"]], key=lambda user: -user[0])[: limit or None]
        named, documents = whole["named"] or row["named"], whole["documents"] + row["documents"]
        found[row["url"]] = {**stored, "named": named, "documents": documents, "used_by": users}
    ordered = sorted(found.values(), key=lambda row: (-row["documents"], row["url"]))
    return [_listed(row) for row in ordered if _is_listed(row)]


def grammars(views: Views, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of `dtds` of the documents here, most used first, and parts that only a DTD names.

    `named`: a document names it itself; `used_by`: [importance, URL].
    """
    uses: dict[str, array[int]] = {}
    named: set[str] = set()
    stored: dict[str, dict[str, Any]] = {}
    for view in views.views:
        for page, head, row in view.documents():
            if row.kind is Kind.DTD:
                described = view.describe_document(page, head, row, views.mean)
                stored[described["url"]] = described
                continue
            named.update(row.grammars)
            for url in {*row.grammars, *row.parts}:
                uses.setdefault(url, array("q")).append(view.partition.id_of(page))
    nobody = array("q")
    names = sorted(uses.keys() | stored.keys(), key=lambda url: (-len(uses.get(url, nobody)), url))
    return (
        {"named": url in named, **_grammar(views, url, stored.get(url), uses.get(url, nobody), limit)} for url in names
    )


def _is_listed(row: Mapping[str, Any]) -> bool:
    return row["named"] or row["id"] is not None


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    del row["named"]
    return {**row, "used_by": [url for _, url in row["used_by"]]}


def _grammar(views: Views, url: str, row: dict[str, Any] | None, users: array[int], limit: int) -> dict[str, Any]:
    places = [split(PageId(number)) for number in users]
    worth = np.array([views.by_number[owner].importance_at(page) for owner, page in places], np.float64)
    first = np.argsort(-worth, kind="stable")[: limit or None].tolist()
    return {
        "url": url,
        "id": row["id"] if row else None,
        "documents": len(users),
        "versions": row["versions"] if row else 0,
        "size": row["size"] if row else None,
        "stale": row["stale"] if row else None,
        "declared": row["tags"] if row else None,
        "parts": row["parts"] if row else None,
        "used_by": [(float(worth[n]), views.by_number[places[n][0]].url(places[n][1])) for n in first],
    }
