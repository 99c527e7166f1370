"""What hosts cost: counted by what servers sent, durable, told by `xyro hosts --by`."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.frontier.rig import START, Crawl, failed, report
from xyro.metadata.hosts import HostCost
from xyro.service.views.host_standing import first_hosts, hosts_table

SMALL, LARGE, ELSEWHERE = "http://small.example/", "http://large.example/", "http://elsewhere.example/"


def costs(crawl: Crawl) -> dict[str, HostCost]:
    partition = crawl.frontier.partition
    return {name: partition.costs.of_host(number) for name, number in partition.hosts.numbers.items()}


def crawled(crawl: Crawl) -> None:
    crawl.submit(SMALL, LARGE)
    crawl.turn()
    crawl.give(replace(report(crawl.order(SMALL), START, [ELSEWHERE], received=700), ended=START + 0.5))
    crawl.give(replace(report(crawl.order(LARGE), START, received=2_000_000), ended=START + 4.0))
    crawl.turn()


def test_bytes_and_seconds_of_each_host_are_those_of_its_reads_and_outlast_the_process(tmp_path: Path) -> None:
    crawl = Crawl.on_disk(tmp_path / "data")
    crawled(crawl)
    found = {"small.example": HostCost(1, 700, 0.5), "large.example": HostCost(1, 2_000_000, 4.0)}
    assert costs(crawl) == {**found, "elsewhere.example": HostCost()}
    crawl.close()
    again = Crawl.on_disk(tmp_path / "data")
    assert costs(again) == {**found, "elsewhere.example": HostCost()}
    again.close()


def test_an_order_that_robots_txt_refuses_costs_nothing_and_a_timeout_its_time() -> None:
    crawl = Crawl.in_memory()
    crawl.submit(SMALL, LARGE)
    crawl.turn()
    crawl.give(failed(crawl.order(SMALL), START, "robots-disallowed"))
    crawl.give(replace(failed(crawl.order(LARGE), START, "timeout-connect", retry_in=99.0), ended=START + 30.0))
    crawl.turn()
    assert costs(crawl) == {"small.example": HostCost(), "large.example": HostCost(1, 0, 30.0)}


def test_hosts_by_bytes_shows_the_dearest_first() -> None:
    crawl = Crawl.in_memory()
    crawled(crawl)
    with crawl.views() as views:
        rows = first_hosts(views.hosts(), 9, "bytes")
    assert [row["host"] for row in rows][:2] == ["large.example", "small.example"]
    head, first, second, *_ = hosts_table(rows, 80, "bytes").splitlines()
    assert head.split()[:4] == ["host", "received", "requests", "seconds"]
    assert first.split()[:5] == ["large.example", "2.0", "MB", "1", "4"]
    assert second.split()[:5] == ["small.example", "700", "bytes", "1", "0.5"]
