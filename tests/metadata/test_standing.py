"""Orders by host and folder: counted once each, durable, halved now and then."""

import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, report
from xyro.metadata import hosts as module
from xyro.metadata.hosts import QUERIES, QUERY_ORDERS
from xyro.metadata.states import FOLDER
from xyro.wire.urls import folder_of

SITE = [f"http://h{host}.example/{folder}/p{page}.html" for host in (0, 1) for folder in "ab" for page in range(30)]


def standing(crawl):
    return crawl.frontier.partition.standing


def read(crawl, count):
    """Let so many reads of SITE be answered; all pages link to all."""
    while crawl.frontier.reads < count and crawl.orders:
        order = next(iter(crawl.orders.values()))
        crawl.give(report(order, START, SITE))
        crawl.turn()


def begun(path=None):
    crawl = Crawl.in_memory() if path is None else Crawl.on_disk(path)
    crawl.submit(SITE[0], SITE[60])
    crawl.turn()
    return crawl


def counted(crawl):
    """The orders issued, by host and by the URL's folder, as a reader of the orders counts them."""
    hosts, folders = {}, {}
    for order in crawl.issued:
        host, folder = order.url.split("/")[2], order.url.rpartition("/")[0]
        hosts[host] = hosts.get(host, 0) + 1
        folders[folder] = folders.get(folder, 0) + 1
    return hosts, folders


def test_each_order_of_an_unread_page_counts_once():
    crawl = begun()
    read(crawl, 50)
    hosts, folders = counted(crawl)
    numbers = crawl.frontier.partition.hosts.numbers
    assert {name: standing(crawl).of_host(number) for name, number in numbers.items()} == hosts
    for name, orders in folders.items():
        assert standing(crawl).of_folder(crawl.page(f"{name}/p0.html")[1]) == orders
    assert int(standing(crawl).folders.sum()) == len(crawl.issued)


def test_counts_come_back_after_a_restart(tmp_path):
    crawl = begun(tmp_path / "data")
    read(crawl, 40)
    crawl.run(lambda order: report(order, START, SITE))
    folders, hosts = standing(crawl).folders.copy(), standing(crawl).of_hosts(2).copy()
    assert folders.any() and hosts.sum() == len(crawl.issued) == len(SITE)
    crawl.close()
    again = Crawl.on_disk(tmp_path / "data")
    assert (
        standing(again).folders.tolist() == folders.tolist() and standing(again).of_hosts(2).tolist() == hosts.tolist()
    )
    again.close()


def test_orders_that_a_run_did_not_hear_of_are_not_counted_by_the_next(tmp_path):
    """They are given out, and counted, again: as many orders as pages are told, however often it ended."""
    crawl = begun(tmp_path / "data")
    read(crawl, 20)
    for _ in range(6):
        assert len(crawl.orders) > 3, "orders are out"
        crawl.close()
        crawl = Crawl.on_disk(tmp_path / "data")
        read_so_far = crawl.frontier.reads
        assert standing(crawl).of_hosts(2).sum() == standing(crawl).folders.sum() == read_so_far
        crawl.turn()
        assert standing(crawl).of_hosts(2).sum() == read_so_far + len(crawl.orders), "those that are out count"
        read(crawl, read_so_far + 6)
    crawl.close()


def test_counts_are_halved_and_stay_halved(tmp_path, monkeypatch):
    crawl = begun(tmp_path / "data")
    monkeypatch.setattr(module, "HALVING", 1)  # 120 pages are known: halved after the 120th order
    standing(crawl).of_hosts(2)[:] = 64
    standing(crawl)._changed.update(2**32 + host for host in (0, 1))
    read(crawl, 120)
    assert len(crawl.issued) == 120
    assert standing(crawl).of_hosts(2).tolist() == [61, 61], "(64 + 59) / 2"
    crawl.run(lambda order: report(order, START, SITE))
    crawl.close()
    again = Crawl.on_disk(tmp_path / "data")
    assert standing(again).of_hosts(2).tolist() == [61, 61]
    again.close()


