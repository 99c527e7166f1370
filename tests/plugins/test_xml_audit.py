"""The repository's part of the audit: silent about what is sound; each planted fault is found."""

from __future__ import annotations

import zlib
from functools import partial

import msgspec
import pytest

from tests.frontier.rig import Crawl
from tests.plugins.warehouse import ANY, BOOK, BOOKS, COPY, DOCUMENTS, fill
from xyro.metadata import rows
from xyro.metadata.documents import DocumentRow, digest_of, unpack_counts, unpack_version
from xyro.wire.messages import Kind, LoadReport, LoadState, XmlPage


def whole(partitions=1):
    return fill(Crawl.in_memory(partitions, settings=ANY))


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_sound_repository_is_ok(partitions):
    crawl = whole(partitions)
    assert crawl.audit()["violations"] == []
    stored = {key[:1] for frontier in crawl.frontiers for key, _ in frontier.partition.store.scan(b"")}
    assert {family.prefix for family in (rows.DOCUMENT, rows.VERSIONS, rows.BODY, rows.COUNT)} <= stored


def write(frontier, changes):
    batch = frontier.partition.store.batch()
    for key, value in changes.items():
        batch.delete(key) if value is None else batch.put(key, value)
    frontier.partition.store.write(batch)


def page_of(frontier, url=BOOK):
    return frontier.partition.url_index.find_one(url)


def version(frontier, number, **changes):
    key = rows.VERSIONS.key(page_of(frontier), number)
    row = unpack_version(frontier.partition.store.get(key))
    write(frontier, {key: rows.pack(msgspec.structs.replace(row, **changes))})


def version_lost(frontier, number):
    write(frontier, {rows.VERSIONS.key(page_of(frontier), number): None})


def document_lost(frontier):
    write(frontier, {rows.DOCUMENT.key(page_of(frontier)): None})


def document_told(frontier, first, last):
    write(frontier, {rows.DOCUMENT.key(page_of(frontier)): rows.pack(DocumentRow(first, last, 1))})


def document_of_nobody(frontier):
    page = frontier.columns.n + 4
    head = frontier.partition.store.get(rows.DOCUMENT.key(page_of(frontier, COPY)))
    row = frontier.partition.store.get(rows.VERSIONS.key(page_of(frontier, COPY), 1))
    write(frontier, {rows.DOCUMENT.key(page): head, rows.VERSIONS.key(page, 1): row})


def body(frontier, value):
    write(frontier, {rows.BODY.key(digest_of(BOOKS[0])): value})


def body_of_nobody(frontier):
    write(frontier, {rows.BODY.key(b"x" * 16): zlib.compress(b"<x/>")})


SHARED = digest_of(BOOKS[2])


def count(frontier, value, digest=SHARED):
    write(frontier, {rows.COUNT.key(digest): value})


def counters(frontier, **changes):
    key = rows.META.key("documents")
    row = unpack_counts(frontier.partition.store.get(key))
    write(frontier, {key: rows.pack(msgspec.structs.replace(row, **changes))})


FAULTS = {
    partial(version, number=2, digest=digest_of(BOOKS[0])): "versions 1 and 2 are the same",
    partial(version_lost, number=2): "version 3 does not belong there, or one before it is missing",
    partial(version_lost, number=3): "versions 1 to 3 are told, they end with 2",
    document_lost: "version 1 does not belong there",
    partial(document_told, first=2, last=3): "version 1 does not belong there",
    partial(document_told, first=1, last=4): "versions 1 to 4 are told, they end with 3",
    partial(document_told, first=0, last=3): "versions 0 to 3 are told",
    document_of_nobody: "which does not exist",
    partial(body, value=None): f"body {digest_of(BOOKS[0]).hex()} is missing",
    partial(body, value=b"junk"): "does not unpack",
    partial(body, value=zlib.compress(BOOKS[1])): "its digest is wrong",
    partial(body, value=zlib.compress(BOOKS[2] + b" ")): "cannot be read",
    body_of_nobody: f"body {(b'x' * 16).hex()} belongs to no version",
    partial(count, value=None): "has 2 versions, 0 were counted",
    partial(count, value=(3).to_bytes(4, "big")): "has 2 versions, 3 were counted",
    partial(count, value=(1).to_bytes(4, "big"), digest=b"y" * 16): "has 0 versions, 1 were counted",
    partial(count, value=bytes(4), digest=b"y" * 16): "has 0 versions, 0 were counted",
    partial(counters, versions=99): "repository: versions is 8, 99 was counted",
    partial(counters, by_kind={"XML": 1}): "repository: by_kind is",
    partial(counters, by_verdict={}): "repository: by_verdict is",
    partial(counters, packed=1): "repository: packed is",
    partial(counters, depth=1): "repository: depth is",
}


@pytest.mark.parametrize("fault", FAULTS, ids=[f"fault{number}" for number in range(len(FAULTS))])
def test_each_fault_is_found(fault):
    crawl = whole()
    fault(crawl.frontier)
    violations = crawl.audit()["violations"]
    assert any(FAULTS[fault] in violation for violation in violations), violations


def test_damaged_rows_are_violations():
    for family in (rows.DOCUMENT, rows.VERSIONS):
        crawl = whole()
        write(crawl.frontier, {next(iter(crawl.frontier.partition.store.scan(family.prefix)))[0]: b"\xc1"})
        assert any("damaged store" in violation for violation in crawl.audit()["violations"])


# Status-Data


def waiting():
    crawl = Crawl.in_memory(1, settings=ANY)
    crawl.submit(BOOK)
    crawl.turn()
    order = crawl.order(BOOK)
    page = XmlPage(order.page, order.url, order.epoch, crawl.now, Kind.XML, "", "", BOOKS[0])
    crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.WAITING, needs=(COPY,)), page)
    crawl.answer(order, kind=Kind.XML, loading=True)
    crawl.turn()
    assert crawl.audit()["ok"]
    return crawl


def wait(frontier, **changes):
    key = rows.STATUS.key(page_of(frontier))
    row = rows.unpack_wait(frontier.partition.store.get(key))
    write(frontier, {key: rows.pack(msgspec.structs.replace(row, **changes))})


WAITS = {
    partial(wait, url=COPY): f"({BOOK}) is one of {COPY}",
    partial(wait, epoch=2**60): f"waits since read {2**60}, the last one was",
    partial(wait, needs=()): "waits for ()",
}


@pytest.mark.parametrize("fault", WAITS, ids=["url", "epoch", "needs"])
def test_a_load_that_waits_is_of_its_page_and_of_a_read_that_was_made(fault):
    crawl = waiting()
    fault(crawl.frontier)
    assert any(WAITS[fault] in violation for violation in crawl.audit()["violations"])


def test_a_load_that_waits_has_its_body_and_nothing_else_has():
    crawl = waiting()
    key, value = next(iter(crawl.frontier.partition.store.scan(rows.WAITING.prefix)))
    write(crawl.frontier, {key: None})
    assert any("without its body" in violation for violation in crawl.audit()["violations"])
    write(crawl.frontier, {key: value, rows.STATUS.key(page_of(crawl.frontier)): None})
    assert any("has a body that waits, but no load does" in violation for violation in crawl.audit()["violations"])


def test_the_whole_of_it_was_read():
    crawl = whole()
    for url, bodies in DOCUMENTS.items():
        archive = crawl.frontier.loads.documents
        assert [
            archive.body(page_of(crawl.frontier, url), number)
            for number, _ in archive.versions(page_of(crawl.frontier, url))
        ] == bodies
