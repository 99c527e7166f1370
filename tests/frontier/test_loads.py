"""Loads: a body waits in Status-Data until its parts came; LoadReports belong to the read that brought the body."""

from __future__ import annotations

import hashlib
import zlib

import msgspec
import pytest
from msgspec.structs import replace

from tests.frontier.rig import Crawl, dump, links_to, signature, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.frontier.scope import Scope
from xyro.loader.library import Resumed
from xyro.metadata import rows
from xyro.metadata.states import State
from xyro.wire.messages import Document, Kind, LinkKind, LoadReport, LoadState, Priority, Submit, XmlPage

ANY = Settings(crawl=CrawlSettings(scope="any"))
DTD, ENTITY = url(0, 50), url(0, 51)
BODY = b"<!DOCTYPE a SYSTEM 'p50.html'><a/>"


def begun(partitions=1, make=Crawl.in_memory, **options):
    crawl = make(partitions=partitions, settings=options.pop("settings", ANY), **options)
    crawl.submit(url(0))
    crawl.turn()
    return crawl, crawl.order(url(0))


def body_of(order, crawl):
    return XmlPage(order.page, order.url, order.epoch, crawl.now, Kind.XML, "text/xml", "utf-8", BODY)


def waiting(order, *needs):
    return LoadReport(order.page, order.url, order.epoch, LoadState.WAITING, needs=needs)


def over(order, links=(), state=LoadState.LOADED, error=""):
    return LoadReport(order.page, order.url, order.epoch, state, "xml", error, links_to(list(links), LinkKind.XLINK))


def read(crawl, order, **fields):
    crawl.answer(order, kind=Kind.XML, loading=True, **fields)


def wait_for(crawl, order, *needs):
    crawl.load(waiting(order, *needs), body_of(order, crawl))
    read(crawl, order)
    return crawl.turn()


def status(crawl, page=0):
    stored = crawl.frontier.partition.get(rows.STATUS.key(page))
    return None if stored is None else rows.unpack_wait(stored)


def wanted(crawl):
    return {rows.WANTED.split(key) for key, _ in crawl.frontier.partition.store.scan(rows.WANTED.prefix)}


def children(crawl, page=0):
    found = crawl.frontier.partition.children(page)
    return None if found is None else [crawl.frontier.partition.url(child) for child in found.tolist()]


def cash_of(crawl, page=0):
    return int(crawl.frontier.ledger.effective(slice(page, page + 1))[0])


def test_a_waiting_load_keeps_its_body_and_its_cash_and_orders_its_parts():
    crawl, order = begun()
    orders = wait_for(crawl, order, DTD, ENTITY)
    row = status(crawl)
    assert (row.url, row.epoch, row.kind, row.charset) == (url(0), order.epoch, Kind.XML, "utf-8")
    assert [crawl.frontier.partition.url(part) for part in row.needs] == [DTD, ENTITY]
    assert [(one.url, one.priority) for one in orders] == [(DTD, Priority.BLOCKING), (ENTITY, Priority.BLOCKING)]
    assert cash_of(crawl) > 0 and crawl.frontier.ledger.spends == 0 and children(crawl) is None
    assert wanted(crawl) == {1, 2}, "the page itself need not be read again: its body is there"
    assert crawl.audit()["ok"]


def test_the_final_report_spends_and_lets_go_of_the_body():
    crawl, order = begun()
    wait_for(crawl, order, DTD)
    crawl.answer(crawl.order(DTD), kind=Kind.DTD)
    crawl.load(over(order, [url(0, 7), url(0, 8)]))
    crawl.turn()
    assert status(crawl) is None and crawl.frontier.loads.waits == {} and crawl.frontier.loads.loading == {}
    assert children(crawl) == [url(0, 7), url(0, 8)]
    assert wanted(crawl) == set()
    assert crawl.audit()["ok"]


def test_a_load_that_ends_with_its_read_spends_at_once():
    crawl, order = begun()
    crawl.load(over(order, [url(0, 7)]))
    read(crawl, order)
    crawl.turn()
    assert children(crawl) == [url(0, 7)] and crawl.frontier.ledger.spends == 1
    assert status(crawl) is None and wanted(crawl) == set() and crawl.frontier.loads.loading == {}


@pytest.mark.parametrize("state", ["waiting", "loaded"])
def test_a_load_report_may_come_a_group_before_its_page_report(state):
    crawl, order = begun()
    if state == "waiting":
        crawl.load(waiting(order, DTD), body_of(order, crawl))
    else:
        crawl.load(over(order, [url(0, 7)]))
    assert crawl.turn() == [] and crawl.frontier.ledger.spends == 0, "the read has not been reported"
    read(crawl, order)
    orders = crawl.turn()
    if state == "waiting":
        assert [one.url for one in orders] == [DTD] and status(crawl).needs == (1,)
    else:
        assert children(crawl) == [url(0, 7)] and wanted(crawl) == set()
    assert crawl.frontier.loads.early == {}


