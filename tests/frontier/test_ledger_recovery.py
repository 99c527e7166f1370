"""The ledger in a real partition: cash is exact, a crash loses nothing, a resume may set another window."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from tests.frontier import rig
from xyro.configs.schema import OpicSettings, Settings

PAGES = 40


def settings_of(**opic):
    return msgspec.structs.replace(Settings(), opic=msgspec.structs.replace(OpicSettings(), **opic))


def web(order):
    """40 pages, five links each; every eighth page is gone."""
    number = int(order.url.split("/p")[1].removesuffix(".html"))
    if number % 8 == 7:
        return rig.failed(order, rig.START, "http_404", status=404)
    children = sorted({(number * k + k) % PAGES for k in range(1, 6)})
    return rig.report(order, rig.START, [rig.url(0, child) for child in children])


def crawled(path, **opic):
    """A crawl that has read its web and spent on for twenty groups."""
    crawl = rig.Crawl.on_disk(path, settings=settings_of(**opic))
    if not crawl.frontier.partition.scalars:
        crawl.submit(rig.url(0, 0))
        crawl.run(web)
    spend(crawl, 20)
    return crawl


def spend(crawl, groups):
    """Groups in which pages spend without a read, as `PartitionLoop.settle` makes them."""
    for _ in range(groups):
        crawl.write(crawl.frontier.turn(rig.MessageBatch(), crawl.now, 0, 7))
        crawl.now += 1


def look(crawl):
    return crawl.frontier.ledger.importance(slice(0, crawl.frontier.columns.n)).tolist()


def reopened(path, target, **opic):
    return rig.Crawl.on_disk(rig.copied(path, target), settings=settings_of(**opic))


@pytest.mark.parametrize("window", [16.0, 4.0, "auto"])
def test_a_crash_loses_nothing_and_the_crawl_goes_on_as_it_would_have(tmp_path, window):
    crawl = crawled(tmp_path / "d", window=window)
    there, wanted = crawl.cash()
    assert there == wanted and crawl.frontier.ledger.spends > 60 and crawl.audit()["ok"]
    again = reopened(tmp_path / "d", tmp_path / "copy", window=window)
    assert rig.dump(again.frontier.partition) == rig.dump(crawl.frontier.partition)
    assert again.frontier.ledger.dump() == crawl.frontier.ledger.dump() and look(again) == look(crawl)
    again.now = crawl.now
    for either in (crawl, again):
        spend(either, 15)
    assert look(again) == look(crawl) and again.frontier.ledger.dump() == crawl.frontier.ledger.dump()
    assert again.cash() == crawl.cash() == (wanted, wanted)
    crawl.close()
    again.close()


def test_snapshots_of_importances_are_taken_while_one_group_settles_them():
    crawl = rig.Crawl.in_memory(settings=settings_of())
    crawl.submit(rig.url(0, 0))
    crawl.run(web)
    kept, clock = crawl.frontier.importance_error.snapshots.kept, crawl.frontier.ledger.clock
    before, end = kept[-1].time if kept else 0.0, clock.turnovers + 10.0
    crawl.write(crawl.frontier.turn(rig.MessageBatch(), crawl.now, 0, 7, lambda: clock.turnovers < end))
    times = [one.time for one in crawl.frontier.importance_error.snapshots.kept if one.time > before]
    assert len(times) >= 4 and max(b - a for a, b in pairwise(times)) < 4.0
    crawl.close()


def test_a_resume_may_set_another_window_or_sweep(tmp_path):
    for opic in ({"window": 4.0}, {"window": "auto"}, {"sweep_target": 0.3}, {}):
        crawl = crawled(tmp_path / "d", **opic)
        assert crawl.cash()[0] == crawl.cash()[1] and crawl.audit()["ok"]
        assert crawl.frontier.ledger.sweep.target == opic.get("sweep_target", 0.1)
        crawl.close()
