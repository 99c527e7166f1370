"""Importance settles over several partitions at once: as PageRank has it, and no unit of cash is lost by any crash."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from tests.frontier import rig
from xyro.configs.schema import CrawlSettings, OpicSettings, Settings
from xyro.service.node.joint_settling import JointSettling, places

HOSTS, PAGES, TURNOVERS = 12, 20, 40.0
DAMPING = 0.85


def address(number):
    return rig.url(number // PAGES, number % PAGES)


def web():
    """240 pages of 12 hosts; most links stay at home, popular pages get more, some pages are gone."""
    draw = random.Random(5)
    count = HOSTS * PAGES
    links = {}
    for page in range(count):
        home = page // PAGES * PAGES
        inner = [home + draw.randrange(PAGES) for _ in range(4)]
        outer = [int(count * draw.random() ** 3) for _ in range(2)]
        links[page] = [] if page % 11 == 10 else sorted({(page + 1) % count, *inner, *outer})
    return links


LINKS = web()
NUMBERS = {address(page): page for page in LINKS}


def answer(order):
    page = NUMBERS[order.url]
    if not LINKS[page]:
        return rig.failed(order, rig.START, "http-404", status=404)
    return rig.report(order, rig.START, [address(target) for target in LINKS[page]])


def pagerank():
    """Mean 1; a page without links pays all alike."""
    rank = np.ones(len(LINKS))
    for _ in range(200):
        new = np.zeros(len(LINKS))
        for page, targets in LINKS.items():
            new[targets] += DAMPING * rank[page] / len(targets) if targets else 0.0
        rank = new + (len(LINKS) - new.sum()) / len(LINKS)
    return rank


def crawled(path, partitions=4, **opic):
    settings = msgspec.structs.replace(
        Settings(),
        opic=msgspec.structs.replace(OpicSettings(), **opic),
        crawl=msgspec.structs.replace(CrawlSettings(), scope="any"),
    )
    crawl = rig.Crawl.on_disk(path, partitions=partitions, settings=settings)
    crawl.submit(*(address(host * PAGES) for host in range(HOSTS)))
    crawl.run(answer)
    return crawl


def settle(crawl, parts=5, stored=lambda q: None):
    """As service/node/node.py does it; `stored`: called after each commit group."""
    for part in range(1, parts + 1):
        joint = JointSettling(crawl.frontiers, places(crawl.frontiers))
        joint.spend(TURNOVERS * part / parts, 1 << 20)
        for q in range(len(crawl.frontiers)):
            crawl.write(joint.close(q, crawl.now), q)
            stored(q)
        while crawl.wire:
            crawl.deliver_all()
            crawl.turn()


def importance(crawl):
    found = np.zeros(len(LINKS))
    for url, page in NUMBERS.items():
        frontier, local = crawl.page(url)
        found[page] = frontier.ledger.importance(np.array([local]))[0]
    return found / found.mean()


@pytest.mark.parametrize("opic", [{}, {"sites": True}, {"unread_weight": 0.5}], ids=["plain", "sites", "classes"])
def test_importance_is_that_of_the_whole_graph(tmp_path, opic):
    crawl = crawled(tmp_path / "d", **opic)
    before = [frontier.ledger.clock.turnovers for frontier in crawl.frontiers]
    apart = disagreement(crawl)
    settle(crawl)
    assert max(before) < 2 and min(frontier.ledger.clock.turnovers for frontier in crawl.frontiers) > TURNOVERS - 2
    error = np.abs(importance(crawl) / pagerank() - 1.0)
    assert error.mean() < 0.08, error.mean()
    there, wanted = crawl.cash()
    assert there == wanted and crawl.audit()["ok"]
    assert disagreement(crawl) <= apart
    crawl.close()


def test_what_a_crash_leaves_between_the_groups_is_whole(tmp_path):
    crawl = crawled(tmp_path / "d")
    held = [held_by(frontier) for frontier in crawl.frontiers]
    looks = []

    def stored(q):
        again = rig.Crawl.on_disk(rig.copied(tmp_path / "d", tmp_path / f"copy-{len(looks)}"))
        looks.append(again.cash())
        assert again.audit()["ok"]
        assert all(int(f.ledger.effective(slice(0, f.columns.n)).min()) >= 0 for f in again.frontiers if f.columns.n)
        again.close()

    settle(crawl, parts=1, stored=stored)
    assert len(looks) == 4 and {there - wanted for there, wanted in looks} == {0}
    assert held != [held_by(frontier) for frontier in crawl.frontiers], "cash went from partition to partition"
    crawl.close()


def disagreement(crawl):
    """Units by which partitions differ over what the crawl has spent."""
    totals = [frontier.ledger.spent + frontier.ledger.elsewhere_spent for frontier in crawl.frontiers]
    return max(totals) - min(totals)


def held_by(frontier):
    own = np.flatnonzero(frontier.columns["state"][: frontier.columns.n] != rig.State.FOREIGN)
    return int(frontier.ledger.effective(own).sum()) + frontier.ledger.virtual.balance
