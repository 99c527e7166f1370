"""Unread pages by score: real pages beside traps, from the first read on; pages at random; partitions; restarts."""

import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, report
from xyro.configs.schema import CrawlSettings, RefreshSettings, Settings
from xyro.fetch_queue import level_of
from xyro.frontier.discovery import CITED_WEIGHT, LEAST_AHEAD
from xyro.lab.order.traps import FACETS, HARD, REAL, SHAPES, TrapSite, real_pages
from xyro.service.views.why import why
from xyro.wire.messages import Priority
from xyro.wire.urls import path_of

HOST = "http://trap.example"


def crawled(shape, reads=300, restart=None, partitions=1, width=None):
    """The paths read, in their order, one at a time as a polite crawl does."""
    site, seen = TrapSite(shape, width), []
    crawl = Crawl.in_memory(partitions) if restart is None else Crawl.on_disk(restart, partitions)
    crawl.submit(f"{HOST}/")
    crawl.turn()
    while len(seen) < reads:
        order = _next(crawl)
        seen.append(order.url.removeprefix(HOST))
        crawl.give(report(order, START, [HOST + link for link in site.links(seen[-1])]))
        for _ in range(2):
            crawl.turn()
            crawl.deliver_all()
        if restart is not None and len(seen) == reads // 3:
            crawl.close()
            crawl = Crawl.on_disk(restart)
            crawl.turn()
    return seen


def _next(crawl):
    """The queue's order: by its lines, then as they came."""
    return min(crawl.orders.values(), key=level_of)


def real(shape, paths):
    """Count the real pages among paths, each once."""
    site = TrapSite(shape)
    return len({site.real(path) for path in paths} - {None})


@pytest.mark.parametrize("shape", SHAPES)
def test_the_real_pages_beside_a_trap_are_read(shape):
    assert real(shape, crawled(shape)) >= 235


@pytest.mark.parametrize("shape", SHAPES)
def test_most_real_pages_are_read_beside_traps_whose_pages_open_more(shape):
    assert real(shape, crawled(shape, width=HARD[shape])) >= 200


def test_a_restart_forgets_nothing(tmp_path):
    assert real("endless", crawled("endless", restart=tmp_path / "data")) >= 235


def test_the_same_with_partitions():
    assert real("closed", crawled("closed", partitions=4)) >= 235


def test_the_site_has_all_its_pages():
    site = TrapSite("closed")
    found, unread = {"/"}, ["/"]
    while unread:
        unread = list({link for path in unread for link in site.links(path)} - found)
        found.update(unread)
    assert set(real_pages()) <= found and len(found) == REAL + FACETS
    assert {path_of(HOST + path).count("/") for path in real_pages()} == {1, 2}


def test_some_orders_of_a_host_are_of_the_page_that_waited_longest_more_of_its_first_ones():
    crawl = Crawl.in_memory()
    crawl.submit(f"{HOST}/")
    crawl.turn()
    crawl.run(
        lambda order: report(order, START, [f"{HOST}/{page}" for page in range(2000)] if order.url[-1] == "/" else ())
    )
    pages, levels = zip(*((order.page, order.priority) for order in crawl.issued[1:]), strict=True)
    assert len(levels) == 2000 and set(levels) == {Priority.DISCOVER, Priority.SCOUT}
    assert 3 <= levels[:40].count(Priority.SCOUT) <= 5
    assert levels[1000:].count(Priority.SCOUT) == pytest.approx(1000 / 21, abs=5)
    for place in [place for place, level in enumerate(levels) if level is Priority.SCOUT][:50]:
        assert pages[place] <= min(pages[place + 64 :]), "none of those that are ordered much later has waited longer"


@pytest.mark.parametrize("doors", [1, 4])
def test_no_page_waits_for_ever_beside_traps_that_are_worth_more(doors):
    """The first page leads to twenty pages and some doors; behind each every page hands all it has to a fresh folder.
    All are among the first 21 x 20 orders: by their turn, whatever the traps are worth."""
    crawl = Crawl.in_memory()
    crawl.submit(f"{HOST}/")
    crawl.turn()
    menu = [f"{HOST}/{name}{number}" for name, count in (("p", 20), ("door", doors)) for number in range(count)]

    def answer(order):
        path = order.url.removeprefix(f"{HOST}/")
        if path == "":
            return report(order, START, menu)
        return report(order, START, [] if path[0] == "p" else [f"{HOST}/{path}x/{number}/" for number in range(3)])

    while len(crawl.issued) < 21 * 20:
        for order in list(crawl.orders.values()):
            crawl.give(answer(order))
        crawl.turn()
    assert {f"{HOST}/p{number}" for number in range(20)} <= {order.url for order in crawl.issued}


