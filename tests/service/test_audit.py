"""The audit: silent about what is sound, and each planted fault is found by the check that is there for it."""

from __future__ import annotations

import shutil
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

from tests.frontier.rig import Crawl, report, url
from tests.service.face import LOOPBACK, process, xyro
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.metadata import rows
from xyro.metadata.states import LEASED, WANTED, State
from xyro.metadata.store import Store
from xyro.service.cluster.bucket import set_epoch
from xyro.service.views import audit as module
from xyro.wire.codec import decode, encode
from xyro.wire.messages import Kind, LoadReport, LoadState, Passing, Priority, Submit, XmlPage
from xyro.wire.urls import partition_of

ANY = Settings(crawl=CrawlSettings(scope="any"))


def whole(partitions=2, bits=8):
    """A crawl with something of everything: clashes, transfers on their way, a load that waits, orders that are out."""
    crawl = Crawl.in_memory(partitions, bits, settings=ANY)
    crawl.submit(url(0))
    crawl.run(lambda order: report(order, crawl.now, [url(k % 9, k) for k in range(60)]))
    crawl.submit(url(0, 0))
    crawl.turn(crawl.owner(url(0)))
    order = crawl.order(url(0))
    body = XmlPage(order.page, order.url, order.epoch, crawl.now, Kind.XML, "", "", b"<a/>")
    crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.WAITING, needs=(url(0, 99),)), body)
    crawl.answer(order, kind=Kind.XML, loading=True, signature=b"2" * 16)
    for other in range(1, 9):
        crawl.submit(url(other, other))
    crawl.turn()
    for order in list(crawl.orders.values()):
        crawl.answer(order, [url(k % 9, k) for k in range(50, 80)], signature=b"3" * 16)
    crawl.turn()
    crawl.submit(url(0, 1))
    crawl.turn(crawl.owner(url(0)))
    return crawl


def put(frontier, key, value):
    batch = frontier.partition.store.batch()
    batch.put(key, value)
    frontier.partition.store.write(batch)


def delete(frontier, key):
    batch = frontier.partition.store.batch()
    batch.delete(key)
    frontier.partition.store.write(batch)


def first_key(frontier, prefix):
    return next(iter(frontier.partition.store.scan(prefix)))


def page_in(frontier, state, but=-1):
    n = frontier.columns.n
    return int(next(page for page in np.flatnonzero(frontier.columns["state"][:n] == state) if page != but))


def test_a_sound_crawl_is_ok_and_its_cash_adds_up():
    crawl = whole()
    said = crawl.audit()
    assert said == {
        "ok": True, "pages": 82, "cash_total": 82 * 65_536, "cash_expected": 82 * 65_536, "violations": [],
        "virtual": sum(frontier.ledger.virtual.balance for frontier in crawl.frontiers), "in_flight": said["in_flight"],
    }  # fmt: skip
    assert said["in_flight"] > 0
    kept = {key[:1] for frontier in crawl.frontiers for key, _ in frontier.partition.store.scan(b"")}
    kinds = (
        rows.MAP,
        rows.CLASH,
        rows.LINK,
        rows.REFRESH,
        rows.STATUS,
        rows.HOST,
        rows.WANTED,
        rows.OUTBOX,
        rows.INBOX,
    )
    assert {layout.prefix for layout in kinds} <= kept, "every kind of row is looked at"


def test_what_was_applied_is_no_longer_in_flight():
    crawl = whole()
    before = crawl.audit()["in_flight"]
    crawl.deliver_all()
    crawl.turn()
    after = crawl.audit()
    assert after["ok"] and after["in_flight"] != before


def test_an_empty_crawl_is_sound():
    assert Crawl.in_memory(3, settings=ANY).audit()["ok"]


# Faults: what is done to a node -> what is said


def column(name, value, frontier, page=None):
    at = page_in(frontier, State.READ) if page is None else page
    frontier.columns[name][at] = value


def more_cash(frontier):
    frontier.columns["cash"][page_in(frontier, State.READ)] += 1


def negative_cash(frontier):
    """Moved from one page to another: the sum still holds."""
    page = page_in(frontier, State.READ)
    other = page_in(frontier, State.READ, but=page)
    amount = int(frontier.ledger.effective(slice(page, page + 1))[0]) + 7
    frontier.columns["cash"][page] -= amount
    frontier.columns["cash"][other] += amount


def foreign_cash(frontier):
    frontier.columns["cash"][page_in(frontier, State.FOREIGN)] = 5


def foreign_count(frontier):
    frontier.ledger.foreign += 1


