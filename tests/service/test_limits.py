"""What limits the speed, and what is wrong: each incident is named by its own sentence, and a good crawl by none."""

from collections import Counter

import pytest

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.service.node.recent_figures import RecentFigures
from xyro.service.views.limits import limit_lines, limits
from xyro.service.views.text_tables import wrapped
from xyro.service.views.troubles import partition_troubles, trouble_fields
from xyro.wire.clock import ManualClock

GIB = 1 << 30
WELL = {
    "running": True,
    "seconds": 100.0,
    "known": 50,
    "reads": 40,
    "recent_reads": 40,
    "recent_errors": {},
    "states": {"unread": 0, "read": 40},
    "queue": {"ordered": 0, "discover": 0},
    "in_flight": 0,
    "work": {"connections": 256, "full": False, "cpu": 0.1, "commit_waits": 0.0, "disk_free": 9 * GIB, "clock_step": 0},
}
HOST = {"host": "a.example", "unread": 7, "until": None, "detail": ""}


def sink(**fields):
    return {"sinks": {"s": {"behind": 12, "dropped": 3, "failures": 0, "error": None, "dead": 0, **fields}}}


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("node", {"missing": ["node 2: no answer"]}, "node 2: no answer"),
        ("disk", {"work": {**WELL["work"], "disk_free": 200 << 20}}, "200 MiB are left"),
        ("disk", {"troubled_nodes": [{"node": 2, "kind": "disk", "text": "It is full."}]}, "Node 2: It is full."),
        ("disk", {"work": {**WELL["work"], "commit_waits": 30.0}}, "has waited for it for 30 s"),
        ("contents", {"contents": {"paused": "no space"}}, "not stored now ([keep]): no space"),
        ("clock", {"work": {**WELL["work"], "clock_step": -3600.0}}, "set back by 3,600 s"),
        ("reader", {"recent_errors": {"reader-lost": 2}}, "2 reads lost"),
        ("reader", {"work": {**WELL["work"], "readers_lost": 1}}, "ended: 1 time, 0 reads lost"),
        (
            "name-server",
            {"work": {**WELL["work"], "slow_lookups": 3}},
            "slow: 3 look-ups of the last ten minutes took 2 s",
        ),
        ("sink", sink(failures=4, error="refused"), "Sink s takes nothing (refused): 4 failures in a row, 12 changes"),
        ("sink", sink(delivers_s=95.0), "Sink s has not answered a delivery for 95 s: 12 changes behind."),
        ("sink", sink(error="HTTP 400", dead=5), "Sink s refused changes (HTTP 400): 5 dead letters"),
        ("name-server", {"recent_errors": {"dns-timeout": 3}}, "Name servers are slow or fail: 3 failures"),
        (
            "certificate",
            {"recent_errors": {"tls": 1}, "failed_pages": {"tls": "https://a.example/"}},
            "1 failure, such as https://a.example/",
        ),
        (
            "challenged",
            {
                "troubled_hosts": [
                    {**HOST, "kind": "challenged", "detail": "cloudflare", "until": "2026-11-23T10:00:00Z"}
                ]
            },
            "a.example (cloudflare, 7 unread pages, until 2026-11-23T10:00:00Z)",
        ),
        (
            "blocked",
            {"troubled_hosts": [{**HOST, "kind": "blocked"}]},
            "Hosts that somebody has blocked: a.example (7 unread pages)",
        ),
        (
            "failing",
            {"troubled_hosts": [{**HOST, "kind": "failing", "detail": "4"}]},
            "a.example (4 failures, 7 unread",
        ),
        (
            "failures",
            {"recent_errors": {"http-5xx": 30}},
            "Most reads of the last ten minutes failed: http-5xx 30 times",
        ),
        (
            "trap",
            {"breeding": {"unread": 900, "host": "t.example"}},
            "900 unread pages of patterns that breed, or show one page over and over",
        ),
        ("farm", {"waiting_links": 40}, "40 links wait"),
        (
            "bandwidth",
            {
                "bandwidth": {
                    "set": "100/day",
                    "reads_per_day": 100.0,
                    "freshness": 0.5,
                    "proposed": 900.0,
                    "freshness_proposed": 0.8,
                }
            },
            "100/day keeps 50% fresh, 900 reads a day would keep 80%",
        ),
    ],
)
def test_each_incident_has_its_sentence(kind, fields, words):
    (found,) = limits({**WELL, **fields})["wrong"]
    assert found["kind"] == kind and words in found["text"]


def bounded(charged=0, out_of_time=0, out_of_reads=0):
    """The fields of a cluster in which `xyro crawl --join --max-pages 60` was the last crawl."""
    counts = {"charged": charged, "out_of_time": out_of_time, "out_of_reads": out_of_reads}
    return {"bounded_crawl": {"run": 1, "pages": 60, "refresh": False}, "bounded_reads": counts}


