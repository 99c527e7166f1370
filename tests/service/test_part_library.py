"""What the loader takes from the partitions: parts read before, bodies that wait, documents to be judged again."""

from __future__ import annotations

import hashlib
import zlib

import pytest

from tests.frontier.rig import START, Crawl, failed, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.frontier.scope import Scope
from xyro.loader.library import LOST, StoredPart
from xyro.service.node.page_lookup import PageLookup, PartitionParts
from xyro.service.node.part_library import PartLibrary
from xyro.service.views.summary import summary
from xyro.service.views.why import why
from xyro.wire.messages import Document, Kind, LoadReport, LoadState, Priority, XmlPage

ANY = Settings(crawl=CrawlSettings(scope="any"))
DTD = url(0, 50)
DAY = 86_400.0


class At:
    """A clock that stands still."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    monotonic = time


def lookup_of(crawl: Crawl, now: float = START, age: float = DAY) -> PageLookup:
    parts = [PartitionParts(frontier, At(now), age) for frontier in crawl.frontiers]
    return PageLookup(parts, len(parts), crawl.scope)


def library_of(crawl: Crawl, now: float = START, age: float = DAY) -> PartLibrary:
    lookup = lookup_of(crawl, now, age)
    return PartLibrary(lookup.part, lookup.body)


def load(crawl: Crawl, target: str, body: bytes, kind: Kind = Kind.DTD, **fields: object) -> None:
    """Read a page whose body is loaded and kept."""
    if not any(order.url == target for order in crawl.orders.values()):
        crawl.submit(target)
        crawl.turn_all() if len(crawl.frontiers) > 1 else crawl.turn()
    order = crawl.order(target)
    digest = hashlib.blake2b(body, digest_size=16).digest()
    kept = Document(
        order.page, order.url, order.epoch, crawl.now, kind, digest, zlib.compress(body), len(body),
        charset="latin-1", **fields,
    )  # fmt: skip
    crawl.pending[order.page >> 32].append(kept)
    crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.LOADED, "dtd"))
    crawl.answer(order, kind=kind, loading=True, signature=digest)
    crawl.turn(order.page >> 32)


def test_a_part_that_was_read_lately_is_there():
    crawl = Crawl.in_memory(settings=ANY)
    assert library_of(crawl).part(DTD) is None
    load(crawl, DTD, b"<!ELEMENT a ANY>")
    assert library_of(crawl).part(DTD) == StoredPart(b"<!ELEMENT a ANY>", "latin-1")
    assert library_of(crawl, START + DAY - 1).part(DTD) is not None
    assert library_of(crawl, START + DAY).part(DTD) is None, "too old: it is read again"
    assert library_of(crawl, START + DAY).part(DTD, unchanged=True) is not None, "it was just asked for"


def test_a_part_that_was_read_lately_is_not_read_again_for_documents_of_other_partitions():
    crawl = Crawl.in_memory(settings=ANY)
    load(crawl, DTD, b"<!ELEMENT a ANY>")
    crawl.submit(DTD, priority=Priority.BLOCKING, seed=False)
    assert not crawl.turn()
    crawl.now += DAY
    crawl.submit(DTD, priority=Priority.BLOCKING, seed=False)
    assert DTD in [order.url for order in crawl.turn() if order.priority is Priority.BLOCKING], "too old"


def test_a_part_of_another_partition_is_found_there():
    crawl = Crawl.in_memory(partitions=4, settings=ANY)
    other = next(one for one in (url(host, 9) for host in range(50)) if crawl.owner(one) == 3)
    crawl.submit(other)
    crawl.deliver_all()
    crawl.turn(3)
    load(crawl, other, b"<!ELEMENT b ANY>")
    assert library_of(crawl).part(other) == StoredPart(b"<!ELEMENT b ANY>", "latin-1")


@pytest.mark.parametrize(
    ("error", "known"), [("robots-disallowed", LOST), ("blocked-address", LOST), ("http-404", None), ("timeout", None)]
)
def test_what_is_never_read_is_lost_and_what_failed_once_is_asked_again(error, known):
    crawl = Crawl.in_memory(settings=ANY)
    crawl.submit(DTD)
    crawl.turn()
    order = crawl.order(DTD)
    crawl.pending[0].append(failed(order, crawl.now, error))
    crawl.orders.clear()
    crawl.turn()
    assert library_of(crawl).part(DTD) == known


def test_what_the_guard_refuses_is_lost_before_anybody_knows_it():
    scope = Scope(ANY.crawl, refused=lambda one: "blocked-address" if "h3" in one else "")
    crawl = Crawl.in_memory(settings=ANY, scope=scope)
    assert library_of(crawl).part(url(3, 3)) == LOST
    assert library_of(crawl).part(url(2, 3)) is None


def test_a_part_that_moved_says_where_to():
    crawl = Crawl.in_memory(settings=ANY)
    crawl.submit(DTD)
    crawl.turn()
    crawl.answer(crawl.order(DTD), status=302, location=url(1, 1), kind=Kind.UNKNOWN, signature=b"")
    crawl.turn()
    assert library_of(crawl).part(DTD) == StoredPart(moved=url(1, 1))


def test_the_body_of_a_waiting_load_is_visible_in_the_turn_that_stored_it():
    crawl = Crawl.in_memory(settings=ANY)
    crawl.submit(url(0))
    crawl.turn()
    order = crawl.order(url(0))
    body = XmlPage(order.page, order.url, order.epoch, crawl.now, Kind.XML, "text/xml", "", b"<a/>")
    crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.WAITING, needs=(DTD,)), body)
    crawl.answer(order, kind=Kind.XML, loading=True)
    crawl.turn()
    packed = library_of(crawl).body(order.page, order.epoch)
    assert packed is not None and zlib.decompress(packed) == b"<a/>"
    assert library_of(crawl).body(order.page, order.epoch - 1) is None
    assert library_of(crawl).body(order.page + 1, order.epoch) is None

    assert summary(crawl.crawl_views.statuses(crawl.now))["waiting_for"] == {"being read": 1}
    with crawl.views() as views:
        said = why(views, url(0), crawl.now)["because"]
    assert any("has waited since" in line for line in said)
    assert f"It waits for {DTD}: being read." in said


def test_a_document_is_judged_again_once_its_dtd_has_changed():
    crawl = Crawl.in_memory(settings=ANY, refreshing=True)
    load(crawl, DTD, b"<!ELEMENT a ANY>")
    crawl.now += 10
    load(crawl, url(0, 1), b"<a/>", Kind.XML, grammars=(DTD,))

    def again():
        """What there is to judge when the document is read again and is as it was."""
        crawl.now += 10
        crawl.submit(url(0, 1))
        crawl.turn()
        order = crawl.order(url(0, 1))
        crawl.answer(order, status=304, signature=b"", kind=Kind.UNKNOWN)
        found = lookup_of(crawl).again(crawl.pending[0][-1])
        crawl.turn()
        return found

    assert again() is None
    crawl.now += 10
    load(crawl, DTD, b"<!ELEMENT a EMPTY>")
    stored = again()
    assert stored is not None and (stored.url, stored.body, stored.kind) == (url(0, 1), b"<a/>", Kind.XML)
    assert again() is None, "it has been since"