def no_state(frontier):
    frontier.columns["state"][page_in(frontier, State.READ)] = 77


def no_host(frontier):
    column("host", 1000, frontier)


def no_number(frontier):
    column("flow", np.nan, frontier)


def map_hole(frontier):
    delete(frontier, rows.MAP.key(frontier.columns.n - 3))


def map_end(frontier):
    delete(frontier, rows.MAP.key(frontier.columns.n - 1))


def other_url(frontier):
    put(frontier, rows.MAP.key(page_in(frontier, State.READ)), b"\0\0\0\0http://h77.example/never-met")


def other_host(frontier):
    page = page_in(frontier, State.READ)
    frontier.columns["host"][page] = (int(frontier.columns["host"][page]) + 1) % len(frontier.partition.hosts)


def not_ours(frontier):
    frontier.columns["state"][page_in(frontier, State.FOREIGN)] = State.OUT


def clash_to_nowhere(frontier):
    key, _ = first_key(frontier, rows.CLASH.prefix)
    put(frontier, key, (10**6).to_bytes(4, "big"))


def clash_to_another(frontier):
    key, value = first_key(frontier, rows.CLASH.prefix)
    other = (int.from_bytes(value, "big") + 1) % frontier.columns.n
    put(frontier, key, other.to_bytes(4, "big"))


def row_of(frontier, **changes):
    page = page_in(frontier, State.READ)
    row = frontier.partition.row(page)
    put(frontier, rows.REFRESH.key(page), rows.pack(rows.msgspec.structs.replace(row, **changes)))


def row_lost(frontier):
    delete(frontier, rows.REFRESH.key(page_in(frontier, State.READ)))


def row_of_nobody(frontier):
    put(frontier, rows.REFRESH.key(frontier.columns.n + 5), rows.pack(rows.RefreshRow()))


def read_but_unread(frontier):
    """Its host counts it, so that only the row shows it."""
    page = page_in(frontier, State.READ)
    frontier.columns["state"][page] = State.UNREAD
    frontier.partition.hosts.waiting[frontier.columns["host"][page]] += 1


def child_nowhere(frontier):
    key, _ = first_key(frontier, rows.LINK.prefix)
    put(frontier, key, rows.pack_links(np.array([10**6], np.uint32)))


def child_twice(frontier):
    key, _ = first_key(frontier, rows.LINK.prefix)
    put(frontier, key, rows.pack_links(np.array([1, 1], np.uint32)))


def parent_nowhere(frontier):
    put(frontier, rows.LINK.key(frontier.columns.n + 1), rows.pack_links(np.array([1], np.uint32)))


def want_lost(frontier):
    frontier.columns["flags"][page_in(frontier, State.READ)] |= WANTED


def want_unmarked(frontier):
    put(frontier, rows.WANTED.key(page_in(frontier, State.READ)), rows.pack(rows.WantedRow(Priority.ORDERED)))


def waiting_count(frontier):
    frontier.partition.hosts.waiting[0] += 1


def leased_count(frontier):
    frontier.partition.hosts.leased[0] += 1


def leased_flag(frontier):
    frontier.columns["flags"][page_in(frontier, State.READ)] |= LEASED


def wait_for_nobody(frontier):
    wait = rows.WaitRow(1, (10**6,), b"", "http://h0.example/")
    put(frontier, rows.STATUS.key(page_in(frontier, State.READ)), rows.pack(wait))


def damaged(layout, frontier):
    key, value = first_key(frontier, layout.prefix)
    start = 4 if layout is rows.MAP else 0  # any four bytes are a date
    put(frontier, key, value[:-1] if layout is rows.LINK else value[:start] + b"\xc1" + value[start + 1 :])


def with_outbox(frontier):
    return [(key, decode(value)) for key, value in frontier.partition.store.scan(rows.OUTBOX.prefix)]


def transfer_lost(frontier):
    """Without cash of its own, so that only its number is missed."""
    key, transfer = with_outbox(frontier)[-1]
    delete(frontier, key)
    cash = transfer.virtual + sum(item.cash for item in transfer.items)
    frontier.ledger.virtual.pot += cash


def transfer_changed(frontier):
    key, transfer = with_outbox(frontier)[-1]
    items = (Passing(url(0, 1), 10**9), *transfer.items)
    put(frontier, key, encode(replace(transfer, items=items)))


def transfer_of_another(frontier):
    key, transfer = with_outbox(frontier)[-1]
    put(frontier, key, encode(replace(transfer, seq=transfer.seq + 9)))


def outbox_of_something_else(frontier):
    put(frontier, rows.OUTBOX.key(1 - frontier.partition.number, 10**6), encode(Submit((url(0),))))


