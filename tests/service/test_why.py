"""`xyro why`: the rate and its evidence, the term that set the interval, and who gives a page most cash."""

from __future__ import annotations

import math
import re

import msgspec
import pytest

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import RefreshSettings, Settings
from xyro.metadata.rows import RefreshRow
from xyro.refresh.rate_belief import quantile
from xyro.service.views import cash_sources as module
from xyro.service.views.cash_sources import find_parents, giver_sentences, greatest_givers, targets_of
from xyro.service.views.why import why, with_givers
from xyro.service.views.why_due import rate_sentence
from xyro.wire.clock import SystemClock
from xyro.wire.durations import duration_text
from xyro.wire.text import figure

DAY = 86_400.0


def crawl_of(partitions=1, refreshing=True, **refresh):
    """Page 0 links to 1 and 2, page 1 to 2 alone, page 2 to nothing; all are read."""
    chosen = Settings(CrawlSettings(scope="any"), refresh=RefreshSettings(**refresh))
    crawl = Crawl.in_memory(partitions, settings=chosen, refreshing=refreshing)
    shown = {url(0): [url(1), url(2)], url(1): [url(2)]}
    crawl.submit(url(0))
    for _ in range(8):
        for order in crawl.turn():
            crawl.answer(order, shown.get(order.url, ()))
        crawl.now += 1.0
    return crawl


def givers_of(views, targets, **look):
    return greatest_givers(views, find_parents(views, targets, SystemClock(), **look))


def because(crawl, target):
    with crawl.views() as views:
        return " ".join(why(views, target, crawl.now)["because"])


@pytest.mark.parametrize(
    ("refresh", "term"),
    [
        ({"bandwidth": 0.001}, "Policy obsolescence: t = K / sqrt(importance x change rate) = "),
        ({"bandwidth": 0.001, "policy": "mixed"}, "Policy mixed, such that 3 pages take 85.5"),
        ({"bandwidth": 100.0}, "more often if dates were not whole seconds. It is read every 1 second."),
        (
            {"bandwidth": 1.0, "min_interval": DAY},
            "min_interval it would be read more often. It is read every 1 day.",
        ),
        (
            {"bandwidth": 1e-9, "max_interval": 2 * DAY},
            "max_interval it would be read less often, or never. It is read every 2 days.",
        ),
        ({"bandwidth": 1.0, "min_importance": 50.0}, "below min_importance (50)"),
        (
            {"bandwidth": 1.0, "min_interval": 20 * DAY, "max_interval": 60 * DAY, "hopeless": 0.9},
            "(hopeless). It is read every 7 days",
        ),
    ],
)
def test_it_names_the_term_that_set_the_interval(refresh, term):
    said = because(crawl_of(**refresh), url(0))
    assert term in said, said
    assert "times a day (90 % interval" in said and "It was read once and changed 0 times" in said
    assert "No read has shown yet how often it changes. Until one does, once in" in said


def test_a_rate_that_few_reads_tell_is_said_to_be_hardly_known():
    """Its sentence names the ends of its interval in words, and what is assumed; many reads give a figure."""
    few = RefreshRow(reads=2, changes=1, change_days=0.002, change_sum=1.0, rate=576.0)
    low, high = (float(quantile(few.belief.shares(), share)) for share in (0.05, 0.95))
    assert low < 2 / 3 and high > 100 * low, (low, high)
    assert rate_sentence(few) == (
        "It was read 2 times and changed once. How often it changes is hardly known yet: between once in "
        f"{figure(1 / low, 2)} days and {figure(high, 2)} times a day (90 % interval). Until reads tell more, "
        "580 times a day is assumed."
    )
    many = RefreshRow(reads=101, changes=50, change_days=50.0, change_sum=50.0, quiet_days=50.0, rate=0.7)
    assert rate_sentence(many).startswith(
        "It was read 101 times and changed 50 times: about 0.7 changes a day (90 % inter"
    )
    assert "once a day is assumed" in rate_sentence(msgspec.structs.replace(few, rate=1.2))


