"""[[focus]] and the weights of [opic] in a crawl: who is in which class, what that pays, and that no unit gets lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, in_memory_partition, url
from tests.frontier.test_frontier import ACTIONS, HOSTS, Story, act, check, come_to_rest
from xyro import fetch_queue
from xyro.configs.load import load
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import FocusTable as Table
from xyro.configs.schema import OpicSettings, RefreshSettings, Settings
from xyro.fetch_queue import FetchQueue
from xyro.frontier.terms import link_words
from xyro.metadata.states import CLASS_MASK, CLASS_SHIFT, QUERY, WORDED, State
from xyro.opic.cash import UNIT, teleport
from xyro.opic.focus import EQUAL, Terms
from xyro.plugins.focus.page_classes import Focus
from xyro.wire.errors import InputError
from xyro.wire.messages import LINK_FOCUSED, LINK_NOFOLLOW, CashTransfer, Kind, Links, Priority
from xyro.wire.urls import host_of

NEWS = Table(5.0, patterns=("*p1*",))
ANYWHERE = CrawlSettings(scope="any")


def set_to(*tables, refresh=None, **opic):
    return Settings(crawl=ANYWHERE, opic=OpicSettings(**opic), focus=tables, refresh=refresh or RefreshSettings())


def begun(*tables, partitions=1, **opic):
    crawl = Crawl.in_memory(partitions, settings=set_to(*tables, **opic))
    crawl.submit(url(0))
    crawl.turn()
    return crawl


def class_of(crawl, target):
    frontier, page = crawl.page(target)
    return (int(frontier.columns["flags"][page]) & CLASS_MASK) >> CLASS_SHIFT


def flag(crawl, target, which):
    frontier, page = crawl.page(target)
    return bool(frontier.columns["flags"][page] & which)


def elsewhere(crawl, q, page):
    return next(url(host, page) for host in range(200) if crawl.owner(url(host, page)) == q)


def read_all(crawl, links=()):
    for order in list(crawl.orders.values()):
        crawl.answer(order, links)
    crawl.turn()


def sound(crawl):
    there, wanted = crawl.cash()
    assert there == wanted
    said = crawl.audit()
    assert said["ok"], said["violations"]


# Which table fits


def slot(table, target="http://h/", kind=Kind.HTML, worded=False):
    return Focus(set_to(table)).slot(target, kind, WORDED if worded else 0)


def test_a_table_fits_a_page_that_meets_all_that_it_names():
    table = Table(2.0, ("*/news/*", "*.xml"), ("a.example", "*.b.example"), ("XML", "DTD"), ("Sport",))
    good = {"target": "http://a.example/news/1", "kind": Kind.XML, "worded": True}
    assert slot(table, **good) == slot(table, **{**good, "target": "https://x.y.b.example/f.xml"}) == 1
    wrong = {"target": "http://a.example/olds/1", "kind": Kind.HTML, "worded": False}
    for key, value in wrong.items():
        assert slot(table, **{**good, key: value}) == 0, key
    assert slot(table, **{**good, "target": "http://b.example/news/1"}) == 0, "below, not the host itself"
    assert slot(table, **{**good, "target": "http://notb.example/news/1"}) == 0


def test_the_first_table_that_fits_decides():
    focus = Focus(
        set_to(Table(3.0, hosts=("h",), kinds=("XML",)), Table(0.0, hosts=("h",)), Table(9.0, patterns=("*",)))
    )
    assert [focus.slot("http://h/", kind, 0) for kind in (Kind.XML, Kind.HTML)] == [1, 2]
    assert focus.slot("http://k/", Kind.XML, 0) == 3
    assert focus.terms.weights[:8] == (1, 1, 3, 3, 0, 0, 9, 9)


@pytest.mark.parametrize("tables", [(), (Table(1.0, patterns=("*",)), Table(1.0, words=("a",)))])
def test_what_makes_no_difference_costs_nothing(tables):
    focus = Focus(set_to(*tables))
    assert (focus.on, focus.words, focus.text, focus.tables) == (False, frozenset(), "", [])
    assert focus.terms == Terms(weights=EQUAL)


def test_words_are_compared_without_case():
    assert link_words(set_to(Table(2.0, words=("News", "STRASSE")))) == {"news", "strasse"}


# The settings


def loaded(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    return load([path])


def test_tables_come_from_toml(tmp_path):
    found = loaded(tmp_path, '[[focus]]\nweight = 2.5\nkinds = ["XML"]\n[[focus]]\nweight = 0\nhosts = ["*.a.org"]\n')
    assert found.focus == (Table(2.5, kinds=("XML",)), Table(0.0, hosts=("*.a.org",)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[focus]]\nkinds = ["XML"]\n', "number 1: weight: expected"),
        ("[[focus]]\nweight = 1\n", "expected patterns, hosts, kinds, words or leads_to"),
        ("[[focus]]\nweight = 1\nkinds = []\n", "expected patterns, hosts, kinds, words or leads_to"),
        ('[[focus]]\nweight = -1\nkinds = ["XML"]\n', "weight: expected a number, 0 to 10000, got -1"),
        ('[[focus]]\nweight = 1\nkinds = ["GIF"]\n', 'a list of "HTML", "XML" or "DTD"'),
        ('[[focus]]\nweight = 1\nwords = ["two words"]\n', "a list of single words"),
        ('[[focus]]\nweight = 1\nwrods = ["a"]\n', "wrods: unknown; did you mean words?"),
        ("focus = 3\n", "expected tables, each headed [[focus]]"),
        ('[[focus]]\nweight = 1\nkinds = ["XML"]\n' * 8, "8 tables; at most 7"),
        ('[[focus]]\nweight = 1\nwords = ["a"]\n' * 2, "put them together in one"),
        ("[opic]\ninternal_weight = 2\n", "internal_weight: expected a number, 0 to 1"),
        ("[opic]\nunread_weight = inf\n", "unread_weight: expected a number, 0 to 10000"),
        ('[opic]\nvirtual = "both"\n', 'expected "damping" or "edge"'),
    ],
)
def test_bad_tables_are_refused_by_name(tmp_path, text, complaint):
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, text)
    assert complaint in str(caught.value)


# Classes in a crawl


def test_patterns_decide_when_a_page_is_minted():
    crawl = begun(NEWS)
    read_all(crawl, [url(0, 1), url(1, 17), url(1, 2)])
    assert [class_of(crawl, one) for one in (url(0, 1), url(1, 17), url(1, 2), url(0))] == [3, 3, 1, 0]
    sound(crawl)


def test_the_focus_is_paid_its_share():
    """Two pages alike but for the table: what the virtual page pays them is as 1 to 5."""
    crawl = begun(NEWS)
    read_all(crawl, [url(1, 1), url(1, 2)])
    for _ in range(3):
        read_all(crawl)
    read, virtual = crawl.frontier.ledger.virtual.scalars[[0, 2]].tolist(), crawl.frontier.ledger.virtual
    assert read[0] > UNIT // 4 and abs(read[1] - 5 * read[0]) <= 5
    assert virtual.scalars[3] == read[1], "unread pages as read ones"
    sound(crawl)


def test_kinds_decide_when_a_page_is_read_and_again_when_it_changes():
    crawl = begun(Table(4.0, kinds=("XML",)))
    before = crawl.frontier.ledger.virtual.scalars.copy()
    crawl.answer(crawl.order(url(0)), [url(0, 1)], kind=Kind.XML)
    crawl.turn()
    assert (class_of(crawl, url(0)), class_of(crawl, url(0, 1))) == (2, 1)
    assert (crawl.frontier.ledger.virtual.scalars >= before).all()
    sound(crawl)
    crawl.submit(url(0))
    crawl.turn()
    crawl.answer(crawl.order(url(0)), [url(0, 1)], kind=Kind.HTML, signature=b"another signatur")
    crawl.turn()
    assert class_of(crawl, url(0)) == 0
    sound(crawl)


def words(flags, *urls):
    return Links(tuple(urls), bytes(flags))


def test_words_count_once_a_link_with_them_is_met():
    crawl = begun(Table(4.0, words=("news",)))
    shown = (LINK_FOCUSED, 0, LINK_FOCUSED | LINK_NOFOLLOW)
    crawl.answer(crawl.order(url(0)), words(shown, url(1, 1), url(1, 2), url(1, 3)))
    crawl.turn()
    assert (class_of(crawl, url(1, 1)), class_of(crawl, url(1, 2))) == (3, 1)
    assert crawl.frontier.partition.url_index.find_one(url(1, 3)) < 0, "nofollow links neither pay nor praise"
    sound(crawl)
    crawl.answer(crawl.order(url(1, 1)), words([LINK_FOCUSED], url(1, 2)))
    crawl.turn()
    assert (class_of(crawl, url(1, 1)), class_of(crawl, url(1, 2))) == (2, 3), "read; and praised later"
    crawl.answer(crawl.order(url(1, 2)), [url(1, 1)])
    crawl.turn()
    assert class_of(crawl, url(1, 2)) == 2, "what a link once said stays"
    sound(crawl)


def test_links_with_words_are_told_to_other_partitions():
    crawl = begun(Table(4.0, words=("news",)), partitions=2)
    home = crawl.order(url(0))
    q = 1 - crawl.owner(url(0))
    near, there, plain = elsewhere(crawl, 1 - q, 5), elsewhere(crawl, q, 6), elsewhere(crawl, q, 7)
    crawl.answer(home, words([LINK_FOCUSED, LINK_FOCUSED, 0], near, there, plain))
    crawl.turn()
    (transfer,) = [one for one in crawl.wire if isinstance(one, CashTransfer) and one.focused]
    assert [transfer.items[i].url for i in transfer.focused] == [there]
    crawl.deliver_all()
    crawl.turn()
    assert [class_of(crawl, one) for one in (near, there, plain)] == [3, 3, 1]
    sound(crawl)


def test_words_travel_without_cash():
    """A page that holds nothing praises one elsewhere that is long known there."""
    crawl = begun(Table(4.0, words=("news",)), partitions=2, spend_ratio=0.0)
    q = 1 - crawl.owner(url(0))
    there, poor = elsewhere(crawl, q, 6), elsewhere(crawl, 1 - q, 5)
    crawl.answer(crawl.order(url(0)), [there, poor])
    for _ in range(6):
        crawl.turn()
        crawl.deliver_all()
    frontier, page = crawl.page(poor)
    frontier.columns["cash"][page] = -frontier.ledger.virtual.scalars[1]
    crawl.answer(crawl.order(poor), words([LINK_FOCUSED], there))
    crawl.turn()
    (transfer,) = [one for one in crawl.wire if isinstance(one, CashTransfer) and one.focused]
    assert [(item.url, item.cash) for item in transfer.items] == [(there, 0)]
    crawl.deliver_all()
    crawl.turn()
    assert class_of(crawl, there) == 3


def test_the_unread_class_is_left_when_the_page_is_read_or_goes_out_of_scope():
    crawl = begun(unread_weight=10.0)
    read_all(crawl, [url(1, 1), url(1, 2)])
    crawl.fail(crawl.order(url(1, 1)), "http-404", status=404)
    assert [class_of(crawl, url(1, page)) for page in (1, 2)] == [1, 1]
    crawl.turn()
    assert [class_of(crawl, url(1, page)) for page in (1, 2)] == [0, 1]
    sound(crawl)
    other = Settings(crawl=CrawlSettings(scope="any", exclude=("*p2*",)), opic=OpicSettings(unread_weight=10.0))
    again = Crawl([_reborn(frontier.partition) for frontier in crawl.frontiers], other)
    again.turn()
    assert again.state(url(1, 2)) is State.OUT and class_of(again, url(1, 2)) == 0
    sound(again)


def test_an_unread_page_gets_its_multiple():
    crawl = begun(unread_weight=10.0)
    read_all(crawl, [url(1, 1), url(1, 2)])
    before = crawl.frontier.ledger.virtual.scalars[:2]
    crawl.answer(crawl.order(url(1, 1)))
    crawl.turn()
    crawl.turn()
    gain = crawl.frontier.ledger.virtual.scalars[:2] - before
    assert gain[0] > 0 and abs(gain[1] - 10 * gain[0]) <= 10
    sound(crawl)


# Partitions


def test_payouts_go_to_partitions_by_their_weighted_pages():
    crawl = begun(Table(20.0, patterns=("*p9*",)), partitions=2)
    home, q = crawl.order(url(0)), 1 - crawl.owner(url(0))
    there, here = elsewhere(crawl, q, 9), elsewhere(crawl, 1 - q, 3)
    crawl.answer(home, [there, here, elsewhere(crawl, q, 2)])
    for _ in range(12):
        crawl.turn()
        crawl.deliver_all()
    before = [frontier.ledger.virtual.scalars.copy() for frontier in crawl.frontiers]
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    for _ in range(12):
        crawl.turn()
        crawl.deliver_all()
    gains = [frontier.ledger.virtual.scalars - old for frontier, old in zip(crawl.frontiers, before, strict=True)]
    assert gains[0][0] > UNIT // 50 and abs(gains[0][0] - gains[1][0]) <= gains[0][0] / 50, "alike everywhere"
    assert abs(gains[q][2] - 20 * gains[q][0]) <= 20
    sound(crawl)


def test_only_the_focus_is_paid_once_there_is_one():
    """ordinary_weight 0: all alike until a page fits, in any partition; then only that."""
    crawl = begun(Table(1.0, patterns=("*p9*",)), partitions=2, ordinary_weight=0.0)
    assert crawl.frontier.ledger.weighted == 0

    def rest():
        for _ in range(12):
            crawl.turn()
            crawl.deliver_all()
        return [frontier.ledger.virtual.scalars.copy() for frontier in crawl.frontiers]

    q = 1 - crawl.owner(url(0))
    first = rest()
    assert first[1 - q][1] > 0, "there was only the seed"
    crawl.answer(crawl.order(url(0)), [elsewhere(crawl, q, 9), elsewhere(crawl, q, 3)])
    second = rest()
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    third = rest()
    assert third[q][2] - second[q][2] > UNIT and third[1 - q].tolist() == second[1 - q].tolist()
    assert third[q][0] == second[q][0]
    sound(crawl)


# Weighted links


def test_links_weigh_by_host_and_by_the_query_of_their_page():
    """The page with a query gives a quarter of R to its links: of it a third within its host, two thirds beyond."""
    crawl = begun(internal_weight=0.5, query_weight=0.25)
    query = "http://h0.example/?q=1"
    read_all(crawl, [query])
    assert flag(crawl, query, QUERY) and not flag(crawl, url(0), QUERY)
    held = cash_of(crawl, query)
    crawl.answer(crawl.order(query), [url(0, 5), url(3, 5)])
    crawl.turn()
    inside, outside = cash_of(crawl, url(0, 5)), cash_of(crawl, url(3, 5))
    assert abs(3 * (outside - inside) - along_links(held) // 4) <= 6, "what the virtual page paid both is the same"
    sound(crawl)


def test_stored_children_weigh_what_those_just_shown_weighed():
    crawl = begun(internal_weight=0.2)
    shown = [url(0, 1), url(2, 2)]
    held = cash_of(crawl, url(0))
    crawl.answer(crawl.order(url(0)), shown)
    crawl.turn()
    first = [cash_of(crawl, one) for one in shown]
    assert abs(3 * (first[1] - first[0]) - 2 * along_links(held)) <= 6
    held, ledger, partition = cash_of(crawl, url(0)), crawl.frontier.ledger, crawl.frontier.partition
    partition.begin()
    ledger.spend([0], [partition.children(0)], crawl.frontier.columns.n, 99)
    partition.seal({"node": crawl.frontier.dump()})
    gained = [cash_of(crawl, one) - before for one, before in zip(shown, first, strict=True)]
    assert sum(gained) == along_links(held) and abs(gained[1] - 5 * gained[0]) <= 6


def cash_of(crawl, target):
    frontier, page = crawl.page(target)
    return int(frontier.ledger.effective(slice(page, page + 1))[0])


def along_links(held):
    return held - int(teleport(np.array([held]))[0])


# Small edges


def test_small_edges_are_a_setting():
    crawl = begun(virtual="edge", edge_weight=1.0)
    held, paid = cash_of(crawl, url(0)), crawl.frontier.ledger.virtual.scalar
    crawl.answer(crawl.order(url(0)), [url(1, 1)])
    crawl.turn()
    assert cash_of(crawl, url(1, 1)) - (crawl.frontier.ledger.virtual.scalar - paid) == held - held // 2, (
        "one link: 1 : 1"
    )
    sound(crawl)


# Discovery against refresh: gamma shares the orders, the virtual page says which unread pages come first

SITES, FRESH = 40, 10


def contested(gamma, unread_weight):
    """A crawl with pages to discover and pages to refresh; which of 40 orders that left its queue were discovery."""
    refresh = RefreshSettings(gamma=gamma)
    crawl = Crawl.in_memory(1, settings=set_to(refresh=refresh, unread_weight=unread_weight), refreshing=True)
    crawl.submit(*(url(host) for host in range(SITES)))
    crawl.turn()
    for host, order in enumerate(list(crawl.orders.values())):
        crawl.answer(order, [url(host, page) for page in range(1, FRESH)])
    crawl.turn()
    crawl.now += 400 * 86_400.0
    crawl.turn()
    queue = FetchQueue(gamma)
    for order in crawl.orders.values():
        queue.put(order, host_of(order.url))
    left = []
    for _ in range(SITES):
        host, order = queue.pop(0.0)
        left.append(order.priority in (Priority.DISCOVER, Priority.SCOUT))
        queue.release(host, 0.0)
    sound(crawl)
    return crawl, left


@pytest.mark.parametrize("gamma", [25.0, 50.0, 90.0])
def test_gamma_shares_the_orders_whatever_unread_pages_are_paid(gamma, monkeypatch):
    monkeypatch.setattr(fetch_queue, "SCARCE", 0)  # slots are what hosts wait for, from the first order on
    crawls, left = zip(*(contested(gamma, weight) for weight in (1.0, 50.0)), strict=True)
    assert left[0] == left[1] and sum(left[0]) == round(gamma / 100 * SITES)
    totals = [crawl.cash() for crawl in crawls]
    assert totals[0] == totals[1] == (UNIT * SITES * FRESH,) * 2
    states = crawls[0].frontier.columns["state"][: SITES * FRESH]
    unread = np.flatnonzero(states == State.UNREAD)
    held = [int(crawl.frontier.ledger.effective(unread).sum()) for crawl in crawls]
    assert len(unread) == SITES * (FRESH - 1) and held[1] > held[0]


def test_the_virtual_page_decides_which_unread_pages_come_first():
    """Two pages of a poor link each: the one that a focus likes is ordered first, once scouting is over."""
    crawl = Crawl.in_memory(1, settings=set_to(Table(50.0, patterns=("*p77*",)), refresh=RefreshSettings()))
    crawl.submit(url(0))
    crawl.turn()
    crawl.room = 0
    crawl.answer(crawl.order(url(0)), [url(1, page) for page in (3, 77, 5)])
    crawl.turn()
    crawl.room = 1
    assert [order.url for order in crawl.turn()] == [url(1, 77)]


# Any story


CASES = {
    "focus": set_to(Table(7.0, patterns=("*p1*",)), Table(0.5, kinds=("XML",)), Table(3.0, hosts=("h2.example",))),
    "only the focus": set_to(Table(1.0, patterns=("*p7*",)), ordinary_weight=0.0),
    "unread": set_to(unread_weight=4.0),
    "all": set_to(
        Table(3.0, words=("a",)), Table(2.0, kinds=("XML",)), unread_weight=0.3, virtual="edge", edge_weight=0.5,
        internal_weight=0.3, query_weight=0.1,
    ),
}  # fmt: skip


def story(partitions, name):
    crawl = Story.in_memory(partitions, settings=CASES[name], refreshing=True)
    crawl.late = []
    crawl.submit(*(url(host) for host in range(HOSTS)))
    crawl.turn()
    return crawl


@pytest.mark.parametrize("partitions", [1, 3])
@settings(max_examples=40)
@given(st.sampled_from(sorted(CASES)), ACTIONS)
def test_no_unit_of_cash_is_made_or_lost(partitions, name, actions):
    crawl = story(partitions, name)
    for action, a, b in actions:
        act(crawl, action, a, b)
        check(crawl)
    crawl.turn()
    sound(crawl)
    come_to_rest(crawl)
    sound(crawl)


@settings(max_examples=25)
@given(st.sampled_from(sorted(CASES)), st.sampled_from(sorted(CASES)), ACTIONS)
def test_a_restart_keeps_the_classes_and_other_rules_renew_them(name, other, actions):
    crawl = story(2, name)
    for action, a, b in actions:
        act(crawl, action, a, b)
    before = [frontier.dump() for frontier in crawl.frontiers]
    again = Crawl(
        [_reborn(frontier.partition) for frontier in crawl.frontiers], CASES[name], refreshing=True, now=crawl.now
    )
    assert [frontier.dump()["purse"] for frontier in again.frontiers] == [one["purse"] for one in before]
    sound(again)
    changed = Crawl(
        [_reborn(frontier.partition) for frontier in crawl.frontiers], CASES[other], refreshing=True, now=crawl.now
    )
    sound(changed)
    changed.turn()
    sound(changed)
    for frontier in changed.frontiers:
        focus, columns = Focus(CASES[other]), frontier.columns
        for page in range(columns.n):
            if columns["state"][page] != State.FOREIGN:
                flags = int(columns["flags"][page])
                fits = focus.slot(frontier.partition.url(page), flags >> 4 & 7, flags)
                unread = columns["state"][page] == State.UNREAD
                assert (flags & CLASS_MASK) >> CLASS_SHIFT == 2 * fits + unread


@given(st.sampled_from(sorted(CASES)), ACTIONS)
@settings(max_examples=15)
def test_without_a_focus_a_resumed_crawl_is_plain_again(name, actions):
    crawl = story(1, name)
    for action, a, b in actions:
        act(crawl, action, a, b)
    plain = Crawl(
        [_reborn(frontier.partition) for frontier in crawl.frontiers], set_to(), refreshing=True, now=crawl.now
    )
    sound(plain)
    plain.turn()
    sound(plain)
    assert not (plain.frontier.columns["flags"][: plain.frontier.columns.n] & (CLASS_MASK | QUERY | WORDED)).any()
    assert "scalars" not in plain.frontier.ledger.dump()["virtual"]
    plain.turn()
    sound(plain)


def test_words_that_changed_are_forgotten():
    crawl = begun(Table(4.0, words=("news",)))
    crawl.answer(crawl.order(url(0)), words([LINK_FOCUSED], url(1, 1)))
    crawl.turn()
    again = Crawl([_reborn(frontier.partition) for frontier in crawl.frontiers], set_to(Table(4.0, words=("olds",))))
    again.turn()
    assert class_of(again, url(1, 1)) == 1 and not flag(again, url(1, 1), WORDED)
    sound(again)


# The audit knows


def test_the_audit_sees_a_class_that_is_none_of_the_page():
    crawl = begun(NEWS)
    read_all(crawl, [url(0, 1), url(1, 2)])
    crawl.frontier.columns["flags"][1] ^= 4 << CLASS_SHIFT
    said = crawl.audit()["violations"]
    assert any("class 3 at the virtual page: 0 pages, 1 were counted" in one for one in said)
    crawl.frontier.columns["flags"][1] ^= 5 << CLASS_SHIFT
    assert any("page 1 is in class 2" in one for one in crawl.audit()["violations"])


def test_the_audit_sees_a_class_of_a_page_that_lives_elsewhere():
    crawl = begun(NEWS, partitions=2)
    crawl.answer(crawl.order(url(0)), [elsewhere(crawl, 1 - crawl.owner(url(0)), 1)])
    crawl.turn()
    frontier = crawl.frontiers[crawl.owner(url(0))]
    (foreign,) = np.flatnonzero(frontier.columns["state"][: frontier.columns.n] == State.FOREIGN).tolist()
    frontier.columns["flags"][foreign] |= 1 << CLASS_SHIFT
    assert any("a page of another partition has a class" in one for one in crawl.audit()["violations"])


def test_the_audit_of_a_plain_crawl_sees_a_class():
    crawl = begun()
    crawl.frontier.columns["flags"][0] |= 2 << CLASS_SHIFT
    assert any("class 2 at the virtual page: 1 pages, 0 were counted" in one for one in crawl.audit()["violations"])


def _reborn(partition):
    return in_memory_partition(partition.store, partition.number, partition.facts["partitions"])
