"""Blackouts and budgets: the calendar, hosts that open and shut, and orders that wait for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.rig import START, Crawl, url
from xyro.configs.load import load
from xyro.configs.schema import BlackoutTable, BudgetTable, Settings
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.frontier import host_limits
from xyro.frontier.host_limits import HostLimits, closed_until, next_begin, windows_of
from xyro.metadata.hosts import Hosts
from xyro.service.node.blackout_switch import BlackoutSwitch
from xyro.service.node.host_calendar import HostCalendar
from xyro.service.views.why import why
from xyro.wire.errors import InputError
from xyro.wire.messages import Priority
from xyro.wire.urls import fits

DAY = 86_400.0


def at(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


# The calendar. 2026-11-23 is a Monday.


@pytest.mark.parametrize(
    ("hours", "days", "moment", "until"),
    [
        ("8-18", "mon-fri", "2026-11-23T07:59:59", None),
        ("8-18", "mon-fri", "2026-11-23T08:00:00", "2026-11-23T18:00:00"),
        ("8-18", "mon-fri", "2026-11-23T17:59:59", "2026-11-23T18:00:00"),
        ("8-18", "mon-fri", "2026-11-23T18:00:00", None),
        ("8-18", "mon-fri", "2026-11-28T12:00:00", None),
        ("22:30-6", "sun", "2026-11-23T05:00:00", "2026-11-23T06:00:00"),
        ("22:30-6", "sun", "2026-11-23T23:00:00", None),
        ("0-24", "sat,sun", "2026-11-28T00:00:00", "2026-11-30T00:00:00"),
        ("8-12,12-14", "fri-mon", "2026-11-27T09:00:00", "2026-11-27T14:00:00"),
        ("8-12,12-14", "fri-mon", "2026-11-25T09:00:00", None),
    ],
)
def test_a_window_holds_from_its_begin_to_its_end(hours, days, moment, until):
    windows = windows_of(BlackoutTable("a", hours, days))
    assert closed_until(windows, at(moment)) == (at(until) if until else 0.0)


def test_hours_are_those_of_the_hosts_wall_clock_over_a_change_of_it():
    """Paris went to winter time on 2026-10-25: 8 o'clock was 6 UTC on the 24th and 7 UTC on the 26th."""
    windows = windows_of(BlackoutTable("a", "8-9", "mon-sun", "Europe/Paris"))
    for day, utc in ((24, 6), (26, 7)):
        begin = datetime(2026, 10, day, utc, tzinfo=UTC).timestamp()
        assert closed_until(windows, begin - 1) == 0.0 and closed_until(windows, begin) == begin + 3600


@given(
    st.integers(0, 23), st.integers(1, 24), st.sets(st.integers(0, 6), min_size=1), st.integers(0, 20_000)
)  # fmt: skip
def test_the_calendar_agrees_with_a_look_at_every_quarter(begin, end, days, start):
    if begin == end:
        return
    names = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    windows = windows_of(BlackoutTable("a", f"{begin}-{end}", ",".join(names[day] for day in days)))

    def shut(moment):
        when = datetime.fromtimestamp(moment, UTC)
        hour, yesterday = when.hour, (when - timedelta(days=1)).weekday()
        if begin < end:
            return when.weekday() in days and begin <= hour < end
        return (when.weekday() in days and hour >= begin) or (yesterday in days and hour < end)

    now = START + 900.0 * start
    for quarter in range(0, 96, 5):
        moment = now + 900.0 * quarter
        until = closed_until(windows, moment)
        assert bool(until) == shut(moment)
        if until and until < moment + 7 * DAY:
            assert shut(until - 1) and not shut(until)
        first = next_begin(windows, moment)
        assert first > moment and (shut(first) or first > moment + 12 * DAY)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[[blackouts]]\nhost = "a"\nhours = "8-25"', "hours"),
        ('[[blackouts]]\nhost = "a"\nhours = "8:60-9"', "hours"),
        ('[[blackouts]]\nhost = "a"\nhours = "8"', "hours"),
        ('[[blackouts]]\nhost = "a"\ndays = "mon-fry"', "days"),
        ('[[blackouts]]\nhost = "a"\ntimezone = "Mars/Base"', "timezone"),
        ('[[blackouts]]\nhours = "8-9"', "host"),
        ("[[budgets]]\npages_per_day = 5", "host"),
        ('[[budgets]]\nhost = "a"\npages_per_day = 0', "pages_per_day"),
        ("[refresh]\ngamma_schedule = [[10, 50], [5, 20]]", "gamma_schedule"),
        ("[refresh]\ngamma_schedule = [[10, 500]]", "gamma_schedule"),
        ('[refresh]\nbandwidth = "5/week"', "bandwidth"),
        ('[refresh]\npolicy = "mixed"\nalpha = 0\nbeta = 0', "alpha and beta"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, table, told):
    path = tmp_path / "mine.toml"
    path.write_text(table)
    with pytest.raises(InputError, match=told):
        load([path])


