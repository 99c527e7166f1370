"""The page node: cash to the unit under any sequence of reports, groups and transfers; what is old changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import (
    PLENTY,
    START,
    Crawl,
    dump,
    failed,
    in_memory_partition,
    links_to,
    pages,
    report,
    signature,
    url,
)
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import OpicSettings, Settings, StoreSettings
from xyro.metadata import rows
from xyro.metadata.hosts import LONGEST
from xyro.metadata.states import State
from xyro.opic.cash import UNIT, teleport
from xyro.wire.messages import (
    LINK_HINT,
    LINK_NOFOLLOW,
    CashTransfer,
    Kind,
    LinkKind,
    Links,
    LoadReport,
    LoadState,
    PageReport,
    Priority,
    XmlPage,
)

ANY = Settings(crawl=CrawlSettings(scope="any"))
HOSTS, DEEP = 5, 60


def a_url(number):
    return url(number % HOSTS, number % DEEP)


def some_links(a, b):
    return [a_url(a + step * step) for step in range(b % 7)]


# One action each: crawl, order that is out, two free numbers


def changed_page(crawl, order, a, b):
    crawl.answer(order, dict.fromkeys(some_links(a, b)), signature=signature(b + 1))


def same_page(crawl, order, a, b):
    crawl.answer(order, dict.fromkeys(some_links(a, b)))


def unchanged(crawl, order, a, b):
    crawl.answer(order, status=304, signature=b"", kind=Kind.UNKNOWN)


def redirect(crawl, order, a, b):
    crawl.answer(order, status=301, signature=b"", kind=Kind.UNKNOWN, location=a_url(a))


def gone(crawl, order, a, b):
    crawl.fail(order, "http-404", status=404)


def trouble(crawl, order, a, b):
    crawl.fail(order, "timeout", retry_in=b % 3)


def half_trouble(crawl, order, a, b):
    crawl.give(report(order, crawl.now, status=200, signature=b"", error="timeout", truncated="time", retry_at=0.0))


def refused(crawl, order, a, b):
    crawl.fail(order, ["robots-disallowed", "blocked-address", "not-readable", "only-net"][b % 4])


def nofollow(crawl, order, a, b):
    crawl.answer(order, dict.fromkeys(some_links(a, b)), nofollow=True, signature=signature(b + 1))


def unfollowed(crawl, order, a, b):
    urls = tuple(dict.fromkeys(some_links(a, b)))
    flags = bytes([LinkKind.ANCHOR | (LINK_NOFOLLOW, LINK_HINT, 0)[i % 3] for i in range(len(urls))])
    crawl.answer(order, signature=signature(b + 1), links=Links(urls, flags))


def half(crawl, order, a, b):
    crawl.answer(order, dict.fromkeys(some_links(a, b)), signature=b"", truncated="length")


def named(crawl, order, a, b):
    crawl.answer(order, sitemaps=(a_url(a), a_url(b)))


def xml(crawl, order):
    return report(order, crawl.now, kind=Kind.XML, loading=True, signature=signature(order.epoch))


def loaded(crawl, order, a, b):
    state = (LoadState.LOADED, LoadState.INCOMPLETE, LoadState.FAILED)[a % 3]
    links = links_to(list(dict.fromkeys(some_links(a, b))), LinkKind.SITEMAP)
    error = "" if state is LoadState.LOADED else "not-well-formed"
    modified = tuple((one, START - 9e5) for one in links.urls[:2])
    return LoadReport(order.page, order.url, order.epoch, state, "sitemap", error, links, modified)


def load(crawl, order, a, b):
    crawl.load(loaded(crawl, order, a, b))
    crawl.give(xml(crawl, order))


def load_later(crawl, order, a, b):
    crawl.give(xml(crawl, order))
    crawl.late.append(order)


def load_early(crawl, order, a, b):
    """The LoadReport comes in another group than the PageReport, before it."""
    crawl.load(loaded(crawl, order, a, b))
    crawl.turn(order.page >> 32)
    check(crawl)
    crawl.give(xml(crawl, order))


def waits(crawl, order, a, b):
    body = XmlPage(order.page, order.url, order.epoch, crawl.now, Kind.XML, "text/xml", "", b"<a/>" * 9)
    needs = tuple(dict.fromkeys([a_url(a), a_url(b)]))
    crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.WAITING, needs=needs), body)
    crawl.give(xml(crawl, order))
    crawl.late.append(order)


REPORTS = (
    changed_page, same_page, unchanged, redirect, gone, trouble, half_trouble, refused, nofollow, unfollowed, half,
    named, load, load_later, load_early, waits,
)  # fmt: skip


def ask(crawl, a, b):
    crawl.submit(a_url(a), priority=Priority.BLOCKING if b % 5 == 0 else Priority.ORDERED, seed=b % 2 == 0)


def say_again(crawl, a, b):
    """A report of an order that was settled long ago."""
    if crawl.issued:
        order = crawl.issued[a % len(crawl.issued)]
        if order.page not in crawl.orders or crawl.orders[order.page].epoch != order.epoch:
            crawl.give_only(report(order, crawl.now, some_links(a, b)))


def finish_load(crawl, a, b):
    if crawl.late:
        crawl.load(loaded(crawl, crawl.late.pop(a % len(crawl.late)), a, b))


def turn(crawl, a, b):
    crawl.turn(a % len(crawl.frontiers))


def later(crawl, a, b):
    crawl.now += b % 4000


def deliver(crawl, a, b):
    if crawl.wire:
        crawl.deliver(a % len(crawl.wire), keep=b % 3 == 0)


def send_again(crawl, a, b):
    crawl.send_again()


OTHERS = (ask, say_again, finish_load, turn, turn, turn, later, deliver, deliver, send_again)
ACTIONS_OF_A_STORY = (*REPORTS, *REPORTS, *OTHERS)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(ACTIONS_OF_A_STORY), st.integers(0, 999), st.integers(0, 999)), max_size=60
)


class Story(Crawl):
    """A crawl that remembers which loads are not over, and may hear a report without an order."""

    late: list

    def give_only(self, said):
        self.pending[said.page >> 32].append(said)


def begun(partitions, **options):
    crawl = Story.in_memory(partitions, settings=ANY, refreshing=True, **options)
    crawl.late = []
    crawl.submit(*(url(host) for host in range(HOSTS)))
    crawl.turn()
    return crawl


def act(crawl, action, a, b):
    if action in REPORTS:
        if crawl.orders:
            action(crawl, list(crawl.orders.values())[a % len(crawl.orders)], a, b)
    else:
        action(crawl, a, b)


def check(crawl):
    there, wanted = crawl.cash()
    assert there == wanted
    for frontier in crawl.frontiers:
        n = frontier.columns.n
        own = frontier.columns["state"][:n] != State.FOREIGN
        assert (frontier.ledger.effective(slice(0, n))[own] >= 0).all()


def come_to_rest(crawl):
    """Deliver everything, as often as it takes."""
    for _ in range(50):
        crawl.send_again()
        crawl.deliver_all()
        crawl.turn()
        if not any(frontier.outbox.unacknowledged for frontier in crawl.frontiers):
            return
    raise AssertionError("transfers for ever")


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 4])
@settings(max_examples=70)
@given(ACTIONS)
def test_no_unit_of_cash_is_made_or_lost(partitions, actions):
    crawl = begun(partitions)
    for action, a, b in actions:
        act(crawl, action, a, b)
        check(crawl)
    crawl.turn()
    said = crawl.audit()
    assert said["ok"], said["violations"]
    come_to_rest(crawl)
    check(crawl)
    assert all(frontier.outbox.in_flight == 0 for frontier in crawl.frontiers)
    said = crawl.audit()
    assert said["ok"], said["violations"]


@pytest.mark.parametrize("partitions", [1, 4])
@settings(max_examples=25)
@given(ACTIONS)
def test_whatever_came_before_the_process_may_start_anew(partitions, actions):
    """Drop all that was not written, and go on: the sums hold and the crawl still works."""
    crawl = begun(partitions)
    for action, a, b in actions:
        act(crawl, action, a, b)
    dumps = [frontier.dump() for frontier in crawl.frontiers]
    again = Story([_reborn(frontier.partition) for frontier in crawl.frontiers], ANY, refreshing=True, now=crawl.now)
    again.late = []
    for frontier, before in zip(again.frontiers, dumps, strict=True):
        now = frontier.dump()
        boots = now["planner"].pop("boot"), before["planner"].pop("boot")
        assert boots[0] > boots[1] and now == before
    check(again)
    assert again.audit()["ok"], again.audit()["violations"]
    again.turn()
    come_to_rest(again)
    check(again)
    assert again.audit()["ok"]


def _reborn(partition):
    return in_memory_partition(partition.store, partition.number, partition.facts["partitions"])


# What is old changes nothing


class Echo(Story):
    """Everything that comes in comes twice, in the same group and again in the next one."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.heard = [[] for _ in self.frontiers]

    def seal(self, q=0):
        messages = [m for m in self.pending[q] if isinstance(m, PageReport | LoadReport | XmlPage)]
        others = [m for m in self.pending[q] if not isinstance(m, PageReport | LoadReport | XmlPage)]
        self.pending[q] = [*others, *self.heard[q], *messages, *messages]
        self.heard[q] = messages
        return super().seal(q)


