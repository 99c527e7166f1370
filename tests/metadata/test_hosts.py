"""Hosts: numbers, counters that grow, politeness that is remembered as long as it matters."""

from __future__ import annotations

import pytest

from xyro.metadata import hosts as module
from xyro.metadata import rows
from xyro.metadata.hosts import Hosts
from xyro.metadata.rows import HostRow


def test_numbers_are_dense_and_stay():
    hosts = Hosts()
    names = [f"h{i}.example" for i in range(300)]
    assert [hosts.number(name) for name in names] == list(range(300)) == [hosts.number(name) for name in names]
    assert len(hosts) == 300 and hosts.names == names


def test_counters_keep_their_values_when_the_columns_grow():
    hosts = Hosts()
    for i in range(64):
        hosts.waiting[hosts.number(f"h{i}")] = i
    hosts.hold(hosts.number("h3"), "paused")
    hosts.number("one more")
    assert len(hosts.waiting) == len(hosts.leased) == len(hosts.open) > 64
    assert hosts.waiting[:65].tolist() == [*range(64), 0]
    assert hosts.open.tolist().count(False) == 1 and not hosts.open[3]


def test_after_a_clock_was_set_back_no_host_is_left_alone_for_longer_than_a_day():
    hosts = Hosts()
    far, near, held = (hosts.number(name) for name in ("far", "near", "held"))
    hosts.hold(held, "paused")
    for host, next_at in ((far, 9e6), (near, 5_000.0), (held, 9e6)):
        hosts.remember(host, next_at, 2, now=1.0)
    hosts.rewind(1_000.0)
    assert hosts.row(far) == HostRow("far", 1_000.0 + module.LONGEST, 2)
    assert hosts.row(near) == HostRow("near", 5_000.0, 2)
    assert hosts.row(held) == HostRow("held", 1_000.0 + module.LONGEST, 2, "paused")


def test_politeness_is_stored_where_it_changes():
    hosts = Hosts()
    host = hosts.number("h")
    assert not hosts.remember(host, 0.0, 0, now=1.0), "nothing to remember, nothing to store"
    assert hosts.remember(host, 60.0, 2, now=1.0)
    assert hosts.row(host) == HostRow("h", 60.0, 2)
    assert hosts.remember(host, 0.0, 0, now=90.0), "it is over: the row on disk must say so"
    assert hosts.row(host) == HostRow("h")


def test_a_hold_survives_politeness_and_the_way_to_disk():
    hosts = Hosts()
    host = hosts.number("h:8080")
    hosts.hold(host, "blocked")
    hosts.remember(host, 60.0, 1, now=1.0)
    assert hosts.row(host) == HostRow("h:8080", 60.0, 1, "blocked")
    key, value = hosts.stored(host)
    again = Hosts()
    again.load(rows.HOST.split(key), rows.unpack_host(value))
    assert again.row(0) == hosts.row(0) and not again.open[0]
    again.hold(0, "")
    assert again.open[0] and again.row(0).failures == 1


def test_rows_out_of_order_are_damage():
    hosts = Hosts()
    hosts.load(0, HostRow("a"))
    with pytest.raises(ValueError, match="out of order"):
        hosts.load(2, HostRow("c"))
    with pytest.raises(ValueError, match="out of order"):
        hosts.load(1, HostRow("a"))


def test_what_no_longer_matters_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "FEW", 10)
    hosts = Hosts()
    numbers = [hosts.number(f"h{i}") for i in range(1000)]
    hosts.hold(0, "paused")
    hosts.remember(1, 1e9, 0, now=0.0)
    hosts.remember(2, 5.0, 7, now=0.0)
    for i, number in enumerate(numbers[3:]):
        hosts.remember(number, i + 2.0, 0, now=float(i))
        assert len(hosts.clocks) <= 20
    assert {0, 1, 2} <= hosts.clocks.keys(), "a hold, a long wait, failures in a row"
    assert hosts.row(2).failures == 7 and hosts.row(0).hold == "paused"


def test_what_was_learned_of_a_host_outlives_politeness_holds_and_a_restart():
    hosts = Hosts()
    number = hosts.number("h")
    hosts.trust[number], hosts.rates[number] = b"trust", b"rates"
    hosts.remember(number, 60.0, 1, now=1.0)
    hosts.hold(number, "paused")
    assert hosts.row(number) == HostRow("h", 60.0, 1, "paused", trust=b"trust", rates=b"rates")
    again = Hosts()
    again.load(0, rows.unpack_host(hosts.stored(number)[1]))
    assert (again.trust, again.rates, again.row(0)) == (hosts.trust, hosts.rates, hosts.row(number))
    hosts.trust.clear()
    hosts.rates.clear()
    assert hosts.row(number) == HostRow("h", 60.0, 1, "paused")
