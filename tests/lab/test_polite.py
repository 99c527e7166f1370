"""The judge of politeness: logs with answers known by hand, and a small crawl that is killed once."""

import pytest

from xyro.lab.polite.polite_lab import FLOOR, LEAST, main, violations
from xyro.lab.polite.polite_server import ServedExchange
from xyro.lab.polite.polite_sites import (
    CRAWL_DELAY,
    HOPS,
    HUB,
    RETRY_AFTER,
    address_of,
    answer,
    crawl_delay,
    name_of,
    number_of,
)


def exchange(began, host, path, *, took=0.01, status=200, retry_after=0.0, rules_of=-1, cut=False):
    return ServedExchange(began, began + took, address_of(host, 40), host, path, status, retry_after, rules_of, cut)


def kinds(*exchanges):
    return [kind for kind, _ in violations(exchanges)]


def test_names_and_addresses():
    assert [number_of(f"{name_of(host)}:80") for host in (0, 499)] == [0, 499]
    assert len({address_of(host, 40) for host in range(500)}) == 40


def test_a_request_in_time_is_none_too_early():
    robots = exchange(0.0, 0, "/robots.txt", rules_of=0)
    assert not kinds(robots, exchange(0.01 + LEAST, 0, "/"))
    assert kinds(robots, exchange(LEAST, 0, "/")) == ["too early for its host"]


def test_the_duration_of_a_read_counts_five_times():
    robots, slow = exchange(0.0, 0, "/robots.txt", rules_of=0), exchange(5.0, 0, "/", took=0.5)
    assert not kinds(robots, slow, exchange(8.1, 0, "/p1.html"))
    assert kinds(robots, slow, exchange(7.9, 0, "/p1.html")) == ["too early for its host"]


def test_crawl_delay_holds_from_the_rules_on_and_retry_after_once():
    assert crawl_delay(1) == CRAWL_DELAY
    hop = exchange(0.0, 8, "/robots.txt", status=302)
    rules = exchange(1.0, 8, "/robots-3.txt", rules_of=8)
    assert not kinds(hop, rules, exchange(1.1 + CRAWL_DELAY, 8, "/"))
    assert kinds(hop, rules, exchange(2.0, 8, "/")) == ["too early for its host"]
    busy = exchange(9.0, 3, "/", status=503, retry_after=RETRY_AFTER)
    assert kinds(exchange(0.0, 3, "/robots.txt", rules_of=3), busy, exchange(12.0, 3, "/")) == [
        "too early for its host"
    ]


def test_a_hub_waits_as_a_page_does():
    robots, page = exchange(0.0, 0, "/robots.txt", rules_of=0), exchange(1.0, 0, "/")
    assert answer(0, "/", True, 20, 80).hub and answer(0, HUB, True, 20, 80).status == 202
    assert kinds(robots, page, exchange(1.2, 0, HUB)) == ["too early for its host"]
    assert not kinds(robots, page, exchange(1.02 + LEAST, 0, HUB))


def test_an_address_has_a_floor_and_one_read_at_a_time():
    first = exchange(0.0, 0, "/robots.txt", rules_of=0, took=1.0)
    assert kinds(first, exchange(1.01 + FLOOR, 40, "/robots.txt")) == []
    assert kinds(first, exchange(0.5, 40, "/robots.txt")) == ["too early for its address"]


def test_what_robots_txt_forbids_and_what_it_was_not_asked_for():
    robots = exchange(0.0, 0, "/robots.txt", rules_of=0)
    assert kinds(robots, exchange(9.0, 0, "/private/x.html")) == ["forbidden"]
    assert kinds(exchange(0.0, 0, "/"), exchange(9.0, 0, "/robots.txt", rules_of=0)) == ["before robots.txt"]


def test_robots_txts_lead_to_their_rules():
    for host in range(10):
        at, path = host, "/robots.txt"
        for _ in range(HOPS + 1):
            said = answer(at, path, True, 20, 80)
            if said.rules_of >= 0:
                break
            place = said.location.removeprefix("http://")
            at, path = (number_of(place), "/" + place.partition("/")[2]) if place != said.location else (at, place)
        assert said.rules_of == host
        assert ("Crawl-delay" in said.body) == (crawl_delay(host) > 0)


@pytest.mark.long
def test_a_killed_crawl_asks_nobody_too_early(capsys):
    """500 names on 40 addresses and 25 kills are `xyro lab politeness`."""
    assert main(["--names", "10", "--addresses", "4", "--kills", "1"]) == 0, capsys.readouterr().out