def test_a_host_looks_farther_ahead_when_it_has_used_up_its_orders_not_when_it_had_none():
    """Its known page is read again meanwhile: a first page that was read is no sign of a host that is fast."""
    settings = Settings(CrawlSettings(scope="any"), refresh=RefreshSettings(bandwidth="100/s", gamma=50.0))
    crawl = Crawl.in_memory(settings=settings, refreshing=True)

    def new():
        return [order for order in crawl.orders.values() if order.priority in (Priority.DISCOVER, Priority.SCOUT)]

    crawl.submit(f"{HOST}/")
    crawl.turn()
    host = crawl.frontier.partition.hosts
    crawl.give(report(next(iter(crawl.orders.values())), START, [f"{HOST}/{page}" for page in range(200)]))
    host.leased[0] += 1  # an order for a page that was read
    crawl.turn()
    assert len(new()) == LEAST_AHEAD
    for order in new():
        crawl.give(report(order, START))
    crawl.turn()
    assert len(new()) == 2 * LEAST_AHEAD, "all were used up before this turn"
    host.leased[0] -= 1


MENU = [f"{HOST}/menu/{page}" for page in range(40)]
OTHER = "http://other.example/"


def _cited(crawl):
    """A menu of 40 pages, and another host that links to the last ten of them; both were read."""
    crawl.submit(f"{HOST}/", OTHER)
    crawl.turn()
    for order in list(crawl.orders.values()):
        crawl.give(report(order, START, [*MENU, OTHER] if order.url != OTHER else [*MENU[-10:], f"{HOST}/"]))
    for _ in range(4):
        crawl.turn()
        crawl.deliver_all()
    return crawl


def _waiting(crawl, targets):
    """Those of the targets for which no order is out."""
    return [target for target in targets if target not in {order.url for order in crawl.issued}]


def _parts(crawl, target):
    frontier, page = crawl.page(target)
    return frontier.scheduler.discovery.explain(page)


@pytest.mark.parametrize("partitions", [1, 16])
def test_a_page_that_another_host_links_to_counts_more(partitions):
    crawl = _cited(Crawl.in_memory(partitions))
    assert crawl.owner(MENU[0]) != crawl.owner(OTHER) or partitions == 1
    cited, own = (_parts(crawl, target) for target in (MENU[-1], MENU[0]))
    assert (cited.weight, own.weight) == (CITED_WEIGHT, 1)
    patience = ((1 + cited.folder_orders / 8) * (1 + cited.host_orders)) ** 0.5
    assert cited.score == pytest.approx((CITED_WEIGHT * cited.linked + cited.floor) / patience, rel=1e-3)


def test_it_does_so_after_a_restart(tmp_path):
    crawl = _cited(Crawl.on_disk(tmp_path / "data"))
    before = _parts(crawl, MENU[-1])
    crawl.close()
    crawl = Crawl.on_disk(tmp_path / "data")
    crawl.turn()
    assert _parts(crawl, MENU[-1]).weight == before.weight == CITED_WEIGHT


def test_it_is_read_before_one_that_its_own_host_pays_half_as_much_again():
    crawl = _cited(Crawl.in_memory())
    cited, own = _waiting(crawl, MENU[-10:])[0], _waiting(crawl, MENU[:-10])[-1]
    linked = crawl.frontier.ledger.linked(np.array([crawl.page(cited)[1]]))
    crawl.frontier.columns["cash"][crawl.page(own)[1]] += int(linked[0]) // 2
    read = []
    while cited not in read and own not in read:
        order = _next(crawl)
        read.append(order.url)
        crawl.give(report(order, START))
        crawl.turn()
    assert read[-1] == cited


def test_why_tells_that_a_page_is_cited():
    crawl = _cited(Crawl.in_memory())
    with crawl.views() as views:
        explained = why(views, _waiting(crawl, MENU[-10:])[0], START)
    (sentence,) = (line for line in explained["because"] if "by score" in line)
    assert explained["score"]["weight"] == CITED_WEIGHT
    assert f"({CITED_WEIGHT} x " in sentence and "a page of another host links to it" in sentence


def test_why_tells_the_score_and_its_parts():
    crawl = Crawl.in_memory()
    crawl.submit(f"{HOST}/")
    crawl.turn()
    crawl.give(report(next(iter(crawl.orders.values())), START, [f"{HOST}/a/{page}" for page in range(9)]))
    crawl.turn()
    waits = next(f"{HOST}/a/{page}" for page in range(9) if f"{HOST}/a/{page}" not in {o.url for o in crawl.issued})
    with crawl.views() as views:
        explained, read = why(views, waits, START), why(views, f"{HOST}/", START)
    score = explained["score"]
    assert (score["folder_orders"], score["host_orders"], score["floor"]) == (4, 5, 1 / 16)
    parts = (score["linked"] + score["floor"]) / ((1 + 4 / 8) * (1 + 5)) ** 0.5
    assert score["score"] == pytest.approx(parts, rel=1e-3)
    (sentence,) = (line for line in explained["because"] if "by score" in line)
    assert "sqrt((1 + 4/8) (1 + 5))" in sentence
    assert read["score"] is None and not any("by score" in line for line in read["because"])
