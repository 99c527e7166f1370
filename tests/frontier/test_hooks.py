"""Hooks of a partition: a default crawl calls none, an extension takes part in a turn, its state outlives it."""

import subprocess
import sys

import msgspec
import pytest

from tests.frontier.rig import Crawl, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import FocusTable, Settings
from xyro.frontier.frontier import Frontier
from xyro.frontier.hooks import Hooks
from xyro.frontier.scope import Scope
from xyro.plugins import extensions
from xyro.plugins.focus.page_classes import PageClasses
from xyro.plugins.publish.promises import Promises, PublisherClaim, promises_of
from xyro.wire.messages import Priority

IN_A_TURN = ("renew", "born", "judged", "visited", "linked", "importance", "basis", "settled", "deadlines")
SETTINGS = Settings(crawl=CrawlSettings(scope="any"))


def registered(hooks):
    return {name for name in IN_A_TURN if getattr(hooks, name)}


def test_the_frontier_loads_no_plug_in_and_no_network():
    command = [sys.executable, "-c", "import sys, xyro.frontier.frontier\nprint(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {"xyro.plugins", "aiohttp", "lxml"} & set(loaded)


def test_a_default_crawl_calls_no_extension():
    crawl = Crawl.in_memory(settings=SETTINGS)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    crawl.answer(order, [url(1)])
    crawl.turn()
    assert registered(crawl.frontier.hooks) == set() and crawl.frontier.hooks.dumps == {}
    assert crawl.frontier.hooks.extension(PageClasses) is None and crawl.frontier.hooks.extension(Promises) is not None


def test_what_is_published_registers_and_what_a_focus_asks_does():
    crawl = Crawl.in_memory(settings=SETTINGS)
    crawl.frontier.partition.begin()
    promises_of(crawl.frontier).publish([url(0)], PublisherClaim("changed", crawl.now, crawl.now + 60.0, sure=True))
    assert registered(crawl.frontier.hooks) == {"settled", "deadlines"} and set(crawl.frontier.hooks.dumps) == {
        "publications"
    }
    focused = Crawl.in_memory(settings=msgspec.structs.replace(SETTINGS, focus=(FocusTable(2.0, patterns=("*p1*",)),)))
    focused.turn()
    assert registered(focused.frontier.hooks) == {"born", "judged", "visited", "settled"}


def test_an_extension_sees_pages_orders_and_spending_in_the_order_of_a_turn():
    seen = []

    def watching(frontier):
        hooks = frontier.hooks
        hooks.born.append(lambda first, urls: seen.append(("born", first, list(urls))))
        hooks.visited.append(lambda settled, loads: seen.append(("visited", [one.page for one in settled])))
        hooks.linked.append(lambda spending, before: seen.append(("linked", spending.pages[:], before)))
        hooks.settled.append(lambda settled, now: seen.append(("settled", len(settled))))

    crawl = Crawl.in_memory(settings=SETTINGS)
    frontier = Frontier(crawl.frontier.partition, Scope(SETTINGS.crawl), SETTINGS, False, [watching])
    crawl.frontiers[0] = frontier
    crawl.submit(url(0))
    (order,) = crawl.turn()
    seen.clear()
    crawl.give(report(order, crawl.now, [url(1)]))
    crawl.turn()
    assert seen == [("visited", [0]), ("born", 1, [url(1)]), ("linked", [0], 1), ("settled", 1)]


def test_importance_and_basis_date_the_pages():
    def guided(frontier):
        frontier.hooks.importance.append(lambda pages, flow, now: [100.0 for _ in flow])
        frontier.hooks.basis.append(lambda page, importance, rate: (importance * 4.0, rate))

    weights = []
    for chosen in ((), (guided,)):
        crawl = Crawl.in_memory(settings=SETTINGS, refreshing=True)
        crawl.frontiers[0] = Frontier(crawl.frontier.partition, Scope(SETTINGS.crawl), SETTINGS, True, chosen)
        crawl.submit(url(0))
        (order,) = crawl.turn()
        crawl.answer(order)
        crawl.turn()
        weights.append(crawl.frontier.partition.row(0).weight)
    assert weights[1] > 5 * weights[0] > 0.0


@pytest.mark.parametrize(("promised", "earliest"), [((0.0, 0.0), 0.0), ((5.0, 0.0), 5.0), ((5.0, 3.0), 3.0)])
def test_the_earliest_promise_is_the_deadline(promised, earliest):
    hooks = Hooks()
    hooks.deadlines += [lambda page, when=when: when for when in promised]
    assert hooks.deadline(7) == earliest


def test_orders_carry_the_deadline_of_an_extension():
    crawl = Crawl.in_memory(settings=SETTINGS)
    crawl.frontier.hooks.deadlines.append(lambda page: crawl.now + 7.0)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    assert order.priority is Priority.ORDERED and order.deadline == crawl.now + 7.0


def test_the_state_of_an_extension_is_stored_and_kept_while_it_is_off(tmp_path):
    def counting(frontier):
        frontier.hooks.keep("counts", lambda: [*frontier.hooks.stored.get("counts", []), 1])

    for chosen, expected in (((counting,), [1]), ((), [1]), ((counting,), [1, 1])):
        crawl = Crawl.on_disk(tmp_path / "data", settings=SETTINGS)
        frontier = crawl.frontiers[0] = Frontier(
            crawl.frontier.partition, Scope(SETTINGS.crawl), SETTINGS, False, chosen
        )
        frontier.recover(crawl.now)
        crawl.turn()
        assert frontier.partition.scalars["node"]["extensions"]["counts"] == expected
        crawl.close()


def test_state_of_before_there_were_hooks_is_taken_over():
    hooks = Hooks()
    before = {"publications": {"a": 1}, "clusters": {"b": [2.0]}, "readers": {"c": 3}}
    hooks.load({"promises": before, "focus": ["text", "words"]})
    assert hooks.stored == {
        "publications": {"a": 1},
        "clusters": {"b": [2.0]},
        "subscriptions": {"c": 3},
        "focus": ["text", "words"],
    }
    hooks.load({"extensions": {"focus": ["", ""]}})
    assert hooks.stored["focus"] == ["", ""]


def test_pages_are_brought_in_line_once_when_a_focus_went_off(tmp_path):
    focused = msgspec.structs.replace(SETTINGS, focus=(FocusTable(2.0, patterns=("*p1*",)),))
    for settings, renewing in ((focused, True), (focused, False), (SETTINGS, True), (SETTINGS, False)):
        crawl = Crawl.on_disk(tmp_path / "data", settings=settings)
        assert bool(crawl.frontier.hooks.renew) == renewing
        crawl.submit(url(0, 1))
        crawl.turn()
        assert not crawl.frontier.hooks.renew and crawl.audit()["ok"]
        crawl.close()
    assert extensions(SETTINGS)