@settings(max_examples=40)
@given(ACTIONS)
def test_reports_applied_twice_or_of_an_old_lease_change_nothing(actions):
    plain, echo = begun(1), Echo.in_memory(1, settings=ANY, refreshing=True)
    echo.late = []
    echo.submit(*(url(host) for host in range(HOSTS)))
    echo.turn()
    for action, a, b in actions:
        act(plain, action, a, b)
        act(echo, action, a, b)
        assert dump(echo.frontier.partition) == dump(plain.frontier.partition)
    assert echo.issued == plain.issued


def test_transfers_and_acks_applied_twice_change_nothing():
    def read(order):
        return report(order, START, [a_url(order.page % 97 * 31 + k * k) for k in range(4)])

    once, twice = begun(4), begun(4)
    for _ in range(80):
        for crawl, times in ((once, 1), (twice, 2)):
            for order in list(crawl.orders.values()):
                crawl.give(read(order))
            sent, crawl.wire = crawl.wire, []
            for message in dict.fromkeys(sent):
                crawl.wire = [message] * times
                crawl.deliver_all()
            crawl.turn()
        for ours, theirs in zip(once.frontiers, twice.frontiers, strict=True):
            assert dump(ours.partition) == dump(theirs.partition)
    assert sum(frontier.reads for frontier in once.frontiers) > 40
    assert not any(frontier.outbox.unacknowledged for frontier in once.frontiers)