def test_a_directory_without_the_table_begins_with_its_reads(tmp_path):
    crawl = begun()
    read(crawl, 40)
    old = crawl.frontier.partition
    fresh = module.Standing(old.hosts, old.columns)
    fresh.load(None, ())
    reads = int(np.isin(old.columns["state"][: old.columns.n], module._ORDERED).sum())
    assert fresh.of_hosts(2).sum() == reads == 40
    slots = old.columns[FOLDER][: old.columns.n]
    assert fresh.folders[slots].all() and fresh.folders.sum() == reads


def test_a_folder_is_what_the_url_says():
    partition = begun().frontier.partition
    slot = partition.folder_slot
    assert slot("http://h.example/a/p1.html") == slot("https://h.example/a/p2.html") < QUERIES
    distinct = ["http://h.example/", "http://h.example/a/p", "http://h.example/a/p?x=1", "http://g.example/a/p"]
    assert len({slot(url) for url in distinct}) == len(distinct)
    assert slot("http://h.example/a/p?x=1") == slot("http://h.example/a/p?x=2&y=/b/") >= QUERIES


def test_an_order_of_a_path_with_a_query_counts_as_many(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "data")
    shown = [f"http://h.example/{path}" for path in ("a/list?p=1", "a/list?p=2", "a/p1", "a/p2")]
    crawl.submit("http://h.example/")
    crawl.turn()
    crawl.run(lambda order: report(order, START, shown))
    page = crawl.page(shown[0])[1]
    assert standing(crawl).of_folder(page) == 2 * QUERY_ORDERS
    assert standing(crawl).of_folder(crawl.page(shown[2])[1]) == 2
    old = crawl.frontier.partition
    fresh = module.Standing(old.hosts, old.columns)
    fresh.load(None, ())  # a directory of before the table
    assert fresh.of_folder(page) == 2 * QUERY_ORDERS


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("http://h/", "h/"),
        ("http://h/p", "h/"),
        ("http://h/index.html", "h/"),
        ("http://h/a/", "h/"),
        ("http://h/a/p.html", "h/a/"),
        ("http://h/a/b/p.html", "h/a/b/"),
        ("http://h/a/b/", "h/a/"),
        ("http://h/a/b/c/", "h/a/"),
        ("http://h/a/b/c/index.php", "h/a/"),
        ("http://h/?x=/1/", "h/?"),
        ("http://h/a/b/?x=1", "h/a/b/?"),
    ],
)
def test_a_folders_own_page_belongs_to_the_first_folder_above(url, folder):
    assert folder_of(url) == folder


@pytest.mark.parametrize("name", ["hosts", "folders"])
def test_scores_fall_with_the_orders(name):
    crawl = begun()
    read(crawl, 3)
    page = crawl.page(SITE[29])[1]
    before = crawl.frontier.scheduler.discovery.explain(page)
    getattr(standing(crawl), name)[:] += 100
    after = crawl.frontier.scheduler.discovery.explain(page)
    assert after.score < before.score and after.linked == before.linked
    patience = ((1 + after.folder_orders / 8) * (1 + after.host_orders)) ** 0.5
    assert after.score == pytest.approx((after.weight * after.linked + after.floor) / patience, rel=1e-3)


def test_a_folder_of_copies_is_charged_for_each_read_once():
    crawl = begun()
    table, before = standing(crawl), standing(crawl).poor_reads
    folder = crawl.page(SITE[0])[1]
    slot = crawl.frontier.columns[FOLDER][[folder]]
    already = table.of_folder(folder)
    reads = 0
    while not table.poor_slots(slot).any():
        table.count(folder)  # as an order of one more of its pages
        table.note_copy(folder)
        reads += 1
    assert reads == module.COPIES + 1
    assert table.poor_reads == before - reads - already