def test_the_body_is_kept_where_the_needs_move_before_the_page_report_came():
    crawl, order = begun()
    crawl.load(waiting(order, DTD), body_of(order, crawl))
    crawl.turn()
    crawl.load(waiting(order, ENTITY))
    crawl.turn()
    read(crawl, order)
    assert [one.url for one in crawl.turn()] == [ENTITY]
    assert status(crawl) is not None


@pytest.mark.parametrize("also", ["report", "nothing"])
def test_the_body_may_come_a_group_before_its_load_report(also):
    """A group holds so many messages: the next one may begin anywhere."""
    crawl, order = begun()
    crawl.pending[0].append(body_of(order, crawl))
    crawl.turn()
    crawl.load(waiting(order, DTD))
    if also == "nothing":
        crawl.turn()
    read(crawl, order)
    assert [one.url for one in crawl.turn()] == [DTD]
    assert status(crawl).epoch == order.epoch and crawl.frontier.loads.bodies == {}


def test_the_body_of_a_later_read_is_not_taken_for_an_earlier_one():
    crawl, first = begun(refreshing=True)
    read(crawl, first)
    crawl.turn()
    crawl.submit(url(0))
    crawl.turn()
    again = crawl.order(url(0))
    crawl.load(over(first, [url(0, 7)]), body_of(again, crawl))
    crawl.turn()
    assert children(crawl) == [url(0, 7)]
    crawl.load(waiting(again, DTD))
    read(crawl, again, signature=signature(9))
    assert DTD in [one.url for one in crawl.turn()]
    assert status(crawl).epoch == again.epoch


def test_needs_that_move_replace_the_old_ones():
    crawl, order = begun()
    wait_for(crawl, order, DTD)
    crawl.load(waiting(order, ENTITY))
    assert [one.url for one in crawl.turn()] == [ENTITY]
    assert [crawl.frontier.partition.url(part) for part in status(crawl).needs] == [ENTITY]


def test_a_load_without_its_report_is_ordered_again_after_a_crash_only():
    crawl, order = begun()
    read(crawl, order)
    crawl.turn()
    assert wanted(crawl) == {0} and crawl.orders == {}
    crawl.load(over(order, [url(0, 7)]))
    crawl.turn()
    assert wanted(crawl) == set() and children(crawl) == [url(0, 7)]


def test_load_reports_of_another_read_change_nothing():
    crawl, order = begun(refreshing=True)
    read(crawl, order)
    crawl.turn()
    crawl.load(over(order, [url(0, 7)]))
    crawl.turn()
    before, spends = dump(crawl.frontier.partition)["columns"], crawl.frontier.ledger.spends
    crawl.load(over(order, [url(0, 9)]))
    crawl.turn()
    assert children(crawl) == [url(0, 7)] and crawl.frontier.ledger.spends == spends
    assert dump(crawl.frontier.partition)["columns"] == before
    assert crawl.frontier.partition.url_index.find_one(url(0, 9)) == -1


def test_a_later_read_replaces_the_waiting_load():
    crawl, order = begun(refreshing=True)
    wait_for(crawl, order, DTD)
    crawl.submit(url(0))
    crawl.turn()
    again = crawl.order(url(0))
    crawl.answer(again, [url(0, 3)], signature=signature(99))  # an HTML page now
    crawl.turn()
    assert status(crawl) is None and crawl.frontier.loads.loading == {} and children(crawl) == [url(0, 3)]
    crawl.load(over(order, [url(0, 7)]))
    crawl.turn()
    assert children(crawl) == [url(0, 3)]
    assert crawl.audit()["ok"]


def test_an_unchanged_answer_leaves_the_load_waiting():
    crawl, order = begun(refreshing=True)
    wait_for(crawl, order, DTD)
    crawl.submit(url(0))
    crawl.turn()
    crawl.answer(crawl.order(url(0)), status=304, signature=b"", kind=Kind.UNKNOWN)
    crawl.turn()
    assert status(crawl) is not None
    crawl.load(over(order, [url(0, 7)]))
    crawl.turn()
    assert children(crawl) == [url(0, 7)] and status(crawl) is None