def test_a_gap_waits_for_what_fills_it():
    crawl = begun(2)
    for _ in range(3):
        for order in list(crawl.orders.values()):
            crawl.answer(order, [a_url(order.page * 7 + k) for k in range(5)])
        crawl.turn()
    transfers = [message for message in crawl.wire if isinstance(message, CashTransfer)]
    pair = [one for one in transfers if one.target == transfers[0].target]
    assert len(pair) >= 2
    crawl.wire = pair[::-1]
    crawl.deliver_all()
    crawl.turn(pair[0].target)
    applied = crawl.frontiers[pair[0].target].outbox.applied[pair[0].source]
    assert applied == max(one.seq for one in pair), "all that came early waited for the first one"
    check(crawl)
    come_to_rest(crawl)
    assert crawl.frontiers[pair[0].target].outbox.applied[pair[0].source] >= pair[-1].seq


# Single rules


def one_page(links=("http://h0.example/a",), **options):
    crawl = Crawl.in_memory(settings=options.pop("settings", ANY), **options)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    return crawl, order


def children(crawl, target):
    frontier, page = crawl.page(target)
    found = frontier.partition.children(page)
    return None if found is None else [frontier.partition.url(child) for child in found.tolist()]


def test_a_new_signature_replaces_the_links_an_old_one_keeps_them():
    crawl, order = one_page(refreshing=True)
    crawl.answer(order, [url(0, 1), url(0, 2)])
    crawl.turn()
    assert children(crawl, url(0)) == [url(0, 1), url(0, 2)]
    for again, links, stored in ((signature(1), [url(0, 9)], [1, 2]), (signature(77), [url(0, 3)], [3])):
        crawl.submit(url(0))
        crawl.turn()
        crawl.answer(crawl.order(url(0)), links, signature=again)
        crawl.turn()
        assert children(crawl, url(0)) == [url(0, number) for number in stored]
    assert crawl.frontier.partition.url_index.find_one(url(0, 9)) == -1, "links of a known body are not looked at"


def test_a_page_pays_its_children_and_the_virtual_page():
    crawl, order = one_page()
    ledger = crawl.frontier.ledger
    cash, scalar = int(ledger.effective(slice(0, 1))[0]), ledger.virtual.scalar
    crawl.answer(order, [url(0, 1), url(0, 2)])
    crawl.turn()
    assert cash == UNIT == ledger.spent
    got = (crawl.frontier.columns["cash"][:3] + scalar).tolist()
    assert got[0] == 0 and abs(got[1] - got[2]) <= 1
    assert got[1] + got[2] == cash - int(teleport(np.array([cash]))[0])
    check(crawl)