def test_patterns_fit_hosts_with_and_without_a_port():
    assert fits("a.example:8080", "a.example") and fits("a.example:8080", "a.example:8080")
    assert fits("b.a.example:81", "*.a.example") and not fits("a.example", "*.a.example")
    assert fits("[::1]:80", "[::1]:80") and not fits("xa.example", "a.example")


# HostLimits


def limits_of(names=("a", "b"), budgets=(), blackouts=()):
    hosts = Hosts()
    for name in names:
        hosts.number(name)
    return hosts, HostLimits(hosts, budgets, blackouts)


def test_a_budget_shuts_its_host_until_midnight_and_each_host_has_its_own():
    _, limits = limits_of(("x.a", "y.a", "b"), [BudgetTable("*.a", 2), BudgetTable("*.a", 100)])
    now = 10 * DAY + 5.0
    assert limits.renew(now) == []
    for host in (0, 0, 1, 2, 2, 2):
        limits.count(host, now)
    assert dict(limits.until) == {0: (11 * DAY, "budget")} and limits.shut[:3].tolist() == [True, False, False]
    assert (limits.used(0), limits.used(1), limits.used(2)) == ((2, 2), (1, 2), None)
    assert limits.renew(11 * DAY - 1) == [] and limits.renew(11 * DAY) == [0]
    assert limits.used(0) == (0, 2) and not limits.shut.any()


def test_what_was_used_today_survives_a_restart_and_is_void_tomorrow():
    hosts, limits = limits_of(budgets=[BudgetTable("a", 3)])
    limits.renew(5 * DAY)
    for _ in range(3):
        limits.count(0, 5 * DAY)
    again = HostLimits(hosts, [BudgetTable("a", 3)], [])
    again.load(limits.dump())
    again.renew(5 * DAY + 60)
    assert again.until == {0: (6 * DAY, "budget")}
    again = HostLimits(hosts, [BudgetTable("a", 3)], [])
    again.load(limits.dump())
    again.renew(6 * DAY + 60)
    assert again.until == {} and again.dump() == {}


def test_hosts_met_during_a_blackout_are_shut_at_once_and_many_hosts_have_room():
    hosts, limits = limits_of((), blackouts=[BlackoutTable("*.a", "0-24")])
    limits.renew(START)
    for number in range(100):
        hosts.number(f"h{number}.{'ab'[number % 2]}")
    limits.renew(START + 1)
    assert set(limits.until) == set(range(0, 100, 2)) and len(limits.shut) == len(hosts.open)


def test_what_a_table_says_is_asked_once_however_many_hosts_it_fits(monkeypatch):
    """Asked host by host, 30,000 hosts took 12 s of the event loop, again for each host that was met."""
    asked = []
    monkeypatch.setattr(
        host_limits, "closed_until", lambda windows, now: asked.append(now) or closed_until(windows, now)
    )
    hosts, limits = limits_of((f"h{number}.a" for number in range(500)), blackouts=[BlackoutTable("*.a", "0-24")])
    limits.renew(START)
    assert len(limits.until) == 500 and len(limits.closed(START)[0]) == 500
    hosts.number("one.more.a")
    limits.renew(START + 1)
    assert len(limits.until) == len(limits.closed(START + 1)[0]) == 501 and len(asked) <= 4


@given(st.lists(st.tuples(st.integers(0, 40_000), st.sampled_from(("x.a", "y.a", "a", "b", "c.b", "")))), st.randoms())
def test_hosts_met_on_the_way_are_shut_as_if_they_had_been_there_from_the_beginning(steps, random):
    tables = [BlackoutTable("*.a", "8-18"), BlackoutTable("*.a", "17-20", "mon-fri"), BlackoutTable("b", "22-6", "sat")]
    hosts, limits = limits_of((), [BudgetTable("*.b", 1)], tables)
    now = START
    for seconds, kind in steps:
        now += seconds
        if kind:
            hosts.number(f"h{len(hosts)}.{kind}" if "." in kind else kind)
        limits.renew(now)
        for host in range(len(hosts)):
            if host not in limits.until and random.random() < 0.2:
                limits.count(host, now)
        again = HostLimits(hosts, [BudgetTable("*.b", 1)], tables)
        again.load(limits.dump())
        again.renew(now)
        assert again.until == limits.until
        assert np.flatnonzero(limits.shut).tolist() == sorted(limits.until)
        assert {host for host, (_, why) in limits.until.items() if why == "blackout"} <= limits.closed(now)[0]


def test_other_settings_open_what_is_shut_by_none_any_more():
    _, limits = limits_of(blackouts=[BlackoutTable("a", "0-24")])
    limits.renew(START)
    limits.follow([], [])
    assert limits.renew(START + 1) == [0] and not limits.on and not limits.shut.any()


# In the plan


