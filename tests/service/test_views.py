"""Views: the rows of export, top and hosts, of one commit boundary, whatever goes on meanwhile."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, failed, pages, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings
from xyro.service.views.summary import summary
from xyro.service.views.views import View
from xyro.service.views.why import why
from xyro.wire.messages import Kind
from xyro.wire.text import stamp

ANY = Settings(crawl=CrawlSettings(scope="any"))
DAY = 86_400.0


def crawl_of(partitions=1, settings=ANY, **options):
    crawl = Crawl.in_memory(partitions, settings=settings, **options)
    crawl.submit(url(0))
    crawl.turn()
    return crawl


def order_all(crawl):
    """Order the eight pages of a host that was hardly read: a few of them only would have orders by themselves."""
    crawl.submit(*(url(0, page) for page in range(1, 9)))
    crawl.turn()


def row(crawl, target):
    return next(page for page in pages(crawl) if page["url"] == target)


def test_stamps():
    assert stamp(0) is None and stamp(START) == "2023-11-14T22:13:20Z"


def test_a_page_read_once():
    crawl = crawl_of(settings=msgspec.structs.replace(ANY, refresh=RefreshSettings(min_interval=60.0)), refreshing=True)
    crawl.answer(crawl.order(url(0)), [url(0, 1), url(1, 1)], mime="text/html")
    crawl.turn()
    said = row(crawl, url(0))
    due = int(crawl.frontier.columns["due"][0])
    assert said == {
        "id": 0, "url": url(0), "host": "h0.example", "kind": "HTML", "http_status": 200, "state": "read",
        "error": None, "depth": 0, "importance": said["importance"],
        "cash": int(crawl.frontier.ledger.effective(slice(0, 1))[0]),
        "change_rate": pytest.approx(0.313959, rel=1e-3), "rate_from": "others", "stale": 0.0,
        "interval_s": due - int(START),
        "first_seen": stamp(START), "first_read": stamp(START), "last_read": stamp(START), "last_change": stamp(START),
        "next_read": stamp(due), "reads": 1, "changes": 0, "out_links": 2, "signature": (1).to_bytes(16, "big").hex(),
        "refused": None,
        **{name: said[name] for name in said if name.startswith(("importance_", "trend", "conv", "error_b"))},
    }  # fmt: skip


def test_a_page_never_read():
    crawl = crawl_of()
    said = row(crawl, url(0))
    assert said["state"] == "leased" and said["first_seen"] == stamp(START)
    nothing = ("kind", "http_status", "error", "change_rate", "rate_from", "interval_s", "first_read", "last_read",
               "last_change", "next_read", "out_links", "signature")  # fmt: skip
    assert {said[name] for name in nothing} == {None} and (said["reads"], said["changes"]) == (0, 0)


@pytest.mark.parametrize(
    ("error", "again"),
    [("http-404", True), ("robots-disallowed", True), ("blocked-address", False)],
)
def test_what_failed_for_good_says_when_it_is_tried_once_more(error, again):
    crawl = crawl_of(refreshing=True)
    crawl.fail(crawl.order(url(0)), error, status=404 if error == "http-404" else 0)
    crawl.turn()
    said, due = row(crawl, url(0)), int(crawl.frontier.columns["due"][0])
    assert said["next_read"] == (stamp(due) if again else None) and bool(due > START) == again
    assert said["interval_s"] is None


def test_every_state_has_its_word():
    crawl = crawl_of(settings=Settings(crawl=CrawlSettings(scope="host", max_depth=1)))
    crawl.answer(crawl.order(url(0)), [url(0, page) for page in range(1, 9)] + [url(9, 9)])
    crawl.turn()
    crawl.submit(
        *(url(0, page) for page in range(1, 9))
    )  # of a host that was hardly read, few have orders by themselves
    crawl.turn()
    for page, error in ((1, "timeout"), (2, "http-404"), (3, "robots-disallowed"), (4, "blocked-address")):
        crawl.fail(crawl.order(url(0, page)), error, retry_in=9.0 if error == "timeout" else None)
    crawl.answer(crawl.order(url(0, 5)))
    crawl.room = 0
    crawl.turn()
    crawl.submit(url(0))
    crawl.turn()
    words = {page["url"]: (page["state"], page["error"]) for page in pages(crawl)}
    assert words == {
        url(0): ("queued", None),
        url(0, 1): ("error", "timeout"),
        url(0, 2): ("error", "http-404"),
        url(0, 3): ("disallowed", "robots-disallowed"),
        url(0, 4): ("blocked", "blocked-address"),
        url(0, 5): ("read", None),
        **{url(0, page): ("leased", None) for page in (6, 7, 8)},
        url(9, 9): ("out-of-scope", "out-of-scope"),
    }
    crawl.frontier.hold(0, "blocked")
    assert {page["state"] for page in pages(crawl) if page["host"] == "h0.example"} == {"blocked"}


@pytest.mark.parametrize("partitions", [1, 4])
def test_ids_cash_and_importance_of_a_whole_crawl(partitions):
    crawl = crawl_of(partitions)
    crawl.run(lambda order: report(order, START, [url(k % 7, k) for k in range(40)]))
    rows = pages(crawl)
    assert len({one["id"] for one in rows}) == len(rows) == 40
    assert sum(one["importance"] for one in rows) == pytest.approx(40, rel=1e-4), "mean 1 over all known pages"
    said = crawl.audit()
    assert sum(one["cash"] for one in rows) + said["virtual"] + said["in_flight"] == said["cash_total"] == 40 * 65_536
    with crawl.views() as views:
        assert {one["url"]: views.find(one["url"]) for one in rows} == {one["url"]: one["id"] for one in rows}
        assert views.find(url(0, 777)) is None


@pytest.mark.parametrize("partitions", [1, 4])
def test_links_name_both_ends_wherever_they_live(partitions):
    crawl = crawl_of(partitions)
    web = {url(k % 5, k): [url((k + j) % 5, (k + j) % 20) for j in (1, 2)] for k in range(20)}
    crawl.run(lambda order: report(order, START, web.get(order.url, [])))
    ids = {one["url"]: one["id"] for one in pages(crawl)}
    with crawl.views() as views:
        shown = list(views.links())
    assert {(one["source_url"], one["target_url"]) for one in shown} == {
        (source, target) for source in ids for target in web.get(source, [])
    }
    assert all((ids[one["source_url"]], ids[one["target_url"]]) == (one["source"], one["target"]) for one in shown)


def test_hosts_are_counted():
    crawl = crawl_of(settings=Settings(crawl=CrawlSettings(scope="host")))
    crawl.answer(crawl.order(url(0)), [url(0, 1), url(0, 2), url(5, 5)], host_next=START + 60, host_failures=2)
    crawl.turn()
    crawl.fail(crawl.order(url(0, 1)), "http-404", status=404)
    crawl.frontier.hold(1, "paused")
    crawl.turn()
    with crawl.views() as views:
        hosts = {one.pop("host"): one for one in views.hosts()}
    first = hosts["h0.example"]
    assert {name: first[name] for name in ("pages", "read", "unread", "errors", "held")} == {
        "pages": 3, "read": 1, "unread": 1, "errors": 1, "held": None,
    }  # fmt: skip
    assert summary(crawl.crawl_views.statuses(crawl.now))["held_hosts"] == {"paused": 1}
    assert hosts["h5.example"]["held"] == "paused" and hosts["h5.example"]["pages"] == 1
    assert sum(one["importance"] for one in hosts.values()) == pytest.approx(4, rel=1e-4)


# Top


def ranked(crawl, by, count=1000, now=START):
    with crawl.views() as views:
        return views.top(count, by, now)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("by", ["importance", "cash"])
def test_top_is_the_head_of_all_pages_sorted(partitions, by):
    crawl = crawl_of(partitions)
    crawl.run(lambda order: report(order, START, [url(k % 7, k * k % 50) for k in range(12)]))
    rows = sorted(pages(crawl), key=lambda one: -one[by])
    best = ranked(crawl, by, 5)
    assert [one[by] for one in best] == [one[by] for one in rows[:5]]
    assert [one["score"] for one in best] == pytest.approx([one[by] for one in best], rel=1e-4)
    assert len(ranked(crawl, by)) == len(rows) and ranked(crawl, by, 0) == []


def test_the_first_of_the_pages_that_were_read_are_those_alone():
    crawl = crawl_of(3)
    links = [url(k % 7, k * k % 50) for k in range(12)]
    crawl.run(lambda order: report(order, START, links) if order.page % 3 else failed(order, START, "http-404"))
    rows = sorted((row for row in pages(crawl) if row["state"] == "read"), key=lambda row: -row["importance"])
    assert 1 < len(rows) < len(pages(crawl))
    assert [row["importance"] for row in ranked(crawl, "read")] == [row["importance"] for row in rows]


@pytest.mark.parametrize("count", [1, 5, 30])
def test_the_stalest_pages_are_those_of_a_full_count(count):
    """Read at different times, some of them changed: the shortcut by importance finds the same."""
    crawl = crawl_of(2, refreshing=True)
    for _ in range(12):
        for order in list(crawl.orders.values())[:9]:
            crawl.answer(order, [url(k % 7, k * k % 60) for k in range(20)])
        crawl.deliver_all()
        crawl.turn()
        crawl.now += DAY / 9
    now = crawl.now + DAY
    score = {}
    for one in pages(crawl):
        if one["reads"]:
            frontier, page = crawl.page(one["url"])
            row = frontier.partition.row(page)
            fading = np.exp(-(2.0 ** (np.arange(51) / 2 - 12)) * (now - row.last_read) / DAY)
            score[one["url"]] = one["importance"] * (1.0 - float(row.belief.shares() @ fading))
    wanted = sorted(score.values(), reverse=True)[:count]
    found = ranked(crawl, "stale", count, now)
    assert [one["score"] for one in found] == pytest.approx(wanted, rel=1e-3)
    assert [score[one["url"]] for one in found] == pytest.approx(wanted, rel=1e-3)


def test_few_rows_are_read_for_the_stalest(monkeypatch):
    crawl = crawl_of()
    crawl.run(lambda order: report(order, START, [url(k % 7, k) for k in range(1, 200)] if order.url == url(0) else ()))
    frontier, page = crawl.page(url(1, 1))
    frontier.columns["flow"][page] = 500.0
    looks = []
    monkeypatch.setattr(View, "row", lambda view, page, row=View.row: looks.append(page) or row(view, page))
    assert [one["url"] for one in ranked(crawl, "stale", 1, START + 1000 * DAY)] == [url(1, 1)]
    assert len(looks) < 20


# One boundary


def test_a_view_does_not_move_while_the_crawl_goes_on(tmp_path):
    crawl = Crawl.on_disk(tmp_path / "data", 2, settings=ANY)
    crawl.submit(url(0))
    crawl.turn()
    with crawl.views() as views:
        before = list(views.pages())
        crawl.run(lambda order: report(order, START, [url(k % 7, k) for k in range(30)]))
        assert list(views.pages()) == before and views.known_pages == 1
        assert views.find(url(1, 1)) is None, "not known yet"
    assert len(pages(crawl)) == 30
    crawl.close()


def test_a_crawl_without_pages_has_views():
    crawl = Crawl.in_memory(2, settings=ANY)
    with crawl.views() as views:
        assert list(views.pages()) == list(views.links()) == list(views.hosts()) == views.top(5, "stale", START) == []
        assert views.mean == 1.0


# Why


READ = "It was read last at 2023-11-14T22:13:20Z (HTTP 200)."


@pytest.mark.parametrize(
    ("target", "because"),
    [
        (url(0), READ),
        (url(0, 1), "An order to read it is out."),
        (url(0, 2), "Its last read failed for now (timeout); it is tried again at 2023-11-14T22:13:29Z."),
        (url(0, 3), "Its last read failed for good (http-404)."),
        (url(0, 4), "The robots.txt of its host forbids it."),
        (url(0, 5), f"{READ} Its body was cut at [fetch] max_body: links behind the cut are not known."),
        (url(0, 7), f"{READ} Its body was cut at [fetch] max_ratio: links behind the cut are not known."),
        (url(0, 6), f"{READ} Its body ended early: links behind its end are not known."),
        (url(9, 9), "It is never read: its host is not among the seeds' (scope)."),
        (url(9, 1), "No page read so far links to it, and nobody submitted it."),
    ],
)
def test_why(target, because):
    crawl = crawl_of(settings=Settings(crawl=CrawlSettings(scope="host")))
    crawl.answer(crawl.order(url(0)), [url(0, page) for page in range(1, 9)] + [url(9, 9)], kind=Kind.HTML)
    crawl.turn()
    order_all(crawl)
    crawl.fail(crawl.order(url(0, 2)), "timeout", retry_in=9.0)
    crawl.fail(crawl.order(url(0, 3)), "http-404", status=404)
    crawl.fail(crawl.order(url(0, 4)), "robots-disallowed")
    crawl.answer(crawl.order(url(0, 5)), [], kind=Kind.HTML, signature=b"", truncated="length")
    crawl.answer(crawl.order(url(0, 7)), [], kind=Kind.HTML, signature=b"", truncated="ratio")
    crawl.answer(crawl.order(url(0, 6)), [], kind=Kind.HTML, signature=b"", truncated="disconnect")
    crawl.turn()
    with crawl.views() as views:
        said = why(views, target, START)
    assert said["url"] == target and because in said["because"]