@pytest.mark.parametrize("way", ["meta", "rel", "hint"])
def test_unfollowed_links_give_neither_cash_nor_pages(way):
    crawl, order = one_page()
    if way == "meta":
        crawl.answer(order, [url(0, 1)], nofollow=True)
    else:
        flag = LINK_NOFOLLOW if way == "rel" else LINK_HINT
        crawl.answer(order, links=Links((url(0, 1), url(0, 2)), bytes([flag, 0])))
    crawl.turn()
    assert crawl.frontier.partition.url_index.find_one(url(0, 1)) == -1
    assert crawl.frontier.columns.n == (1 if way == "meta" else 2)
    check(crawl)


def test_a_redirect_is_one_link_to_its_target():
    crawl, order = one_page()
    crawl.answer(order, status=302, signature=b"", location=url(0, 8))
    assert [order.url for order in crawl.turn()] == [url(0, 8)]
    assert children(crawl, url(0)) == [url(0, 8)] and crawl.state(url(0)) is State.READ


def test_counters_of_reads():
    crawl, order = one_page(refreshing=True)
    crawl.fail(order, "timeout", retry_in=1.0)
    crawl.turn()
    assert (crawl.frontier.reads, crawl.frontier.read_pages) == (0, 0), "nothing answered"
    crawl.now += 2
    (order,) = crawl.turn()
    assert order.attempt == 1
    crawl.fail(order, "http-5xx", status=500, retry_in=1.0)
    crawl.turn()
    crawl.now += 2
    (order,) = crawl.turn()
    crawl.answer(order)
    crawl.turn()
    assert (crawl.frontier.reads, crawl.frontier.read_pages) == (2, 1), "a page is read once, however often"
    assert crawl.frontier.errors == {"timeout": 1, "http-5xx": 1}


def test_stale_reports_are_counted_and_spend_nothing():
    crawl, order = one_page()
    crawl.answer(order, [url(0, 1)])
    crawl.turn()
    spends = crawl.frontier.ledger.spends
    crawl.answer(order, [url(0, 5)])
    crawl.turn()
    assert crawl.frontier.stale == 1 and crawl.frontier.ledger.spends == spends
    assert crawl.frontier.partition.url_index.find_one(url(0, 5)) == -1


def test_dangling_pages_give_their_cash_back_without_a_fetch():
    crawl, order = one_page(settings=Settings(crawl=CrawlSettings(scope="any"), opic=OpicSettings(spend_ratio=20.0)))
    crawl.answer(order, [url(0, k) for k in range(1, 30)])
    crawl.turn()
    dead = crawl.order(url(0, 1))
    crawl.fail(dead, "http-404", status=404)
    for order in list(crawl.orders.values()):
        crawl.answer(order, [url(0, 1)])
    crawl.turn()
    page = crawl.page(url(0, 1))[1]
    spent = []
    for k in range(100, 160):
        crawl.submit(url(0, k))
        crawl.turn()
        crawl.answer(crawl.order(url(0, k)), [url(0, 1)])
        before = int(crawl.frontier.ledger.effective(slice(page, page + 1))[0])
        crawl.turn()
        spent.append(before > int(crawl.frontier.ledger.effective(slice(page, page + 1))[0]))
    assert any(spent) and crawl.state(url(0, 1)) is State.FAILED
    check(crawl)


def test_links_may_be_left_unstored():
    crawl, order = one_page(settings=Settings(crawl=ANY.crawl, store=StoreSettings(links=False)), refreshing=True)
    crawl.answer(order, [url(0, 1)], etag='"1"', last_modified="Sun, 06 Nov 1994 08:49:37 GMT")
    crawl.turn()
    assert children(crawl, url(0)) is None and crawl.state(url(0, 1)) is State.UNREAD
    crawl.submit(url(0))
    crawl.turn()
    again = crawl.order(url(0))
    assert (again.etag, again.last_modified) == ("", ""), "a 304 would have nothing to spend over"
    check(crawl)


def test_politeness_is_kept_for_the_next_start():
    crawl, order = one_page()
    crawl.give(failed(order, crawl.now, "timeout", retry_in=50.0))
    crawl.pending[0][0] = report(order, crawl.now, host_next=crawl.now + 60, host_failures=3)
    crawl.turn()
    again = Crawl([_reborn(crawl.frontier.partition)], ANY)
    row = again.frontier.partition.hosts.row(0)
    assert (row.name, row.next_at, row.failures) == ("h0.example", crawl.now + 60, 3)
    again.submit(url(0, 1))
    assert again.turn()[0].not_before == crawl.now + 60


