"""How `xyro lab gamma` judges a server's log: its windows, what counts, what is asked."""

from __future__ import annotations

import pytest

from xyro.lab.crawls.gamma_shares import SCHEDULE, WARM_UP, GammaTrial, PageRead, _asked, _contested, _row
from xyro.lab.web.web import Web

HOST = "127.1.0.1"


def log(first_of, seconds=60.0, a_second=20):
    """Reads of one host; first_of(number): is this one a first read?"""
    return [PageRead(number / a_second, HOST, first_of(number)) for number in range(int(seconds * a_second))]


def row(reads, gamma="50", shares=()):
    trial = GammaTrial("crawl", gamma, 1, 20_000, 0.0, 60.0)
    return _row(trial, reads, _asked(trial, reads, shares))


@pytest.mark.parametrize(("gamma", "one_in"), [("50", 2), ("25", 4), ("5", 20)])
def test_a_share_that_is_kept_is_seen_to_be(gamma, one_in):
    found = row(log(lambda number: number % one_in == 0), gamma)
    assert found["ok"] and found["share"] == pytest.approx(float(gamma), abs=0.1) and found["windows"] > 10


def test_a_burst_is_seen_though_the_mean_is_right():
    found = row(log(lambda number: number // 200 % 2 == 0))
    assert (
        not found["ok"]
        and found["worst_of_200_reads"] == pytest.approx(50.0, abs=1.0)
        and found["share"] == pytest.approx(50.0, abs=8.0)
    )


def test_the_beginning_does_not_count():
    early = log(lambda number: number < WARM_UP * 20 or number % 2 == 0)
    assert row(early)["ok"], "what was read while nothing could be read again"


def test_beside_a_slow_machine_a_host_counts_until_half_of_it_was_read():
    reads = log(lambda number: number > 20_000 or number % 2 == 0, a_second=600)
    slow = GammaTrial("crawl", "50", 1, 20_000, 0.0001, 60.0)
    found = _row(slow, reads, _asked(slow, reads, ()))
    assert found["bound_by"] == "machine" and found["ok"]


def test_a_host_counts_while_a_link_was_shown_to_a_page_that_was_not_read():
    web = Web(seed=1, pages=20, hosts=1)
    paths = [web.places.path(page) for page in range(20)]
    again = [PageRead(float(t), HOST, t == 0) for t in range(20)]
    every = [PageRead(20.0 + 0.1 * page, HOST, True, path) for page, path in enumerate(paths) if path != "/"]
    found = list(_contested(web, [*again, *every, *(PageRead(float(t), HOST, False) for t in range(25, 40))]))
    assert {read.time for read in found if read.time < 20.0} == set(map(float, range(11, 20))), (
        "old enough from 11 s on"
    )
    assert every[0] in found, "the home page leads to it"
    assert not [read for read in found if read.time >= 25.0], "nothing is new any more"


def test_a_schedule_asks_by_reads_and_auto_by_what_status_told():
    reads = log(lambda number: True, seconds=300.0)
    trial = GammaTrial("crawl", "schedule", 1, 20_000, 0.0, 60.0)
    (_, begins), (pages, ends) = SCHEDULE
    asked = _asked(trial, reads, ())
    assert asked(0.0) == pytest.approx((begins, begins), abs=0.1) and asked(290.0) == (ends, ends)
    assert asked(pages / 20 / 2) == pytest.approx(2 * [(begins + ends) / 2], abs=0.1)
    auto = _asked(GammaTrial("crawl", "auto", 1, 20_000, 0.0, 60.0), reads, [(0.0, 40.0), (10.0, 60.0)])
    assert [auto(t) for t in (-1.0, 0.0, 9.9, 10.1)] == [(40.0, 40.0), (40.0, 60.0), (40.0, 60.0), (60.0, 60.0)]


def test_auto_is_off_by_what_lies_outside_of_both_looks():
    """Half of the reads are first reads, whichever gamma held between two looks."""
    reads = log(lambda number: number % 2 == 0)
    assert row(reads, "auto", [(0.0, 40.0), (61.0, 60.0)])["ok"]
    off = row(reads, "auto", [(0.0, 10.0), (61.0, 30.0)])
    assert not off["ok"] and off["worst_of_200_reads"] == pytest.approx(20.0, abs=1.0)


def test_hosts_that_are_found_one_after_another_are_no_slow_machine():
    """Each of 100 hosts is read every ten seconds from when it is found; at first all of its reads are first ones."""
    found = [
        PageRead(1.0 * host + 10.0 * turn, f"127.1.0.{host}", turn < 2 or turn % 2 == 0)
        for host in range(100)
        for turn in range(20)
        if host + 10 * turn < 120
    ]
    reads = sorted(found, key=lambda read: read.time)
    trial = GammaTrial("serve", "50", 100, 20_000, 10.0, 120.0)
    assert _row(trial, reads, _asked(trial, reads, ()))["bound_by"] == "hosts"
    slow = [read._replace(time=3.0 * read.time) for read in reads]
    assert _row(trial, slow, _asked(trial, slow, ()))["bound_by"] == "machine"