def test_what_is_read_in_a_day_stays_within_the_budget_though_it_was_ordered_the_day_before():
    """Orders wait at polite hosts: those of 23:59 are read after midnight."""
    midnight = (START // DAY + 1) * DAY
    crawl = crawl_with(budgets=(BudgetTable("h0.example", 5),))
    crawl.now = midnight - 30.0
    crawl.submit(*(url(0, page) for page in range(20)))
    assert len(crawl.turn()) == 5
    first = list(crawl.orders.values())[:2]
    for order in first:
        crawl.answer(order)
    crawl.turn()
    crawl.now = midnight + 1.0
    crawl.turn()
    assert len(crawl.orders) == 5 and crawl.frontier.scheduler.host_limits.used(0) == (5, 5)
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    assert crawl.turn() == []


def crawl_with(**tables):
    chosen = Settings(crawl=CrawlSettings(scope="any"), **tables)
    return Crawl.in_memory(settings=chosen, refreshing=True)


def told(orders):
    return sorted(order.url for order in orders)


def test_no_page_of_a_host_in_a_blackout_is_ordered_whoever_asks_and_all_come_back_at_its_end():
    begin = (START // DAY + 1) * DAY
    crawl = crawl_with(blackouts=(BlackoutTable("h1.example", "0-6"),))
    crawl.submit(url(0), url(1))
    for order in crawl.turn():
        crawl.answer(order, [url(1, 1), url(0, 1)] if order.url == url(0) else ())
    crawl.now = begin + 60.0
    crawl.submit(url(1, 2))
    crawl.submit(url(1, 3), priority=Priority.BLOCKING)
    assert "h1.example" not in "".join(told(crawl.turn()))
    assert crawl.frontier.scheduler.shut_out and crawl.frontier.scheduler.next_time() <= begin + 6 * 3600
    for order in list(crawl.orders.values()):
        crawl.answer(order)
    assert "h1.example" not in "".join(told(crawl.turn()))
    crawl.now = begin + 6 * 3600.0
    crawl.turn()
    crawl.turn()
    assert {url(1, 1), url(1, 2), url(1, 3)} <= {order.url for order in crawl.orders.values()}
    assert not crawl.frontier.scheduler.shut_out


def test_a_days_budget_bounds_the_orders_of_all_kinds():
    crawl = crawl_with(budgets=(BudgetTable("h0.example", 5),))
    crawl.submit(url(0))
    per_day = []
    for _ in range(4):
        count = 0
        for _ in range(6):
            for order in crawl.turn():
                count += order.url.startswith("http://h0.")
                crawl.answer(order, [url(0, page) for page in range(1, 30)])
            crawl.now += 60.0
        per_day.append(count)
        crawl.now = (crawl.now // DAY + 1) * DAY
    assert per_day == [5, 5, 5, 5]


class Pool:
    """What Closing asks of the pool."""

    def __init__(self):
        self.held = set()

    def hold(self, host):
        self.held.add(host)

    def resume(self, host):
        self.held.discard(host)


def test_orders_that_are_out_when_a_blackout_begins_wait_in_the_pool():
    crawl = crawl_with(blackouts=(BlackoutTable("h1.example", "0-6"), BlackoutTable("h2.example", "0-6")))
    crawl.submit(url(0), url(1), url(2))
    crawl.turn()
    pool, begin = Pool(), (START // DAY + 1) * DAY
    closing = BlackoutSwitch([HostCalendar(frontier) for frontier in crawl.frontiers], pool)
    closing.follow(START)
    assert pool.held == set() and closing.next_change() == begin
    closing.follow(begin)
    assert pool.held == {"h1.example", "h2.example"} == closing.shut_hosts and closing.next_change() == begin + 6 * 3600
    crawl.frontier.hold(crawl.frontier.partition.hosts.numbers["h2.example"], "paused")
    closing.follow(begin + 6 * 3600)
    assert pool.held == {"h2.example"}, "a person holds it still"


def test_without_tables_nothing_is_asked():
    hosts, limits = limits_of()
    assert not limits.on and limits.renew(START) == [] and limits.closed(START) == (set(), np.inf)
    limits.count(0, START)
    assert limits.dump() == {} and limits.used(0) is None and not limits.shut[: len(hosts)].any()


def test_why_names_the_rule_that_holds_a_page_back():
    crawl = crawl_with(blackouts=(BlackoutTable("h1.example", "0-24"),), budgets=(BudgetTable("h0.example", 2),))
    crawl.submit(url(0), url(1))
    for order in crawl.turn():
        crawl.answer(order, [url(0, 1), url(0, 2)])
    crawl.turn()
    with crawl.views() as views:
        shut, spent = (" ".join(why(views, one, crawl.now)["because"]) for one in (url(1), url(0, 2)))
    assert "in a blackout until" in shut and "none of its pages is read, ordered or not" in shut
    assert "budget of host h0.example" in spent and "Of the 2 pages a day" in spent