@pytest.mark.parametrize("restart", [True, False])
def test_a_clock_set_back_by_a_year_does_not_shut_a_host_for_a_year(restart):
    crawl, order = one_page(now=START + 365 * LONGEST)
    crawl.pending[0].append(report(order, crawl.now, [url(0, 1)], host_next=crawl.now + 60, host_failures=3))
    if restart:
        crawl.turn()
        crawl = Crawl([_reborn(crawl.frontier.partition)], ANY, now=START)
        crawl.submit(url(0, 1))
    else:
        crawl.room = 0
        crawl.turn()
        crawl.room = PLENTY
    crawl.now = START
    (order,) = crawl.turn()
    assert order.not_before == START + LONGEST


# Sitemaps and hints


def test_sitemaps_that_robots_txt_names_are_read_outside_the_scope_too():
    crawl = Crawl.in_memory(settings=Settings(crawl=CrawlSettings(scope="host", max_depth=0)))
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order, [url(1, 5)], sitemaps=(url(1, 7),))
    assert [order.url for order in crawl.turn()] == [url(1, 7)]
    assert crawl.state(url(1, 5)) is State.OUT


def test_a_date_out_of_a_sitemap_is_evidence_for_the_first_read():
    rates = []
    for days in (None, 0.2, 2000.0):
        crawl, order = one_page()
        modified = () if days is None else ((url(0, 1), crawl.now - days * 86_400),)
        crawl.load(LoadReport(order.page, order.url, order.epoch, LoadState.LOADED, "sitemap", "",
                              links_to([url(0, 1)]), modified))  # fmt: skip
        crawl.give(xml(crawl, order))
        crawl.turn()
        crawl.turn()
        crawl.answer(crawl.order(url(0, 1)))
        crawl.turn()
        frontier, page = crawl.page(url(0, 1))
        rates.append(frontier.partition.row(page).rate)
    assert rates[1] > rates[0] > rates[2]


# Fingerprints of 8 bits


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_2000_urls_of_256_fingerprints_stay_2000_pages(tmp_path, with_snapshot):
    path = tmp_path / "data"
    crawl = Crawl.on_disk(path, bits=8, settings=ANY)
    crawl.submit(url(0))
    crawl.turn()
    everyone = [url(k % 9, k) for k in range(1, 2000)]
    crawl.answer(crawl.order(url(0)), everyone[:1500])
    crawl.turn()
    if with_snapshot:
        for _ in crawl.frontier.partition.snapshot():
            pass
    for order in list(crawl.orders.values())[:3]:
        crawl.answer(order, everyone[1000:])
    crawl.turn()
    wanted = {one["url"]: one["id"] for one in pages(crawl)}
    assert len(wanted) == len(set(wanted.values())) == 2000 == crawl.frontier.ledger.known_pages
    before = dump(crawl.frontier.partition)
    assert sum(key[:1] == rows.CLASH.prefix for key in before["said"]) >= 2000 - 256
    crawl.close()
    again = Crawl.on_disk(path, bits=8, settings=ANY)
    assert dump(again.frontier.partition) == before
    assert {one["url"]: one["id"] for one in pages(again)} == wanted
    again.turn()
    for order in list(again.orders.values())[:2]:
        again.answer(order, [*everyone, url(1, 5000)])
    again.turn()
    assert again.frontier.ledger.known_pages == 2001 and again.audit()["ok"]
    again.close()


@pytest.mark.parametrize(("apart", "state"), [(5.0, State.DEAD), (1.0, State.FAILED)])
def test_a_page_is_dead_when_it_was_gone_for_as_long_as_is_set(apart, state):
    """[crawl] confirm_dead: the second 410 decides, and its date was set by the same seconds."""
    settings = Settings(crawl=CrawlSettings(scope="any", confirm_dead=2.0))
    crawl, order = one_page(settings=settings, refreshing=True)
    crawl.fail(order, "http-410", status=410)
    crawl.turn()
    frontier, page = crawl.page(url(0))
    assert crawl.state(url(0)) is State.FAILED and frontier.columns["due"][page] == int(crawl.now + 2.0)
    crawl.now += apart
    crawl.submit(url(0))
    crawl.turn()
    crawl.fail(crawl.order(url(0)), "http-410", status=410)
    crawl.turn()
    assert crawl.state(url(0)) is state