def outbox_damaged(frontier):
    put(frontier, rows.OUTBOX.key(1 - frontier.partition.number, 10**6), b"\x00")


def applied_too_much(frontier):
    put(frontier, rows.INBOX.key(1 - frontier.partition.number), (10**6).to_bytes(8, "big"))


FAULTS = {
    more_cash: "cash: 5,373,953 units where 5,373,952 were minted (+1)",
    negative_cash: "has less than no cash",
    foreign_cash: "cash lies on a page of another partition",
    foreign_count: "were counted",
    no_state: "is in no state",
    no_host: "is booked under host 1000, which does not exist",
    no_number: "an importance is negative or no number",
    map_hole: "Map-Data lacks page",
    map_end: "Map-Data has",
    other_url: "is not found by its URL",
    other_host: "is booked under host",
    not_ours: "belongs to another partition",
    clash_to_nowhere: "names page 1000000, which is another one",
    clash_to_another: "which is another one",
    partial(row_of, changes=99): "99 changes in",
    partial(row_of, first_read=2**31): "first 2147483648",
    partial(row_of, weight=123.0): "the weights add up to",
    row_lost: "is read but has no Refresh-Data",
    row_of_nobody: "Refresh-Data of page",
    read_but_unread: "was read but is unread",
    child_nowhere: "links to page 1000000, which does not exist",
    child_twice: "has a child twice",
    parent_nowhere: "Link-Data of page",
    want_lost: "is marked as ordered, but not both",
    want_unmarked: "is stored as ordered, but not both",
    waiting_count: "pages wait,",
    leased_count: "pages are out,",
    leased_flag: "pages are out,",
    wait_for_nobody: "waits for (1000000,)",
    partial(damaged, rows.REFRESH): "RefreshRow",
    partial(damaged, rows.LINK): "Link-Data",
    partial(damaged, rows.MAP): "Map-Data",
    partial(damaged, rows.STATUS): "WaitRow",
    transfer_lost: "is lost",
    transfer_changed: "cash: ",
    transfer_of_another: "lies something else",
    outbox_of_something_else: "lies something else",
    outbox_damaged: "transfer 1000000 to",
    applied_too_much: "transfers were sent, 1000000 are there",
}


def _name(number, fault):
    return f"{number}-{(fault.func if isinstance(fault, partial) else fault).__name__}"


@pytest.mark.parametrize("fault", FAULTS, ids=[_name(*numbered) for numbered in enumerate(FAULTS)])
def test_each_fault_is_found(fault):
    crawl = whole()
    frontier = crawl.frontiers[crawl.owner(url(0))]
    fault(frontier)
    said = crawl.audit()
    assert not said["ok"]
    assert any(FAULTS[fault] in violation for violation in said["violations"]), said["violations"]


def test_few_of_many_violations_are_told_and_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_LISTED", 4)
    crawl = whole()
    for frontier in crawl.frontiers:
        for page in range(10):
            put(frontier, rows.LINK.key(frontier.columns.n + page), rows.pack_links(np.array([0], np.uint32)))
    violations = crawl.audit()["violations"]
    assert len(violations) == 5 and violations[-1] == "and 16 more"


def test_of_a_directory_with_some_partitions_each_is_checked_by_itself(tmp_path):
    """A node of a cluster, or its backup: the audit refused it, and did not say why it cannot be exact."""
    data, seed = tmp_path / "data", "http://127.0.0.1:9/"
    process("crawl", seed, *LOOPBACK, "--partitions", "4", "--data", data)
    assert xyro("audit", "--data", data).returncode == 0
    owner = partition_of("127.0.0.1", 4)
    other = (owner + 1) % 4
    shutil.rmtree(data / f"p{other:04d}")
    assert xyro("audit", "--data", data).returncode == 2, "a crawl of one process has lost it"
    set_epoch(data / f"p{owner:04d}", 1)
    done = xyro("audit", "--data", data)
    assert done.returncode == 3 and done.stdout.startswith(
        f"incomplete: partitions {(owner + 1) % 4} are not in {data}"
    )
    assert "cash, and what partitions sent each other, are not checked (`xyro audit --join URL` does" in done.stdout
    store = Store.open(data / f"p{owner:04d}" / "store")
    batch = store.batch()
    batch.delete(rows.MAP.key(0))
    store.write(batch)
    store.close()
    done = xyro("audit", "--data", data)
    assert (
        done.returncode == 1
        and "BROKEN: partitions" in done.stdout
        and "Map-Data has 0 pages, the columns 1" in done.stdout
    )