def test_the_loaders_error_is_stored_with_the_page_whenever_it_comes():
    for at_once in (True, False):
        crawl, order = begun()
        report = over(order, state=LoadState.FAILED, error="not-well-formed")
        if at_once:
            crawl.load(report)
        read(crawl, order)
        crawl.turn()
        if not at_once:
            crawl.load(report)
            crawl.turn()
        assert crawl.frontier.partition.row(0).error == "not-well-formed"
        assert crawl.state(url(0)) is State.READ
        assert crawl.audit()["ok"]


FAULT = "not-well-formed"


def faulty():
    """A page whose body was loaded, and is at fault."""
    crawl, order = begun(refreshing=True)
    crawl.load(over(order, state=LoadState.FAILED, error=FAULT))
    read(crawl, order, signature=signature(1))
    crawl.turn()
    assert error_of(crawl) == FAULT
    return crawl


def error_of(crawl):
    return crawl.frontier.partition.row(0).error


def reread(crawl):
    crawl.submit(url(0))
    crawl.turn()
    return crawl.order(url(0))


@pytest.mark.parametrize("status", [200, 304])
@pytest.mark.parametrize("failed_between", [False, True])
def test_the_loaders_error_stands_as_long_as_the_body(status, failed_between):
    """A body that is known is not loaded again: what was said against it is as true as its links."""
    crawl = faulty()
    if failed_between:
        crawl.fail(reread(crawl), "http-5xx", status=503, retry_in=1.0)
        crawl.turn()
        assert error_of(crawl) == "http-5xx"
    crawl.answer(reread(crawl), status=status, kind=Kind.XML, signature=signature(1) if status == 200 else b"")
    crawl.turn()
    assert (error_of(crawl), crawl.state(url(0))) == (FAULT, State.READ)
    assert crawl.audit()["ok"]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("body", [1, 2])
def test_the_loaders_error_ends_when_a_load_goes_well(at_once, body):
    """Of another body, or of the same one with parts that have changed."""
    crawl = faulty()
    order = reread(crawl)
    if at_once:
        crawl.load(over(order))
    else:
        crawl.load(waiting(order, DTD), body_of(order, crawl))
    read(crawl, order, signature=signature(body))
    crawl.turn()
    if not at_once:
        assert error_of(crawl) == ("" if body == 2 else FAULT)
        crawl.load(over(order))
        crawl.turn()
    assert (error_of(crawl), crawl.frontier.partition.row(0).reads) == ("", 2)


def test_the_loaders_error_ends_with_its_body():
    crawl = faulty()
    crawl.answer(reread(crawl), [url(0, 3)], signature=signature(2))  # an HTML page now
    crawl.turn()
    assert error_of(crawl) == ""


def test_an_order_that_failed_while_the_load_went_on_stays_told():
    crawl, order = begun(refreshing=True)
    wait_for(crawl, order, DTD)
    crawl.fail(reread(crawl), "http-5xx", status=503, retry_in=1.0)
    crawl.turn()
    crawl.load(over(order))
    crawl.turn()
    assert error_of(crawl) == "http-5xx"


def test_a_page_whose_load_waits_is_dated_by_the_cash_it_holds():
    crawl, order = begun(refreshing=True)
    wait_for(crawl, order, DTD)
    assert crawl.frontier.partition.row(0).weight > 0.0


def test_parts_are_exempt_from_scope_but_not_from_the_guard():
    settings = Settings()
    scope = Scope(settings.crawl, refused=lambda one: "blocked-address" if "h3" in one else "")
    crawl, order = begun(settings=settings, scope=scope)
    orders = wait_for(crawl, order, url(1, 1), url(3, 3))
    assert [one.url for one in orders] == [url(1, 1)]
    assert crawl.state(url(3, 3)) is State.BLOCKED


# Restart


def reopened(crawl, path):
    crawl.close()
    return Crawl.on_disk(path, settings=ANY)


def test_bodies_that_wait_survive_a_restart(tmp_path):
    path = tmp_path / "data"
    crawl, order = begun(make=lambda **options: Crawl.on_disk(path, **options))
    wait_for(crawl, order, DTD)
    again = reopened(crawl, path)
    body = body_of(order, crawl)
    assert again.resumed == [Resumed(replace(body, body=b""), (DTD,), body.read_at)]
    packed = again.frontier.loads.body(0, order.epoch)
    assert zlib.decompress(packed) == BODY and again.frontier.loads.body(0, order.epoch + 1) is None
    assert again.audit()["ok"], "also before the loader has said what it needs"
    (part,) = again.turn()
    assert (part.url, part.priority) == (DTD, Priority.BLOCKING), "its order is stored like any other"
    again.answer(part, kind=Kind.DTD)
    again.load(over(order, [url(0, 7)]))
    again.turn()
    assert children(again) == [url(0, 7)] and status(again) is None
    again.close()


