"""A changed scope reaches the known pages in slices: no turn judges them all, none of the others is read, a crash costs
nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.frontier.rig import Crawl, in_memory_partition, url
from xyro.configs.schema import CrawlSettings, Settings
from xyro.frontier import scope_change
from xyro.metadata.states import State

HOSTS, PAGES = 4, 10


@pytest.fixture(autouse=True)
def slices(monkeypatch):
    """Three pages a turn, looked for among eight at a time."""
    for name, number in (("JUDGED", 3), ("WINDOW", 8), ("WINDOWS", 2)):
        monkeypatch.setattr(scope_change, name, number)


def restarted(crawl, **changes):
    partition = crawl.frontier.partition
    store = in_memory_partition(partition.store, 0, 1)
    return Crawl([store], Settings(crawl=CrawlSettings(**changes)))


def crawl_of(**options):
    """All pages of all hosts are known, shown by the first one."""
    crawl = Crawl.in_memory(settings=Settings(crawl=CrawlSettings(**options)))
    crawl.submit(url(0))
    crawl.turn()
    crawl.answer(crawl.order(url(0)), [url(host, page) for host in range(HOSTS) for page in range(PAGES)])
    crawl.turn()
    return crawl


def out(crawl):
    names = (url(host, page) for host in range(HOSTS) for page in range(PAGES))
    return {name for name in names if crawl.state(name) is State.OUT}


def test_pages_leave_the_scope_some_a_turn_and_a_crash_in_between_goes_on_there():
    crawl = restarted(crawl_of(scope="any"), scope="any", exclude=("*/p7.html", "*/p8.html"))
    crawl.room = 0
    left = [len(out(crawl))]
    for _ in range(4):
        crawl.turn()
        left.append(len(out(crawl)))
    assert left[0] == 0 < left[-1] < 2 * HOSTS and max(b - a for a, b in pairwise(left)) <= 3
    again = restarted(crawl, scope="any", exclude=("*/p7.html", "*/p8.html"))
    again.room = 0
    assert again.frontier.pages.scope_change.pending and len(out(again)) == left[-1]
    assert again.frontier.scheduler.next_time() == 0.0, "no turn has to be waited for"
    turns = 0
    while again.frontier.pages.scope_change.pending:
        again.turn()
        turns += 1
    assert 3 <= turns <= HOSTS * PAGES / 3 + 1
    assert out(again) == {url(host, page) for host in range(HOSTS) for page in (7, 8)} and again.audit()["ok"]
    assert not restarted(again, scope="any", exclude=("*/p7.html", "*/p8.html")).frontier.pages.scope_change.pending


def test_no_page_that_the_change_has_not_reached_is_ordered_out_of_scope():
    crawl = restarted(crawl_of(scope="any"), scope="any", exclude=("*/p9.html",))
    orders = crawl.turn()
    assert crawl.frontier.pages.scope_change.pending and len(orders) > 3
    assert not any(order.url.endswith("/p9.html") for order in orders)
    while crawl.frontier.pages.scope_change.pending:
        assert not any(order.url.endswith("/p9.html") for order in crawl.turn())
    assert len(out(crawl)) == HOSTS and crawl.audit()["ok"]


def test_other_rules_and_a_seed_in_the_midst_begin_anew_with_what_is_left():
    crawl = restarted(crawl_of(scope="any"), scope="any", exclude=("*/p7.html",))
    crawl.room = 0
    crawl.turn()
    crawl = restarted(crawl, scope="host")
    crawl.room = 0
    crawl.turn()
    crawl.submit(url(2, 3))
    crawl.turn()
    assert crawl.state(url(2, 3)) is State.UNREAD, "what a person names is judged at once"
    while crawl.frontier.pages.scope_change.pending:
        crawl.turn()
    assert out(crawl) == {url(host, page) for host in (1, 3) for page in range(PAGES)} and crawl.audit()["ok"]


def test_places_added_one_after_the_other_bring_in_all_their_pages():
    crawl = crawl_of(scope="host")
    crawl.room = 0
    for host in (1, 2, 3):
        crawl.submit(url(host))
        crawl.turn()
    while crawl.frontier.pages.scope_change.pending:
        crawl.turn()
    assert out(crawl) == set() and crawl.audit()["ok"]