@pytest.mark.parametrize("bandwidth", [1e-5, 0.001, 0.5, 1.2])
def test_the_formula_gives_the_interval(bandwidth):
    """As it is printed, down to the floor of a second."""
    crawl = crawl_of(bandwidth=bandwidth)
    for page in range(3):
        said = because(crawl, url(page))
        k, importance, rate = (
            float(number.replace(",", ""))
            for number in re.search(r"= (\S+) days / sqrt\((\S+) x (\S+)\)", said).groups()
        )
        interval = crawl.frontier.scheduler.bandwidth.of_row(page, crawl.frontier.partition.row(page)).seconds
        assert k * DAY / math.sqrt(importance * rate) == pytest.approx(interval, rel=0.01)
        assert f"It is read every {duration_text(interval)}." in said


def test_the_next_read_lies_within_the_interval_that_is_told():
    """Waits for the least chance are drawn: the interval is told as what they are drawn from."""
    crawl = crawl_of(bandwidth=1.0, least_chance=0.1)
    for page in range(3):
        said = because(crawl, url(page))
        interval = crawl.frontier.scheduler.bandwidth.of_row(page, crawl.frontier.partition.row(page)).seconds
        shortest, longest = (duration_text(interval * times) for times in (1.0, 1.5))
        assert f"It is read every {shortest} to {longest} (drawn" in said and "another" not in said
        row = crawl.views().top(3, "importance", crawl.now)[page]
        assert interval - 2 <= row["interval_s"] <= 1.5 * interval + 2


def test_a_date_of_another_interval_is_told():
    crawl = crawl_of(bandwidth=0.001)
    crawl.frontier.scheduler.bandwidth.multiplier *= 100.0
    assert "it was dated when its interval was another" in because(crawl, url(0))


def test_a_crawl_that_does_not_refresh_says_so():
    crawl = crawl_of(refreshing=False)
    assert "This crawl does not refresh, so it has no next read" in because(crawl, url(0))
    (top,) = crawl.views().top(1, "importance", crawl.now)
    assert top["next_read"] is None and top["interval_s"] is None
    assert {(row["next_read"], row["interval_s"]) for row in crawl.views().pages()} == {(None, None)}, "nor in exports"
    refreshed = crawl_of(refreshing=True)
    assert refreshed.views().top(1, "importance", refreshed.now)[0]["next_read"]


def test_it_names_what_holds_a_page_back():
    """Politeness, a person, death; robots.txt, scope and failures: test_views.py; budgets: test_budgets.py."""
    crawl = crawl_of(bandwidth=0.001)
    crawl.submit(url(0), url(1))
    crawl.turn()
    crawl.answer(crawl.order(url(0)), [url(1), url(2)], host_next=crawl.now + 90.0, host_failures=3)
    crawl.fail(crawl.order(url(1)), "http-404", status=404)
    crawl.turn()
    assert "is left alone until" in because(crawl, url(0)) and "(3 failures in a row)" in because(crawl, url(0))
    assert "It is tried again at 20" in because(crawl, url(1))
    crawl.now += 91.0
    assert "left alone" not in because(crawl, url(0)), "its time has come"
    crawl.now += DAY
    crawl.submit(url(1))
    crawl.turn()
    crawl.fail(crawl.order(url(1)), "http-404", status=404)
    crawl.turn()
    assert "It is dead: it answered 404 or 410 at 20" in because(crawl, url(1))
    assert ", and again 1 day 1 minute later." in because(crawl, url(1))
    number = crawl.page(url(2))[0].partition.hosts_of[crawl.page(url(2))[1]]
    crawl.frontier.hold(number, "paused")
    assert "Somebody has paused host h2.example: `xyro resume h2.example` lifts it." in because(crawl, url(2))


