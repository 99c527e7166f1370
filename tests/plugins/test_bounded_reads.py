"""The reads of a bounded run: those that were ordered for it, and nothing that a node was reading before."""

from __future__ import annotations

import math
from pathlib import Path

from tests.frontier.rig import Crawl, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings
from xyro.plugins.bounded.bound_messages import BoundReads, CountReads
from xyro.plugins.bounded.read_quota import ReadQuota

PAGES = [url(host, page) for host in range(1, 4) for page in range(5)]
FAR = 1e12


class Bounded(Crawl):
    """A crawl of one partition that counts the reads of a run."""

    quota: ReadQuota

    @classmethod
    def begun(cls) -> Bounded:
        quotas: list[ReadQuota] = []
        chosen = Settings(CrawlSettings(scope="any"))
        crawl = cls.in_memory(settings=chosen, plugins=[lambda frontier: quotas.append(ReadQuota(frontier))])
        assert isinstance(crawl, Bounded)
        (crawl.quota,) = quotas
        return crawl

    def counts(self) -> dict[str, int]:
        return self.quota.counts(CountReads(0, self.now))


def rounds(crawl: Crawl, answered: int) -> None:
    """So many rounds in which each order that is out is answered."""
    for _ in range(answered):
        for order in list(crawl.orders.values()):
            crawl.answer(order)
        crawl.deliver_all()
        crawl.turn()
        crawl.now += 1.0


def test_requests_under_way_as_a_run_begins_are_none_of_its_reads() -> None:
    crawl = Bounded.begun()
    crawl.submit(*PAGES)
    earlier = crawl.turn()
    assert len(earlier) > 3
    crawl.pending[0].append(BoundReads(0, 7, 2, FAR, False))
    crawl.turn()
    crawl.now += 1.0
    for order in earlier:  # they end after the run began, and as its own reads go on
        crawl.answer(order)
    crawl.turn()
    assert (crawl.counts()["reads"], crawl.counts()["reads_total"]) == (0, len(earlier))
    crawl.submit(*(url(9, page) for page in range(9)))
    rounds(crawl, 9)
    assert (crawl.counts()["reads"], crawl.counts()["charged"]) == (2, 2)
    assert crawl.counts()["reads_total"] == len(earlier) + 2


def test_a_partition_that_is_opened_again_wants_no_turn_of_its_own(tmp_path: Path) -> None:
    """Its alarm rang for ever where no run had ever begun: four turns a second, and no message waited for others."""
    for _ in range(2):
        crawl = Crawl.on_disk(tmp_path / "data", plugins=[ReadQuota])
        crawl.submit(*PAGES[:2])
        rounds(crawl, 3)
        assert crawl.frontier.next_time() == math.inf
        crawl.close()


def test_a_partition_that_is_opened_again_in_a_run_says_anew_what_it_needs(tmp_path: Path) -> None:
    crawl = Crawl.on_disk(tmp_path / "data", plugins=[ReadQuota])
    crawl.pending[0].append(BoundReads(0, 7, 2, FAR, False))
    rounds(crawl, 2)
    crawl.close()
    crawl = Crawl.on_disk(tmp_path / "data", plugins=[ReadQuota])
    assert crawl.frontier.next_time() <= crawl.now
    rounds(crawl, 3)
    assert crawl.frontier.next_time() > crawl.now
    crawl.close()
