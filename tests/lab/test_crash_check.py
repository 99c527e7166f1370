"""A checker that finds nothing proves nothing: each violation is planted, and must be found alone."""

import pytest

from xyro.configs.schema import Settings
from xyro.lab.crash import check
from xyro.lab.crash.check import (
    LOST_PER_KILL,
    Left,
    LoggedRequest,
    contact,
    life,
    losses,
    requests_of,
    shortest_gap,
    violations,
)
from xyro.service.node import node

DELAY = 0.5
HOSTS = ("127.1.0.1:80", "127.1.0.2:80")
"""the second one's robots.txt disallows /private/"""


def row(url, reads=1, **others):
    settled = {"state": "read", "error": None, "http_status": 200, "kind": "HTML", "out_links": 3, "signature": "ab"}
    return {"url": url, "reads": reads, **settled, **others}


def asked(host, *uris, name="life-1", start=0.0, gap=DELAY):
    return [LoggedRequest(start + gap * i, name, host, uri) for i, uri in enumerate(uris)]


def sound():
    """Two hosts read in peace: rows of the export and requests."""
    requests = [request for host in HOSTS for request in asked(host, "/robots.txt", "/", "/a", "/b")]
    rows = [row(request.url) for request in requests if request.uri != "/robots.txt"]
    return rows, [dict(each) for each in rows], sorted(requests)


def found(calm, rough, requests, *left):
    return violations(calm, rough, requests, left or [Left(1, {}, LOST_PER_KILL)], DELAY)


def test_what_a_kill_may_cost_is_what_the_crawl_says():
    assert (node.AT_RISK, Settings().fetch.concurrency) == (check.AT_RISK, check.CONCURRENCY)


def test_nothing_is_found_where_all_is_well():
    assert found(*sound()) == []


def test_a_page_that_only_one_of_the_crawls_knows():
    calm, rough, requests = sound()
    calm.append(row("http://x/", reads=0))
    rough.append(row("http://y/", reads=0))
    assert found(calm, rough, requests) == [
        "http://x/ is known to the undisturbed crawl only",
        "http://y/ is known to the killed crawl only",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "error"),
        ("error", "timeout"),
        ("http_status", 404),
        ("kind", "XML"),
        ("out_links", 2),
        ("signature", "cd"),
    ],
)
def test_a_page_that_was_read_otherwise(name, value):
    calm, rough, requests = sound()
    rough[2][name] = value
    (only,) = found(calm, rough, requests)
    assert only.startswith(f"{rough[2]['url']}: {name} is {value}")


def test_a_page_that_was_not_read():
    calm, rough, requests = sound()
    rough[1]["reads"] = 0
    assert found(calm, rough, requests) == [f"{rough[1]['url']}: 0 reads, undisturbed 1"]


def test_reads_that_the_server_knows_nothing_of():
    calm, rough, requests = sound()
    rough[0]["reads"] = 2
    assert found(calm, rough, requests) == [f"{rough[0]['url']}: 2 reads, the server answered 1 times"]


def twice(first, second):
    """The sound crawl, where life 1 lost `first` reads of a page and life 2 `second` ones; and who read how often."""
    calm, rough, requests = sound()
    for name, start, count in (("life-1", 100.0, first), ("life-2", 9_000.0, second)):
        requests.append(LoggedRequest(start, name, HOSTS[0], "/robots.txt"))
        requests += [LoggedRequest(start + 1 + i, name, HOSTS[0], "/a") for i in range(count)]
    return calm, rough, requests, {each["url"]: 1 for each in rough}


def test_each_end_is_judged_by_what_it_cost_alone():
    calm, rough, requests, reads = twice(LOST_PER_KILL, 3)
    left = [Left(1, reads, LOST_PER_KILL), Left(2, reads, LOST_PER_KILL)]
    assert found(calm, rough, requests, *left) == []
    assert losses(left, [each for each in requests if each.uri != "/robots.txt"]) == [LOST_PER_KILL, 3]


def test_an_end_that_cost_more_than_it_may():
    calm, rough, requests, reads = twice(LOST_PER_KILL + 1, 0)
    left = [Left(1, reads, LOST_PER_KILL), Left(2, reads, LOST_PER_KILL)]
    assert found(calm, rough, requests, *left) == ["life 1: its end cost 513 reads, 512 are allowed"]


def test_an_interrupt_that_cost_a_read():
    calm, rough, requests, reads = twice(0, 1)
    left = [Left(1, reads, LOST_PER_KILL), Left(2, reads, 0)]
    assert found(calm, rough, requests, *left) == ["life 2: its end cost 1 reads, 0 are allowed"]


def test_more_requests_than_all_ends_excuse():
    calm, rough, requests, reads = twice(2, 0)
    assert found(calm, rough, requests, Left(1, reads, 1)) == [
        "8 page requests, 7 are allowed (6 pages, 1 that may be lost)",
        "life 1: its end cost 2 reads, 1 are allowed",
    ]


def test_reads_that_a_store_knew_before_the_server_did():
    calm, rough, requests, reads = twice(0, 1)
    early = reads | {f"http://{HOSTS[0]}/a": 2}
    assert found(calm, rough, requests, Left(1, early, 9), Left(2, reads, 9)) == [
        f"life 1: http://{HOSTS[0]}/a: 2 reads, the server answered 1 times"
    ]


def test_a_disallowed_page():
    calm, rough, requests = sound()
    (only,) = found(calm, rough, [*requests, LoggedRequest(9.0, "life-1", HOSTS[1], "/private/p1.html")])
    assert only.endswith("/private/p1.html, which robots.txt disallows")
    assert found(calm, rough, [*requests, LoggedRequest(9.0, "life-1", HOSTS[0], "/private/p1.html")]) == []


def test_a_process_that_reads_before_it_asked_for_robots_txt():
    calm, rough, requests = sound()
    assert found(calm, rough, [*requests, *asked(HOSTS[0], "/a", name="life-2", start=9.0)]) == [
        f"life-2 read http://{HOSTS[0]}/a before robots.txt"
    ]


@pytest.mark.parametrize("name", ["life-1", "life-2"])
def test_reads_of_a_host_that_are_too_close_even_of_two_processes(name):
    calm, rough, requests = sound()
    late = max(request.time for request in requests) + DELAY - 0.02
    (only,) = found(calm, rough, [*requests, LoggedRequest(late, name, HOSTS[0], "/robots.txt")])
    assert only.startswith(f"{name} read http://{HOSTS[0]}/robots.txt 0.480 s after life-1")
    assert shortest_gap([*requests, LoggedRequest(late, name, HOSTS[0], "/robots.txt")]) == pytest.approx(DELAY - 0.02)


def test_requests_of_reads_the_access_log_and_leaves_strangers_out():
    line = "12.500\t127.1.0.1\tGET\t200\ttext/html\t99\t1\t1\tXyro/0 (+mailto:{})\t/d1/p7.html\n"
    log = line.format(contact(life("rough", 7))) + line.format("you@example.org")
    assert requests_of(log, 8080) == [LoggedRequest(12.5, "rough-7", "127.1.0.1:8080", "/d1/p7.html")]
    assert requests_of(log, 8080)[0].url == "http://127.1.0.1:8080/d1/p7.html"
