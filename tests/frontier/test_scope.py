"""Scope: which URLs belong to the crawl, also when seeds, depths or the rules change under way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, in_memory_partition, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import FetchSettings, RuleTable, Settings
from xyro.frontier.scope import Scope
from xyro.metadata.states import State
from xyro.wire.messages import LoadReport, LoadState, Priority


def scope(*seeds, rules=(), refused=lambda url: "", **crawl):
    made = Scope(CrawlSettings(**crawl), [RuleTable(**rule) for rule in rules], refused)
    for seed in seeds:
        made.add_seed(seed)
    return made


# Rules alone


@pytest.mark.parametrize(
    ("mode", "inside", "outside"),
    [
        ("host", ["http://a.example/x", "https://a.example/"], ["http://b.example/", "http://w.a.example/",
                                                               "http://a.example:8080/"]),
        ("domain", ["http://b.a.example/", "https://a.example:8443/", "http://a.example/"], ["http://b.example/"]),
        ("any", ["http://b.example/", "https://[::1]:9/"], []),
    ],
)  # fmt: skip
def test_modes(mode, inside, outside):
    rules = scope("https://a.example/seed", scope=mode)
    assert [rules.why_out(one, 0) for one in inside] == [""] * len(inside)
    assert [rules.why_out(one, 0) for one in outside] == ["out-of-scope"] * len(outside)


def test_domains_follow_the_public_suffix_list():
    rules = scope("http://me.github.io/", "http://127.0.0.1/", scope="domain")
    assert rules.why_out("http://x.me.github.io/", 0) == ""
    assert rules.why_out("http://you.github.io/", 0) == "out-of-scope", "github.io is a public suffix"
    assert rules.why_out("http://127.0.0.1:8080/", 0) == "" and rules.why_out("http://127.0.0.2/", 0) == "out-of-scope"


def test_ports_are_part_of_a_host():
    rules = scope("http://a.example:8080/")
    assert rules.why_out("https://a.example:8080/", 0) == "" and rules.why_out("http://a.example/", 0) == "out-of-scope"


def test_each_reason():
    rules = scope(scope="any", max_depth=2, include=("*good*",), exclude=("*bad*",), skip_suffixes=(".jpg",))
    said = {
        "http://a/good.html": "",
        "http://a/good.JPG": "suffix",
        "http://a/good/bad": "excluded",
        "http://a/other": "not-included",
        "http://a/good?x=.jpg": "",
    }
    assert {one: rules.why_out(one, 2) for one in said} == said
    assert rules.why_out("http://a/good.html", 3) == "too-deep"


def test_the_first_rule_that_fits_decides_instead_of_the_general_bounds():
    rules = scope(
        scope="any", max_depth=1, exclude=("*secret*",),
        rules=[{"host": "a.example", "pattern": "*/deep/*", "max_depth": 5},
               {"host": "*.a.example", "max_depth": 0},
               {"host": "a.example", "max_depth": 3, "include": ("*/docs/*",)}],
    )  # fmt: skip
    assert rules.why_out("http://a.example/deep/secret", 5) == "", "its bounds replace the others"
    assert rules.why_out("http://a.example/deep/x", 6) == "too-deep"
    assert rules.why_out("http://a.example/docs/x", 3) == "" and rules.why_out("http://a.example/x", 1) != ""
    assert rules.why_out("http://b.a.example/x", 1) == "too-deep" and rules.why_out("http://b.a.example/x", 0) == ""
    assert rules.why_out("http://nota.example/x", 1) == "" and rules.why_out("http://nota.example/secret", 0) != ""


@given(st.text(max_size=30))
def test_a_pattern_never_fails(text):
    rules = scope(scope="any", exclude=(text or "*",))
    assert rules.why_out("http://a.example/", 0) in ("", "excluded")


def test_the_guard_comes_after_scope():
    guard = {"http://a/": "blocked-address", "http://b/": "only-net", "http://c/": "blocked-port"}
    rules = scope(*guard, refused=lambda one: guard.get(one, ""))
    assert [rules.judge(one, 0) for one in guard] == [State.BLOCKED, State.OUT, State.BLOCKED]
    assert rules.judge("http://a/other", 0) is State.UNREAD and rules.judge("http://d/", 0) is State.OUT


def test_by_depth_says_whether_depths_matter():
    assert not scope().by_depth
    assert scope(max_depth=3).by_depth and scope(rules=[{"host": "a", "max_depth": 3}]).by_depth


def test_other_rules_have_another_text():
    texts = [
        scope(**one).text
        for one in ({}, {"scope": "any"}, {"max_depth": 1}, {"include": ("a",)}, {"exclude": ("a",)},
                    {"skip_suffixes": ()}, {"rules": [{"host": "a"}]})
    ]  # fmt: skip
    assert len(set(texts)) == len(texts) and scope().text == scope("http://a/").text


# In a crawl


def crawl_of(partitions=1, **crawl):
    return Crawl.in_memory(partitions, settings=Settings(crawl=CrawlSettings(**crawl)))


def show(crawl, target, *links):
    """Read a page that shows these links; deliver what follows."""
    crawl.answer(crawl.order(target), links)
    settle(crawl)


def settle(crawl):
    for _ in range(6):
        crawl.turn()
        crawl.deliver_all()
    crawl.turn()


def restarted(crawl, **changes):
    """The same crawl, begun anew with other settings."""
    sections = {name: changes.pop(name) for name in ("fetch",) if name in changes}
    settings = Settings(crawl=CrawlSettings(**changes), **sections)
    stores = [frontier.partition for frontier in crawl.frontiers]
    return Crawl([in_memory_partition(p.store, p.number, len(stores)) for p in stores], settings)


def test_pages_out_of_scope_are_known_and_not_read():
    crawl = crawl_of()
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0), url(0, 1), url(1, 1))
    assert (crawl.state(url(0, 1)), crawl.state(url(1, 1))) == (State.UNREAD, State.OUT)
    assert [order.url for order in crawl.orders.values()] == [url(0, 1)]


def test_a_seed_added_later_brings_in_what_was_known_of_its_host():
    crawl = crawl_of()
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0), url(1, 1), url(1, 2), url(2, 1))
    crawl.submit(url(1))
    crawl.turn()
    assert {order.url for order in crawl.orders.values()} == {url(1), url(1, 1), url(1, 2)}
    assert crawl.state(url(2, 1)) is State.OUT and crawl.audit()["ok"]


def test_an_order_without_seed_does_not_widen_the_scope():
    crawl = crawl_of()
    crawl.submit(url(0))
    crawl.turn()
    crawl.submit(url(1), seed=False)
    crawl.submit(url(2), seed=False, priority=Priority.BLOCKING)
    assert [(order.url, order.priority) for order in crawl.turn()] == [(url(2), Priority.BLOCKING)]
    assert crawl.state(url(1)) is State.OUT


def test_places_are_kept_and_a_partition_that_missed_one_catches_up():
    """The seed was committed by its own partition only when the process died; others hold pages of its domain."""
    crawl = crawl_of(4, scope="domain")
    names = [f"http://w{i}.site.example/p1.html" for i in range(30)]
    seed = "http://other.example/p0.html"
    crawl.submit(seed)
    settle(crawl)
    show(crawl, seed, *names)
    assert {crawl.state(one) for one in names} == {State.OUT}
    late = "http://late.site.example/p0.html"
    crawl.submit(late)
    crawl.turn(crawl.owner(late))
    again = restarted(crawl, scope="domain")
    again.turn()
    assert {again.state(one) for one in names} == {State.UNREAD}
    assert again.scope.places == {"other.example", "site.example"}
    assert restarted(again, scope="domain").scope.places == again.scope.places


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("before", "after", "inside"),
    [
        ("host", "domain", {"seed", "port", "sister", "address"}),
        ("any", "domain", {"seed", "port", "sister", "address"}),
        ("any", "host", {"seed", "address"}),
        ("domain", "host", {"seed", "address"}),
        ("host", "any", {"seed", "port", "sister", "address", "other"}),
    ],
)
def test_another_kind_of_scope_on_a_resume_begins_from_the_seeds(partitions, before, after, inside):
    """Places that were stored as hosts are no domains, seeds with a port or an address among them."""
    urls = {
        "seed": "http://w1.site.example:8080/p0.html",
        "address": "http://127.0.0.9:8081/p0.html",
        "port": "http://w1.site.example/p1.html",
        "sister": "http://w2.site.example:8080/p1.html",
        "other": "http://other.example/p1.html",
    }
    crawl = crawl_of(partitions, scope=before)
    crawl.submit(urls["seed"])
    crawl.submit(urls["address"])
    settle(crawl)
    show(crawl, urls["seed"], urls["port"], urls["sister"], urls["other"])
    again = restarted(crawl, scope=after)
    again.turn()
    again.turn()
    assert {name for name, one in urls.items() if again.state(one) is not State.OUT} == inside
    once_more = restarted(again, scope=after)
    once_more.turn()
    assert once_more.scope.places == again.scope.places and once_more.audit()["ok"]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_shorter_way_found_later_brings_pages_into_scope(partitions):
    """0 -> 1 -> 2 -> 3 -> 4 at --max-depth 2, then 0 -> 3."""
    crawl = crawl_of(partitions, scope="any", max_depth=2)
    crawl.submit(url(0, 0))
    settle(crawl)
    show(crawl, url(0, 0), url(1, 1), url(5, 5))
    show(crawl, url(1, 1), url(2, 2))
    show(crawl, url(2, 2), url(3, 3))
    assert (crawl.depth(url(3, 3)), crawl.state(url(3, 3))) == (3, State.OUT)
    show(crawl, url(5, 5), url(3, 3))
    assert (crawl.depth(url(3, 3)), crawl.state(url(3, 3))) == (2, State.UNREAD)
    show(crawl, url(3, 3), url(4, 4))
    assert crawl.state(url(4, 4)) is State.OUT
    crawl.submit(url(3, 3))
    settle(crawl)
    show(crawl, url(3, 3), url(4, 4))
    assert (crawl.depth(url(3, 3)), crawl.depth(url(4, 4)), crawl.state(url(4, 4))) == (0, 1, State.UNREAD)


@pytest.mark.parametrize("partitions", [1, 3])
def test_depths_fall_all_the_way_down(partitions):
    """A chain 0 -> 1 -> ... -> 6 read to its end, then entered in the middle."""
    crawl = crawl_of(partitions, scope="any", max_depth=9)
    crawl.submit(url(0, 0))
    settle(crawl)
    for step in range(6):
        show(crawl, url(step, step), url(step + 1, step + 1))
        crawl.now += 10.0
        for frontier in crawl.frontiers:  # a chain of new hosts has soon no credit left: a crawl at rest lets one in
            frontier.relieve(crawl.now)
        settle(crawl)
    assert [crawl.depth(url(step, step)) for step in range(7)] == [0, 1, 2, 3, 4, 5, 6]
    crawl.submit(url(2, 2))
    settle(crawl)
    assert [crawl.depth(url(step, step)) for step in range(7)] == [0, 1, 0, 1, 2, 3, 4]
    assert crawl.audit()["ok"]


def test_other_rules_on_a_resume_apply_to_all_known_pages():
    crawl = crawl_of(scope="any")
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0), url(0, 1), url(0, 2), url(1, 1))
    show(crawl, url(0, 1))
    narrow = restarted(crawl, scope="any", exclude=("*p1.html",))
    orders = narrow.turn()
    assert [order.url for order in orders] == [url(0, 2)]
    assert [narrow.state(url(*one)) for one in ((0, 1), (1, 1), (0, 0))] == [State.OUT, State.OUT, State.READ]
    assert narrow.audit()["ok"], "the weight of what was read has left S"
    wide = restarted(narrow, scope="any")
    wide.turn()
    assert [wide.state(url(*one)) for one in ((0, 1), (1, 1), (0, 0))] == [State.READ, State.UNREAD, State.READ]
    assert wide.audit()["ok"]


def test_a_page_read_before_is_due_at_once_when_it_comes_into_scope_again():
    crawl = crawl_of(scope="any")
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0))
    narrow = restarted(crawl, scope="host", exclude=("*",))
    narrow.turn()
    frontier, page = narrow.page(url(0))
    assert frontier.columns["due"][page] == 0
    stores = [in_memory_partition(frontier.partition.store, 0, 1)]
    wide = Crawl(stores, Settings(crawl=CrawlSettings(scope="any")), refreshing=True)
    wide.turn()
    wide.now += 120
    assert [(order.url, order.priority) for order in wide.turn()] == [(url(0), Priority.REFRESH)]


def test_pages_that_fail_for_now_are_not_tried_again_outside_the_scope():
    crawl = crawl_of(scope="any")
    crawl.submit(url(0))
    crawl.turn()
    crawl.fail(crawl.order(url(0)), "timeout", retry_in=5.0)
    crawl.turn()
    narrow = restarted(crawl, scope="any", exclude=("*",))
    narrow.now += 60
    assert narrow.turn() == [] and narrow.turn() == [] and narrow.state(url(0)) is State.OUT
    wide = restarted(narrow, scope="any")
    wide.now += 60
    assert [order.url for order in wide.turn()] == [url(0)]


def test_other_networks_on_a_resume_apply_to_all_known_pages():
    shut = Scope(CrawlSettings(scope="any"), refused=lambda one: "blocked-port" if "h1" in one else "")
    crawl = Crawl.in_memory(settings=Settings(crawl=CrawlSettings(scope="any")), scope=shut)
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0), url(1, 1))
    assert crawl.state(url(1, 1)) is State.BLOCKED
    opened = restarted(crawl, scope="any", fetch=FetchSettings(ports=(8080,)))
    assert [order.url for order in opened.turn()] == [url(1, 1)]
    assert (
        restarted(opened, scope="any", fetch=FetchSettings(ports=(8080,))).frontier.pages.scope_change.pending is False
    )


def test_sitemaps_named_by_robots_txt_stay_exempt_when_the_rules_change():
    crawl = crawl_of()
    crawl.submit(url(0))
    crawl.turn()
    crawl.give(report(crawl.order(url(0)), crawl.now, sitemaps=(url(1, 7),)))
    crawl.turn()
    again = restarted(crawl, max_depth=3)
    assert [order.url for order in again.turn()] == [url(1, 7)]


def test_a_hint_is_not_a_read():
    """A page with a date out of a sitemap leaves the scope and comes back unread."""
    crawl = crawl_of(scope="any")
    crawl.submit(url(0))
    crawl.turn()
    show(crawl, url(0), url(0, 1))
    frontier, page = crawl.page(url(0, 1))
    frontier.partition.begin()
    frontier.scheduler.drop(page, crawl.order(url(0, 1)).epoch)
    told = LoadReport(0, url(0), 1, LoadState.LOADED, "sitemap", modified=((url(0, 1), 1e9),))
    frontier.claims.hear(0, told, (), crawl.now)
    frontier.partition.write(frontier.partition.seal({"node": frontier.dump()}))
    narrow = restarted(crawl, scope="any", exclude=("*p1.html",))
    narrow.turn()
    wide = restarted(narrow, scope="any")
    wide.turn()
    assert wide.state(url(0, 1)) is State.UNREAD and wide.audit()["ok"]


def test_a_seed_is_read_whatever_include_says_but_not_what_exclude_fits():
    rules = scope(scope="any", include=("*/docs/*",), exclude=("*/x*", "*/private/*"))
    assert (rules.why_out("http://a/", 0), rules.why_out("http://a/", 1)) == ("", "not-included")
    assert rules.why_out("http://a/private/", 0) == "excluded"
    assert rules.excluding_pattern("http://a/private/") == "*/private/*" and not rules.excluding_pattern("http://a/")
    of_rule = scope(scope="any", rules=[{"host": "a.example", "include": ("*/docs/*",), "exclude": ("*/y",)}])
    assert (of_rule.why_out("http://a.example/", 0), of_rule.why_out("http://a.example/", 1)) == ("", "not-included")
    assert of_rule.excluding_pattern("http://a.example/y") == "*/y"
