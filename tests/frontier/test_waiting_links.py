"""Links that wait for standing: who is let in, what it costs, and that cash and stored state stay exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontier.rig import START, Crawl, links_to, url
from xyro.configs.schema import CrawlSettings, Settings, StandingSettings
from xyro.frontier.claims import LONG_DOCUMENTS
from xyro.frontier.ledger import LINKS_AT_ONCE
from xyro.frontier.waiting_links import ELSEWHERE, FULL_FIRST, SLICE_PAUSE
from xyro.metadata import rows
from xyro.metadata.hosts import HERITAGE, PRICE, Introductions
from xyro.metadata.states import HINTED
from xyro.wire.commands import HoldHost
from xyro.wire.messages import Kind, LinkKind, LoadReport, LoadState
from xyro.wire.urls import authority, host_of, site_of


def settings(**standing: int) -> Settings:
    return Settings(crawl=CrawlSettings(scope="any"), standing=StandingSettings(**standing))


# Credit


def test_credit_is_paid_handed_on_and_earned():
    credit = Introductions()
    credit.grant = 100 * PRICE
    credit.found("seed.test")
    assert credit.introduce("seed.test", "new.test") == 99 * PRICE // 4
    assert credit.state("seed.test") == (99 * PRICE - 99 * PRICE // 4, 0, 1)
    credit.inherit("new.test", PRICE - 1)
    assert credit.introduce("new.test", "other.test") == -1
    credit.count_read("new.test")
    assert credit.may_introduce("new.test")
    assert credit.introduce("new.test", "other.test") == 0
    assert credit.state("new.test") == (0, 1, 1)


def test_heritage_is_bounded_and_a_seed_is_not_made_poorer():
    credit = Introductions()
    credit.found("seed.test")
    assert credit.introduce("seed.test", "a.test") == HERITAGE
    credit.found("seed.test")
    assert credit.state("seed.test")[0] == credit.grant


def test_a_farm_brings_in_no_more_than_was_handed_to_it():
    credit = Introductions()
    credit.found("seed.test")
    credit.inherit("farm0", credit.introduce("seed.test", "farm0"))
    farm, hosts = ["farm0"], 1
    while farm:
        name = farm.pop()
        credit.count_read(name)
        for _ in range(30):
            if (heritage := credit.introduce(name, f"farm{hosts}")) < 0:
                break
            credit.inherit(f"farm{hosts}", heritage)
            farm.append(f"farm{hosts}")
            hosts += 1
    assert 10 < hosts <= 1 + HERITAGE // PRICE * 8 / 7


def test_a_thousand_names_of_a_farm_on_one_page_bring_in_no_more_than_one():
    credit = Introductions()
    credit.found("seed.test")
    hosts = 0
    for _ in range(1_000):
        credit.inherit("farm.test", credit.introduce("seed.test", "farm.test"))
        credit.count_read("farm.test")
        while credit.introduce("farm.test", "farm.test") >= 0:
            hosts += 1
    assert hosts == (HERITAGE + 1_000) // PRICE
    assert credit.state("seed.test")[0] >= credit.grant - HERITAGE - 1_000 * PRICE


def test_a_domain_that_a_poor_one_introduced_inherits_from_the_next():
    credit = Introductions()
    credit.found("seed.test")
    credit.inherit("poor.test", PRICE)
    credit.inherit("new.test", credit.introduce("poor.test", "new.test"))
    assert credit.state("new.test")[0] == 0
    credit.inherit("new.test", credit.introduce("seed.test", "new.test"))
    assert credit.state("new.test")[0] == HERITAGE


def test_hosts_of_its_own_cost_a_domain_their_price():
    credit = Introductions()
    credit.found("seed.test")
    for _ in range(100):
        credit.inherit("seed.test", credit.introduce("seed.test", "seed.test"))
    assert credit.state("seed.test") == (credit.grant - 100 * PRICE, 0, 100)


def test_credit_is_stored():
    credit, again = Introductions(), Introductions()
    credit.found("seed.test")
    credit.inherit("a.test", credit.introduce("seed.test", "a.test"))
    stored = sorted(credit.changes())
    assert [rows.DOMAIN.split(key) for key, _ in stored] == ["a.test", "seed.test"]
    again.load(stored)
    assert [again.state(name) for name in ("a.test", "seed.test")] == [
        credit.state(name) for name in ("a.test", "seed.test")
    ]
    assert not list(credit.changes())


# A crawl


def crawled(crawl: Crawl, links: dict[str, list[str]], turns: int = 60) -> list[str]:
    """Answer all orders; the URLs that were ordered."""
    read = []
    for _ in range(turns):
        orders = crawl.turn()
        crawl.deliver_all()
        for order in orders:
            read.append(order.url)
            crawl.answer(order, links.get(order.url, []))
        crawl.now += 0.05
    return read


@pytest.mark.parametrize("partitions", [1, 3])
def test_new_hosts_are_let_in_as_far_as_credit_goes(partitions):
    crawl = Crawl.in_memory(partitions, settings=settings(new_hosts=5))
    crawl.submit(url(0))
    links = {url(0): [url(host) for host in range(1, 20)]}
    read = set(crawled(crawl, links, 8))
    assert url(0) in read
    assert 1 < len(read) < 8
    assert sum(frontier.pages.waiting_links.links() for frontier in crawl.frontiers) == 20 - len(read)
    assert crawl.audit()["ok"]


def test_a_host_of_another_partition_costs_its_price_once():
    crawl = Crawl.in_memory(2, settings=settings(new_hosts=1_000))
    crawl.submit(url(0))
    home = crawl.owner(url(0))
    there = next(
        f"http://far{number}.test" for number in range(100) if crawl.owner(f"http://far{number}.test/") != home
    )
    deeper = [f"{url(0)}{number}" for number in range(5)]
    links = {url(0): deeper} | {page: [f"{there}/{number}" for number in range(8)] for page in deeper}
    read = crawled(crawl, links)
    assert {f"{there}/{number}" for number in range(8)} <= set(read)
    introductions = crawl.frontiers[home].partition.introductions
    credit, reads, introduced = introductions.state(site_of(host_of(url(0))))
    assert introduced == 1 and credit == 1_000 * PRICE + reads - PRICE - HERITAGE
    there_credit, there_reads, _ = crawl.frontiers[1 - home].partition.introductions.state(
        site_of(host_of(f"{there}/"))
    )
    assert there_credit == HERITAGE + there_reads


def crawl_with_a_long_host_elsewhere(links: int) -> tuple[Crawl, str, dict[str, list[str]]]:
    """A seed whose twenty pages lead to so many pages each of one host of another partition."""
    crawl = Crawl.in_memory(2, settings=settings(new_hosts=1_000, host_pages=64))
    crawl.submit(url(0))
    home = crawl.owner(url(0))
    there = next(far for far in (f"http://far{k}.test" for k in range(100)) if crawl.owner(f"{far}/") != home)
    deeper = [f"{url(0)}{number}" for number in range(20)]
    shown = {page: [f"{there}/{k}/{number}" for number in range(links)] for k, page in enumerate(deeper)}
    return crawl, there, {url(0): deeper} | shown


def unread_of(crawl: Crawl, host: str) -> int:
    hosts = crawl.frontiers[crawl.owner(f"{host}/")].partition.hosts
    number = hosts.numbers.get(authority(f"{host}/"))
    return 0 if number is None else int(hosts.waiting[number])


def fill(crawl: Crawl, there: str, links: dict[str, list[str]]) -> None:
    """Crawl until the host, which is not read, is full."""
    crawl.submit(f"{there}/")
    crawl.turn()
    crawl.pending[crawl.owner(f"{there}/")].append(HoldHost(0, authority(f"{there}/"), "paused"))
    for order in list(crawl.orders.values()):
        crawl.answer(order, links.get(order.url, []))
    crawled(crawl, links, 100)


def test_links_to_a_full_host_of_another_partition_wait_where_they_are():
    crawl, there, links = crawl_with_a_long_host_elsewhere(50)
    fill(crawl, there, links)
    most = unread_of(crawl, there)
    assert 64 <= most < 64 + 2 * 50
    home = crawl.frontiers[crawl.owner(url(0))].pages.waiting_links
    assert home.links() + most == 20 * 50 and crawl.audit()["ok"]
    for more in (1, 1, 2, 2):  # the first is too much, and said to be so, after FULL_FIRST and twice as much seconds
        crawl.now += FULL_FIRST
        for _ in range(5):
            crawl.turn()
            crawl.deliver_all()
        assert 0 < unread_of(crawl, there) - most <= 2 * more * 64 // ELSEWHERE, more


def test_a_pause_is_over_when_the_clock_is_set_back():
    crawl, there, links = crawl_with_a_long_host_elsewhere(50)
    fill(crawl, there, links)
    before = unread_of(crawl, there)
    crawl.now -= 3600.0
    crawled(crawl, links, 4)
    assert before < unread_of(crawl, there) <= before + 2 * 64 // ELSEWHERE


def test_links_go_on_as_soon_as_half_of_a_host_of_another_partition_is_read():
    crawl, there, links = crawl_with_a_long_host_elsewhere(50)
    read = crawled(crawl, links, 400)
    assert len(set(read)) == len(read) and sum(page.startswith(there) for page in read) == 20 * 50
    assert not any(frontier.pages.waiting_links.links() for frontier in crawl.frontiers)
    assert crawl.now < START + FULL_FIRST and crawl.audit()["ok"]


def test_while_nothing_else_is_left_one_host_a_second_is_let_in():
    crawl = Crawl.in_memory(settings=settings(new_hosts=2))
    crawl.submit(url(0))
    links = {url(0): [url(host) for host in range(1, 6)]}
    crawled(crawl, links, 4)
    first = crawl.frontier.pages.waiting_links.links()
    assert first >= 3
    assert crawl.frontier.relieve(crawl.now)
    assert not crawl.frontier.relieve(crawl.now + 0.9)
    crawled(crawl, links, 2)
    assert crawl.frontier.pages.waiting_links.links() == first - 1
    for _ in range(first - 1):
        crawl.now += 1.0
        assert crawl.frontier.relieve(crawl.now)
        crawled(crawl, links, 2)
    assert not crawl.frontier.pages.waiting_links
    assert crawl.frontier.partition.get(rows.WAIT.key(0)) is None
    assert len(crawl.frontier.partition.children(0)) == 5
    assert crawl.audit()["ok"]


def test_credit_for_one_host_has_the_links_of_one_page_looked_at():
    """Not those of all pages that wait for it: each look unpacks and packs all links of a page."""
    crawl = Crawl.in_memory(settings=settings(new_hosts=1))
    pages = [f"{url(0)}/{page}" for page in range(9)]
    crawl.submit(url(0))
    links = {page: [url(100 * number + host) for host in range(1, 4)] for number, page in enumerate(pages, 1)}
    crawled(crawl, links | {url(0): pages}, 40)
    waiting = crawl.frontier.pages.waiting_links
    before = waiting.links()
    assert len(waiting) == 9 and not crawl.frontier.pages.slices
    crawl.now += 2.0
    assert crawl.frontier.relieve(crawl.now)
    crawl.turn()
    assert len(crawl.frontier.pages.slices) == 1 and waiting.links() == before - 1


def test_partitions_of_a_process_let_in_one_host_a_second_together():
    crawl = Crawl.in_memory(3, settings=settings(new_hosts=2))
    for frontier in crawl.frontiers:
        frontier.pages.waiting_links.share(crawl.frontiers[0].pages.waiting_links)
    crawl.submit(url(0), url(1), url(2), url(3), url(4), url(5))
    crawled(crawl, {url(host): [url(10 * host + new) for new in range(10, 20)] for host in range(6)}, 8)
    assert sum(bool(frontier.pages.waiting_links) for frontier in crawl.frontiers) >= 2
    waiting = [frontier.pages.waiting_links.links() for frontier in crawl.frontiers]
    for _ in range(4):
        crawl.now += 1.0
        for frontier in crawl.frontiers:
            frontier.relieve(crawl.now)
        crawled(crawl, {}, 3)
    assert sum(waiting) - sum(frontier.pages.waiting_links.links() for frontier in crawl.frontiers) == 4


def test_a_host_has_only_so_many_unread_pages():
    crawl = Crawl.in_memory(settings=settings(host_pages=10))
    crawl.submit(url(0))
    links = {url(0): [url(0, page) for page in range(1, 300)]}
    (order,) = crawl.turn()
    crawl.answer(order, links[url(0)])
    out = crawl.turn()
    frontier = crawl.frontier
    assert frontier.columns.n == 65  # 64 for the one order
    assert frontier.pages.waiting_links.most_unread(0) == 320  # four more are out
    assert frontier.ledger.withheld == {0: 235}
    assert crawl.audit()["ok"]
    for order in out:
        crawl.answer(order)
    read = {order.url for order in out} | set(crawled(crawl, links, 200))
    assert len(read) == 299
    assert not frontier.pages.waiting_links
    assert crawl.audit()["ok"]


def test_what_would_go_along_waiting_links_goes_to_the_virtual_page():
    shown = [url(0, page) for page in range(1, 101)]
    whole, part = (Crawl.in_memory(settings=settings(host_pages=pages)) for pages in (1_000, 1))
    paid = []
    for crawl in (whole, part):
        crawl.submit(url(0))
        (order,) = crawl.turn()
        before = crawl.frontier.ledger.effective(slice(0, 1))[0]
        crawl.answer(order, shown)
        crawl.seal()
        children = crawl.frontier.partition.children(0)
        paid.append((before, len(children), int(crawl.frontier.ledger.linked(children.astype("i8")).sum())))
    (cash, links, all_of_it), (same, fewer, share) = paid
    assert cash == same
    assert (links, fewer) == (100, 64)
    assert share == pytest.approx(0.64 * all_of_it, rel=0.01, abs=100)


def test_waiting_links_survive_a_restart_and_a_page_that_shows_others_replaces_them(tmp_path):
    options = {"settings": settings(host_pages=10)}
    crawl = Crawl.on_disk(tmp_path / "c", **options)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order, [url(0, page) for page in range(1, 200)])
    crawl.turn()
    waiting = crawl.frontier.pages.waiting_links
    assert waiting.links() == 135
    crawl.close()
    again = Crawl.on_disk(tmp_path / "c", **options)
    waiting = again.frontier.pages.waiting_links
    assert waiting.links() == 135
    assert waiting.stored(0)[-1] == url(0, 199)
    assert again.frontier.partition.introductions.state("h0.example")[1] == 1
    assert again.audit()["ok"]
    again.close()


def test_the_links_of_a_long_page_have_a_turn_each_few_thousand(tmp_path):
    options = {"settings": settings(host_pages=1 << 16)}
    crawl = Crawl.on_disk(tmp_path / "c", **options)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order, [url(0, page) for page in range(1, 2 * LINKS_AT_ONCE + 101)])
    crawl.turn()
    frontier = crawl.frontier
    assert frontier.columns.n == LINKS_AT_ONCE + 1
    assert frontier.ledger.withheld == {0: LINKS_AT_ONCE + 100}
    assert frontier.pages.waiting_links.stored(0)[-1] == url(0, 2 * LINKS_AT_ONCE + 100)
    crawl.turn()
    assert frontier.columns.n == LINKS_AT_ONCE + 1, "they wait for their time"
    assert frontier.next_time() == crawl.now + SLICE_PAUSE
    crawl.now += SLICE_PAUSE
    crawl.turn()
    assert frontier.ledger.withheld == {0: 100}
    assert not frontier.exhausted(crawl.now, refreshing=False)
    crawl.close()
    again = Crawl.on_disk(tmp_path / "c", **options)
    assert again.frontier.ledger.withheld == {0: 100}
    again.turn()
    children = again.frontier.partition.children(0)
    assert sorted(children.tolist()) == list(range(1, 2 * LINKS_AT_ONCE + 101))
    assert not again.frontier.pages.waiting_links
    assert again.frontier.next_time() > again.now
    assert again.audit()["ok"]
    again.close()


def test_the_claims_of_a_long_sitemap_are_applied_with_the_slices_of_its_links():
    crawl = Crawl.in_memory(settings=settings(host_pages=1 << 16))
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order, kind=Kind.XML, loading=True)
    crawl.turn()
    shown = [url(0, page) for page in range(1, 2 * LINKS_AT_ONCE + 101)]
    modified = tuple((each, crawl.now - 86_400.0) for each in shown)
    links = links_to(shown, LinkKind.SITEMAP)
    crawl.load(
        LoadReport(order.page, order.url, order.epoch, LoadState.LOADED, "sitemap", links=links, modified=modified)
    )
    claims, columns, counts = crawl.frontier.claims, crawl.frontier.columns, []
    for _ in range(3):
        crawl.turn()
        crawl.now += SLICE_PAUSE
        counts.append((int(np.count_nonzero(columns["flags"][: columns.n] & HINTED)), len(claims.long_documents)))
    assert counts == [(LINKS_AT_ONCE, 1), (2 * LINKS_AT_ONCE, 1), (2 * LINKS_AT_ONCE + 100, 0)]
    assert crawl.audit()["ok"]


def test_the_claims_of_few_long_documents_are_held_and_none_of_what_is_gone():
    crawl = Crawl.in_memory(settings=settings(host_pages=1 << 16))
    claims = crawl.frontier.claims
    for page in range(LONG_DOCUMENTS + 1):
        said = LoadReport(page, url(0, page), 1, LoadState.LOADED, "sitemap", modified=((url(1), START),))
        claims.hear(page, said, (), START, [url(1)])
    assert list(claims.long_documents) == list(range(LONG_DOCUMENTS))
    claims.hear(0, LoadReport(0, url(0), 2, LoadState.FAILED, "sitemap", "not-well-formed"), (), START)
    assert 0 not in claims.long_documents, "its next load says nothing"
    crawl.turn()
    assert not claims.long_documents, "no link of theirs waits"


def test_a_slice_of_which_some_have_to_wait_on_stays_behind_the_others():
    crawl = Crawl.in_memory(settings=settings(host_pages=100))
    crawl.submit(url(0))
    (order,) = crawl.turn()
    links = [url(0, page) for page in range(1, 2 * LINKS_AT_ONCE)]
    crawl.answer(order, links)
    waiting = crawl.frontier.pages.waiting_links
    seen = []
    for _ in range(3):
        crawl.turn()
        seen.append(waiting.links())
        crawl.now += SLICE_PAUSE
    assert seen[0] == len(links) - 100 and seen[1] == seen[2], "the host is full"
    assert waiting.next_time() == float("inf"), "all have had their turn"
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    for turns in (5, 100):
        crawled(crawl, {}, turns)
        known = set(map(crawl.frontier.partition.url, range(1, crawl.frontier.columns.n)))
        assert {*known, *waiting.stored(0)} == set(links)
    assert not waiting
    assert crawl.audit()["ok"]


def test_waiting_links_are_counted_after_a_restart_as_before(tmp_path):
    options = {"settings": settings(host_pages=100)}
    crawl = Crawl.on_disk(tmp_path / "c", **options)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    links = [url(0, page) for page in range(1, 2 * LINKS_AT_ONCE + 101)]
    crawl.answer(order, links)
    for _ in range(4):
        for _ in range(6):
            for order in list(crawl.orders.values()):
                crawl.answer(order)
            crawl.turn()
            crawl.now += 4 * SLICE_PAUSE
        waiting = crawl.frontier.pages.waiting_links
        assert waiting.links() == len(waiting.stored(0)) == len(links) + 1 - crawl.frontier.columns.n > 0
        crawl.close()
        crawl = Crawl.on_disk(tmp_path / "c", **options)
    crawl.close()


def test_out_of_scope_links_do_not_wait():
    crawl = Crawl.in_memory(
        settings=Settings(crawl=CrawlSettings(scope="host"), standing=StandingSettings(new_hosts=1))
    )
    crawl.submit(url(0))
    crawled(crawl, {url(0): [url(host) for host in range(1, 20)]}, 3)
    assert crawl.frontier.columns.n == 20
    assert not crawl.frontier.pages.waiting_links