def test_a_part_that_was_read_just_before_the_crash_is_asked_for_again(tmp_path):
    path = tmp_path / "data"
    crawl, order = begun(make=lambda **options: Crawl.on_disk(path, **options))
    wait_for(crawl, order, DTD)
    crawl.answer(crawl.order(DTD), kind=Kind.DTD)
    crawl.turn()
    again = reopened(crawl, path)
    assert again.audit()["ok"]
    assert again.turn() == []
    again.load(waiting(order, DTD))
    assert [one.url for one in again.turn()] == [DTD]
    assert status(again).needs == (1,) and status(again).since == crawl.now
    again.close()


def test_a_row_of_an_older_version_has_its_body_in_it(tmp_path):
    crawl, order = begun()
    wait_for(crawl, order, DTD)
    crawl.frontier.partition.begin()
    old = msgspec.structs.replace(status(crawl), body=zlib.compress(b"<old/>"))
    crawl.frontier.partition.put(rows.STATUS.key(0), rows.pack(old))
    assert zlib.decompress(crawl.frontier.loads.body(0, order.epoch)) == b"<old/>"


def document(order, body=BODY, **fields):
    fields = {"format": "xml", "root": "a"} | fields
    digest = hashlib.blake2b(body, digest_size=16).digest()
    return Document(order.page, order.url, order.epoch, 5.0, Kind.XML, digest, zlib.compress(body), len(body), **fields)


@pytest.mark.parametrize("first", ["document", "both"])
def test_a_document_is_stored_with_its_final_report(first):
    """They are two messages: a group may end between them."""
    crawl, order = begun()
    crawl.pending[0].append(document(order))
    if first == "document":
        crawl.turn()
        assert crawl.frontier.loads.documents.latest(0) is None
    crawl.load(over(order, [url(0, 7)]))
    read(crawl, order)
    crawl.turn()
    assert crawl.frontier.loads.documents.body(0) == BODY and crawl.frontier.loads.documents_due == {}
    assert crawl.audit()["ok"]


def test_a_document_of_another_read_is_not_stored():
    crawl, order = begun()
    crawl.load(over(order, [url(0, 7)]))
    read(crawl, order)
    crawl.turn()
    crawl.pending[0].append(document(order, b"<late/>"))
    crawl.load(over(order, [url(0, 8)]))
    crawl.turn()
    assert crawl.frontier.loads.documents.latest(0) is None and children(crawl) == [url(0, 7)]


def test_a_later_read_that_waits_for_the_same_parts_brings_its_body():
    crawl, order = begun(refreshing=True)
    wait_for(crawl, order, DTD)
    crawl.submit(url(0))
    crawl.turn()
    again = crawl.order(url(0))
    crawl.load(waiting(again, DTD), replace(body_of(again, crawl), body=b"<newer/>"))
    read(crawl, again, signature=signature(9))
    crawl.turn()
    assert status(crawl).epoch == again.epoch and crawl.frontier.loads.needed == {1: 1}
    assert zlib.decompress(crawl.frontier.loads.body(0, again.epoch)) == b"<newer/>"


def test_a_part_that_many_need_is_ordered_once():
    crawl = Crawl.in_memory(settings=ANY)
    crawl.submit(*(url(0, page) for page in range(5)))
    crawl.turn()
    for order in [crawl.order(url(0, page)) for page in range(5)]:
        crawl.load(waiting(order, DTD), body_of(order, crawl))
        read(crawl, order)
    assert [one.url for one in crawl.turn()] == [DTD]
    assert crawl.frontier.loads.needed == {5: 5}
    assert not crawl.frontier.scheduler.requests
    order = crawl.order(DTD)
    crawl.answer(order, kind=Kind.DTD)
    crawl.turn()
    crawl.submit(url(0, 6))
    crawl.turn()
    again = crawl.order(url(0, 6))
    crawl.load(waiting(again, DTD), body_of(again, crawl))
    read(crawl, again)
    assert [one.url for one in crawl.turn()] == [DTD], "its order was settled: a new need is a new order"


def test_the_needs_of_other_partitions_become_submits():
    crawl, order = begun(partitions=4)
    other = next(one for one in (url(host, 9) for host in range(50)) if crawl.owner(one) != crawl.owner(url(0)))
    crawl.load(waiting(order, other), body_of(order, crawl))
    read(crawl, order)
    crawl.turn(crawl.owner(url(0)))
    submits = [message for message in crawl.wire if isinstance(message, Submit)]
    assert submits == [Submit((other,), Priority.BLOCKING, seed=False)]
    crawl.deliver_all()
    orders = crawl.turn(crawl.owner(other))
    assert [(one.url, one.priority) for one in orders] == [(other, Priority.BLOCKING)]