def test_a_reached_bound_is_named_with_what_ends_it():
    (line,) = limit_lines(limits(WELL | bounded(charged=60)))
    assert line == (
        "A bound of the last `xyro crawl --join` is reached (its 60 reads): nothing more is read until the next "
        "one, or until `xyro cluster unbound`."
    )


def test_a_node_that_is_away_is_named_first():
    away = "partitions 4-7 of node 2 on host did not answer: nobody took the request"
    first, second, third = limit_lines(limits({**WELL, "missing": [away], "held_hosts": {}, "waiting_links": 3}))
    assert first == f"! A node of the cluster does not answer: {away}."
    assert second.startswith("Of the others: The queue is empty") and third.startswith("! 3 links")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("stopped", {"running": False}),
        ("starting", {"seconds": 1.0}),
        ("disk", {"work": {**WELL["work"], "full": True}}),
        ("cpu", {"work": {**WELL["work"], "cpu": 0.97}, "queue": {"discover": 4}}),
        ("connections", {"in_flight": 250, "queue": {"discover": 4}}),
        ("politeness", {"in_flight": 2, "queue": {"discover": 4}}),
        ("paused", {"work": {**WELL["work"], "paused_orders": 4}, "queue": {"discover": 4}}),
        ("politeness", {"work": {**WELL["work"], "paused_orders": 3}, "queue": {"discover": 4}}),
        ("sites", {"in_flight": 2}),
        ("left-alone", {"states": {"unread": 9}}),
        ("bandwidth", {"bandwidth": {"set": "9/day", "reads_per_day": 9, "proposed": 9, "freshness": 1}}),
        ("queue", {}),
        ("queue", {"reads": 0, "states": {}}),
        ("queue", {"reads": 0, "states": {"error": 1}}),
        ("bounds", bounded(charged=60) | {"states": {"unread": 9}}),
        ("bounds", bounded(charged=50, out_of_reads=1) | {"states": {"unread": 9}, "queue": {"discover": 4}}),
        ("bounds", bounded(out_of_time=2) | {"queue": {"discover": 4}}),
        ("bounds", bounded()),
        ("sites", bounded(charged=60) | {"in_flight": 1}),
        ("left-alone", bounded(charged=50) | {"states": {"unread": 9}}),
    ],
)
def test_what_limits_the_speed(kind, fields):
    found = limits({**WELL, **fields})
    assert found["speed"]["kind"] == kind and found["wrong"] == []


def test_lines_fit_a_terminal_and_cut_no_url():
    page = f"https://a.example/{'x' * 90}"
    found = limits({**WELL, "recent_errors": {"tls": 1}, "failed_pages": {"tls": page}})
    lines = wrapped(limit_lines(found)).splitlines()
    assert max(len(line) for line in lines if page not in line) <= 80 and any(page in line for line in lines)
    assert lines[1].startswith("! Certificates")


class SetClock(ManualClock):
    """A machine whose wall clock is set."""

    offset = 0.0

    def time(self):
        return super().time() + self.offset


def test_a_clock_that_is_set_is_told_for_an_hour():
    clock = SetClock(1e9)
    recent = RecentFigures(clock)
    errors = Counter()
    for offset in (0.0, 0.0, -3600.0, -3600.0):
        clock.offset = offset
        recent.note(0, lambda: errors)
        clock.advance(5.0)
    assert recent.clock_step == -3600.0
    assert [time for time, _, _ in recent.series()] == [1e9 - 3600.0 + step for step in (5.0, 10.0, 15.0)]
    clock.advance(3600.0)
    assert recent.clock_step == 0.0


def test_speed_and_failures_are_of_the_last_ten_minutes():
    clock = ManualClock(1e9)
    recent = RecentFigures(clock)
    assert recent.errors(Counter(tls=1)) == {"tls": 1} and recent.series() == []
    for step in range(200):
        recent.note(50 * step, lambda step=step: Counter({"tls": min(step, 10)}))
        clock.advance(5.0)
    assert recent.errors(Counter(tls=12, timeout=1)) == {"tls": 2, "timeout": 1}
    assert len(recent.series()) == 149 and recent.series()[-1][1:] == [10.0, 0.0]
    assert recent.reads(50 * 199) == 50 * 149


def test_hosts_and_pages_are_named_from_the_partition():
    crawl = Crawl.in_memory(settings=Settings(crawl=CrawlSettings(scope="any")), refreshing=True)
    crawl.submit(url(0), url(1))
    crawl.turn()
    crawl.fail(crawl.order(url(0)), "tls")
    crawl.turn()
    number = crawl.page(url(1))[0].partition.hosts_of[crawl.page(url(1))[1]]
    crawl.frontier.hold(number, "paused")
    found = trouble_fields([partition_troubles(crawl.frontier, crawl.now)])
    assert found["failed_pages"] == {"tls": url(0)} and found["breeding"] == {"unread": 0, "host": ""}
    assert next(row["kind"] for row in found["troubled_hosts"]) == "paused"