def test_an_address_that_may_not_be_contacted_is_told_from_a_host_out_of_scope():
    """What a name leads to is known when it is read: the URL itself is in scope."""
    crawl = crawl_of()
    crawl.submit(url(0))
    crawl.turn()
    crawl.fail(crawl.order(url(0)), "blocked-address")
    crawl.turn()
    assert "It is never read: its address is private or reserved, and in no network of" in because(crawl, url(0))


def test_an_unread_page_is_told_how_much_discovery_gets():
    for gamma, named in (("auto", True), (30.0, False)):
        crawl = crawl_of(bandwidth=0.001, gamma=gamma)
        crawl.submit(url(0))
        crawl.turn()
        crawl.frontier.hold(crawl.frontier.partition.hosts.numbers["h2.example"], "paused")
        crawl.answer(crawl.order(url(0)), [url(1), url(2), url(2, 5)], signature=bytes(16))
        crawl.turn()
        said = because(crawl, url(2, 5))
        assert "waits to be read" in said and ("of the orders now (gamma = auto)" in said) is named


def test_a_date_that_evidence_set_is_told():
    crawl = crawl_of(bandwidth=0.001)
    frontier = crawl.frontier
    frontier.partition.begin()
    frontier.scheduler.schedule.put_due(0, int(crawl.now + 60))
    commit = frontier.partition.seal({"node": frontier.dump()})
    frontier.partition.write(commit)
    frontier.partition.written(commit)
    assert "a claim of its site, a regular change or a cluster sets it" in because(crawl, url(0))


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_most_generous_parents_come_first_and_have_their_share(partitions):
    crawl = crawl_of(partitions)
    for _ in range(6):
        crawl.turn()
    with crawl.views() as views:
        found = givers_of(views, targets_of(views, url(2)))
        rows = {row["url"]: row["importance"] for row in views.pages()}
    expected = {url(0): rows[url(0)] * 0.85 / 2, url(1): rows[url(1)] * 0.85}
    assert {one["url"]: one["gives"] for one in found["givers"]} == pytest.approx(expected, abs=1e-4)
    assert all(one["stale"] is not None for one in found["givers"])
    gives = [one["gives"] for one in found["givers"]]
    assert gives == sorted(gives, reverse=True) and found["links_seen"] == 1.0
    assert giver_sentences(found)[0].startswith(
        f"Most of its importance comes, each time that all cash is passed on, from {found['givers'][0]['url']}"
    )


def test_a_page_without_parents_lives_of_the_virtual_page():
    crawl = crawl_of()
    with crawl.views() as views:
        said = with_givers(why(views, url(0), crawl.now), givers_of(views, targets_of(views, url(0))))
    assert said["givers"] == [] and "its cash comes from the virtual page" in said["because"][-1]


def test_a_look_that_was_cut_off_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr(module, "CHECK", 1)
    crawl = crawl_of()
    with crawl.views() as views:
        found = givers_of(views, targets_of(views, url(2)), seconds=-1.0)
    assert found == {"givers": [], "links_seen": 0.0} and "cut off" in giver_sentences(found)[0]


def test_a_link_whose_bytes_only_look_like_the_page_is_none():
    """Page 0x0101 appears, unaligned, in the bytes of links to others."""
    crawl = Crawl.in_memory(settings=Settings(CrawlSettings(scope="any")))
    crawl.submit(url(0))
    for order in crawl.turn():
        crawl.answer(order, [url(0, page) for page in range(1, 600)])
    crawl.turn()
    with crawl.views() as views:
        found = givers_of(views, {0: 0x01000000})
    assert found["givers"] == []
    assert msgspec.json.encode(found)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "less than a second"),
        (1, "1 second"),
        (2.4, "2.4 seconds"),
        (9.96, "10 seconds"),
        (11.4, "11 seconds"),
        (DAY, "1 day"),
        (3 * DAY + 4 * 3_600 + 59, "3 days 4 hours"),
        (DAY + 61, "1 day 1 minute"),
        (2_000 * DAY, "2,000 days"),
        (float("inf"), "for ever"),
    ],
)
def test_times_are_told_in_words(seconds, words):
    assert duration_text(seconds) == words
